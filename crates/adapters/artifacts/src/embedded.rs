//! The store of files together with addresses that lead to its endpoint.

use std::ops::Range;
use std::sync::Arc;

use futures::FutureExt as _;
use wharf_ports::{
    BoundVersions, ByteStream, Method, ObjectAnswer, ObjectBody, ObjectEntry, ObjectInfo,
    ObjectStore, ObjectUpload, ObjectVersion, PutObject, UploadPart,
};
use wharf_vocab::limits::PRESIGN_S_MIN;
use wharf_vocab::{B3, Timestamp};

use crate::FileObjects;
use crate::presign::Presigner;

/// The embedded artifact store: the core itself reads and writes files, and others use addresses
/// that lead to an [`Endpoint`](crate::Endpoint).
pub struct EmbeddedObjects {
    files: Arc<FileObjects>,
    presigner: Presigner,
}

impl EmbeddedObjects {
    pub(crate) fn new(files: Arc<FileObjects>, presigner: Presigner) -> Self {
        Self { files, presigner }
    }

    fn files(&self) -> Arc<FileObjects> {
        Arc::clone(&self.files)
    }
}

impl ObjectStore for EmbeddedObjects {
    fn presign(&self, method: Method, key: &str, lifetime_s: u64) -> String {
        self.presigner.presign(method, key, lifetime_s)
    }

    fn presign_version(&self, located: &ObjectVersion, holder: &str, lifetime_s: u64) -> String {
        let version = located.version.as_deref();
        // Its end is the attempt's, which the gate knows; its time may be longer.
        let lifetime_s = lifetime_s.max(PRESIGN_S_MIN);
        self.presigner.presign_version(&located.key, version, Some(holder), lifetime_s)
    }

    fn origin(&self) -> String {
        self.presigner.origin()
    }

    fn head(&self, key: String) -> ObjectAnswer<Option<ObjectInfo>> {
        self.files().head(key).boxed()
    }

    fn get(&self, key: String, range: Option<Range<u64>>) -> ObjectAnswer<Option<ObjectBody>> {
        self.files().get(key, range).boxed()
    }

    fn locate(&self, wanted: ObjectVersion) -> ObjectAnswer<Option<ObjectVersion>> {
        self.files().locate(wanted).boxed()
    }

    fn get_version(&self, wanted: ObjectVersion) -> ObjectAnswer<Option<ObjectBody>> {
        self.files().get_version(wanted, None).boxed()
    }

    fn put(&self, put: PutObject, body: ByteStream) -> ObjectAnswer<ObjectInfo> {
        self.files().put(put, body).boxed()
    }

    fn copy(&self, from: String, to: String) -> ObjectAnswer<ObjectInfo> {
        self.files().copy(from, to).boxed()
    }

    fn delete(&self, key: String) -> ObjectAnswer<()> {
        self.files().delete(key).boxed()
    }

    fn list(
        &self,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> ObjectAnswer<Vec<ObjectEntry>> {
        self.files().list(prefix, after, limit).boxed()
    }

    fn begin_upload(&self, key: String, media_type: String) -> ObjectAnswer<String> {
        self.files().begin_upload(key, media_type).boxed()
    }

    fn put_part(
        &self,
        upload: ObjectUpload,
        number: u32,
        bytes: u64,
        body: ByteStream,
    ) -> ObjectAnswer<UploadPart> {
        self.files().put_part(upload, number, bytes, body).boxed()
    }

    fn parts(&self, upload: ObjectUpload) -> ObjectAnswer<Option<Vec<UploadPart>>> {
        self.files().parts(upload).boxed()
    }

    fn complete_upload(
        &self,
        upload: ObjectUpload,
        expected: Option<B3>,
    ) -> ObjectAnswer<ObjectInfo> {
        self.files().complete_upload(upload, expected).boxed()
    }

    fn abort_upload(&self, upload: ObjectUpload) -> ObjectAnswer<()> {
        self.files().abort_upload(upload).boxed()
    }

    fn sweep(&self, before: Timestamp, bound: BoundVersions) -> ObjectAnswer<u64> {
        self.files().sweep(before, bound).boxed()
    }
}
