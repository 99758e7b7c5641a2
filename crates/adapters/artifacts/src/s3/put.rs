//! Writing and removing.
//!
//! A small object is sent in one request. A larger one is sent in parts, of which one is on its
//! way while the next is gathered; the server makes an object of them when all have come and
//! length and hash are right. Two parts are in memory at once. They have 16 MiB each, and more
//! only where there would otherwise be too many: beyond 14 GB of an unknown and 160 GB of a known
//! size.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use rusty_s3::Method;
use tokio_util::task::AbortOnDropHandle;
use wharf_ports::{
    ByteStream, Clock as _, ObjectError, ObjectInfo, ObjectUpload, PutObject, SystemClock,
    UploadPart,
};
use wharf_vocab::B3;
use wharf_vocab::limits::{FILE_BYTES_MAX, UPLOAD_PARTS_MAX};

use super::get::tag;
use super::uploads::{self, create, finish, send_part};
use super::wire::S3Call;
use super::{B3_HEADER, S3State};
use crate::error::{check_bytes, check_hash, mismatch, too_long, unavailable};
use crate::rolling;

/// The size of parts, and of the largest object that is sent in one request.
const PART_BYTES: u64 = 16 * 1024 * 1024;
/// After so many parts of one size they become twice as large, so that there are never too many.
const PARTS_OF_ONE_SIZE: u32 = 900;

/// Writes an object whole or not at all.
pub(super) async fn put(
    shared: Arc<S3State>,
    put: PutObject,
    body: ByteStream,
) -> Result<ObjectInfo, ObjectError> {
    let mut source =
        PartSource { body, hasher: blake3::Hasher::new(), bytes: 0, over: None, end: false };
    let first = source.gather(part_bytes(1, put.bytes), &put).await?;
    if source.end {
        let b3 = source.check(&put)?;
        return put_whole(&shared, put, first, b3).await;
    }
    put_parts(shared, put, source, first).await
}

/// Removes an object; one that is not there is as good as removed.
pub(super) async fn delete(shared: Arc<S3State>, key: String) -> Result<(), ObjectError> {
    let call = S3Call::new(Method::Delete, shared.key(&key));
    shared.wire.find(&call, "remove an object").await.map(drop)
}

async fn put_whole(
    shared: &S3State,
    put: PutObject,
    body: Bytes,
    b3: B3,
) -> Result<ObjectInfo, ObjectError> {
    let bytes = body.len() as u64;
    let call = S3Call::new(Method::Put, shared.key(&put.key))
        .signed(B3_HEADER, b3.as_str())
        .plain("content-type", &put.media_type)
        .body(body);
    let answer = shared.wire.send(&call).await;
    let answer = answer.map_err(|failure| failure.to_error("write an object"))?;
    Ok(written(put.media_type, bytes, b3, tag(answer.headers())))
}

async fn put_parts(
    shared: Arc<S3State>,
    put: PutObject,
    mut source: PartSource,
    first: Bytes,
) -> Result<ObjectInfo, ObjectError> {
    let id = create(&shared, &put.key, &put.media_type, put.b3.as_ref()).await?;
    let upload = ObjectUpload { key: put.key.clone(), id };
    let mut unfinished =
        UnfinishedUpload { shared: Some(Arc::clone(&shared)), upload: upload.clone() };
    let mut parts = Vec::new();
    let mut ready = first;
    let mut number = 1;
    loop {
        let (on_its_way, of) = (Arc::clone(&shared), upload.clone());
        let sending = async move { send_part(&on_its_way, &of, number, ready).await };
        let sending = AbortOnDropHandle::new(tokio::spawn(sending));
        let next = match source.end {
            true => None,
            false => Some(source.gather(part_bytes(number + 1, put.bytes), &put).await?),
        };
        let sent =
            sending.await.map_err(|_| unavailable("the sending of a part was broken off"))??;
        parts.push(sent);
        match next {
            // What ends just behind a part has an empty rest.
            Some(more) if !(more.is_empty() && source.end) => ready = more,
            _ => break,
        }
        number += 1;
        if number > UPLOAD_PARTS_MAX {
            return Err(mismatch("the object has too many parts"));
        }
    }
    let b3 = source.check(&put)?;
    let tag = finish(&shared, &upload, &parts).await?;
    unfinished.shared = None;
    Ok(written(put.media_type, source.bytes, b3, tag))
}

