//! What a group writes, gathered batch by batch and turned into columns.

use std::collections::{BTreeMap, BTreeSet};

use wharf_domain::scope::WorldPath;
use wharf_domain::{Account, ArtifactOp, Entry};
use wharf_journal::audit::Sealer;
use wharf_ports::plan::{Class, Plan, Prepared, PreparedRun, StreamPlace};
use wharf_ports::{CommitError, Require, plan};
use wharf_vocab::{
    AccountId, Digest, Direction, HoldId, Micro, RunId, RunKey, ShardId, StreamId, Timestamp,
    ToolId, WorldId,
};

use super::known::{FileState, GroupView, ShardState, StreamState, Unknown};
use crate::packed::PackedRecords;

/// What became of each batch.
pub(crate) type CommitAnswers = Vec<Result<(), CommitError>>;

/// What a group writes.
#[derive(Debug, Default)]
pub(crate) struct Writes<'a> {
    /// Shards as they were, for the assertion.
    pub(crate) shards: BTreeMap<ShardId, ShardState>,
    pub(crate) claims: BTreeMap<(&'a str, &'a str), (&'a str, Option<i64>)>,
    pub(crate) streams: BTreeMap<i64, StreamWrite<'a>>,
    pub(crate) rows: Vec<NewJournalRow<'a>>,
    /// Rows that were there before, of which less is kept.
    pub(crate) shortened: Vec<(i64, i64, Vec<u8>)>,
    /// Accounts that change, as they were.
    pub(crate) accounts: BTreeMap<AccountId, Option<Account>>,
    pub(crate) holds: BTreeMap<HoldId, HoldWrite>,
    pub(crate) prices: Vec<(ToolId, Digest, Micro)>,
    pub(crate) audit: BTreeMap<ShardId, PackedRecords>,
    pub(crate) files: Vec<(Timestamp, &'a ArtifactOp)>,
    /// Files that runs use from now on.
    pub(crate) uses: BTreeSet<(&'a WorldId, &'a WorldPath, &'a RunId)>,
    /// Runs that end and use nothing any more.
    pub(crate) ended: BTreeSet<&'a RunKey>,
    /// Runs that end here and take the values of their streams with them.
    pub(crate) unsealed: Vec<String>,
}

/// A stream that is made or goes on.
#[derive(Debug)]
pub(crate) struct StreamWrite<'a> {
    pub(crate) stream: &'a StreamId,
    pub(crate) key: &'a str,
    /// Where it stood and whether it was open; `None` if it is made.
    pub(crate) before: Option<StreamState>,
    pub(crate) seq: u64,
    pub(crate) open: bool,
    pub(crate) run: Option<&'a PreparedRun>,
    /// The run whose end takes its values.
    pub(crate) sealed: Option<&'a RunKey>,
}

/// A hold that changes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HoldWrite {
    /// Whose batch took it last.
    pub(crate) shard: ShardId,
    pub(crate) was_there: bool,
    /// Whether it was taken here, and not only grew.
    pub(crate) taken: bool,
}

/// A row of the journal.
#[derive(Debug)]
pub(crate) struct NewJournalRow<'a> {
    pub(crate) stream: i64,
    pub(crate) class: Class,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) at: Timestamp,
    pub(crate) no: u64,
    pub(crate) body: std::borrow::Cow<'a, [u8]>,
}

/// A group whose batches were decided.
#[derive(Debug)]
pub(crate) struct Decided<'a> {
    pub(crate) answers: CommitAnswers,
    pub(crate) writes: Writes<'a>,
    /// What is stored once it is committed.
    pub(crate) view: GroupView,
}

