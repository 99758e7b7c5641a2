//! The end of a session: orderly, after a drain, or at once.

use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::agent_v1::{AgentGoodbye, CallId, CoreGoodbye};

use super::handshake::AgentEndPhase;
use super::{AgentClose, AgentEvent, AgentSession};
use crate::agent::outbox::{Draft, SendError};
use crate::agent::outcome::CallOutcome;
use crate::{Moment, Session as _};

impl AgentSession {
    /// Ends the session in order: no new calls are taken, the open ones may finish within
    /// `drain_ms` and are then canceled.
    pub fn goodbye(
        &mut self,
        now: Moment,
        reason: impl Into<String>,
        drain_ms: u64,
    ) -> Result<(), SendError> {
        self.send(now, Draft::new(AgentGoodbye { reason: reason.into() }))?;
        self.begin_drain(now, drain_ms);
        Ok(())
    }

    pub(super) fn on_goodbye(&mut self, now: Moment, goodbye: CoreGoodbye) {
        let drain_ms = goodbye.drain_ms;
        self.tell(AgentEvent::Goodbye(goodbye));
        // Without time to drain the core closes at once, and nothing can be finished any more.
        self.begin_drain(now, drain_ms.unwrap_or(0));
    }

    fn begin_drain(&mut self, now: Moment, drain_ms: u64) {
        let until_ms = now.ms.saturating_add(drain_ms);
        self.drain_until_ms = Some(self.drain_until_ms.map_or(until_ms, |at| at.min(until_ms)));
        self.check_drain(now);
    }

    /// Cuts off what is still open when a drain is over, and ends the session when nothing is.
    pub(super) fn check_drain(&mut self, now: Moment) {
        let Some(until_ms) = self.drain_until_ms else {
            return;
        };
        if until_ms <= now.ms {
            let open: Vec<CallId> = self.calls.ids().cloned().collect();
            // `finish` looks at the drain again, so the mark is lifted while it is called.
            self.drain_until_ms = None;
            for call_id in open {
                let fault = Fault::new(Code::ToolCanceled, "The agent ends before the call does.")
                    .executed(Executed::Maybe);
                // Only open calls were listed, so there is nothing that could be refused.
                let _ = self.finish(now, &call_id, CallOutcome::Canceled(fault).into());
            }
            self.drain_until_ms = Some(until_ms);
        }
        if self.calls.is_empty() {
            self.close(AgentClose::Goodbye);
        }
    }

    /// Ends the session for good. Calls that are open have no result any more: their handlers
    /// are to be stopped.
    pub(super) fn close(&mut self, why: AgentClose) {
        if self.is_closed() {
            return;
        }
        self.phase = AgentEndPhase::Closed;
        self.drain_until_ms = None;
        self.calls.clear();
        self.waiting.clear();
        self.events.push_back(AgentEvent::Closed(why));
    }
}
