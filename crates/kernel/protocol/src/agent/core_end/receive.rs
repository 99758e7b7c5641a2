//! From frames to concerns: which part of the session a message belongs to.

use wharf_vocab::{Code, Fault};
use wharf_wire::agent_v1::{
    AgentMessage, CoreMessage, DecodeError, Envelope, FrameError, Header, MessageId, Rejected,
    decode,
};

use super::handshake::CoreEndPhase;
use super::{CoreClose, CoreEvent, CoreSession, HandshakeFailure, OversizePolicy};
use crate::agent::judge::{Verdict, judge, rejection, unknown_type};
use crate::agent::outbox::{Draft, Origin};
use crate::agent::outcome::{error_of, fault_of};
use crate::agent::violation::{Breach, Violation};
use crate::{Moment, Session as _};

impl CoreSession {
    /// Takes all frames that are complete, in the order in which they arrived.
    pub(super) fn read_frames(&mut self, now: Moment) {
        while self.wants_input() {
            match self.frames.next_frame() {
                Ok(None) => return,
                Ok(Some(frame)) => {
                    let decoded = decode::<AgentMessage>(frame);
                    self.on_frame(now, decoded);
                }
                Err(error) => self.on_bad_frame(now, error),
            }
        }
        self.check_held_bytes();
    }

    fn on_frame(&mut self, now: Moment, decoded: Result<Envelope<AgentMessage>, DecodeError>) {
        if matches!(self.phase, CoreEndPhase::Hello { .. }) {
            self.on_first(now, decoded);
            return;
        }
        match judge(decoded, self.config.close_on_unknown_type) {
            Ok(envelope) => self.on_message(now, envelope),
            Err(Verdict::Ignore) => {}
            Err(Verdict::Unknown(header)) => self.answer_error(now, Some(&header), &unknown_type()),
            Err(Verdict::Reject(rejected)) => self.on_rejected(now, &rejected),
            Err(Verdict::Fatal { breach, header }) => self.fatal(now, breach, header.as_deref()),
        }
    }

    fn on_message(&mut self, now: Moment, envelope: Envelope<AgentMessage>) {
        let Envelope { id, in_reply_to, echo, error, message, .. } = envelope;
        let origin = Origin { id, echo };
        if !matches!(message, AgentMessage::Heartbeat(_)) {
            self.health.spoken(now);
        }
        match message {
            AgentMessage::Hello(_) => {
                let header = Header { id: Some(origin.id), ..Header::default() };
                self.fatal(now, Breach::Unexpected, Some(&header));
            }
            AgentMessage::Goodbye(goodbye) => self.on_goodbye(now, goodbye),
            AgentMessage::ToolsRegister(register) => self.on_register(now, &origin, register),
            AgentMessage::ToolsUnregister(list) => self.on_unregister(now, &origin, list),
            AgentMessage::ToolStream(stream) => self.on_stream(now, &origin.echo, stream),
            AgentMessage::ToolResult(result) => self.on_result(now, &origin.echo, error, result),
            AgentMessage::CancelAck(ack) => self.on_cancel_ack(now, &origin.echo, ack),
            AgentMessage::Heartbeat(heartbeat) => self.on_heartbeat(now, heartbeat),
            AgentMessage::Pong(_) => self.on_pong(now, in_reply_to),
            AgentMessage::ToolInvoke(invoke) => self.on_invoke(now, origin, invoke),
            AgentMessage::ToolInvokeCancel(cancel) => self.on_invoke_cancel(now, origin, cancel),
            AgentMessage::QuestionAsk(ask) => self.on_question(now, origin, ask),
            AgentMessage::StepLocal(local) => self.on_step_local(now, origin, local),
            AgentMessage::Notice(notice) => self.on_notice(now, origin, notice),
            AgentMessage::Error(_) => {
                let fault = error.as_ref().map_or_else(unspecified, fault_of);
                self.on_peer_error(now, in_reply_to, fault);
            }
        }
    }

    fn on_peer_error(&mut self, now: Moment, in_reply_to: Option<MessageId>, fault: Fault) {
        // An agent that cannot take a call says so by an error about the call's message: then
        // there will be no result.
        if let Some(call_id) = in_reply_to.as_ref().and_then(|id| self.calls.by_message(id)) {
            self.call_refused(now, &call_id, fault.clone());
        }
        self.tell(CoreEvent::PeerError { in_reply_to, fault });
    }

    /// A readable message with a wrong field: it is answered and dropped, the session goes on.
    fn on_rejected(&mut self, now: Moment, rejected: &Rejected) {
        self.answer_error(now, Some(&rejected.header), &rejection(rejected));
        if let (Some(call_id), Some(cost_micro)) = (&rejected.call_id, rejected.cost_micro) {
            self.on_cost(call_id, cost_micro);
        }
        let call_id = rejected.call_id.clone().filter(|id| self.calls.is_open(id));
        let result = rejected.header.type_name.as_deref() == Some("agent.tool.result");
        let breach = if result { Breach::Result } else { Breach::Field };
        if let Some(call_id) = call_id.clone().filter(|_| result) {
            self.result_unreadable(now, &call_id);
        }
        self.violation(now, breach, call_id);
    }

    /// Something that cannot be tolerated: the peer is told, and the session is over.
    fn fatal(&mut self, now: Moment, breach: Breach, header: Option<&Header>) {
        self.tell(CoreEvent::Violation(Violation { breach, call_id: None }));
        self.answer_error(now, header, &Fault::new(breach.code(), breach.message()));
        self.close(CoreClose::Violation(breach));
    }

    fn on_bad_frame(&mut self, now: Moment, error: FrameError) {
        let breach = Breach::from(error);
        if !self.is_live() {
            self.close(CoreClose::Handshake(HandshakeFailure::Breach(breach)));
            return;
        }
        let too_large = matches!(error, FrameError::TooLarge { .. });
        if too_large && self.config.oversize == OversizePolicy::Reject {
            self.frames.skip_frame();
            self.answer_error(now, None, &Fault::new(breach.code(), breach.message()));
            self.violation(now, breach, None);
        } else {
            self.fatal(now, breach, None);
        }
    }

    /// Answers with an error, unless the message was an error itself.
    pub(super) fn answer_error(&mut self, now: Moment, header: Option<&Header>, fault: &Fault) {
        if let Some(draft) = Draft::<CoreMessage>::refusal(header, error_of(fault)) {
            self.reply(now, draft);
        }
    }
}

fn unspecified() -> Fault {
    Fault::new(Code::ToolUnspecified, "The agent reported an error and did not say which.")
}
