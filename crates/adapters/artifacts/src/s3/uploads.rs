//! Uploads in parts, which the server keeps.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use reqwest::Body;
use rusty_s3::Method;
use wharf_ports::{ByteStream, ObjectError, ObjectInfo, ObjectUpload, UploadPart};
use wharf_vocab::B3;

use super::get::{self, tag};
use super::put::{delete, named};
use super::replaced::StoredPart;
use super::wire::{S3Call, S3Failure};
use super::xml::{self, Record, field};
use super::{B3_HEADER, S3State};
use crate::error::{
    check_bytes, check_hash, check_part, mismatch, not_found, too_long, unavailable,
};

/// The largest part that is kept in memory, so that it can be sent again.
const KEPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Begins an upload in parts.
pub(super) async fn begin(
    shared: Arc<S3State>,
    key: String,
    media_type: String,
) -> Result<String, ObjectError> {
    let id = create(&shared, &key, &media_type, None).await?;
    shared.rolling.begin(&id);
    Ok(id)
}

/// Begins an upload in parts of an object whose hash may be known.
pub(super) async fn create(
    shared: &S3State,
    key: &str,
    media_type: &str,
    b3: Option<&B3>,
) -> Result<String, ObjectError> {
    let mut call = S3Call::new(Method::Post, shared.key(key))
        .query("uploads", "")
        .plain("content-type", media_type);
    if let Some(b3) = b3 {
        call = call.signed(B3_HEADER, b3.as_str());
    }
    let text = shared.wire.text(&call, "begin an upload").await?;
    let id = xml::text(&text, "InitiateMultipartUploadResult", "UploadId");
    id.ok_or_else(|| unreadable("which upload it has begun"))
}

/// Takes one part.
pub(super) async fn put_part(
    shared: Arc<S3State>,
    upload: ObjectUpload,
    number: u32,
    bytes: u64,
    body: ByteStream,
) -> Result<UploadPart, ObjectError> {
    check_part(number)?;
    // Some servers take parts of an upload that is not there.
    let earlier = parts_from(&shared, &upload, number - 1, 1).await?;
    let earlier = earlier.ok_or_else(|| not_found("upload"))?.0;
    let before = shared.rolling.before(&upload.id, number);
    let body = SizedBody::new(body, bytes, before);
    let part = if bytes <= KEPT_BYTES_MAX {
        let mut whole = BytesMut::new();
        let mut pieces = body.stream();
        while let Some(piece) = pieces.next().await {
            whole.extend_from_slice(&piece?);
        }
        send_part(&shared, &upload, number, whole.freeze()).await?
    } else {
        stream_part(&shared, &upload, (number, bytes), &body).await?
    };
    shared.rolling.after(&upload.id, &part, body.hasher(), false);
    shared.replaced.note(&upload.id, &part, &earlier);
    Ok(part)
}

/// Sends a part that is at hand, again if need be.
pub(super) async fn send_part(
    shared: &S3State,
    upload: &ObjectUpload,
    number: u32,
    part: Bytes,
) -> Result<UploadPart, ObjectError> {
    let bytes = part.len() as u64;
    let call = part_call(shared, upload, number).body(part);
    let answer = shared.wire.send(&call).await;
    let answer = answer.map_err(|failure| lost(&failure, "send a part"))?;
    Ok(UploadPart { number, bytes, tag: tag(answer.headers()) })
}

/// Sends a part as it comes; whoever sends it may send it again.
async fn stream_part(
    shared: &S3State,
    upload: &ObjectUpload,
    (number, bytes): (u32, u64),
    body: &SizedBody,
) -> Result<UploadPart, ObjectError> {
    let call = part_call(shared, upload, number);
    let sent = Body::wrap_stream(body.stream());
    let answer = match shared.wire.once(&call, Some((sent, bytes))).await {
        Ok(answer) => answer,
        Err(failure) => {
            return Err(body.trouble().unwrap_or_else(|| lost(&failure, "send a part")));
        }
    };
    Ok(UploadPart { number, bytes, tag: tag(answer.headers()) })
}

