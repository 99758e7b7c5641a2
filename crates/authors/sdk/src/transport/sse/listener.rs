//! The side that is connected to: a small server of HTTP.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use wharf_protocol::tool::NextEvents;
use wharf_wire::tool_v1::SUBPROTOCOL;

use super::outlet::{Cursor, Outlet};
use super::session::SseSession;
use crate::transport::{Error, Link, Options};

/// Sessions that may wait to be accepted.
const WAITING_MAX: usize = 64;
/// Sessions there may be.
const SESSIONS_MAX: usize = 1_024;
/// Connections there may be.
const CONNECTIONS_MAX: usize = 4_096;
/// Messages of one session that may wait to be taken.
const POSTS_MAX: usize = 64;

type SseResponse = Response<BoxBody<Bytes, Infallible>>;

/// All sessions by what they are known by.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<String, SessionEntry>>);

/// The way to a session.
#[derive(Debug, Clone)]
struct SessionEntry {
    outlet: Arc<Outlet>,
    posts: mpsc::Sender<String>,
}

impl Sessions {
    /// A session has ended.
    pub(super) fn remove(&self, key: &str, outlet: &Arc<Outlet>) {
        let mut sessions = self.0.lock();
        if sessions.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.outlet, outlet)) {
            sessions.remove(key);
        }
    }
}

/// What all connections share.
struct ListenerState {
    options: Options,
    sessions: Arc<Sessions>,
    links: mpsc::Sender<Link>,
}

/// Listens for sessions of server-sent events and POST, on every path.
///
/// ```
/// use wharf_sdk::transport::{Options, sse};
/// use wharf_sdk::{Scope, Tool, operative};
///
/// const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut listener = sse::Listener::bind("127.0.0.1:0", Options::default()).await?;
/// let address = format!("http://{}", listener.address());
///
/// let server = Scope::root();
/// server.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) })?;
/// let client = sse::connect(&address, &Options::default()).await?;
/// let link = listener.accept().await.expect("a session");
/// let serving = operative::serve(&server, &link);
///
/// let client = Scope::root().with_transport(client);
/// assert_eq!(DOUBLE.call(&client, 21).await?, 42);
/// serving.stop().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    links: mpsc::Receiver<Link>,
    /// Connections go with the task that holds them.
    _task: AbortOnDropHandle<()>,
}

impl Listener {
    /// Begins to listen.
    pub async fn bind(address: impl AsRef<str>, options: Options) -> Result<Self, Error> {
        let listener = TcpListener::bind(address.as_ref()).await.map_err(Error::Listen)?;
        let address = listener.local_addr().map_err(Error::Listen)?;
        let (sender, links) = mpsc::channel(WAITING_MAX);
        let shared = ListenerState { options, sessions: Arc::default(), links: sender };
        let task = tokio::spawn(listen(listener, Arc::new(shared)));
        Ok(Self { address, links, _task: AbortOnDropHandle::new(task) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next session; `None` once there can be no more.
    pub async fn accept(&mut self) -> Option<Link> {
        self.links.recv().await
    }
}

async fn listen(listener: TcpListener, shared: Arc<ListenerState>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Some(stream) = crate::transport::dial::next(&listener).await else { continue };
        while connections.try_join_next().is_some() {}
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let _place = place;
            let service = service_fn(move |request| answer(Arc::clone(&shared), request));
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service);
            // A connection that breaks concerns nobody but its client.
            let _ = served.await;
        });
    }
}

async fn answer(
    shared: Arc<ListenerState>,
    request: Request<Incoming>,
) -> Result<SseResponse, Infallible> {
    let shown = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.strip_prefix("Bearer "));
    if let Some(token) = &shared.options.token
        && !shown.is_some_and(|shown| crate::transport::options::is_same(shown, token))
    {
        return Ok(HttpRefusal(StatusCode::UNAUTHORIZED, "A token is needed.").answer());
    }
    let answered = match *request.method() {
        Method::GET => shared.read(&request),
        Method::POST => shared.post(request).await,
        _ => Err(HttpRefusal(StatusCode::METHOD_NOT_ALLOWED, "Only GET and POST are known here.")),
    };
    Ok(answered.unwrap_or_else(|refusal| refusal.answer()))
}

impl ListenerState {
    /// Opens the stream of a session's events.
    fn read(self: &Arc<Self>, request: &Request<Incoming>) -> Result<SseResponse, HttpRefusal> {
        let header = request.headers().get("last-event-id").and_then(|value| value.to_str().ok());
        let after = header.filter(|text| !text.is_empty());
        let after = after.or_else(|| pair(request, "after")).map(str::parse).transpose();
        let after = after.map_err(|_| {
            HttpRefusal(StatusCode::BAD_REQUEST, "The number of the last event is no number.")
        })?;
        let gone = || HttpRefusal(StatusCode::GONE, "The session has ended; begin a new one.");
        let entry = match after {
            Some(1..) => self.known(&key(request)).ok_or_else(gone)?,
            _ => self.session(request)?,
        };
        let cursor = entry.outlet.read(after).ok_or_else(gone)?;
        let body = StreamBody::new(events(cursor, self.options.keep_alive)).boxed();
        let answer = Response::builder()
            .header(CONTENT_TYPE, "text/event-stream")
            .header(CACHE_CONTROL, "no-store")
            .body(body);
        answer.map_err(|_| HttpRefusal(StatusCode::INTERNAL_SERVER_ERROR, ""))
    }

