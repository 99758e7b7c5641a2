//! From a frame to a typed message, or to the reason why not.
//!
//! The reasons come in two kinds, because they have two consequences. What is [`Malformed`] shows
//! that the peer is out of step or hostile, and the connection ends. What is [`Rejected`] is a
//! readable message with a wrong field: it is answered and dropped, and the connection goes on.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use wharf_vocab::{Code, Micro};

use super::direction::EndMessage;
use super::read::{ReadError, read_object};
use super::scan::scan;
use super::{CallId, Echo, Envelope, ErrorObject, MessageId};

/// Why a frame is no message at all. It never carries what was in the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// The bytes are not UTF-8.
    NotUtf8,
    /// The text begins with a byte-order mark.
    ByteOrderMark,
    /// Half of a surrogate pair is escaped.
    LoneSurrogate,
    /// Nesting is deeper than the limit.
    TooDeep,
    /// The JSON is something other than an object.
    NotAnObject,
    /// A key of the envelope or of the payload stands twice.
    DuplicateKey,
    /// The text is not JSON, or more follows behind the object.
    Syntax,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotUtf8 => "the frame is not UTF-8",
            Self::ByteOrderMark => "the frame begins with a byte-order mark",
            Self::LoneSurrogate => "a string holds half of a surrogate pair",
            Self::TooDeep => "the message is nested too deeply",
            Self::NotAnObject => "the frame does not hold a JSON object",
            Self::DuplicateKey => "a key stands twice",
            Self::Syntax => "the frame does not hold exactly one well-formed JSON object",
        })
    }
}

/// What could be read of a message that is not delivered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The version, if it is an integer.
    pub v: Option<i64>,
    /// The id, if it is one.
    pub id: Option<MessageId>,
    /// The type, if it is text.
    pub type_name: Option<String>,
    /// Whether the message answers another.
    pub is_reply: bool,
    /// Whether the message carries an error, at the top or by its type.
    pub is_error: bool,
    /// What an answer has to return.
    pub echo: Echo,
}

impl Header {
    /// Whether the sender waits for an answer: it named a request and does not itself answer.
    #[must_use]
    pub fn expects_reply(&self) -> bool {
        self.echo.request_id.is_some() && !self.is_reply && !self.is_error
    }
}

/// A readable message with a wrong field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// What could be read.
    pub header: Header,
    /// The field at fault, as `ts` or `payload.seq`. It is a name of ours, never the peer's.
    pub field: String,
    /// The call that the payload names, when it names one.
    pub call_id: Option<CallId>,
    /// What the payload says that the call has cost, when it says so: money that was spent counts
    /// whatever else is wrong.
    pub cost_micro: Option<Micro>,
}

/// Why a frame is not delivered as a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// It is no message at all.
    Malformed(Malformed),
    /// A field is missing or wrong.
    Rejected(Box<Rejected>),
    /// Nobody knows its type.
    UnknownType(Box<Header>),
    /// It is a message that only the other end may send.
    WrongDirection(Box<Header>),
}

impl DecodeError {
    /// The code that names the reason to the peer.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Malformed(_) => Code::ProtocolMalformed,
            Self::Rejected(_) => Code::ProtocolInvalidEnvelope,
            Self::UnknownType(_) => Code::ProtocolUnknownType,
            Self::WrongDirection(_) => Code::ProtocolUnexpectedMessage,
        }
    }

    /// What could be read, if it was a message at all.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        match self {
            Self::Malformed(_) => None,
            Self::Rejected(rejected) => Some(&rejected.header),
            Self::UnknownType(header) | Self::WrongDirection(header) => Some(header),
        }
    }
}

