//! What an agent may want of the core: calls, answers, notices. Each needs its capability.
//!
//! The session keeps ids, order and counts. Whether the agent may call this tool or ask this
//! question is for the owner to decide.

use std::collections::BTreeMap;

use wharf_vocab::{Code, Fault, StepName};
use wharf_wire::agent_v1::{
    AgentNotice, AnswerStatus, CallId, CallStatus, Chunk, Header, InvokeId, InvokeResult,
    InvokeStream, MessageId, QuestionAnswer, QuestionAsk, QuestionId, ToolInvoke, ToolInvokeCancel,
};

use super::handshake::CoreEndPhase;
use super::{Additions, CoreEvent, CoreSession, InvokeReceived};
use crate::Moment;
use crate::agent::outbox::{Draft, Origin, SendError};
use crate::agent::outcome::{CallOutcome, error_of};
use crate::agent::violation::Breach;

const NOTICE_WINDOW_MS: u64 = 60_000;

/// What the agent waits for.
#[derive(Default)]
pub(super) struct OpenRequests {
    invokes: BTreeMap<InvokeId, OpenInvoke>,
    questions: BTreeMap<QuestionId, OpenQuestion>,
    pub(super) locals: BTreeMap<(CallId, StepName), Origin>,
    /// When the window began in which notices are counted, and how many came.
    notices: (u64, u32),
}

struct OpenInvoke {
    origin: Origin,
    last_seq: u64,
    /// The call whose running time stands still for it, since it is a step of its code.
    step_of: Option<CallId>,
}

struct OpenQuestion {
    origin: Origin,
    call_id: CallId,
}

impl OpenRequests {
    pub(super) fn clear(&mut self) {
        self.invokes.clear();
        self.questions.clear();
        self.locals.clear();
    }
}

impl CoreSession {
    /// Passes on progress of a call that the agent made.
    pub fn invoke_chunk(
        &mut self,
        now: Moment,
        invoke_id: &InvokeId,
        chunk: Chunk,
    ) -> Result<(), SendError> {
        if self.outbox.queued_bytes() > self.limits().outbox_bytes_max {
            return Err(SendError::Full);
        }
        let open = self.open.invokes.get_mut(invoke_id).ok_or(SendError::NotOpen)?;
        let seq = open.last_seq + 1;
        let draft = Draft::new(InvokeStream { invoke_id: invoke_id.clone(), seq, chunk });
        self.outbox.send(now, draft.echo(&open.origin.echo))?;
        open.last_seq = seq;
        Ok(())
    }

    /// Ends a call that the agent made, once. An output that fits no frame becomes a failure.
    pub fn invoke_result(
        &mut self,
        now: Moment,
        invoke_id: &InvokeId,
        outcome: CallOutcome,
    ) -> Result<(), SendError> {
        let open = self.open.invokes.remove(invoke_id).ok_or(SendError::NotOpen)?;
        self.send_invoke_result(now, invoke_id, &open.origin, outcome);
        if let Some(call) = open.step_of.and_then(|call_id| self.calls.get_mut(&call_id)) {
            call.resume_step(now);
        }
        Ok(())
    }

    fn send_invoke_result(
        &mut self,
        now: Moment,
        invoke_id: &InvokeId,
        origin: &Origin,
        outcome: CallOutcome,
    ) {
        let invoke_id = invoke_id.clone();
        let result = match outcome {
            CallOutcome::Succeeded(output) => InvokeResult {
                invoke_id: invoke_id.clone(),
                status: CallStatus::Succeeded,
                output: Some(output.into()),
                error: None,
            },
            CallOutcome::Failed(fault) => failed(&invoke_id, CallStatus::Failed, &fault),
            CallOutcome::Canceled(fault) => failed(&invoke_id, CallStatus::Canceled, &fault),
        };
        let draft = |result| Draft::new(result).answers(origin);
        if !self.reply(now, draft(result)) {
            let fault =
                Fault::new(Code::ToolOutputTooLarge, "The output is larger than a frame may be.");
            self.reply(now, draft(failed(&invoke_id, CallStatus::Failed, &fault)));
        }
    }

    /// Answers a question, once. The call's running time goes on after its last open question.
    pub fn answer(&mut self, now: Moment, answer: QuestionAnswer) -> Result<(), SendError> {
        let ask_id = answer.ask_id.clone();
        let open = self.open.questions.get(&ask_id).ok_or(SendError::NotOpen)?;
        let draft = Draft::new(answer).answers(&open.origin);
        self.outbox.send(now, draft)?;
        let call_id = open.call_id.clone();
        self.open.questions.remove(&ask_id);
        if let Some(call) = self.calls.get_mut(&call_id) {
            call.resume(now);
        }
        Ok(())
    }

