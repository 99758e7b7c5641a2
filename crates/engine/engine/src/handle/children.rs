//! How many runs one run may start: in all, and how fast.
//!
//! Each run is written down for ever, so a call that starts runs in a loop would fill the disk
//! before anybody looks. What is counted here is forgotten when the core ends.

use std::collections::HashMap;

use parking_lot::Mutex;
use wharf_vocab::limits::RUN_CHILDREN_MAX;
use wharf_vocab::{Code, Fault, RunKey, Timestamp};

/// Runs that may be started at once.
const BURST: u64 = 50;
/// One more may be started after so many milliseconds.
const REFILL_MS: u64 = 50;
/// Parents that are remembered before those that are over are forgotten.
const PARENTS_MAX: usize = 1_024;

/// What runs have started.
#[derive(Debug, Default)]
pub(super) struct Children(Mutex<Parents>);

#[derive(Debug, Default)]
struct Parents {
    known: HashMap<RunKey, ChildStarts>,
    /// How many there may be before those that are over are forgotten.
    room: usize,
}

#[derive(Debug)]
struct ChildStarts {
    in_all: usize,
    lately: u64,
    since: Timestamp,
}

impl Children {
    /// Takes a place for one more child of a run, if it may have one. Parents that `is_over` are
    /// forgotten when there are many.
    pub(super) fn take(
        &self,
        parent: &RunKey,
        now: Timestamp,
        is_over: impl Fn(&RunKey) -> bool,
    ) -> Result<(), Fault> {
        let mut parents = self.0.lock();
        let parents = &mut *parents;
        if parents.known.len() >= parents.room.max(PARENTS_MAX) {
            parents.known.retain(|key, _| !is_over(key));
            parents.room = 2 * parents.known.len();
        }
        let new = || ChildStarts { in_all: 0, lately: 0, since: now };
        let started = parents.known.entry(parent.clone()).or_insert_with(new);
        let refilled = now.ms_since(started.since) / REFILL_MS;
        if refilled > 0 {
            started.lately = started.lately.saturating_sub(refilled);
            started.since = now;
        }
        if started.in_all >= RUN_CHILDREN_MAX {
            let message = format!("One run may start {RUN_CHILDREN_MAX} others, and it has.");
            return Err(Fault { retryable: false, ..Fault::new(Code::ToolLimit, message) });
        }
        if started.lately >= BURST {
            let message = "The call starts runs too fast; wait a moment and try again.";
            return Err(Fault::new(Code::ToolRateLimited, message));
        }
        started.in_all += 1;
        started.lately += 1;
        Ok(())
    }

    /// Gives a place back that was not needed: no run was made. Asking was not for nothing, so it
    /// still counts for how fast it went.
    pub(super) fn give_back(&self, parent: &RunKey) {
        let mut parents = self.0.lock();
        if let Some(started) = parents.known.get_mut(parent) {
            started.in_all = started.in_all.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use wharf_vocab::{RunId, WorldId};

    use super::*;

    fn key(name: &str) -> RunKey {
        RunKey {
            world: WorldId::new("default").expect("valid"),
            run: RunId::new(name).expect("valid"),
        }
    }

    #[test]
    fn r160_a_run_starts_so_many_at_once_and_then_slowly() {
        let children = Children::default();
        let take = |name: &str, at: u64| children.take(&key(name), Timestamp(at), |_| false);
        let taken = (0..1_000).filter(|_| take("fast", 1_000).is_ok()).count();
        assert_eq!(taken, 50);
        assert!(take("fast", 1_000).expect_err("too fast").is(Code::ToolRateLimited));
        take("other", 1_000).expect("each for itself");
        let taken = (0..1_000).filter(|_| take("fast", 1_500).is_ok()).count();
        assert_eq!(taken, 10);
    }

    #[test]
    fn r160_a_run_starts_so_many_in_all_and_no_more() {
        let children = Children::default();
        let take = |at: u64| children.take(&key("slow"), Timestamp(at), |_| false);
        for n in 0..RUN_CHILDREN_MAX as u64 {
            take(n * REFILL_MS).expect("slow enough");
        }
        let later = Timestamp(1_000_000).0;
        assert!(take(later).expect_err("too many").is(Code::ToolLimit));
        children.give_back(&key("slow"));
        take(later).expect("one was not made");
    }

    #[test]
    fn r160_parents_that_are_over_are_forgotten() {
        let children = Children::default();
        for n in 0..3 * PARENTS_MAX {
            let is_over = |key: &RunKey| key.run.as_str() != "p0";
            children.take(&key(&format!("p{n}")), Timestamp(1), is_over).expect("first");
        }
        let parents = children.0.lock();
        assert!(parents.known.len() <= PARENTS_MAX && parents.known.contains_key(&key("p0")));
    }
}
