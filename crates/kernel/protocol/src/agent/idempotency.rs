//! A memory of idempotency keys for agents.
//!
//! The same key with the same input is executed once: while the first call runs, later ones wait
//! for its outcome; once it has succeeded, later ones get its output. The same key with another
//! input is a conflict. A call that failed is forgotten, so that it may be tried again. Keys
//! belong to a tool and a caller.
//!
//! A key is kept for as long as was promised, whatever else comes: when there is no room for more
//! keys, new ones are refused. Outputs are bounded too; when they are too many, the oldest are
//! dropped and their keys stay, so that nothing is executed twice.

use std::collections::{BTreeMap, VecDeque};

use wharf_vocab::{Code, Digest, Executed, Fault, Object};
use wharf_wire::agent_v1::{CallId, Chunk};

use super::outcome::CallOutcome;

/// Whose key it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdempotencyKey {
    /// The tool.
    pub tool_id: String,
    /// The caller; empty when there is none.
    pub caller: String,
    /// The key.
    pub key: String,
}

/// What to do with a call that has a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Begin {
    /// Execute it, and tell the table how it ended.
    Execute,
    /// Do not execute it: the same call runs already, and `finish` will name this one.
    Wait,
    /// Do not execute it: this is how it ended the first time.
    Replay(CallOutcome),
    /// Do not execute it: this is why.
    Refuse(Fault),
}

/// A memory of idempotency keys.
#[derive(Debug)]
pub struct IdempotencyTable {
    entries_max: usize,
    bytes_max: u64,
    kept_ms: u64,
    entries: BTreeMap<IdempotencyKey, IdempotencyEntry>,
    /// Keys of finished calls, oldest first, with when they finished.
    finished: VecDeque<(IdempotencyKey, u64)>,
    /// Of these, those whose outputs are kept, with their sizes.
    outputs: VecDeque<(IdempotencyKey, u64)>,
    bytes: u64,
}

#[derive(Debug)]
struct IdempotencyEntry {
    input: Digest,
    state: IdempotencyState,
}

#[derive(Debug)]
enum IdempotencyState {
    Running { waiting: Vec<CallId> },
    Succeeded { output: Option<Object> },
}

