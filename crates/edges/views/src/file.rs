//! Files of worlds.

use wharf_domain::scope::WorldPath;
use wharf_domain::{Artifact, Caller};
use wharf_engine::{
    Collected, FarRun, FileQuery, FileRecord, FileTrace, FolderQuery, FolderSize, Handle,
    TRACE_DEPTH_MAX, UploadView, WorldSize,
};
use wharf_vocab::limits::UPLOAD_PART_BYTES_MIN;
use wharf_vocab::{Code, DateTime, Fault, RunId, WorldId};
use wharf_wire::rest_v1 as wire;

/// A record of the index of files.
#[must_use]
pub fn file(record: &FileRecord) -> wire::Artifact {
    wire::Artifact {
        at: Some(DateTime(record.at)),
        gone_at: record.gone_at.map(DateTime),
        ..artifact(&record.artifact)
    }
}

/// A file as the run that wrote it has it.
pub(crate) fn artifact(artifact: &Artifact) -> wire::Artifact {
    wire::Artifact {
        world: artifact.world.clone(),
        path: artifact.path.to_string(),
        bytes: artifact.bytes,
        b3: artifact.b3.as_ref().map(ToString::to_string),
        media_type: artifact.media_type.clone(),
        run_id: artifact.run.clone(),
        key: artifact.key.clone(),
        direction: artifact.direction,
        at: None,
        gone_at: None,
    }
}

/// Where a file comes from and where it went.
#[must_use]
pub fn trace(world: &WorldId, path: &WorldPath, trace: &FileTrace) -> wire::Trace {
    let files = |records: &[FileRecord]| records.iter().map(file).collect();
    let steps = |steps: &[(RunId, Vec<FileRecord>)]| {
        let step = |(run, records): &(RunId, Vec<FileRecord>)| wire::TraceStep {
            run_id: run.clone(),
            files: files(records),
        };
        steps.iter().map(step).collect()
    };
    wire::Trace {
        world: world.clone(),
        path: path.to_string(),
        written: files(&trace.written),
        read: files(&trace.read),
        made_from: steps(&trace.made_from),
        went_into: steps(&trace.went_into),
        further: trace.further.iter().map(further).collect(),
        cut: trace.cut,
    }
}

fn further(of: &FarRun) -> wire::TraceRun {
    wire::TraceRun {
        run_id: of.run.clone(),
        depth: of.depth,
        side: of.side,
        read: of.read.iter().map(file).collect(),
        wrote: of.wrote.iter().map(file).collect(),
    }
}

/// How far a trace goes: from 1, as far as it may.
pub fn trace_depth(asked: Option<u64>) -> Result<u32, Fault> {
    let depth = u32::try_from(asked.unwrap_or(1)).ok();
    depth.filter(|depth| (1..=TRACE_DEPTH_MAX).contains(depth)).ok_or_else(|| {
        let message = format!("`depth` is a number from 1 to {TRACE_DEPTH_MAX}.");
        Fault::new(Code::RequestInvalid, message).with("field", "depth")
    })
}

/// Files that are read at once to find what lies directly in a folder.
const FILES_AT_ONCE: usize = 50;

/// Files that are counted at most for the sizes of the folders of one page, shared among them.
const FILES_COUNTED_MAX: usize = 100_000;

/// What lies directly below a prefix.
#[derive(Debug, Clone, PartialEq)]
pub struct FolderPage {
    /// The files.
    pub files: Vec<FileRecord>,
    /// The folders, each with how much it holds.
    pub folders: Vec<wire::Folder>,
    /// Where the next page begins, if there is one.
    pub next: Option<WorldPath>,
}

/// What lies directly below a prefix: files, folders, and where the next page begins. What lies in
/// a folder is jumped over, and counted as far as that goes.
pub async fn folder_page(
    handle: &Handle,
    caller: &Caller,
    query: FileQuery,
) -> Result<FolderPage, Fault> {
    let world = query.world.clone();
    let (files, folders, next) = directly_below(handle, caller, query).await?;
    let files_max = FILES_COUNTED_MAX / folders.len().max(1);
    let query = FolderQuery { world, folders, files_max };
    let sizes = handle.files().folder_sizes(caller, query.clone()).await?;
    let folder = |(path, size): (String, FolderSize)| wire::Folder {
        path,
        files: size.files,
        bytes: size.bytes,
        more: size.files >= files_max as u64,
    };
    let folders = query.folders.into_iter().zip(sizes).map(folder).collect();
    Ok(FolderPage { files, folders, next })
}

/// Files, the paths of folders, and where the next page begins.
type Below = (Vec<FileRecord>, Vec<String>, Option<WorldPath>);

async fn directly_below(
    handle: &Handle,
    caller: &Caller,
    mut query: FileQuery,
) -> Result<Below, Fault> {
    let (limit, start) = (query.limit, query.prefix.clone().map_or(0, |prefix| prefix.len()));
    let (mut files, mut folders) = (Vec::new(), Vec::<String>::new());
    query.limit = FILES_AT_ONCE;
    'pages: loop {
        let page = handle.files().list(caller, query.clone()).await?;
        for record in page.files {
            if files.len() + folders.len() >= limit {
                return Ok((files, folders, query.after));
            }
            let path = record.artifact.path.to_string();
            // The root's own slash is not the end of a folder.
            let from = start.max(1);
            let folder = path.get(from..).and_then(|rest| Some(&path[..=from + rest.find('/')?]));
            match folder {
                Some(folder) => {
                    if folders.last().is_none_or(|last| last != folder) {
                        folders.push(folder.to_owned());
                    }
                    // Nothing in the folder comes behind this.
                    let end = WorldPath::try_from(format!("{folder}{}", char::MAX)).ok();
                    query.after = end.or(Some(record.artifact.path));
                    continue 'pages;
                }
                None => {
                    query.after = Some(record.artifact.path.clone());
                    files.push(record);
                }
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok((files, folders, None)),
        }
    }
}

/// How much a world holds.
#[must_use]
pub fn usage(world: &WorldId, usage: WorldSize) -> wire::Usage {
    wire::Usage {
        world: world.clone(),
        files: usage.files,
        bytes: usage.bytes,
        local_files: usage.local_files,
        local_bytes: usage.local_bytes,
    }
}

/// An upload in parts.
#[must_use]
pub fn upload(world: &WorldId, upload: &UploadView) -> wire::Upload {
    wire::Upload {
        upload_id: upload.id.clone(),
        world: world.clone(),
        path: upload.path.to_string(),
        part_bytes_min: UPLOAD_PART_BYTES_MIN,
        parts: upload.parts.iter().map(upload_part).collect(),
    }
}

/// A part that has arrived.
#[must_use]
pub fn upload_part(part: &wharf_engine::UploadPart) -> wire::UploadPart {
    wire::UploadPart { part: part.number, bytes: part.bytes }
}

/// What was cleared away.
#[must_use]
pub fn collected(world: &WorldId, dry: bool, collected: Collected) -> wire::Collected {
    wire::Collected {
        world: world.clone(),
        dry,
        files: collected.files,
        leftovers: collected.leftovers,
        bytes: collected.bytes,
        in_use: collected.in_use,
        unrecorded: collected.unrecorded,
    }
}
