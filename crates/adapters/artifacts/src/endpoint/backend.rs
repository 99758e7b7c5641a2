//! What the S3 protocol is answered with: three operations on the store of files.

use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use hyper::body::Frame;
use hyper::http::StatusCode;
use parking_lot::Mutex;
use reqwest::Url;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::dto::{
    ETag, ETagCondition, GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput,
    PutObjectInput, PutObjectOutput, StreamingBlob, Timestamp,
};
use s3s::{Body, S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};
use wharf_ports::{
    AddressGate, ByteStream, ObjectBody, ObjectError, ObjectErrorKind, ObjectInfo, ObjectVersion,
    PutObject, Trouble, TroubleOver, verified,
};

use super::BUCKET;
use super::checksum::Sums;
use crate::presign::HOLDER;
use crate::{Credentials, FileObjects};

/// What an object is taken for when nobody says.
const MEDIA_TYPE: &str = "application/octet-stream";
/// Longest media type that is kept.
const MEDIA_TYPE_BYTES_MAX: usize = 255;

/// Knows one key.
pub(super) struct Auth {
    credentials: Credentials,
}

impl Auth {
    pub(super) fn new(credentials: Credentials) -> Self {
        Self { credentials }
    }
}

#[async_trait]
impl S3Auth for Auth {
    async fn get_secret_key(&self, key_id: &str) -> S3Result<SecretKey> {
        if key_id == self.credentials.key_id {
            Ok(SecretKey::from(self.credentials.secret.as_str()))
        } else {
            Err(s3_error!(InvalidAccessKeyId))
        }
    }
}

/// Lets only signed requests in, and only those that read or write one object. It also keeps
/// operations out that a header turns a signed request into, such as copying from another key.
pub(super) struct Access;

#[async_trait]
impl S3Access for Access {
    async fn check(&self, cx: &mut S3AccessContext<'_>) -> S3Result<()> {
        let known = matches!(cx.s3_op().name(), "GetObject" | "HeadObject" | "PutObject");
        if known && cx.credentials().is_some() { Ok(()) } else { Err(s3_error!(AccessDenied)) }
    }
}

/// Who says whether an address may still be used, once that is known.
pub(super) type SharedAddressGate = Arc<OnceLock<Arc<dyn AddressGate>>>;

/// The store of files as S3.
pub(super) struct Backend {
    files: Arc<FileObjects>,
    gate: SharedAddressGate,
    /// Writes that found no room.
    full: Mutex<Trouble>,
}

impl Backend {
    pub(super) fn new(files: Arc<FileObjects>, gate: SharedAddressGate) -> Self {
        Self { files, gate, full: Mutex::default() }
    }

    /// Says that there is no room, and when there is some again.
    fn tell_of_room(&self, error: Option<&ObjectError>) {
        let mut full = self.full.lock();
        match error {
            Some(error) if error.kind == ObjectErrorKind::Full => {
                if let Some(failed) = full.failed() {
                    tracing::warn!(%error, failed, "the artifact store is full");
                }
            }
            Some(_) => {}
            None => {
                if let Some(TroubleOver { failed, seconds }) = full.calm() {
                    tracing::info!(failed, seconds, "the artifact store takes files again");
                }
            }
        }
    }

    async fn info(&self, bucket: &str, key: String) -> S3Result<ObjectInfo> {
        check_bucket(bucket)?;
        let info = Arc::clone(&self.files).head(key).await.map_err(|error| refusal(&error))?;
        info.ok_or_else(|| s3_error!(NoSuchKey))
    }

    async fn info_of(&self, key: String, version: String) -> S3Result<ObjectInfo> {
        let found = Arc::clone(&self.files).look_at(key, version).await;
        let found = found.map_err(|error| refusal(&error))?;
        found.ok_or_else(|| s3_error!(NoSuchVersion))
    }

