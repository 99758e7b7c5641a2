//! Reading, writing, copying and removing one object.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use wharf_ports::{ByteStream, ObjectBody, ObjectError, ObjectInfo, PutObject};
use wharf_vocab::B3;
use wharf_vocab::limits::FILE_BYTES_MAX;

use super::disk::{self, Scratch, trouble};
use super::head::{self, HEAD, ObjectHead};
use super::read;
use super::write::{self, FileDraft, SyncedFile};
use super::{FileObjects, blocking, broken_off, now};
use crate::error::{check_bytes, check_hash, mismatch, not_found};

/// What a file in its place will be known as.
#[derive(Debug, Clone)]
pub(super) struct Label {
    pub(super) key: String,
    pub(super) media_type: String,
    pub(super) bytes: u64,
    pub(super) b3: B3,
}

impl FileObjects {
    /// What is known of an object; none if there is none.
    pub async fn head(self: Arc<Self>, key: String) -> Result<Option<ObjectInfo>, ObjectError> {
        blocking(move || {
            let head = ObjectHead::read(&self.layout.place(&key).folder);
            let head = head.map_err(|error| trouble("read what is known of an object", &error))?;
            Ok(head.map(ObjectHead::info))
        })
        .await
    }

    /// An object's bytes, or those of a range that lies within it; none if there is no object.
    pub async fn get(
        self: Arc<Self>,
        key: String,
        range: Option<Range<u64>>,
    ) -> Result<Option<ObjectBody>, ObjectError> {
        blocking(move || {
            let Some((head, file)) = self.open_current(&key)? else { return Ok(None) };
            read::body(head.info(), file, range).map(Some)
        })
        .await
    }

    /// Writes an object whole or not at all.
    pub async fn put(
        self: Arc<Self>,
        put: PutObject,
        body: ByteStream,
    ) -> Result<ObjectInfo, ObjectError> {
        let written = self.put_while(put, body, |_| true).await?;
        written.ok_or_else(broken_off)
    }