/// A body that is gathered into parts, and hashed on the way.
struct PartSource {
    body: ByteStream,
    hasher: blake3::Hasher,
    bytes: u64,
    /// What did not fit into the part before.
    over: Option<Bytes>,
    end: bool,
}

impl PartSource {
    /// So many bytes, or fewer if the body ends.
    async fn gather(&mut self, bytes: u64, put: &PutObject) -> Result<Bytes, ObjectError> {
        let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut part = BytesMut::new();
        while part.len() < wanted {
            let mut piece = match self.over.take() {
                Some(piece) => piece,
                None => match self.body.next().await {
                    None => {
                        self.end = true;
                        break;
                    }
                    Some(piece) => {
                        let piece = piece?;
                        self.hasher.update(&piece);
                        self.bytes += piece.len() as u64;
                        piece
                    }
                },
            };
            if self.bytes > put.bytes.unwrap_or(FILE_BYTES_MAX) {
                return Err(too_long());
            }
            if part.is_empty() {
                // The last part of an object may be far smaller than the others.
                part.reserve(wanted.min(2 * piece.len()));
            }
            let rest = piece.split_off(piece.len().min(wanted - part.len()));
            part.extend_from_slice(&piece);
            self.over = Some(rest).filter(|rest| !rest.is_empty());
        }
        Ok(part.freeze())
    }

    /// The hash of a whole body that is as it was announced.
    fn check(&self, put: &PutObject) -> Result<B3, ObjectError> {
        check_bytes(put.bytes, self.bytes)?;
        let b3 = rolling::hash(&self.hasher);
        check_hash(put.b3.as_ref(), &b3)?;
        Ok(b3)
    }
}

/// How large a part is, by its number and the size of the object if that is known.
fn part_bytes(number: u32, whole: Option<u64>) -> u64 {
    let doubled = (number.saturating_sub(1) / PARTS_OF_ONE_SIZE).min(6);
    let known = whole.map_or(0, |whole| whole.div_ceil(u64::from(UPLOAD_PARTS_MAX - 1)));
    known.max(PART_BYTES << doubled)
}

/// Parts that are given up with this value, unless they have become an object.
struct UnfinishedUpload {
    shared: Option<Arc<S3State>>,
    upload: ObjectUpload,
}

impl Drop for UnfinishedUpload {
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        let upload = self.upload.clone();
        // Without a runtime the next sweep does it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = uploads::abort(shared, upload).await;
            });
        }
    }
}

fn written(media_type: String, bytes: u64, b3: B3, tag: String) -> ObjectInfo {
    // Whoever is to be bound to a version looks at the object first.
    let version = None;
    ObjectInfo { bytes, b3: Some(b3), media_type, written_at: SystemClock.now(), tag, version }
}

/// The parts as the server wants to hear of them.
pub(super) fn named(parts: &[UploadPart]) -> String {
    use std::fmt::Write as _;
    let mut xml = String::from("<CompleteMultipartUpload>");
    for part in parts {
        let tag = super::xml::escape(&part.tag);
        let number = part.number;
        // Writing to a text cannot fail.
        let _ = write!(xml, "<Part><PartNumber>{number}</PartNumber><ETag>\"{tag}\"</ETag></Part>");
    }
    xml.push_str("</CompleteMultipartUpload>");
    xml
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_file_fits_into_parts_whether_its_size_is_known_or_not() {
        let sum = |whole| (1..=UPLOAD_PARTS_MAX).map(|n| part_bytes(n, whole)).sum::<u64>();
        assert!(sum(Some(FILE_BYTES_MAX)) >= FILE_BYTES_MAX);
        assert!(sum(None) >= FILE_BYTES_MAX);
        assert_eq!(part_bytes(1, None), PART_BYTES);
        assert_eq!(part_bytes(1, Some(10)), PART_BYTES);
    }
}