    /// Takes a message; it is handed on once the answer has been written.
    async fn post(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<SseResponse, HttpRefusal> {
        let entry = self.session(&request)?;
        let body = Limited::new(request.into_body(), self.options.limits.frame_bytes_max);
        let body = body.collect().await.map_err(|_| {
            HttpRefusal(StatusCode::PAYLOAD_TOO_LARGE, "The message is too large, or broke off.")
        })?;
        // What is no text is no JSON either, and is counted as such.
        let text = String::from_utf8(body.to_bytes().into()).unwrap_or_else(|_| "?".to_owned());
        let gone = |_| HttpRefusal(StatusCode::GONE, "The session has ended; begin a new one.");
        let room = entry.posts.reserve_owned().await.map_err(gone)?;
        let body = StreamBody::new(acknowledgement(Posted(Some((room, text))))).boxed();
        let answer = Response::builder().status(StatusCode::ACCEPTED);
        let answer = answer.header(CONTENT_TYPE, "application/json").body(body);
        answer.map_err(|_| HttpRefusal(StatusCode::INTERNAL_SERVER_ERROR, ""))
    }

    fn known(&self, key: &str) -> Option<SessionEntry> {
        let sessions = self.sessions.0.lock();
        sessions.get(key).filter(|entry| !entry.posts.is_closed()).cloned()
    }

    /// The session that is meant, which is begun if there is none.
    fn session(&self, request: &Request<Incoming>) -> Result<SessionEntry, HttpRefusal> {
        let key = key(request);
        let mut sessions = self.sessions.0.lock();
        if let Some(entry) = sessions.get(&key).filter(|entry| !entry.posts.is_closed()) {
            return Ok(entry.clone());
        }
        let busy = || HttpRefusal(StatusCode::SERVICE_UNAVAILABLE, "Too many sessions are open.");
        if sessions.len() >= SESSIONS_MAX {
            return Err(busy());
        }
        let place = self.links.try_reserve().map_err(|_| busy())?;
        let outlet = Arc::new(Outlet::new());
        let (sender, posts) = mpsc::channel(POSTS_MAX);
        let entry = SessionEntry { outlet: Arc::clone(&outlet), posts: sender };
        sessions.insert(key.clone(), entry.clone());
        let marked = !self.options.plain && pair(request, "protocol") == Some(SUBPROTOCOL);
        let unread_max = self.options.unread_max;
        let session = SseSession::new(key, Arc::clone(&self.sessions), outlet, posts, unread_max);
        place.send(Link::new(session, marked, true, &self.options));
        Ok(entry)
    }
}

/// A value of the query.
fn pair<'a, B>(request: &'a Request<B>, key: &str) -> Option<&'a str> {
    let pairs = request.uri().query().unwrap_or_default().split('&');
    let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// What a session is known by: the name that the client chose, else what it is for.
fn key<B>(request: &Request<B>) -> String {
    match pair(request, "session") {
        Some(name) => format!("session {name}"),
        None => {
            let part = |key| pair(request, key).unwrap_or_default();
            format!("for {} {} {}", request.uri().path(), part("role"), part("provider"))
        }
    }
}

/// Why something is not done.
struct HttpRefusal(StatusCode, &'static str);

impl HttpRefusal {
    fn answer(self) -> SseResponse {
        let Self(status, message) = self;
        let body = Full::from(json!({"error": {"message": message}}).to_string());
        let mut answer = Response::new(body.boxed());
        *answer.status_mut() = status;
        answer
    }
}

/// Events as they come, and a sign of life when none do.
fn events(
    cursor: Cursor,
    keep_alive: std::time::Duration,
) -> impl futures::Stream<Item = Result<Frame<Bytes>, Infallible>> {
    // The first line tells the reader at once that it is connected.
    let first = Some(": connected\n\n");
    futures::stream::unfold((cursor, first), move |(mut cursor, first)| async move {
        let frame = |text: String| Ok(Frame::data(Bytes::from(text)));
        if let Some(first) = first {
            return Some((frame(first.to_owned()), (cursor, None)));
        }
        let quiet_until = Instant::now() + keep_alive;
        loop {
            match cursor.take() {
                NextEvents::Text(text) => return Some((frame(text), (cursor, None))),
                NextEvents::End => return None,
                NextEvents::Nothing => {}
            }
            tokio::select! {
                () = cursor.changed() => {}
                () = sleep_until(quiet_until) => {
                    return Some((frame(": keep-alive\n\n".to_owned()), (cursor, None)));
                }
            }
        }
    })
}

/// A message that was posted. It is handed on when this is dropped: a client that does not wait
/// for the answer has sent its message all the same.
struct Posted(Option<(mpsc::OwnedPermit<String>, String)>);

impl Drop for Posted {
    fn drop(&mut self) {
        if let Some((room, text)) = self.0.take() {
            room.send(text);
        }
    }
}

/// The answer to a message, which is handed on when the answer has been written.
fn acknowledgement(
    message: Posted,
) -> impl futures::Stream<Item = Result<Frame<Bytes>, Infallible>> {
    futures::stream::unfold((message, Some(b"{}")), |(message, told)| async move {
        if let Some(told) = told {
            return Some((Ok(Frame::data(Bytes::from_static(told))), (message, None)));
        }
        // What was given is written while this waits.
        tokio::task::yield_now().await;
        None
    })
}
