//! What an agent may want of the core: calls, answers, notices. Each needs its capability.
//!
//! The session keeps ids, order and counts. Whether the agent may call this tool or ask this
//! question is for the owner to decide.

use std::collections::BTreeMap;

use wharf_vocab::{Code, Fault};
use wharf_wire::agent_v1::{
    AnswerStatus, CallId, CallStatus, Chunk, Echo, Header, InvokeId, InvokeResult, InvokeStream,
    MessageId, Notice, QuestionAnswer, QuestionAsk, QuestionId, ToolInvoke, ToolInvokeCancel,
};

use super::handshake::Phase;
use super::{Additions, CoreEvent, CoreSession, InvokeReceived};
use crate::Moment;
use crate::agent::outbox::{Draft, SendError};
use crate::agent::outcome::{CallOutcome, error_of};
use crate::agent::violation::Breach;

const NOTICE_WINDOW_MS: u64 = 60_000;

/// What the agent waits for.
#[derive(Debug, Default)]
pub(super) struct Open {
    invokes: BTreeMap<InvokeId, OpenInvoke>,
    questions: BTreeMap<QuestionId, OpenQuestion>,
    /// When the window began in which notices are counted, and how many came.
    notices: (u64, u32),
}

#[derive(Debug)]
struct OpenInvoke {
    message_id: MessageId,
    echo: Echo,
    last_seq: u64,
}

#[derive(Debug)]
struct OpenQuestion {
    message_id: MessageId,
    echo: Echo,
    call_id: CallId,
}

impl Open {
    pub(super) fn clear(&mut self) {
        self.invokes.clear();
        self.questions.clear();
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
        self.outbox.send(now, draft.echo(&open.echo))?;
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
        self.send_invoke_result(now, invoke_id, &open.message_id, &open.echo, outcome);
        Ok(())
    }

    fn send_invoke_result(
        &mut self,
        now: Moment,
        invoke_id: &InvokeId,
        message_id: &MessageId,
        echo: &Echo,
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
        let draft = |result| Draft::new(result).reply_to(message_id).echo(echo);
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
        let draft = Draft::new(answer).reply_to(&open.message_id).echo(&open.echo);
        self.outbox.send(now, draft)?;
        let call_id = open.call_id.clone();
        self.open.questions.remove(&ask_id);
        if let Some(call) = self.calls.get_mut(&call_id) {
            call.resume(now);
        }
        Ok(())
    }

    pub(super) fn on_invoke(&mut self, now: Moment, id: MessageId, echo: Echo, invoke: ToolInvoke) {
        if !self.granted(|granted| granted.invoke) {
            return self.not_granted(now, id);
        }
        let invoke_id = invoke.invoke_id;
        if self.open.invokes.contains_key(&invoke_id) {
            return self.in_use(now, id);
        }
        let parent = invoke.parent_call_id.filter(|parent| self.calls.is_open(parent));
        let refusal = match parent {
            None => Some(Fault::new(
                Code::PermissionDenied,
                "An agent may call tools only on behalf of a call it is working on.",
            )),
            Some(_) if self.open.invokes.len() >= self.limits().invokes_open_max => Some(
                Fault::new(Code::ToolBusy, "The agent has too many calls open through the core."),
            ),
            Some(_) => None,
        };
        if let Some(fault) = refusal {
            let outcome = CallOutcome::Failed(fault);
            return self.send_invoke_result(now, &invoke_id, &id, &echo, outcome);
        }
        let Some(parent_call_id) = parent else {
            return;
        };
        let open = OpenInvoke { message_id: id, echo: echo.clone(), last_seq: 0 };
        self.open.invokes.insert(invoke_id.clone(), open);
        self.tell(CoreEvent::Invoke(Box::new(InvokeReceived {
            invoke_id,
            parent_call_id,
            tool_id: invoke.tool_id,
            input: invoke.input,
            timeout_ms: invoke.timeout_ms,
            idempotency_key: invoke.idempotency_key,
            echo,
        })));
    }

