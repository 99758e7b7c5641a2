//! Files of a world: who wrote them, who read them.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{B3, Digest, Direction, RunId, Timestamp, WorldId};

use crate::scope::WorldPath;

/// One writing or reading of a file.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The world.
    pub world: WorldId,
    /// The file.
    pub path: WorldPath,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their hash, if it is known.
    pub b3: Option<B3>,
    /// What kind of data it is.
    pub media_type: String,
    /// The run that wrote or read it; none if somebody put it there.
    pub run: Option<RunId>,
    /// The name of the run's input or output.
    pub key: Option<String>,
    /// Whether it was written or read.
    pub direction: Direction,
}

/// What a commit does to the index of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArtifactOp {
    /// A file was written or read.
    Record(Artifact),
    /// A file is there no more.
    Remove {
        /// The world.
        world: WorldId,
        /// The file.
        path: WorldPath,
    },
}

/// What an attempt did with data besides what it returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Files it wrote, where they are or will be.
    pub artifacts: Vec<Artifact>,
    /// Files to put in their places before the run is over, all of them.
    pub moves: Vec<Move>,
    /// What the core measured.
    pub metered: Metered,
    /// What tells a repeat of the result from another one, where the provider keeps to the first.
    pub given: Option<Digest>,
}

/// A file that is to be published.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Move {
    /// Where it is.
    pub from: WorldPath,
    /// Where it belongs.
    pub to: WorldPath,
}

/// What the core measured of an attempt, beside what its provider says that it cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metered {
    /// Processor time, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Bytes of files that it was given.
    #[serde(default)]
    pub bytes_in: u64,
    /// Bytes of files that it wrote.
    #[serde(default)]
    pub bytes_out: u64,
    /// Files that the core itself handed over, in the order in which that began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfer>,
}

/// A file that the core handed to a provider, or took from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// The name of the run's input or output.
    pub key: String,
    /// `in` what the provider was given, `out` what it wrote.
    pub direction: Direction,
    /// How many bytes were handed over.
    pub bytes: u64,
    /// When that began.
    pub at: Timestamp,
    /// How long it took.
    pub took_ms: u64,
}

/// Transfers that are kept of a run: those of its first attempts.
pub const TRANSFERS_MAX: usize = 256;

impl Metered {
    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cpu_ms = match (self.cpu_ms, other.cpu_ms) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        let mut transfers = self.transfers;
        transfers.extend(other.transfers);
        transfers.truncate(TRANSFERS_MAX);
        Self {
            cpu_ms,
            bytes_in: self.bytes_in.saturating_add(other.bytes_in),
            bytes_out: self.bytes_out.saturating_add(other.bytes_out),
            transfers,
        }
    }
}
