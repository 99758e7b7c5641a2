//! An addition: the steps of durable code. What a run's code asks for goes to whoever watches the
//! run, who does or finds it and answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{Object, StepName};

use super::value::{failure, object};
use super::{Control, Failure};

/// Server to client, an addition: do this step of the run's code, or say what it gave. It has no
/// number: a server says it to each connection for as long as it has no answer.
///
/// With a tool it is a call. Without one it is local code: with a value, that is to be kept if none
/// is; without, it is asked whether one is kept.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepMessage {
    /// Which run.
    #[serde(default)]
    pub control: Control,
    /// Which step.
    pub step: StepName,
    /// The tool that is to be called.
    pub tool: Option<String>,
    /// What the tool is given.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub inputs: Object,
    /// What local code gave; null is a value, too.
    #[serde(default, deserialize_with = "crate::present::present")]
    pub value: Option<Value>,
}

/// Client to server, an addition: what became of a step. It has the outputs of a call, the value
/// that is kept, or an error; nothing of it means that no value is kept.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteppedMessage {
    /// Which run.
    #[serde(default)]
    pub control: Control,
    /// Which step.
    pub step: StepName,
    /// What the tool gave.
    pub outputs: Option<Object>,
    /// What is kept; null is a value, too.
    #[serde(default, deserialize_with = "crate::present::present")]
    pub value: Option<Value>,
    /// Why there is none of it.
    pub error: Option<Failure>,
}

/// Why a message about a step cannot be read.
const UNFIT: &str = "the step is not as it must be";

/// Reads what a server asks for.
pub(super) fn step(control: Control, mut frame: Object) -> Result<StepMessage, &'static str> {
    let step = named(&mut frame)?;
    let tool = match frame.remove("tool") {
        None | Some(Value::Null) => None,
        Some(Value::String(tool)) => Some(tool),
        Some(_) => return Err(UNFIT),
    };
    let inputs = object(frame.remove("inputs")).ok_or(UNFIT)?;
    Ok(StepMessage { control, step, tool, inputs, value: frame.remove("value") })
}

/// Reads what a client answers.
pub(super) fn stepped(control: Control, mut frame: Object) -> Result<SteppedMessage, &'static str> {
    let step = named(&mut frame)?;
    let outputs = match frame.remove("outputs") {
        None | Some(Value::Null) => None,
        Some(Value::Object(outputs)) => Some(outputs),
        Some(_) => return Err(UNFIT),
    };
    let error = failure(frame.get("error"));
    Ok(SteppedMessage { control, step, outputs, value: frame.remove("value"), error })
}

fn named(frame: &mut Object) -> Result<StepName, &'static str> {
    serde_json::from_value(frame.remove("step").unwrap_or_default()).map_err(|_| UNFIT)
}
