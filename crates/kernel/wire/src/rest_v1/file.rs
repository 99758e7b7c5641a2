//! Files of a world, where they come from and where they went.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wharf_vocab::{DateTime, Direction, RunId, WorldId};

/// One writing or reading of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    /// The world.
    pub world: WorldId,
    /// The file's path within the world; local files of a run lie below `/@run/`.
    pub path: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their BLAKE3 hash, if it is known.
    pub b3: Option<String>,
    /// What kind of data it is.
    pub media_type: String,
    /// The run that wrote or read it; null if somebody put it there.
    pub run_id: Option<RunId>,
    /// The name of the run's input or output.
    pub key: Option<String>,
    /// `out` if it was written, `in` if it was read.
    pub direction: Direction,
    /// When; absent in a run's own list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime>,
    /// When what was written was replaced or removed, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<DateTime>,
}

/// `GET /v1/worlds/{w}/trace?path=`: where a file comes from and where it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trace {
    /// The world.
    pub world: WorldId,
    /// The file.
    pub path: String,
    /// Every writing of it, oldest first.
    pub written: Vec<Artifact>,
    /// Every reading of it by a run, oldest first.
    pub read: Vec<Artifact>,
    /// For each run that wrote it, the files that run read.
    pub made_from: Vec<TraceStep>,
    /// For each run that read it, the files that run wrote.
    pub went_into: Vec<TraceStep>,
    /// Whether there is more than is shown.
    pub cut: bool,
}

/// A run on the way of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TraceStep {
    /// The run.
    pub run_id: RunId,
    /// The files it read or wrote.
    pub files: Vec<Artifact>,
}

/// `GET /v1/worlds/{w}/usage`: how much a world holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// The world.
    pub world: WorldId,
    /// Files that are there now, local ones of runs included.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
    /// How many of the files are local to a run.
    pub local_files: u64,
    /// How many bytes those have together.
    pub local_bytes: u64,
}

/// `POST /v1/worlds/{w}/uploads`: begins an upload in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginUpload {
    /// The file it becomes.
    pub path: String,
    /// What kind of data it is; the file's name says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// An upload in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Upload {
    /// Its id.
    pub upload_id: String,
    /// The world.
    pub world: WorldId,
    /// The file it becomes.
    pub path: String,
    /// All parts but the last have at least this many bytes.
    pub part_bytes_min: u64,
    /// The parts that have arrived, by number.
    pub parts: Vec<UploadPart>,
}

/// A part that has arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadPart {
    /// Its number, from 1.
    pub part: u32,
    /// How many bytes it has.
    pub bytes: u64,
}

/// `POST /v1/worlds/{w}/uploads/{id}/complete?path=`: makes a file of the parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteUpload {
    /// The BLAKE3 hash of the whole file; another one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b3: Option<String>,
    /// How many bytes the whole file has; another number is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What kind of data it is; the file's name says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// `POST /v1/worlds/{w}/collect`: what was cleared away, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Collected {
    /// The world.
    pub world: WorldId,
    /// Whether nothing was removed, because only that was asked for.
    pub dry: bool,
    /// Files that nobody had used for as long as the world keeps them.
    pub files: u64,
    /// Leftovers of runs and uploads.
    pub leftovers: u64,
    /// How many bytes all that had.
    pub bytes: u64,
    /// Files that are old enough to go, but used by a run under way.
    pub in_use: u64,
    /// Objects in the store that are on no record and too young to go.
    #[serde(default)]
    pub unrecorded: u64,
}

/// What the core measured of a run, beside what its provider says that it cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// What the provider reported.
    pub cost_micro: u64,
    /// How long its attempts and waits took, from the first attempt to the end.
    pub wall_ms: u64,
    /// Processor time, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Bytes of files that it was given.
    pub bytes_in: u64,
    /// Bytes of files that it wrote.
    pub bytes_out: u64,
    /// Whether more was reported than was held.
    pub over_hold: bool,
    /// Whether the provider of an attempt never gave a last account of what it cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// Whether a report said more than is taken from one, and was cut down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub capped: bool,
}
