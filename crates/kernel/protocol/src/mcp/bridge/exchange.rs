//! One request to the core, through all its tries.

use std::time::Duration;

use wharf_vocab::Backoff;
use wharf_wire::mcp_v1::limits::FROM_SERVER_BYTES_MAX;
use wharf_wire::mcp_v1::{McpEra, McpId, headers};

use super::session::SessionStep;
use super::{McpBridge, McpBridgeBody, McpBridgeOut, McpBridgeRequest, away};
use crate::sse::Parser;

/// Bytes of a line and a field's name beside the message in it.
const FRAMING_BYTES: usize = 64;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A stream that lived so long was a good one, even if nothing came.
const GOOD_STREAM_MS: u64 = 5_000;

/// What an exchange is for.
#[derive(Debug)]
pub(super) enum ExchangeKind {
    /// The client waits for the answer.
    Request(OpenRequest),
    /// A notification or an answer of the client.
    Tell,
    /// The stream of a legacy session.
    Listen,
    /// A handshake of the bridge itself, to begin a forgotten session anew.
    Handshake(McpId),
    /// A list of tools that a call needs for its headers.
    Mirrors {
        /// The call.
        call: u64,
        /// The id of the request for the list.
        id: McpId,
    },
    /// A run is canceled.
    CancelRun(String),
    /// The session is over.
    Goodbye,
}

/// A request of the client.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) id: McpId,
    pub(super) method: String,
    pub(super) era: McpEra,
    /// What its progress is called, and how far it was.
    pub(super) progress_token: Option<McpId>,
    pub(super) progress: Option<f64>,
    /// The run that the bridge named.
    pub(super) run: Option<String>,
    /// The client itself said that the run goes on without it.
    pub(super) goes_on: bool,
    /// Whether it can be made again after the core may have got it.
    pub(super) repeatable: bool,
    /// The client does not want to know any more; why, in its own words.
    pub(super) canceled: Option<Option<String>>,
    /// It was made again because of its headers, or of a session that was forgotten.
    pub(super) mended: bool,
    /// It was made again after an answer had begun.
    pub(super) repeated: bool,
}

impl OpenRequest {
    pub(super) fn is_call(&self) -> bool {
        self.method == "tools/call"
    }

    pub(super) fn is_listen(&self) -> bool {
        self.method == "subscriptions/listen"
    }
}

/// Where an exchange is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExchangeState {
    /// It waits for its turn.
    Held,
    /// It is to be sent then.
    Due(u64),
    /// Whoever speaks HTTP is at it.
    Sent,
}

/// The head of an answer that is being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnswerHead {
    pub(super) status: u16,
    pub(super) body: McpBridgeBody,
    pub(super) session: Option<String>,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) at_ms: u64,
}

/// One request to the core.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) kind: ExchangeKind,
    pub(super) state: ExchangeState,
    /// What is posted, as often as it takes.
    pub(super) body: String,
    /// Headers of a modern message.
    pub(super) mirrored: Vec<(String, String)>,
    /// Whether the message belongs to a legacy session.
    pub(super) in_session: bool,
    /// The edition of the session it was sent in.
    pub(super) edition: u64,
    /// Whether the core may have got it.
    pub(super) was_sent: bool,
    /// Since when every try failed, and why the last one did.
    failing_since: Option<u64>,
    why: Option<String>,
    backoff: Backoff,
    pub(super) head: Option<AnswerHead>,
    pub(super) events: Option<Parser>,
    pub(super) answer: Vec<u8>,
    /// Whether this try brought anything.
    pub(super) is_fruitful: bool,
    /// Where a legacy stream goes on.
    pub(super) from: Option<String>,
    retry_ms: Option<u64>,
}

impl Exchange {
    pub(super) fn new(kind: ExchangeKind, body: String) -> Self {
        Self {
            kind,
            state: ExchangeState::Held,
            body,
            mirrored: Vec::new(),
            in_session: false,
            edition: 0,
            was_sent: false,
            failing_since: None,
            why: None,
            backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
            head: None,
            events: None,
            answer: Vec::new(),
            is_fruitful: false,
            from: None,
            retry_ms: None,
        }
    }

    /// The same, as one that belongs to a legacy session.
    pub(super) fn in_session(self) -> Self {
        Self { in_session: true, ..self }
    }

    /// The same, with headers that repeat parts of its message.
    pub(super) fn mirroring(self, mirrored: Vec<(String, String)>) -> Self {
        Self { mirrored, ..self }
    }

    /// When nobody waits any longer: never while an answer is being read, nor for a stream that
    /// nobody waits for.
    pub(super) fn gives_up_at(&self, away_ms: u64) -> Option<u64> {
        if self.head.is_some() || matches!(self.kind, ExchangeKind::Listen) {
            return None;
        }
        self.failing_since.map(|since| since.saturating_add(away_ms))
    }

