//! A server that does as a script says, and a link to it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, Response, StatusCode};
use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use wharf_hosting::Tasks;
use wharf_ports::vault::Secret;
use wharf_vocab::{ProviderId, SecretName};
use wharf_wire::mcp_v1::McpMessage;

use super::super::super::address::UpstreamAddress;
use super::super::super::dial::UpstreamDial;
use super::super::super::rights::{SecretRights, UpstreamHttp};
use super::super::super::{LinkNews, LinkOrder, LinkSend, UpstreamLink, http, old_sse};

/// A request that arrived.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) verb: String,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
    /// How many with the same verb and event id came before.
    pub(super) nth_of_its_kind: usize,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(super) fn method(&self) -> Option<&str> {
        self.body["method"].as_str()
    }
}

/// What is answered.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    /// What is sent at once.
    pub(super) pieces: Vec<String>,
    /// Whether the answer stays open, and what is sent when the script says so.
    pub(super) then: Option<String>,
}

impl Reply {
    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

pub(super) fn status(status: u16) -> Reply {
    Reply { status, kind: "text/plain", headers: Vec::new(), pieces: Vec::new(), then: None }
}

pub(super) fn json_reply(value: &Value) -> Reply {
    Reply { kind: "application/json", pieces: vec![value.to_string()], ..status(200) }
}

pub(super) fn events(text: &str) -> Reply {
    Reply { kind: "text/event-stream", pieces: vec![text.to_owned()], ..status(200) }
}

pub(super) fn endless(text: &str) -> Reply {
    Reply { then: Some(String::new()), ..events(text) }
}

pub(super) fn endless_of(pieces: Vec<String>, then: &str) -> Reply {
    Reply { pieces, then: Some(then.to_owned()), ..events("") }
}

type Script = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// How far answers that stay open are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cue {
    Wait,
    Release,
    End,
}

/// The server and what it saw.
pub(super) struct Stage {
    script: Script,
    seen: Arc<Mutex<Vec<Seen>>>,
    open: Arc<AtomicUsize>,
    cue: watch::Sender<Cue>,
    tasks: Tasks,
}

impl Stage {
    pub(super) fn new(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self {
            script: Arc::new(script),
            seen: Arc::default(),
            open: Arc::default(),
            cue: watch::channel(Cue::Wait).0,
            tasks: Tasks::default(),
        }
    }

    async fn serve(&self) -> u16 {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (script, seen) = (Arc::clone(&self.script), Arc::clone(&self.seen));
        let (open, cue) = (Arc::clone(&self.open), self.cue.clone());
        let service = Router::new().fallback(move |request: Request<Body>| {
            let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
            let (open, cue) = (Arc::clone(&open), cue.subscribe());
            async move {
                let (head, body) = request.into_parts();
                let body = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
                let mut one = Seen {
                    verb: head.method.to_string(),
                    path: head.uri.path().to_owned(),
                    headers: head.headers,
                    body: serde_json::from_slice(&body).unwrap_or_default(),
                    nth_of_its_kind: 0,
                };
                {
                    let mut all = seen.lock();
                    let kind = |it: &Seen| {
                        (it.verb.clone(), it.header("last-event-id").map(str::to_owned))
                    };
                    one.nth_of_its_kind = all.iter().filter(|it| kind(it) == kind(&one)).count();
                    all.push(one.clone());
                }
                respond(script(&one), open, cue)
            }
        });
        tokio::spawn(async move { axum::serve(listener, service).await });
        port
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    pub(super) async fn seen_when(&self, is_enough: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        self.wait(|| is_enough(&self.seen.lock())).await;
        self.seen()
    }

    async fn wait(&self, is_so: impl Fn() -> bool) {
        let waiting = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it comes about");
    }

    /// Waits until so many answers are open.
    pub(super) async fn open_streams(&self, count: usize) {
        self.wait(|| self.open.load(Ordering::SeqCst) == count).await;
    }

    /// Goes on with open answers once a request with this verb was seen.
    pub(super) async fn release_when_seen(&self, verb: &str) {
        self.seen_when(|seen| seen.iter().any(|it| it.verb == verb)).await;
        self.cue.send_replace(Cue::Release);
    }

    pub(super) fn end_streams(&self) {
        self.cue.send_replace(Cue::End);
    }

    pub(super) async fn open(&self) -> Link {
        let port = self.serve().await;
        self.open_at(&format!("http://127.0.0.1:{port}/mcp")).await
    }

    pub(super) async fn open_at(&self, url: &str) -> Link {
        Link(http::open(&self.tasks, server(url, &[])))
    }

    pub(super) async fn open_old(&self, path: &str) -> Link {
        let port = self.serve().await;
        let url = format!("http://127.0.0.1:{port}{path}");
        Link(old_sse::open(&self.tasks, server(&url, &[])))
    }

    /// A link whose secrets are read as these, one after the other.
    pub(super) async fn open_with_secrets(&self, values: &'static [&'static str]) -> Link {
        let port = self.serve().await;
        Link(http::open(&self.tasks, server(&format!("http://127.0.0.1:{port}/"), values)))
    }
}

