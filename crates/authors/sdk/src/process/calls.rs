//! The calls that are open, and what waits for them.

use std::collections::HashMap;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use wharf_protocol::Moment;
use wharf_protocol::agent::{
    AgentSession, Begin, CallOutcome, CallReceived, CallReport, IdempotencyKey, IdempotencyTable,
    InvokeEnded, KeptValue, ReportResult, SendError,
};
use wharf_vocab::limits::CANCEL_GRACE_MS;
use wharf_vocab::{Code, Executed, Fault, StepName};
use wharf_wire::agent_v1::{CallId, Chunk, InvokeId, PartyKind, QuestionAnswer, QuestionId};

use super::host::InvokeWaiter;
use crate::host::Cancel;

/// Keys that are kept at once; a call with another is refused until one of them is old enough.
pub(super) const KEYS_MAX: usize = 100_000;
/// How long a key is kept after its call has ended. The core is told, and repeats nothing later
/// than that on the strength of a key.
pub(super) const KEYS_KEPT_MS: u64 = 10 * 60 * 1000;
const KEYS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Who waits for the answer to a question.
pub(super) type AnswerWaiter = oneshot::Sender<Result<QuestionAnswer, SendError>>;

/// Who waits for a value that durable code keeps.
pub(super) type KeptWaiter = oneshot::Sender<Result<Result<Option<Value>, Fault>, SendError>>;

/// The calls that are open.
#[derive(Debug)]
pub(super) struct ProcessCalls {
    open: HashMap<CallId, OpenProcessCall>,
    /// Who waits for answers, and for calls that were made through the core.
    pub(super) questions: HashMap<QuestionId, (CallId, AnswerWaiter)>,
    pub(super) invokes: HashMap<InvokeId, (CallId, InvokeWaiter)>,
    pub(super) kept: HashMap<(CallId, StepName), KeptWaiter>,
    keys: Option<IdempotencyTable>,
}

#[derive(Debug)]
struct OpenProcessCall {
    cancel: Cancel,
    /// Set when other calls may wait for how this one ends.
    key: Option<IdempotencyKey>,
    /// Whether a handler works on it; if not, it waits for another call with the same key.
    executing: bool,
}

impl ProcessCalls {
    pub(super) fn new(keeps_keys: bool) -> Self {
        let keys =
            keeps_keys.then(|| IdempotencyTable::new(KEYS_MAX, KEYS_BYTES_MAX, KEYS_KEPT_MS));
        Self {
            open: HashMap::new(),
            questions: HashMap::new(),
            invokes: HashMap::new(),
            kept: HashMap::new(),
            keys,
        }
    }

    /// Takes a call; gives back how it is canceled if it is to be executed. A call that is not
    /// gets its result from here, now or later.
    pub(super) fn take(
        &mut self,
        now: Moment,
        session: &mut AgentSession,
        call: &CallReceived,
    ) -> Option<Cancel> {
        let cancel = Cancel::new(CancellationToken::new(), CANCEL_GRACE_MS);
        let key = self.keys.is_some().then(|| key_of(call)).flatten();
        let begin = match (&mut self.keys, &key) {
            (Some(keys), Some(key)) => keys.begin(now.ms, key, &call.input, &call.call_id),
            _ => Begin::Execute,
        };
        let outcome = match begin {
            Begin::Execute => {
                let open = OpenProcessCall { cancel: cancel.clone(), key, executing: true };
                self.open.insert(call.call_id.clone(), open);
                return Some(cancel);
            }
            Begin::Wait => {
                let open = OpenProcessCall { cancel, key: None, executing: false };
                self.open.insert(call.call_id.clone(), open);
                return None;
            }
            Begin::Replay(outcome) => outcome,
            Begin::Refuse(fault) => CallOutcome::Failed(fault),
        };
        // The call has only just been opened, so there is nothing that could be refused.
        let _ = session.finish(now, &call.call_id, outcome.into());
        None
    }

