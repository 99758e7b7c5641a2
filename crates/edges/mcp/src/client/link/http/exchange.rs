//! One request and all that comes of it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use wharf_vocab::{Backoff, Executed};
use wharf_wire::mcp_v1::limits::FROM_SERVER_BYTES_MAX;
use wharf_wire::mcp_v1::{McpEra, McpError, McpId, McpMessage, code};

use super::super::LinkNews;
use super::super::dial::read_body;
use super::super::old_sse::unreached;
use super::super::rights::HttpFailure;
use super::events::{BodyKind, EventStream, answers, kind_of};
use super::{HttpOut, HttpShared};

/// Pauses before a stream is opened again.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(1);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A server that wants to be asked again at once waits at least so long.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
/// How often in a row a stream may be opened again in vain before its request is lost.
const RESUMES_MAX: u32 = 8;
/// Longest refusal that is read.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// How reading a stream ended.
pub(super) enum StreamEnd {
    /// With the answer that was waited for.
    Answered,
    /// Without it.
    Over,
    /// With a message that is too large to be kept.
    TooLarge,
    /// Nobody wants to know any more.
    Unwanted,
}

impl HttpShared {
    /// Makes a request and tells all that comes of it.
    pub(super) async fn request(self: Arc<Self>, id: McpId, out: HttpOut) -> Option<McpId> {
        if let Some(news) = self.exchange(&id, &out).await {
            self.pass(news).await;
        }
        Some(id)
    }

    /// What is left to tell when all that came has been passed on.
    async fn exchange(&self, id: &McpId, out: &HttpOut) -> Option<LinkNews> {
        let id = id.clone();
        let mut is_renewed = false;
        loop {
            let (request, edition) = self.post(out);
            let answer = match self.server.send(request).await {
                Ok(answer) => answer,
                Err(failure) => return Some(failed(id, failure)),
            };
            let status = answer.status().as_u16();
            if answer.status().is_success() {
                return self.answered(id, out, answer).await;
            }
            let error = read_error(answer).await;
            let Some(edition) = edition.filter(|_| is_forgotten(status, error.as_ref())) else {
                return Some(LinkNews::Refused { id, status, error });
            };
            if is_renewed || !self.renew(edition).await {
                return Some(LinkNews::SessionGone { id });
            }
            is_renewed = true;
        }
    }

    async fn answered(&self, id: McpId, out: &HttpOut, answer: Response) -> Option<LinkNews> {
        if out.is_initialize() {
            self.session.lock().begin(&out.message, &answer);
        }
        let status = answer.status().as_u16();
        match kind_of(&answer) {
            BodyKind::Json => {
                let Some(body) = read_body(answer, FROM_SERVER_BYTES_MAX).await else {
                    return Some(too_large(id));
                };
                let text = String::from_utf8_lossy(&body).into_owned();
                let is_answer = answers(&text, &id);
                self.heard(out, &text);
                let passed = self.pass(LinkNews::Message { of: Some(id.clone()), text }).await;
                (passed && !is_answer).then_some(LinkNews::Lost { id })
            }
            BodyKind::Events => self.follow(id, out, EventStream::new(answer, None)).await,
            BodyKind::Other => Some(LinkNews::Refused { id, status, error: None }),
        }
    }

    /// The answer to a handshake says what is spoken from now on.
    fn heard(&self, out: &HttpOut, text: &str) {
        if out.is_initialize() {
            self.session.lock().agree(text);
        }
    }

    /// Reads a request's stream, and opens it again where that is possible, until the answer is
    /// there.
    async fn follow(&self, id: McpId, out: &HttpOut, mut events: EventStream) -> Option<LinkNews> {
        let mut pauses = Pauses::default();
        loop {
            match self.pass_on(Some((&id, out)), &mut events).await {
                StreamEnd::Answered => {
                    events.drain().await;
                    return None;
                }
                StreamEnd::Unwanted => return None,
                StreamEnd::TooLarge => return Some(too_large(id)),
                StreamEnd::Over => {}
            }
            if out.era == McpEra::Modern || out.is_initialize() {
                return Some(LinkNews::Lost { id });
            }
            let Some(from) = events.last_id() else { return Some(LinkNews::Lost { id }) };
            events = match self.resume(from, &events, &mut pauses).await {
                Some(resumed) => resumed,
                None => return Some(LinkNews::Lost { id }),
            };
        }
    }