impl From<Malformed> for DecodeError {
    fn from(why: Malformed) -> Self {
        Self::Malformed(why)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => why.fmt(f),
            Self::Rejected(why) => {
                write!(f, "the field `{}` is missing or has the wrong form", why.field)
            }
            Self::UnknownType(_) => f.write_str("nobody knows the type of the message"),
            Self::WrongDirection(_) => f.write_str("only the other end may send this message"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Reads the message in a frame.
pub fn decode<M: EndMessage>(frame: &[u8]) -> Result<Envelope<M>, DecodeError> {
    let raw = raw_envelope(frame)?;
    let reject = |field: &str, about: FaultyPayload| {
        let (header, field) = (raw.header(), field.to_owned());
        let (call_id, cost_micro) = (about.call_id.clone(), about.cost());
        DecodeError::Rejected(Box::new(Rejected { header, field, call_id, cost_micro }))
    };
    let wrong = |field: &'static str| reject(field, FaultyPayload::default());

    let v = required(raw.v).ok_or_else(|| wrong("v"))?;
    let type_name: String = required(raw.type_name).ok_or_else(|| wrong("type"))?;
    let id = required(raw.id).ok_or_else(|| wrong("id"))?;
    let ts = required(raw.ts).ok_or_else(|| wrong("ts"))?;
    let payload = raw.payload.map(RawValue::get).ok_or_else(|| wrong("payload"))?;
    if type_name.is_empty() {
        return Err(wrong("type"));
    }
    if !payload.starts_with('{') {
        return Err(wrong("payload"));
    }
    let in_reply_to = optional(raw.in_reply_to).ok_or_else(|| wrong("in_reply_to"))?;
    let echo = raw.echo().map_err(wrong)?;
    let actor = optional(raw.actor).ok_or_else(|| wrong("actor"))?;
    let error: Option<ErrorObject> = optional(raw.error).ok_or_else(|| wrong("error"))?;

    if type_name.starts_with(M::FOREIGN_PREFIX) {
        return Err(DecodeError::WrongDirection(Box::new(raw.header())));
    }
    let message = match M::read(&type_name, payload, error.is_some()) {
        None => return Err(DecodeError::UnknownType(Box::new(raw.header()))),
        Some(Ok(message)) => message,
        Some(Err(ReadError::Field(field))) => {
            let about = read_object(payload).unwrap_or_default();
            return Err(reject(&format!("payload.{field}"), about));
        }
        Some(Err(ReadError::Duplicate)) => return Err(Malformed::DuplicateKey.into()),
        Some(Err(ReadError::Syntax)) => return Err(Malformed::Syntax.into()),
    };
    Ok(Envelope { v, id, ts, in_reply_to, echo, actor, error, message })
}

/// The fields of an envelope before anybody has looked into them.
#[derive(Deserialize)]
struct RawEnvelope<'a> {
    #[serde(borrow, default)]
    v: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    type_name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    ts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
    #[serde(borrow, default)]
    in_reply_to: Option<&'a RawValue>,
    #[serde(borrow, default)]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    correlation_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    causation_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    traceparent: Option<&'a RawValue>,
    #[serde(borrow, default)]
    actor: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// What is read of a payload that is wrong otherwise.
#[derive(Default, Deserialize)]
struct FaultyPayload {
    call_id: Option<CallId>,
    #[serde(default)]
    cost_micro: Value,
    #[serde(default)]
    metrics: Value,
}

impl FaultyPayload {
    fn cost(&self) -> Option<Micro> {
        let told = [Some(&self.cost_micro), self.metrics.get("cost_micro")];
        told.into_iter().flatten().filter_map(Value::as_u64).max()
    }
}

fn raw_envelope(frame: &[u8]) -> Result<RawEnvelope<'_>, Malformed> {
    let text = std::str::from_utf8(frame).map_err(|_| Malformed::NotUtf8)?;
    if text.starts_with('\u{feff}') {
        return Err(Malformed::ByteOrderMark);
    }
    if !text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{') {
        return Err(Malformed::NotAnObject);
    }
    scan(text)?;
    read_object(text).map_err(|error| match error {
        ReadError::Duplicate => Malformed::DuplicateKey,
        ReadError::Syntax | ReadError::Field(_) => Malformed::Syntax,
    })
}

impl RawEnvelope<'_> {
    fn echo(&self) -> Result<Echo, &'static str> {
        Ok(Echo {
            request_id: optional(self.request_id).ok_or("request_id")?,
            correlation_id: optional(self.correlation_id).ok_or("correlation_id")?,
            causation_id: optional(self.causation_id).ok_or("causation_id")?,
            traceparent: optional(self.traceparent).ok_or("traceparent")?,
        })
    }

    fn header(&self) -> Header {
        let type_name: Option<String> = required(self.type_name);
        let by_type = matches!(type_name.as_deref(), Some("agent.error" | "core.error"));
        Header {
            v: required(self.v),
            id: required(self.id),
            is_reply: self.in_reply_to.is_some(),
            is_error: self.error.is_some() || by_type,
            echo: self.echo().unwrap_or_default(),
            type_name,
        }
    }
}

fn required<T: DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// The field if it is well-formed; `None` outside means that it is not.
fn optional<T: DeserializeOwned>(raw: Option<&RawValue>) -> Option<Option<T>> {
    match raw {
        None => Some(None),
        Some(raw) => serde_json::from_str(raw.get()).ok().map(Some),
    }
}
