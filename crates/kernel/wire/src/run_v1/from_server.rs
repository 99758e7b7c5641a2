//! What a server sends, read generously.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use wharf_vocab::Object;

use super::value::read;
use super::{
    Ack, Control, Event, EventData, Failure, Log, LogData, LogLevel, Phase, Response,
    ResponseControl, Status, Written, code,
};

/// A frame that a server sent.
#[derive(Debug, Clone, PartialEq)]
pub enum FromServer {
    /// The run is known.
    Ack(Ack),
    /// A line for people.
    Log(Log),
    /// How far it is.
    Event(Event),
    /// Partial or final outputs.
    Response(Response),
    /// A kind or a phase that nobody here knows; it is ignored.
    Unknown,
}

impl FromServer {
    /// The run that the frame names, if it names one; another run's is a breach of the protocol.
    #[must_use]
    pub fn run_id(&self) -> Option<&str> {
        match self {
            Self::Ack(ack) => ack.control.run_id.as_deref(),
            Self::Log(log) => log.control.run_id.as_deref(),
            Self::Event(event) => event.control.run_id.as_deref(),
            Self::Response(response) => response.control.run_id.as_deref(),
            Self::Unknown => None,
        }
    }

    /// The frame's number within the attempt, if it has one.
    #[must_use]
    pub fn seq(&self) -> Option<u64> {
        match self {
            Self::Ack(ack) => ack.control.seq,
            Self::Log(log) => log.control.seq,
            Self::Event(event) => event.control.seq,
            Self::Response(response) => response.control.seq,
            Self::Unknown => None,
        }
    }
}

/// Why a frame of a server cannot be read. It never quotes what was in the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invalid(pub &'static str);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Invalid {}

/// Reads a frame that a server sent.
///
/// Unknown fields are ignored, unknown kinds and phases are [`FromServer::Unknown`]. `control`
/// may be missing; a level that nobody knows is info; a timestamp, a number or a hash of the wrong
/// form counts as absent. A status that is neither `success` nor `error` counts as absent too: in
/// a final response that is a breach, which the reader judges. The cost is kept as it came.
pub fn decode_from_server(text: &str) -> Result<FromServer, Invalid> {
    let mut frame = read(text).map_err(|refusal| Invalid(refusal.reason))?;
    let Some(Value::String(kind)) = frame.remove("kind") else {
        return Err(Invalid("no kind"));
    };
    if !matches!(kind.as_str(), "Ack" | "Log" | "Event" | "Response") {
        return Ok(FromServer::Unknown);
    }
    let raw = object(frame.remove("control")).ok_or(Invalid("control is not an object"))?;
    let control = control(&raw)?;
    Ok(match kind.as_str() {
        "Ack" => FromServer::Ack(Ack { control }),
        "Log" => FromServer::Log(Log { control, data: log(data(&mut frame)?) }),
        "Event" => match event(&data(&mut frame)?) {
            Some(data) => FromServer::Event(Event { control, data }),
            None => FromServer::Unknown,
        },
        _ => FromServer::Response(response(control, &raw, frame)?),
    })
}

fn control(raw: &Object) -> Result<Control, Invalid> {
    let run_id = match raw.get("run_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(run_id)) => Some(run_id.clone()),
        Some(_) => return Err(Invalid("control.run_id is not text")),
    };
    Ok(Control { run_id, seq: raw.get("seq").and_then(Value::as_u64) })
}

fn data(frame: &mut Object) -> Result<Object, Invalid> {
    object(frame.remove("data")).ok_or(Invalid("data is not an object"))
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
    let phase = match data.get("phase")?.as_str()? {
        "started" => Phase::Started,
        "checkpoint" => Phase::Checkpoint,
        "completed" => Phase::Completed,
        "preempted" => Phase::Preempted,
        _ => return None,
    };
    Some(EventData { phase, progress: data.get("progress").and_then(Value::as_f64) })
}

fn response(control: Control, raw: &Object, mut frame: Object) -> Result<Response, Invalid> {
    let is_final = match raw.get("final") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is_final)) => *is_final,
        Some(_) => return Err(Invalid("control.final is neither true nor false")),
    };
    let error = match frame.remove("error") {
        None | Some(Value::Null) => None,
        Some(Value::Object(error)) => Some(failure(&error)),
        Some(Value::String(message)) => Some(Failure { code: code::UNKNOWN.to_owned(), message }),
        Some(_) => return Err(Invalid("error is not an object")),
    };
    Ok(Response {
        control: ResponseControl {
            run_id: control.run_id,
            status: match raw.get("status").and_then(Value::as_str) {
                Some("success") => Some(Status::Success),
                Some("error") => Some(Status::Error),
                _ => None,
            },
            cost_micro: raw.get("cost_micro").filter(|cost| !cost.is_null()).cloned(),
            is_final,
            seq: control.seq,
            written: written(raw.get("written")),
        },
        outputs: object(frame.remove("outputs")).ok_or(Invalid("outputs is not an object"))?,
        error,
    })
}

fn failure(error: &Object) -> Failure {
    let text = |name| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    Failure {
        code: text("code").unwrap_or(code::UNKNOWN).to_owned(),
        message: text("message").unwrap_or_default().to_owned(),
    }
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

fn object(value: Option<Value>) -> Option<Object> {
    match value {
        None | Some(Value::Null) => Some(Object::new()),
        Some(Value::Object(object)) => Some(object),
        Some(_) => None,
    }
}
