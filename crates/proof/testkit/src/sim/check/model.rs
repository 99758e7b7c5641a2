//! What was committed, as the checker itself adds it up.

use std::collections::{BTreeMap, BTreeSet};

use wharf_domain::{Ask, AskEntry, AskSpec, Entry, Run, RunEntry, World};
use wharf_ports::{Append, Batch, Body};
use wharf_vocab::{
    AskId, AttemptId, CommitNo, Epoch, RunKey, Seq, ShardId, StreamId, Timestamp, WorldId,
};

use super::money::Purse;

/// Everything that was committed.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) runs: BTreeMap<RunKey, Tale>,
    /// Runs that are not over, and their shards.
    pub(super) open: BTreeMap<RunKey, ShardId>,
    pub(super) asks: BTreeMap<AskId, Ask>,
    pub(super) ask_order: Vec<AskId>,
    pub(super) worlds: BTreeMap<WorldId, WorldTale>,
    pub(super) claims: BTreeMap<(String, String), String>,
    pub(super) attempts: BTreeMap<AttemptId, RunKey>,
    pub(super) shards: BTreeMap<ShardId, ShardTale>,
    pub(super) purse: Purse,
}

/// A run and every state it was in after a commit.
#[derive(Debug)]
pub(super) struct Tale {
    pub(super) run: Run,
    pub(super) seq: Seq,
    pub(super) states: Vec<Run>,
}

/// A world and every state it was in.
#[derive(Debug, Default)]
pub(super) struct WorldTale {
    pub(super) seq: Seq,
    pub(super) states: Vec<World>,
}

/// How far a shard's commits are.
#[derive(Debug, Default)]
pub(super) struct ShardTale {
    pub(super) epoch: Epoch,
    /// The highest number under an earlier lease.
    pub(super) before: CommitNo,
    pub(super) last: CommitNo,
    pub(super) numbers: BTreeSet<CommitNo>,
}

impl Model {
    /// Adds an append; an error says what cannot follow.
    pub(super) fn append(&mut self, batch: &Batch, append: &Append) -> Result<(), String> {
        let last = Seq(append.expected.0 + append.body.len() as u64);
        match &append.stream {
            StreamId::Run(key) => self.append_run(key, batch.at, append, last),
            StreamId::Ask(id) => self.append_ask(id, batch.at, append),
            StreamId::World(id) => {
                let tale = self.worlds.entry(id.clone()).or_default();
                if tale.seq != append.expected {
                    return Err(format!("world {id} is at {}", tale.seq));
                }
                tale.seq = last;
                let Body::Entries(entries) = &append.body else { return Ok(()) };
                for entry in entries {
                    if let Entry::World(entry) = entry {
                        let before = tale.states.last().cloned();
                        let after = World::apply(before, id, batch.at, entry);
                        tale.states.push(after.ok_or_else(|| format!("world {id}: {entry:?}"))?);
                    }
                }
                Ok(())
            }
            StreamId::Provider(_)
            | StreamId::Seat(_)
            | StreamId::Grant(_)
            | StreamId::Schedule(_)
            | StreamId::Receiver(_)
            | StreamId::Trigger(_)
            | StreamId::Firing(_)
            | StreamId::Notification(_)
            | StreamId::Flow(_)
            | StreamId::Notice(_) => Ok(()),
        }
    }

    fn append_run(
        &mut self,
        key: &RunKey,
        at: Timestamp,
        append: &Append,
        last: Seq,
    ) -> Result<(), String> {
        let known = self.runs.get_mut(key);
        let entries: Vec<&RunEntry> = match &append.body {
            Body::Entries(entries) => entries
                .iter()
                .filter_map(|entry| match entry {
                    Entry::Run(entry) => Some(entry),
                    _ => None,
                })
                .collect(),
            Body::Progress(_) => Vec::new(),
        };
        for entry in &entries {
            if let RunEntry::AttemptStarted(started) = entry
                && self.attempts.insert(started.attempt_id.clone(), key.clone()).is_some()
            {
                return Err(format!("the attempt id {} is used twice", started.attempt_id));
            }
        }
        match known {
            None => {
                let run = Run::replay(entries.iter().map(|entry| (at, *entry)));
                let Some(run) = run else {
                    return Err("it does not begin with its creation".into());
                };
                if append.expected != Seq(0) {
                    return Err("its first entry is not its first".into());
                }
                self.open.insert(key.clone(), key.shard());
                self.runs.insert(key.clone(), Tale { states: vec![run.clone()], run, seq: last });
            }
            Some(tale) => {
                // An ended run changes in one way only: what it has cost may be corrected.
                let corrects = |entry: &&RunEntry| matches!(entry, RunEntry::CostReported(_));
                if tale.run.is_over() && (entries.is_empty() || !entries.iter().all(corrects)) {
                    return Err("it was over".into());
                }
                if tale.seq != append.expected {
                    return Err(format!("it stood at {}", tale.seq));
                }
                for entry in &entries {
                    if tale.run.is_over() && !corrects(entry) {
                        return Err("something follows its end".into());
                    }
                    tale.run.apply(at, entry);
                }
                tale.seq = last;
                if !entries.is_empty() {
                    tale.states.push(tale.run.clone());
                }
            }
        }
        if self.runs.get(key).is_some_and(|tale| tale.run.is_over()) {
            self.open.remove(key);
        }
        Ok(())
    }

    fn append_ask(&mut self, id: &AskId, at: Timestamp, append: &Append) -> Result<(), String> {
        let Body::Entries(entries) = &append.body else { return Ok(()) };
        for entry in entries {
            match (entry, self.asks.get_mut(id)) {
                (Entry::Ask(AskEntry::Raised(spec)), None) => {
                    self.asks.insert(id.clone(), Ask::raised(AskSpec::clone(spec), at));
                    self.ask_order.push(id.clone());
                }
                (Entry::Ask(AskEntry::Resolved { resolution, by }), Some(ask)) if ask.is_open() => {
                    ask.resolved = Some((resolution.clone(), by.clone()));
                    ask.resolved_at = Some(at);
                }
                _ => return Err(format!("ask {id} cannot take {entry:?}")),
            }
        }
        Ok(())
    }

    /// Runs that are not over.
    pub(super) fn open(&self) -> impl Iterator<Item = &Tale> {
        self.open.keys().filter_map(|key| self.runs.get(key))
    }

    /// Whether the state is one the run was in after a commit.
    pub(super) fn was(&self, run: &Run) -> bool {
        self.runs.get(&run.key).is_some_and(|tale| tale.states.iter().rev().any(|was| was == run))
    }
}
