//! Reading one version of an object, also after it was replaced.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use wharf_ports::{ObjectBody, ObjectError, ObjectInfo, ObjectVersion};
use wharf_vocab::{B3, Timestamp};

use super::disk::{self, trouble};
use super::head::{self, ObjectHead};
use super::{FileObjects, blocking, read};
use crate::rolling;

impl FileObjects {
    /// A version under the name it has now; none if it is gone.
    pub async fn locate(
        self: Arc<Self>,
        wanted: ObjectVersion,
    ) -> Result<Option<ObjectVersion>, ObjectError> {
        let found = blocking(move || {
            let found = self.open_version(&wanted)?;
            Ok(found.map(|(version, _)| ObjectVersion { version: Some(version), ..wanted }))
        });
        found.await
    }

    /// The bytes of a version, or those of a range that lies within it; none if it is gone.
    pub async fn get_version(
        self: Arc<Self>,
        wanted: ObjectVersion,
        range: Option<Range<u64>>,
    ) -> Result<Option<ObjectBody>, ObjectError> {
        blocking(move || {
            let Some((version, file)) = self.open_version(&wanted)? else { return Ok(None) };
            let written_at = Timestamp(head::written_ms(&version).unwrap_or_default());
            let wanted = ObjectVersion { version: Some(version), ..wanted };
            read::body(wanted.into_info(written_at), file, range).map(Some)
        })
        .await
    }

    /// What the endpoint gives by an address that nobody says anything about: a version as it
    /// lies there.
    pub(crate) async fn look_at(
        self: Arc<Self>,
        key: String,
        version: String,
    ) -> Result<Option<ObjectInfo>, ObjectError> {
        blocking(move || {
            let folder = self.layout.place(&key).folder;
            let look = || {
                let Some(file) = named(&folder, &version)? else { return Ok(None) };
                let bytes = file.metadata()?.len();
                let head = ObjectHead::read(&folder)?;
                let current = head.as_ref().filter(|head| head.version == version);
                let b3 = current.map(|head| head.b3.clone());
                let media_type = head.map(|head| head.media_type).unwrap_or_default();
                let written_at = Timestamp(head::written_ms(&version).unwrap_or_default());
                let (tag, version) = (version.clone(), Some(version));
                Ok(Some(ObjectInfo { bytes, b3, media_type, written_at, tag, version }))
            };
            look().map_err(|error: io::Error| trouble("look at a version", &error))
        })
        .await
    }

    /// A version by its name, or else by what it holds: one that came out of a backup has another
    /// name than the one it had.
    fn open_version(&self, wanted: &ObjectVersion) -> Result<Option<(String, File)>, ObjectError> {
        let folder = self.layout.place(&wanted.key).folder;
        let open = || {
            if let Some(name) = &wanted.version
                && let Some(file) = named(&folder, name)?
            {
                return Ok(Some((name.clone(), file)));
            }
            let Some(b3) = &wanted.b3 else { return Ok(None) };
            by_content(&folder, b3, wanted.bytes)
        };
        open().map_err(|error: io::Error| trouble("open a version", &error))
    }
}

/// The version of an object with this name; none if there is none.
fn named(folder: &Path, name: &str) -> io::Result<Option<File>> {
    if !head::is_version(name) {
        return Ok(None);
    }
    match File::open(folder.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// The version of an object that has so many bytes and this hash: what the head says is believed,
/// of others the bytes are looked at.
pub(super) fn by_content(folder: &Path, b3: &B3, bytes: u64) -> io::Result<Option<(String, File)>> {
    if let Some(head) = ObjectHead::read(folder)?.filter(|head| head.b3 == *b3)
        && let Some(file) = named(folder, &head.version)?
    {
        return Ok(Some((head.version, file)));
    }
    for name in disk::names(folder)? {
        if let Some(file) = named(folder, &name)?
            && has_hash(file, b3, bytes)?
            && let Some(file) = named(folder, &name)?
        {
            return Ok(Some((name, file)));
        }
    }
    Ok(None)
}

/// Whether a file has so many bytes and this hash.
fn has_hash(file: File, b3: &B3, bytes: u64) -> io::Result<bool> {
    if file.metadata()?.len() != bytes {
        return Ok(false);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(rolling::hash(&hasher) == *b3)
}
