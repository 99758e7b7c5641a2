//! Files of a world, for whoever looks after it: listing, reading, putting, removing, tracing.

use std::ops::Range;

use tokio::sync::broadcast::{self, error::RecvError};
use wharf_domain::scope::WorldPath;
use wharf_domain::{Actor, Artifact, ArtifactOp, AuditEvent, AuditRecord, Caller};
use wharf_ports::{
    ByteStream, FileQuery, FileRecord, FolderQuery, FolderSize, ObjectBody, ObjectErrorKind,
    ObjectInfo, PutObject, Require, WorldSize, verified,
};
use wharf_vocab::limits::{FILE_BYTES_MAX, PAGE_ITEMS_MAX};
use wharf_vocab::{B3, Code, Direction, Fault, StreamId, Verb, WorldId, media};

use super::in_use::{Claim, FilesInUse};
use super::{FileCalls, no_world};
pub use crate::hub::FileNews;
use crate::shard::{Input, file_in_use};
use crate::storage::{self, Tries};

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

/// A reader of what happens to files.
#[derive(Debug)]
pub struct FileFeed(broadcast::Receiver<FileNews>);

impl FileFeed {
    /// What happens next; `None` once the engine has ended. A reader that was too slow learns that
    /// it missed something.
    pub async fn next(&mut self) -> Option<FileNews> {
        match self.0.recv().await {
            Ok(news) => Some(news),
            Err(RecvError::Lagged(_)) => Some(FileNews::Missed),
            Err(RecvError::Closed) => None,
        }
    }
}

impl<'a> FileCalls<'a> {
    /// What happens to files of all worlds from now on: written or removed, by runs or by others.
    /// Whoever reads it tells each of its own readers only what they may know.
    #[must_use]
    pub fn news(self) -> FileFeed {
        FileFeed(self.0.inner.hub.file_news())
    }

    /// Files of a world that are there now. Needs the verb `read`.
    pub async fn list(self, caller: &Caller, query: FileQuery) -> Result<FilePage, Fault> {
        self.may_use_files(caller, Verb::Read, &query.world)?;
        let limit = query.limit.clamp(1, PAGE_ITEMS_MAX);
        let query = FileQuery { limit: limit + 1, ..query };
        let mut files = self.0.inner.store.files(query).await?;
        let more = files.len() > limit;
        files.truncate(limit);
        let next = files.last().filter(|_| more).map(|file| file.artifact.path.clone());
        Ok(FilePage { files, next })
    }

    /// One file that is there now. Needs the verb `read`.
    pub async fn get(
        self,
        caller: &Caller,
        world: &WorldId,
        path: &WorldPath,
    ) -> Result<FileRecord, Fault> {
        self.may_use_files(caller, Verb::Read, world)?;
        self.here(world, path).await?.ok_or_else(|| no_file(world, path))
    }

    /// How much a world holds. Needs the verb `read`.
    pub async fn usage(self, caller: &Caller, world: &WorldId) -> Result<WorldSize, Fault> {
        self.may_use_files(caller, Verb::Read, world)?;
        Ok(self.0.inner.store.usage(world.clone()).await?)
    }

    /// How much some folders of a world hold, as far as is counted. Needs the verb `read`.
    pub async fn folder_sizes(
        self,
        caller: &Caller,
        query: FolderQuery,
    ) -> Result<Vec<FolderSize>, Fault> {
        self.may_use_files(caller, Verb::Read, &query.world)?;
        Ok(self.0.inner.store.folder_sizes(query).await?)
    }

