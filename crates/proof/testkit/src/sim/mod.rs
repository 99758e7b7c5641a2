//! The simulator: real shards, a seeded clock, and a world that goes wrong.
//!
//! Several simulated cores share one simulated store and a few simulated providers. Each core
//! does synchronously what the engine's shell does with futures; the shards, the rules and the
//! store's rules are the real ones. After every step the rules of the whole are checked. In the
//! end all trouble stops, and everything that was accepted must come to its end.
//!
//! A seed and a number of steps say everything about a simulation: there is no clock, no thread
//! and no order that depends on how memory is laid out.

mod agenda;
mod bus;
mod callers;
mod chance;
mod check;
mod event;
mod exercised;
mod faults;
mod flows;
mod node;
mod provider;
mod report;
mod rest;
mod stage;
mod store;

#[cfg(test)]
mod scenarios;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wharf_vocab::{ShardId, Timestamp};

pub use exercised::{Exercised, Thing};
pub use faults::CrashPoint;
pub use report::{SimReport, Violation};

use agenda::Agenda;
use bus::Bus;
use callers::Calls;
use chance::Chance;
use check::Checker;
use event::Event;
use node::Node;
use provider::Provider;
use report::Trace;
use stage::Names;
use store::{SimStore, Trouble};

/// When the simulated world begins.
const BEGIN: Timestamp = Timestamp(1_800_000_000_000);
/// How many cores there are in a scenario.
#[cfg(test)]
const NODES: usize = 3;

/// What to simulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimOptions {
    /// What happens, and when.
    pub seed: u64,
    /// How many steps there are with faults.
    pub steps: u32,
}

/// Runs a simulation. If a rule is broken, it is run again to tell what happened before.
pub fn run(options: SimOptions) -> SimReport {
    let report = run_once(options, false);
    if report.ok {
        return report;
    }
    let again = run_once(options, true);
    if again.violation != report.violation {
        return SimReport {
            violation: Some(Violation {
                rule: "the same seed gives the same life",
                seen: format!("{:?} the first time", report.violation),
                step: again.steps_taken,
                after_ms: again.lasted_ms,
            }),
            ok: false,
            ..again
        };
    }
    again
}

fn run_once(options: SimOptions, trace: bool) -> SimReport {
    let mut sim = Sim::of_seed(options.seed, trace);
    let ended = catch_unwind(AssertUnwindSafe(|| sim.live(options.steps)));
    if let Err(panic) = ended {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        sim.check.broken("nothing panics", text.to_owned());
    }
    sim.into_report(options)
}

/// What a life is like: quiet or wild, busy or not, with many families or none.
#[derive(Debug, Clone, Copy)]
struct Mood {
    /// Calls, of a hundred steps.
    calls: u64,
    /// Faults, of a hundred steps that are no calls.
    faults: u64,
    /// Calls for runs that start others, of a hundred calls for runs.
    families: u64,
    /// Attempts that take long or never end, of a hundred.
    slow: u64,
    /// Calls for runs in a world with little money, of a hundred.
    poor: u64,
    /// Calls for flows, of a hundred calls for runs.
    flows: u64,
    /// Starts of a core after which its clock shows something else, of a hundred.
    resets: u64,
}

impl Mood {
    fn of(chance: &mut Chance) -> Self {
        Self {
            calls: chance.between(8, 30),
            faults: chance.between(1, 8),
            families: chance.between(0, 40),
            slow: chance.between(5, 40),
            poor: chance.between(10, 80),
            flows: 0,
            resets: 0,
        }
    }
}

/// The simulated world.
#[derive(Debug)]
struct Sim {
    agenda: Agenda<Event>,
    chance: Chance,
    nodes: Vec<Node>,
    bus: Bus,
    store: SimStore,
    providers: Vec<Provider>,
    calls: Calls,
    names: Names,
    check: Checker,
    seen: Exercised,
    trace: Trace,
    shards: Vec<ShardId>,
    mood: Mood,
    /// Which core loaded a shard last.
    owners: BTreeMap<ShardId, usize>,
    healing: bool,
    steps_taken: u64,
    /// What attempts do in a scenario; chance decides otherwise.
    #[cfg(test)]
    plan: Option<provider::Plan>,
    /// Whether all that a flow and its steps tell each other is lost, in a scenario.
    #[cfg(test)]
    deaf: bool,
}

impl Sim {
    /// A world whose cores, bus and providers chance has chosen.
    fn of_seed(seed: u64, trace: bool) -> Self {
        let mut chance = Chance::new(seed);
        let nodes = chance.index(6) + 2;
        let mut sim = Self::new(chance, nodes, trace);
        // What takes nothing from chance leaves lives without flows as they were.
        sim.mood.flows = seed % 41;
        sim.mood.resets = 20;
        sim.bus.loses = sim.chance.between(0, 12);
        sim.bus.repeats = sim.chance.between(0, 12);
        for node in 0..nodes {
            // Clocks are never the same.
            sim.nodes[node].ahead_ms = Self::skew(&mut sim.chance, 2_000);
        }
        for provider in &mut sim.providers {
            provider.settle(&mut sim.chance);
        }
        sim
    }

    /// So far at most a clock is ahead or behind.
    fn skew(chance: &mut Chance, most_ms: u64) -> i64 {
        let ms = chance.between(0, 2 * most_ms);
        i64::try_from(ms).unwrap_or(0).saturating_sub_unsigned(most_ms)
    }

