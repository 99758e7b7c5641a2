//! What a server sends, read generously.

use std::collections::BTreeMap;

use serde_json::Value;
use wharf_vocab::Object;

use super::from_client::tool_name;
use super::limits::PHASE_BYTES_MAX;
use super::message::clean_text;
use super::step::step;
use super::value::{failure, object, read, run_id};
use super::{
    Ack, Control, EventData, EventMessage, Failure, Log, LogData, LogLevel, Phase, Response,
    ResponseControl, Status, StepMessage, TokenContent, TokenMessage, ToolName, Written,
};

/// A frame that a server sent.
#[derive(Debug, Clone, PartialEq)]
pub enum FromServer {
    /// The run is known.
    Ack(Ack),
    /// A line for people.
    Log(Log),
    /// How far it is.
    Event(EventMessage),
    /// A piece of text.
    Token(TokenMessage),
    /// A step of the run's code is to be done.
    Step(Box<StepMessage>),
    /// Partial or final outputs.
    Response(Response),
    /// A kind that nobody here knows; it is ignored.
    Unknown,
}

impl FromServer {
    /// The run that the frame names, if it names one; another run's is a breach of the protocol.
    #[must_use]
    pub fn run_id(&self) -> Option<&str> {
        match self {
            Self::Response(response) => response.control.run_id.as_deref(),
            other => other.control()?.run_id.as_deref(),
        }
    }

    /// The frame's number within the attempt, if it has one.
    #[must_use]
    pub fn seq(&self) -> Option<u64> {
        match self {
            Self::Response(response) => response.control.seq,
            other => other.control()?.seq,
        }
    }

    /// What the attempt has cost so far, as it came, if the frame says so.
    #[must_use]
    pub fn cost_micro(&self) -> Option<&Value> {
        match self {
            Self::Response(response) => response.control.cost_micro.as_ref(),
            other => other.control()?.cost_micro.as_ref(),
        }
    }

    fn control(&self) -> Option<&Control> {
        match self {
            Self::Ack(ack) => Some(&ack.control),
            Self::Log(log) => Some(&log.control),
            Self::Event(event) => Some(&event.control),
            Self::Token(token) => Some(&token.control),
            Self::Step(step) => Some(&step.control),
            Self::Response(_) | Self::Unknown => None,
        }
    }
}

/// Why a frame of a server cannot be read. It never quotes what was in the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidFrame(pub &'static str);

/// Reads a frame that a server sent.
///
/// Unknown fields are ignored, unknown kinds are [`FromServer::Unknown`]. `control` may be missing;
/// `content` stands for `data` where that is absent, as the authors' software has it; a level that
/// nobody knows is info; a timestamp, a number or a hash of the wrong form counts as absent. A
/// status that is neither `success` nor `error` counts as absent too: in a final response that is a
/// breach, which the reader judges. A frame without a kind that is an envelope is a final response.
/// An error that is reported makes a response a failed one, whatever its status says. The cost is
/// kept as it came.
pub fn decode_from_server(text: &str) -> Result<FromServer, InvalidFrame> {
    let mut frame = read(text).map_err(|refusal| InvalidFrame(refusal.reason))?;
    let kind = match frame.remove("kind") {
        Some(Value::String(kind)) => kind,
        None => return bare(&frame).ok_or(InvalidFrame("no kind")),
        Some(_) => return Err(InvalidFrame("no kind")),
    };
    if !matches!(kind.as_str(), "Ack" | "Log" | "Event" | "Token" | "Step" | "Response") {
        return Ok(FromServer::Unknown);
    }
    let raw = object(frame.remove("control")).ok_or(InvalidFrame("control is not an object"))?;
    let mut control = control(&raw)?;
    Ok(match kind.as_str() {
        "Ack" => {
            let named = frame.get("content").and_then(|content| content.get("run_id"));
            control.run_id = control.run_id.or_else(|| named.and_then(run_id));
            // A name of the wrong form names no tool that was asked for.
            let unnamed = || ToolName { reference: String::new(), digest: None };
            let tool = frame.get("tool").filter(|named| !named.is_null());
            let tool = tool.map(|named| tool_name(named).unwrap_or_else(unnamed));
            FromServer::Ack(Ack { control, tool })
        }
        "Log" => FromServer::Log(Log { control, data: log(data(&mut frame)?) }),
        "Event" => match event(&data(&mut frame)?) {
            Some(data) => FromServer::Event(EventMessage { control, data }),
            None => FromServer::Unknown,
        },
        "Token" => match data(&mut frame)?.remove("text") {
            Some(Value::String(text)) => {
                FromServer::Token(TokenMessage { control, content: TokenContent { text } })
            }
            _ => FromServer::Unknown,
        },
        "Step" => FromServer::Step(Box::new(step(control, frame).map_err(InvalidFrame)?)),
        _ => FromServer::Response(response(control, &raw, frame)?),
    })
}