    pub(super) fn on_invoke(&mut self, now: Moment, origin: Origin, invoke: ToolInvoke) {
        let is_step = invoke.step.is_some();
        if !self.granted(|granted| granted.invoke && (granted.steps || !is_step)) {
            return self.refuse_addition(now, origin.id, Breach::Unexpected);
        }
        let invoke_id = invoke.invoke_id;
        if self.open.invokes.contains_key(&invoke_id) {
            return self.refuse_addition(now, origin.id, Breach::Duplicate);
        }
        let is_full = self.open.invokes.len() >= self.limits().invokes_open_max;
        let parent = invoke.parent_call_id.filter(|parent| self.calls.is_open(parent));
        let parent_call_id = match parent {
            Some(parent) if !is_full => parent,
            parent => {
                let fault = match parent {
                    None => Fault::new(
                        Code::PermissionDenied,
                        "An agent may call tools only on behalf of a call it is working on.",
                    ),
                    Some(_) => Fault::new(
                        Code::ToolBusy,
                        "The agent has too many calls open through the core.",
                    ),
                };
                let outcome = CallOutcome::Failed(fault);
                return self.send_invoke_result(now, &invoke_id, &origin, outcome);
            }
        };
        let echo = origin.echo.clone();
        let step_of = is_step.then(|| parent_call_id.clone());
        if let Some(call) = step_of.as_ref().and_then(|call_id| self.calls.get_mut(call_id)) {
            call.wait_for_step(now);
        }
        let open = OpenInvoke { origin, last_seq: 0, step_of };
        self.open.invokes.insert(invoke_id.clone(), open);
        self.tell(CoreEvent::Invoke(Box::new(InvokeReceived {
            invoke_id,
            parent_call_id,
            tool_id: invoke.tool_id,
            input: invoke.input,
            timeout_ms: invoke.timeout_ms,
            idempotency_key: invoke.idempotency_key,
            step: invoke.step,
            echo,
        })));
    }

    pub(super) fn on_invoke_cancel(
        &mut self,
        now: Moment,
        origin: Origin,
        cancel: ToolInvokeCancel,
    ) {
        if !self.granted(|granted| granted.invoke) {
            return self.refuse_addition(now, origin.id, Breach::Unexpected);
        }
        // A call that is over, or was never made, needs no canceling.
        if self.open.invokes.contains_key(&cancel.invoke_id) {
            self.tell(CoreEvent::InvokeCanceled { invoke_id: cancel.invoke_id });
        }
    }

    pub(super) fn on_question(&mut self, now: Moment, origin: Origin, ask: QuestionAsk) {
        if !self.granted(|granted| granted.ask) {
            return self.refuse_addition(now, origin.id, Breach::Unexpected);
        }
        if self.open.questions.contains_key(&ask.ask_id) {
            return self.refuse_addition(now, origin.id, Breach::Duplicate);
        }
        let questions_max = self.limits().questions_open_max;
        let Some(call) = self.calls.get_mut(&ask.call_id) else {
            self.send_answer(now, &ask.ask_id, &origin, AnswerStatus::Cancelled);
            if self.calls.tombstones.get(&ask.call_id).is_none() {
                self.violation(now, Breach::UnknownCall, None);
            }
            return;
        };
        if call.questions() >= questions_max {
            return self.send_answer(now, &ask.ask_id, &origin, AnswerStatus::Denied);
        }
        call.wait(now);
        let open = OpenQuestion { origin, call_id: ask.call_id.clone() };
        self.open.questions.insert(ask.ask_id.clone(), open);
        self.tell(CoreEvent::Question(Box::new(ask)));
    }

    /// Closes the questions of a call that is over, so that each has its one answer.
    pub(super) fn withdraw_questions(&mut self, now: Moment, call_id: &CallId) {
        let of_call = self.open.questions.extract_if(.., |_, open| open.call_id == *call_id);
        for (ask_id, open) in of_call.collect::<Vec<_>>() {
            self.send_answer(now, &ask_id, &open.origin, AnswerStatus::Cancelled);
            self.tell(CoreEvent::QuestionWithdrawn { ask_id });
        }
    }

    fn send_answer(
        &mut self,
        now: Moment,
        ask_id: &QuestionId,
        origin: &Origin,
        status: AnswerStatus,
    ) {
        let answer = QuestionAnswer { ask_id: ask_id.clone(), status, value: None, text: None };
        self.reply(now, Draft::new(answer).answers(origin));
    }

    pub(super) fn on_notice(&mut self, now: Moment, origin: Origin, notice: AgentNotice) {
        if !self.granted(|granted| granted.notify) {
            return self.refuse_addition(now, origin.id, Breach::Unexpected);
        }
        if let Some(call_id) = &notice.call_id
            && !self.calls.is_open(call_id)
        {
            if self.calls.tombstones.get(call_id).is_none() {
                self.violation(now, Breach::UnknownCall, None);
            }
            return;
        }
        let (began_ms, count) = &mut self.open.notices;
        if now.ms.saturating_sub(*began_ms) >= NOTICE_WINDOW_MS {
            (*began_ms, *count) = (now.ms, 0);
        }
        *count = count.saturating_add(1);
        let (count, max) = (*count, self.limits().notices_per_minute_max);
        if count <= max {
            self.tell(CoreEvent::Notice(notice));
        } else if count == max + 1 {
            // One report per window: a talkative agent is cut short, not cut off.
            self.violation(now, Breach::NoticeFlood, None);
        }
    }

    pub(super) fn granted(&self, wanted: impl Fn(Additions) -> bool) -> bool {
        matches!(&self.phase, CoreEndPhase::Live(peer) if wanted(peer.granted))
    }

    pub(super) fn refuse_addition(&mut self, now: Moment, id: MessageId, breach: Breach) {
        let header = Header { id: Some(id), ..Header::default() };
        self.answer_error(now, Some(&header), &Fault::new(breach.code(), breach.message()));
        self.violation(now, breach, None);
    }
}

fn failed(invoke_id: &InvokeId, status: CallStatus, fault: &Fault) -> InvokeResult {
    let error = Some(error_of(fault));
    InvokeResult { invoke_id: invoke_id.clone(), status, output: None, error }
}