    /// A world in which every provider is at every core, and the bus loses nothing.
    fn new(mut chance: Chance, nodes: usize, trace: bool) -> Self {
        let mood = Mood::of(&mut chance);
        Self {
            agenda: Agenda::starting(BEGIN),
            chance,
            mood,
            nodes: (0..nodes).map(Node::new).collect(),
            bus: Bus::default(),
            store: SimStore::new(),
            providers: stage::TOOLS.iter().map(|_| Provider::new(nodes)).collect(),
            calls: Calls::default(),
            names: Names::new(),
            check: Checker::default(),
            seen: Exercised::default(),
            trace: Trace::new(trace),
            shards: stage::shards(),
            owners: BTreeMap::new(),
            healing: false,
            steps_taken: 0,
            #[cfg(test)]
            plan: None,
            #[cfg(test)]
            deaf: false,
        }
    }

    /// A whole life: a quiet beginning, steps with faults, and the way to rest.
    fn live(&mut self, steps: u32) {
        let (loses, repeats) = (self.bus.loses, self.bus.repeats);
        (self.bus.loses, self.bus.repeats) = (0, 0);
        self.begin();
        (self.bus.loses, self.bus.repeats) = (loses, repeats);
        for _ in 0..steps {
            if self.check.is_broken() {
                return;
            }
            if self.chance.percent(self.mood.calls) {
                self.some_call();
            } else if self.chance.percent(self.mood.faults) {
                self.some_fault();
            } else {
                self.next_event();
            }
            self.after_step();
        }
        self.come_to_rest();
    }

    /// Starts the cores and makes the worlds; nothing goes wrong yet.
    fn begin(&mut self) {
        for node in 0..self.nodes.len() {
            self.start_with(node, self.home_shards(node));
        }
        self.heal_providers();
        for _ in 0..20_000 {
            let ready = (0..self.nodes.len()).all(|node| self.is_safe(node));
            if ready && self.unowned().is_empty() {
                break;
            }
            self.next_event();
            self.after_step();
        }
        for (id, settings) in stage::worlds() {
            self.create_world(id, settings);
        }
        for _ in 0..20_000 {
            if self.check.is_broken() || self.check.worlds_made() == stage::worlds().len() {
                return;
            }
            self.next_event();
            self.after_step();
        }
        self.check.broken("worlds can be made", "they were not".to_owned());
    }

    fn home_shards(&self, node: usize) -> Vec<ShardId> {
        self.shards.iter().copied().skip(node).step_by(self.nodes.len()).collect()
    }

    fn after_step(&mut self) {
        self.steps_taken += 1;
        let lasted = self.agenda.now().ms_since(BEGIN);
        self.check.at(self.steps_taken, lasted);
        self.check_cores(self.steps_taken.is_multiple_of(16));
    }

    fn next_event(&mut self) {
        let Some(event) = self.agenda.next() else { return };
        if let Some((node, life)) = event.addressee() {
            let target = &self.nodes[node];
            if !target.up || target.life != life {
                return self.undeliverable(&event);
            }
            if target.frozen_until > self.agenda.now() {
                let until = target.frozen_until;
                return self.agenda.at(until, event);
            }
        }
        match event {
            Event::ToNode { node, parcel, .. } => self.deliver(node, parcel),
            Event::Wake { node, .. } => self.wake(node),
            Event::Leases { node, .. } => self.ask_for_leases(node),
            Event::Renew { node, life, asked } => self.renew_at_store(node, life, asked),
            Event::Renewed { node, asked, found, .. } => self.renewed(node, asked, found),
            Event::Frame { from, to, frame } => self.framed(from, to, frame),
            Event::Resend { node, to, .. } => self.resend(node, to),
            Event::CallTimeout { node, call, .. } => self.far_call_timed_out(node, call),
            Event::LookAfter { node, .. } => self.look_after(node),
            Event::Leave { node, .. } => self.look_at_leaving(node),
            Event::Drain { node, .. } => self.look_at_drain(node),
            Event::Load { node, shards, .. } => self.load(node, &shards),
            Event::AtStore { node, life, group } => self.at_store(node, life, group),
            Event::Settled { node, group, .. } => self.settled(node, group),
            Event::Chore { node, chore, .. } => self.do_chore(node, chore),
            Event::ToProvider { provider, from, order } => self.at_provider(provider, from, order),
            Event::Work { provider, attempt } => self.go_on(provider, &attempt),
            Event::LinkUp { provider, node } => {
                self.set_link(provider, node, wharf_domain::Availability::Up);
            }
            Event::Start { node } => self.restart(node),
            Event::StoreHeals => self.store.trouble = Trouble::Nothing,
            Event::Inbox => self.look_through_inbox(),
        }
    }

    fn trace(&mut self, line: impl FnOnce() -> String) {
        self.trace.note(self.agenda.now(), line);
    }

    /// How long something takes on the way between two machines.
    fn latency(&mut self) -> u64 {
        match self.chance.between(0, 19) {
            0 => self.chance.between(200, 5_000),
            1..=4 => self.chance.between(10, 200),
            _ => self.chance.between(0, 9),
        }
    }

    fn into_report(mut self, options: SimOptions) -> SimReport {
        let violation = self.check.take_violation();
        SimReport {
            ok: violation.is_none(),
            seed: options.seed,
            steps: options.steps,
            steps_taken: self.steps_taken,
            lasted_ms: self.agenda.now().ms_since(BEGIN),
            runs: self.check.runs(),
            exercised: self.seen,
            violation,
            trace: self.trace.take(),
        }
    }
}
