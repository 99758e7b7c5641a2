//! What becomes of a batch, before any of it is written: the rules that all stores share.
//!
//! A store that keeps rows looks at what is stored through [`Stored`], has [`Plan::of`] decide, and
//! writes what the plan says. Nothing is written before all is checked, so a refused batch needs
//! nothing undone and its neighbours in a group stand. How rows are read and written is the
//! store's own business.

mod money;
mod prepare;

use wharf_domain::scope::WorldPath;
use wharf_domain::{Account, OpenHold, RunSummary};
use wharf_vocab::{AccountId, HoldId, RunKey, ShardId, StreamId, WorldId};

use crate::{Claim, CommitError, Refusal, Require, StoreError};

pub use money::Moves;
pub use prepare::{Class, Prepared, PreparedAppend, PreparedRun};

/// What is stored, as far as a batch depends on it, with all that was decided before in the same
/// transaction.
pub trait Stored {
    /// What ends the whole transaction.
    type Trouble;

    /// The epoch of a shard's lease; 0 if nobody ever held it.
    fn epoch(&mut self, shard: ShardId) -> Result<u64, Halt<Self::Trouble>>;

    /// Where a stream stands, if there is one.
    fn place(
        &mut self,
        append: &PreparedAppend,
    ) -> Result<Option<StreamPlace>, Halt<Self::Trouble>>;

    /// The number of a stream that this batch makes, after so many others that it makes.
    fn new_stream(&mut self, batch: &Prepared, before: usize) -> Result<i64, Halt<Self::Trouble>>;

    /// Whether the stream with this number can hold an entry at that place.
    fn fits(&self, _stream: i64, _class: Class, _seq: u64) -> Result<(), StoreError> {
        Ok(())
    }

    /// What lists show of a run that is there.
    fn summary(
        &mut self,
        append: &PreparedAppend,
    ) -> Result<Option<Box<RunSummary>>, Halt<Self::Trouble>>;

    /// What a name stands for that is taken.
    fn claimed(&mut self, claim: &Claim) -> Result<Option<String>, Halt<Self::Trouble>>;

    /// Whether a file is there now.
    fn is_here(&mut self, world: &WorldId, path: &WorldPath) -> Result<bool, Halt<Self::Trouble>>;

    /// Whether a run uses a file.
    fn is_in_use(&mut self, world: &WorldId, path: &WorldPath)
    -> Result<bool, Halt<Self::Trouble>>;

    /// One account.
    fn account(&mut self, id: &AccountId) -> Result<Option<Account>, Halt<Self::Trouble>>;

    /// One open hold.
    fn hold(&mut self, id: &HoldId) -> Result<Option<OpenHold>, Halt<Self::Trouble>>;
}

/// Why a batch goes no further.
#[derive(Debug)]
pub enum Halt<T> {
    /// It concerns this batch only; nothing of it has been written.
    Batch(CommitError),
    /// The database does not do what it should, so no batch of the group can be trusted to it.
    Group(T),
}

impl<T> From<Refusal> for Halt<T> {
    fn from(refusal: Refusal) -> Self {
        Self::Batch(CommitError::Refused(refusal))
    }
}

/// What is stored for this batch cannot be understood or has no room; others do not suffer.
impl<T> From<StoreError> for Halt<T> {
    fn from(error: StoreError) -> Self {
        Self::Batch(CommitError::Failed(error))
    }
}

/// A stream's number and the end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamPlace {
    /// Its number in this store.
    pub id: i64,
    /// The number of its last entry or piece of progress.
    pub seq: u64,
}

/// A stream that a batch writes to.
#[derive(Debug, Clone, Copy)]
pub struct StreamTarget<'a> {
    /// The last append to it, whose head is the stream's afterwards.
    pub last: &'a PreparedAppend,
    /// Where it stands afterwards.
    pub place: StreamPlace,
    /// Whether the batch makes it.
    pub is_new: bool,
}

/// What a batch will write, once every part of it has been checked.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The streams it writes to.
    pub targets: Vec<StreamTarget<'a>>,
    /// The stream of each append, in order.
    pub streams: Vec<i64>,
    /// Money that moves.
    pub moves: Moves,
}

