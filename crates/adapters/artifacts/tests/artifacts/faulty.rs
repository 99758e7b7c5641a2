//! Something between a client and a server that behaves as badly as it is told to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// What becomes of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// It is passed on.
    Pass,
    /// It is answered with this status, and nobody sees it.
    Status(u16),
    /// Its answer is cut behind so many bytes of its body.
    Cut(usize),
    /// Its answer stops behind so many bytes of its body.
    Stall(usize),
    /// It is never answered.
    Silent,
    /// It is passed on, and then the connection is closed without an answer.
    Forget,
}

/// A request that has come.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) query: String,
    pub(crate) range: Option<String>,
}

type Script = Arc<dyn Fn(usize, &Seen) -> Fault + Send + Sync>;
type Pieces = BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>;

/// A server that passes requests on, or not.
pub(crate) struct Faulty {
    addr: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _task: AbortOnDropHandle<()>,
}

impl Faulty {
    /// Stands before a server. The script is asked what to do with each request, by its number
    /// from 0.
    pub(crate) async fn before(
        upstream: &str,
        script: impl Fn(usize, &Seen) -> Fault + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (upstream, notes) = (upstream.to_owned(), Arc::clone(&seen));
        let script: Script = Arc::new(script);
        let task = tokio::spawn(async move {
            let client = reqwest::Client::builder().no_proxy().build().expect("a client");
            while let Ok((stream, _)) = listener.accept().await {
                let (upstream, notes) = (upstream.clone(), Arc::clone(&notes));
                let (script, client) = (Arc::clone(&script), client.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let fault = note(&notes, &script, &request);
                        answer(client.clone(), upstream.clone(), fault, request)
                    });
                    let served =
                        http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                    // It is meant to end badly.
                    let _ = served.await;
                });
            }
        });
        Self { addr, seen, _task: AbortOnDropHandle::new(task) }
    }

    /// Where it listens.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What has come so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }
}

fn note(notes: &Mutex<Vec<Seen>>, script: &Script, request: &Request<Incoming>) -> Fault {
    let range = request.headers().get("range").and_then(|value| value.to_str().ok());
    let seen = Seen {
        method: request.method().to_string(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        range: range.map(str::to_owned),
    };
    let mut notes = notes.lock();
    let fault = script(notes.len(), &seen);
    notes.push(seen);
    fault
}

fn answer(
    client: reqwest::Client,
    upstream: String,
    fault: Fault,
    request: Request<Incoming>,
) -> BoxFuture<'static, Result<Response<StreamBody<Pieces>>, std::io::Error>> {
    Box::pin(async move {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
        match fault {
            Fault::Status(status) => {
                let mut answer = Response::new(StreamBody::new(stream::empty().boxed()));
                *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
                return Ok(answer);
            }
            Fault::Silent => return std::future::pending().await,
            _ => {}
        }
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let sent = client.request(parts.method, format!("{upstream}{path}")).headers(parts.headers);
        let got = sent.body(body).send().await.map_err(std::io::Error::other)?;
        if matches!(fault, Fault::Forget) {
            return Err(std::io::Error::other("forgotten"));
        }
        let mut answer = Response::builder().status(got.status());
        if let Some(headers) = answer.headers_mut() {
            *headers = got.headers().clone();
            headers.remove("transfer-encoding");
        }
        let pieces: Pieces = match fault {
            Fault::Pass => {
                got.bytes_stream().map_ok(Frame::data).map_err(std::io::Error::other).boxed()
            }
            Fault::Cut(bytes) => {
                let end = std::io::Error::other("cut");
                first(got, bytes).await.chain(stream::iter([Err(end)])).boxed()
            }
            Fault::Stall(bytes) => first(got, bytes).await.chain(stream::pending()).boxed(),
            Fault::Status(_) | Fault::Silent | Fault::Forget => unreachable!("answered above"),
        };
        Ok(answer.body(StreamBody::new(pieces)).expect("an answer"))
    })
}

/// The first bytes of an answer, in a piece of their own.
async fn first(
    got: reqwest::Response,
    bytes: usize,
) -> BoxStream<'static, Result<Frame<Bytes>, std::io::Error>> {
    let whole = got.bytes().await.expect("a body");
    let piece = whole.slice(..bytes.min(whole.len()));
    let piece: Result<_, Infallible> = Ok(Frame::data(piece));
    stream::iter([piece]).map(|piece| Ok(piece.unwrap_or_else(|never| match never {}))).boxed()
}