    /// Ends a call, and with it all calls that waited for it.
    pub(super) fn finish(
        &mut self,
        now: Moment,
        session: &mut AgentSession,
        call_id: &CallId,
        report: CallReport,
    ) {
        self.questions.retain(|_, (asked_by, _)| asked_by != call_id);
        self.invokes.retain(|_, (made_by, _)| made_by != call_id);
        self.kept.retain(|(of, _), _| of != call_id);
        let key = self.open.remove(call_id).and_then(|open| open.key);
        let outcome = key.is_some().then(|| report.outcome.clone());
        // A call that the session has ended itself, by a timeout or a drain, has its result.
        let finished = session.finish(now, call_id, report);
        let (Some(keys), Some(key), Some(outcome)) = (&mut self.keys, key, outcome) else {
            return;
        };
        let outcome = match (finished, outcome) {
            (Ok(ReportResult::TooLarge), _) => CallOutcome::Failed(
                Fault::new(Code::ToolOutputTooLarge, "The output is larger than a frame may be.")
                    .executed(Executed::Yes),
            ),
            // Nobody canceled the calls that waited.
            (_, CallOutcome::Canceled(fault)) => CallOutcome::Failed(fault),
            (_, outcome) => outcome,
        };
        for waiting in keys.finish(now.ms, &key, &outcome) {
            self.open.remove(&waiting);
            // One that was canceled while it waited has its result.
            let _ = session.finish(now, &waiting, outcome.clone().into());
        }
    }

    /// Passes a cancel on to a call's handler.
    pub(super) fn cancel(
        &mut self,
        now: Moment,
        session: &mut AgentSession,
        call_id: &CallId,
        deadline_ms: Option<u64>,
    ) {
        let Some(open) = self.open.get(call_id) else {
            return;
        };
        if open.executing {
            open.cancel.cancel(deadline_ms.unwrap_or(CANCEL_GRACE_MS));
            return;
        }
        let fault = Fault::new(Code::ToolCanceled, "The call was canceled.").executed(Executed::No);
        self.finish(now, session, call_id, CallOutcome::Canceled(fault).into());
    }

    /// Tells every handler to stop within this time.
    pub(super) fn cancel_all(&self, within_ms: u64) {
        for open in self.open.values() {
            open.cancel.cancel(within_ms);
        }
    }

    /// Gives an answer to who waits for it.
    pub(super) fn answered(&mut self, answered: QuestionAnswer) {
        if let Some((_, waiter)) = self.questions.remove(&answered.ask_id) {
            // A handler that no longer waits is no mistake.
            let _ = waiter.send(Ok(answered));
        }
    }

    /// Gives a piece of output to who waits for it, if there is room.
    pub(super) fn invoke_chunk(&mut self, invoke_id: &InvokeId, chunk: Chunk) {
        if let Some((_, waiter)) = self.invokes.get(invoke_id) {
            // A handler that reads slowly or not at all misses pieces, and delays nobody.
            let _ = waiter.chunks.try_send(chunk);
        }
    }

    pub(super) fn invoke_ended(&mut self, ended: InvokeEnded) {
        if let Some((_, waiter)) = self.invokes.remove(&ended.invoke_id) {
            // A handler that no longer waits is no mistake.
            let _ = waiter.end.send(ended.outcome);
        }
    }

    /// Gives a kept value to who waits for it.
    pub(super) fn step_kept(&mut self, kept: KeptValue) {
        if let Some(waiter) = self.kept.remove(&(kept.call_id, kept.step)) {
            // A handler that no longer waits is no mistake.
            let _ = waiter.send(Ok(kept.value));
        }
    }

    /// Lets everybody who waits for something know that it will not come.
    pub(super) fn forget_waiters(&mut self) {
        self.questions.clear();
        self.invokes.clear();
        self.kept.clear();
    }
}

fn key_of(call: &CallReceived) -> Option<IdempotencyKey> {
    let caller = call.caller.as_ref().map(|caller| {
        let kind = match caller.kind {
            PartyKind::Human => "human",
            PartyKind::Agent => "agent",
            PartyKind::System => "system",
        };
        format!("{kind}:{}", caller.id)
    });
    Some(IdempotencyKey {
        tool_id: call.tool_id.clone(),
        caller: caller.unwrap_or_default(),
        key: call.idempotency_key.clone()?,
    })
}
