//! Calls the agent works on: taking, streaming, canceling, finishing.
//!
//! Every call that arrives gets exactly one result, by its handler or by the session itself.

use std::collections::BTreeMap;

use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault, Micro, Object};
use wharf_wire::agent_v1::{
    Actor, CallId, CallStatus, CancelAck, Chunk, Echo, Header, Rfc3339, ToolCall, ToolCancel,
    ToolResult, ToolStream,
};

use super::{AgentEvent, AgentSession, CallReceived, ReportResult};
use crate::Moment;
use crate::agent::outbox::{Draft, Origin, SendError};
use crate::agent::outcome::{CallOutcome, CallReport, error_of};
use crate::agent::tombstones::{Tombstone, Tombstones};

/// The calls of a session, open and finished.
pub(super) struct Calls {
    open: BTreeMap<CallId, OpenCall>,
    finished: Tombstones,
}

struct OpenCall {
    origin: Origin,
    taken: Moment,
    deadline_ms: Option<u64>,
    canceled: bool,
    last_seq: u64,
    streamed_bytes: u64,
    streamed_chunks: u64,
    stream_done: bool,
    stream_cut: bool,
    /// What the call has cost so far.
    cost_micro: Option<Micro>,
    /// Whether the core does not know that yet.
    cost_untold: bool,
}

impl Calls {
    pub(super) fn new(finished_max: usize) -> Self {
        Self { open: BTreeMap::new(), finished: Tombstones::new(finished_max) }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &CallId> {
        self.open.keys()
    }

    pub(super) fn echo(&self, call_id: &CallId) -> Option<&Echo> {
        self.open.get(call_id).map(|call| &call.origin.echo)
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.open.values().filter_map(|call| call.deadline_ms).min()
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }
}

impl AgentSession {
    /// Sends a piece of a call's output; returns its place.
    ///
    /// When the call has streamed as much as it may, a last chunk says that the output was cut,
    /// and this and every further piece is refused.
    pub fn stream(
        &mut self,
        now: Moment,
        call_id: &CallId,
        chunk: Chunk,
        done: bool,
    ) -> Result<u64, SendError> {
        let call = self.calls.open.get_mut(call_id).ok_or(SendError::NotOpen)?;
        if call.stream_cut {
            return Err(SendError::BudgetSpent);
        }
        if call.stream_done {
            return Err(SendError::StreamDone);
        }
        if self.outbox.queued_bytes() > self.limits.outbox_bytes_max {
            return Err(SendError::Full);
        }
        let bytes = call.streamed_bytes.saturating_add(chunk.output_bytes());
        let seq = call.last_seq + 1;
        let spent = bytes > self.limits.stream_bytes_max
            || call.streamed_chunks >= self.limits.stream_chunks_max;
        let (chunk, done) = if spent {
            let text = "The output was cut: it is longer than may be streamed.".to_owned();
            (Chunk::Status { text, fraction: None }, true)
        } else {
            (chunk, done)
        };
        let cost_micro = call.cost_micro.filter(|_| std::mem::take(&mut call.cost_untold));
        let stream = ToolStream { call_id: call_id.clone(), seq, chunk, done, cost_micro };
        self.outbox.send(now, Draft::new(stream).echo(&call.origin.echo))?;
        call.last_seq = seq;
        call.streamed_bytes = bytes;
        call.streamed_chunks += 1;
        call.stream_done = done;
        call.stream_cut = spent;
        if spent { Err(SendError::BudgetSpent) } else { Ok(seq) }
    }

    /// Tells the core what a call has cost so far. What cannot be told now goes with the next
    /// piece of output, or with the result.
    pub fn report_cost(
        &mut self,
        now: Moment,
        call_id: &CallId,
        so_far_micro: Micro,
    ) -> Result<(), SendError> {
        let call = self.calls.open.get_mut(call_id).ok_or(SendError::NotOpen)?;
        call.cost_micro = Some(so_far_micro);
        call.cost_untold = true;
        if call.stream_done || self.outbox.queued_bytes() > self.limits.outbox_bytes_max {
            return Ok(());
        }
        let stream = ToolStream {
            call_id: call_id.clone(),
            seq: call.last_seq + 1,
            chunk: Chunk::Status { text: String::new(), fraction: None },
            done: false,
            cost_micro: Some(so_far_micro),
        };
        self.outbox.send(now, Draft::new(stream).echo(&call.origin.echo))?;
        call.last_seq += 1;
        call.cost_untold = false;
        Ok(())
    }

    /// Ends a call, once, with the times at which it was taken and finished.
    pub fn finish(
        &mut self,
        now: Moment,
        call_id: &CallId,
        report: CallReport,
    ) -> Result<ReportResult, SendError> {
        if !self.is_live() {
            return Err(SendError::NotLive);
        }
        let call = self.calls.open.remove(call_id).ok_or(SendError::NotOpen)?;
        self.calls.finished.put(call_id.clone(), Tombstone::Answered);
        self.waiting.abandon(call_id);
        let started = call.taken.at;
        let mut result = result_of(call_id, report.outcome);
        result.started_at = Some(Rfc3339::from(started));
        result.finished_at = Some(Rfc3339::from(now.at.max(started)));
        let mut metrics = report.metrics;
        if let Some(cost_micro) = report.cost_micro.max(call.cost_micro) {
            metrics.insert("cost_micro".to_owned(), cost_micro.into());
        }
        metrics.insert("duration_ms".to_owned(), now.ms.saturating_sub(call.taken.ms).into());
        result.metrics = Some(metrics);
        let sent = self.send_result(now, &call.origin, result);
        self.check_drain(now);
        Ok(sent)
    }

