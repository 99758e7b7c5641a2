//! The end of a call, as the agent reports it.

use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault, Micro, Object};
use wharf_wire::agent_v1::{CallId, CallStatus, Chunk, Echo, ErrorObject, ToolResult};

use super::{CoreEvent, CoreSession};
use crate::Moment;
use crate::agent::outcome::{CallEnd, CallOutcome, fault_of};
use crate::agent::tombstones::Tombstone;
use crate::agent::violation::Breach;

impl CoreSession {
    pub(super) fn on_result(
        &mut self,
        now: Moment,
        echo: &Echo,
        top_level: Option<ErrorObject>,
        mut result: ToolResult,
    ) {
        let call_id = result.call_id.clone();
        let cost = cost_of(result.metrics.as_mut());
        let Some(output_bytes_max) = self.calls.get_mut(&call_id).map(|call| call.output_bytes_max)
        else {
            self.on_stray_result(now, call_id, cost.unwrap_or(0));
            return;
        };
        let mut breaches = Vec::new();
        if self.calls.echo_breaks(&call_id, echo) {
            breaches.push(Breach::Echo);
        }
        if cost.is_err() {
            breaches.push(Breach::Cost);
        }
        let error = result.error.or(top_level);
        if result.status == CallStatus::Succeeded && error.is_some() {
            breaches.push(Breach::Contradiction);
        }
        let end = CallEnd {
            outcome: outcome(result.status, result.output, error.as_ref(), output_bytes_max),
            cost_micro: cost.unwrap_or(0),
            started_at: result.started_at,
            finished_at: result.finished_at,
            metrics: result.metrics.unwrap_or_default(),
            unresponsive: false,
        };
        self.end_call(now, &call_id, Tombstone::Answered, end);
        for breach in breaches {
            self.violation(now, breach, Some(call_id.clone()));
        }
    }

    /// A result for a call that is not open.
    fn on_stray_result(&mut self, now: Moment, call_id: CallId, cost_micro: Micro) {
        match self.calls.tombstones.get(&call_id) {
            Some(Tombstone::GivenUp) => {
                self.calls.tombstones.put(call_id.clone(), Tombstone::Answered);
                self.tell(CoreEvent::LateResult { call_id, cost_micro });
            }
            Some(Tombstone::Answered) => self.violation(now, Breach::SecondResult, Some(call_id)),
            None => self.violation(now, Breach::UnknownCall, None),
        }
    }

    /// A result that names its call and cannot be read otherwise.
    pub(super) fn result_unreadable(&mut self, now: Moment, call_id: &CallId) {
        let fault = Fault::new(
            Code::ToolProtocolViolation,
            "The agent's answer does not follow the protocol.",
        )
        .executed(Executed::Maybe);
        self.end_call(now, call_id, Tombstone::Answered, CallOutcome::Failed(fault).into());
    }
}

fn outcome(
    status: CallStatus,
    output: Option<Value>,
    error: Option<&ErrorObject>,
    output_bytes_max: u64,
) -> CallOutcome {
    let fault = error.map(fault_of);
    match (status, fault) {
        (CallStatus::Succeeded | CallStatus::Failed, Some(fault)) => CallOutcome::Failed(fault),
        (CallStatus::Succeeded, None) => succeeded(output, output_bytes_max),
        (CallStatus::Failed, None) => CallOutcome::Failed(Fault::new(
            Code::ToolUnspecified,
            "The tool failed and did not say why.",
        )),
        (CallStatus::Canceled, fault) => CallOutcome::Canceled(
            fault.unwrap_or_else(|| Fault::new(Code::ToolCanceled, "The call was canceled.")),
        ),
    }
}

fn succeeded(output: Option<Value>, output_bytes_max: u64) -> CallOutcome {
    let fail = |code, message: String| {
        CallOutcome::Failed(Fault::new(code, message).executed(Executed::Yes))
    };
    let json = match output {
        None => return CallOutcome::Succeeded(Object::new()),
        Some(Value::Object(json)) => json,
        Some(_) => {
            let message = "The tool's output is not a JSON object.".to_owned();
            return fail(Code::ToolInvalidOutput, message);
        }
    };
    let measured = Chunk::Partial { json };
    if measured.output_bytes() > output_bytes_max {
        let message = format!("The tool's output is larger than {output_bytes_max} bytes.");
        return fail(Code::ToolOutputTooLarge, message);
    }
    match measured {
        Chunk::Partial { json } => CallOutcome::Succeeded(json),
        Chunk::Text { .. } | Chunk::Status { .. } => CallOutcome::Succeeded(Object::new()),
    }
}

/// Takes the cost out of the figures. Anything but a whole number of micro-dollars is an error.
fn cost_of(metrics: Option<&mut Object>) -> Result<Micro, ()> {
    match metrics.and_then(|metrics| metrics.remove("cost_micro")) {
        None => Ok(0),
        Some(cost) => cost.as_u64().ok_or(()),
    }
}
