//! Named scenarios: crash points one by one, and lives that once went wrong.

mod cores;
mod crash_points;
mod doubt;
mod families;
mod flows;
mod publishing;
mod recovery;
mod taken_up;

use wharf_domain::{Caller, Resolution, Run};
use wharf_engine::shard::Reply;
use wharf_vocab::{Durability, Fault, RunKey, RunStatus, ShardId, WorldId};

use super::NODES;
use super::Sim;
use super::callers::Call;
use super::chance::Chance;
use super::event::Event;
use super::provider::Plan;
use super::stage::{self, Parent, Request, TOOLS};

/// A simulated world in which nothing happens by chance but the time things take.
struct Scene {
    sim: Sim,
    inputs: u64,
}

impl Scene {
    fn new(plan: Plan) -> Self {
        let mut sim = Sim::new(Chance::new(1), NODES, true);
        sim.plan = Some(plan);
        sim.begin();
        let mut scene = Self { sim, inputs: 0 };
        // Let every core learn of every provider.
        scene.pass(200);
        scene
    }

    /// A request that keeps out of the way of other rules.
    fn request(&mut self, tool: &str) -> Request {
        self.inputs += 1;
        Request {
            tool: TOOLS.iter().position(|known| known.name == tool).expect("a tool of the cast"),
            input: self.inputs,
            durability: Durability::Journal,
            timeout_ms: 60_000,
            budget: None,
            idempotency_key: None,
            caller: stage::callers()[2].clone(),
            parent: None,
            flow: None,
            step: None,
        }
    }

    fn fresh(&mut self) -> RunKey {
        self.sim.names.fresh(&WorldId::new("default").expect("valid"))
    }

    /// A name that falls into a shard that is wanted.
    fn fresh_where(&mut self, wanted: impl Fn(ShardId) -> bool) -> RunKey {
        loop {
            let key = self.fresh();
            if wanted(key.shard()) {
                return key;
            }
        }
    }

    /// Asks the core that steps the run's shard for it.
    fn ask_for(&mut self, key: &RunKey, request: &Request) {
        let node = self.owner(key.shard());
        self.sim.create(Some(node), key, request);
    }

    /// Makes a run and waits until its caller knows.
    fn start(&mut self, tool: &str) -> RunKey {
        let (key, request) = (self.fresh(), self.request(tool));
        self.ask_for(&key, &request);
        self.until(|scene| scene.run(&key).is_some() && scene.sim.calls.waiting().is_none());
        key
    }

    /// Makes a child of a run, in another shard than its parent's.
    fn start_child(&mut self, parent: &RunKey, tool: &str) -> RunKey {
        let key = self.fresh_where(|shard| shard != parent.shard());
        let mut request = self.request(tool);
        let run = self.run(parent).expect("the parent is known");
        let (account, depth) = (run.spec.account.clone(), run.spec.depth);
        request.parent = Some(Parent { key: parent.clone(), account, depth });
        self.ask_for(&key, &request);
        self.until(|scene| scene.run(&key).is_some() && scene.sim.calls.waiting().is_none());
        self.pass(10_000);
        key
    }

    fn decide(&mut self, key: &RunKey, resolution: Resolution) {
        let run = self.run(key).expect("known");
        let ask = run.open_asks().next().expect("an ask is open").ask.clone();
        self.sim.resolve(&ask, Caller::owner(), resolution);
    }

    /// The core that steps a shard under the newest lease.
    fn owner(&self, shard: ShardId) -> usize {
        let mut nodes = 0..self.sim.nodes.len();
        nodes.find(|node| self.sim.owns(*node, shard)).expect("somebody steps the shard")
    }

    /// The run as it was last committed.
    fn run(&self, key: &RunKey) -> Option<Run> {
        self.sim.check.run(key).cloned()
    }

    fn status(&self, key: &RunKey) -> Option<RunStatus> {
        self.run(key).map(|run| run.status())
    }

    /// The last answer to a call of this kind.
    fn answer(&self, is: impl Fn(&Call) -> bool) -> Option<&Result<Reply, Fault>> {
        let mut answers = self.sim.calls.answers.iter().rev();
        answers.find(|(call, _)| is(call)).map(|(_, result)| result)
    }

    fn step(&mut self) {
        self.sim.next_event();
        self.sim.after_step();
        if let Some(violation) = self.sim.check.take_violation() {
            panic!("{violation:?}\n{}", self.sim.trace.take().join("\n"));
        }
    }

    /// Goes on until the condition holds.
    fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        for _ in 0..20_000 {
            if holds(self) {
                return;
            }
            self.step();
        }
        panic!("it never comes to that\n{}", self.sim.trace.take().join("\n"));
    }

    /// Lets simulated time pass.
    fn pass(&mut self, ms: u64) {
        let end = self.sim.agenda.now().plus_ms(ms);
        // Something must happen then, or time would go further.
        self.sim.agenda.at(end, Event::StoreHeals);
        let trouble = self.sim.store.trouble;
        while self.sim.agenda.now() < end {
            self.step();
        }
        self.sim.store.trouble = trouble;
    }

    /// Ends all trouble and lets everything come to its end; every rule must hold.
    fn rest(&mut self) {
        self.sim.come_to_rest();
        if let Some(violation) = self.sim.check.take_violation() {
            panic!("{violation:?}\n{}", self.sim.trace.take().join("\n"));
        }
    }
}