    pub(super) fn answer_begins(&mut self, head: AnswerHead) {
        let ok = (200..300).contains(&head.status);
        if ok && head.body == McpBridgeBody::Events {
            self.events = Some(Parser::new(FROM_SERVER_BYTES_MAX + FRAMING_BYTES));
        }
        self.head = Some(head);
    }

    /// This try is over without what was wanted.
    fn try_ended(&mut self, now_ms: u64, why: Option<String>) {
        let lived = self.head.as_ref().map_or(0, |head| now_ms.saturating_sub(head.at_ms));
        let asked_for = self.head.take().and_then(|head| head.retry_after_ms);
        let mut streamed = false;
        if let Some(parser) = self.events.take() {
            // An event that is no message may still say where the stream goes on.
            self.is_fruitful |= parser.last_id().is_some();
            self.from = parser.last_id().map(str::to_owned).or(self.from.take());
            self.retry_ms = parser.retry_ms().or(self.retry_ms);
            streamed = true;
        }
        self.answer = Vec::new();
        if std::mem::take(&mut self.is_fruitful) || (streamed && lived >= GOOD_STREAM_MS) {
            self.failing_since = None;
            self.backoff.reset();
        }
        self.failing_since.get_or_insert(now_ms);
        self.why = why.or(self.why.take());
        let own = u64::try_from(self.backoff.pause().as_millis()).unwrap_or(u64::MAX);
        let longest = u64::try_from(LONGEST_PAUSE.as_millis()).unwrap_or(u64::MAX);
        let wanted = asked_for.or(self.retry_ms.filter(|_| streamed)).unwrap_or(0);
        self.state = ExchangeState::Due(now_ms.saturating_add(own.max(wanted.min(longest))));
    }
}

impl McpBridge {
    /// Enters an exchange into the book.
    pub(super) fn enter(&mut self, exchange: Exchange) -> u64 {
        let number = self.next_exchange;
        self.next_exchange += 1;
        self.held_bytes += exchange.body.len();
        if let ExchangeKind::Request(request) = &exchange.kind {
            self.open.insert(request.id.clone(), number);
        }
        self.exchanges.insert(number, exchange);
        number
    }

    /// Makes a try.
    pub(super) fn send(&mut self, number: u64) {
        let session = self.session.headers();
        let edition = self.session.edition;
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let mut with = if exchange.in_session { session } else { Vec::new() };
        with.extend(exchange.mirrored.iter().cloned());
        let request = match (&exchange.kind, &exchange.from) {
            (ExchangeKind::CancelRun(run_id), _) => {
                McpBridgeRequest::CancelRun { run_id: run_id.clone() }
            }
            (ExchangeKind::Goodbye, _) => McpBridgeRequest::Delete { headers: with },
            (ExchangeKind::Listen, None) => McpBridgeRequest::Get { headers: with },
            (_, Some(from)) => {
                with.push((headers::LAST_EVENT_ID.to_owned(), from.clone()));
                McpBridgeRequest::Get { headers: with }
            }
            (_, None) => McpBridgeRequest::Post { headers: with, body: exchange.body.clone() },
        };
        exchange.edition = edition;
        exchange.state = ExchangeState::Sent;
        self.outs.push_back(McpBridgeOut::Send { exchange: number, request });
    }

    /// A try failed: another one follows, unless it must not.
    pub(super) fn failed(&mut self, now_ms: u64, number: u64, why: Option<String>) {
        let ending = self.ends_at.is_some();
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        exchange.try_ended(now_ms, why);
        let lost = match &mut exchange.kind {
            ExchangeKind::Request(request) => {
                // Without an event to go on from, the message is posted once more.
                request.repeated |= exchange.was_sent;
                let is_modern = request.era == McpEra::Modern;
                if is_modern || request.method == "initialize" {
                    exchange.from = None;
                }
                exchange.was_sent && !request.repeatable && exchange.from.is_none()
            }
            ExchangeKind::Mirrors { .. } | ExchangeKind::Goodbye => true,
            ExchangeKind::Listen => ending,
            _ => false,
        };
        if lost {
            self.give_up(number);
        }
    }

    /// Nobody waits any longer.
    pub(super) fn give_up(&mut self, number: u64) {
        let Some(exchange) = self.forget(number) else { return };
        let why = exchange.why.as_deref();
        match exchange.kind {
            ExchangeKind::Request(request) => {
                if request.method == "initialize" {
                    self.session.step = SessionStep::None;
                }
                if request.canceled.is_none() {
                    self.refuse(Some(request.id), away(why));
                }
            }
            ExchangeKind::Handshake(_) => {
                self.session.step = SessionStep::None;
                self.refuse_held(&away(why));
            }
            ExchangeKind::Mirrors { call, .. } => self.give_up(call),
            _ => {}
        }
        self.pump();
    }
}
