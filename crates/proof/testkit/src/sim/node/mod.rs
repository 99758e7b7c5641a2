//! A simulated core: what the engine's shell does around its shards, one thing after another.
//!
//! A core dies at named points and takes with it everything but what the store and the
//! providers know.

mod effects;
mod lease;
mod leave;
mod load;
mod news;
mod place;
mod route;
mod turns;
mod work;

pub(super) use effects::not_connected;
pub(super) use lease::Renewed;
pub(super) use load::read_run;
pub(super) use route::{CallAt, Origin, busy};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use wharf_engine::book::Book;
use wharf_engine::lease::{Owners, SafeUntil};
use wharf_engine::link::Link;
use wharf_engine::shard::{Input, Providers, Shard, Ticket, UnloadedShard};
use wharf_engine::turns::Turns;
use wharf_ports::Batch;
use wharf_vocab::{
    AttemptId, Epoch, Incarnation, NodeId, Place, ProviderId, RunKey, Seq, ShardId, Timestamp,
};

use super::Sim;
use super::bus::Message;
use super::event::{Event, Parcel};
use super::exercised::Thing;
use super::faults::CrashPoint;
use leave::Leaving;
use news::PlaceNews;
use place::Kept;

/// A simulated core.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) up: bool,
    /// How often it was started; what was meant for an earlier life does not arrive.
    pub(super) life: u32,
    /// Whether it is to leave.
    pub(super) draining: bool,
    /// Until when its leases last, as the store has it.
    pub(super) leased_until: Timestamp,
    /// When the processes that it has started end, unless it says that they may live longer.
    pub(super) children_until: Timestamp,
    pub(super) frozen_until: Timestamp,
    pub(super) cut_until: Timestamp,
    /// How far its clock is ahead of the store's, or behind it.
    pub(super) ahead_ms: i64,
    /// Where it will die next.
    pub(super) doom: Option<CrashPoint>,
    pub(super) memory: Memory,
}

/// What a core knows, all of which is gone when it dies.
#[derive(Debug)]
pub(super) struct Memory {
    /// The attempts that this life of the core was given.
    pub(super) book: Book<Kept>,
    /// Which life of which core it is.
    pub(super) place: Place,
    /// Until when the core may act, and whether it has ever prolonged its leases.
    pub(super) safe_until: SafeUntil,
    pub(super) renewed: bool,
    /// Who steps which shard, as far as this core knows.
    pub(super) owners: Owners,
    /// What is said to other cores and heard from them.
    pub(super) links: BTreeMap<usize, Link<Message>>,
    /// Others that are about to be told again what they have not confirmed, and after how long.
    pub(super) resending: BTreeMap<usize, u64>,
    /// Places that have made themselves known.
    pub(super) met: BTreeSet<Place>,
    /// Calls that other cores are to answer.
    pub(super) far_calls: BTreeSet<u64>,
    /// What is known of each provider at each core.
    pub(super) news: BTreeMap<(usize, usize), PlaceNews>,
    /// Providers of this core of which others are to be told.
    pub(super) untold: BTreeSet<usize>,
    /// How attempts of this place ended, until it is known that this is written down.
    pub(super) ends: BTreeMap<AttemptId, Input>,
    /// What other places were asked.
    pub(super) asking: BTreeMap<AttemptId, (ShardId, Epoch, RunKey, Place)>,
    /// Shards that are about to be handed over.
    pub(super) leaving: BTreeMap<ShardId, Leaving>,
    /// Since when the core is to leave.
    pub(super) drained_from: Option<Timestamp>,
    pub(super) shards: BTreeMap<ShardId, Shard>,
    /// Shards that are about to be loaded.
    pub(super) loading: BTreeSet<ShardId>,
    pub(super) queue: VecDeque<(ShardId, Input)>,
    pub(super) batches: Vec<Arc<Batch>>,
    pub(super) reload: BTreeSet<ShardId>,
    /// What shards that are to be loaded anew have left.
    pub(super) left: BTreeMap<ShardId, UnloadedShard>,
    /// Runs that wait for room at their providers.
    pub(super) turns: Turns,
    /// What all shards know of providers.
    pub(super) providers: Providers,
    /// Providers that shards take for full.
    pub(super) full: BTreeSet<ProviderId>,
    /// Whose call waits under a ticket.
    pub(super) answers: BTreeMap<Ticket, (ShardId, CallAt)>,
    pub(super) last_ticket: u64,
    pub(super) wake_at: Option<Timestamp>,
    /// When the store will have got what was handed over before.
    pub(super) store_free_at: Timestamp,
    /// Attempts handed to providers in this life.
    pub(super) dispatched: BTreeSet<AttemptId>,
    /// How far each run was shown to watchers, and under which epoch.
    pub(super) published: BTreeMap<RunKey, (Epoch, Seq)>,
}

impl Node {
    pub(super) fn new(number: usize) -> Self {
        Self {
            id: NodeId::new(format!("node-{number}")).expect("a valid id"),
            up: false,
            life: 0,
            draining: false,
            leased_until: Timestamp(0),
            children_until: Timestamp(0),
            frozen_until: Timestamp(0),
            cut_until: Timestamp(0),
            ahead_ms: 0,
            doom: None,
            memory: Memory::new(number, 0),
        }
    }
}

