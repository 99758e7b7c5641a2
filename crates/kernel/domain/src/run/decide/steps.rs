//! Durable code asks for steps, keeps what local code gave, and may fail.

use serde_json::Value;
use wharf_vocab::limits::{DURABLE_FAILURES_MAX, DURABLE_STEPS_MAX, DURABLE_VALUES_BYTES_MAX};
use wharf_vocab::{
    AttemptId, Code, Digest, Executed, Fault, FaultCode, RunStatus, StepName, ToolId,
};

use super::Draft;
use crate::run::steps::{
    CallState, LocalKept, StepAnswered, StepAsked, StepCall, StepEntry, StepInput, StepLog,
    StepMark,
};
use crate::run::{Run, RunEntry};
use crate::value_weight;

/// Errors that say nothing of what the code wanted to say, although they are not worth trying
/// again where nobody finds their steps again.
const ACCIDENTS: [Code; 5] = [
    Code::ToolInternal,
    Code::ToolFailed,
    Code::ToolUnspecified,
    Code::ToolProtocolViolation,
    Code::CoreInternal,
];

pub(super) fn happened(draft: &mut Draft<'_, '_>, input: &StepInput) -> Result<(), Fault> {
    match input {
        StepInput::Ask { attempt_id, step, tool, arguments } => {
            may_ask(&draft.run, attempt_id)?;
            ask(draft, step, tool, arguments)
        }
        StepInput::Keep { attempt_id, step, value } => {
            may_ask(&draft.run, attempt_id)?;
            keep(draft, step, value.as_ref())
        }
        StepInput::Refused { step, fault } => {
            answered(draft, step, RunStatus::Refused, Some(fault));
            Ok(())
        }
        StepInput::Ended { step, child, status } => {
            if open_call(&draft.run, step).is_some_and(|call| call.child == *child) {
                answered(draft, step, *status, None);
            }
            Ok(())
        }
    }
}

fn log(run: &Run) -> Option<&StepLog> {
    run.steps.as_deref()
}

fn open_call<'a>(run: &'a Run, step: &StepName) -> Option<&'a StepCall> {
    match log(run)?.get(step)? {
        StepMark::Call(call) if call.state == CallState::Open => Some(call),
        _ => None,
    }
}

/// Only the attempt under way may ask, and only one of a tool that was declared durable.
fn may_ask(run: &Run, attempt_id: &AttemptId) -> Result<(), Fault> {
    if log(run).is_none() {
        let message = "Only a tool that is declared durable has steps.";
        return Err(Fault::new(Code::PermissionDenied, message));
    }
    match &run.active {
        Some(active) if active.id == *attempt_id => Ok(()),
        _ => {
            let message = "The call that asks for a step is over.";
            Err(Fault::new(Code::PermissionDenied, message))
        }
    }
}

fn ask(
    draft: &mut Draft<'_, '_>,
    step: &StepName,
    tool: &ToolId,
    arguments: &Digest,
) -> Result<(), Fault> {
    let known = log(&draft.run).and_then(|log| log.get(step));
    let same = |mark: &StepMark| matches!(mark, StepMark::Call(call) if call.tool == *tool && call.arguments == *arguments);
    match known {
        Some(mark) if same(mark) => Ok(()),
        before => {
            let child = draft.run.step_run(step);
            let (tool, arguments) = (tool.clone(), arguments.clone());
            if let Some(before) = before.cloned() {
                let state = CallState::Open;
                let now = StepMark::Call(StepCall { child, tool, arguments, state });
                diverged(draft, step, &before, &now);
                return Ok(());
            }
            has_room(&draft.run)?;
            let asked = StepAsked { step: step.clone(), child, tool, arguments };
            push(draft, StepEntry::Asked(asked));
            Ok(())
        }
    }
}

fn keep(draft: &mut Draft<'_, '_>, step: &StepName, value: Option<&Value>) -> Result<(), Fault> {
    let known = log(&draft.run).and_then(|log| log.get(step));
    match (known, value) {
        // What was kept first counts, also if the code ran twice.
        (Some(StepMark::Local(_)), _) | (None, None) => Ok(()),
        (Some(before), _) => {
            let before = before.clone();
            diverged(draft, step, &before, &StepMark::Local(Value::Null));
            Ok(())
        }
        (None, Some(value)) => {
            has_room(&draft.run)?;
            let kept = log(&draft.run).map_or(0, StepLog::values_bytes);
            if kept + value_weight(value) > DURABLE_VALUES_BYTES_MAX {
                let message = format!(
                    "What a run keeps of its local code takes {DURABLE_VALUES_BYTES_MAX} bytes at \
                     most; put large values into files."
                );
                return Err(limit(message));
            }
            let kept = LocalKept { step: step.clone(), value: value.clone() };
            push(draft, StepEntry::Kept(kept));
            Ok(())
        }
    }
}

fn has_room(run: &Run) -> Result<(), Fault> {
    if log(run).is_some_and(|log| log.len() >= DURABLE_STEPS_MAX) {
        return Err(limit(format!("One run may have {DURABLE_STEPS_MAX} steps, and it has.")));
    }
    Ok(())
}

fn limit(message: String) -> Fault {
    Fault { retryable: false, ..Fault::new(Code::ToolLimit, message) }
}

fn answered(
    draft: &mut Draft<'_, '_>,
    step: &StepName,
    status: RunStatus,
    refused: Option<&Fault>,
) {
    if open_call(&draft.run, step).is_some() {
        let (step, refused) = (step.clone(), refused.cloned());
        push(draft, StepEntry::Answered(StepAnswered { step, status, refused }));
    }
}

fn push(draft: &mut Draft<'_, '_>, entry: StepEntry) {
    draft.push(RunEntry::Step(Box::new(entry)));
}

/// The code is not the same as before, or does not always do the same. Nothing more is done: what
/// it did before fits no step that it would do now.
fn diverged(draft: &mut Draft<'_, '_>, step: &StepName, before: &StepMark, now: &StepMark) {
    draft.cancel_active("its steps are not those of the attempt before");
    let message = format!("The step {step} was {before} before and is {now} now.");
    let fault = Fault::new(Code::StepDiverged, message)
        .with("step", step.name())
        .with("n", step.n())
        .with("before", before.to_string())
        .with("now", now.to_string());
    draft.fail(fault, Executed::Maybe);
}

/// How many attempts of a durable run have failed in a row, with the one that fails now.
pub(super) fn failures(run: &Run) -> Option<u32> {
    log(run).map(|log| log.failures().saturating_add(1))
}

/// Whether an attempt of durable code is repeated. An accident always is, until too many follow
/// each other with nothing done; an error that its author raised and did not call worth another
/// try is an answer.
pub(super) fn may_go_on(error: &Fault, failures: u32) -> bool {
    let accident = match &error.code {
        FaultCode::Known(code) => ACCIDENTS.contains(code),
        FaultCode::Provider(_) => false,
    };
    (error.retryable || accident) && failures < DURABLE_FAILURES_MAX
}
