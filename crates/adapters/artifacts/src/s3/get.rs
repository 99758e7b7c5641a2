//! Reading, and going on where a download stopped.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, LAST_MODIFIED,
};
use reqwest::{Response, StatusCode};
use rusty_s3::Method;
use tokio::time::{sleep, timeout};
use wharf_ports::{
    ByteStream, ObjectBody, ObjectError, ObjectErrorKind, ObjectInfo, ObjectVersion,
};
use wharf_vocab::{B3, Timestamp};

use super::wire::{S3Call, S3Failure, said};
use super::{B3_HEADER, S3State, VERSION_HEADER};
use crate::error::{mismatch, unavailable};
use crate::presign::VERSION;
use crate::rolling;

/// What is known of an object; none if there is none.
pub(super) async fn head(
    shared: Arc<S3State>,
    key: String,
) -> Result<Option<ObjectInfo>, ObjectError> {
    let call = S3Call::new(Method::Head, shared.key(&key));
    look(&shared, call).await
}

async fn look(shared: &S3State, call: S3Call) -> Result<Option<ObjectInfo>, ObjectError> {
    let answer = shared.wire.find(&call, "look for an object").await?;
    answer.map(|answer| info(answer.headers())).transpose()
}

/// A version as it is now; none if it is gone. In a bucket that keeps no versions it is what is
/// there, if that is the same: by its tag and hash, or by its hash alone.
pub(super) async fn locate(
    shared: Arc<S3State>,
    wanted: ObjectVersion,
) -> Result<Option<ObjectVersion>, ObjectError> {
    if let Some(version) = &wanted.version {
        let call = S3Call::new(Method::Head, shared.key(&wanted.key)).query(VERSION, version);
        if look(&shared, call).await?.is_some() {
            return Ok(Some(wanted));
        }
    }
    let Some(info) = head(Arc::clone(&shared), wanted.key.clone()).await? else { return Ok(None) };
    let same_hash = match (&wanted.b3, &info.b3) {
        (Some(wanted), Some(found)) => Some(wanted == found),
        _ => None,
    };
    let same_tag = wanted.tag.as_ref().is_some_and(|tag| *tag == info.tag);
    let same = info.bytes == wanted.bytes
        && match (same_hash, same_tag) {
            (Some(same), _) => same,
            (None, true) => true,
            (None, false) => hash(&shared, &wanted, &info).await? == wanted.b3,
        };
    let (version, tag) = (info.version, Some(info.tag));
    Ok((same && (same_tag || wanted.b3.is_some())).then_some(ObjectVersion {
        version,
        tag,
        ..wanted
    }))
}

/// The hash of what is there, if that is still what was seen.
async fn hash(
    shared: &Arc<S3State>,
    wanted: &ObjectVersion,
    info: &ObjectInfo,
) -> Result<Option<B3>, ObjectError> {
    match get(Arc::clone(shared), wanted.key.clone(), None).await? {
        Some(body) if body.info.tag == info.tag => hash_of(body.stream).await.map(Some),
        _ => Ok(None),
    }
}

/// The hash of bytes that are read for nothing else.
pub(super) async fn hash_of(mut stream: ByteStream) -> Result<B3, ObjectError> {
    let mut hasher = blake3::Hasher::new();
    while let Some(piece) = stream.try_next().await? {
        hasher.update(&piece);
    }
    Ok(rolling::hash(&hasher))
}

/// The bytes of a version; none if it is gone. What is read is what was located, also if
/// something else is written in between.
pub(super) async fn get_version(
    shared: Arc<S3State>,
    wanted: ObjectVersion,
) -> Result<Option<ObjectBody>, ObjectError> {
    let Some(located) = locate(Arc::clone(&shared), wanted).await? else { return Ok(None) };
    let mut call = S3Call::new(Method::Get, shared.key(&located.key));
    call = match (&located.version, &located.tag) {
        (Some(version), _) => call.query(VERSION, version),
        (None, Some(tag)) => call.plain("if-match", format!("\"{tag}\"")),
        (None, None) => call,
    };
    match open(shared, call, None).await {
        Err(error) if error.kind == ObjectErrorKind::Mismatch => Ok(None),
        found => found,
    }
}

/// An object's bytes, or those of a range; none if there is no object.
pub(super) async fn get(
    shared: Arc<S3State>,
    key: String,
    range: Option<Range<u64>>,
) -> Result<Option<ObjectBody>, ObjectError> {
    if range.as_ref().is_some_and(Range::is_empty) {
        // No server can be asked for nothing.
        let info = head(shared, key).await?;
        return Ok(info.map(|info| ObjectBody { info, stream: stream::empty().boxed() }));
    }
    let call = S3Call::new(Method::Get, shared.key(&key));
    open(shared, call, range).await
}

/// The bytes that a request for an object or a version asks for, or those of a range of them.
async fn open(
    shared: Arc<S3State>,
    mut call: S3Call,
    range: Option<Range<u64>>,
) -> Result<Option<ObjectBody>, ObjectError> {
    let meant = call.clone();
    if let Some(range) = &range {
        call = call.plain("range", bytes_of(range));
    }
    let Some(answer) = shared.wire.find(&call, "read an object").await? else { return Ok(None) };
    let info = info(answer.headers())?;
    if range.is_some() && answer.status() != StatusCode::PARTIAL_CONTENT {
        return Err(unavailable("the server does not know ranges"));
    }
    let left = range.unwrap_or(0..info.bytes);
    if left.end > info.bytes {
        return Err(mismatch("the range lies outside the object"));
    }
    let etag = text(answer.headers(), &ETAG).map(str::to_owned);
    let download = S3Download { shared, meant, etag, left, answer: Some(answer), failed: 0 };
    Ok(Some(ObjectBody { info, stream: download.stream() }))
}

