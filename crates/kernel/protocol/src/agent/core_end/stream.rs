//! Streamed output of calls: order, gaps and budgets.

use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::agent_v1::{CallId, Echo, ToolStream};

use super::{CoreEvent, CoreSession};
use crate::Moment;
use crate::agent::tombstones::Tombstone;
use crate::agent::violation::Breach;

/// How far a call's stream has come.
#[derive(Default)]
pub(super) struct StreamState {
    last_seq: u64,
    done: bool,
    bytes: u64,
    chunks: u64,
}

impl CoreSession {
    pub(super) fn on_stream(&mut self, now: Moment, echo: &Echo, stream: ToolStream) {
        if let Some(cost_micro) = stream.cost_micro {
            self.on_cost(&stream.call_id, cost_micro);
        }
        let cost_only = stream.is_cost_only();
        let ToolStream { call_id, seq, chunk, done, .. } = stream;
        if !self.calls.is_open(&call_id) {
            self.on_stray_stream(now, &call_id);
            return;
        }
        if self.calls.echo_breaks(&call_id, echo) {
            self.violation(now, Breach::Echo, Some(call_id.clone()));
        }
        let chunks_max = self.limits().stream_chunks_max;
        let Some(call) = self.calls.get_mut(&call_id) else {
            return;
        };
        let bytes_max = call.stream_bytes_max;
        let state = &mut call.stream;
        if state.done {
            self.violation(now, Breach::StreamAfterDone, Some(call_id));
            return;
        }
        if seq <= state.last_seq {
            self.violation(now, Breach::StreamOrder, Some(call_id));
            return;
        }
        let next = state.last_seq + 1;
        let gap = (seq > next).then(|| (next, seq - 1));
        state.last_seq = seq;
        state.done = done;
        // A cost is no output.
        state.chunks += u64::from(!cost_only);
        state.bytes = state.bytes.saturating_add(chunk.output_bytes());
        if state.bytes > bytes_max || state.chunks > chunks_max {
            self.on_budget_spent(now, &call_id);
            return;
        }
        if !cost_only {
            self.tell(CoreEvent::Chunk { call_id: call_id.clone(), seq, gap, chunk });
        }
        if gap.is_some() {
            self.violation(now, Breach::StreamGap, Some(call_id));
        }
    }

    fn on_stray_stream(&mut self, now: Moment, call_id: &CallId) {
        match self.calls.tombstones.get(call_id) {
            // The agent may not know yet that nobody waits for it any more.
            Some(Tombstone::GivenUp) => {}
            Some(Tombstone::Answered) => {
                self.violation(now, Breach::StreamAfterResult, Some(call_id.clone()));
            }
            None => self.violation(now, Breach::UnknownCall, None),
        }
    }

    fn on_budget_spent(&mut self, now: Moment, call_id: &CallId) {
        let fault = Fault::new(Code::ToolOutputTooLarge, "The tool streamed more than it may.")
            .executed(Executed::Maybe);
        self.give_up(now, call_id, "output_too_large", fault);
    }
}