    /// The bytes of a file, or of a range of it. The whole of a file ends well only if it is what
    /// was written; of a range nobody can tell. Needs the verb `read`.
    pub async fn read(
        self,
        caller: &Caller,
        world: &WorldId,
        path: &WorldPath,
        range: Option<Range<u64>>,
    ) -> Result<ObjectBody, Fault> {
        self.may_use_files(caller, Verb::Read, world)?;
        let (objects, key) = (self.0.objects()?, path.key(world));
        let here = self.here_now(world, path).await?;
        let (here, seen) = here.ok_or_else(|| no_file(world, path))?;
        let bytes = here.artifact.bytes;
        if range.as_ref().is_some_and(|range| range.start >= range.end || range.end > bytes) {
            let message = format!("The range lies outside the file, which has {bytes} bytes.");
            return Err(Fault::new(Code::RequestRangeInvalid, message).with("bytes", bytes));
        }
        let found =
            storage::patiently(Tries::Short, || objects.get(key.clone(), range.clone())).await;
        let body = found.map_err(|error| match error.kind {
            ObjectErrorKind::NotFound => no_file(world, path),
            _ => error.into(),
        })?;
        let body = body.ok_or_else(|| no_file(world, path))?;
        let mut stream = body.stream;
        if range.is_none() {
            // Who wrote it may not have said its hash to the store.
            let recorded = here.artifact.b3.filter(|_| body.info.tag == seen.tag);
            let b3 = body.info.b3.clone().or(recorded);
            let note = self.on_damage(world, path);
            stream = verified(stream, body.info.bytes, b3, note).await?;
        }
        let stream = storage::counted(stream, storage::count_read);
        Ok(ObjectBody { stream, info: body.info })
    }