impl IdempotencyTable {
    /// A table for at most `entries_max` keys, each kept for `kept_ms` after its call has ended,
    /// and at most `bytes_max` of outputs.
    #[must_use]
    pub fn new(entries_max: usize, bytes_max: u64, kept_ms: u64) -> Self {
        Self {
            entries_max,
            bytes_max,
            kept_ms,
            entries: BTreeMap::new(),
            finished: VecDeque::new(),
            outputs: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Says what to do with a call.
    pub fn begin(
        &mut self,
        now_ms: u64,
        key: &IdempotencyKey,
        input: &Object,
        call_id: &CallId,
    ) -> Begin {
        self.forget_old(now_ms);
        let digest = Digest::of_object(input);
        if let Some(entry) = self.entries.get_mut(key) {
            if entry.input != digest {
                return Begin::Refuse(conflict());
            }
            return match &mut entry.state {
                IdempotencyState::Running { waiting } => {
                    waiting.push(call_id.clone());
                    Begin::Wait
                }
                IdempotencyState::Succeeded { output: Some(output) } => {
                    Begin::Replay(CallOutcome::Succeeded(output.clone()))
                }
                IdempotencyState::Succeeded { output: None } => Begin::Refuse(dropped()),
            };
        }
        if self.entries.len() >= self.entries_max {
            let message = "The agent cannot remember another idempotency key now.";
            return Begin::Refuse(Fault::new(Code::ToolBusy, message).executed(Executed::No));
        }
        let state = IdempotencyState::Running { waiting: Vec::new() };
        self.entries.insert(key.clone(), IdempotencyEntry { input: digest, state });
        Begin::Execute
    }

    /// Takes note of how a call ended; returns the calls that waited for it and end in the same
    /// way.
    pub fn finish(
        &mut self,
        now_ms: u64,
        key: &IdempotencyKey,
        outcome: &CallOutcome,
    ) -> Vec<CallId> {
        let Some(IdempotencyEntry { input, state: IdempotencyState::Running { waiting } }) =
            self.entries.remove(key)
        else {
            return Vec::new();
        };
        if let CallOutcome::Succeeded(output) = outcome {
            let bytes = Chunk::Partial { json: output.clone() }.output_bytes();
            let state = IdempotencyState::Succeeded { output: Some(output.clone()) };
            self.entries.insert(key.clone(), IdempotencyEntry { input, state });
            self.finished.push_back((key.clone(), now_ms));
            self.outputs.push_back((key.clone(), bytes));
            self.bytes = self.bytes.saturating_add(bytes);
            while self.bytes > self.bytes_max && self.drop_oldest_output() {}
        }
        waiting
    }

    fn forget_old(&mut self, now_ms: u64) {
        let kept_ms = self.kept_ms;
        let is_old = |at: u64| at.saturating_add(kept_ms) <= now_ms;
        while self.finished.front().is_some_and(|(_, at)| is_old(*at)) {
            let Some((key, _)) = self.finished.pop_front() else { return };
            // Outputs are dropped in the same order, so this one is the oldest or gone.
            if self.outputs.front().is_some_and(|(oldest, _)| *oldest == key) {
                self.drop_oldest_output();
            }
            self.entries.remove(&key);
        }
    }

    /// Drops the output of the call that finished first, and keeps its key; false when there is
    /// none.
    fn drop_oldest_output(&mut self) -> bool {
        let Some((key, bytes)) = self.outputs.pop_front() else { return false };
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(IdempotencyEntry { state: IdempotencyState::Succeeded { output }, .. }) =
            self.entries.get_mut(&key)
        {
            *output = None;
        }
        true
    }
}

fn dropped() -> Fault {
    Fault::new(
        Code::ToolOutputTooLarge,
        "The call was executed before, and its output is no longer kept.",
    )
    .executed(Executed::Yes)
}

fn conflict() -> Fault {
    Fault::new(
        Code::ToolIdempotencyConflict,
        "The idempotency key was used before with other inputs; use a new key.",
    )
    .executed(Executed::No)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(text: &str) -> IdempotencyKey {
        IdempotencyKey { tool_id: "a/t".to_owned(), caller: "c".to_owned(), key: text.to_owned() }
    }

    fn object(n: u64) -> Object {
        json!({"n": n}).as_object().expect("an object").clone()
    }

    fn call(n: u64) -> CallId {
        CallId::new(format!("call-{n}")).expect("valid")
    }

    fn table() -> IdempotencyTable {
        IdempotencyTable::new(4, 1_000, 1_000)
    }

    #[test]
    fn r099_a_replay_after_success_gets_the_same_output_without_executing() {
        let mut table = table();
        assert_eq!(table.begin(0, &key("k"), &object(1), &call(1)), Begin::Execute);
        let outcome = CallOutcome::Succeeded(object(42));
        assert_eq!(table.finish(5, &key("k"), &outcome), []);
        assert_eq!(table.begin(9, &key("k"), &object(1), &call(2)), Begin::Replay(outcome));
        let other = IdempotencyKey { caller: "d".to_owned(), ..key("k") };
        assert_eq!(table.begin(9, &other, &object(1), &call(3)), Begin::Execute);
    }

    #[test]
    fn r100_a_replay_while_the_first_runs_waits_for_it() {
        let mut table = table();
        assert_eq!(table.begin(0, &key("k"), &object(1), &call(1)), Begin::Execute);
        assert_eq!(table.begin(1, &key("k"), &object(1), &call(2)), Begin::Wait);
        assert_eq!(table.begin(2, &key("k"), &object(1), &call(3)), Begin::Wait);
        let failed = CallOutcome::Failed(Fault::new(Code::ToolInternal, "x"));
        assert_eq!(table.finish(3, &key("k"), &failed), [call(2), call(3)]);
        let again = table.begin(4, &key("k"), &object(1), &call(4));
        assert_eq!(again, Begin::Execute, "what failed may be tried again");
    }

    #[test]
    fn r101_the_same_key_with_another_input_is_a_conflict() {
        let mut table = table();
        assert_eq!(table.begin(0, &key("k"), &object(1), &call(1)), Begin::Execute);
        let conflicts = |table: &mut IdempotencyTable| {
            matches!(table.begin(1, &key("k"), &object(2), &call(2)),
                Begin::Refuse(fault) if fault.is(Code::ToolIdempotencyConflict))
        };
        assert!(conflicts(&mut table), "while it runs");
        table.finish(2, &key("k"), &CallOutcome::Succeeded(object(1)));
        assert!(conflicts(&mut table), "after it succeeded");
    }

    #[test]
    fn r169_a_key_is_kept_for_as_long_as_was_promised_and_no_longer() {
        let mut table = table();
        for n in 0..4 {
            let key = key(&n.to_string());
            assert_eq!(table.begin(0, &key, &object(n), &call(n)), Begin::Execute);
            table.finish(n, &key, &CallOutcome::Succeeded(object(n)));
        }
        let full = table.begin(999, &key("4"), &object(4), &call(4));
        assert!(
            matches!(full, Begin::Refuse(fault) if fault.is(Code::ToolBusy)
            && fault.details["executed"] == "no"),
            "none is forgotten to make room"
        );
        assert!(matches!(table.begin(999, &key("0"), &object(0), &call(5)), Begin::Replay(_)));
        assert_eq!(table.begin(1_000, &key("0"), &object(0), &call(6)), Begin::Execute);
        assert!(matches!(table.begin(1_002, &key("3"), &object(3), &call(7)), Begin::Replay(_)));
        table.finish(1_002, &key("0"), &CallOutcome::Succeeded(object(0)));
        assert_eq!(table.begin(5_000, &key("9"), &object(9), &call(8)), Begin::Execute);
        assert_eq!((table.bytes, table.entries.len()), (0, 1));
    }

    #[test]
    fn r169_an_output_that_is_too_much_is_dropped_and_its_key_stays() {
        let mut table = table();
        let large = json!({"x": "y".repeat(600)}).as_object().expect("an object").clone();
        for name in ["a", "b"] {
            table.begin(0, &key(name), &object(0), &call(0));
            table.finish(0, &key(name), &CallOutcome::Succeeded(large.clone()));
        }
        assert!(table.bytes <= 1_000);
        let again = table.begin(1, &key("a"), &object(0), &call(1));
        assert!(matches!(again, Begin::Refuse(fault) if fault.details["executed"] == "yes"));
        assert!(matches!(table.begin(1, &key("b"), &object(0), &call(2)), Begin::Replay(_)));
    }

    #[test]
    fn running_calls_are_never_forgotten_and_so_may_be_too_many() {
        let mut table = table();
        for n in 0..4 {
            assert_eq!(table.begin(0, &key(&n.to_string()), &object(n), &call(n)), Begin::Execute);
        }
        assert!(matches!(table.begin(0, &key("k"), &object(0), &call(9)),
            Begin::Refuse(fault) if fault.is(Code::ToolBusy)));
    }
}