    pub(super) fn on_invoke_cancel(
        &mut self,
        now: Moment,
        id: MessageId,
        cancel: ToolInvokeCancel,
    ) {
        if !self.granted(|granted| granted.invoke) {
            return self.not_granted(now, id);
        }
        // A call that is over, or was never made, needs no canceling.
        if self.open.invokes.contains_key(&cancel.invoke_id) {
            self.tell(CoreEvent::InvokeCanceled { invoke_id: cancel.invoke_id });
        }
    }

    pub(super) fn on_question(&mut self, now: Moment, id: MessageId, echo: Echo, ask: QuestionAsk) {
        if !self.granted(|granted| granted.ask) {
            return self.not_granted(now, id);
        }
        if self.open.questions.contains_key(&ask.ask_id) {
            return self.in_use(now, id);
        }
        let questions_max = self.limits().questions_open_max;
        let Some(call) = self.calls.get_mut(&ask.call_id) else {
            self.send_answer(now, &ask.ask_id, &id, &echo, AnswerStatus::Cancelled);
            if self.calls.tombstones.get(&ask.call_id).is_none() {
                self.violation(now, Breach::UnknownCall, None);
            }
            return;
        };
        if call.questions() >= questions_max {
            return self.send_answer(now, &ask.ask_id, &id, &echo, AnswerStatus::Denied);
        }
        call.wait(now);
        let call_id = ask.call_id.clone();
        let open = OpenQuestion { message_id: id, echo, call_id };
        self.open.questions.insert(ask.ask_id.clone(), open);
        self.tell(CoreEvent::Question(Box::new(ask)));
    }

    /// Closes the questions of a call that is over, so that each has its one answer.
    pub(super) fn withdraw_questions(&mut self, now: Moment, call_id: &CallId) {
        let of_call: Vec<QuestionId> = self
            .open
            .questions
            .iter()
            .filter(|(_, open)| open.call_id == *call_id)
            .map(|(ask_id, _)| ask_id.clone())
            .collect();
        for ask_id in of_call {
            if let Some(open) = self.open.questions.remove(&ask_id) {
                let status = AnswerStatus::Cancelled;
                self.send_answer(now, &ask_id, &open.message_id, &open.echo, status);
                self.tell(CoreEvent::QuestionWithdrawn { ask_id });
            }
        }
    }

    fn send_answer(
        &mut self,
        now: Moment,
        ask_id: &QuestionId,
        message_id: &MessageId,
        echo: &Echo,
        status: AnswerStatus,
    ) {
        let answer = QuestionAnswer { ask_id: ask_id.clone(), status, value: None, text: None };
        self.reply(now, Draft::new(answer).reply_to(message_id).echo(echo));
    }

    pub(super) fn on_notice(&mut self, now: Moment, id: MessageId, notice: Notice) {
        if !self.granted(|granted| granted.notify) {
            return self.not_granted(now, id);
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

    fn granted(&self, wanted: impl Fn(Additions) -> bool) -> bool {
        matches!(&self.phase, Phase::Live(peer) if wanted(peer.granted))
    }

    fn not_granted(&mut self, now: Moment, id: MessageId) {
        self.refuse_addition(now, id, Breach::Unexpected);
    }

    fn in_use(&mut self, now: Moment, id: MessageId) {
        self.refuse_addition(now, id, Breach::Duplicate);
    }

    fn refuse_addition(&mut self, now: Moment, id: MessageId, breach: Breach) {
        let header = Header { id: Some(id), ..Header::default() };
        self.answer_error(now, Some(&header), &Fault::new(breach.code(), breach.message()));
        self.violation(now, breach, None);
    }
}

fn failed(invoke_id: &InvokeId, status: CallStatus, fault: &Fault) -> InvokeResult {
    let error = Some(error_of(fault));
    InvokeResult { invoke_id: invoke_id.clone(), status, output: None, error }
}
