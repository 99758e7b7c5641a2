//! The session that a legacy server gives, and the stream of what belongs to no request.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderName, HeaderValue};
use reqwest::{Method, Response};
use wharf_wire::mcp_v1::{McpId, McpMessage, McpNotification, McpRevision, headers};

use super::super::LinkNews;
use super::super::dial::{DialRequest, read_body};
use super::events::{BodyKind, EventStream, answers, kind_of};
use super::exchange::{Pauses, StreamEnd};
use super::{HttpOut, HttpShared};

/// How long a session may take to be begun anew.
const RENEW_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a server may take to be told that a session is over.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a stream may take to be opened.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest id of a session that is kept.
const ID_BYTES_MAX: usize = 4 * 1024;
/// Largest answer to a handshake.
const HANDSHAKE_BYTES_MAX: usize = 1024 * 1024;

/// The session with a legacy server; empty with a modern one.
#[derive(Debug, Default)]
pub(super) struct HttpSession {
    /// What was agreed on in the handshake.
    pub(super) revision: Option<McpRevision>,
    id: Option<HeaderValue>,
    /// The handshake, to begin anew with.
    initialize: Option<McpMessage>,
    /// Grows whenever it is begun anew.
    edition: u64,
}

impl HttpSession {
    /// A handshake was answered well.
    pub(super) fn begin(&mut self, initialize: &McpMessage, answer: &Response) {
        self.id = session_id(answer);
        self.initialize = Some(initialize.clone());
    }

    /// What an answer to the handshake agrees to.
    pub(super) fn agree(&mut self, text: &str) {
        self.revision = agreed(text).or(self.revision);
    }

    /// Marks a request as one of this session, and says which edition of it that is.
    pub(super) fn mark(&self, mut request: DialRequest) -> (DialRequest, Option<u64>) {
        if let Some(revision) = self.revision {
            let version = HeaderValue::from_static(revision.as_str());
            request = request.header(HeaderName::from_static(headers::PROTOCOL_VERSION), version);
        }
        match &self.id {
            Some(id) => {
                let name = HeaderName::from_static(headers::SESSION_ID);
                (request.header(name, id.clone()), Some(self.edition))
            }
            None => (request, None),
        }
    }
}

fn session_id(answer: &Response) -> Option<HeaderValue> {
    let id = answer.headers().get(headers::SESSION_ID)?;
    (!id.is_empty() && id.len() <= ID_BYTES_MAX).then(|| id.clone())
}

fn agreed(text: &str) -> Option<McpRevision> {
    match McpMessage::read(text.as_bytes()) {
        Ok(McpMessage::Result { result, .. }) => {
            McpRevision::parse(result.get("protocolVersion")?.as_str()?)
        }
        _ => None,
    }
}

impl HttpShared {
    /// A GET of this session's stream, from an id on.
    pub(super) fn get(&self, from: Option<&str>) -> Option<(DialRequest, Option<u64>)> {
        let mut request = DialRequest::new(Method::GET, self.server.address().url().clone())
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(from) = from {
            let from = HeaderValue::from_str(from).ok()?;
            request = request.header(HeaderName::from_static(headers::LAST_EVENT_ID), from);
        }
        Some(self.session.lock().mark(request))
    }

    /// Begins a session anew that the server has forgotten; `false` if it cannot be. Whoever comes
    /// while somebody does it waits and uses what came of it.
    pub(super) async fn renew(&self, edition: u64) -> bool {
        let Ok(_one) = self.renewing.acquire().await else { return false };
        let (initialize, revision) = {
            let session = self.session.lock();
            if session.edition != edition {
                return true;
            }
            (session.initialize.clone(), session.revision)
        };
        let Some(McpMessage::Request { method, params, .. }) = initialize else { return false };
        let id = McpId::Text(format!("wharf-anew-{edition}"));
        let out = HttpOut::new(McpMessage::Request { id: id.clone(), method, params }, &[]);
        let begun = tokio::time::timeout(RENEW_TIMEOUT, self.shake_hands(&id, &out, revision));
        let Ok(Some(session_id)) = begun.await else { return false };
        {
            let mut session = self.session.lock();
            session.id = session_id;
            session.edition += 1;
        }
        let told = McpNotification::Initialized(Box::default());
        let message =
            McpMessage::Notification { method: told.method().to_owned(), params: told.params() };
        self.tell(&HttpOut::new(message, &[])).await;
        self.begun_anew().await;
        true
    }

    /// Shakes hands as before; the id of the new session if the server agrees to the same.
    async fn shake_hands(
        &self,
        id: &McpId,
        out: &HttpOut,
        revision: Option<McpRevision>,
    ) -> Option<Option<HeaderValue>> {
        let answer = self.server.send(self.post(out).0).await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        let session_id = session_id(&answer);
        let text = match kind_of(&answer) {
            BodyKind::Json => {
                let body = read_body(answer, HANDSHAKE_BYTES_MAX).await?;
                String::from_utf8(body).ok()?
            }
            BodyKind::Events => {
                let mut events = EventStream::new(answer, None);
                loop {
                    let text = events.next().await.ok()??;
                    if answers(&text, id) {
                        break text;
                    }
                }
            }
            BodyKind::Other => return None,
        };
        (agreed(&text).is_some() && agreed(&text) == revision).then_some(session_id)
    }

    /// A server that forgot its session may have another catalog: it is as if it had said so.
    async fn begun_anew(&self) {
        for told in [
            McpNotification::ToolsChanged(Box::default()),
            McpNotification::ResourcesChanged(Box::default()),
            McpNotification::PromptsChanged(Box::default()),
        ] {
            let (method, params) = (told.method().to_owned(), told.params());
            let text = McpMessage::Notification { method, params }.write();
            self.pass(LinkNews::Message { of: None, text }).await;
        }
    }

    /// Keeps the stream open of what belongs to no request, if the server has one.
    pub(super) async fn listen(self: Arc<Self>) -> Option<McpId> {
        let mut pauses = Pauses::default();
        let mut from: Option<String> = None;
        let mut renewed = None;
        loop {
            let Some((request, edition)) = self.get(from.as_deref()) else {
                from = None;
                continue;
            };
            let opened = tokio::time::timeout(LISTEN_TIMEOUT, self.server.send(request)).await;
            if let Ok(Ok(answer)) = opened {
                match answer.status().as_u16() {
                    200 if kind_of(&answer) == BodyKind::Events => {
                        let mut events = EventStream::new(answer, from.take());
                        let end = self.pass_on(None, &mut events).await;
                        from = events.last_id();
                        pauses.after(&events);
                        match end {
                            StreamEnd::Unwanted => return None,
                            // It would come again.
                            StreamEnd::TooLarge => from = None,
                            StreamEnd::Over | StreamEnd::Answered => {}
                        }
                    }
                    // It does not know any more where the stream was.
                    400 if from.is_some() => from = None,
                    404 if edition.is_some() && renewed != edition => {
                        from = None;
                        self.renew(edition.unwrap_or_default()).await;
                        renewed = edition.map(|edition| edition + 1);
                    }
                    500..=599 | 408 | 429 => {}
                    // There is no such stream.
                    _ => return None,
                }
            }
            tokio::time::sleep(pauses.next()).await;
        }
    }

    /// Tells a legacy server that its session is over.
    pub(super) async fn say_goodbye(&self) {
        let request = DialRequest::new(Method::DELETE, self.server.address().url().clone());
        let (request, edition) = self.session.lock().mark(request);
        if edition.is_some() {
            let _ = tokio::time::timeout(GOODBYE_TIMEOUT, self.server.send(request)).await;
        }
    }
}
