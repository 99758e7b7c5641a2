//! The artifact store: bytes under keys, in files of the core's own or in any S3.
//!
//! A key is `{world}/{path}`; who may use it is decided before it gets here. What was reported as
//! written survives a crash. Nothing here is transacted with the journal: an object that was
//! written and never recorded is removed later, and a record is made only of what was written.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use wharf_vocab::{B3, Code, Fault, Timestamp};

/// Bytes on their way, in pieces of any size.
pub type ByteStream = BoxStream<'static, Result<Bytes, ObjectError>>;

/// What an artifact store answers with.
pub type ObjectAnswer<T> = BoxFuture<'static, Result<T, ObjectError>>;

/// What the engine needs of an artifact store.
pub trait ObjectStore: Send + Sync + 'static {
    /// An address under which whoever holds it can do this one thing to this one key, for so
    /// long. It is a capability: it must never be stored, logged or shown.
    fn presign(&self, method: Method, key: &str, lifetime_s: u64) -> String;

    /// An address under which whoever holds it can read one version that was
    /// [located](Self::locate), for so long and for as long as the holder may: an attempt, which a
    /// store that can ask [asks](AddressGate) about.
    fn presign_version(&self, located: &ObjectVersion, holder: &str, lifetime_s: u64) -> String;

    /// Where presigned addresses lead: scheme, host and port, such as `http://127.0.0.1:7421`.
    fn origin(&self) -> String;

    /// What is known of an object; `None` if there is none.
    fn head(&self, key: String) -> ObjectAnswer<Option<ObjectInfo>>;

    /// An object's bytes, or those of a range that lies within it; `None` if there is no object.
    fn get(&self, key: String, range: Option<Range<u64>>) -> ObjectAnswer<Option<ObjectBody>>;

    /// A version as the store has it now, under the name it has now; `None` if it is gone. A store
    /// that keeps no versions looks whether what is there is still the same.
    fn locate(&self, wanted: ObjectVersion) -> ObjectAnswer<Option<ObjectVersion>>;

    /// The bytes of one version, also if it was replaced since; `None` where
    /// [`locate`](Self::locate) finds none.
    fn get_version(&self, wanted: ObjectVersion) -> ObjectAnswer<Option<ObjectBody>>;

    /// Writes an object whole or not at all. What was there before is replaced at once when the
    /// last byte is safe. A body that is not as long or does not have the hash it should is an
    /// [`ObjectErrorKind::Mismatch`], and nothing is written.
    fn put(&self, put: PutObject, body: ByteStream) -> ObjectAnswer<ObjectInfo>;

    /// Makes an object a copy of another one; doing it twice changes nothing more.
    fn copy(&self, from: String, to: String) -> ObjectAnswer<ObjectInfo>;

    /// Removes an object; one that is not there is as good as removed.
    fn delete(&self, key: String) -> ObjectAnswer<()>;

    /// Keys that begin with a prefix (a world's `{world}/`, a run's `{world}/@{run}/`), behind
    /// `after` in the order of their bytes.
    fn list(
        &self,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> ObjectAnswer<Vec<ObjectEntry>>;

    /// Begins an upload in parts; it can be taken up again after a restart by its id and key.
    fn begin_upload(&self, key: String, media_type: String) -> ObjectAnswer<String>;

    /// Takes one part, from 1 to 10,000; the same number again replaces it. All but the last have
    /// at least [`UPLOAD_PART_BYTES_MIN`](wharf_vocab::limits::UPLOAD_PART_BYTES_MIN) bytes.
    fn put_part(
        &self,
        upload: ObjectUpload,
        number: u32,
        bytes: u64,
        body: ByteStream,
    ) -> ObjectAnswer<UploadPart>;

    /// The parts that have arrived, by number; `None` if there is no such upload.
    fn parts(&self, upload: ObjectUpload) -> ObjectAnswer<Option<Vec<UploadPart>>>;

    /// Makes an object of all parts. With an expected hash, an object that has another is not
    /// left behind.
    fn complete_upload(
        &self,
        upload: ObjectUpload,
        expected: Option<B3>,
    ) -> ObjectAnswer<ObjectInfo>;

    /// Gives an upload up, with all its parts.
    fn abort_upload(&self, upload: ObjectUpload) -> ObjectAnswer<()>;

    /// Removes what nobody will ask for any more: unfinished uploads begun before this moment
    /// and, where versions are kept, versions that were replaced before it and that nobody is
    /// bound to. Says how many bytes that freed, as far as it is known.
    fn sweep(&self, before: Timestamp, bound: BoundVersions) -> ObjectAnswer<u64>;
}

/// Versions that must stay although they were replaced: their keys and names.
pub type BoundVersions = BTreeSet<(String, String)>;

/// Whether an address is still good. An embedded store asks before it takes or gives a byte, so
/// that an address ends with the attempt it was made for; stores elsewhere cannot ask.
pub trait AddressGate: Send + Sync + 'static {
    /// Whether an attempt that is under way may write this key now.
    fn may_write(&self, key: &str) -> bool;

    /// What whoever holds an address for this version of a key may read by it now, if it may: the
    /// bytes it gets must be those.
    fn may_read(&self, key: &str, version: &str, holder: &str) -> Option<ObjectVersion>;

    /// Takes note that the bytes of an object are not what was written.
    fn damaged(&self, key: &str);
}

