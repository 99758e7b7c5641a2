//! Values on their way between expressions and steps, and what is wrong with them.

use serde_json::{Value, json};
use wharf_vocab::limits::{
    FLOW_DEADLINE_MAX_MS, FLOW_ITEMS_MAX, FLOW_RUN_STEPS_MAX, FLOW_STATE_BYTES_MAX,
    FLOW_VARS_BYTES_MAX,
};
use wharf_vocab::{Code, Fault, Object, Timestamp, quantity, rfc3339_ms};

use crate::flow::{Sleep, StepId};
use crate::json_weight;

/// The fault of an expression that gave something of the wrong kind.
pub(super) fn not(what: &str, wanted: &str) -> Fault {
    Fault::new(Code::FlowExpression, format!("{what} must be {wanted}."))
}

/// A step and its frame do not fit together, which never happens.
pub(super) fn misfit(id: &StepId) -> Fault {
    Fault::new(Code::CoreInternal, format!("The step {id} is not where it should be."))
}

pub(super) fn too_many_steps() -> Fault {
    let message = format!("A run of a flow does {FLOW_RUN_STEPS_MAX} steps at most.");
    Fault::new(Code::FlowLimit, message).with("limit", "steps")
}

pub(super) fn too_large() -> Fault {
    let message = format!(
        "What a run of a flow keeps of its steps may take {FLOW_STATE_BYTES_MAX} bytes together."
    );
    Fault::new(Code::FlowLimit, message).with("limit", "values")
}

pub(super) fn too_many_rounds(id: &StepId, max: u32) -> Fault {
    let message = format!("The condition of {id} still holds after {max} rounds.");
    Fault::new(Code::FlowLimit, message).with("limit", "loop.max")
}

/// The items of a list.
pub(super) fn items(id: &StepId, given: Value) -> Result<Vec<Value>, Fault> {
    let Value::Array(items) = given else { return Err(not("What each goes over", "a list")) };
    if items.len() > FLOW_ITEMS_MAX {
        let message = format!("{id} may have {FLOW_ITEMS_MAX} items at most.");
        return Err(Fault::new(Code::FlowLimit, message).with("limit", "each.items"));
    }
    Ok(items)
}

/// Whether variables are not too large.
pub(super) fn check_vars(vars: &Object) -> Result<(), Fault> {
    if json_weight(vars) > FLOW_VARS_BYTES_MAX {
        let message = format!("Variables may take {FLOW_VARS_BYTES_MAX} bytes together.");
        return Err(Fault::new(Code::FlowLimit, message).with("limit", "vars"));
    }
    Ok(())
}

/// When a step that sleeps wakes.
pub(super) fn wakes_at(
    id: &StepId,
    sleep: &Sleep,
    given: &Value,
    at: Timestamp,
) -> Result<Timestamp, Fault> {
    let until = match (sleep, given) {
        (Sleep::For(_), Value::Number(ms)) => ms.as_u64().map(|ms| at.plus_ms(ms)),
        (Sleep::For(_), Value::String(text)) => {
            quantity::duration_ms(text).map(|ms| at.plus_ms(ms))
        }
        (Sleep::Until(_), Value::Number(ms)) => ms.as_u64().map(Timestamp),
        (Sleep::Until(_), Value::String(text)) => {
            rfc3339_ms(text).map(|ms| Timestamp(u64::try_from(ms).unwrap_or(0)))
        }
        _ => None,
    };
    let wanted = match sleep {
        Sleep::For(_) => "a length of time, such as 1h30m",
        Sleep::Until(_) => "a moment, as RFC 3339 writes it",
    };
    let until = until.ok_or_else(|| not(&format!("What {id} sleeps for"), wanted))?;
    if until.ms_since(at) > FLOW_DEADLINE_MAX_MS {
        return Err(not(&format!("What {id} sleeps for"), "a year at most"));
    }
    Ok(until)
}

/// A value as a text: a text as it is, everything else as JSON.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// An error as expressions see it.
pub(super) fn of_fault(fault: &Fault) -> Value {
    json!({
        "code": fault.code.as_str(),
        "message": fault.message,
        "details": Value::Object(fault.details.clone()),
    })
}

/// What a flow ends with when something could not be undone.
pub(super) fn not_undone(path: &str, fault: &Fault) -> Fault {
    let message = format!("What {path} did could not be undone: {}", fault.message);
    Fault::new(Code::FlowCompensationFailed, message)
        .with("step", path)
        .with("code", fault.code.as_str())
}
