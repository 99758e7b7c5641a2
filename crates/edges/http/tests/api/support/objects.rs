//! An artifact store in memory that tells how far it was read and written, and can stand still.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use tokio::sync::watch;
use wharf_memory::MemoryObjects;
use wharf_ports::{
    BoundVersions, ByteStream, Method, ObjectBody, ObjectEntry, ObjectError, ObjectInfo,
    ObjectStore, ObjectUpload, ObjectVersion, PutObject, SystemClock, UploadPart,
};
use wharf_vocab::{B3, Timestamp};

type Answer<T> = BoxFuture<'static, Result<T, ObjectError>>;

/// What is handed out at once.
const PIECE_BYTES: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Objects {
    pub(crate) inner: MemoryObjects,
    /// Bytes of bodies that were taken, and of objects that were handed out.
    taken: Arc<AtomicU64>,
    given: Arc<AtomicU64>,
    /// Bodies that broke off.
    broken: Arc<AtomicU64>,
    /// Whether bodies are taken now.
    open: watch::Sender<bool>,
}

impl Objects {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryObjects::new(Arc::new(SystemClock)),
            taken: Arc::default(),
            given: Arc::default(),
            broken: Arc::default(),
            open: watch::Sender::new(true),
        })
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.inner.keys()
    }

    /// Stops taking bodies, or goes on.
    pub(crate) fn set_open(&self, open: bool) {
        self.open.send_replace(open);
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }

    pub(crate) fn given(&self) -> u64 {
        self.given.load(Ordering::SeqCst)
    }

    pub(crate) fn broken(&self) -> u64 {
        self.broken.load(Ordering::SeqCst)
    }

    fn slowly(&self, body: ByteStream) -> ByteStream {
        let (taken, broken) = (Arc::clone(&self.taken), Arc::clone(&self.broken));
        let open = self.open.subscribe();
        let pieces = stream::unfold((body, open), move |(mut body, mut open)| {
            let (taken, broken) = (Arc::clone(&taken), Arc::clone(&broken));
            async move {
                open.wait_for(|open| *open).await.ok()?;
                let piece = body.next().await?;
                let bytes = piece.as_ref().map_or(0, |piece| piece.len() as u64);
                taken.fetch_add(bytes, Ordering::SeqCst);
                broken.fetch_add(u64::from(piece.is_err()), Ordering::SeqCst);
                Some((piece, (body, open)))
            }
        });
        pieces.boxed()
    }
}

impl ObjectStore for Objects {
    fn presign(&self, method: Method, key: &str, lifetime_s: u64) -> String {
        self.inner.presign(method, key, lifetime_s)
    }

    fn presign_version(&self, located: &ObjectVersion, holder: &str, lifetime_s: u64) -> String {
        self.inner.presign_version(located, holder, lifetime_s)
    }

    fn locate(&self, wanted: ObjectVersion) -> Answer<Option<ObjectVersion>> {
        self.inner.locate(wanted)
    }

    fn get_version(&self, wanted: ObjectVersion) -> Answer<Option<ObjectBody>> {
        self.inner.get_version(wanted)
    }

    fn origin(&self) -> String {
        self.inner.origin()
    }

    fn head(&self, key: String) -> Answer<Option<ObjectInfo>> {
        self.inner.head(key)
    }

    fn get(&self, key: String, range: Option<Range<u64>>) -> Answer<Option<ObjectBody>> {
        let (found, given) = (self.inner.get(key, range), Arc::clone(&self.given));
        let cut = move |body: ObjectBody| {
            let pieces =
                body.stream.flat_map(|piece| {
                    let piece = piece.expect("memory does not fail");
                    let starts = (0..piece.len()).step_by(PIECE_BYTES);
                    stream::iter(starts.map(move |start| {
                        Ok(piece.slice(start..piece.len().min(start + PIECE_BYTES)))
                    }))
                });
            let counted = pieces.inspect(move |piece: &Result<bytes::Bytes, ObjectError>| {
                let bytes = piece.as_ref().map_or(0, |piece| piece.len() as u64);
                given.fetch_add(bytes, Ordering::SeqCst);
            });
            ObjectBody { info: body.info, stream: counted.boxed() }
        };
        async move { Ok(found.await?.map(cut)) }.boxed()
    }

    fn put(&self, put: PutObject, body: ByteStream) -> Answer<ObjectInfo> {
        self.inner.put(put, self.slowly(body))
    }

    fn copy(&self, from: String, to: String) -> Answer<ObjectInfo> {
        self.inner.copy(from, to)
    }

    fn delete(&self, key: String) -> Answer<()> {
        self.inner.delete(key)
    }

    fn list(
        &self,
        prefix: String,
        after: Option<String>,
        limit: usize,
    ) -> Answer<Vec<ObjectEntry>> {
        self.inner.list(prefix, after, limit)
    }

    fn begin_upload(&self, key: String, media_type: String) -> Answer<String> {
        self.inner.begin_upload(key, media_type)
    }

    fn put_part(
        &self,
        upload: ObjectUpload,
        number: u32,
        bytes: u64,
        body: ByteStream,
    ) -> Answer<UploadPart> {
        self.inner.put_part(upload, number, bytes, self.slowly(body))
    }

    fn parts(&self, upload: ObjectUpload) -> Answer<Option<Vec<UploadPart>>> {
        self.inner.parts(upload)
    }

    fn complete_upload(&self, upload: ObjectUpload, expected: Option<B3>) -> Answer<ObjectInfo> {
        self.inner.complete_upload(upload, expected)
    }

    fn abort_upload(&self, upload: ObjectUpload) -> Answer<()> {
        self.inner.abort_upload(upload)
    }

    fn sweep(&self, before: Timestamp, bound: BoundVersions) -> Answer<u64> {
        self.inner.sweep(before, bound)
    }
}
