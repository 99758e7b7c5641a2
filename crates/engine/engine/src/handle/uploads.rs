//! Uploads in parts: large files that can be taken up again where they broke off.
//!
//! An upload belongs to the world it was begun in, not to one of the same name that is made after
//! that: its id tells them apart. Its parts are cleared away when it has become old.

use wharf_domain::Caller;
use wharf_domain::scope::WorldPath;
use wharf_ports::{ByteStream, FileRecord, ObjectError, ObjectErrorKind, ObjectUpload, UploadPart};
use wharf_vocab::limits::{UPLOAD_PART_BYTES_MAX, UPLOAD_PART_BYTES_MIN, UPLOAD_PARTS_MAX};
use wharf_vocab::{Code, Fault, WorldId};

use super::files::NewFile;
use super::{UploadCalls, no_world};
use crate::storage::{self, Tries};

/// Which upload somebody means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadRef {
    pub world: WorldId,
    /// The file it becomes.
    pub path: WorldPath,
    pub id: String,
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

impl UploadCalls<'_> {
    /// Begins an upload in parts. Needs the verb `run`, as do all that follow.
    pub async fn begin_upload(self, caller: &Caller, new: NewFile) -> Result<UploadView, Fault> {
        self.0.files().may_put(caller, &new)?;
        let _working = self.0.files().work_in(&new.world)?;
        let (objects, key) = (self.0.objects()?, new.path.key(&new.world));
        let begin = || objects.begin_upload(key.clone(), new.kind());
        let id = storage::patiently(Tries::Short, begin).await?;
        let id = format!("{}.{id}", self.earlier(&new.world)?);
        Ok(UploadView { id, path: new.path, parts: Vec::new() })
    }

    /// What has arrived of an upload.
    pub async fn upload(self, caller: &Caller, upload: &UploadRef) -> Result<UploadView, Fault> {
        self.may_upload(caller, upload)?;
        let UploadRef { world, path, id } = upload;
        let parts = self.parts_of(&self.begun(world, path, id)?).await?;
        Ok(UploadView { id: id.clone(), path: path.clone(), parts })
    }

    /// Takes one part of an upload.
    pub async fn put_part(
        self,
        caller: &Caller,
        upload: &UploadRef,
        number: u32,
        bytes: u64,
        body: ByteStream,
    ) -> Result<UploadPart, Fault> {
        self.may_upload(caller, upload)?;
        if !(1..=UPLOAD_PARTS_MAX).contains(&number) || bytes > UPLOAD_PART_BYTES_MAX {
            let message = format!(
                "A part has a number from 1 to {UPLOAD_PARTS_MAX} and {UPLOAD_PART_BYTES_MAX} \
                 bytes at most."
            );
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        let stream = storage::counted(body, storage::count_written);
        let upload = self.begun(&upload.world, &upload.path, &upload.id)?;
        let put = self.0.objects()?.put_part(upload, number, bytes, stream);
        put.await.map_err(told)
    }

    /// Makes a file of an upload's parts.
    pub async fn complete_upload(
        self,
        caller: &Caller,
        new: NewFile,
        id: &str,
    ) -> Result<FileRecord, Fault> {
        self.0.files().may_put(caller, &new)?;
        let _working = self.0.files().work_in(&new.world)?;
        let upload = self.begun(&new.world, &new.path, id)?;
        let parts = self.parts_of(&upload).await?;
        check_parts(&parts)?;
        let bytes = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.bytes));
        if parts.is_empty() || new.bytes.is_some_and(|wanted| wanted != bytes) {
            let message = format!("The parts that have arrived have {bytes} bytes together.");
            return Err(Fault::new(Code::ArtifactChecksum, message).with("bytes", bytes));
        }
        let completed = self.0.objects()?.complete_upload(upload, new.b3.clone());
        let info = completed.await.map_err(told)?;
        self.0.files().enter(caller, &new, info).await
    }

    /// Gives an upload up.
    pub async fn abort_upload(self, caller: &Caller, upload: &UploadRef) -> Result<(), Fault> {
        self.may_upload(caller, upload)?;
        let upload = self.begun(&upload.world, &upload.path, &upload.id)?;
        let objects = self.0.objects()?;
        let abort = || objects.abort_upload(upload.clone());
        storage::patiently(Tries::Short, abort).await.map_err(told)
    }

    fn may_upload(self, caller: &Caller, upload: &UploadRef) -> Result<(), Fault> {
        let (world, path) = (upload.world.clone(), upload.path.clone());
        self.0
            .files()
            .may_put(caller, &NewFile { world, path, media_type: None, bytes: None, b3: None })
    }

    /// An upload that was begun in this world, by the id it was given.
    fn begun(self, world: &WorldId, path: &WorldPath, id: &str) -> Result<ObjectUpload, Fault> {
        let (earlier, id) = id.split_once('.').ok_or_else(no_upload)?;
        if earlier != self.earlier(world)?.to_string() {
            return Err(no_upload());
        }
        Ok(ObjectUpload { key: path.key(world), id: id.to_owned() })
    }

    /// How often a world of this name was there before.
    fn earlier(self, world: &WorldId) -> Result<u32, Fault> {
        self.0
            .inner
            .records
            .worlds
            .look(world, |world| world.earlier)
            .ok_or_else(|| no_world(world))
    }

    async fn parts_of(self, upload: &ObjectUpload) -> Result<Vec<UploadPart>, Fault> {
        let objects = self.0.objects()?;
        let parts = storage::patiently(Tries::Short, || objects.parts(upload.clone())).await;
        parts.map_err(told)?.ok_or_else(no_upload)
    }
}

/// Whether the parts that have arrived make a file: all from the first on, and none but the last
/// smaller than artifact stores take them.
fn check_parts(parts: &[UploadPart]) -> Result<(), Fault> {
    for (wanted, part) in (1_u32..).zip(parts) {
        if part.number != wanted {
            let message = format!(
                "Part {wanted} has not arrived, but part {} has; send it and complete again.",
                part.number
            );
            return Err(Fault::new(Code::RequestInvalid, message).with("part", wanted));
        }
    }
    let last = parts.len().saturating_sub(1);
    match parts[..last].iter().find(|part| part.bytes < UPLOAD_PART_BYTES_MIN) {
        None => Ok(()),
        Some(small) => {
            let message = format!(
                "Part {} has {} bytes; all but the last must have {UPLOAD_PART_BYTES_MIN} at \
                 least.",
                small.number, small.bytes
            );
            Err(Fault::new(Code::RequestInvalid, message).with("part", small.number))
        }
    }
}

fn told(error: ObjectError) -> Fault {
    match error.kind {
        ObjectErrorKind::NotFound => no_upload(),
        _ => error.into(),
    }
}

fn no_upload() -> Fault {
    Fault::new(Code::UploadNotFound, "There is no such upload; begin it again.")
}
