//! Runs that are over and whose values are not written down. What they gave is kept here for a
//! while, for whoever asks again or comes back, and while the run that started them is open;
//! bounded in bytes, and gone with the process.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use wharf_domain::Run;
use wharf_vocab::limits::{VALUES_HELD_BYTES_MAX, VALUES_HELD_MS};
use wharf_vocab::{RunKey, Timestamp};

/// Runs that ended a short while ago.
#[derive(Debug, Default)]
pub(super) struct RecentRuns {
    runs: HashMap<RunKey, Arc<Run>>,
    /// The oldest first.
    order: VecDeque<RunKey>,
    bytes: u64,
}

impl RecentRuns {
    /// Keeps a run for a while.
    pub(super) fn remember(&mut self, run: &Arc<Run>) {
        self.bytes += run.weight();
        match self.runs.insert(run.key.clone(), Arc::clone(run)) {
            Some(before) => self.bytes = self.bytes.saturating_sub(before.weight()),
            None => self.order.push_back(run.key.clone()),
        }
        while self.bytes > VALUES_HELD_BYTES_MAX {
            let Some(oldest) = self.order.front().cloned() else { break };
            self.forget(&oldest);
        }
    }

    pub(super) fn run(&self, key: &RunKey) -> Option<&Arc<Run>> {
        self.runs.get(key)
    }

    /// Forgets a run.
    pub(super) fn forget(&mut self, key: &RunKey) {
        if let Some(run) = self.runs.remove(key) {
            self.bytes = self.bytes.saturating_sub(run.weight());
            self.order.retain(|other| other != key);
        }
    }

    /// Forgets those whose time is over and that no open run started.
    pub(super) fn forget_old(&mut self, now: Timestamp, is_open: impl Fn(&RunKey) -> bool) {
        let old = |run: &Run| {
            let ended = run.ended_at.unwrap_or(run.created_at);
            now.ms_since(ended) >= VALUES_HELD_MS && !run.spec.parent.as_ref().is_some_and(&is_open)
        };
        let old: Vec<RunKey> =
            self.runs.values().filter(|run| old(run)).map(|run| run.key.clone()).collect();
        for key in old {
            self.forget(&key);
        }
    }
}