    /// What is to be done when the bytes of a file are not what was written.
    pub(super) fn on_damage(
        self,
        world: &WorldId,
        path: &WorldPath,
    ) -> impl FnOnce() + Send + 'static {
        let (handle, world, path) = (self.0.clone(), world.clone(), path.to_string());
        move || handle.files().note_damage(&world, &path)
    }

    /// Takes note that the bytes of a file are not what was written: in the log, the audit and
    /// the metrics.
    pub(super) fn note_damage(self, world: &WorldId, path: &str) {
        tracing::error!(%world, %path, "a file is not what was written");
        storage::count_damaged();
        let record = AuditRecord::new(AuditEvent::ARTIFACT_DAMAGED, Actor::CORE, world);
        // Whoever reads it again and again does not fill the audit.
        self.0.audit().denied(record.fact("path", path));
    }

    /// Puts a file into a world, in the place of one that may be there. Needs the verb `run`.
    pub async fn put(
        self,
        caller: &Caller,
        new: NewFile,
        body: ByteStream,
    ) -> Result<FileRecord, Fault> {
        self.may_put(caller, &new)?;
        let _working = self.work_in(&new.world)?;
        let put = PutObject {
            key: new.path.key(&new.world),
            media_type: new.kind(),
            bytes: new.bytes,
            b3: new.b3.clone(),
        };
        let stream = storage::counted(body, storage::count_written);
        let info = self.0.objects()?.put(put, stream).await?;
        self.enter(caller, &new, info).await
    }

    /// Removes a file. One that a run under way reads or writes is refused. Needs the verb
    /// `operate`.
    pub async fn remove(
        self,
        caller: &Caller,
        world: &WorldId,
        path: &WorldPath,
    ) -> Result<(), Fault> {
        self.may_use_files(caller, Verb::Operate, world)?;
        let (_removing, free) = self.0.inner.in_use.remove(vec![(world.clone(), path.clone())]);
        if free.is_empty() || self.used(world).has(path) {
            return Err(file_in_use(path));
        }
        let objects = self.0.objects()?;
        self.row(world, path).await?.ok_or_else(|| no_file(world, path))?;
        let record = AuditRecord::new(AuditEvent::ARTIFACT_REMOVED, &caller.grant, world)
            .fact("path", path.as_str());
        let op = ArtifactOp::Remove { world: world.clone(), path: path.clone() };
        self.index(world, vec![op], record).await?;
        let key = path.key(world);
        Ok(storage::patiently(Tries::Short, || objects.delete(key.clone())).await?)
    }

    /// Whether a caller may use a world's files, and the world is there. Rights for some tools
    /// give no right to what all tools made.
    pub(super) fn may_use_files(
        self,
        caller: &Caller,
        verb: Verb,
        world: &WorldId,
    ) -> Result<(), Fault> {
        let allowed = self.0.trust().authorise(caller, verb, world).and_then(|()| {
            if caller.rights.tools.is_empty() {
                return Ok(());
            }
            let message = "This token is for some tools only, so it cannot use files directly; \
                           let a run read or write them.";
            Err(Fault::new(Code::PermissionDenied, message))
        });
        self.0.audited(caller, world, allowed)?;
        if self.0.inner.records.worlds.has(world) { Ok(()) } else { Err(no_world(world)) }
    }

    /// Says that something is made in a world, which cannot be removed meanwhile.
    pub(super) fn work_in(self, world: &WorldId) -> Result<Claim<'a>, Fault> {
        let working = self.0.inner.in_use.work(world)?;
        if self.0.inner.records.worlds.has(world) { Ok(working) } else { Err(no_world(world)) }
    }

    /// Whether a caller may put a file where it wants to.
    pub(super) fn may_put(self, caller: &Caller, new: &NewFile) -> Result<(), Fault> {
        self.may_use_files(caller, Verb::Run, &new.world)?;
        if new.path.run().is_some() {
            let message = "Local files of a run are written by that run only.";
            return Err(Fault::new(Code::ScopeForbidden, message));
        }
        new.path.fits(&new.world).map_err(|error| {
            Fault::new(Code::ScopePathInvalid, format!("The path is not valid: {error}."))
        })?;
        if new.bytes.is_some_and(|bytes| bytes > FILE_BYTES_MAX) {
            let message = format!("A file may have {FILE_BYTES_MAX} bytes at most.");
            return Err(Fault::new(Code::RequestTooLarge, message));
        }
        Ok(())
    }

    /// Enters a file into the index that is in the artifact store.
    pub(super) async fn enter(
        self,
        caller: &Caller,
        new: &NewFile,
        mut info: ObjectInfo,
    ) -> Result<FileRecord, Fault> {
        if info.b3.is_none() {
            // With a hash to compare with, other bytes would not have been taken.
            info.b3 = match &new.b3 {
                Some(b3) => Some(b3.clone()),
                None => {
                    let (objects, key) = (self.0.objects()?, new.path.key(&new.world));
                    storage::hash_object(&*objects, &key, &info).await?
                }
            };
        }
        let artifact = Artifact { media_type: new.kind(), ..written(&new.world, &new.path, info) };
        let record = AuditRecord::new(AuditEvent::ARTIFACT_PUT, &caller.grant, &new.world)
            .fact("path", new.path.as_str())
            .fact("bytes", artifact.bytes);
        let at = self.0.now();
        self.index(&new.world, vec![ArtifactOp::Record(artifact.clone())], record).await?;
        let row = self.row(&new.world, &new.path).await?;
        Ok(row.unwrap_or(FileRecord { position: 0, at, artifact, gone_at: None }))
    }

    /// Changes the index of a world's files, with a record of who did it. A file that a run reads is
    /// never taken out of it: then nothing changes, and the error says which it is.
    pub(super) async fn index(
        self,
        world: &WorldId,
        ops: Vec<ArtifactOp>,
        record: AuditRecord,
    ) -> Result<(), Fault> {
        let shard = StreamId::World(world.clone()).shard();
        let requires = ops.iter().filter_map(|op| match op {
            ArtifactOp::Remove { world, path } => {
                Some(Require::FileFree { world: world.clone(), path: path.clone() })
            }
            ArtifactOp::Record(_) => None,
        });
        let input = Input::Files {
            requires: requires.collect(),
            ops: ops.clone(),
            record: Some(Box::new(record)),
            ticket: None,
        };
        self.0.ask(shard, input).await?;
        self.0.inner.hub.tell_of_files(&ops);
        Ok(())
    }

    /// What the open runs of a world read and write.
    pub(super) fn used(self, world: &WorldId) -> FilesInUse {
        let mut used = FilesInUse::default();
        for run in self.0.inner.hub.open_in(world) {
            used.add(&run);
        }
        used
    }
}

impl NewFile {
    /// What kind of data it is.
    pub(super) fn kind(&self) -> String {
        self.media_type.clone().unwrap_or_else(|| self.path.media_type().to_owned())
    }
}

/// What is on record of an object that somebody wrote.
pub(super) fn written(world: &WorldId, path: &WorldPath, info: ObjectInfo) -> Artifact {
    let media_type = match info.media_type.as_str() {
        media::UNKNOWN => path.media_type().to_owned(),
        _ => info.media_type,
    };
    Artifact {
        world: world.clone(),
        path: path.clone(),
        bytes: info.bytes,
        b3: info.b3,
        media_type,
        run: None,
        key: None,
        direction: Direction::Out,
    }
}

pub(super) fn no_file(world: &WorldId, path: &WorldPath) -> Fault {
    let message = format!("There is no file {path} in the world {world}.");
    Fault::new(Code::ArtifactNotFound, message)
}