    /// The version that a signed address stands for, if whoever holds it may read it now; none
    /// if the address names none and nobody is there to say so.
    async fn version(
        &self,
        key: &str,
        version: Option<&String>,
        query: Option<&str>,
    ) -> S3Result<Option<ObjectVersion>> {
        let Some(gate) = self.gate.get() else {
            let Some(version) = version.cloned() else { return Ok(None) };
            let info = self.info_of(key.to_owned(), version).await?;
            return Ok(Some(ObjectVersion::of(key.to_owned(), info)));
        };
        let bound = version.zip(holder(query)).and_then(|(version, holder)| {
            let bound = gate.may_read(key, version, &holder)?;
            Some(ObjectVersion { version: Some(version.clone()), ..bound })
        });
        bound.map(Some).ok_or_else(|| {
            s3_error!(AccessDenied, "no attempt that is under way may read this object")
        })
    }

    /// The bytes of a whole object, which end well only if they are what was written.
    async fn whole(&self, key: String, body: ObjectBody) -> S3Result<ObjectBody> {
        let gate = Arc::clone(&self.gate);
        let note = move || match gate.get() {
            Some(gate) => gate.damaged(&key),
            None => tracing::error!("an object is not what was written"),
        };
        let ObjectBody { info, stream } = body;
        let stream = verified(stream, info.bytes, info.b3.clone(), note).await;
        Ok(ObjectBody { stream: stream.map_err(|error| refusal(&error))?, info })
    }
}

#[async_trait]
impl S3 for Backend {
    async fn get_object(
        &self,
        req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = req.input;
        check_bucket(&input.bucket)?;
        let version = input.version_id.as_ref();
        let wanted = self.version(&input.key, version, req.uri.query()).await?;
        // A range is checked against the size before the body is opened. A writer may come in
        // between unless one version is meant, and then the range is asked for again.
        let range = match (input.range, &wanted) {
            (None, _) => None,
            (Some(range), wanted) => {
                let bytes = match wanted {
                    Some(wanted) => wanted.bytes,
                    None => self.info(&input.bucket, input.key.clone()).await?.bytes,
                };
                Some(range.check(bytes).map_err(|_| s3_error!(InvalidRange))?)
            }
        };
        let (files, key) = (Arc::clone(&self.files), input.key);
        let body = match wanted {
            Some(wanted) => files.get_version(wanted, range.clone()).await,
            None => files.get(key.clone(), range.clone()).await,
        };
        let body = body.map_err(|error| refusal(&error))?.ok_or_else(|| s3_error!(NoSuchKey))?;
        let body = if range.is_none() { self.whole(key, body).await? } else { body };
        check_conditions(&body.info, input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let bytes = range.as_ref().map_or(body.info.bytes, |range| range.end - range.start);
        let output = GetObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            body: Some(blob(body.stream)),
            content_length: Some(signed(bytes)),
            content_range: range.map(|range| content_range(&range, body.info.bytes)),
            content_type: Some(body.info.media_type),
            e_tag: Some(ETag::Strong(body.info.tag)),
            last_modified: Some(moment(body.info.written_at)),
            version_id: body.info.version,
            ..GetObjectOutput::default()
        };
        Ok(S3Response::new(output))
    }

    async fn head_object(
        &self,
        req: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = req.input;
        let info = match input.version_id {
            None => self.info(&input.bucket, input.key).await?,
            Some(version) => {
                check_bucket(&input.bucket)?;
                self.info_of(input.key, version).await?
            }
        };
        check_conditions(&info, input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let output = HeadObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: Some(signed(info.bytes)),
            content_type: Some(info.media_type),
            e_tag: Some(ETag::Strong(info.tag)),
            last_modified: Some(moment(info.written_at)),
            version_id: info.version,
            ..HeadObjectOutput::default()
        };
        Ok(S3Response::new(output))
    }