    /// Opens a stream again after an id; `None` if that cannot be.
    async fn resume(
        &self,
        from: String,
        ended: &EventStream,
        pauses: &mut Pauses,
    ) -> Option<EventStream> {
        pauses.after(ended);
        while pauses.fruitless <= RESUMES_MAX {
            tokio::time::sleep(pauses.next()).await;
            let (request, _) = self.get(Some(&from))?;
            match self.server.send(request).await {
                Ok(answer) if answer.status().is_server_error() => {}
                Ok(answer) => {
                    let goes_on =
                        answer.status().is_success() && kind_of(&answer) == BodyKind::Events;
                    return goes_on.then(|| EventStream::new(answer, Some(from)));
                }
                Err(HttpFailure::Dial(_)) => {}
                Err(HttpFailure::Rights(_)) => return None,
            }
        }
        None
    }

    /// Passes the messages of a stream on until its end or the answer to this request.
    pub(super) async fn pass_on(
        &self,
        of: Option<(&McpId, &HttpOut)>,
        events: &mut EventStream,
    ) -> StreamEnd {
        loop {
            let text = match events.next().await {
                Ok(Some(text)) => text,
                Ok(None) => return StreamEnd::Over,
                Err(_) => return StreamEnd::TooLarge,
            };
            let is_answer = of.is_some_and(|(id, _)| answers(&text, id));
            if let Some((_, out)) = of.filter(|_| is_answer) {
                self.heard(out, &text);
            }
            let of = of.map(|(id, _)| id.clone());
            if !self.pass(LinkNews::Message { of, text }).await {
                return StreamEnd::Unwanted;
            }
            if is_answer {
                return StreamEnd::Answered;
            }
        }
    }
}

/// How long to wait before a stream is opened again.
#[derive(Debug)]
pub(super) struct Pauses {
    backoff: Backoff,
    retry: Option<Duration>,
    /// How often in a row nothing came.
    pub(super) fruitless: u32,
}

impl Default for Pauses {
    fn default() -> Self {
        let backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        Self { backoff, retry: None, fruitless: 0 }
    }
}

impl Pauses {
    /// A stream ended. If it brought something, all is well so far.
    pub(super) fn after(&mut self, ended: &EventStream) {
        self.retry = ended.retry().or(self.retry);
        if ended.is_fruitful {
            self.fruitless = 0;
            self.backoff.reset();
        }
    }

    /// The next pause: what the server asked for, and longer each time that nothing comes.
    pub(super) fn next(&mut self) -> Duration {
        let first = self.fruitless == 0;
        self.fruitless += 1;
        let own = self.backoff.pause();
        let pause = match self.retry {
            Some(retry) if first => retry,
            Some(retry) => retry.max(own),
            None => own,
        };
        pause.clamp(LEAST_PAUSE, LONGEST_PAUSE)
    }
}

/// What it means to whoever made the request that there is no answer.
fn failed(id: McpId, failure: HttpFailure) -> LinkNews {
    match failure {
        HttpFailure::Rights(fault) => LinkNews::Failed { id, fault },
        HttpFailure::Dial(failure) if failure.executed == Executed::No => {
            unreached(id, failure.why)
        }
        HttpFailure::Dial(_) => LinkNews::Lost { id },
    }
}

fn too_large(id: McpId) -> LinkNews {
    let error = McpError::new(code::INTERNAL, "The answer is too large, or broke off.");
    LinkNews::Refused { id, status: 200, error: Some(error) }
}

async fn read_error(answer: Response) -> Option<McpError> {
    let body = read_body(answer, REFUSAL_BYTES_MAX).await?;
    match McpMessage::read(&body) {
        Ok(McpMessage::Error { error, .. }) => Some(error),
        _ => None,
    }
}

/// Whether a refusal of a request with a session means that the session is forgotten: 404 by the
/// book; some servers say 400 and speak of the session in words.
fn is_forgotten(status: u16, error: Option<&McpError>) -> bool {
    let speaks_of_it = |error: &McpError| {
        error.code == -32000 && error.message.to_ascii_lowercase().contains("session")
    };
    status == 404 || (status == 400 && error.is_some_and(speaks_of_it))
}
