//! One connection of a seat.

use std::collections::{BTreeMap, VecDeque};

use wharf_vocab::Digest;
use wharf_wire::operator_v1::{CoreMessage, OperatorMessage, close};

use super::SeatLimits;
use crate::Moment;

/// How long a violation counts.
const VIOLATION_MS: u64 = 60_000;

/// What came from an operator.
#[derive(Debug, Clone, Copy)]
pub enum Incoming<'a> {
    /// A text frame.
    Text(&'a str),
    /// A binary frame.
    Binary,
    /// A sign of life without content.
    Pong,
}

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing {
    /// A text frame.
    Text(String),
    /// A ping.
    Ping,
    /// The last frame.
    Close {
        /// The code.
        code: u16,
        /// Why, in a few words.
        reason: String,
    },
}

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Its owner closed it.
    ByOwner,
    /// Too many violations.
    Violations,
    /// The operator reads too slowly.
    Slow,
    /// Nothing came for too long.
    Silent,
}

/// What a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answer,
    HookAck,
    Spawn,
}

/// How a request stands.
#[derive(Debug, Clone)]
enum Request {
    Open(Kind),
    /// A reply was handed to the owner, who has not said yet whether it is taken.
    Judged(Kind, Digest),
    /// A reply was taken.
    Taken(Digest),
    /// Nobody waits for a reply any more.
    Withdrawn,
}

