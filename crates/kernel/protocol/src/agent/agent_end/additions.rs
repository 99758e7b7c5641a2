//! What the agent may want of the core: calls, answers, notices. Each needs to be granted.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use wharf_vocab::{Code, Fault, StepName};
use wharf_wire::agent_v1::{
    AgentNotice, AnswerStatus, CallId, CallStatus, ErrorObject, InvokeId, InvokeResult,
    InvokeStream, MessageId, NoticeLevel, QuestionAnswer, QuestionAsk, QuestionId, ToolInvoke,
    ToolInvokeCancel,
};

use super::handshake::AgentEndPhase;
use super::{AgentEvent, AgentSession, InvokeEnded, InvokeRequest};
use crate::Moment;
use crate::agent::core_end::Additions;
use crate::agent::outbox::{Draft, SendError};
use crate::agent::outcome::{CallOutcome, fault_of};
use crate::agent::violation::Breach;

/// What nobody waits for any more is remembered up to this count, so that an answer that was on
/// its way is no violation.
const ABANDONED_MAX: usize = 1_024;

/// What the agent waits for.
#[derive(Default)]
pub(super) struct WaitingRequests {
    invokes: BTreeMap<InvokeId, WaitingInvoke>,
    questions: BTreeMap<QuestionId, WaitingQuestion>,
    pub(super) locals: BTreeMap<(CallId, StepName), MessageId>,
    abandoned: VecDeque<Abandoned>,
}

struct WaitingInvoke {
    message_id: MessageId,
    call_id: CallId,
    last_seq: u64,
}

struct WaitingQuestion {
    message_id: MessageId,
    call_id: CallId,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Abandoned {
    Invoke(InvokeId),
    Question(QuestionId),
    Local(CallId, StepName),
}

impl WaitingRequests {
    pub(super) fn clear(&mut self) {
        self.invokes.clear();
        self.questions.clear();
        self.locals.clear();
        self.abandoned.clear();
    }

    /// A call is over, and with it all it waited for.
    pub(super) fn abandon(&mut self, call_id: &CallId) {
        let invokes = self.invokes.extract_if(.., |_, waiting| waiting.call_id == *call_id);
        self.abandoned.extend(invokes.map(|(id, _)| Abandoned::Invoke(id)));
        let questions = self.questions.extract_if(.., |_, waiting| waiting.call_id == *call_id);
        self.abandoned.extend(questions.map(|(id, _)| Abandoned::Question(id)));
        let locals = self.locals.extract_if(.., |(call, _), _| call == call_id);
        self.abandoned.extend(locals.map(|((call, step), _)| Abandoned::Local(call, step)));
        let too_many = self.abandoned.len().saturating_sub(ABANDONED_MAX);
        self.abandoned.drain(..too_many);
    }
}

impl AgentSession {
    /// Calls a tool through the core, on behalf of a call that is open.
    pub fn invoke(&mut self, now: Moment, request: InvokeRequest) -> Result<(), SendError> {
        let is_step = request.step.is_some();
        self.check_granted(|granted| granted.invoke && (granted.steps || !is_step))?;
        let echo = self.calls.echo(&request.parent_call_id).ok_or(SendError::NotOpen)?.clone();
        if self.waiting.invokes.contains_key(&request.invoke_id) {
            return Err(SendError::InUse);
        }
        let draft = Draft::new(ToolInvoke {
            invoke_id: request.invoke_id.clone(),
            tool_id: request.tool_id,
            input: request.input,
            timeout_ms: request.timeout_ms,
            idempotency_key: request.idempotency_key,
            parent_call_id: Some(request.parent_call_id.clone()),
            step: request.step,
        });
        let message_id = self.send(now, draft.echo(&echo))?;
        let waiting = WaitingInvoke { message_id, call_id: request.parent_call_id, last_seq: 0 };
        self.waiting.invokes.insert(request.invoke_id, waiting);
        Ok(())
    }

    /// Says that the answer of a call is no longer wanted. It still ends with an event.
    pub fn cancel_invoke(&mut self, now: Moment, invoke_id: &InvokeId) -> Result<(), SendError> {
        if !self.waiting.invokes.contains_key(invoke_id) {
            return Err(SendError::NotOpen);
        }
        let cancel = ToolInvokeCancel { invoke_id: invoke_id.clone() };
        self.send(now, Draft::new(cancel)).map(drop)
    }

    /// Asks a question on behalf of a call that is open.
    pub fn ask(&mut self, now: Moment, question: QuestionAsk) -> Result<(), SendError> {
        self.check_granted(|granted| granted.ask)?;
        let echo = self.calls.echo(&question.call_id).ok_or(SendError::NotOpen)?.clone();
        if self.waiting.questions.contains_key(&question.ask_id) {
            return Err(SendError::InUse);
        }
        let (ask_id, call_id) = (question.ask_id.clone(), question.call_id.clone());
        let message_id = self.send(now, Draft::new(question).echo(&echo))?;
        self.waiting.questions.insert(ask_id, WaitingQuestion { message_id, call_id });
        Ok(())
    }

    /// Tells people something.
    pub fn notify(
        &mut self,
        now: Moment,
        call_id: Option<&CallId>,
        level: NoticeLevel,
        text: impl Into<String>,
    ) -> Result<(), SendError> {
        self.check_granted(|granted| granted.notify)?;
        let echo = match call_id {
            Some(call_id) => self.calls.echo(call_id).ok_or(SendError::NotOpen)?.clone(),
            None => wharf_wire::agent_v1::Echo::default(),
        };
        let notice = AgentNotice { call_id: call_id.cloned(), level, text: text.into() };
        self.send(now, Draft::new(notice).echo(&echo)).map(drop)
    }

