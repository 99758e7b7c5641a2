//! Files of a world, for whoever looks after it: listing, reading, putting, removing, tracing.

use std::ops::Range;

use wharf_domain::Caller;
use wharf_domain::scope::WorldPath;
use wharf_ports::{ByteStream, FileQuery, FileRecord, ObjectBody, UploadPart, Usage};
use wharf_vocab::{B3, Code, Fault, RunId, WorldId};

use super::Handle;

/// Files that are there now.
#[derive(Debug, Clone, PartialEq)]
pub struct FilePage {
    /// The files, by path.
    pub files: Vec<FileRecord>,
    /// Where the next page begins, if there is one.
    pub next: Option<WorldPath>,
}

/// A file that somebody puts into a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// The world.
    pub world: WorldId,
    /// The file.
    pub path: WorldPath,
    /// What kind of data it is; its name says when absent.
    pub media_type: Option<String>,
    /// How many bytes there will be, if that is known.
    pub bytes: Option<u64>,
    /// Their hash, if it is known; other bytes are refused.
    pub b3: Option<B3>,
}

/// Where a file comes from and where it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Every writing of the file, oldest first; the last may be there now.
    pub written: Vec<FileRecord>,
    /// Every reading of it by a run, oldest first.
    pub read: Vec<FileRecord>,
    /// For each run that wrote it: the files that run read.
    pub made_from: Vec<(RunId, Vec<FileRecord>)>,
    /// For each run that read it: the files that run wrote.
    pub went_into: Vec<(RunId, Vec<FileRecord>)>,
    /// Whether there is more than is shown.
    pub cut: bool,
}

/// An upload in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadView {
    /// Its id.
    pub id: String,
    /// The file it becomes.
    pub path: WorldPath,
    /// The parts that have arrived.
    pub parts: Vec<UploadPart>,
}

/// What was cleared away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Files that were removed because nobody had used them for long.
    pub files: u64,
    /// Leftovers of runs and uploads that were removed.
    pub leftovers: u64,
    /// How many bytes all that had.
    pub bytes: u64,
    /// Files that are old enough to go, but used by a run under way.
    pub in_use: u64,
}

impl Handle {
    /// Files of a world that are there now. Needs the verb `read`.
    pub async fn files(&self, caller: &Caller, query: FileQuery) -> Result<FilePage, Fault> {
        let _ = (caller, query);
        Err(unbuilt())
    }

    /// One file that is there now.
    pub async fn file(
        &self,
        caller: &Caller,
        world: &WorldId,
        path: &WorldPath,
    ) -> Result<FileRecord, Fault> {
        let _ = (caller, world, path);
        Err(unbuilt())
    }

    /// Where a file comes from and where it went. Needs the verb `read`.
    pub async fn trace(
        &self,
        caller: &Caller,
        world: &WorldId,
        path: &WorldPath,
    ) -> Result<Trace, Fault> {
        let _ = (caller, world, path);
        Err(unbuilt())
    }

    /// How much a world holds. Needs the verb `read`.
    pub async fn usage(&self, caller: &Caller, world: &WorldId) -> Result<Usage, Fault> {
        let _ = (caller, world);
        Err(unbuilt())
    }

    /// The bytes of a file, or of a range of it. Needs the verb `read`.
    pub async fn read_file(
        &self,
        caller: &Caller,
        world: &WorldId,
        path: &WorldPath,
        range: Option<Range<u64>>,
    ) -> Result<ObjectBody, Fault> {
        let _ = (caller, world, path, range);
        Err(unbuilt())
    }

    /// Puts a file into a world, in the place of one that may be there. Needs the verb `run`.
    pub async fn put_file(
        &self,
        caller: &Caller,
        new: NewFile,
        body: ByteStream,
    ) -> Result<FileRecord, Fault> {
        let _ = (caller, new, body);
        Err(unbuilt())
    }

    /// Removes a file. One that a run under way reads or writes is refused. Needs the verb
    /// `operate`.
    pub async fn remove_file(
        &self,
        caller: &Caller,
        world: &WorldId,
        path: &WorldPath,
    ) -> Result<(), Fault> {
        let _ = (caller, world, path);
        Err(unbuilt())
    }

    /// Begins an upload in parts. Needs the verb `run`, as do all that follow.
    pub async fn begin_upload(&self, caller: &Caller, new: NewFile) -> Result<UploadView, Fault> {
        let _ = (caller, new);
        Err(unbuilt())
    }

    /// What has arrived of an upload.
    pub async fn upload(
        &self,
        caller: &Caller,
        world: &WorldId,
        path: &WorldPath,
        id: &str,
    ) -> Result<UploadView, Fault> {
        let _ = (caller, world, path, id);
        Err(unbuilt())
    }

    /// Takes one part of an upload.
    pub async fn put_part(
        &self,
        caller: &Caller,
        (world, path, id): (&WorldId, &WorldPath, &str),
        (number, bytes): (u32, u64),
        body: ByteStream,
    ) -> Result<UploadPart, Fault> {
        let _ = (caller, world, path, id, number, bytes, body);
        Err(unbuilt())
    }

    /// Makes a file of an upload's parts.
    pub async fn complete_upload(
        &self,
        caller: &Caller,
        new: NewFile,
        id: &str,
    ) -> Result<FileRecord, Fault> {
        let _ = (caller, new, id);
        Err(unbuilt())
    }

    /// Gives an upload up.
    pub async fn abort_upload(
        &self,
        caller: &Caller,
        world: &WorldId,
        path: &WorldPath,
        id: &str,
    ) -> Result<(), Fault> {
        let _ = (caller, world, path, id);
        Err(unbuilt())
    }

    /// Removes from a world what its retention lets go, and what runs and uploads left behind.
    /// With `dry`, it only says what would go. Needs the verb `admin`.
    pub async fn collect(
        &self,
        caller: &Caller,
        world: &WorldId,
        dry: bool,
    ) -> Result<Collected, Fault> {
        let _ = (caller, world, dry);
        Err(unbuilt())
    }
}

fn unbuilt() -> Fault {
    Fault::new(Code::StorageUnavailable, "This core has no artifact store.")
}
