//! One request to the collector.
//!
//! The core's own runtime drives the client: one that is driven by a thread of its own exports
//! nothing, and says so to nobody.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};

use crate::options::TelemetryOptions;
use crate::spans;

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Why spans were not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// For people; it holds no address and no answer.
    pub(crate) why: String,
    /// Whether the same request may be taken later.
    pub(crate) passing: bool,
    /// How long the collector wants to be left alone.
    pub(crate) pause: Option<Duration>,
}

/// Posts to a collector.
#[derive(Debug)]
pub(crate) struct Collector {
    client: Client,
    options: TelemetryOptions,
    headers: HeaderMap,
}

impl Collector {
    pub(crate) fn new(options: TelemetryOptions) -> Result<Self, Failure> {
        // Whoever comes second finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_MAX)
            .timeout(options.timeout)
            .user_agent(concat!("wharf/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = built.map_err(|error| Failure {
            why: format!("no HTTP client can be made: {}", cause(&error)),
            passing: false,
            pause: None,
        })?;
        let mut headers = options.endpoint.headers();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        Ok(Self { client, options, headers })
    }

    pub(crate) fn options(&self) -> &TelemetryOptions {
        &self.options
    }

    /// Posts a request; how many of its spans the collector did not want.
    pub(crate) async fn post(&self, request: &ExportTraceServiceRequest) -> Result<u64, Failure> {
        let post = self.client.post(self.options.endpoint.url()).headers(self.headers.clone());
        let sent = post.body(request.encode_to_vec()).send().await;
        let answer = sent.map_err(|error| Failure {
            why: cause(&error.without_url()),
            passing: true,
            pause: None,
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(rejected(answer).await);
        }
        let seconds =
            answer.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
        let passing = [
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT,
        ];
        Err(Failure {
            why: format!("it answered HTTP {}", status.as_u16()),
            passing: passing.contains(&status),
            pause: seconds.map(Duration::from_secs),
        })
    }
}

/// Asks a collector whether it takes traces, by a request without any.
pub async fn probe(options: TelemetryOptions) -> Result<(), String> {
    let asked = async {
        let collector = Collector::new(options)?;
        let nothing = spans::request(collector.options(), Vec::new());
        collector.post(&nothing).await
    };
    asked.await.map(drop).map_err(|failure| failure.why)
}

/// How many spans an answer says were not wanted. One that cannot be read says nothing.
async fn rejected(mut answer: Response) -> u64 {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = answer.chunk().await {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            return 0;
        }
        body.extend_from_slice(&piece);
    }
    let said = ExportTraceServiceResponse::decode(&body[..]).ok();
    let rejected = said.and_then(|said| said.partial_success).map(|it| it.rejected_spans);
    rejected.and_then(|spans| u64::try_from(spans).ok()).unwrap_or(0)
}

/// The innermost reason, which is the one that helps.
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not answer in time".to_owned();
    }
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}