    pub(super) fn check_granted(
        &self,
        wanted: impl Fn(Additions) -> bool,
    ) -> Result<(), SendError> {
        match &self.phase {
            AgentEndPhase::Live(peer) if wanted(peer.granted) => Ok(()),
            AgentEndPhase::Live(_) => Err(SendError::NotGranted),
            AgentEndPhase::Greeting { .. } | AgentEndPhase::Closed => Err(SendError::NotLive),
        }
    }

    pub(super) fn on_invoke_stream(&mut self, now: Moment, stream: InvokeStream) {
        let InvokeStream { invoke_id, seq, chunk } = stream;
        let breach = match self.waiting.invokes.get_mut(&invoke_id) {
            None if self.waiting.abandoned.contains(&Abandoned::Invoke(invoke_id.clone())) => {
                return;
            }
            None => Breach::UnknownCall,
            Some(waiting) if seq <= waiting.last_seq => Breach::StreamOrder,
            Some(waiting) => {
                waiting.last_seq = seq;
                return self.tell(AgentEvent::InvokeChunk { invoke_id, seq, chunk });
            }
        };
        self.violation(now, breach, None);
    }

    pub(super) fn on_invoke_result(
        &mut self,
        now: Moment,
        top_level: Option<ErrorObject>,
        result: InvokeResult,
    ) {
        let InvokeResult { invoke_id, status, output, error } = result;
        if self.waiting.invokes.remove(&invoke_id).is_none() {
            return self.nobody_waits(now, &Abandoned::Invoke(invoke_id));
        }
        let fault = error.or(top_level).as_ref().map(fault_of);
        let unspecified =
            || Fault::new(Code::ToolUnspecified, "The tool failed and did not say why.");
        let outcome = match (status, output, fault) {
            (CallStatus::Succeeded, Some(Value::Object(output)), None) => {
                CallOutcome::Succeeded(output)
            }
            (CallStatus::Succeeded, None, None) => CallOutcome::Succeeded(Default::default()),
            (CallStatus::Canceled, _, fault) => CallOutcome::Canceled(
                fault.unwrap_or_else(|| Fault::new(Code::ToolCanceled, "The call was canceled.")),
            ),
            (_, _, fault) => CallOutcome::Failed(fault.unwrap_or_else(unspecified)),
        };
        self.tell(AgentEvent::InvokeEnded(Box::new(InvokeEnded { invoke_id, outcome })));
    }

    pub(super) fn on_answer(&mut self, now: Moment, answer: QuestionAnswer) {
        if self.waiting.questions.remove(&answer.ask_id).is_none() {
            return self.nobody_waits(now, &Abandoned::Question(answer.ask_id));
        }
        self.tell(AgentEvent::Answered(Box::new(answer)));
    }

    /// The last word about something that the agent does not wait for.
    pub(super) fn nobody_waits(&mut self, now: Moment, what: &Abandoned) {
        match self.waiting.abandoned.iter().position(|abandoned| abandoned == what) {
            Some(place) => drop(self.waiting.abandoned.remove(place)),
            None => self.violation(now, Breach::UnknownCall, None),
        }
    }

    /// The core could not take a message: whoever waits for its answer waits in vain.
    pub(super) fn wait_in_vain(&mut self, message_id: &MessageId, fault: &Fault) {
        let invoke = self.waiting.invokes.iter().find(|(_, w)| w.message_id == *message_id);
        if let Some(invoke_id) = invoke.map(|(id, _)| id.clone()) {
            self.waiting.invokes.remove(&invoke_id);
            let outcome = CallOutcome::Failed(fault.clone());
            self.tell(AgentEvent::InvokeEnded(Box::new(InvokeEnded { invoke_id, outcome })));
        }
        let question = self.waiting.questions.iter().find(|(_, w)| w.message_id == *message_id);
        if let Some(ask_id) = question.map(|(id, _)| id.clone()) {
            self.waiting.questions.remove(&ask_id);
            let (status, text) = (AnswerStatus::Denied, Some(fault.message.clone()));
            let answer = QuestionAnswer { ask_id, status, value: None, text };
            self.tell(AgentEvent::Answered(Box::new(answer)));
        }
        self.keep_in_vain(message_id, fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_finished_call_waited_for_is_forgotten_but_for_a_bounded_trace() {
        let call = |n: usize| CallId::new(format!("c-{n}")).expect("valid");
        let message_id = MessageId::new("m-1").expect("valid");
        let mut waiting = WaitingRequests::default();
        for n in 0..5_000 {
            let invoke_id = InvokeId::new(format!("i-{n}")).expect("valid");
            let (message_id, call_id) = (message_id.clone(), call(n));
            let invoke = WaitingInvoke {
                message_id: message_id.clone(),
                call_id: call_id.clone(),
                last_seq: 0,
            };
            waiting.invokes.insert(invoke_id, invoke);
            let ask_id = QuestionId::new(format!("q-{n}")).expect("valid");
            waiting.questions.insert(ask_id, WaitingQuestion { message_id, call_id });
        }
        for n in 1..5_000 {
            waiting.abandon(&call(n));
        }
        assert_eq!((waiting.invokes.len(), waiting.questions.len()), (1, 1), "c-0 is still open");
        assert_eq!(waiting.abandoned.len(), ABANDONED_MAX);
    }
}