/// One connection of a seat.
#[derive(Debug)]
pub struct SeatSession {
    limits: SeatLimits,
    requests: BTreeMap<String, Request>,
    /// Requests that are over, oldest first.
    over: VecDeque<String>,
    replies: VecDeque<OperatorMessage>,
    /// What is to be sent; a notice with its name.
    out: VecDeque<(Outgoing, Option<String>)>,
    /// Notices that were handed out to be sent.
    sent_notices: VecDeque<String>,
    /// Notices that the operator has, as far as a later sign of life can tell.
    taken_notices: VecDeque<String>,
    out_bytes: usize,
    violations: VecDeque<u64>,
    heard_ms: u64,
    ping_at_ms: u64,
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
            replies: VecDeque::new(),
            out: VecDeque::new(),
            sent_notices: VecDeque::new(),
            taken_notices: VecDeque::new(),
            out_bytes: 0,
            violations: VecDeque::new(),
            heard_ms: now.ms,
            ping_at_ms: now.ms.saturating_add(limits.ping_ms),
            closed: None,
        }
    }

    /// Why the session is over, once it is.
    #[must_use]
    pub fn closed(&self) -> Option<Closed> {
        self.closed
    }

    /// Sends a message. One that waits for a reply is remembered until it has one; one that was
    /// sent on this connection already is not sent again. After a notice, which nobody replies to,
    /// a ping asks for a sign of life.
    pub fn send(&mut self, message: &CoreMessage) {
        if self.closed.is_some() {
            return;
        }
        let kind = match message {
            CoreMessage::Ask { .. } => Some(Kind::Answer),
            CoreMessage::HookBefore { .. } => Some(Kind::HookAck),
            CoreMessage::Spawn { .. } => Some(Kind::Spawn),
            _ => None,
        };
        if let (Some(kind), Some(req_id)) = (kind, message.req_id()) {
            if self.requests.contains_key(req_id) {
                return;
            }
            self.requests.insert(req_id.to_owned(), Request::Open(kind));
        }
        self.push(message);
        if matches!(message, CoreMessage::HookAfter { .. }) && self.closed.is_none() {
            self.out.push_back((Outgoing::Ping, None));
        }
    }

    /// The next notice that the operator has: it gave a sign of life after the notice was sent.
    pub fn next_taken_notice(&mut self) -> Option<String> {
        self.taken_notices.pop_front()
    }

    /// A reply names a request that this connection does not know, and its owner does not know it
    /// either.
    pub fn unknown(&mut self, req_id: &str, now: Moment) {
        let why = "This seat has no such request.";
        self.violation(Some(req_id), "operator.request_unknown", why, now);
    }

    /// Says that a request needs no reply any more, once. An operator that took it before, also on
    /// an earlier connection, is told to stop what came of it.
    pub fn withdraw(&mut self, req_id: &str, task_id: &str, reason: &str) {
        if matches!(self.requests.get(req_id), Some(Request::Withdrawn)) {
            return;
        }
        self.settle(req_id, Request::Withdrawn);
        self.push(&CoreMessage::Cancel {
            req_id: req_id.to_owned(),
            task_id: task_id.to_owned(),
            reason: reason.to_owned(),
        });
    }

    /// The next reply that fits a request. Its owner says what becomes of it by
    /// [`taken`](Self::taken) or [`refused`](Self::refused).
    pub fn next_reply(&mut self) -> Option<OperatorMessage> {
        self.replies.pop_front()
    }

    /// A reply was taken: the request is over.
    pub fn taken(&mut self, req_id: &str) {
        if let Some(Request::Judged(_, digest)) = self.requests.get(req_id) {
            let digest = digest.clone();
            self.settle(req_id, Request::Taken(digest));
        }
    }

    /// A reply was not taken: the request goes on waiting.
    pub fn refused(&mut self, req_id: &str, code: &str, message: &str) {
        if let Some(request) = self.requests.get_mut(req_id)
            && let Request::Judged(kind, _) = request
        {
            *request = Request::Open(*kind);
        }
        self.tell(Some(req_id), code, message);
    }

    /// Takes a frame.
    pub fn receive(&mut self, incoming: Incoming<'_>, now: Moment) {
        if self.closed.is_some() {
            return;
        }
        self.heard_ms = now.ms;
        self.taken_notices.append(&mut self.sent_notices);
        match incoming {
            Incoming::Pong => {}
            Incoming::Binary => {
                self.violation(None, "protocol.malformed", "Frames are JSON text.", now);
            }
            Incoming::Text(text) if text.len() > self.limits.frame_bytes_max => {
                let message = format!("A frame has {} bytes at most.", self.limits.frame_bytes_max);
                self.violation(None, "protocol.frame_too_large", &message, now);
            }
            Incoming::Text(text) => self.text(text, now),
        }
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Moment) {
        if self.closed.is_some() {
            return;
        }
        if now.ms >= self.heard_ms.saturating_add(self.limits.silence_ms) {
            return self.end(Closed::Silent, close::NORMAL, "nothing was heard for too long");
        }
        if now.ms >= self.ping_at_ms {
            self.ping_at_ms = now.ms.saturating_add(self.limits.ping_ms);
            self.out.push_back((Outgoing::Ping, None));
        }
    }

    /// When [`tick`](Self::tick) is next needed.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let silent = self.heard_ms.saturating_add(self.limits.silence_ms);
        self.closed.is_none().then(|| silent.min(self.ping_at_ms))
    }

    /// Ends the session.
    pub fn close(&mut self, code: u16, reason: &str) {
        if self.closed.is_none() {
            self.end(Closed::ByOwner, code, reason);
        }
    }

    /// What to send next.
    pub fn next_outgoing(&mut self) -> Option<Outgoing> {
        let (next, notice) = self.out.pop_front()?;
        if let Outgoing::Text(text) = &next {
            self.out_bytes -= text.len();
        }
        self.sent_notices.extend(notice);
        Some(next)
    }

    /// How many requests are known, open or over.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.requests.len()
    }

    fn text(&mut self, text: &str, now: Moment) {
        let message: OperatorMessage = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(error) => {
                let (code, message) = unreadable(text, &error);
                let req_id = req_id_of(text);
                return self.violation(req_id.as_deref(), code, message, now);
            }
        };
        let req_id = message.req_id().to_owned();
        let digest = Digest::of(&[&serde_json::to_vec(&message).unwrap_or_default()]);
        let wanted = match &message {
            OperatorMessage::Answer { .. } => Kind::Answer,
            OperatorMessage::HookAck { .. } => Kind::HookAck,
            OperatorMessage::SpawnAck { .. } | OperatorMessage::SpawnHalt { .. } => Kind::Spawn,
        };
        let id = Some(req_id.as_str());
        match self.requests.get(&req_id).cloned() {
            // What became of a spawn may be told on a later connection, when the worker is done.
            None if wanted == Kind::Spawn => self.replies.push_back(message),
            None => self.unknown(&req_id, now),
            Some(Request::Open(kind)) if kind != wanted => {
                let why = "This is not the kind of reply that the request waits for.";
                self.violation(id, "operator.reply_mismatch", why, now);
            }
            Some(Request::Open(kind)) => {
                self.requests.insert(req_id, Request::Judged(kind, digest));
                self.replies.push_back(message);
            }
            Some(Request::Judged(_, first) | Request::Taken(first)) if first == digest => {}
            Some(Request::Judged(..) | Request::Taken(_)) => {
                let why = "The request was answered differently before.";
                self.violation(id, "operator.already_answered", why, now);
            }
            // A reply and a withdrawal may cross on their way; nobody did anything wrong.
            Some(Request::Withdrawn) => {
                self.tell(id, "operator.request_withdrawn", "Nobody waits for this any more.");
            }
        }
    }

    fn violation(&mut self, req_id: Option<&str>, code: &str, message: &str, now: Moment) {
        self.tell(req_id, code, message);
        let counts = now.ms.saturating_sub(VIOLATION_MS);
        while self.violations.front().is_some_and(|at| *at <= counts && now.ms >= VIOLATION_MS) {
            self.violations.pop_front();
        }
        self.violations.push_back(now.ms);
        if self.violations.len() > self.limits.violations_max {
            self.end(Closed::Violations, close::POLICY, "too many frames that cannot be used");
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
            return self.end(Closed::Slow, close::TRY_AGAIN, "too much waits to be read");
        }
        self.out_bytes += text.len();
        let notice = match message {
            CoreMessage::HookAfter { req_id, .. } => Some(req_id.clone()),
            _ => None,
        };
        self.out.push_back((Outgoing::Text(text), notice));
    }

    fn end(&mut self, why: Closed, code: u16, reason: &str) {
        self.closed = Some(why);
        if why == Closed::Slow {
            // What was not read is sent again on the next connection.
            self.out.clear();
            self.out_bytes = 0;
        }
        self.out.push_back((Outgoing::Close { code, reason: reason.to_owned() }, None));
    }

    fn settle(&mut self, req_id: &str, how: Request) {
        let before = self.requests.insert(req_id.to_owned(), how);
        if matches!(before, Some(Request::Taken(_) | Request::Withdrawn)) {
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

fn unreadable(text: &str, error: &serde_json::Error) -> (&'static str, &'static str) {
    if !error.is_data() {
        return ("protocol.malformed", "The frame is not JSON.");
    }
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let known = ["answer", "hook_ack", "spawn_ack", "spawn_halt"];
    match value.get("type").and_then(serde_json::Value::as_str) {
        Some(name) if known.contains(&name) => {
            ("protocol.invalid_envelope", "A field of the message is missing or of the wrong type.")
        }
        Some(_) => ("protocol.unknown_type", "There is no message of this type."),
        None => ("protocol.invalid_envelope", "The message has no type."),
    }
}

fn req_id_of(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(value.get("req_id")?.as_str()?.to_owned())
}
