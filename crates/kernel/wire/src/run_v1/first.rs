//! The first frame of a connection, with the distinctions that decide how it is answered.

use serde_json::Value;
use wharf_vocab::Object;

use super::limits::{FRAME_BYTES_MAX, RUN_ID_BYTES_MAX};
use super::value::{Refusal, read, run_id};
use super::{Mode, Request, RequestControl, ToolName, close, code};

/// A first frame that names a run.
#[derive(Debug, Clone, PartialEq)]
pub enum First {
    /// A request that can be executed.
    Request(Request),
    /// A request that cannot be executed. It is answered with a final response, and no handler
    /// sees it.
    Unfit(Unfit),
}

/// Why a request cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// The run it names.
    pub run_id: String,
    /// A code such as `ERR_INPUTS`.
    pub code: &'static str,
    /// One sentence.
    pub message: &'static str,
}

/// Reads the first frame of a connection, or says how the connection is closed. A frame over
/// `bytes_max` is not looked into.
///
/// A `run_id` that is a whole number counts as its digits. Missing or null inputs and outputs are empty. A mode or another field of `control` that is
/// there and wrong makes a request unfit; `null` in an optional field means that it is absent.
pub fn decode_first(text: &str, bytes_max: usize) -> Result<First, Refusal> {
    if text.len() > bytes_max {
        return Err(Refusal::new(close::TOO_LARGE, "the frame is too large"));
    }
    let mut frame = read(text)?;
    if frame.get("kind").and_then(Value::as_str) != Some("Request") {
        return Err(Refusal::new(close::PROTOCOL, "the first frame must be a Request"));
    }
    let Some(Value::Object(mut control)) = frame.remove("control") else {
        return Err(Refusal::new(close::POLICY, "control.run_id is missing"));
    };
    let run_id = match control.remove("run_id") {
        None | Some(Value::Null) => {
            return Err(Refusal::new(close::POLICY, "control.run_id is missing"));
        }
        Some(named) => {
            run_id(&named).ok_or(Refusal::new(close::POLICY, "control.run_id must be text"))?
        }
    };
    if run_id.is_empty() {
        return Err(Refusal::new(close::POLICY, "control.run_id is empty"));
    }
    if !is_id(&run_id) {
        return Err(Refusal::new(close::POLICY, "control.run_id is not an id"));
    }
    Ok(match request(run_id.clone(), &control, &mut frame) {
        Ok(request) => First::Request(request),
        Err(message) => First::Unfit(Unfit { run_id, code: code::INPUTS, message }),
    })
}

fn is_id(text: &str) -> bool {
    (1..=RUN_ID_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Reads a first frame of the usual size.
impl std::str::FromStr for First {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        decode_first(text, FRAME_BYTES_MAX)
    }
}

fn request(run_id: String, control: &Object, frame: &mut Object) -> Result<Request, &'static str> {
    let control = RequestControl {
        run_id,
        mode: match present(control, "mode") {
            None => Mode::default(),
            Some(Value::String(mode)) if mode == "mock" => Mode::Mock,
            Some(Value::String(mode)) if mode == "real" => Mode::Real,
            Some(_) => return Err("The mode must be `mock` or `real`."),
        },
        attempt: match present(control, "attempt") {
            None => 1,
            Some(value) => whole(value)
                .and_then(|attempt| u32::try_from(attempt).ok())
                .filter(|attempt| *attempt > 0)
                .ok_or("The attempt must be a whole number from 1.")?,
        },
        refs: match present(control, "refs") {
            None => None,
            Some(value) => Some(keys(value).ok_or("The refs must be a list of keys.")?),
        },
        world: match present(control, "world") {
            None => None,
            Some(Value::String(world)) if is_id(world) => Some(world.clone()),
            Some(_) => return Err("The world must be an id."),
        },
        after: match present(control, "after") {
            None => None,
            Some(value) => {
                Some(whole(value).ok_or("The number in `after` must be a whole number from 0.")?)
            }
        },
        deadline_ms: match present(control, "deadline_ms") {
            None => None,
            Some(value) => Some(whole(value).ok_or("The deadline must be whole milliseconds.")?),
        },
        required: match present(control, "required") {
            None => Vec::new(),
            Some(value) => keys(value).ok_or("The required outputs must be a list of keys.")?,
        },
        tool: match present(control, "tool") {
            None => None,
            Some(value) => Some(tool_name(value).ok_or("The tool must be named by its ref.")?),
        },
    };
    let inputs = object(frame.remove("inputs")).ok_or("The inputs must be an object.")?;
    let outputs = object(frame.remove("outputs")).ok_or("The outputs must be an object.")?;
    Ok(Request { control, inputs, outputs })
}

fn present<'a>(control: &'a Object, name: &str) -> Option<&'a Value> {
    control.get(name).filter(|value| !value.is_null())
}

/// A whole number from 0; `3.0` is one too, since some languages write it so.
fn whole(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|f| f.fract() == 0.0 && (0.0..=9e15).contains(f));
    value.as_u64().or_else(|| float().map(|f| f as u64))
}

fn keys(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|key| key.as_str().map(str::to_owned)).collect()
}

/// A tool as either end names it.
pub(super) fn tool_name(value: &Value) -> Option<ToolName> {
    let text = |name: &str| match value.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) if is_id(text) => Some(Some(text.clone())),
        Some(_) => None,
    };
    Some(ToolName { reference: text("ref")??, digest: text("digest")? })
}

fn object(value: Option<Value>) -> Option<Object> {
    match value {
        None | Some(Value::Null) => Some(Object::new()),
        Some(Value::Object(object)) => Some(object),
        Some(_) => None,
    }
}
