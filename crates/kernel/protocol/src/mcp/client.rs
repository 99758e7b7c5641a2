//! The client's end: finds out which era a server speaks, shakes hands, makes calls.

mod opening;
mod receive;

use std::collections::VecDeque;

use wharf_vocab::Object;
use wharf_wire::mcp_v1::{
    McpEra, McpError, McpId, McpMessage, McpMeta, McpNotification, McpRequest, McpRevision, key,
};

use super::core::{McpEnd, McpReader as _};
use super::table::McpOpenCall;
use super::{
    McpAnswer, McpCallError, McpCallOptions, McpCancel, McpClientConfig, McpClientEvent,
    McpCounters, McpOpenError, McpSend,
};
use crate::{Closed, Incoming, Moment, Outgoing, Session};
use opening::McpHandshake;

/// What is known of a server before it has said anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpStart {
    /// Nothing: it is asked which era it speaks.
    Probe,
    /// It is legacy: the handshake comes first.
    Legacy,
    /// It is modern.
    Modern,
}

/// One connection to a server. The time is its owner's.
#[derive(Debug)]
pub struct McpClientSession {
    config: McpClientConfig,
    core: McpEnd,
    opening: McpHandshake,
    events: VecDeque<McpClientEvent>,
    next_id: i64,
    heard_ms: u64,
    /// The ping that waits for its answer.
    ping: Option<McpId>,
    misses: u32,
}

impl McpClientSession {
    /// A session on a new connection; the first message waits to be sent.
    #[must_use]
    pub fn new(now: Moment, config: McpClientConfig, start: McpStart) -> Self {
        let mut session = Self {
            core: McpEnd::new(config.limits),
            config,
            opening: McpHandshake::Failed,
            events: VecDeque::new(),
            next_id: 0,
            heard_ms: now.ms,
            ping: None,
            misses: 0,
        };
        match start {
            McpStart::Legacy => session.initialize(now, McpRevision::LEGACY_NEWEST),
            McpStart::Probe | McpStart::Modern => session.discover(now, start),
        }
        session
    }

    /// Makes a call. It ends with one [`McpClientEvent::Answered`] under the id that is returned.
    pub fn call(
        &mut self,
        now: Moment,
        request: &McpRequest,
        options: McpCallOptions,
    ) -> Result<McpId, McpCallError> {
        let McpHandshake::Ready(revision) = self.opening else {
            return Err(match self.opening {
                McpHandshake::Failed => McpCallError::Ended,
                _ => McpCallError::NotReady,
            });
        };
        if !request.is_for_servers(revision) {
            return Err(McpCallError::NotSpoken);
        }
        let id = McpId::Number(self.next_id);
        let mut meta = McpMeta::default();
        if options.progress {
            meta.set(key::PROGRESS_TOKEN, &id);
        }
        let deadline_ms = options.timeout_ms.map(|ms| now.ms.saturating_add(ms));
        self.send(revision, request, meta, deadline_ms)
    }

    /// Sends a request with what its era wants beside it. What the owner put there stays.
    fn send(
        &mut self,
        revision: McpRevision,
        request: &McpRequest,
        mut meta: McpMeta,
        deadline_ms: Option<u64>,
    ) -> Result<McpId, McpCallError> {
        if revision.era() == McpEra::Modern {
            meta.set(key::PROTOCOL_VERSION, revision.as_str());
            meta.set(key::CLIENT_INFO, &self.config.info);
            meta.set(key::CLIENT_CAPABILITIES, &self.config.capabilities);
        }
        meta.0.extend(request.meta().cloned().unwrap_or_default().0);
        let mut params = request.params();
        if !meta.0.is_empty() {
            params.get_or_insert_default().insert(key::META.to_owned(), meta.0.into());
        }
        let id = McpId::Number(self.next_id);
        let method = request.method().to_owned();
        let message = McpMessage::Request { id: id.clone(), method, params };
        let call = McpOpenCall::of(request, deadline_ms);
        self.core.call(id.clone(), McpSend { of: None, message }, call)?;
        self.next_id += 1;
        Ok(id)
    }

    /// Calls a call off. The server is told, and the call ends as canceled; `false` if it was over.
    /// Over HTTP a modern call is called off by closing its stream as well.
    pub fn cancel(&mut self, id: &McpId, reason: &str) -> bool {
        let is_open = !self.is_own(id) && self.core.give_up(id, reason);
        if is_open {
            self.answered(id.clone(), McpAnswer::Canceled);
        }
        is_open
    }

    /// Tells the server something; only legacy servers are told anything but cancels.
    pub fn notify(&mut self, notification: &McpNotification) -> bool {
        let legacy = self.revision().is_some_and(|revision| revision.era() == McpEra::Legacy);
        legacy && self.core.notify(None, notification)
    }

    /// Answers what the server asked; `false` if it does not want to know any more.
    pub fn answer(&mut self, id: &McpId, answer: Result<Object, McpError>) -> bool {
        self.core.answer(id, answer).is_some()
    }

    /// The POST of a request was answered with a status that says no. What it carried instead of a
    /// result is an error if it could be read as one.
    pub fn refused(&mut self, now: Moment, id: &McpId, status: u16, error: Option<McpError>) {
        if self.core.calls.end(id).is_none() {
            return self.core.misdirected(now, id);
        }
        // Whoever says no is there.
        self.heard_ms = now.ms;
        let answer = error.map_or(McpAnswer::Refused(status), McpAnswer::Error);
        self.ended(now, id.clone(), answer);
    }

