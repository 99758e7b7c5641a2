//! Signed requests to an S3 server, made again when that may help.
//!
//! Addresses never get into an error: what the HTTP client says of a failure is stripped of them.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Body, Client, Response, StatusCode, Url};
use rusty_s3::signing::sign;
use rusty_s3::{Bucket, Credentials, Method};
use tokio::time::{sleep, timeout};
use wharf_ports::{ObjectError, ObjectErrorKind};

use super::xml;
use crate::error::unavailable;
use crate::random_hex;

/// How long a signature for the core's own requests is good for.
const LIFETIME_S: u64 = 15 * 60;
/// Longest pause before a request is made again.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The slowest way to a server that is waited for, per second.
const SLOWEST_BYTES: u64 = 64 * 1024;
/// The largest answer that is taken as text.
const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// An S3 server and a bucket on it.
pub(super) struct BucketClient {
    pub(super) client: Client,
    pub(super) bucket: Bucket,
    pub(super) credentials: Credentials,
    pub(super) byte_timeout: Duration,
    pub(super) tries: u32,
    pub(super) pause: Duration,
}

/// One request. Names of the query must be in order, and so must those of signed headers.
#[derive(Debug, Clone)]
pub(super) struct S3Call {
    pub(super) method: Method,
    /// The key in the bucket; empty for the bucket itself.
    pub(super) key: String,
    pub(super) query: Vec<(&'static str, String)>,
    /// Headers that change what the request means.
    pub(super) signed: Vec<(&'static str, String)>,
    /// Other headers.
    pub(super) plain: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
}

impl S3Call {
    pub(super) fn new(method: Method, key: impl Into<String>) -> Self {
        Self {
            method,
            key: key.into(),
            query: Vec::new(),
            signed: Vec::new(),
            plain: Vec::new(),
            body: Bytes::new(),
        }
    }

    pub(super) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(super) fn signed(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.signed.push((name, value.into()));
        self
    }

    pub(super) fn plain(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.plain.push((name, value.into()));
        self
    }

    pub(super) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }
}

/// Why a request was not answered as wished.
pub(super) enum S3Failure {
    /// The server has answered otherwise.
    Refused(S3Refusal),
    /// It has not answered, or not to the end.
    Lost(String),
}

/// What a server said instead of yes.
#[derive(Debug)]
pub(super) struct S3Refusal {
    pub(super) status: StatusCode,
    /// The code of its error, if it has one.
    pub(super) code: String,
}

impl BucketClient {
    /// Makes a request until it is answered with success or a refusal that stands.
    pub(super) async fn send(&self, call: &S3Call) -> Result<Response, S3Failure> {
        self.again(|| async { self.once(call, None).await }).await
    }

    /// The same; none if what was asked for is not there.
    pub(super) async fn find(
        &self,
        call: &S3Call,
        what: &str,
    ) -> Result<Option<Response>, ObjectError> {
        match self.send(call).await {
            Ok(answer) => Ok(Some(answer)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure.to_error(what)),
        }
    }

    /// Makes a request and takes its answer as text.
    pub(super) async fn text(&self, call: &S3Call, what: &str) -> Result<String, ObjectError> {
        self.try_text(call).await.map_err(|failure| failure.to_error(what))
    }

    /// The same, which is asked for again if it breaks off.
    pub(super) async fn try_text(&self, call: &S3Call) -> Result<String, S3Failure> {
        self.again(|| async {
            let answer = self.once(call, None).await?;
            let text = self.read(answer).await.map_err(S3Failure::Lost)?;
            // Some operations say that they are done before they are.
            match xml::text(&text, "Error", "Code") {
                Some(code) => Err(S3Failure::Refused(S3Refusal::later(code))),
                None => Ok(text),
            }
        })
        .await
    }

    /// Makes a request once, with another body than its own if there is one of this length.
    pub(super) async fn once(
        &self,
        call: &S3Call,
        body: Option<(Body, u64)>,
    ) -> Result<Response, S3Failure> {
        let mut request = self.client.request(method(call.method), self.address(call));
        for (name, value) in call.signed.iter().chain(&call.plain) {
            request = request.header(*name, value);
        }
        let bytes = body.as_ref().map_or(call.body.len() as u64, |(_, bytes)| *bytes);
        if bytes > 0 || matches!(call.method, Method::Put | Method::Post) {
            request = request.header(CONTENT_LENGTH, bytes);
        }
        let request = match body {
            Some((body, _)) => request.body(body),
            None => request.body(call.body.clone()),
        };
        let patience = self.byte_timeout + Duration::from_secs(bytes / SLOWEST_BYTES);
        let answer = match timeout(patience, request.send()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(S3Failure::Lost(said(error))),
            Err(_) => return Err(S3Failure::Lost("the server did not answer in time".to_owned())),
        };
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let text = self.read(answer).await.unwrap_or_default();
        let code = xml::text(&text, "Error", "Code").unwrap_or_default();
        Err(S3Failure::Refused(S3Refusal { status, code }))
    }

