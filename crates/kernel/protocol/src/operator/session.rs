//! One connection of a seat.

use std::collections::{BTreeMap, VecDeque};

use wharf_vocab::{Code, Digest, Fault};
use wharf_wire::operator_v1::{CoreMessage, OperatorMessage};
use wharf_wire::ws::close;

use crate::heartbeat::{Beat, Heartbeat};
use crate::{Closed, Incoming, Moment, Outgoing, Pings, Session};

/// How long a violation counts.
const VIOLATION_MS: u64 = 60_000;

/// Limits and times of a seat's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeatLimits {
    /// How often the core pings.
    pub ping_ms: u64,
    /// How long nothing may come before the seat counts as away.
    pub silence_ms: u64,
    /// Violations within a minute after which the connection is closed.
    pub violations_max: usize,
    /// Largest frame of an operator.
    pub frame_bytes_max: usize,
    /// Most that may wait to be read by an operator, in bytes.
    pub queue_bytes_max: usize,
    /// Replies that are remembered so that a repeated one is known.
    pub replies_kept_max: usize,
}

impl Default for SeatLimits {
    fn default() -> Self {
        Self {
            ping_ms: 30_000,
            silence_ms: 90_000,
            violations_max: 20,
            frame_bytes_max: 1024 * 1024,
            queue_bytes_max: 4 * 1024 * 1024,
            replies_kept_max: 4_096,
        }
    }
}

/// What an operator did.
#[derive(Debug, Clone, PartialEq)]
pub enum SeatEvent {
    /// A reply that fits a request. Its owner says what becomes of it by
    /// [`taken`](SeatSession::taken), [`refused`](SeatSession::refused) or
    /// [`unknown`](SeatSession::unknown).
    Reply(OperatorMessage),
    /// The operator has a notice: it gave a sign of life after the notice was sent.
    NoticeTaken(String),
}

/// What a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    Answer,
    HookAck,
    Spawn,
}

/// How a request stands.
#[derive(Debug, Clone)]
enum RequestState {
    Open(RequestKind),
    /// A reply was handed to the owner, who has not said yet whether it is taken.
    Judged(RequestKind, Digest),
    /// A reply was taken.
    Taken(Digest),
    /// Nobody waits for a reply any more.
    Withdrawn,
}

/// One connection of a seat.
#[derive(Debug)]
pub struct SeatSession {
    limits: SeatLimits,
    requests: BTreeMap<String, RequestState>,
    /// Requests that are over, oldest first.
    over: VecDeque<String>,
    events: VecDeque<SeatEvent>,
    /// What is to be sent; a notice with its name.
    out: VecDeque<(Outgoing, Option<String>)>,
    /// Notices that were handed out to be sent.
    sent_notices: VecDeque<String>,
    out_bytes: usize,
    violations: VecDeque<u64>,
    heartbeat: Heartbeat,
    pings: Pings,
    closed: Option<Closed>,
}

impl SeatSession {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(limits: SeatLimits, now: Moment) -> Self {
        Self {
            limits,
            requests: BTreeMap::new(),
            over: VecDeque::new(),
            events: VecDeque::new(),
            out: VecDeque::new(),
            sent_notices: VecDeque::new(),
            out_bytes: 0,
            violations: VecDeque::new(),
            heartbeat: Heartbeat::new(now, limits.ping_ms, limits.silence_ms),
            pings: Pings::new(),
            closed: None,
        }
    }

    /// Why the session is over, once it is.
    #[must_use]
    pub fn closed(&self) -> Option<&Closed> {
        self.closed.as_ref()
    }

    /// Sends a message. One that waits for a reply is remembered until it has one; one that was
    /// sent on this connection already is not sent again. After a notice, which nobody replies to,
    /// a ping asks for a sign of life.
    pub fn send(&mut self, message: &CoreMessage) {
        if self.closed.is_some() {
            return;
        }
        let kind = match message {
            CoreMessage::Ask { .. } => Some(RequestKind::Answer),
            CoreMessage::HookBefore { .. } => Some(RequestKind::HookAck),
            CoreMessage::Spawn { .. } => Some(RequestKind::Spawn),
            _ => None,
        };
        if let (Some(kind), Some(req_id)) = (kind, message.req_id()) {
            if self.requests.contains_key(req_id) {
                return;
            }
            self.requests.insert(req_id.to_owned(), RequestState::Open(kind));
        }
        self.push(message);
        if matches!(message, CoreMessage::HookAfter { .. }) && self.closed.is_none() {
            self.out.push_back((Outgoing::Ping, None));
        }
    }

