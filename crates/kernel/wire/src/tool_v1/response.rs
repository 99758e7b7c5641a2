//! The one answer to a call.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a call was answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    /// With a value.
    Accepted(Value),
    /// Whoever was asked does not want to.
    Declined,
    /// It was called off.
    Cancelled,
    /// It was not allowed.
    Denied,
    /// With words instead of a value.
    Other {
        /// The words.
        content: String,
        /// What makes it a fault rather than words; only peers of ours write and read it.
        fault: Option<Marker>,
    },
    /// A one-way message arrived.
    Ok,
}

/// The statuses as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// With a value.
    Accepted,
    /// Not wanted.
    Declined,
    /// Called off.
    Cancelled,
    /// Not allowed.
    Denied,
    /// With words.
    Other,
}

/// What makes an answer a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Marker {
    /// A dotted code.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// Whether the same call may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// Facts about it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// An answer with exactly the keys that its status has.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ResponseShape<'a> {
    Ok { ok: bool },
    Content { status: Status, content: &'a Value },
    Words { status: Status, content: &'a str },
    Marked { status: Status, content: &'a str, fault: &'a Marker },
    Plain { status: Status },
}

impl Response {
    pub(super) fn shape(&self, marked: bool) -> ResponseShape<'_> {
        match self {
            Self::Ok => ResponseShape::Ok { ok: true },
            Self::Accepted(content) => ResponseShape::Content { status: Status::Accepted, content },
            Self::Declined => ResponseShape::Plain { status: Status::Declined },
            Self::Cancelled => ResponseShape::Plain { status: Status::Cancelled },
            Self::Denied => ResponseShape::Plain { status: Status::Denied },
            Self::Other { content, fault: Some(fault) } if marked => {
                ResponseShape::Marked { status: Status::Other, content, fault }
            }
            Self::Other { content, .. } => ResponseShape::Words { status: Status::Other, content },
        }
    }

    /// Reads an answer; `None` if its status is none of ours.
    pub(super) fn read(value: Value) -> Option<Self> {
        let Value::Object(mut value) = value else { return None };
        let Some(status) = value.get("status").and_then(Value::as_str) else {
            return (value.get("ok") == Some(&Value::Bool(true))).then_some(Self::Ok);
        };
        match status {
            "accepted" => Some(Self::Accepted(value.remove("content").unwrap_or_default())),
            "declined" => Some(Self::Declined),
            "cancelled" => Some(Self::Cancelled),
            "denied" => Some(Self::Denied),
            "other" => {
                let content = match value.remove("content") {
                    Some(Value::String(text)) => text,
                    Some(Value::Null) | None => String::new(),
                    Some(other) => other.to_string(),
                };
                let fault =
                    value.remove("fault").and_then(|fault| serde_json::from_value(fault).ok());
                Some(Self::Other { content, fault })
            }
            _ => None,
        }
    }
}