    /// Repeats what may go better the next time, with growing pauses.
    pub(super) async fn again<T, F: Future<Output = Result<T, S3Failure>>>(
        &self,
        make: impl Fn() -> F,
    ) -> Result<T, S3Failure> {
        let mut made = 1;
        loop {
            match make().await {
                Err(failure) if failure.may_pass() && made < self.tries => {
                    sleep(self.pause_after(made)).await;
                    made += 1;
                }
                answer => return answer,
            }
        }
    }

    /// The pause before the next try. Chance keeps many cores from trying at one moment.
    pub(super) fn pause_after(&self, made: u32) -> Duration {
        let longest = self.pause.saturating_mul(1 << made.min(10)).min(PAUSE_MAX);
        let chance = random_hex::<1>().ok().and_then(|hex| u32::from_str_radix(&hex, 16).ok());
        longest / 2 + longest * chance.unwrap_or(0) / 512
    }

    async fn read(&self, mut answer: Response) -> Result<String, String> {
        let mut text = Vec::new();
        loop {
            match timeout(self.byte_timeout, answer.chunk()).await {
                Ok(Ok(Some(piece))) if text.len() + piece.len() <= TEXT_BYTES_MAX => {
                    text.extend_from_slice(&piece);
                }
                Ok(Ok(Some(_))) => return Err("the answer is too long".to_owned()),
                Ok(Ok(None)) => return Ok(String::from_utf8_lossy(&text).into_owned()),
                Ok(Err(error)) => return Err(said(error)),
                Err(_) => return Err("the answer stopped half-way".to_owned()),
            }
        }
    }

    fn address(&self, call: &S3Call) -> Url {
        let keys = &self.credentials;
        let query = call.query.iter().map(|(name, value)| (*name, value.as_str()));
        let headers = call.signed.iter().map(|(name, value)| (*name, value.as_str()));
        sign(
            &Timestamp::now(),
            call.method,
            self.bucket.object_url(&call.key),
            keys.key(),
            keys.secret(),
            keys.token(),
            self.bucket.region(),
            LIFETIME_S,
            query,
            headers,
        )
    }
}

impl S3Failure {
    /// Whether it may go better when it is tried again.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Refused(refusal) => refusal.may_pass(),
        }
    }

    /// Whether what was asked for is not there.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == StatusCode::NOT_FOUND)
    }

    /// The failure as the port shows it.
    pub(super) fn to_error(&self, what: &str) -> ObjectError {
        match self {
            Self::Lost(why) => unavailable(format!("failed to {what}: {why}")),
            Self::Refused(S3Refusal { status, code }) => {
                let kind = match (status.as_u16(), code.as_str()) {
                    (507, _) | (_, "XMinioStorageFull" | "QuotaExceeded") => ObjectErrorKind::Full,
                    (_, "NoSuchBucket") | (401 | 403, _) => ObjectErrorKind::Denied,
                    (404, _) => ObjectErrorKind::NotFound,
                    (416 | 412, _) | (_, "BadDigest") => ObjectErrorKind::Mismatch,
                    _ => ObjectErrorKind::Unavailable,
                };
                let status = status.as_u16();
                let message = format!("failed to {what}: the server answered {status} {code}");
                ObjectError::new(kind, message.trim_end())
            }
        }
    }
}

impl S3Refusal {
    /// An error that came in the body of an answer that promised success.
    fn later(code: String) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, code }
    }

    fn may_pass(&self) -> bool {
        let status = self.status.as_u16();
        (matches!(status, 408 | 429) || status >= 500) && !matches!(status, 501 | 507)
    }
}

/// What the HTTP client says of a failure, without the address.
pub(super) fn said(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn method(method: Method) -> reqwest::Method {
    match method {
        Method::Head => reqwest::Method::HEAD,
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Delete => reqwest::Method::DELETE,
    }
}
