//! Why a stored row cannot be read.

use crate::Kind;

/// Why a stored row cannot be read. None of them is ever answered by skipping something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The row is not what this crate writes.
    #[error("the row is not a list of kind, version and data")]
    Malformed(#[source] serde_json::Error),
    /// No version of Wharf up to this one writes such a kind.
    #[error("the kind {kind:?} is unknown to this version")]
    UnknownKind {
        /// The kind as it is stored.
        kind: String,
    },
    /// A newer Wharf wrote it.
    #[error("{kind} has version {version} and this version of Wharf knows {}", kind.newest())]
    FutureVersion {
        /// The kind.
        kind: Kind,
        /// The version as it is stored.
        version: u32,
    },
    /// Nobody can bring this version up to the newest.
    #[error("{kind} has version {version}, which was never written")]
    NeverWritten {
        /// The kind.
        kind: Kind,
        /// The version as it is stored.
        version: u32,
    },
    /// The data does not have the shape of its kind.
    #[error("the data of {kind} does not have its shape")]
    Shape {
        /// The kind.
        kind: Kind,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// An entry stands where progress should, or the other way round.
    #[error("{kind} does not belong in a row of {row}")]
    Misplaced {
        /// The kind.
        kind: Kind,
        /// What the row should hold.
        row: &'static str,
    },
}

impl Error {
    /// Whether a newer version of Wharf would understand it.
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::FutureVersion { .. })
    }
}