fn server(url: &str, secrets: &'static [&'static str]) -> UpstreamHttp {
    let address = UpstreamAddress::read(url, false).expect("an address");
    let dial = UpstreamDial::new(address).expect("a client");
    let reads = Mutex::new(HashMap::new());
    let read = move |name: SecretName| -> futures::future::BoxFuture<'static, _> {
        let mut reads = reads.lock();
        let nth: &mut usize = reads.entry(name).or_default();
        let value = secrets[(*nth).min(secrets.len() - 1)];
        *nth += 1;
        Box::pin(async move { Ok(Secret::new(value.as_bytes())) })
    };
    let token = SecretName::new("token").expect("a name");
    let other = SecretName::new("key").expect("a name");
    let headers = secrets.first().map(|_| ("X-Key".to_owned(), other));
    let provider = ProviderId::new("web").expect("an id");
    let token = (!secrets.is_empty()).then_some(token);
    let rights = SecretRights::new(provider, token, headers, Arc::new(read)).expect("rights");
    UpstreamHttp::new(dial, Arc::new(rights))
}

/// Counts an answer as open while it is sent.
struct OpenStream(Arc<AtomicUsize>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn respond(reply: Reply, open: Arc<AtomicUsize>, mut cue: watch::Receiver<Cue>) -> Response<Body> {
    let mut response = Response::builder()
        .status(StatusCode::from_u16(reply.status).expect("a status"))
        .header("content-type", reply.kind);
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    let now = futures::stream::iter(reply.pieces);
    let body = match reply.then {
        None => Body::from_stream(now.map(piece)),
        Some(then) => {
            open.fetch_add(1, Ordering::SeqCst);
            let open = OpenStream(open);
            let later = futures::stream::once(async move {
                let _ = cue.wait_for(|cue| *cue >= Cue::Release).await;
                (then, cue, open)
            });
            let later = later.flat_map(|(then, mut cue, open)| {
                let end = futures::stream::once(async move {
                    let _ = cue.wait_for(|cue| *cue >= Cue::End).await;
                    drop(open);
                    String::new()
                });
                futures::stream::once(async move { then }).chain(end)
            });
            Body::from_stream(now.chain(later).map(piece))
        }
    };
    response.body(body).expect("a response")
}

fn piece(text: String) -> Result<Bytes, Infallible> {
    Ok(text.into())
}

/// The other end.
pub(super) struct Link(UpstreamLink);

impl Link {
    pub(super) async fn orders(&self, order: LinkOrder) {
        self.0.orders.send(order).await.expect("taken");
    }

    pub(super) async fn send(&self, message: McpMessage) {
        self.orders(LinkOrder::Send(Box::new(LinkSend { message, mirrors: Vec::new() }))).await;
    }

    /// Shakes hands.
    pub(super) async fn begin(&mut self) {
        self.send(super::initialize()).await;
        self.message().await;
        self.send(super::notification("notifications/initialized")).await;
    }

    pub(super) async fn news(&mut self) -> LinkNews {
        let news = tokio::time::timeout(Duration::from_secs(30), self.0.news.recv()).await;
        news.expect("in time").expect("news")
    }

    pub(super) async fn news_until(&mut self, is_it: impl Fn(&LinkNews) -> bool) -> LinkNews {
        loop {
            let news = self.news().await;
            if is_it(&news) {
                return news;
            }
        }
    }

    pub(super) async fn message(&mut self) -> Value {
        match self.news().await {
            LinkNews::Message { text, .. } => serde_json::from_str(&text).expect("JSON"),
            other => panic!("a message and not {other:?}"),
        }
    }
}
