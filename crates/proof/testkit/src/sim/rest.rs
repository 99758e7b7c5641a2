//! The way to rest: trouble stops, and everything that was accepted must come to its end.

use wharf_engine::shard::Shard;

use super::Sim;

/// How long everything may take to come to rest, in simulated time.
const REST_MS_MAX: u64 = 2 * 60 * 60 * 1000;
/// How many steps it may take.
const REST_STEPS_MAX: u64 = 200_000;
/// By then every shard has an owner again, and runs that have started others are called off.
const FAMILIES_CANCELED_MS: u64 = 45_000;
/// By then their children have been called off, too.
const FAMILIES_SETTLED_MS: u64 = 75_000;

impl Sim {
    /// Ends all trouble and goes on until nothing is under way.
    pub(super) fn come_to_rest(&mut self) {
        if self.check.is_broken() {
            return;
        }
        self.heal();
        let begun = self.agenda.now();
        let mut families = [FAMILIES_CANCELED_MS, FAMILIES_SETTLED_MS].into_iter().peekable();
        for step in 0_u64.. {
            if self.check.is_broken() {
                return;
            }
            let lasted = self.agenda.now().ms_since(begun);
            if let Some(at) = families.next_if(|at| lasted > *at) {
                self.settle_families(at);
            }
            let over = step > REST_STEPS_MAX || lasted > REST_MS_MAX;
            // Words for it are found only where somebody reads them.
            if over || self.check.is_finished() {
                let Some(unrest) = self.unrest() else { break };
                if over {
                    return self.check.broken("everything comes to its end", unrest);
                }
            }
            self.next_event();
            self.after_step();
        }
        self.check_cores(true);
        self.check.at_rest(&self.store.state);
    }

    fn settle_families(&mut self, at: u64) {
        if at == FAMILIES_CANCELED_MS {
            for parent in self.check.parents() {
                let owner = (0..self.nodes.len()).find(|node| self.owns(*node, parent.shard()));
                self.cancel_at(owner, parent, crate::sim::stage::owner());
            }
        } else {
            let orphans = self.check.orphans();
            if !orphans.is_empty() {
                let rule = "children of canceled parents are called off";
                self.check.broken(rule, format!("{orphans:?}"));
            }
        }
    }

    /// What is still under way.
    fn unrest(&self) -> Option<String> {
        if let Some(unfinished) = self.check.unfinished() {
            return Some(unfinished);
        }
        if let Some(call) = self.calls.waiting() {
            return Some(format!("nobody answers {call:?}"));
        }
        let unowned = self.unowned();
        if !unowned.is_empty() {
            return Some(format!("nobody steps {unowned:?}"));
        }
        // A core that has lost a shard and does not know it yet does no harm.
        let current = |shard: &&Shard| self.check.epoch_of(shard.id()) == Some(shard.epoch());
        let busy = |shard: &&Shard| shard.batches_on_the_way() > 0 || shard.open_runs() > 0;
        let mut shards = self.nodes.iter().flat_map(|node| node.memory.shards.values());
        shards.find(|shard| current(shard) && busy(shard)).map(|shard| {
            let open = shard.runs().map(|view| format!("{view:?}")).min();
            let (id, batches) = (shard.id(), shard.batches_on_the_way());
            format!("shard {id} has {batches} batches on their way and this open run: {open:?}")
        })
    }
}
