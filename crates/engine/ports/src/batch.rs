//! One commit: everything that must become true together.

use wharf_domain::scope::WorldPath;
use wharf_domain::{ArtifactOp, AuditRecord, Entry, Funds, LedgerOp, Progress, RunSummary};
use wharf_vocab::{CommitNo, Epoch, RunId, RunKey, Seq, ShardId, StreamId, Timestamp, WorldId};

use crate::StoreError;

/// Everything that must become true together, or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The shard whose streams are written.
    pub shard: ShardId,
    /// The epoch of the lease it is written under; an old one is refused.
    pub epoch: Epoch,
    /// Its number, rising within the shard.
    pub no: CommitNo,
    /// When it was decided.
    pub at: Timestamp,
    /// What is appended, in order.
    pub appends: Vec<Append>,
    /// Names that must not be taken yet.
    pub claims: Vec<Claim>,
    /// What must be so of files.
    pub requires: Vec<Require>,
    /// Money to move; a hold that finds too little refuses the batch.
    pub ledger: Vec<LedgerOp>,
    /// Records for the audit.
    pub audit: Vec<AuditRecord>,
    /// What becomes of the index of files.
    pub artifacts: Vec<ArtifactOp>,
}

impl Batch {
    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> u64 {
        self.appends.iter().map(|append| append.body.weight()).sum()
    }
}

/// An append to one stream. Where one of its entries replaces earlier ones
/// ([`Entry::replaces_earlier`]), the store keeps no more of those than [`Entry::replaced`].
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// The stream.
    pub stream: StreamId,
    /// The number of its last entry; 0 makes the stream.
    pub expected: Seq,
    /// What is appended; it takes the numbers after `expected`.
    pub body: Body,
    /// What lists and recovery need to know of the stream afterwards.
    pub head: StreamHead,
}

/// What is appended to a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Entries, which recovery reads.
    Entries(Vec<Entry>),
    /// Progress, which recovery does not read.
    Progress(Vec<Progress>),
}

impl Body {
    /// How many numbers it takes.
    pub fn len(&self) -> usize {
        match self {
            Self::Entries(entries) => entries.len(),
            Self::Progress(pieces) => pieces.len(),
        }
    }

    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> u64 {
        match self {
            Self::Entries(entries) => entries.iter().map(Entry::weight).sum(),
            Self::Progress(pieces) => pieces.iter().map(Progress::weight).sum(),
        }
    }

    /// Whether one of its entries replaces earlier ones of its stream.
    pub fn replaces_earlier(&self) -> bool {
        matches!(self, Self::Entries(entries) if entries.iter().any(Entry::replaces_earlier))
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What lists and recovery need to know of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamHead {
    /// Whether recovery must load it.
    pub open: bool,
    /// For a run: what lists show.
    pub run: Option<RunSummary>,
    /// The run whose end takes the values out of this stream, if they are not kept: a commit that
    /// leaves the stream of that run closed makes the store keep no more than
    /// [`Entry::withheld`] of all entries of all streams that were made for it, and
    /// [`Progress::Withheld`] of each piece of progress.
    pub sealed_with: Option<RunKey>,
}

impl StreamHead {
    /// Of a stream whose values stay.
    pub fn new(open: bool, run: Option<RunSummary>) -> Self {
        Self { open, run, sealed_with: None }
    }
}

/// A name that may be taken once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// What the name is unique within.
    pub scope: String,
    /// The name.
    pub key: String,
    /// What it stands for, told to whoever comes second.
    pub value: String,
}

/// What must be so of a file before a batch changes anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Require {
    /// The file is there. From now on the run uses it, until a batch leaves the run's stream
    /// closed.
    FileHere {
        /// The world of the file.
        world: WorldId,
        /// The file.
        path: WorldPath,
        /// The run, of the same world.
        run: RunId,
    },
    /// No run uses the file, whether it is there or not.
    FileFree {
        /// The world of the file.
        world: WorldId,
        /// The file.
        path: WorldPath,
    },
}

impl Require {
    /// The file that it is about.
    pub fn file(&self) -> (&WorldId, &WorldPath) {
        match self {
            Self::FileHere { world, path, .. } | Self::FileFree { world, path } => (world, path),
        }
    }
}

/// Why a batch was not committed although the store works.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The shard's lease has passed to somebody else.
    Fenced,
    /// A stream that was to be made exists; for a run, its request digest is told.
    Exists {
        /// The stream.
        stream: StreamId,
        /// What lists show of it, if it is a run.
        run: Option<Box<RunSummary>>,
    },
    /// A stream's last number is another one.
    Stale {
        /// The stream.
        stream: StreamId,
    },
    /// A name is taken.
    Claimed(Claim),
    /// A file that must be there is not.
    FileGone {
        /// The world of the file.
        world: WorldId,
        /// The file.
        path: WorldPath,
    },
    /// A run uses a file that nobody may use.
    FileInUse {
        /// The world of the file.
        world: WorldId,
        /// The file.
        path: WorldPath,
    },
    /// An account has too little.
    Funds(Funds),
}

/// Why a batch was not committed.
#[derive(Debug, Clone, PartialEq)]
pub enum CommitError {
    /// The batch cannot be committed, now or later.
    Refused(Refusal),
    /// The store could not do it; the same batch may be offered again.
    Failed(StoreError),
}
