//! What a client sends: the first frame, with the distinctions that decide how it is answered, and
//! what may follow it.

use serde_json::Value;
use wharf_vocab::Object;

use super::limits::RUN_ID_BYTES_MAX;
use super::step::stepped;
use super::value::{Refusal, object, read, run_id};
use super::{
    Cancel, Control, Mode, RequestControl, RunRequest, SteppedMessage, ToolName, close, code,
};

/// A first frame that names a run.
#[derive(Debug, Clone, PartialEq)]
pub enum FirstFrame {
    /// A request that can be executed.
    Request(Box<RunRequest>),
    /// A request that cannot be executed. It is answered with a final response, and no handler
    /// sees it.
    Unfit(UnfitRequest),
}

/// Why a request cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfitRequest {
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
pub fn decode_first(text: &str, bytes_max: usize) -> Result<FirstFrame, Refusal> {
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
        Ok(request) => FirstFrame::Request(Box::new(request)),
        Err(message) => FirstFrame::Unfit(UnfitRequest { run_id, code: code::INPUTS, message }),
    })
}

fn is_id(text: &str) -> bool {
    (1..=RUN_ID_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn request(
    run_id: String,
    control: &Object,
    frame: &mut Object,
) -> Result<RunRequest, &'static str> {
    let attempt = |value: &Value| whole(value)?.try_into().ok().filter(|attempt| *attempt > 0);
    let world = |value: &Value| value.as_str().filter(|world| is_id(world)).map(str::to_owned);
    let mode = |value: &Value| match value.as_str()? {
        "mock" => Some(Mode::Mock),
        "real" => Some(Mode::Real),
        _ => None,
    };
    let number = "The number in `after` must be a whole number from 0.";
    let required = "The required outputs must be a list of keys.";
    let control = RequestControl {
        run_id,
        mode: given(control, "mode", mode, "The mode must be `mock` or `real`.")?
            .unwrap_or_default(),
        attempt: given(control, "attempt", attempt, "The attempt must be a whole number from 1.")?
            .unwrap_or(1),
        refs: given(control, "refs", keys, "The refs must be a list of keys.")?,
        world: given(control, "world", world, "The world must be an id.")?,
        after: given(control, "after", whole, number)?,
        deadline_ms: given(
            control,
            "deadline_ms",
            whole,
            "The deadline must be whole milliseconds.",
        )?,
        required: given(control, "required", keys, required)?.unwrap_or_default(),
        tool: given(control, "tool", tool_name, "The tool must be named by its ref.")?,
        steps: given(control, "steps", Value::as_bool, "`steps` must be true or false.")?
            .unwrap_or_default(),
        // A trace that cannot be read is none, and nothing that a run fails for.
        traceparent: text(control, "traceparent"),
        tracestate: text(control, "tracestate"),
    };
    let inputs = object(frame.remove("inputs")).ok_or("The inputs must be an object.")?;
    let outputs = object(frame.remove("outputs")).ok_or("The outputs must be an object.")?;
    Ok(RunRequest { control, inputs, outputs })
}

fn text(control: &Object, name: &str) -> Option<String> {
    control.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// A field of `control`, if it is given; `wrong` if it cannot be read.
fn given<T>(
    control: &Object,
    name: &str,
    read: impl Fn(&Value) -> Option<T>,
    wrong: &'static str,
) -> Result<Option<T>, &'static str> {
    let value = control.get(name).filter(|value| !value.is_null());
    value.map(|value| read(value).ok_or(wrong)).transpose()
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

/// A frame behind the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaterFrame {
    /// Stop the run.
    Cancel(Cancel),
    /// What became of a step.
    Stepped(Box<SteppedMessage>),
    /// A kind that nobody here knows; it is ignored.
    Unknown,
}

/// Reads a frame behind the first, or says how the connection is closed.
pub fn decode_later(text: &str, bytes_max: usize) -> Result<LaterFrame, Refusal> {
    if text.len() > bytes_max {
        return Err(Refusal::new(close::TOO_LARGE, "the frame is too large"));
    }
    let frame = read(text)?;
    match frame.get("kind").and_then(Value::as_str) {
        Some("Request") => Err(Refusal::new(close::PROTOCOL, "one run per connection")),
        Some("Cancel") => Ok(LaterFrame::Cancel(Cancel { control: later_control(&frame)? })),
        Some("Stepped") => {
            let control = later_control(&frame)?;
            let stepped = stepped(control, frame);
            let stepped = stepped.map_err(|why| Refusal::new(close::PROTOCOL, why))?;
            Ok(LaterFrame::Stepped(Box::new(stepped)))
        }
        Some(_) => Ok(LaterFrame::Unknown),
        None => Err(Refusal::new(close::PROTOCOL, "no kind")),
    }
}

/// Which run a frame behind the first names, if it names one.
fn later_control(frame: &Object) -> Result<Control, Refusal> {
    let run_id = match frame.get("control").and_then(|control| control.get("run_id")) {
        None | Some(Value::Null) => None,
        Some(named) => {
            Some(run_id(named).ok_or(Refusal::new(close::PROTOCOL, "control.run_id is not text"))?)
        }
    };
    Ok(Control { run_id, ..Control::default() })
}
