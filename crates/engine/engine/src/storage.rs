//! The artifact store as the engine uses it: patiently, with hashes, and counted.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use wharf_ports::{
    ByteStream, Method, ObjectError, ObjectErrorKind, ObjectInfo, ObjectStore, ObjectVersion,
    PutObject,
};
use wharf_vocab::{B3, Code, Fault};

/// Objects that are looked at in one page of a list; a store may look at all of them for each page.
pub(crate) const LIST_PAGE: usize = 20_000;
/// First pause before something is tried again; it doubles.
const PAUSE: Duration = Duration::from_millis(50);

/// How often something is tried that a store in trouble did not do. Stores that are far away
/// have tried for a few seconds themselves before they say so.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tries {
    /// Somebody waits for an answer.
    Short,
    /// Work would be lost.
    Long,
}

impl Tries {
    fn tries(self) -> u32 {
        match self {
            Self::Short => 2,
            Self::Long => 3,
        }
    }
}

/// Does something as often as it takes until the store is not in trouble, within patience.
pub(crate) async fn patiently<T, F>(
    patience: Tries,
    mut act: impl FnMut() -> F,
) -> Result<T, ObjectError>
where
    F: Future<Output = Result<T, ObjectError>>,
{
    let mut pause = PAUSE;
    let mut left = patience.tries();
    loop {
        left -= 1;
        match act().await {
            Err(error) if error.kind == ObjectErrorKind::Unavailable && left > 0 => {
                tracing::debug!(%error, "the artifact store is in trouble; trying again");
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            other => return other,
        }
    }
}

/// What is known of an object.
pub(crate) async fn head(
    objects: &dyn ObjectStore,
    key: &str,
    patience: Tries,
) -> Result<Option<ObjectInfo>, ObjectError> {
    patiently(patience, || objects.head(key.to_owned())).await
}

/// Writes bytes that are at hand.
pub(crate) async fn put_bytes(
    objects: &dyn ObjectStore,
    key: &str,
    media_type: &str,
    bytes: Bytes,
) -> Result<ObjectInfo, ObjectError> {
    let info = patiently(Tries::Long, || {
        let put = PutObject {
            key: key.to_owned(),
            media_type: media_type.to_owned(),
            bytes: Some(length(&bytes)),
            b3: Some(hash(&bytes)),
        };
        objects.put(put, futures::stream::iter([Ok(bytes.clone())]).boxed())
    });
    let info = info.await?;
    Ok(ObjectInfo { b3: Some(hash(&bytes)), ..info })
}

/// The hash of an object's bytes, read in pieces; `None` if it is not there any more or has been
/// replaced since it was looked at.
pub(crate) async fn hash_object(
    objects: &dyn ObjectStore,
    key: &str,
    seen: &ObjectInfo,
) -> Result<Option<B3>, ObjectError> {
    let found = patiently(Tries::Long, || objects.get(key.to_owned(), None)).await?;
    let Some(mut body) = found.filter(|body| body.info.tag == seen.tag) else { return Ok(None) };
    let mut hasher = blake3::Hasher::new();
    while let Some(piece) = body.stream.try_next().await? {
        hasher.update(&piece);
    }
    Ok(Some(b3_of(&hasher.finalize())))
}

/// Removes all objects whose keys begin with a prefix and are wanted gone; says how many there
/// were and how many bytes they had.
pub(crate) async fn delete_all(
    objects: &dyn ObjectStore,
    prefix: &str,
) -> Result<(u64, u64), ObjectError> {
    let (mut count, mut bytes) = (0, 0_u64);
    let mut after = None;
    loop {
        let page = objects.list(prefix.to_owned(), after.take(), LIST_PAGE).await?;
        let Some(last) = page.last() else { return Ok((count, bytes)) };
        after = Some(last.key.clone());
        for entry in page {
            objects.delete(entry.key).await?;
            count += 1;
            bytes = bytes.saturating_add(entry.bytes);
        }
    }
}

/// An address to use one key by.
pub(crate) fn presign(
    objects: &dyn ObjectStore,
    method: Method,
    key: &str,
    lifetime_s: u64,
) -> String {
    count_presign(method);
    objects.presign(method, key, lifetime_s)
}

/// An address to read one version by.
pub(crate) fn presign_version(
    objects: &dyn ObjectStore,
    located: &ObjectVersion,
    holder: &str,
    lifetime_s: u64,
) -> String {
    count_presign(Method::Get);
    objects.presign_version(located, holder, lifetime_s)
}

fn count_presign(method: Method) {
    let name = match method {
        Method::Get => "get",
        Method::Put => "put",
    };
    metrics::counter!("wharf_artifact_presigns_total", "method" => name).increment(1);
}

/// Counts whole reads that found other bytes than were written.
pub(crate) fn count_damaged() {
    metrics::counter!("wharf_artifact_damaged_total").increment(1);
}

/// Lets somebody know how many bytes pass.
pub(crate) fn counted(
    stream: ByteStream,
    mut count: impl FnMut(u64) + Send + 'static,
) -> ByteStream {
    let stream = stream.inspect_ok(move |piece| count(length(piece)));
    stream.boxed()
}

/// Counts bytes that the core read from the artifact store for somebody.
pub(crate) fn count_read(bytes: u64) {
    metrics::counter!("wharf_artifact_bytes_read_total").increment(bytes);
}

/// Counts bytes that the core wrote to the artifact store for somebody.
pub(crate) fn count_written(bytes: u64) {
    metrics::counter!("wharf_artifact_bytes_written_total").increment(bytes);
}

/// Counts objects that no record spoke of and that were cleared away.
pub(crate) fn count_leftovers(objects: u64, bytes: u64) {
    metrics::counter!("wharf_artifact_leftovers_total").increment(objects);
    metrics::counter!("wharf_artifact_leftover_bytes_total").increment(bytes);
}

/// The artifact store, if the core has one.
pub(crate) fn required(
    objects: Option<&Arc<dyn ObjectStore>>,
) -> Result<Arc<dyn ObjectStore>, Fault> {
    let none = || Fault::new(Code::StorageUnavailable, "This core has no artifact store.");
    objects.cloned().ok_or_else(none)
}

pub(crate) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn hash(bytes: &[u8]) -> B3 {
    b3_of(&blake3::hash(bytes))
}

fn b3_of(hash: &blake3::Hash) -> B3 {
    B3::parse(hash.to_hex().as_str()).expect("64 digits of hex are a hash")
}
