//! What both ends have in common: the calls made, the requests served, what waits to be sent, and
//! what a peer may do wrong.

use std::collections::{BTreeMap, VecDeque};

use wharf_vocab::Object;
use wharf_vocab::json::json_bytes;
use wharf_wire::mcp_v1::{
    McpCanceled, McpError, McpId, McpMessage, McpNotification, McpOpen, code,
};
use wharf_wire::ws::close;

use super::lines::{McpLine, McpLines};
use super::oversize::answered_by;
use super::table::{McpCallTable, McpKnown, McpOpenCall, McpServedRequest};
use super::{McpCallError, McpCounters, McpLimits};
use crate::{Closed, Incoming, Moment, Outgoing};

/// The time in which breaches of the protocol are counted.
const VIOLATIONS_MS: u64 = 60_000;

/// A message to send.
#[derive(Debug, Clone, PartialEq)]
pub struct McpSend {
    /// The request of the peer that it belongs to; over HTTP its stream carries it.
    pub of: Option<McpId>,
    /// The message.
    pub message: McpMessage,
}

/// What both ends have in common.
#[derive(Debug)]
pub(super) struct McpEnd {
    pub(super) limits: McpLimits,
    pub(super) calls: McpCallTable,
    pub(super) served: BTreeMap<McpId, McpServedRequest>,
    pub(super) lines: McpLines,
    pub(super) counters: McpCounters,
    outbox: VecDeque<McpSend>,
    violations_since_ms: u64,
    violations: u32,
    closed: Option<Closed>,
    ending: Option<Outgoing>,
}

/// An end that reads messages off a connection.
pub(super) trait McpReader {
    fn core(&mut self) -> &mut McpEnd;

    /// Takes the bytes of one message.
    fn take_bytes(&mut self, now: Moment, bytes: &[u8]);

    /// Takes notice of a message that is too large to be read; it may answer a call.
    fn too_long(&mut self, now: Moment, answers: Option<McpId>);

    /// Takes what came over the connection, message by message.
    fn read(&mut self, now: Moment, incoming: Incoming<'_>) {
        if self.core().closed().is_some() {
            return;
        }
        match incoming {
            Incoming::Text(text) if text.len() > self.core().limits.read_bytes_max => {
                self.too_long(now, answered_by(text.as_bytes()));
            }
            Incoming::Text(text) => self.take_bytes(now, text.as_bytes()),
            Incoming::Bytes(bytes) => {
                self.core().lines.push(bytes);
                while let Some(line) = self.core().lines.pop() {
                    match line {
                        McpLine::Whole(line) => self.take_bytes(now, &line),
                        McpLine::TooLong { answers } => self.too_long(now, answers),
                    }
                }
            }
            Incoming::Ping | Incoming::Pong => {}
            Incoming::TooLarge | Incoming::NotText | Incoming::NotAFrame => {
                self.core().finish(Closed::Violations, "a frame is none");
            }
        }
    }
}

impl McpEnd {
    pub(super) fn new(limits: McpLimits) -> Self {
        Self {
            limits,
            calls: McpCallTable::new(limits.tombstones_max),
            served: BTreeMap::new(),
            lines: McpLines::new(limits.read_bytes_max),
            counters: McpCounters::default(),
            outbox: VecDeque::new(),
            violations_since_ms: 0,
            violations: 0,
            closed: None,
            ending: None,
        }
    }

    /// Sends a request and keeps it under its id until it is over.
    pub(super) fn call(
        &mut self,
        id: McpId,
        send: McpSend,
        call: McpOpenCall,
    ) -> Result<(), McpCallError> {
        if self.closed.is_some() {
            return Err(McpCallError::Ended);
        }
        if self.calls.len() >= self.limits.calls_max {
            return Err(McpCallError::Full);
        }
        if self.calls.known(&id) == McpKnown::Open {
            return Err(McpCallError::Duplicate);
        }
        if json_bytes(&send.message) > self.limits.write_bytes_max {
            return Err(McpCallError::TooLarge);
        }
        // The waiter is there before the request is.
        self.calls.insert(id, call);
        self.outbox.push_back(send);
        Ok(())
    }