impl<'a> Decided<'a> {
    /// Decides each batch on top of those before it.
    pub(crate) fn of(
        mut view: GroupView,
        group: &[&'a Prepared],
        sealer: &Sealer,
    ) -> Result<Self, Unknown> {
        let mut writes = Writes::default();
        let mut answers = CommitAnswers::with_capacity(group.len());
        for batch in group {
            match Plan::of(&mut view, batch) {
                Ok(plan) => {
                    writes.add(&mut view, batch, plan, sealer);
                    answers.push(Ok(()));
                }
                Err(plan::Halt::Batch(error)) => answers.push(Err(error)),
                Err(plan::Halt::Group(unknown)) => return Err(unknown),
            }
        }
        Ok(Self { answers, writes, view })
    }
}

impl<'a> Writes<'a> {
    /// Adds a batch that holds.
    fn add(&mut self, view: &mut GroupView, batch: &'a Prepared, plan: Plan<'a>, sealer: &Sealer) {
        let claimant = plan.claimant();
        for claim in &batch.claims {
            self.claims.insert((&claim.scope, &claim.key), (&claim.value, claimant));
            let name = (claim.scope.clone(), claim.key.clone());
            view.known.claims.insert(name, claim.value.clone());
        }
        self.add_rows(view, batch, &plan.streams);
        for target in &plan.targets {
            let last = target.last;
            let StreamPlace { id, seq } = target.place;
            let known = view.known.streams.get(&last.stream).copied();
            let entry = self.streams.entry(id).or_insert_with(|| StreamWrite {
                stream: &last.stream,
                key: &last.key,
                before: if target.is_new { None } else { known },
                seq,
                open: last.open,
                run: None,
                sealed: last.sealed_with.as_ref(),
            });
            (entry.seq, entry.open, entry.run) = (seq, last.open, last.run.as_ref());
            let state = StreamState { place: target.place, open: last.open };
            view.known.streams.insert(last.stream.clone(), state);
            if let Some(run) = last.sealed_with.as_ref().filter(|run| run.stream() == last.stream)
                && !last.open
            {
                self.unsealed.push(run.to_string());
            }
            if let Some(run) = &last.run {
                view.known.summaries.insert(last.stream.clone(), run.summary.clone());
            }
        }
        self.use_files(view, batch, plan.ended());
        self.move_money(view, batch.shard, plan.moves);
        self.files.extend(batch.artifacts.iter().map(|op| (batch.at, op)));
        let made = plan.targets.iter().filter(|target| target.is_new).count();
        self.advance(view, batch, u64::try_from(made).unwrap_or(u64::MAX), sealer);
    }

    /// Files are used from now on, are there or not, and are not used any more by runs that end.
    fn use_files(
        &mut self,
        view: &mut GroupView,
        batch: &'a Prepared,
        ended: impl Iterator<Item = &'a RunKey>,
    ) {
        let files = &mut view.known.files;
        let mut of = |world: &WorldId, path: &WorldPath, change: &dyn Fn(&mut FileState)| {
            if let Some(state) = files.get_mut(&(world.to_string(), path.to_string())) {
                change(state);
            }
        };
        for require in &batch.requires {
            let Require::FileHere { world, path, run } = require else { continue };
            self.uses.insert((world, path, run));
            of(world, path, &|file| {
                if let Some(runs) = &mut file.used_by {
                    runs.insert(run.to_string());
                }
            });
        }
        for op in &batch.artifacts {
            match op {
                ArtifactOp::Record(new) if new.direction == Direction::Out => {
                    of(&new.world, &new.path, &|file| file.here = true);
                }
                ArtifactOp::Record(_) => {}
                ArtifactOp::Remove { world, path } => of(world, path, &|file| file.here = false),
            }
        }
        for run in ended {
            self.uses.retain(|(world, _, user)| **world != run.world || **user != run.run);
            self.ended.insert(run);
            for (_, file) in files.iter_mut().filter(|((world, _), _)| *world == *run.world) {
                if let Some(runs) = &mut file.used_by {
                    runs.remove(run.run.as_str());
                }
            }
        }
    }