    /// A reply names a request that this connection does not know, and its owner does not know it
    /// either.
    pub fn unknown(&mut self, now: Moment, req_id: &str) {
        let why = "This seat has no such request.";
        self.violation(now, Some(req_id), Code::OperatorRequestUnknown, why);
    }

    /// Says that a request needs no reply any more, once. An operator that took it before, also on
    /// an earlier connection, is told to stop what came of it.
    pub fn withdraw(&mut self, req_id: &str, task_id: &str, reason: &str) {
        if matches!(self.requests.get(req_id), Some(RequestState::Withdrawn)) {
            return;
        }
        self.settle(req_id, RequestState::Withdrawn);
        self.push(&CoreMessage::Cancel {
            req_id: req_id.to_owned(),
            task_id: task_id.to_owned(),
            reason: reason.to_owned(),
        });
    }

    /// A reply was taken: the request is over.
    pub fn taken(&mut self, req_id: &str) {
        if let Some(RequestState::Judged(_, digest)) = self.requests.get(req_id) {
            let digest = digest.clone();
            self.settle(req_id, RequestState::Taken(digest));
        }
    }

    /// A reply was not taken: the request goes on waiting.
    pub fn refused(&mut self, req_id: &str, fault: &Fault) {
        if let Some(request) = self.requests.get_mut(req_id)
            && let RequestState::Judged(kind, _) = request
        {
            *request = RequestState::Open(*kind);
        }
        self.tell(Some(req_id), fault.code.as_str(), &fault.message);
    }

    /// Ends the session.
    pub fn close(&mut self, code: u16, reason: &str) {
        if self.closed.is_none() {
            self.finish(Closed::ByOwner, code, reason);
        }
    }

    /// How many requests are known, open or over.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.requests.len()
    }

    fn text(&mut self, now: Moment, text: &str) {
        let message: OperatorMessage = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(error) => {
                let (code, message) = unreadable(text, &error);
                let req_id = req_id_of(text);
                return self.violation(now, req_id.as_deref(), code, message);
            }
        };
        let req_id = message.req_id().to_owned();
        let digest = Digest::of(&[&serde_json::to_vec(&message).unwrap_or_default()]);
        let wanted = match &message {
            OperatorMessage::Answer { .. } => RequestKind::Answer,
            OperatorMessage::HookAck { .. } => RequestKind::HookAck,
            OperatorMessage::SpawnAck { .. } | OperatorMessage::SpawnHalt { .. } => {
                RequestKind::Spawn
            }
        };
        let id = Some(req_id.as_str());
        match self.requests.get(&req_id).cloned() {
            // What became of a spawn may be told on a later connection, when the worker is done.
            None if wanted == RequestKind::Spawn => {
                self.events.push_back(SeatEvent::Reply(message))
            }
            None => self.unknown(now, &req_id),
            Some(RequestState::Open(kind)) if kind != wanted => {
                let why = "This is not the kind of reply that the request waits for.";
                self.violation(now, id, Code::OperatorReplyMismatch, why);
            }
            Some(RequestState::Open(kind)) => {
                self.requests.insert(req_id, RequestState::Judged(kind, digest));
                self.events.push_back(SeatEvent::Reply(message));
            }
            Some(RequestState::Judged(_, first) | RequestState::Taken(first))
                if first == digest => {}
            Some(RequestState::Judged(..) | RequestState::Taken(_)) => {
                let why = "The request was answered differently before.";
                self.violation(now, id, Code::OperatorAlreadyAnswered, why);
            }
            // A reply and a withdrawal may cross on their way; nobody did anything wrong.
            Some(RequestState::Withdrawn) => {
                let why = "Nobody waits for this any more.";
                self.tell(id, Code::OperatorRequestWithdrawn.as_str(), why);
            }
        }
    }

    fn violation(&mut self, now: Moment, req_id: Option<&str>, code: Code, message: &str) {
        self.tell(req_id, code.as_str(), message);
        let counts = now.ms.saturating_sub(VIOLATION_MS);
        while self.violations.front().is_some_and(|at| *at <= counts && now.ms >= VIOLATION_MS) {
            self.violations.pop_front();
        }
        self.violations.push_back(now.ms);
        if self.violations.len() > self.limits.violations_max {
            self.finish(Closed::Violations, close::POLICY, "too many frames that cannot be used");
        }
    }

    fn tell(&mut self, req_id: Option<&str>, code: &str, message: &str) {
        self.push(&CoreMessage::Error {
            req_id: req_id.map(|id| id.chars().take(200).collect()),
            code: code.to_owned(),
            message: message.to_owned(),
        });
    }

    fn push(&mut self, message: &CoreMessage) {
        if self.closed.is_some() {
            return;
        }
        let Ok(text) = serde_json::to_string(message) else { return };
        if self.out_bytes + text.len() > self.limits.queue_bytes_max && !self.out.is_empty() {
            return self.finish(Closed::NotReading, close::TRY_AGAIN, "too much waits to be read");
        }
        self.out_bytes += text.len();
        let notice = match message {
            CoreMessage::HookAfter { req_id, .. } => Some(req_id.clone()),
            _ => None,
        };
        self.out.push_back((Outgoing::Text(text), notice));
    }

    fn finish(&mut self, why: Closed, code: u16, reason: &str) {
        if why == Closed::NotReading {
            // What was not read is sent again on the next connection.
            self.out.clear();
            self.out_bytes = 0;
        }
        self.closed = Some(why);
        self.out.push_back((Outgoing::close(code, reason), None));
    }

    fn settle(&mut self, req_id: &str, how: RequestState) {
        let before = self.requests.insert(req_id.to_owned(), how);
        if matches!(before, Some(RequestState::Taken(_) | RequestState::Withdrawn)) {
            return;
        }
        self.over.push_back(req_id.to_owned());
        if self.over.len() > self.limits.replies_kept_max
            && let Some(oldest) = self.over.pop_front()
        {
            self.requests.remove(&oldest);
        }
    }
}

