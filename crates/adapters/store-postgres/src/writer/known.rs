//! What the lanes remember of what is stored, and what a group sees of it.
//!
//! All of it can be read again. Nothing is believed: what a group relies on is asserted in its
//! transaction, so an old memory costs a second look and nothing else.

use std::collections::{BTreeSet, HashMap};

use wharf_domain::scope::WorldPath;
use wharf_domain::{Account, OpenHold, RunSummary};
use wharf_ports::plan::{Halt, Prepared, PreparedAppend, Stored, StreamPlace};
use wharf_ports::{Claim, StoreError};
use wharf_vocab::{AccountId, HoldId, ShardId, StreamId, WorldId};

use crate::error::corrupt;
use crate::number::stream_id;

/// Streams that are remembered in each of two generations.
const STREAMS_MAX: usize = 16_384;

/// A shard's lease and how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardState {
    /// 0 if nobody ever held it.
    pub(crate) epoch: u64,
    pub(crate) commit_no: u64,
    pub(crate) streams_made: u64,
    pub(crate) audit_n: u64,
    pub(crate) audit_mac: [u8; 32],
}

/// Where a stream stands, and whether recovery loads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamState {
    pub(crate) place: StreamPlace,
    pub(crate) open: bool,
}

/// Whether a file is there, and which runs use it, where that was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) here: bool,
    pub(crate) used_by: Option<BTreeSet<String>>,
}

/// What all lanes of a store remember.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    shards: HashMap<ShardId, ShardState>,
    recent: HashMap<StreamId, StreamState>,
    older: HashMap<StreamId, StreamState>,
}

impl Memory {
    /// What is remembered of what a group is about.
    pub(crate) fn recall(&self, group: &[&Prepared]) -> Known {
        let mut known = Known::default();
        for batch in group {
            if let Some(shard) = self.shards.get(&batch.shard) {
                known.shards.insert(batch.shard, *shard);
            }
            for append in &batch.appends {
                let found = self.recent.get(&append.stream).or(self.older.get(&append.stream));
                if let Some(found) = found {
                    known.streams.insert(append.stream.clone(), *found);
                }
            }
        }
        known
    }

    /// Learns what a group has left. Only streams that will be written to again are kept.
    pub(crate) fn learn(&mut self, known: &Known) {
        self.shards.extend(known.shards.iter().map(|(id, shard)| (*id, *shard)));
        for (stream, state) in &known.streams {
            if !state.open {
                self.recent.remove(stream);
                self.older.remove(stream);
                continue;
            }
            if self.recent.len() >= STREAMS_MAX {
                self.older = std::mem::take(&mut self.recent);
            }
            self.recent.insert(stream.clone(), *state);
        }
    }

    /// Forgets what a group was about, since some of it is not so.
    pub(crate) fn forget(&mut self, group: &[&Prepared]) {
        for batch in group {
            self.shards.remove(&batch.shard);
            for append in &batch.appends {
                self.recent.remove(&append.stream);
                self.older.remove(&append.stream);
            }
        }
    }
}

/// What is known of what is stored, as far as a group is about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) shards: HashMap<ShardId, ShardState>,
    pub(crate) streams: HashMap<StreamId, StreamState>,
    /// What lists show of runs that somebody wants to make.
    pub(crate) summaries: HashMap<StreamId, String>,
    pub(crate) claims: HashMap<(String, String), String>,
    pub(crate) accounts: HashMap<AccountId, Account>,
    pub(crate) holds: HashMap<HoldId, OpenHold>,
    /// Rows of entries of streams of which less is kept from now on, the newest first.
    pub(crate) rows: HashMap<StreamId, Vec<(i64, Vec<u8>)>>,
    /// Files that batches require something of, by world and path.
    pub(crate) files: HashMap<(String, String), FileState>,
}

/// What a batch of a group sees: what is stored, and what the batches before it have changed.
#[derive(Debug)]
pub(crate) struct GroupView {
    pub(crate) known: Known,
    /// Whether what is not known is not there. Otherwise it may be.
    pub(crate) complete: bool,
}

/// What is needed to decide was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unknown;

impl GroupView {
    /// What is known of a file. It is never remembered from one group to the next.
    fn file(&self, world: &WorldId, path: &WorldPath) -> Result<&FileState, Halt<Unknown>> {
        let file = (world.to_string(), path.to_string());
        self.known.files.get(&file).ok_or(Halt::Group(Unknown))
    }

    /// What was found, or that there is none if that is certain.
    fn certain<T>(&self, found: Option<T>) -> Result<Option<T>, Halt<Unknown>> {
        if found.is_some() || self.complete { Ok(found) } else { Err(Halt::Group(Unknown)) }
    }
}

impl Stored for GroupView {
    type Trouble = Unknown;

    fn epoch(&mut self, shard: ShardId) -> Result<u64, Halt<Unknown>> {
        let found = self.known.shards.get(&shard).map(|shard| shard.epoch);
        Ok(self.certain(found)?.unwrap_or(0))
    }

    fn place(&mut self, append: &PreparedAppend) -> Result<Option<StreamPlace>, Halt<Unknown>> {
        let found = self.known.streams.get(&append.stream).map(|stream| stream.place);
        // That a stream which is made is not there yet is asserted when it is written.
        if append.expected == 0 { Ok(found) } else { self.certain(found) }
    }

    fn new_stream(&mut self, batch: &Prepared, before: usize) -> Result<i64, Halt<Unknown>> {
        let shard = self.known.shards.get(&batch.shard).ok_or(Halt::Group(Unknown))?;
        let n = shard.streams_made + 1 + u64::try_from(before).unwrap_or(u64::MAX);
        Ok(stream_id(batch.at, batch.shard, n))
    }

    fn summary(
        &mut self,
        append: &PreparedAppend,
    ) -> Result<Option<Box<RunSummary>>, Halt<Unknown>> {
        let json = self.known.summaries.get(&append.stream).cloned();
        let Some(json) = self.certain(json)? else { return Ok(None) };
        let damaged = |error| -> StoreError {
            corrupt(format!("the summary of {} is damaged: {error}", append.key))
        };
        Ok(Some(Box::new(serde_json::from_str(&json).map_err(damaged)?)))
    }

    fn claimed(&mut self, claim: &Claim) -> Result<Option<String>, Halt<Unknown>> {
        // That a name is free is asserted when it is written.
        Ok(self.known.claims.get(&(claim.scope.clone(), claim.key.clone())).cloned())
    }

    fn is_here(&mut self, world: &WorldId, path: &WorldPath) -> Result<bool, Halt<Unknown>> {
        Ok(self.file(world, path)?.here)
    }

    fn is_in_use(&mut self, world: &WorldId, path: &WorldPath) -> Result<bool, Halt<Unknown>> {
        let runs = self.file(world, path)?.used_by.as_ref().ok_or(Halt::Group(Unknown))?;
        Ok(!runs.is_empty())
    }

    fn account(&mut self, id: &AccountId) -> Result<Option<Account>, Halt<Unknown>> {
        self.certain(self.known.accounts.get(id).cloned())
    }

    fn hold(&mut self, id: &HoldId) -> Result<Option<OpenHold>, Halt<Unknown>> {
        self.certain(self.known.holds.get(id).cloned())
    }
}