    /// Sends a result, or that it is too large to be sent: a call is never left without one.
    fn send_result(&mut self, now: Moment, origin: &Origin, result: ToolResult) -> ReportResult {
        let call_id = result.call_id.clone();
        let cost = result.metrics.as_ref().and_then(|metrics| metrics.get("cost_micro").cloned());
        let draft = |result| Draft::new(result).answers(origin);
        if self.reply(now, draft(result)) {
            return ReportResult::Sent;
        }
        let fault = Fault::new(
            Code::ToolOutputTooLarge,
            "The output is larger than a frame may be; return a reference instead.",
        );
        let failed = CallOutcome::Failed(fault.executed(Executed::Yes));
        let mut result = result_of(&call_id, failed);
        result.metrics = cost.map(|cost| Object::from_iter([("cost_micro".to_owned(), cost)]));
        self.reply(now, draft(result));
        ReportResult::TooLarge
    }

    pub(super) fn on_call(
        &mut self,
        now: Moment,
        origin: Origin,
        actor: Option<Actor>,
        call: ToolCall,
    ) {
        let call_id = call.call_id.clone();
        let used =
            self.calls.open.contains_key(&call_id) || self.calls.finished.get(&call_id).is_some();
        if used {
            let Origin { id, echo } = origin;
            let header = Header { id: Some(id), echo, ..Header::default() };
            let message = "This call id was used before; the call was not executed again.";
            let fault = Fault::new(Code::ToolDuplicateCall, message);
            return self.answer_error(now, Some(&header), &fault);
        }
        let input = match self.check_call(call.input, &call.tool_id) {
            Ok(input) => input,
            Err(fault) => {
                self.calls.finished.put(call_id.clone(), Tombstone::Answered);
                let failed = CallOutcome::Failed(fault.executed(Executed::No));
                self.send_result(now, &origin, result_of(&call_id, failed));
                return;
            }
        };
        let own_ms = self.limits.call_ms_max;
        let allowed_ms = own_ms.map(|own| call.timeout_ms.map_or(own, |core| core.min(own)));
        let echo = origin.echo.clone();
        let open = OpenCall {
            origin,
            taken: now,
            deadline_ms: allowed_ms.map(|ms| now.ms.saturating_add(ms)),
            canceled: false,
            last_seq: 0,
            streamed_bytes: 0,
            streamed_chunks: 0,
            stream_done: false,
            stream_cut: false,
            cost_micro: None,
            cost_untold: false,
        };
        self.calls.open.insert(call_id.clone(), open);
        self.tell(AgentEvent::Call(Box::new(CallReceived {
            call_id,
            tool_id: call.tool_id,
            input,
            timeout_ms: call.timeout_ms,
            idempotency_key: call.idempotency_key,
            caller: call.caller,
            actor,
            context: call.context,
            echo,
        })));
    }

    /// What the session itself can say about a call.
    fn check_call(&self, input: Value, tool_id: &str) -> Result<Object, Fault> {
        if !self.tools.has(tool_id) {
            return Err(Fault::new(Code::ToolNotFound, "The agent does not offer this tool."));
        }
        if self.drain_until_ms.is_some() {
            return Err(Fault::new(Code::ToolUnavailable, "The agent is about to end."));
        }
        if self.calls.len() >= self.limits.calls_open_max {
            let message = "The agent has no room for another call.";
            return Err(Fault::new(Code::ToolBusy, message));
        }
        match input {
            Value::Object(input) => Ok(input),
            _ => Err(Fault::new(Code::ToolInvalidInput, "The input must be a JSON object.")),
        }
    }

    pub(super) fn on_cancel(&mut self, now: Moment, origin: &Origin, cancel: ToolCancel) {
        let ToolCancel { call_id, reason, deadline_ms } = cancel;
        let open = self.calls.open.get_mut(&call_id);
        let accepted = open.is_some();
        let first = open.is_some_and(|call| !std::mem::replace(&mut call.canceled, true));
        let ack = CancelAck { call_id: call_id.clone(), accepted, note: None };
        self.reply(now, Draft::new(ack).answers(origin));
        if first {
            self.tell(AgentEvent::Cancel { call_id, reason, deadline_ms });
        }
    }

    pub(super) fn check_calls(&mut self, now: Moment) {
        let due: Vec<CallId> = self
            .calls
            .open
            .iter()
            .filter(|(_, call)| call.deadline_ms.is_some_and(|at| at <= now.ms))
            .map(|(call_id, _)| call_id.clone())
            .collect();
        for call_id in due {
            let fault =
                Fault::new(Code::ToolTimeout, "The tool took longer than the agent allows.")
                    .executed(Executed::Maybe);
            if self.finish(now, &call_id, CallOutcome::Failed(fault).into()).is_ok() {
                self.tell(AgentEvent::TimedOut { call_id });
            }
        }
    }
}

fn result_of(call_id: &CallId, outcome: CallOutcome) -> ToolResult {
    let (status, output, error) = match outcome {
        CallOutcome::Succeeded(output) => (CallStatus::Succeeded, Some(output.into()), None),
        CallOutcome::Failed(fault) => (CallStatus::Failed, None, Some(error_of(&fault))),
        CallOutcome::Canceled(fault) => (CallStatus::Canceled, None, Some(error_of(&fault))),
    };
    ToolResult {
        call_id: call_id.clone(),
        status,
        output,
        error,
        started_at: None,
        finished_at: None,
        metrics: None,
    }
}
