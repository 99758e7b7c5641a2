//! Runs that wait for room, as the engine's shell lets them wait.

use wharf_domain::run::RunInput;
use wharf_engine::shard::Input;

use super::super::Sim;
use super::super::exercised::Thing;
use super::super::stage;

impl Sim {
    /// Lets those begin whose turn it is, and tells shards where runs have to wait.
    pub(super) fn call_turns(&mut self, node: usize) {
        self.note_full(node);
        let now = self.clock_of(node);
        let mut turns = std::mem::take(&mut self.nodes[node].memory.turns);
        let called = turns.call(now, |turn, called| {
            let provider = stage::tool_of(&turn.spec.provider());
            provider.is_some_and(|provider| self.has_room(node, provider, called))
        });
        self.nodes[node].memory.turns = turns;
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