    /// Ends a call that nobody waits for any more, and tells the peer.
    pub(super) fn give_up(&mut self, id: &McpId, reason: &str) -> bool {
        let Some(call) = self.calls.end(id) else { return false };
        // A request that was not sent yet is not sent at all.
        let before = self.outbox.len();
        self.outbox.retain(
            |send| !matches!(&send.message, McpMessage::Request { id: it, .. } if it == id),
        );
        if call.can_cancel && before == self.outbox.len() {
            let params = McpCanceled {
                request_id: Some(id.clone()),
                reason: Some(reason.to_owned()),
                meta: None,
            };
            self.notify(None, &McpNotification::Canceled(McpOpen::boxed(params)));
        }
        true
    }

    /// Sends a notification; `false` if it is too large or nobody would get it.
    pub(super) fn notify(&mut self, of: Option<McpId>, told: &McpNotification) -> bool {
        let (method, params) = (told.method().to_owned(), told.params());
        let message = McpMessage::Notification { method, params };
        let fits = self.closed.is_none() && json_bytes(&message) <= self.limits.write_bytes_max;
        if fits {
            self.outbox.push_back(McpSend { of, message });
        }
        fits
    }

    /// Answers a request that is served; `None` if nobody waits for it. A result that is too large
    /// becomes an error that says so.
    pub(super) fn answer(
        &mut self,
        id: &McpId,
        answer: Result<Object, McpError>,
    ) -> Option<McpServedRequest> {
        let (id, served) = self.served.remove_entry(id)?;
        let mut message = match answer {
            Ok(result) => McpMessage::Result { id: id.clone(), result },
            Err(error) => McpMessage::Error { id: Some(id.clone()), error },
        };
        if json_bytes(&message) > self.limits.write_bytes_max {
            let error = McpError::new(code::INTERNAL, "The result is too large to be sent.");
            message = McpMessage::Error { id: Some(id.clone()), error };
        }
        self.outbox.push_back(McpSend { of: Some(id), message });
        Some(served)
    }

    /// Refuses what is not served at all.
    pub(super) fn refuse(&mut self, id: Option<McpId>, error: McpError) {
        if self.closed.is_none() {
            self.outbox
                .push_back(McpSend { of: id.clone(), message: McpMessage::Error { id, error } });
        }
    }

    /// Counts a breach of the protocol; too many in a minute end the connection.
    pub(super) fn violation(&mut self, now: Moment) {
        self.counters.violations += 1;
        if now.ms.saturating_sub(self.violations_since_ms) >= VIOLATIONS_MS {
            (self.violations_since_ms, self.violations) = (now.ms, 0);
        }
        self.violations += 1;
        if self.violations > self.limits.violations_per_minute_max {
            self.finish(Closed::Violations, "too many violations of the protocol");
        }
    }

    /// Counts a line that is no message; too many end the connection.
    pub(super) fn stray(&mut self) {
        self.counters.strays += 1;
        if self.counters.strays >= u64::from(self.limits.strays_max) {
            self.finish(Closed::Violations, "too many lines that are no message");
        }
    }

    /// Counts an answer or progress for what is not open.
    pub(super) fn misdirected(&mut self, now: Moment, id: &McpId) {
        match self.calls.known(id) {
            McpKnown::Over => self.counters.late += 1,
            McpKnown::Open | McpKnown::Never => {
                self.counters.unknown_ids += 1;
                self.violation(now);
            }
        }
    }

    pub(super) fn finish(&mut self, why: Closed, reason: &str) {
        if self.closed.is_none() {
            self.closed = Some(why);
            self.ending = Some(Outgoing::close(close::POLICY, reason));
        }
    }

    /// The connection is gone: nothing is sent any more.
    pub(super) fn end(&mut self, how: Closed) {
        self.closed.get_or_insert(how);
        self.ending = None;
        self.outbox.clear();
    }

    pub(super) fn closed(&self) -> Option<&Closed> {
        self.closed.as_ref()
    }

    pub(super) fn poll_message(&mut self) -> Option<McpSend> {
        self.outbox.pop_front()
    }

    pub(super) fn poll_send(&mut self) -> Option<Outgoing> {
        match self.outbox.pop_front() {
            Some(send) => Some(Outgoing::Text(send.message.write())),
            None => self.ending.take(),
        }
    }

    /// Whether the peer has to read before more is taken from it.
    pub(super) fn is_full(&self) -> bool {
        self.outbox.len() >= self.limits.sends_max
    }

    pub(super) fn waiting(&self) -> usize {
        self.outbox.len()
    }
}
