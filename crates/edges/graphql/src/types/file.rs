//! Files of a world, where they come from and where they went.

use async_graphql::SimpleObject;
use wharf_engine::FileRecord;
use wharf_vocab::{RunId, WorldId};

use super::Direction;
use crate::scalars::{DateTime, Int64};

/// One writing or reading of a file.
#[derive(Debug, SimpleObject)]
pub(crate) struct Artifact {
    /// The world.
    world: String,
    /// The file's path within the world; local files of a run lie below `/@run/`.
    path: String,
    /// How records and requests name it.
    uri: String,
    /// How many bytes it has.
    bytes: Int64,
    /// Their BLAKE3 hash, if it is known.
    b3: Option<String>,
    /// What kind of data it is.
    media_type: String,
    /// The run that wrote or read it; null if somebody put it there.
    run_id: Option<String>,
    /// The name of the run's input or output.
    key: Option<String>,
    /// Whether it was written or read.
    direction: Direction,
    /// When; null in a run's own list.
    at: Option<DateTime>,
    /// When what was written was replaced or removed, if it was.
    gone_at: Option<DateTime>,
}

impl From<&wharf_domain::Artifact> for Artifact {
    fn from(artifact: &wharf_domain::Artifact) -> Self {
        Self {
            world: artifact.world.to_string(),
            path: artifact.path.to_string(),
            uri: artifact.path.uri(&artifact.world),
            bytes: Int64(artifact.bytes),
            b3: artifact.b3.as_ref().map(ToString::to_string),
            media_type: artifact.media_type.clone(),
            run_id: artifact.run.as_ref().map(ToString::to_string),
            key: artifact.key.clone(),
            direction: artifact.direction.into(),
            at: None,
            gone_at: None,
        }
    }
}

impl From<&FileRecord> for Artifact {
    fn from(record: &FileRecord) -> Self {
        Self {
            at: Some(DateTime(record.at)),
            gone_at: record.gone_at.map(DateTime),
            ..Self::from(&record.artifact)
        }
    }
}

/// Where a file comes from and where it went.
#[derive(Debug, SimpleObject)]
pub(crate) struct Trace {
    /// The world.
    world: String,
    /// The file.
    path: String,
    /// Every writing of it, oldest first.
    written: Vec<Artifact>,
    /// Every reading of it by a run, oldest first.
    read: Vec<Artifact>,
    /// For each run that wrote it, the files that run read.
    made_from: Vec<TraceStep>,
    /// For each run that read it, the files that run wrote.
    went_into: Vec<TraceStep>,
    /// Whether there is more than is shown.
    cut: bool,
}

/// A run on the way of a file.
#[derive(Debug, SimpleObject)]
pub(crate) struct TraceStep {
    /// The run.
    run_id: String,
    /// The files it read or wrote.
    files: Vec<Artifact>,
}

impl Trace {
    /// What there is to tell of this file.
    pub(crate) fn new(world: &WorldId, path: &str, trace: &wharf_engine::Trace) -> Self {
        let files = |records: &[FileRecord]| records.iter().map(Artifact::from).collect();
        let steps = |steps: &[(RunId, Vec<FileRecord>)]| {
            let step = |(run, records): &(RunId, Vec<FileRecord>)| TraceStep {
                run_id: run.to_string(),
                files: files(records),
            };
            steps.iter().map(step).collect()
        };
        Self {
            world: world.to_string(),
            path: path.to_owned(),
            written: files(&trace.written),
            read: files(&trace.read),
            made_from: steps(&trace.made_from),
            went_into: steps(&trace.went_into),
            cut: trace.cut,
        }
    }
}

/// How much a world holds.
#[derive(Debug, SimpleObject)]
pub(crate) struct Usage {
    /// Files that are there now, local ones of runs included.
    files: Int64,
    /// How many bytes they have together.
    bytes: Int64,
    /// How many of the files are local to a run.
    local_files: Int64,
    /// How many bytes those have together.
    local_bytes: Int64,
}

impl From<wharf_engine::Usage> for Usage {
    fn from(usage: wharf_engine::Usage) -> Self {
        Self {
            files: Int64(usage.files),
            bytes: Int64(usage.bytes),
            local_files: Int64(usage.local_files),
            local_bytes: Int64(usage.local_bytes),
        }
    }
}
