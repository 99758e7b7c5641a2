//! A collector: takes traces by HTTP as they come, decodes them, and answers as it is told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message as _;

/// How a request is answered.
#[derive(Debug, Clone, Copy)]
pub enum Reply {
    /// With this status, and nothing is taken.
    Refuse(u16),
    /// All but so many spans are taken.
    TakeBut(i64),
    /// Never.
    Silence,
}

#[derive(Default)]
struct Arrived {
    requests: Vec<(HeaderMap, ExportTraceServiceRequest)>,
    bytes: Vec<u8>,
    tries: usize,
    replies: VecDeque<Reply>,
}

/// A collector that listens.
#[derive(Clone)]
pub struct Collector {
    /// Where it listens.
    pub url: String,
    arrived: Arc<Mutex<Arrived>>,
}

impl Collector {
    /// One that answers the first requests so, and takes all after them. It goes on as long as its
    /// process, on a thread of its own, so that tests may block.
    pub fn new(replies: &[Reply]) -> Self {
        let arrived = Arc::new(Mutex::new(Arrived::default()));
        arrived.lock().replies.extend(replies);
        let routes = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&arrived));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("set");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                axum::serve(listener, routes).await.expect("serves");
            });
        });
        Self { url, arrived }
    }

    /// All spans that arrived so far.
    pub fn spans(&self) -> Vec<Span> {
        let arrived = self.arrived.lock();
        let resources = arrived.requests.iter().flat_map(|(_, it)| &it.resource_spans);
        resources.flat_map(|it| &it.scope_spans).flat_map(|it| it.spans.clone()).collect()
    }

    /// Waits until so many spans have arrived.
    #[track_caller]
    pub fn until(&self, least: usize) -> Vec<Span> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let spans = self.spans();
            if spans.len() >= least {
                return spans;
            }
            let names: Vec<_> = spans.iter().map(|span| &span.name).collect();
            assert!(Instant::now() < deadline, "{least} spans wanted, only {names:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// How often something was posted, taken or not.
    pub fn tries(&self) -> usize {
        self.arrived.lock().tries
    }

    /// What was said of the core with the first request.
    pub fn resource(&self) -> Vec<KeyValue> {
        let arrived = self.arrived.lock();
        let (_, request) = arrived.requests.first().expect("something arrived");
        request.resource_spans[0].resource.clone().expect("a resource").attributes
    }

    /// A header of the first request.
    pub fn header(&self, name: &str) -> Option<String> {
        let arrived = self.arrived.lock();
        let (headers, _) = arrived.requests.first().expect("something arrived");
        Some(headers.get(name)?.to_str().expect("text").to_owned())
    }

    /// Whether a text stands anywhere in what arrived.
    pub fn holds(&self, text: &str) -> bool {
        let arrived = self.arrived.lock();
        arrived.bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

async fn take(
    State(arrived): State<Arc<Mutex<Arrived>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = unpacked(&headers, body);
    let reply = {
        let mut arrived = arrived.lock();
        arrived.tries += 1;
        arrived.bytes.extend_from_slice(&body);
        arrived.replies.pop_front()
    };
    let rejected_spans = match reply {
        Some(Reply::Silence) => std::future::pending().await,
        Some(Reply::Refuse(status)) => {
            return StatusCode::from_u16(status).expect("a status").into_response();
        }
        Some(Reply::TakeBut(rejected)) => rejected,
        None => 0,
    };
    assert_eq!(headers.get("content-type").expect("a kind"), "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(&body[..]).expect("a request of OTLP");
    arrived.lock().requests.push((headers, request));
    let error_message = String::new();
    let partial_success = Some(ExportTracePartialSuccess { rejected_spans, error_message });
    ExportTraceServiceResponse { partial_success }.encode_to_vec().into_response()
}

/// The body as it was before it was packed, which collectors of others do whether asked to or not.
fn unpacked(headers: &HeaderMap, body: Bytes) -> Bytes {
    /// What stands before the packed bytes where no name of a file is given, and behind them.
    const GZIP_HEAD_BYTES: usize = 10;
    const GZIP_TAIL_BYTES: usize = 8;
    const BODY_BYTES_MAX: usize = 16 << 20;
    if headers.get("content-encoding").is_none_or(|coding| coding != "gzip") {
        return body;
    }
    let packed = &body[GZIP_HEAD_BYTES..body.len() - GZIP_TAIL_BYTES];
    let whole = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, BODY_BYTES_MAX);
    whole.expect("gzip").into()
}

/// What an attribute of a span says, as text.
pub fn said(span: &Span, key: &str) -> Option<String> {
    attribute(&span.attributes, key)
}

/// What an attribute says, as text.
pub fn attribute(all: &[KeyValue], key: &str) -> Option<String> {
    let found = all.iter().find(|it| it.key == key)?;
    match found.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        Value::ArrayValue(list) => Some(format!("{:?}", list.values)),
        other => panic!("{key} is {other:?}"),
    }
}

/// The one span of this name.
#[track_caller]
pub fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    let names: Vec<_> = spans.iter().map(|span| &span.name).collect();
    assert_eq!(found.len(), 1, "{name} among {names:?}");
    found[0]
}

/// An id as people write it.
pub fn digits(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