    async fn put_object(
        &self,
        req: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let mut input = req.input;
        check_bucket(&input.bucket)?;
        if input.if_match.is_some() || input.if_none_match.is_some() {
            return Err(s3_error!(NotImplemented, "writing under a condition is not supported"));
        }
        let bytes = input.content_length.and_then(|bytes| u64::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| s3_error!(MissingContentLength))?;
        let body = input.body.take().map_or_else(|| futures::stream::empty().boxed(), incoming);
        let body = Sums::of(&input).check(body);
        let media_type = input.content_type.filter(|kind| kind.len() <= MEDIA_TYPE_BYTES_MAX);
        let media_type = media_type.filter(|kind| !kind.is_empty());
        let media_type = media_type.unwrap_or_else(|| MEDIA_TYPE.to_owned());
        let put = PutObject { key: input.key, media_type, bytes: Some(bytes), b3: None };
        let gate = Arc::clone(&self.gate);
        let open = move |key: &str| gate.get().is_none_or(|gate| gate.may_write(key));
        let info = Arc::clone(&self.files).put_while(put, body, open).await;
        self.tell_of_room(info.as_ref().err());
        let info = info.map_err(|error| refusal(&error))?.ok_or_else(|| {
            s3_error!(AccessDenied, "no attempt that is under way may write this object")
        })?;
        let e_tag = Some(ETag::Strong(info.tag));
        Ok(S3Response::new(PutObjectOutput { e_tag, ..PutObjectOutput::default() }))
    }
}

fn check_bucket(bucket: &str) -> S3Result<()> {
    if bucket == BUCKET { Ok(()) } else { Err(s3_error!(NoSuchBucket)) }
}

fn check_conditions(
    info: &ObjectInfo,
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> S3Result<()> {
    let meets = |condition: &ETagCondition| match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(tag) => tag.value() == info.tag,
    };
    if if_match.is_some_and(|condition| !meets(condition)) {
        return Err(s3_error!(PreconditionFailed));
    }
    if if_none_match.is_some_and(meets) {
        return Err(s3_error!(NotModified));
    }
    Ok(())
}

/// Whoever an address was made for.
fn holder(query: Option<&str>) -> Option<String> {
    let url = Url::parse(&format!("http://host/?{}", query?)).ok()?;
    url.query_pairs().find(|(name, _)| name == HOLDER).map(|(_, value)| value.into_owned())
}

/// What a client is told; the details stay in the log.
fn refusal(error: &ObjectError) -> S3Error {
    match error.kind {
        ObjectErrorKind::NotFound => s3_error!(NoSuchKey),
        ObjectErrorKind::Mismatch => {
            s3_error!(BadDigest, "what arrived is not what was announced")
        }
        ObjectErrorKind::Interrupted => s3_error!(IncompleteBody),
        ObjectErrorKind::Full => {
            let code = S3ErrorCode::Custom("InsufficientStorage".into());
            let mut refusal = S3Error::with_message(code, "the artifact store has no room left");
            refusal.set_status_code(StatusCode::INSUFFICIENT_STORAGE);
            refusal
        }
        ObjectErrorKind::Damaged => {
            s3_error!(InternalError, "what is kept of this object is not what was written")
        }
        ObjectErrorKind::Unavailable | ObjectErrorKind::Denied => {
            tracing::error!(%error, "the artifact store could not answer a request");
            s3_error!(ServiceUnavailable, "the artifact store cannot go on now; try again")
        }
    }
}

fn incoming(blob: StreamingBlob) -> ByteStream {
    let broken = |error: s3s::StdError| {
        let slow = error.downcast_ref::<io::Error>();
        let slow = slow.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut);
        let why = if slow { "no byte came for too long" } else { "the body broke off" };
        ObjectError::new(ObjectErrorKind::Interrupted, why)
    };
    blob.map_err(broken).boxed()
}

fn blob(stream: ByteStream) -> StreamingBlob {
    let frames = stream.map_ok(Frame::<Bytes>::data);
    StreamingBlob::from(Body::http_body_unsync(http_body_util::StreamBody::new(frames)))
}

fn content_range(range: &Range<u64>, whole: u64) -> String {
    format!("bytes {}-{}/{whole}", range.start, range.end.saturating_sub(1))
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn moment(at: wharf_vocab::Timestamp) -> Timestamp {
    Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_millis(at.0))
}