/// An envelope that was sent as it is.
fn bare(frame: &Object) -> Option<FromServer> {
    let envelope = read_envelope(frame)?;
    let (status, outputs, error) = match envelope.result {
        Ok(outputs) => (Status::Success, outputs, None),
        Err(error) => (Status::Error, Object::new(), Some(error)),
    };
    let control = ResponseControl {
        run_id: frame.get("run_id").and_then(run_id),
        status: Some(status),
        cost_micro: envelope.cost_micro.filter(|cost| !cost.is_null()),
        is_final: true,
        ..ResponseControl::default()
    };
    Some(FromServer::Response(Response { control, outputs, error }))
}

/// What an envelope says.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// Outputs, or what went wrong.
    pub result: Result<Object, Failure>,
    /// Micro-dollars. Kept as it came, since it is judged apart.
    pub cost_micro: Option<Value>,
}

/// Reads an envelope: an object with the `status` `success` or `error` and an object `outputs` or
/// `error`, whatever else stands in it (`run_id`, `execution_id`, `meta` and the like). Anything
/// else is none. An error that it reports is never a success, whatever its status says.
#[must_use]
pub fn read_envelope(object: &Object) -> Option<Envelope> {
    let is_error = match object.get("status")?.as_str()? {
        "success" => false,
        "error" => true,
        _ => return None,
    };
    let outputs = object.get("outputs").and_then(Value::as_object);
    let error = failure(object.get("error"));
    if outputs.is_none() && error.is_none() {
        return None;
    }
    let result = match error {
        Some(error) => Err(error),
        None if is_error => Err(Failure::unknown()),
        None => Ok(outputs.cloned().unwrap_or_default()),
    };
    Some(Envelope { result, cost_micro: object.get("cost_micro").cloned() })
}

fn control(raw: &Object) -> Result<Control, InvalidFrame> {
    let run_id = match raw.get("run_id") {
        None | Some(Value::Null) => None,
        Some(named) => Some(run_id(named).ok_or(InvalidFrame("control.run_id is not text"))?),
    };
    let cost_micro = raw.get("cost_micro").filter(|cost| !cost.is_null()).cloned();
    Ok(Control { run_id, cost_micro, seq: raw.get("seq").and_then(Value::as_u64) })
}

fn data(frame: &mut Object) -> Result<Object, InvalidFrame> {
    let said = frame.remove("data").filter(|data| !data.is_null());
    object(said.or_else(|| frame.remove("content"))).ok_or(InvalidFrame("data is not an object"))
}

fn log(mut data: Object) -> LogData {
    LogData {
        msg: match data.remove("msg") {
            Some(Value::String(msg)) => msg,
            None | Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        },
        level: match data.get("level").and_then(Value::as_str) {
            Some("debug") => LogLevel::Debug,
            Some("warn" | "warning") => LogLevel::Warn,
            Some("error") => LogLevel::Error,
            _ => LogLevel::Info,
        },
        timestamp: data.get("timestamp").and_then(Value::as_f64),
    }
}

fn event(data: &Object) -> Option<EventData> {
    let word = data.get("phase")?.as_str()?;
    if word.is_empty() || word.len() > PHASE_BYTES_MAX || word.chars().any(char::is_control) {
        return None;
    }
    let phase = Phase::from(word.to_owned());
    let text = data.get("text").and_then(Value::as_str).map(clean_text);
    let text = text.filter(|text| !text.is_empty());
    Some(EventData { phase, progress: data.get("progress").and_then(Value::as_f64), text })
}