fn part_call(shared: &S3State, upload: &ObjectUpload, number: u32) -> S3Call {
    S3Call::new(Method::Put, shared.key(&upload.key))
        .query("partNumber", number.to_string())
        .query("uploadId", &upload.id)
}

/// The parts that have arrived, by number; none if there is no such upload.
pub(super) async fn parts(
    shared: Arc<S3State>,
    upload: ObjectUpload,
) -> Result<Option<Vec<UploadPart>>, ObjectError> {
    let mut found: Vec<StoredPart> = Vec::new();
    loop {
        let behind = found.iter().map(|stored| stored.part.number).max().unwrap_or(0);
        let Some((page, more)) = parts_from(&shared, &upload, behind, 1_000).await? else {
            return Ok(None);
        };
        let none = page.is_empty();
        found.extend(page);
        if !more || none {
            return Ok(Some(shared.replaced.newest(&upload.id, found)));
        }
    }
}

/// Some parts behind a number, and whether there are more.
async fn parts_from(
    shared: &S3State,
    upload: &ObjectUpload,
    behind: u32,
    most: u32,
) -> Result<Option<(Vec<StoredPart>, bool)>, ObjectError> {
    let call = S3Call::new(Method::Get, shared.key(&upload.key))
        .query("max-parts", most.to_string())
        .query("part-number-marker", behind.to_string())
        .query("uploadId", &upload.id);
    let text = match shared.wire.try_text(&call).await {
        Ok(text) => text,
        Err(failure) if failure.is_not_found() => return Ok(None),
        Err(failure) => return Err(failure.to_error("list the parts of an upload")),
    };
    let page = xml::records(&text, "Part").ok_or_else(|| unreadable("which parts it has"))?;
    let page = page.iter().map(part).collect::<Option<Vec<_>>>();
    let page = page.ok_or_else(|| unreadable("which parts it has"))?;
    let more = xml::text(&text, "ListPartsResult", "IsTruncated").as_deref() == Some("true");
    Ok(Some((page, more)))
}

fn part(record: &Record) -> Option<StoredPart> {
    let part = UploadPart {
        number: field(record, "PartNumber")?.parse().ok()?,
        bytes: field(record, "Size")?.parse().ok()?,
        tag: field(record, "ETag")?.trim_matches('"').to_owned(),
    };
    let written_at = field(record, "LastModified").unwrap_or_default().to_owned();
    Some(StoredPart { part, written_at })
}

/// Makes an object of all parts. If its hash was not made on the way, it is read once more.
pub(super) async fn complete(
    shared: Arc<S3State>,
    upload: ObjectUpload,
    expected: Option<B3>,
) -> Result<ObjectInfo, ObjectError> {
    let stored = parts(Arc::clone(&shared), upload.clone()).await?;
    let stored = stored.ok_or_else(|| not_found("upload"))?;
    if stored.is_empty() {
        return Err(mismatch("no part has arrived"));
    }
    let known = shared.rolling.whole(&upload.id, &stored);
    if let Some(known) = &known {
        check_hash(expected.as_ref(), known)?;
    }
    finish(&shared, &upload, &stored).await?;
    shared.rolling.end(&upload.id);
    shared.replaced.end(&upload.id);
    let b3 = match (known, &expected) {
        (None, Some(_)) => {
            let body = get::get(Arc::clone(&shared), upload.key.clone(), None).await?;
            let found = get::hash_of(body.ok_or_else(|| not_found("object"))?.stream).await?;
            if let Err(error) = check_hash(expected.as_ref(), &found) {
                delete(shared, upload.key).await?;
                return Err(error);
            }
            Some(found)
        }
        (known, _) => known,
    };
    let info = get::head(shared, upload.key).await?;
    let info = info.ok_or_else(|| not_found("object"))?;
    Ok(ObjectInfo { b3: b3.or(info.b3), ..info })
}

