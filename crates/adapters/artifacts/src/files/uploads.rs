//! Uploads in parts, which outlive a restart.
//!
//! Parts that come in order lie one behind the other in one file, which becomes the object as it
//! is. Any other part is a file of its own until the end. What a part's name says counts: the one
//! file may be longer, by what was written of a part that never arrived.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wharf_ports::{ByteStream, ObjectError, ObjectInfo, ObjectUpload, UploadPart};
use wharf_vocab::{B3, Timestamp};

use super::disk::{self, Scratch, trouble};
use super::head;
use super::objects::Label;
use super::parts::{PartDraft, StoredPart, WHOLE};
use super::write::{self, FileDraft, SyncedFile};
use super::{FileObjects, blocking, now};
use crate::error::{check_bytes, check_hash, check_part, mismatch, not_found};
use crate::rolling::RollingUpload;
use crate::{random_hex, rolling};

/// The file that says what an upload becomes. No part has such a name.
const ABOUT: &str = "about";
/// How much is read at once when parts are put together.
const PIECE_BYTES: usize = 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
struct UploadInfo {
    key: String,
    media_type: String,
    begun_at: Timestamp,
}

impl FileObjects {
    /// Begins an upload in parts.
    pub async fn begin_upload(
        self: Arc<Self>,
        key: String,
        media_type: String,
    ) -> Result<String, ObjectError> {
        blocking(move || {
            let begin = || {
                let id = random_hex::<32>()?;
                let about = UploadInfo { key, media_type, begun_at: now() };
                let about = serde_json::to_vec(&about).map_err(io::Error::other)?;
                let scratch = Scratch::new(&self.layout.tmp)?;
                disk::make_folder(scratch.path())?;
                let mut file = disk::create(&scratch.path().join(ABOUT))?;
                file.write_all(&about)?;
                file.sync_all()?;
                disk::sync_folder(scratch.path())?;
                scratch.move_to(&self.layout.uploads.join(&id))?;
                disk::sync_folder(&self.layout.uploads)?;
                self.rolling.begin(&id);
                Ok(id)
            };
            begin().map_err(|error: io::Error| trouble("begin an upload", &error))
        })
        .await
    }

    /// Takes one part; the same number again replaces it.
    pub async fn put_part(
        self: Arc<Self>,
        upload: ObjectUpload,
        number: u32,
        bytes: u64,
        body: ByteStream,
    ) -> Result<UploadPart, ObjectError> {
        check_part(number)?;
        let this = Arc::clone(&self);
        let upload = blocking(move || this.open_upload(&upload).map(|_| upload)).await?;
        let place = match self.rolling.turn(&upload.id, number) {
            Some(turn) => PartDraft::behind(&self.layout.uploads.join(&upload.id), turn),
            None => PartDraft::apart(&self.layout.tmp)?,
        };
        let draft = FileDraft::new(place, self.rolling.before(&upload.id, number));
        let (draft, last) = write::receive(draft, body, bytes).await?;
        blocking(move || {
            let written = draft.finish(&last);
            let written = written.map_err(|error| trouble("write a part", &error))?;
            check_bytes(Some(bytes), written.bytes)?;
            self.keep_part(&upload, number, written)
        })
        .await
    }

    /// Gives a part that is safe on the disk its name.
    fn keep_part(
        &self,
        upload: &ObjectUpload,
        number: u32,
        written: SyncedFile<PartDraft>,
    ) -> Result<UploadPart, ObjectError> {
        let (folder, _) = self.open_upload(upload)?;
        let before = self.stored_parts(upload)?.remove(&number);
        let SyncedFile { place, bytes, hasher } = written;
        let keep = || {
            let tag = head::version(now(), before.as_ref().map(|part| part.part.tag.as_str()))?;
            let part = UploadPart { number, bytes, tag };
            let turn = place.keep(&folder, &part)?;
            disk::sync_folder(&folder)?;
            if let Some(before) = before {
                disk::remove_file(&folder.join(before.file_name()))?;
            }
            Ok((part, turn))
        };
        let (part, turn) = keep().map_err(|error: io::Error| trouble("keep a part", &error))?;
        self.rolling.after(&upload.id, &part, hasher, turn.is_some());
        Ok(part)
    }

    /// The parts that have arrived, by number; none if there is no such upload.
    pub async fn parts(
        self: Arc<Self>,
        upload: ObjectUpload,
    ) -> Result<Option<Vec<UploadPart>>, ObjectError> {
        blocking(move || {
            if self.about(&upload)?.is_none() {
                return Ok(None);
            }
            let parts = self.stored_parts(&upload)?.into_values();
            Ok(Some(parts.map(|stored| stored.part).collect()))
        })
        .await
    }

    /// Makes an object of all parts. The upload stays if that fails.
    pub async fn complete_upload(
        self: Arc<Self>,
        upload: ObjectUpload,
        expected: Option<B3>,
    ) -> Result<ObjectInfo, ObjectError> {
        blocking(move || {
            let (_, about) = self.open_upload(&upload)?;
            // From now on nobody begins to write behind the parts that there are.
            let followed = self.rolling.end(&upload.id);
            let parts: Vec<_> = self.stored_parts(&upload)?.into_values().collect();
            if parts.is_empty() {
                return Err(mismatch("no part has arrived"));
            }
            let joined = self.join(&upload, &parts, followed.as_ref());
            let (scratch, b3) = joined.map_err(|error| trouble("put parts together", &error))?;
            check_hash(expected.as_ref(), &b3)?;
            let bytes = parts.iter().map(|stored| stored.part.bytes).sum();
            let label = Label { key: about.key, media_type: about.media_type, bytes, b3 };
            let info = self.publish(label, scratch)?;
            self.remove_upload(&upload.id)?;
            Ok(info)
        })
        .await
    }

