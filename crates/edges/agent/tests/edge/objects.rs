//! An artifact store that can be told to wait or to break off.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use tokio::sync::watch;
use wharf_memory::MemoryObjects;
use wharf_ports::{
    BoundVersions, ByteStream, Method, ObjectBody, ObjectEntry, ObjectError, ObjectErrorKind,
    ObjectInfo, ObjectStore, ObjectUpload, ObjectVersion, PutObject, SystemClock, UploadPart,
};
use wharf_vocab::{B3, Timestamp};

type Answer<T> = BoxFuture<'static, Result<T, ObjectError>>;

/// A store in memory whose reads and writes a test can hold up or cut off.
#[derive(Debug)]
pub(crate) struct Moody {
    pub(crate) inner: MemoryObjects,
    answering: watch::Sender<bool>,
    asked: watch::Sender<usize>,
    cuts: Arc<AtomicUsize>,
}

impl Moody {
    pub(crate) fn new() -> Self {
        Self {
            inner: MemoryObjects::new(Arc::new(SystemClock)),
            answering: watch::Sender::new(true),
            asked: watch::Sender::new(0),
            cuts: Arc::default(),
        }
    }

    /// Whether files are given and taken, or everybody waits.
    pub(crate) fn answer(&self, answering: bool) {
        self.answering.send_replace(answering);
    }

    /// Breaks off in the middle of the next so many reads.
    pub(crate) fn cut(&self, reads: usize) {
        self.cuts.store(reads, Ordering::SeqCst);
    }

    /// Waits until so many files were asked for or offered.
    pub(crate) async fn asked(&self, count: usize) {
        let mut asked = self.asked.subscribe();
        let asked = tokio::time::timeout(crate::agent::LONG, asked.wait_for(|n| *n >= count));
        asked.await.expect("the store is asked").expect("the store lives");
    }

    /// How many times files were asked for or offered.
    pub(crate) fn count(&self) -> usize {
        *self.asked.borrow()
    }

    fn when_answering<T: Send + 'static>(&self, then: Answer<T>) -> Answer<T> {
        self.asked.send_modify(|asked| *asked += 1);
        let mut answering = self.answering.subscribe();
        async move {
            answering.wait_for(|answering| *answering).await.expect("the store lives");
            then.await
        }
        .boxed()
    }
}

impl ObjectStore for Moody {
    fn presign(&self, method: Method, key: &str, lifetime_s: u64) -> String {
        self.inner.presign(method, key, lifetime_s)
    }

    fn presign_version(&self, located: &ObjectVersion, holder: &str, lifetime_s: u64) -> String {
        self.inner.presign_version(located, holder, lifetime_s)
    }

    fn origin(&self) -> String {
        self.inner.origin()
    }

    fn head(&self, key: String) -> Answer<Option<ObjectInfo>> {
        self.inner.head(key)
    }

    fn locate(&self, wanted: ObjectVersion) -> Answer<Option<ObjectVersion>> {
        self.inner.locate(wanted)
    }

    fn get(&self, key: String, range: Option<Range<u64>>) -> Answer<Option<ObjectBody>> {
        self.inner.get(key, range)
    }

    fn get_version(&self, wanted: ObjectVersion) -> Answer<Option<ObjectBody>> {
        let inner = self.inner.clone();
        // Only then it is looked what is there.
        let body = self.when_answering(async move { inner.get_version(wanted).await }.boxed());
        let cuts = Arc::clone(&self.cuts);
        async move {
            let body = body.await?;
            let fewer = |cuts: usize| cuts.checked_sub(1);
            if cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_err() {
                return Ok(body);
            }
            let error = ObjectError::new(ObjectErrorKind::Unavailable, "the store broke off");
            let broken = stream::iter([Ok("a".into()), Err(error)]).boxed();
            Ok(body.map(|body| ObjectBody { stream: broken, ..body }))
        }
        .boxed()
    }

    fn put(&self, put: PutObject, body: ByteStream) -> Answer<ObjectInfo> {
        self.when_answering(self.inner.put(put, body))
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
        self.inner.put_part(upload, number, bytes, body)
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