    /// The stream of a request ended without an answer.
    pub fn lost(&mut self, now: Moment, id: &McpId) {
        if self.core.calls.end(id).is_some() {
            self.ended(now, id.clone(), McpAnswer::Lost);
        }
    }

    /// What is spoken, once that is known.
    #[must_use]
    pub fn revision(&self) -> Option<McpRevision> {
        match self.opening {
            McpHandshake::Ready(revision) => Some(revision),
            _ => None,
        }
    }

    /// The next message, for owners who need to know which it is.
    pub fn poll_message(&mut self) -> Option<McpSend> {
        self.core.poll_message()
    }

    /// Calls that wait for an answer, the session's own among them.
    #[must_use]
    pub fn calls_waiting(&self) -> usize {
        self.core.calls.len()
    }

    /// Questions of the server that wait for an answer.
    #[must_use]
    pub fn asks_waiting(&self) -> usize {
        self.core.served.len()
    }

    /// Messages that wait to be sent.
    #[must_use]
    pub fn sends_waiting(&self) -> usize {
        self.core.waiting()
    }

    /// What was ignored.
    #[must_use]
    pub fn counters(&self) -> McpCounters {
        self.core.counters
    }

    /// Whether a call is the session's own and no event tells of it.
    fn is_own(&self, id: &McpId) -> bool {
        self.opening.call() == Some(id) || self.ping.as_ref() == Some(id)
    }

    /// A call is over; it is out of the table already.
    fn ended(&mut self, now: Moment, id: McpId, answer: McpAnswer) {
        if self.opening.call() == Some(&id) {
            return self.opened(now, answer);
        }
        if self.ping.as_ref() == Some(&id) {
            self.ping = None;
            return match answer {
                // A session that is over is neither well nor unwell.
                _ if self.is_closed() => {}
                McpAnswer::TimedOut | McpAnswer::Lost => self.missed(),
                _ => self.misses = 0,
            };
        }
        self.answered(id, answer);
    }

    fn answered(&mut self, id: McpId, answer: McpAnswer) {
        self.events.push_back(McpClientEvent::Answered { id, answer });
    }

    fn missed(&mut self) {
        self.misses += 1;
        if self.config.pulse.is_some_and(|pulse| self.misses == pulse.misses_max) {
            self.events.push_back(McpClientEvent::Unhealthy);
        }
    }

    /// When an idle legacy server is to be asked for a sign of life. One that is at work may well
    /// do one thing at a time.
    fn ping_at_ms(&self) -> Option<u64> {
        let legacy = self.revision().is_some_and(|revision| revision.era() == McpEra::Legacy);
        let pulse = self.config.pulse.filter(|_| legacy && self.core.calls.len() == 0)?;
        // Each miss takes its time, also one that was known at once.
        let silent_ms = pulse.every_ms.saturating_mul(1 + u64::from(self.misses));
        Some(self.heard_ms.saturating_add(silent_ms))
    }

    fn beat(&mut self, now: Moment) {
        let (Some(at_ms), Some(pulse), Some(revision)) =
            (self.ping_at_ms(), self.config.pulse, self.revision())
        else {
            return;
        };
        if now.ms >= at_ms {
            let deadline_ms = Some(now.ms.saturating_add(pulse.every_ms));
            let ping = McpRequest::Ping(Box::default());
            self.ping = self.send(revision, &ping, McpMeta::default(), deadline_ms).ok();
        }
    }
}

impl Session for McpClientSession {
    type Event = McpClientEvent;

    fn receive(&mut self, now: Moment, incoming: Incoming<'_>) {
        self.read(now, incoming);
    }

    /// Every call is lost, and nobody wants answers any more.
    fn end(&mut self, now: Moment, how: Closed) {
        self.core.end(how);
        for id in self.core.calls.ids() {
            self.core.calls.end(&id);
            self.ended(now, id, McpAnswer::Lost);
        }
        self.opening = McpHandshake::Failed;
        let asks = std::mem::take(&mut self.core.served).into_keys();
        self.events.extend(
            asks.map(|id| McpClientEvent::AskCanceled { id, cancel: McpCancel::Disconnected }),
        );
    }

    fn tick(&mut self, now: Moment) {
        if self.is_closed() {
            return;
        }
        for id in self.core.calls.due(now.ms) {
            if self.core.give_up(&id, "It took too long.") {
                self.ended(now, id, McpAnswer::TimedOut);
            }
        }
        self.beat(now);
    }

    fn deadline(&self) -> Option<u64> {
        let calls_ms = self.core.calls.deadline_ms();
        let both = [calls_ms, self.ping_at_ms()].into_iter().flatten().min();
        both.filter(|_| !self.is_closed())
    }

    fn poll_event(&mut self) -> Option<McpClientEvent> {
        self.events.pop_front()
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.core.poll_send()
    }

    fn is_closed(&self) -> bool {
        self.core.closed().is_some()
    }

    fn wants_input(&self) -> bool {
        !self.is_closed() && !self.core.is_full()
    }
}

impl McpClientSession {
    /// Calls can never be made.
    fn fail(&mut self, why: McpOpenError) {
        self.opening = McpHandshake::Failed;
        self.core.finish(Closed::ByOwner, "the handshake failed");
        self.events.push_back(McpClientEvent::Failed(why));
    }
}