impl<'a> Plan<'a> {
    /// Checks a batch against what is stored.
    pub fn of<S: Stored>(stored: &mut S, batch: &'a Prepared) -> Result<Self, Halt<S::Trouble>> {
        let epoch = stored.epoch(batch.shard)?;
        if epoch == 0 || epoch != batch.epoch.0 {
            return Err(Refusal::Fenced.into());
        }
        let (targets, streams) = check_appends(stored, batch)?;
        if let Some(taken) = taken_claim(stored, &batch.claims)? {
            return Err(Refusal::Claimed(taken).into());
        }
        check_files(stored, &batch.requires)?;
        let moves = Moves::of(stored, &batch.ledger)?;
        Ok(Self { targets, streams, moves })
    }

    /// The stream that names are claimed for: the first that was made, or else the first.
    #[must_use]
    pub fn claimant(&self) -> Option<i64> {
        let made = self.targets.iter().find(|target| target.is_new).or(self.targets.first());
        made.map(|target| target.place.id)
    }

    /// The runs that this batch ends: what they use of files they use no more.
    pub fn ended(&self) -> impl Iterator<Item = &'a RunKey> {
        self.targets.iter().filter(|target| !target.last.open).filter_map(|target| {
            match &target.last.stream {
                StreamId::Run(run) => Some(run),
                _ => None,
            }
        })
    }
}

/// Whether all is so of files that must be.
fn check_files<S: Stored>(stored: &mut S, requires: &[Require]) -> Result<(), Halt<S::Trouble>> {
    for require in requires {
        let (world, path) = require.file();
        let refusal = match require {
            Require::FileHere { .. } if !stored.is_here(world, path)? => {
                Refusal::FileGone { world: world.clone(), path: path.clone() }
            }
            Require::FileFree { .. } if stored.is_in_use(world, path)? => {
                Refusal::FileInUse { world: world.clone(), path: path.clone() }
            }
            _ => continue,
        };
        return Err(refusal.into());
    }
    Ok(())
}

type Targets<'a> = (Vec<StreamTarget<'a>>, Vec<i64>);

fn check_appends<'a, S: Stored>(
    stored: &mut S,
    batch: &'a Prepared,
) -> Result<Targets<'a>, Halt<S::Trouble>> {
    let mut targets: Vec<StreamTarget<'a>> = Vec::with_capacity(batch.appends.len());
    let mut streams = Vec::with_capacity(batch.appends.len());
    let mut made = 0;
    for append in &batch.appends {
        let stream = || append.stream.clone();
        let known = targets.iter_mut().find(|target| target.last.stream == append.stream);
        let found = match &known {
            Some(target) => Some(target.place),
            None => stored.place(append)?,
        };
        let (mut place, is_new) = match found {
            Some(_) if append.expected == 0 => {
                let made_here = known.is_some_and(|target| target.is_new);
                let run = if made_here { None } else { stored.summary(append)? };
                return Err(Refusal::Exists { stream: stream(), run }.into());
            }
            None if append.expected == 0 && append.len > 0 => {
                made += 1;
                (StreamPlace { id: stored.new_stream(batch, made - 1)?, seq: 0 }, true)
            }
            Some(place) if place.seq == append.expected => (place, false),
            _ => return Err(Refusal::Stale { stream: stream() }.into()),
        };
        if append.len > 0 {
            stored.fits(place.id, append.class, append.expected + 1)?;
        }
        streams.push(place.id);
        place.seq += append.len;
        match known {
            Some(target) => (target.last, target.place) = (append, place),
            None => targets.push(StreamTarget { last: append, place, is_new }),
        }
    }
    Ok((targets, streams))
}

/// The first claim that cannot be had, with what it stands for.
fn taken_claim<S: Stored>(
    stored: &mut S,
    claims: &[Claim],
) -> Result<Option<Claim>, Halt<S::Trouble>> {
    for (at, claim) in claims.iter().enumerate() {
        if let Some(value) = stored.claimed(claim)? {
            return Ok(Some(Claim { value, ..claim.clone() }));
        }
        let same = |other: &Claim| other.scope == claim.scope && other.key == claim.key;
        if claims[..at].iter().any(same) {
            return Ok(Some(claim.clone()));
        }
    }
    Ok(None)
}