impl Session for SeatSession {
    type Event = SeatEvent;

    fn receive(&mut self, now: Moment, incoming: Incoming<'_>) {
        if self.closed.is_some() {
            return;
        }
        self.heartbeat.heard(now);
        self.events.extend(self.sent_notices.drain(..).map(SeatEvent::NoticeTaken));
        match incoming {
            Incoming::Ping if !self.pings.take(now.ms) => {
                self.finish(Closed::Pings, close::POLICY, Pings::TOO_MANY);
            }
            Incoming::Ping | Incoming::Pong => {}
            Incoming::Bytes(_) => {
                self.violation(now, None, Code::ProtocolMalformed, "Frames are JSON text.");
            }
            Incoming::Text(text) if text.len() > self.limits.frame_bytes_max => {
                let message = format!("A frame has {} bytes at most.", self.limits.frame_bytes_max);
                self.violation(now, None, Code::ProtocolFrameTooLarge, &message);
            }
            Incoming::Text(text) => self.text(now, text),
            // The connection ends with these, and what was not sent is sent on the next.
            Incoming::TooLarge | Incoming::NotText | Incoming::NotAFrame => {}
        }
    }

    fn end(&mut self, _now: Moment, how: Closed) {
        self.out.clear();
        self.out_bytes = 0;
        self.closed.get_or_insert(how);
    }

    fn tick(&mut self, now: Moment) {
        if self.closed.is_some() {
            return;
        }
        match self.heartbeat.tick(now) {
            Beat::Nothing => {}
            Beat::Ping => self.out.push_back((Outgoing::Ping, None)),
            Beat::Silent => {
                self.finish(Closed::Silent, close::NORMAL, "nothing was heard for too long");
            }
        }
    }

    fn deadline(&self) -> Option<u64> {
        self.closed.is_none().then(|| self.heartbeat.deadline())
    }

    fn poll_event(&mut self) -> Option<SeatEvent> {
        self.events.pop_front()
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        let (next, notice) = self.out.pop_front()?;
        if let Outgoing::Text(text) = &next {
            self.out_bytes -= text.len();
        }
        self.sent_notices.extend(notice);
        Some(next)
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }
}

fn unreadable(text: &str, error: &serde_json::Error) -> (Code, &'static str) {
    if !error.is_data() {
        return (Code::ProtocolMalformed, "The frame is not JSON.");
    }
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let known = ["answer", "hook_ack", "spawn_ack", "spawn_halt"];
    match value.get("type").and_then(serde_json::Value::as_str) {
        Some(name) if known.contains(&name) => {
            let why = "A field of the message is missing or of the wrong type.";
            (Code::ProtocolInvalidEnvelope, why)
        }
        Some(_) => (Code::ProtocolUnknownType, "There is no message of this type."),
        None => (Code::ProtocolInvalidEnvelope, "The message has no type."),
    }
}

fn req_id_of(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(value.get("req_id")?.as_str()?.to_owned())
}