    fn add_rows(&mut self, view: &mut GroupView, batch: &'a Prepared, streams: &[i64]) {
        for (append, stream) in batch.appends.iter().zip(streams).filter(|(it, _)| it.len > 0) {
            if append.replaces {
                self.shorten(view, &append.stream, *stream);
            }
            self.rows.push(NewJournalRow {
                stream: *stream,
                class: append.class,
                first: append.expected + 1,
                last: append.expected + append.len,
                at: batch.at,
                no: batch.no.0,
                body: append.body.as_slice().into(),
            });
        }
    }

    /// Makes the rows before the next one of its stream keep no more than they need. Before one of
    /// which little was kept already there is nothing left to do.
    fn shorten(&mut self, view: &mut GroupView, name: &StreamId, stream: i64) {
        let is_here =
            |row: &&mut NewJournalRow<'_>| row.stream == stream && row.class == Class::Entries;
        for row in self.rows.iter_mut().filter(is_here).rev() {
            match shortened(&row.body) {
                Shortened::Less(body) => row.body = body.into(),
                Shortened::Same => {}
                Shortened::Before => return,
            }
        }
        for (first, body) in view.known.rows.get_mut(name).into_iter().flatten() {
            match shortened(body) {
                Shortened::Less(less) => {
                    body.clone_from(&less);
                    self.shortened.push((stream, *first, less));
                }
                Shortened::Same => {}
                Shortened::Before => return,
            }
        }
    }

    fn move_money(&mut self, view: &mut GroupView, shard: ShardId, moves: plan::Moves) {
        for (id, account) in moves.accounts {
            let before = view.known.accounts.insert(id.clone(), account);
            self.accounts.entry(id).or_insert(before);
        }
        for (id, hold) in moves.holds {
            let hold_is_taken = hold.is_some();
            let before = match hold {
                Some(hold) => view.known.holds.insert(id.clone(), hold),
                None => view.known.holds.remove(&id),
            };
            let first = HoldWrite { shard, was_there: before.is_some(), taken: false };
            let taken = hold_is_taken && !moves.grown.contains(&id);
            let write = self.holds.entry(id).or_insert(first);
            // One that grows stays with the shard that took it.
            if taken {
                (write.shard, write.taken) = (shard, true);
            }
        }
        self.prices.extend(moves.prices);
    }

    /// Counts the batch in its shard and seals its records behind those of the shard.
    fn advance(&mut self, view: &mut GroupView, batch: &'a Prepared, made: u64, sealer: &Sealer) {
        let Some(shard) = view.known.shards.get_mut(&batch.shard) else { return };
        self.shards.entry(batch.shard).or_insert(*shard);
        shard.commit_no = shard.commit_no.max(batch.no.0);
        shard.streams_made += made;
        for json in &batch.audit {
            let n = shard.audit_n + 1;
            let mac = sealer.seal(&shard.audit_mac, batch.shard, n, batch.at, json.as_bytes());
            (shard.audit_n, shard.audit_mac) = (n, mac);
            self.audit.entry(batch.shard).or_default().push(n, batch.at, &mac, json);
        }
    }

    /// Whether anything is to be written at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }
}

/// What becomes of a row before one that replaces it.
enum Shortened {
    /// Less is kept.
    Less(Vec<u8>),
    /// It holds nothing that is replaced.
    Same,
    /// Less was kept of it already.
    Before,
}

fn shortened(body: &[u8]) -> Shortened {
    // What cannot be read stays as it is; whoever reads the stream finds it.
    let Ok(entries) = wharf_journal::decode(body) else { return Shortened::Same };
    if entries.iter().any(Entry::is_replaced) {
        return Shortened::Before;
    }
    if entries.iter().all(|entry| entry.replaced().is_none()) {
        return Shortened::Same;
    }
    let kept = entries.into_iter().map(|entry| entry.replaced().unwrap_or(entry));
    Shortened::Less(wharf_journal::encode(&kept.collect::<Vec<_>>()))
}