    /// Gives an upload up, with all its parts.
    pub async fn abort_upload(self: Arc<Self>, upload: ObjectUpload) -> Result<(), ObjectError> {
        blocking(move || match self.about(&upload)? {
            Some(_) => self.remove_upload(&upload.id),
            None => Ok(()),
        })
        .await
    }

    /// Removes uploads begun before this moment and says how many bytes that freed.
    pub(super) fn sweep_uploads(&self, before: Timestamp) -> Result<u64, ObjectError> {
        let ids = disk::names(&self.layout.uploads);
        let ids = ids.map_err(|error| trouble("list uploads", &error))?;
        let mut freed = 0;
        for id in ids {
            let Some(about) = self.about_of(&id)? else { continue };
            if about.begun_at < before {
                let upload = ObjectUpload { key: about.key, id };
                let parts = self.stored_parts(&upload)?;
                freed += parts.values().map(|stored| stored.part.bytes).sum::<u64>();
                self.remove_upload(&upload.id)?;
            }
        }
        Ok(freed)
    }

    /// The folder of an upload and what it becomes.
    fn open_upload(&self, upload: &ObjectUpload) -> Result<(PathBuf, UploadInfo), ObjectError> {
        let about = self.about(upload)?.ok_or_else(|| not_found("upload"))?;
        Ok((self.layout.uploads.join(&upload.id), about))
    }

    /// What an upload becomes, if it is one for this key.
    fn about(&self, upload: &ObjectUpload) -> Result<Option<UploadInfo>, ObjectError> {
        Ok(self.about_of(&upload.id)?.filter(|about| about.key == upload.key))
    }

    fn about_of(&self, id: &str) -> Result<Option<UploadInfo>, ObjectError> {
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let read = || match fs::read(self.layout.uploads.join(id).join(ABOUT)) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        read().map_err(|error| trouble("read an upload", &error))
    }

    /// The newest file of each part.
    fn stored_parts(
        &self,
        upload: &ObjectUpload,
    ) -> Result<BTreeMap<u32, StoredPart>, ObjectError> {
        let folder = self.layout.uploads.join(&upload.id);
        let read = || {
            let mut names = disk::names(&folder)?;
            names.sort();
            let mut parts = BTreeMap::new();
            for name in names {
                match StoredPart::read(&folder, &name) {
                    Ok(Some(stored)) => drop(parts.insert(stored.part.number, stored)),
                    Ok(None) => {}
                    // Its successor has just come.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(parts)
        };
        read().map_err(|error| trouble("list the parts of an upload", &error))
    }

    /// One file of all parts. Their hash is made only when it is not known yet.
    fn join(
        &self,
        upload: &ObjectUpload,
        parts: &[StoredPart],
        followed: Option<&RollingUpload>,
    ) -> io::Result<(Scratch, B3)> {
        let folder = self.layout.uploads.join(&upload.id);
        let tags = parts.iter().map(|stored| stored.part.tag.as_str());
        let known = followed.and_then(|followed| followed.hash_of(tags));
        let at_rest = followed.is_some_and(RollingUpload::is_at_rest);
        if let Some(b3) = known.clone().filter(|_| at_rest)
            && let Some(scratch) = self.share_whole(&folder, parts)?
        {
            return Ok((scratch, b3));
        }
        let scratch = Scratch::new(&self.layout.tmp)?;
        let mut whole = scratch.create()?;
        let mut hasher = blake3::Hasher::new();
        for stored in parts {
            let mut bytes = stored.open(&folder)?;
            let before = hasher.count();
            if known.is_none() {
                let mut piece = vec![0; PIECE_BYTES];
                loop {
                    let read = bytes.read(&mut piece)?;
                    if read == 0 {
                        break;
                    }
                    hasher.update(&piece[..read]);
                    whole.write_all(&piece[..read])?;
                }
                stored.check(hasher.count() - before)?;
            } else {
                // The kernel moves the bytes, and some file systems only note that they are shared.
                stored.check(io::copy(&mut bytes, &mut whole)?)?;
            }
        }
        whole.sync_data()?;
        let b3 = known.unwrap_or_else(|| rolling::hash(&hasher));
        Ok((scratch, b3))
    }

    /// A second name for the one file that all parts lie in; none if there is no such file, or the
    /// disk knows no second names. Nobody may be writing to it, now or later.
    fn share_whole(&self, folder: &Path, parts: &[StoredPart]) -> io::Result<Option<Scratch>> {
        let mut end = 0;
        for stored in parts {
            if stored.offset != Some(end) {
                return Ok(None);
            }
            end += stored.part.bytes;
        }
        let path = folder.join(WHOLE);
        let file = File::options().write(true).open(&path)?;
        if file.metadata()?.len() != end {
            // The beginning of a part that never arrived.
            file.set_len(end)?;
            file.sync_data()?;
        }
        let scratch = Scratch::new(&self.layout.tmp)?;
        Ok(fs::hard_link(&path, scratch.path()).is_ok().then_some(scratch))
    }

    fn remove_upload(&self, id: &str) -> Result<(), ObjectError> {
        self.rolling.end(id);
        let remove = || {
            let scratch = Scratch::new(&self.layout.tmp)?;
            match fs::rename(self.layout.uploads.join(id), scratch.path()) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                moved => moved.and_then(|()| disk::sync_folder(&self.layout.uploads)),
            }
        };
        remove().map_err(|error: io::Error| trouble("remove an upload", &error))
    }
}
