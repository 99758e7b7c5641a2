//! The index of files: which there are now, and who wrote and read each.

use wharf_domain::scope::WorldPath;
use wharf_domain::{Artifact, Entry, Move, RunEntry};
use wharf_vocab::{Direction, RunId, RunKey, StreamId, Timestamp, WorldId};

use crate::History;

/// A record of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecord {
    /// Its place in the order of all records.
    pub position: u64,
    /// When it was committed.
    pub at: Timestamp,
    /// What was written or read.
    pub artifact: Artifact,
    /// For something that was written: when it was replaced or removed, if it was.
    pub gone_at: Option<Timestamp>,
}

impl FileRecord {
    /// Whether it stands for a file that is there now.
    pub fn is_here(&self) -> bool {
        self.artifact.direction == Direction::Out && self.gone_at.is_none()
    }
}

/// Which of a world's files to list: those that are there now, in the order of their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileQuery {
    /// The world.
    pub world: WorldId,
    /// Only paths that begin with this text.
    pub prefix: Option<String>,
    /// Whether local files of runs are listed, too, when the prefix does not ask for them.
    pub locals: bool,
    /// Only paths behind this one.
    pub after: Option<WorldPath>,
    /// Only files that were neither written nor, since then, read at this moment or later.
    pub unused_since: Option<Timestamp>,
    /// How many at most.
    pub limit: usize,
}

impl FileQuery {
    /// The first files of a world, without local files of runs.
    pub fn new(world: WorldId, limit: usize) -> Self {
        Self { world, prefix: None, locals: false, after: None, unused_since: None, limit }
    }
}

/// Which records to list, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceQuery {
    /// The world.
    pub world: WorldId,
    /// Only of this file.
    pub path: Option<WorldPath>,
    /// Only of this run.
    pub run: Option<RunId>,
    /// Only records behind this position.
    pub after: u64,
    /// How many at most.
    pub limit: usize,
}

/// How much a world holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorldSize {
    /// Files that are there now, local ones of runs included.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
    /// How many of the files are local to a run.
    pub local_files: u64,
    /// How many bytes those have together.
    pub local_bytes: u64,
}

/// What is counted below some folders of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderQuery {
    /// The world.
    pub world: WorldId,
    /// What the paths of each folder's files begin with.
    pub folders: Vec<String>,
    /// How many files of each are looked at, at most.
    pub files_max: usize,
}

/// How much a folder holds, as far as was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FolderSize {
    /// Files that are there now, folders within included.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
}

/// Files that an open run has staged and is about to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The run.
    pub run: RunKey,
    /// What is to be put where.
    pub moves: Vec<Move>,
    /// What the files are, by their places.
    pub files: Vec<Artifact>,
}

impl Publication {
    /// What an open stream is about to publish, if it is a run that is.
    #[must_use]
    pub fn of(stream: &StreamId, stored: History) -> Option<Self> {
        let StreamId::Run(run) = stream else { return None };
        stored.entries.into_iter().rev().find_map(|(_, entry)| match entry {
            Entry::Run(RunEntry::Publishing(begun)) => {
                Some(Self { run: run.clone(), moves: begun.moves, files: begun.artifacts })
            }
            _ => None,
        })
    }
}