    /// Writes an object whole or not at all, if that is allowed for its key both before the first
    /// byte is taken and when all of them are there; none if it is not.
    pub(crate) async fn put_while(
        self: Arc<Self>,
        put: PutObject,
        body: ByteStream,
        allowed: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Option<ObjectInfo>, ObjectError> {
        if !allowed(&put.key) {
            return Ok(None);
        }
        let scratch = Scratch::new(&self.layout.tmp);
        let scratch = scratch.map_err(|error| trouble("write an object", &error))?;
        let draft = FileDraft::new(scratch, Some(blake3::Hasher::new()));
        let most = put.bytes.unwrap_or(FILE_BYTES_MAX);
        let (draft, last) = write::receive(draft, body, most).await?;
        blocking(move || {
            let written = draft.finish(&last);
            let written = written.map_err(|error| trouble("write an object", &error))?;
            let b3 = written.b3().ok_or_else(|| mismatch("nothing was hashed"))?;
            check_bytes(put.bytes, written.bytes)?;
            check_hash(put.b3.as_ref(), &b3)?;
            let SyncedFile { place: scratch, bytes, .. } = written;
            let label = Label { key: put.key, media_type: put.media_type, bytes, b3 };
            // Much time may have passed since it was asked before.
            if !allowed(&label.key) {
                return Ok(None);
            }
            self.publish(label, scratch).map(Some)
        })
        .await
    }

    /// Makes an object a copy of another one. The bytes are not copied: both share a file.
    pub async fn copy(
        self: Arc<Self>,
        from: String,
        to: String,
    ) -> Result<ObjectInfo, ObjectError> {
        blocking(move || {
            let (source, file) = self.open_current(&from)?.ok_or_else(|| not_found("object"))?;
            let here = self.layout.place(&to);
            let there = ObjectHead::read(&here.folder);
            let there =
                there.map_err(|error| trouble("read what is known of an object", &error))?;
            let same =
                |head: &ObjectHead| head.b3 == source.b3 && head.media_type == source.media_type;
            if let Some(head) = there.filter(same) {
                return Ok(head.info());
            }
            let version = self.layout.place(&from).folder.join(&source.version);
            let scratch = share(&version, file, &self.layout.tmp);
            let scratch = scratch.map_err(|error| trouble("copy an object", &error))?;
            let ObjectHead { media_type, bytes, b3, .. } = source;
            self.publish(Label { key: to, media_type, bytes, b3 }, scratch)
        })
        .await
    }

    /// Removes an object with all its versions; one that is not there is as good as removed.
    pub async fn delete(self: Arc<Self>, key: String) -> Result<(), ObjectError> {
        blocking(move || {
            let place = self.layout.place(&key);
            let remove = || {
                // From its place to the scratch folder it goes at once; emptying it takes longer.
                let scratch = Scratch::new(&self.layout.tmp)?;
                let turn = self.turn(&place);
                match fs::rename(&place.folder, scratch.path()) {
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                    moved => moved?,
                }
                drop(turn);
                let Some(shelf) = place.folder.parent() else { return Ok(()) };
                match disk::sync_folder(shelf) {
                    // Whoever removed the last object of the shelf has removed it too.
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                    synced => synced?,
                }
                tidy(shelf);
                Ok(())
            };
            remove().map_err(|error: io::Error| trouble("remove an object", &error))
        })
        .await
    }

    /// Puts a file that is safe on the disk in its place as the newest version of an object.
    pub(super) fn publish(
        &self,
        label: Label,
        scratch: Scratch,
    ) -> Result<ObjectInfo, ObjectError> {
        let place = self.layout.place(&label.key);
        let _turn = self.turn(&place);
        let published = self.publish_at(&place.folder, label, scratch);
        if published.is_err() {
            // Goes only as far as folders are empty.
            tidy(&place.folder);
        }
        let head = published.map_err(|error| trouble("put an object in its place", &error))?;
        Ok(head.info())
    }

    fn publish_at(&self, folder: &Path, label: Label, scratch: Scratch) -> io::Result<ObjectHead> {
        disk::make_folder(folder)?;
        let before = ObjectHead::read(folder).ok().flatten();
        let before = before.as_ref().map(|head| head.version.as_str());
        let written_at = now();
        let version = head::version(written_at, before)?;
        let Label { key, media_type, bytes, b3 } = label;
        let head = ObjectHead { key, version, bytes, b3, media_type, written_at };
        let staged = head.stage(&self.layout.tmp)?;
        let at = folder.join(&head.version);
        scratch.move_to(&at)?;
        let named = disk::sync_folder(folder).and_then(|()| staged.move_to(&folder.join(HEAD)));
        if let Err(error) = named {
            disk::remove_file(&at)?;
            return Err(error);
        }
        disk::sync_folder(folder)?;
        Ok(head)
    }

    /// The head of an object and its open version.
    fn open_current(&self, key: &str) -> Result<Option<(ObjectHead, File)>, ObjectError> {
        let folder = self.layout.place(key).folder;
        head::open_current(&folder).map_err(|error| trouble("open an object", &error))
    }
}

/// Makes a second name for a version, or a copy where a file may have only one.
fn share(version: &Path, mut file: File, tmp: &Path) -> io::Result<Scratch> {
    let scratch = Scratch::new(tmp)?;
    if fs::hard_link(version, scratch.path()).is_err() {
        let mut copy = scratch.create()?;
        io::copy(&mut file, &mut copy)?;
        copy.sync_data()?;
    }
    Ok(scratch)
}

/// Removes a folder of an object or a shelf and those above it, as far as they are empty.
pub(super) fn tidy(folder: &Path) {
    let mut folder = Some(folder);
    while let Some(at) = folder.filter(|at| !at.ends_with("worlds")) {
        if fs::remove_dir(at).is_err() {
            return;
        }
        folder = at.parent();
    }
}