fn response(control: Control, raw: &Object, mut frame: Object) -> Result<Response, InvalidFrame> {
    let is_final = match raw.get("final") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is_final)) => *is_final,
        Some(_) => return Err(InvalidFrame("control.final is neither true nor false")),
    };
    let given = frame.remove("error").filter(|error| !error.is_null());
    if given.as_ref().is_some_and(|error| !error.is_object() && !error.is_string()) {
        return Err(InvalidFrame("error is not an object"));
    }
    let reported = failure(given.as_ref());
    let status = match raw.get("status").and_then(Value::as_str) {
        Some("error") => Some(Status::Error),
        _ if reported.is_some() => Some(Status::Error),
        Some("success") => Some(Status::Success),
        _ => None,
    };
    Ok(Response {
        control: ResponseControl {
            run_id: control.run_id,
            status,
            cost_micro: control.cost_micro,
            is_final,
            seq: control.seq,
            written: written(raw.get("written")),
        },
        outputs: object(frame.remove("outputs")).ok_or(InvalidFrame("outputs is not an object"))?,
        error: match status {
            Some(Status::Error) => reported.or_else(|| given.map(|_| Failure::unknown())),
            Some(Status::Success) | None => None,
        },
    })
}

fn written(raw: Option<&Value>) -> BTreeMap<String, Written> {
    let entry = |(key, value): (&String, &Value)| {
        let bytes = value.get("bytes")?.as_u64()?;
        let b3 = value.get("b3")?.as_str()?.to_owned();
        Some((key.clone(), Written { bytes, b3 }))
    };
    let object = raw.and_then(Value::as_object);
    object.into_iter().flatten().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run_v1::code;

    fn read(value: &Value) -> Option<Envelope> {
        read_envelope(value.as_object().expect("an object"))
    }

    #[test]
    fn t016_a_reported_error_is_never_a_success() {
        for reported in [
            json!({"status": "error", "error": {"code": "E", "message": "no"}}),
            json!({"status": "error", "run_id": "r", "meta": {}, "error": {"code": "E"}}),
            json!({"status": "error", "execution_id": "x", "meta": {}, "error": {"code": "E"}}),
            json!({"status": "error", "outputs": {}, "meta": {}, "error": {"code": "E"}}),
            json!({"status": "success", "outputs": {}, "error": {"code": "E"}}),
        ] {
            let envelope = read(&reported).expect("an envelope");
            assert_eq!(envelope.result.expect_err("an error").code, "E", "{reported}");
        }
        for silent in [json!({}), json!(null), json!(false)] {
            let envelope = read(&json!({"status": "error", "outputs": {"a": 1}, "error": silent}));
            assert_eq!(envelope.expect("one").result.expect_err("failed").code, code::UNKNOWN);
        }
        let told = read(&json!({"status": "error", "error": "It broke."})).expect("one");
        assert_eq!(told.result.expect_err("an error").message, "It broke.");
    }

    #[test]
    fn t016_what_went_well_keeps_outputs_and_cost() {
        let given = json!({"status": "success", "outputs": {"a": 1}, "error": null, "meta": {"m": 1},
            "execution_id": "x", "cost_micro": 7});
        let envelope = read(&given).expect("an envelope");
        assert_eq!(envelope.result.expect("well")["a"], 1);
        assert_eq!(envelope.cost_micro, Some(json!(7)));
    }

    #[test]
    fn outputs_that_only_look_like_it_are_outputs() {
        for outputs in [
            json!({"outputs": {"a": 1}}),
            json!({"status": "success"}),
            json!({"status": "error", "message": "a tool may say so"}),
            json!({"status": "done", "outputs": {}}),
            json!({"status": "success", "outputs": [1], "error": 7}),
            json!({"status": 1, "error": {"code": "E"}}),
        ] {
            assert_eq!(read(&outputs), None, "{outputs}");
        }
    }
}