impl Memory {
    /// What a core knows when a life of it begins.
    fn new(number: usize, life: u32) -> Self {
        let node = NodeId::new(format!("node-{number}")).expect("a valid id");
        let place = Place { node, incarnation: Incarnation(u64::from(life)) };
        Self {
            book: Book::new(place.clone()),
            place: place.clone(),
            safe_until: SafeUntil::Passed(0),
            renewed: false,
            owners: Owners::default(),
            links: BTreeMap::new(),
            resending: BTreeMap::new(),
            met: BTreeSet::new(),
            far_calls: BTreeSet::new(),
            news: BTreeMap::new(),
            untold: BTreeSet::new(),
            ends: BTreeMap::new(),
            asking: BTreeMap::new(),
            leaving: BTreeMap::new(),
            drained_from: None,
            shards: BTreeMap::new(),
            loading: BTreeSet::new(),
            queue: VecDeque::new(),
            batches: Vec::new(),
            reload: BTreeSet::new(),
            left: BTreeMap::new(),
            turns: Turns::default(),
            providers: Providers::at(place).among_others(),
            full: BTreeSet::new(),
            answers: BTreeMap::new(),
            last_ticket: 0,
            wake_at: None,
            store_free_at: Timestamp(0),
            dispatched: BTreeSet::new(),
            published: BTreeMap::new(),
        }
    }
}

impl Sim {
    /// What a core's clock shows.
    pub(super) fn clock_of(&self, node: usize) -> Timestamp {
        Timestamp(self.agenda.now().0.saturating_add_signed(self.nodes[node].ahead_ms))
    }

    pub(super) fn is_cut(&self, node: usize) -> bool {
        self.nodes[node].cut_until > self.agenda.now()
    }

    /// Whether the core is to die here.
    pub(super) fn dies_at(&mut self, node: usize, point: CrashPoint) -> bool {
        let doomed = self.nodes[node].doom == Some(point);
        if doomed {
            self.crash(node, point);
        }
        doomed
    }

    /// The core dies. Its child processes die with it; whoever waits for it learns nothing.
    pub(super) fn crash(&mut self, node: usize, point: CrashPoint) {
        let dead = &mut self.nodes[node];
        if !dead.up {
            return;
        }
        dead.up = false;
        dead.doom = None;
        dead.frozen_until = Timestamp(0);
        dead.draining = false;
        let ended_life = dead.life;
        let next = Memory::new(node, dead.life + 1);
        let memory = std::mem::replace(&mut dead.memory, next);
        self.seen.note(point);
        self.trace(|| format!("node {node} crashes: {point:?}"));
        let own =
            memory.answers.into_values().filter(|(_, at)| at.node == node && at.life == ended_life);
        for call in own.map(|(_, at)| at.call).chain(memory.far_calls) {
            self.call_lost(call);
        }
        for (_, origin) in memory.leaving.into_values().flat_map(|it| it.waiting) {
            if let Some(at) = origin.filter(|at| at.node == node && at.life == ended_life) {
                self.call_lost(at.call);
            }
        }
        self.children_die_with(node);
        let away = match self.chance.between(0, 3) {
            0 if !self.healing => self.chance.between(20_000, 90_000),
            _ => self.chance.between(10, 3_000),
        };
        self.agenda.after(away, Event::Start { node });
    }

    pub(super) fn restart(&mut self, node: usize) {
        if !self.nodes[node].up {
            self.seen.note(Thing::Restart);
            let all = self.shards.clone();
            self.start_with(node, all);
        }
    }

    /// Starts a core that asks for these leases first.
    pub(super) fn start_with(&mut self, node: usize, shards: Vec<ShardId>) {
        let started = &mut self.nodes[node];
        started.up = true;
        started.life += 1;
        started.memory = Memory::new(node, started.life);
        let life = started.life;
        self.set_the_clock(node);
        self.trace(|| format!("node {node} starts, life {life}"));
        self.nodes[node].children_until = Timestamp(u64::MAX);
        self.agenda.after(0, Event::Leases { node, life });
        self.agenda.after(20, Event::Load { node, life, shards });
        self.agenda.after(1_000, Event::LookAfter { node, life });
        self.greet(node);
        self.links_reset(node);
    }

    /// A machine that starts again may have another time than before, also an earlier one. While a
    /// core is up its clock never goes back.
    fn set_the_clock(&mut self, node: usize) {
        if self.mood.resets > 0 && !self.healing && self.chance.percent(self.mood.resets) {
            self.nodes[node].ahead_ms = Self::skew(&mut self.chance, 120_000);
        }
        if self.nodes[node].ahead_ms < 0 {
            self.seen.note(Thing::ClockBehind);
        }
    }

    /// Something was meant for a core that is not there any more.
    pub(super) fn undeliverable(&mut self, event: &Event) {
        match event {
            Event::ToNode { parcel: Parcel::Input { call: Some(call), .. }, .. } => {
                self.call_lost(*call);
            }
            Event::ToNode { node, life, parcel: Parcel::Parked { origin: Some(at), .. } }
                if at.node == *node && at.life == *life =>
            {
                self.call_lost(at.call);
            }
            _ => {}
        }
    }

    /// Sends something to a core over the network.
    pub(super) fn send_to(&mut self, node: usize, parcel: Parcel) {
        let life = self.nodes[node].life;
        let latency = self.latency();
        self.agenda.after(latency, Event::ToNode { node, life, parcel });
    }

    /// Lets a core be woken when its shards want it.
    pub(super) fn schedule_wake(&mut self, node: usize) {
        if !self.is_safe(node) {
            return;
        }
        let (ahead, now) = (self.nodes[node].ahead_ms, self.clock_of(node));
        let memory = &mut self.nodes[node].memory;
        let turn = memory.turns.next_at().filter(|at| *at > now);
        let wants = memory.shards.values().filter_map(Shard::next_deadline).chain(turn).min();
        let Some(wants) = wants else { return };
        let wants = Timestamp(wants.0.saturating_add_signed(ahead.saturating_neg()));
        if memory.wake_at.is_none_or(|known| wants < known) {
            memory.wake_at = Some(wants);
            let life = self.nodes[node].life;
            self.agenda.at(wants, Event::Wake { node, life });
        }
    }
}
