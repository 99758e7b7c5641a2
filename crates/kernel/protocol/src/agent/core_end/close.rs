//! The end of a session: orderly, after a drain, or at once.

use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::agent_v1::{AgentGoodbye, CallId, CoreGoodbye};

use super::handshake::CoreEndPhase;
use super::{CancelCall, CoreClose, CoreEvent, CoreSession};
use crate::agent::outbox::{Draft, SendError};
use crate::agent::outcome::{CallEnd, CallOutcome};
use crate::agent::tombstones::Tombstone;
use crate::{Moment, Session as _};

/// No new calls; the open ones may finish until a deadline and are then canceled.
pub(super) struct Drain {
    pub(super) by_agent: bool,
    until_ms: u64,
    /// Whether the deadline has passed and the open calls were canceled.
    canceled: bool,
}

impl Drain {
    /// When the drain itself wants to be woken; after the cancels the calls' own deadlines do.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        (!self.canceled).then_some(self.until_ms)
    }
}

impl CoreSession {
    /// Ends the session in order: the agent is told, and open calls may finish if the owner gives
    /// them time to drain. Without it the session ends at once.
    pub fn goodbye(&mut self, now: Moment, goodbye: CoreGoodbye) -> Result<(), SendError> {
        if !self.is_live() {
            return Err(SendError::NotLive);
        }
        let drain_ms = goodbye.drain_ms;
        self.send(now, Draft::new(goodbye))?;
        match drain_ms {
            None => self.close(CoreClose::Goodbye),
            Some(drain_ms) => {
                let until_ms = now.ms.saturating_add(drain_ms);
                self.drain = Some(Drain { by_agent: false, until_ms, canceled: false });
                self.check_drain(now);
            }
        }
        Ok(())
    }

    pub(super) fn on_goodbye(&mut self, now: Moment, goodbye: AgentGoodbye) {
        if self.drain.is_none() {
            let until_ms = now.ms.saturating_add(self.limits().drain_ms);
            self.drain = Some(Drain { by_agent: true, until_ms, canceled: false });
        }
        self.tell(CoreEvent::Goodbye { reason: goodbye.reason });
        self.check_drain(now);
    }

    /// Cancels what is still open when a drain is over, and ends the session when nothing is.
    pub(super) fn check_drain(&mut self, now: Moment) {
        let Some(drain) = &mut self.drain else {
            return;
        };
        if self.calls.is_empty() {
            let by_agent = drain.by_agent;
            if by_agent {
                self.say_goodbye(now, "agent.goodbye");
            }
            self.close(if by_agent { CoreClose::AgentGoodbye } else { CoreClose::Goodbye });
        } else if !drain.canceled && drain.until_ms <= now.ms {
            drain.canceled = true;
            let open: Vec<CallId> = self.calls.ids().cloned().collect();
            for call_id in open {
                let reason = Some("the session ends".to_owned());
                // A call that ends while the others are canceled needs no cancel of its own.
                let _ = self.cancel(now, &call_id, CancelCall { reason, deadline_ms: None });
            }
        }
    }

    /// Tells the agent that the connection is about to be closed.
    pub(super) fn say_goodbye(&mut self, now: Moment, reason: &str) {
        let goodbye =
            CoreGoodbye { reason: reason.to_owned(), retry_after_ms: None, drain_ms: None };
        // A goodbye is a courtesy; the session ends whether or not it can be sent.
        let _ = self.send(now, Draft::new(goodbye));
    }

    /// Ends the session for good: every open call ends, and nothing more is read.
    pub(super) fn close(&mut self, why: CoreClose) {
        if self.is_closed() {
            return;
        }
        self.phase = CoreEndPhase::Closed;
        self.drain = None;
        self.tools.clear();
        self.open.clear();
        let open: Vec<CallId> = self.calls.ids().cloned().collect();
        for call_id in open {
            let cost_micro = self.calls.end(&call_id, Tombstone::GivenUp).unwrap_or_default();
            let message = "The agent went away while the call was under way.";
            let fault = Fault::new(Code::ToolAgentLost, message).executed(Executed::Maybe);
            let end = CallEnd { cost_micro, ..CallOutcome::Failed(fault).into() };
            let end = Box::new(end);
            self.events.push_back(CoreEvent::CallEnded { call_id, end });
        }
        self.events.push_back(CoreEvent::Closed(why));
    }
}