/// A download that goes on where it stopped.
struct S3Download {
    shared: Arc<S3State>,
    /// The request for the whole.
    meant: S3Call,
    etag: Option<String>,
    left: Range<u64>,
    answer: Option<Response>,
    /// How often in a row it has failed without a byte in between.
    failed: u32,
}

impl S3Download {
    fn stream(self) -> ByteStream {
        let pieces = stream::try_unfold(self, |mut download| async move {
            let piece = download.next().await?;
            Ok(piece.map(|piece| (piece, download)))
        });
        pieces.boxed()
    }

    async fn next(&mut self) -> Result<Option<Bytes>, ObjectError> {
        let wire = &self.shared.wire;
        while !self.left.is_empty() {
            let why = match &mut self.answer {
                None => match wire.once(&self.rest(), None).await {
                    Ok(answer) if answer.status() == StatusCode::PARTIAL_CONTENT => {
                        self.answer = Some(answer);
                        continue;
                    }
                    Ok(_) => S3Failure::Lost("the server does not know ranges".to_owned()),
                    Err(failure) => failure,
                },
                Some(answer) => match timeout(wire.byte_timeout, answer.chunk()).await {
                    Ok(Ok(Some(piece))) => return self.take(piece).map(Some),
                    Ok(Ok(None)) => S3Failure::Lost("the answer ended too early".to_owned()),
                    Ok(Err(error)) => S3Failure::Lost(said(error)),
                    Err(_) => S3Failure::Lost("the answer stopped half-way".to_owned()),
                },
            };
            self.answer = None;
            self.failed += 1;
            if self.failed >= wire.tries || !why.may_pass() {
                return Err(why.to_error("read an object to its end"));
            }
            sleep(wire.pause_after(self.failed)).await;
        }
        Ok(None)
    }

    fn take(&mut self, piece: Bytes) -> Result<Bytes, ObjectError> {
        let bytes = piece.len() as u64;
        if bytes > self.left.end - self.left.start {
            return Err(mismatch("the server sent more than was asked for"));
        }
        self.left.start += bytes;
        self.failed = 0;
        Ok(piece)
    }

    /// A request for what is still missing, of the same version.
    fn rest(&self) -> S3Call {
        let mut call = self.meant.clone();
        call.plain.retain(|(name, _)| *name != "if-match");
        let call = call.plain("range", bytes_of(&self.left));
        match &self.etag {
            Some(etag) => call.plain("if-match", etag),
            None => call,
        }
    }
}

fn bytes_of(range: &Range<u64>) -> String {
    format!("bytes={}-{}", range.start, range.end.saturating_sub(1))
}

/// What the headers of an answer say of the whole object.
pub(super) fn info(headers: &HeaderMap) -> Result<ObjectInfo, ObjectError> {
    let whole = text(headers, &CONTENT_RANGE).and_then(|range| range.rsplit_once('/'));
    let bytes = whole.map_or_else(|| text(headers, &CONTENT_LENGTH), |(_, whole)| Some(whole));
    let bytes = bytes.and_then(|bytes| bytes.parse().ok());
    let bytes =
        bytes.ok_or_else(|| unavailable("the server does not say how large an object is"))?;
    let b3 = headers.get(B3_HEADER).and_then(|value| value.to_str().ok());
    Ok(ObjectInfo {
        bytes,
        b3: b3.and_then(|b3| B3::parse(b3).ok()),
        media_type: text(headers, &CONTENT_TYPE).unwrap_or_default().to_owned(),
        written_at: text(headers, &LAST_MODIFIED).and_then(moment).unwrap_or_default(),
        tag: tag(headers),
        version: version(headers),
    })
}

/// The version that the headers of an answer name, if the bucket keeps versions.
pub(super) fn version(headers: &HeaderMap) -> Option<String> {
    let version = headers.get(VERSION_HEADER).and_then(|value| value.to_str().ok());
    version.filter(|version| !matches!(*version, "" | "null")).map(str::to_owned)
}

/// The tag that the headers of an answer give.
pub(super) fn tag(headers: &HeaderMap) -> String {
    text(headers, &ETAG).unwrap_or_default().trim_matches('"').to_owned()
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn moment(text: &str) -> Option<Timestamp> {
    let moment = DateTimeParser::new().parse_timestamp(text).ok()?;
    u64::try_from(moment.as_millisecond()).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_of_the_whole_object() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, "3".parse().expect("a value"));
        headers.insert(ETAG, "\"abc\"".parse().expect("a value"));
        headers.insert(LAST_MODIFIED, "Sun, 06 Nov 1994 08:49:37 GMT".parse().expect("a value"));
        let found = info(&headers).expect("known");
        assert_eq!((found.bytes, found.tag.as_str()), (3, "abc"));
        assert_eq!(found.written_at, Timestamp(784_111_777_000));
        headers.insert(CONTENT_RANGE, "bytes 0-2/10".parse().expect("a value"));
        assert_eq!(info(&headers).expect("known").bytes, 10);
        assert!(info(&HeaderMap::new()).is_err());
    }
}
