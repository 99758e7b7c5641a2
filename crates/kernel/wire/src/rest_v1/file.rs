//! Files of a world, where they come from and where they went.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{DateTime, Direction, RunId, WorldId};

/// One write or read of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    /// The world.
    pub world: WorldId,
    /// The file's path in the world; local files of a run are below `/@run/`.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its BLAKE3 hash, if known.
    pub b3: Option<String>,
    /// Its media type.
    pub media_type: String,
    /// The run that wrote or read it; null if it was uploaded.
    pub run_id: Option<RunId>,
    /// The name of the run's input or output.
    pub key: Option<String>,
    /// Whether it was written or read.
    pub direction: Direction,
    /// When; absent in a run's own list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime>,
    /// When the file was replaced or removed, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<DateTime>,
}

/// `GET /v1/worlds/{w}/trace?path=`: which runs wrote and read a file, and what it was made from and into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trace {
    /// The world.
    pub world: WorldId,
    /// The file.
    pub path: String,
    /// Every write, oldest first.
    pub written: Vec<Artifact>,
    /// Every read by a run, oldest first.
    pub read: Vec<Artifact>,
    /// For each run that wrote it, the files that run read.
    pub made_from: Vec<TraceStep>,
    /// For each run that read it, the files that run wrote.
    pub went_into: Vec<TraceStep>,
    /// With a `depth` above 1, runs farther away, nearer ones first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<TraceRun>,
    /// Whether there is more than is shown.
    pub cut: bool,
}

/// A run that files connect with the file over other runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TraceRun {
    /// The run.
    pub run_id: RunId,
    /// How many runs away it is, from 2.
    pub depth: u32,
    /// Where it lies: `in` what the file was made from, `out` what it went into.
    pub side: Direction,
    /// The files it read; on the side `out` only those that lie on the way.
    pub read: Vec<Artifact>,
    /// The files it wrote; on the side `in` only those that lie on the way.
    pub wrote: Vec<Artifact>,
}

/// A run that read or wrote a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TraceStep {
    /// The run.
    pub run_id: RunId,
    /// The files it read or wrote.
    pub files: Vec<Artifact>,
}

/// `GET /v1/worlds/{w}/usage`: how much a world stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// The world.
    pub world: WorldId,
    /// The number of files, including local files of runs.
    pub files: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// How many of the files are local to a run.
    pub local_files: u64,
    /// The total size of those, in bytes.
    pub local_bytes: u64,
}

/// `POST /v1/worlds/{w}/uploads`: starts an upload in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginUpload {
    /// The path the file will have.
    pub path: String,
    /// Its media type; guessed from the file name when absent.
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
    /// The path the file will have.
    pub path: String,
    /// The least size of every part but the last, in bytes.
    pub part_bytes_min: u64,
    /// The uploaded parts, by number.
    pub parts: Vec<UploadPart>,
}

/// A part that has been uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadPart {
    /// Its number, from 1.
    pub part: u32,
    /// Its size in bytes.
    pub bytes: u64,
}

/// `POST /v1/worlds/{w}/uploads/{id}/complete?path=`: makes a file from the parts.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteUpload {
    /// The BLAKE3 hash of the whole file. A file with another hash is refused.
    pub b3: Option<String>,
    /// The size of the whole file in bytes. A file of another size is refused.
    pub bytes: Option<u64>,
    /// Its media type; guessed from the file name when absent.
    pub media_type: Option<String>,
}

/// `POST /v1/worlds/{w}/collect`: what was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Collected {
    /// The world.
    pub world: WorldId,
    /// Whether this is only a report and nothing was removed.
    pub dry: bool,
    /// Files unused for longer than the world keeps them.
    pub files: u64,
    /// Leftovers of runs and uploads.
    pub leftovers: u64,
    /// The total size of all of these, in bytes.
    pub bytes: u64,
    /// Files old enough to be removed, but used by a run in progress.
    pub in_use: u64,
    /// Objects in the store without a record that are too recent to be removed.
    #[serde(default)]
    pub unrecorded: u64,
}

/// What the core measured, and what the provider says the run cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// What the provider reported.
    pub cost_micro: u64,
    /// The time from the first attempt to the end, waits included.
    pub wall_ms: u64,
    /// Processor time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// The size of the files it was given, in bytes.
    pub bytes_in: u64,
    /// The size of the files it wrote, in bytes.
    pub bytes_out: u64,
    /// Whether more was reported than was set aside.
    pub over_hold: bool,
    /// Whether the provider of an attempt never reported its final cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// Whether a report exceeded the largest accepted amount and was cut to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub capped: bool,
}
