//! Runs that wait for room, as the engine's shell lets them wait.

use wharf_domain::Availability;
use wharf_domain::run::RunInput;
use wharf_engine::shard::Input;

use super::super::Sim;
use super::super::exercised::Thing;
use super::super::provider::ROOM;
use super::super::stage;

impl Sim {
    /// Lets those begin whose turn it is, and tells shards where runs have to wait.
    pub(super) fn call_turns(&mut self, node: usize) {
        self.note_full(node);
        let now = self.clock_of(node);
        let providers = &self.providers;
        let memory = &mut self.nodes[node].memory;
        let catalog = &memory.catalog;
        let called = memory.turns.call(now, |turn, called| {
            let provider = turn.spec.provider();
            let up = catalog.get(&provider).is_some_and(|(_, it)| *it == Availability::Up);
            let at = stage::tool_of(&provider).map(|tool| providers[tool].under_way(node));
            up && at.is_some_and(|at| at + called < ROOM)
        });
        for key in called {
            self.seen.note(Thing::Turn);
            let shard = key.shard();
            let input = Input::Run { key, input: RunInput::Turn, ticket: None };
            self.nodes[node].memory.queue.push_back((shard, input));
        }
    }

    fn note_full(&mut self, node: usize) {
        let memory = &mut self.nodes[node].memory;
        let full: std::collections::BTreeSet<_> = memory.turns.full().cloned().collect();
        let begun = full.difference(&memory.full).map(|id| (id.clone(), true));
        let over = memory.full.difference(&full).map(|id| (id.clone(), false));
        for (provider, full) in begun.chain(over).collect::<Vec<_>>() {
            memory.providers.set_full(&provider, full);
        }
        memory.full = full;
    }
}
