//! From frames to concerns: which part of the session a message belongs to.

use wharf_vocab::{Code, Fault};
use wharf_wire::agent_v1::{
    AgentMessage, CoreMessage, DecodeError, Envelope, Header, MessageId, Pong, decode,
};

use super::handshake::AgentEndPhase;
use super::{AgentClose, AgentEvent, AgentSession};
use crate::agent::judge::{Verdict, judge, rejection, unknown_type};
use crate::agent::outbox::{Draft, Origin};
use crate::agent::outcome::{error_of, fault_of};
use crate::agent::violation::{Breach, Violation};
use crate::{Moment, Session as _};

impl AgentSession {
    /// Takes all frames that are complete, in the order in which they arrived.
    pub(super) fn read_frames(&mut self, now: Moment) {
        while !self.is_closed() {
            match self.frames.next_frame() {
                Ok(None) => return,
                Ok(Some(frame)) => {
                    let decoded = decode::<CoreMessage>(frame);
                    self.on_frame(now, decoded);
                }
                Err(error) => self.fatal(now, error.into(), None),
            }
        }
    }

    fn on_frame(&mut self, now: Moment, decoded: Result<Envelope<CoreMessage>, DecodeError>) {
        if matches!(self.phase, AgentEndPhase::Greeting { .. }) {
            self.on_first(now, decoded);
            return;
        }
        match judge(decoded, false) {
            Ok(envelope) => self.on_message(now, envelope),
            Err(Verdict::Ignore) => {}
            Err(Verdict::Unknown(header)) => self.answer_error(now, Some(&header), &unknown_type()),
            Err(Verdict::Reject(rejected)) => {
                self.answer_error(now, Some(&rejected.header), &rejection(&rejected));
                self.violation(now, Breach::Field, None);
            }
            Err(Verdict::Fatal { breach, header }) => self.fatal(now, breach, header.as_deref()),
        }
    }

    fn on_message(&mut self, now: Moment, envelope: Envelope<CoreMessage>) {
        let Envelope { id, in_reply_to, echo, actor, error, message, .. } = envelope;
        let origin = Origin { id, echo };
        match message {
            CoreMessage::Welcome(_) => {
                let header = Header { id: Some(origin.id), ..Header::default() };
                self.fatal(now, Breach::Unexpected, Some(&header));
            }
            CoreMessage::Goodbye(goodbye) => self.on_goodbye(now, goodbye),
            CoreMessage::ToolsRegistered(answer) => self.on_registered(in_reply_to, answer),
            CoreMessage::ToolsUnregistered(answer) => self.on_unregistered(answer),
            CoreMessage::ToolCall(call) => self.on_call(now, origin, actor, call),
            CoreMessage::ToolCancel(cancel) => self.on_cancel(now, &origin, cancel),
            CoreMessage::Ping(_) => {
                self.reply(now, Draft::new(Pong {}).answers(&origin));
            }
            CoreMessage::InvokeStream(stream) => self.on_invoke_stream(now, stream),
            CoreMessage::InvokeResult(result) => self.on_invoke_result(now, error, result),
            CoreMessage::QuestionAnswer(answer) => self.on_answer(now, answer),
            CoreMessage::StepKept(kept) => self.on_kept(now, error, kept),
            CoreMessage::Error(_) => {
                let fault = error.as_ref().map_or_else(unspecified, fault_of);
                self.on_peer_error(in_reply_to, fault);
            }
        }
    }

    fn on_peer_error(&mut self, in_reply_to: Option<MessageId>, fault: Fault) {
        if let Some(id) = &in_reply_to {
            self.tools.refused(id);
            self.wait_in_vain(id, &fault);
        }
        self.tell(AgentEvent::PeerError { in_reply_to, fault });
    }

    /// Something that cannot be tolerated: the core is told, and the session is over.
    fn fatal(&mut self, now: Moment, breach: Breach, header: Option<&Header>) {
        self.tell(AgentEvent::Violation(Violation { breach, call_id: None }));
        if self.is_live() {
            self.answer_error(now, header, &Fault::new(breach.code(), breach.message()));
        }
        self.close(AgentClose::Violation(breach));
    }

    /// Answers with an error, unless the message was an error itself.
    pub(super) fn answer_error(&mut self, now: Moment, header: Option<&Header>, fault: &Fault) {
        if let Some(draft) = Draft::<AgentMessage>::refusal(header, error_of(fault)) {
            self.reply(now, draft);
        }
    }
}

fn unspecified() -> Fault {
    Fault::new(Code::ToolUnspecified, "The core reported an error and did not say which.")
}
