//! The rules of the whole, checked after every step.
//!
//! The checker keeps its own account of what was committed and holds everything against it that
//! a core shows, says or does. It never looks into a core to decide what is true.

mod brief;
mod committed;
mod cores;
mod files;
mod flows;
mod model;
mod money;
mod shown;

use std::collections::{BTreeMap, BTreeSet};

use wharf_domain::{Ask, Move};
use wharf_ports::{Batch, Lease};
use wharf_vocab::{AttemptId, CommitNo, Digest, Epoch, RunId, RunKey, ShardId, StreamId};

pub(super) use brief::{brief, brief_batch};

use super::report::Violation;
use model::Model;

/// Asks that callers may pick from.
const ASKS_OFFERED: usize = 24;

/// What is known to be true, and the first rule that did not hold.
#[derive(Debug, Default)]
pub(super) struct Checker {
    violation: Option<Violation>,
    step: u64,
    lasted_ms: u64,
    model: Model,
    /// Requests that were answered with yes.
    accepted: BTreeMap<RunKey, Digest>,
    /// Runs of which a core was told that a commit failed which did not.
    unsure: BTreeSet<(ShardId, Epoch, RunKey)>,
    /// Batches of runs in memory that were committed and reported as failed: they come again.
    hidden: BTreeSet<(ShardId, CommitNo)>,
    /// Which attempts acted on the world.
    acted: BTreeMap<RunKey, BTreeSet<AttemptId>>,
    /// How many texts an attempt wrote under a lease that its core took, and how many of them
    /// were committed.
    wrote: BTreeMap<AttemptId, Wrote>,
    /// Attempts that some provider has begun with.
    begun: BTreeSet<AttemptId>,
    /// Attempts of which somebody said that they never begin, and those of them of which that was
    /// written down.
    doubted: BTreeSet<AttemptId>,
    never: BTreeSet<AttemptId>,
    /// Attempts that were lost with their place.
    gone: BTreeSet<AttemptId>,
    /// Files that were put in their places.
    placed: BTreeSet<(RunKey, Move)>,
    /// Steps of flows that were started, their runs, and whether they are over.
    steps: BTreeMap<(RunKey, String, u32), (RunId, bool)>,
    /// How far the audit was read, and where each chain stood.
    audit_read: u64,
    chains: BTreeMap<ShardId, (u64, [u8; 32])>,
}

/// Texts of an attempt.
#[derive(Debug, Default, Clone, Copy)]
struct Wrote {
    epoch: Epoch,
    taken: usize,
    committed: usize,
}

impl Checker {
    /// Says when what is found from now on was found.
    pub(super) fn at(&mut self, step: u64, lasted_ms: u64) {
        (self.step, self.lasted_ms) = (step, lasted_ms);
    }

    /// A rule does not hold. The first one counts.
    pub(super) fn broken(&mut self, rule: &'static str, seen: String) {
        let (step, after_ms) = (self.step, self.lasted_ms);
        self.violation.get_or_insert(Violation { rule, seen, step, after_ms });
    }

    fn require(&mut self, holds: bool, rule: &'static str, seen: impl FnOnce() -> String) {
        if !holds {
            self.broken(rule, seen());
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.violation.is_some()
    }

    pub(super) fn take_violation(&mut self) -> Option<Violation> {
        self.violation.take()
    }

    /// A run as it was last committed.
    #[cfg(test)]
    pub(super) fn run(&self, key: &RunKey) -> Option<&wharf_domain::Run> {
        self.model.runs.get(key).map(|tale| &tale.run)
    }

    pub(super) fn runs(&self) -> usize {
        self.model.runs.len()
    }

    pub(super) fn open_runs(&self) -> usize {
        self.model.open.len()
    }

    pub(super) fn worlds_made(&self) -> usize {
        self.model.worlds.len()
    }

    pub(super) fn epoch_of(&self, shard: ShardId) -> Option<Epoch> {
        self.model.shards.get(&shard).map(|shard| shard.epoch)
    }

    /// Asks that were raised last, decided or not; open ones as far as there are any.
    pub(super) fn asks(&self) -> Vec<Ask> {
        let newest = self.model.ask_order.iter().rev().take(ASKS_OFFERED);
        let found: Vec<_> = newest.filter_map(|id| self.model.asks.get(id)).collect();
        let some_open = found.iter().any(|ask| ask.is_open());
        let offered = |ask: &&&Ask| !some_open || ask.is_open() || self.step.is_multiple_of(8);
        found.iter().filter(offered).map(|ask| Ask::clone(ask)).collect()
    }

    /// Open runs that have started others which are open.
    pub(super) fn parents(&self) -> Vec<RunKey> {
        let parents = self.model.open().filter_map(|tale| tale.run.spec.parent.clone());
        let parents: BTreeSet<_> =
            parents.filter(|parent| self.model.open.contains_key(parent)).collect();
        parents.into_iter().collect()
    }

    /// How far the commits of a shard are.
    pub(super) fn last_of(&self, shard: ShardId) -> Option<CommitNo> {
        self.model.shards.get(&shard).map(|shard| shard.last)
    }

    /// Somebody took a lease.
    pub(super) fn leased(&mut self, lease: &Lease) {
        let shard = self.model.shards.entry(lease.shard).or_default();
        let (epoch, last) = (shard.epoch, shard.last);
        shard.epoch = lease.epoch;
        shard.before = last;
        let rises = lease.epoch > epoch && lease.last >= last;
        self.require(rises, "epochs and commit numbers rise", || {
            format!("{lease:?} after epoch {epoch} and commit {last}")
        });
    }

    /// A core was told that a batch failed which was committed.
    pub(super) fn unsure(&mut self, batch: &Batch) {
        for append in &batch.appends {
            if let StreamId::Run(key) = &append.stream {
                self.unsure.insert((batch.shard, batch.epoch, key.clone()));
            }
        }
        if batch.appends.is_empty() {
            self.hidden.insert((batch.shard, batch.no));
        }
    }
}