/// What a presigned address is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reading.
    Get,
    /// Writing.
    Put,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutObject {
    /// Where.
    pub key: String,
    /// What kind of data it is.
    pub media_type: String,
    /// How many bytes there will be, if that is known.
    pub bytes: Option<u64>,
    /// Their hash, if it is known.
    pub b3: Option<B3>,
}

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// How many bytes it has.
    pub bytes: u64,
    /// Their hash, if whoever wrote it or the store knows it.
    pub b3: Option<B3>,
    /// What kind of data it is.
    pub media_type: String,
    /// When it was written.
    pub written_at: Timestamp,
    /// Changes whenever the object is written.
    pub tag: String,
    /// What the store calls this version for as long as it keeps it; `None` where it keeps none.
    pub version: Option<String>,
}

/// One version of an object, as somebody saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion {
    /// The object's key.
    pub key: String,
    /// How many bytes it had.
    pub bytes: u64,
    /// Their hash, if it was known.
    pub b3: Option<B3>,
    /// What kind of data it is.
    pub media_type: String,
    /// What the store called it, where it keeps versions.
    pub version: Option<String>,
    /// The tag it had, where the store keeps no versions.
    pub tag: Option<String>,
}

impl ObjectVersion {
    /// The version of which this is known. A tag matters only where there is no version.
    pub fn of(key: String, info: ObjectInfo) -> Self {
        let ObjectInfo { bytes, b3, media_type, tag, version, .. } = info;
        let tag = version.is_none().then_some(tag);
        Self { key, bytes, b3, media_type, version, tag }
    }

    /// What is known of it, as of a whole object.
    pub fn into_info(self, written_at: Timestamp) -> ObjectInfo {
        let Self { bytes, b3, media_type, version, tag, .. } = self;
        let tag = tag.or_else(|| version.clone()).unwrap_or_default();
        ObjectInfo { bytes, b3, media_type, written_at, tag, version }
    }
}

/// An object that is being read.
pub struct ObjectBody {
    /// What is known of the whole object.
    pub info: ObjectInfo,
    /// The bytes, or those of the range.
    pub stream: ByteStream,
}

impl fmt::Debug for ObjectBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectBody").field("info", &self.info).finish_non_exhaustive()
    }
}

/// An object as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectEntry {
    /// Its key.
    pub key: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// When it was written.
    pub written_at: Timestamp,
}

/// An upload in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectUpload {
    /// The key of what it becomes.
    pub key: String,
    /// Its id.
    pub id: String,
}

/// A part that has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadPart {
    /// Its number, from 1.
    pub number: u32,
    /// How many bytes it has.
    pub bytes: u64,
    /// Changes whenever the part is written.
    pub tag: String,
}

/// What kind of trouble the artifact store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectErrorKind {
    /// It cannot be reached, does not answer, or says that it cannot go on now.
    Unavailable,
    /// No room is left.
    Full,
    /// It does not let the core in.
    Denied,
    /// There is no such object or upload.
    NotFound,
    /// What arrived is not what was announced.
    Mismatch,
    /// Whoever sends the bytes broke off.
    Interrupted,
    /// What is kept is not what was written.
    Damaged,
}

/// The artifact store could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ObjectError {
    /// What kind of trouble it is.
    pub kind: ObjectErrorKind,
    /// For the log; not for peers, and without any address that is a capability.
    pub message: String,
}

impl ObjectError {
    /// An error of this kind.
    pub fn new(kind: ObjectErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// The error as whoever asked may see it.
impl From<ObjectError> for Fault {
    fn from(error: ObjectError) -> Self {
        match error.kind {
            ObjectErrorKind::Unavailable => Fault::new(
                Code::StorageUnavailable,
                "The artifact store cannot be reached or does not answer; try again.",
            ),
            ObjectErrorKind::Full => Fault::new(
                Code::StorageFull,
                "The artifact store has no room left; free some space and try again.",
            ),
            ObjectErrorKind::Denied => Fault::new(
                Code::StorageDenied,
                "The artifact store does not let this core in; check its keys and bucket.",
            ),
            ObjectErrorKind::NotFound => {
                Fault::new(Code::ArtifactNotFound, "There is no such file in the artifact store.")
            }
            ObjectErrorKind::Mismatch => Fault::new(
                Code::ArtifactChecksum,
                "What arrived does not have the size or hash it was said to have; send it again.",
            ),
            ObjectErrorKind::Interrupted => Fault::new(
                Code::RequestInvalid,
                "The transfer broke off before all of it had arrived; send it again.",
            ),
            ObjectErrorKind::Damaged => Fault::new(
                Code::ArtifactDamaged,
                "What the artifact store keeps of this file is not what was written.",
            ),
        }
    }
}
