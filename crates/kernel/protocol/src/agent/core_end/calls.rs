//! Calls that are open: sending, canceling, timing out, ending.

use std::collections::BTreeMap;

use wharf_vocab::{Code, Executed, Fault, Micro};
use wharf_wire::agent_v1::{CallId, CancelAck, Echo, MessageId, ToolCall, ToolCancel};

use super::stream::StreamState;
use super::{CallRequest, CancelCall, CoreEvent, CoreSession, Health};
use crate::Moment;
use crate::agent::outbox::{Draft, SendError};
use crate::agent::outcome::{CallEnd, CallOutcome};
use crate::agent::tombstones::{Tombstone, Tombstones};
use crate::agent::violation::Breach;

/// The calls of a session, open and over.
pub(super) struct Calls {
    open: BTreeMap<CallId, OpenCall>,
    pub(super) tombstones: Tombstones,
}

/// One open call.
pub(super) struct OpenCall {
    message_id: MessageId,
    echo: Echo,
    /// Whether the agent has failed to return the echo; reported once per call.
    echo_broken: bool,
    timeout: Timeout,
    /// Set once a cancel was sent.
    cancel_deadline_ms: Option<u64>,
    /// Questions the call waits for.
    questions: usize,
    /// Steps of its code that it waits for.
    steps: usize,
    pub(super) stream: StreamState,
    pub(super) output_bytes_max: u64,
    pub(super) stream_bytes_max: u64,
    /// The most that the agent has said it has cost so far.
    cost_micro: Micro,
}

/// The running time of a call, which stands still while it waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timeout {
    Never,
    At(u64),
    Paused { left_ms: u64 },
}

