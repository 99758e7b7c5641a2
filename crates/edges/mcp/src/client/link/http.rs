//! A server elsewhere, by streamable HTTP.
//!
//! Each message is a POST of its own; what belongs to it comes back as its answer, as one message
//! or as a stream of them. A legacy server gives a session, which is begun anew when it is
//! forgotten there, and has a stream for what belongs to no request; streams that break off are
//! resumed where they have ids. A modern server knows none of this, and headers repeat what its
//! requests say. Who waits for how long is the session's affair: a request it gives up is dropped
//! here, which closes its stream.

pub(super) mod events;
mod exchange;
mod session;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use wharf_hosting::Tasks;
use wharf_wire::mcp_v1::headers::{self, McpMirror, McpMirrored};
use wharf_wire::mcp_v1::{McpEra, McpId, McpMessage, key};

use super::dial::DialRequest;
use super::rights::UpstreamHttp;
use super::{LinkEnd, LinkNews, LinkOrder, LinkSend, UpstreamLink};
use session::HttpSession;

/// Messages that may be on their way at once; the sessions allow fewer.
const POSTS_MAX: usize = 256;
/// How long a server may take to acknowledge what wants no answer.
const TELL_TIMEOUT: Duration = Duration::from_secs(30);

/// A way to a server by HTTP. It ends when the other end is dropped.
pub(crate) fn open(tasks: &Tasks, server: UpstreamHttp) -> UpstreamLink {
    let (link, LinkEnd { orders, news }) = UpstreamLink::new();
    let session = Mutex::new(HttpSession::default());
    let shared = HttpShared { server, news, session, renewing: Semaphore::new(1) };
    tasks.spawn("talking to a server by HTTP", drive(Arc::new(shared), orders));
    link
}

/// What all requests to one server share.
struct HttpShared {
    server: UpstreamHttp,
    news: mpsc::Sender<LinkNews>,
    session: Mutex<HttpSession>,
    /// A session is begun anew by one request, while the others wait.
    renewing: Semaphore,
}

async fn drive(shared: Arc<HttpShared>, mut orders: mpsc::Receiver<LinkOrder>) {
    let mut work = HttpWork::default();
    loop {
        tokio::select! {
            order = orders.recv(), if work.running.len() < POSTS_MAX => match order {
                Some(order) => work.take(&shared, order).await,
                None => break,
            },
            Some(done) = work.running.join_next() => {
                if let Ok(Some(id)) = done {
                    work.posts.remove(&id);
                }
            }
            () = shared.news.closed() => break,
        }
    }
    drop(work);
    shared.say_goodbye().await;
    // Whoever drove the session may be gone, or read nothing any more.
    let _ = shared.news.try_send(LinkNews::Ended("is not talked to any more".to_owned()));
}

/// What is under way. Dropping it ends all of it.
#[derive(Default)]
struct HttpWork {
    running: JoinSet<Option<McpId>>,
    posts: HashMap<McpId, AbortHandle>,
}

impl HttpWork {
    async fn take(&mut self, shared: &Arc<HttpShared>, order: LinkOrder) {
        match order {
            LinkOrder::Send(send) => self.send(shared, *send).await,
            LinkOrder::Forget(id) => self.forget(&id),
            LinkOrder::Agreed(revision) => {
                if revision.era() == McpEra::Legacy {
                    shared.session.lock().revision = Some(revision);
                }
            }
        }
    }

    fn forget(&mut self, id: &McpId) {
        if let Some(post) = self.posts.remove(id) {
            post.abort();
        }
    }

    async fn send(&mut self, shared: &Arc<HttpShared>, send: LinkSend) {
        let LinkSend { message, mirrors } = send;
        let out = HttpOut::new(message, &mirrors);
        let shared = Arc::clone(shared);
        match &out.message {
            McpMessage::Request { id, .. } => {
                let id = id.clone();
                let post = self.running.spawn(shared.request(id.clone(), out));
                self.posts.insert(id, post);
            }
            McpMessage::Notification { method, params } => match method.as_str() {
                "notifications/initialized" => {
                    // Nothing may reach the server before it.
                    shared.tell(&out).await;
                    self.running.spawn(shared.listen());
                }
                "notifications/cancelled" => {
                    let id = params.as_ref().and_then(|params| params.get("requestId"));
                    if let Some(id) = id.and_then(|id| serde::Deserialize::deserialize(id).ok()) {
                        self.forget(&id);
                    }
                    // To a modern server the end of the stream says the same.
                    if shared.session.lock().revision.is_some() {
                        self.running.spawn(tell_later(shared, out));
                    }
                }
                _ => drop(self.running.spawn(tell_later(shared, out))),
            },
            McpMessage::Result { .. } | McpMessage::Error { .. } => {
                self.running.spawn(tell_later(shared, out));
            }
        }
    }
}

async fn tell_later(shared: Arc<HttpShared>, out: HttpOut) -> Option<McpId> {
    shared.tell(&out).await;
    None
}

/// A message as it is sent, as often as it has to be.
struct HttpOut {
    message: McpMessage,
    era: McpEra,
    /// What a modern request repeats.
    repeated: Vec<(HeaderName, HeaderValue)>,
}

impl HttpOut {
    fn new(message: McpMessage, mirrors: &[McpMirror]) -> Self {
        let mut repeated = Vec::new();
        let mut era = McpEra::Legacy;
        if let McpMessage::Request { method, params, .. } = &message
            && let Some(version) = modern_version(params.as_ref())
        {
            era = McpEra::Modern;
            let body = McpMirrored { version, method, params: params.as_ref(), mirrors };
            repeated = headers::write(body)
                .into_iter()
                .filter_map(|(name, value)| {
                    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
                    Some((name, HeaderValue::from_str(&value).ok()?))
                })
                .collect();
        }
        Self { message, era, repeated }
    }

    fn is_initialize(&self) -> bool {
        matches!(&self.message, McpMessage::Request { method, .. } if method == "initialize")
    }
}

fn modern_version(params: Option<&wharf_vocab::Object>) -> Option<&str> {
    params?.get(key::META)?.get(key::PROTOCOL_VERSION).and_then(Value::as_str)
}

impl HttpShared {
    /// A POST of a message, and which edition of the session it belongs to, if to any.
    fn post(&self, out: &HttpOut) -> (DialRequest, Option<u64>) {
        let request = DialRequest::new(Method::POST, self.server.address().url().clone())
            .header(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(out.message.write());
        if out.era == McpEra::Modern {
            let repeated = out.repeated.iter().cloned();
            let request =
                repeated.fold(request, |request, (name, value)| request.header(name, value));
            return (request, None);
        }
        if out.is_initialize() {
            return (request, None);
        }
        self.session.lock().mark(request)
    }

    /// Passes news on; `false` if nobody wants to know any more.
    async fn pass(&self, news: LinkNews) -> bool {
        self.news.send(news).await.is_ok()
    }

    /// Sends what wants no answer. What becomes of it is not waited for by anybody.
    async fn tell(&self, out: &HttpOut) {
        let (request, _) = self.post(out);
        match tokio::time::timeout(TELL_TIMEOUT, self.server.send(request)).await {
            Ok(Ok(answer)) if answer.status().is_success() => {}
            Ok(Ok(answer)) => {
                tracing::debug!(status = answer.status().as_u16(), "a notification was refused");
            }
            Ok(Err(_)) | Err(_) => tracing::debug!("a notification did not arrive"),
        }
    }
}