/// Tells the server that these are all parts, and gives the new object's tag.
pub(super) async fn finish(
    shared: &S3State,
    upload: &ObjectUpload,
    parts: &[UploadPart],
) -> Result<String, ObjectError> {
    let call = S3Call::new(Method::Post, shared.key(&upload.key))
        .query("uploadId", &upload.id)
        .plain("content-type", "application/xml")
        .body(named(parts));
    let answer = shared.wire.try_text(&call).await;
    if let Err(failure) = &answer
        && failure.is_not_found()
    {
        // An answer that was lost may have said that it is done.
        let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
        let call = S3Call::new(Method::Head, shared.key(&upload.key));
        let found = shared.wire.send(&call).await.ok();
        let found = found.and_then(|answer| get::info(answer.headers()).ok());
        return match found.filter(|found| found.bytes == bytes) {
            Some(found) => Ok(found.tag),
            None => Err(not_found("upload")),
        };
    }
    let text = answer.map_err(|failure| failure.to_error("complete an upload"))?;
    let tag = xml::text(&text, "CompleteMultipartUploadResult", "ETag").unwrap_or_default();
    Ok(tag.trim_matches('"').to_owned())
}

/// Gives an upload up; one that is not there is as good as given up.
pub(super) async fn abort(shared: Arc<S3State>, upload: ObjectUpload) -> Result<(), ObjectError> {
    shared.rolling.end(&upload.id);
    shared.replaced.end(&upload.id);
    let call = S3Call::new(Method::Delete, shared.key(&upload.key)).query("uploadId", &upload.id);
    shared.wire.find(&call, "give an upload up").await.map(drop)
}

/// A body of just so many bytes, hashed on its way, that remembers why it failed.
struct SizedBody {
    state: Arc<Mutex<SizedBodyState>>,
}

struct SizedBodyState {
    body: Option<ByteStream>,
    left: u64,
    hasher: Option<blake3::Hasher>,
    trouble: Option<ObjectError>,
}

impl SizedBody {
    fn new(body: ByteStream, bytes: u64, hasher: Option<blake3::Hasher>) -> Self {
        let state = SizedBodyState { body: Some(body), left: bytes, hasher, trouble: None };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// The body, which can be had once.
    fn stream(&self) -> ByteStream {
        let state = Arc::clone(&self.state);
        let body = state.lock().body.take().unwrap_or_else(|| stream::empty().boxed());
        let checked = stream::unfold(Some((body, state)), |on| async {
            let (mut body, state) = on?;
            let piece = body.next().await;
            let checked = state.lock().check(piece);
            match checked {
                Ok(piece) => piece.map(|piece| (Ok(piece), Some((body, state)))),
                Err(error) => Some((Err(error), None)),
            }
        });
        checked.boxed()
    }

    fn trouble(&self) -> Option<ObjectError> {
        self.state.lock().trouble.clone()
    }

    fn hasher(&self) -> Option<blake3::Hasher> {
        self.state.lock().hasher.clone()
    }
}

impl SizedBodyState {
    fn check(
        &mut self,
        piece: Option<Result<Bytes, ObjectError>>,
    ) -> Result<Option<Bytes>, ObjectError> {
        let checked = match piece {
            None => check_bytes(Some(self.left), 0).map(|()| None),
            Some(Err(error)) => Err(error),
            Some(Ok(piece)) => match self.left.checked_sub(piece.len() as u64) {
                None => Err(too_long()),
                Some(left) => {
                    self.left = left;
                    if let Some(hasher) = &mut self.hasher {
                        hasher.update(&piece);
                    }
                    Ok(Some(piece))
                }
            },
        };
        self.trouble = checked.as_ref().err().cloned();
        checked
    }
}

fn lost(failure: &S3Failure, what: &str) -> ObjectError {
    if failure.is_not_found() { not_found("upload") } else { failure.to_error(what) }
}

pub(super) fn unreadable(what: &str) -> ObjectError {
    unavailable(format!("the server does not say {what}"))
}