impl Calls {
    pub(super) fn new(tombstones_max: usize) -> Self {
        Self { open: BTreeMap::new(), tombstones: Tombstones::new(tombstones_max) }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn is_open(&self, call_id: &CallId) -> bool {
        self.open.contains_key(call_id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &CallId> {
        self.open.keys()
    }

    pub(super) fn get_mut(&mut self, call_id: &CallId) -> Option<&mut OpenCall> {
        self.open.get_mut(call_id)
    }

    pub(super) fn by_message(&self, id: &MessageId) -> Option<CallId> {
        self.open.iter().find(|(_, call)| call.message_id == *id).map(|(id, _)| id.clone())
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.open.values().filter_map(OpenCall::deadline_ms).min()
    }

    fn due(&self, now_ms: u64) -> Vec<CallId> {
        let is_due = |call: &OpenCall| call.deadline_ms().is_some_and(|at| at <= now_ms);
        self.open.iter().filter(|(_, call)| is_due(call)).map(|(id, _)| id.clone()).collect()
    }

    /// Takes a call out for good; what it had cost by then, if it was open.
    pub(super) fn end(&mut self, call_id: &CallId, stone: Tombstone) -> Option<Micro> {
        let call = self.open.remove(call_id)?;
        self.tombstones.put(call_id.clone(), stone);
        Some(call.cost_micro)
    }

    /// Compares what a message of a call returned; true when something is wrong for the first
    /// time. A peer that knows nothing of traces leaves `traceparent` out, which is no fault.
    pub(super) fn echo_breaks(&mut self, call_id: &CallId, echo: &Echo) -> bool {
        let Some(call) = self.open.get_mut(call_id) else {
            return false;
        };
        let sent = &call.echo;
        let same = sent.request_id == echo.request_id
            && sent.correlation_id == echo.correlation_id
            && sent.causation_id == echo.causation_id
            && (echo.traceparent.is_none() || sent.traceparent == echo.traceparent);
        let first = !same && !call.echo_broken;
        call.echo_broken |= !same;
        first
    }
}

impl OpenCall {
    fn deadline_ms(&self) -> Option<u64> {
        let timeout = match self.timeout {
            Timeout::At(at) => Some(at),
            Timeout::Never | Timeout::Paused { .. } => None,
        };
        [timeout, self.cancel_deadline_ms].into_iter().flatten().min()
    }

    pub(super) fn questions(&self) -> usize {
        self.questions
    }

    /// A question was asked: the running time stands still.
    pub(super) fn wait(&mut self, now: Moment) {
        self.questions += 1;
        self.pause(now);
    }

    /// A step was asked for: the running time stands still.
    pub(super) fn wait_for_step(&mut self, now: Moment) {
        self.steps += 1;
        self.pause(now);
    }

    fn pause(&mut self, now: Moment) {
        if let Timeout::At(at) = self.timeout {
            self.timeout = Timeout::Paused { left_ms: at.saturating_sub(now.ms) };
        }
    }

    /// A question was answered: after the last one the running time goes on.
    pub(super) fn resume(&mut self, now: Moment) {
        self.questions = self.questions.saturating_sub(1);
        self.unpause(now);
    }

    /// A step is over: after the last one the running time goes on.
    pub(super) fn resume_step(&mut self, now: Moment) {
        self.steps = self.steps.saturating_sub(1);
        self.unpause(now);
    }

    fn unpause(&mut self, now: Moment) {
        let waits_for = self.questions + self.steps;
        if let (0, Timeout::Paused { left_ms }) = (waits_for, self.timeout) {
            self.timeout = Timeout::At(now.ms.saturating_add(left_ms));
        }
    }
}

impl CoreSession {
    /// Sends a call. A fault means that nothing was sent, and may be given to the caller.
    pub fn call(&mut self, now: Moment, request: CallRequest) -> Result<(), Fault> {
        self.check_call(&request).map_err(|fault| fault.executed(Executed::No))?;
        let echo = Echo {
            request_id: Some(request.request_id),
            correlation_id: request.correlation_id,
            causation_id: request.causation_id,
            traceparent: request.traceparent,
        };
        let message = ToolCall {
            call_id: request.call_id.clone(),
            tool_id: request.tool_id,
            input: request.input.into(),
            timeout_ms: request.timeout_ms,
            idempotency_key: request.idempotency_key,
            caller: request.caller,
            context: request.context,
        };
        let draft = Draft::new(message).echo(&echo).actor(request.actor);
        let message_id = self.send(now, draft).map_err(|_| {
            Fault::new(Code::ToolInputTooLarge, "The input is larger than a frame may be.")
                .executed(Executed::No)
        })?;
        let call = OpenCall {
            message_id,
            echo,
            echo_broken: false,
            timeout: request
                .timeout_ms
                .map_or(Timeout::Never, |ms| Timeout::At(now.ms.saturating_add(ms))),
            cancel_deadline_ms: None,
            questions: 0,
            steps: 0,
            stream: StreamState::default(),
            output_bytes_max: request.output_bytes_max.unwrap_or(self.limits().output_bytes_max),
            stream_bytes_max: request
                .stream_bytes_max
                .map_or(self.limits().stream_bytes_max, |own| {
                    own.min(self.limits().stream_bytes_max)
                }),
            cost_micro: 0,
        };
        self.calls.open.insert(request.call_id, call);
        Ok(())
    }

    fn check_call(&self, request: &CallRequest) -> Result<(), Fault> {
        let refuse = |code, message: &str| Err(Fault::new(code, message));
        if !self.is_live() {
            return refuse(Code::ToolUnavailable, "The agent is not connected.");
        }
        if self.drain.is_some() {
            return refuse(Code::ToolUnavailable, "The agent is about to end.");
        }
        if self.health() == Health::Unhealthy {
            return refuse(Code::ToolAgentUnhealthy, "The agent is not healthy now.");
        }
        if !self.tools.has(&request.tool_id) {
            return refuse(Code::ToolNotFound, "The agent does not offer this tool.");
        }
        let used = self.calls.is_open(&request.call_id)
            || self.calls.tombstones.get(&request.call_id).is_some();
        if used {
            return refuse(Code::ToolDuplicateCall, "This call id was used before.");
        }
        let full = self.outbox.queued_bytes() > self.limits().outbox_bytes_max;
        if full || self.calls.len() >= self.limits().calls_open_max {
            return refuse(Code::ToolBusy, "The agent has no room for another call.");
        }
        Ok(())
    }

    /// Asks the agent to stop a call. Asking again changes nothing. If the call does not end by
    /// itself until the deadline, the session ends it.
    pub fn cancel(
        &mut self,
        now: Moment,
        call_id: &CallId,
        cancel: CancelCall,
    ) -> Result<(), SendError> {
        let call = self.calls.open.get_mut(call_id).ok_or(SendError::NotOpen)?;
        if call.cancel_deadline_ms.is_some() {
            return Ok(());
        }
        let grace_ms = cancel.deadline_ms.unwrap_or(self.config.limits.cancel_grace_ms);
        call.cancel_deadline_ms = Some(now.ms.saturating_add(grace_ms));
        call.timeout = Timeout::Never;
        let draft = Draft::new(ToolCancel {
            call_id: call_id.clone(),
            reason: cancel.reason,
            deadline_ms: Some(grace_ms),
        })
        .echo(&call.echo);
        self.send(now, draft).map(drop)
    }

    pub(super) fn check_calls(&mut self, now: Moment) {
        for call_id in self.calls.due(now.ms) {
            let canceled = self
                .calls
                .open
                .get(&call_id)
                .is_some_and(|call| call.cancel_deadline_ms.is_some_and(|at| at <= now.ms));
            if canceled {
                let fault = Fault::new(Code::ToolCanceled, "The call was canceled.")
                    .executed(Executed::Maybe)
                    .with("agent_unresponsive", true);
                let mut end = CallEnd::from(CallOutcome::Canceled(fault));
                end.unresponsive = true;
                self.end_call(now, &call_id, Tombstone::GivenUp, end);
            } else {
                let fault = Fault::new(Code::ToolTimeout, "The tool took longer than it may.")
                    .executed(Executed::Maybe);
                self.give_up(now, &call_id, "timeout", fault);
            }
        }
    }

    /// Ends a call that the agent still works on: it is told to stop, and what it still sends
    /// falls on a tombstone.
    pub(super) fn give_up(&mut self, now: Moment, call_id: &CallId, reason: &str, fault: Fault) {
        let cancel = CancelCall { reason: Some(reason.to_owned()), deadline_ms: None };
        // The cancel is a courtesy: whether or not it can be sent, the call ends here.
        let _ = self.cancel(now, call_id, cancel);
        self.end_call(now, call_id, Tombstone::GivenUp, CallOutcome::Failed(fault).into());
    }

    /// An agent could not take a call, so there will be no result.
    pub(super) fn call_refused(&mut self, now: Moment, call_id: &CallId, fault: Fault) {
        let fault = fault.executed(Executed::No);
        self.end_call(now, call_id, Tombstone::Answered, CallOutcome::Failed(fault).into());
    }

    /// Ends a call, once.
    pub(super) fn end_call(
        &mut self,
        now: Moment,
        call_id: &CallId,
        stone: Tombstone,
        mut end: CallEnd,
    ) {
        let Some(cost_micro) = self.calls.end(call_id, stone) else { return };
        // What was spent is spent, however the call ends.
        end.cost_micro = end.cost_micro.max(cost_micro);
        self.withdraw_questions(now, call_id);
        self.tell(CoreEvent::CallEnded { call_id: call_id.clone(), end: Box::new(end) });
        self.check_drain(now);
    }

    /// The agent said what a call has cost so far. Less than before is no news; a call that was
    /// given up may still have cost something.
    pub(super) fn on_cost(&mut self, call_id: &CallId, so_far_micro: Micro) {
        let known = match self.calls.open.get_mut(call_id) {
            Some(call) if so_far_micro > call.cost_micro => {
                call.cost_micro = so_far_micro;
                true
            }
            Some(_) => false,
            None => self.calls.tombstones.get(call_id) == Some(Tombstone::GivenUp),
        };
        if known {
            self.tell(CoreEvent::Cost { call_id: call_id.clone(), so_far_micro });
        }
    }

    pub(super) fn on_cancel_ack(&mut self, now: Moment, echo: &Echo, ack: CancelAck) {
        let CancelAck { call_id, accepted, .. } = ack;
        if self.calls.is_open(&call_id) {
            if self.calls.echo_breaks(&call_id, echo) {
                self.violation(now, Breach::Echo, Some(call_id.clone()));
            }
            self.tell(CoreEvent::CancelAcknowledged { call_id, accepted });
        } else if self.calls.tombstones.get(&call_id).is_none() {
            self.violation(now, Breach::UnknownCall, None);
        }
    }
}
