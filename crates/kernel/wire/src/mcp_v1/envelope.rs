//! The envelope of JSON-RPC 2.0. A batch is refused; so is a key that stands twice at any depth,
//! because two readers of the text must not see two different calls.

use serde::ser::SerializeMap as _;
use serde::{Deserialize as _, Serialize, Serializer};
use serde_json::Value;
use wharf_vocab::Object;
use wharf_vocab::json::is_deeper;

use super::limits::{METHOD_BYTES_MAX, NESTING_MAX};
use super::{McpError, McpId, code};
use crate::strict;

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum McpMessage {
    /// Something is wanted, and answered once.
    Request {
        /// Names it until it is answered.
        id: McpId,
        /// What is wanted.
        method: String,
        /// The details.
        params: Option<Object>,
    },
    /// Something is told.
    Notification {
        /// What is told.
        method: String,
        /// The details.
        params: Option<Object>,
    },
    /// A request went well.
    Result {
        /// The request.
        id: McpId,
        /// What came of it.
        result: Object,
    },
    /// A request did not go well, or something was sent that cannot be read.
    Error {
        /// The request, if it is known which.
        id: Option<McpId>,
        /// What went wrong.
        error: McpError,
    },
}

/// Why something is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpUnreadableKind {
    /// It is no JSON, or too deep to be looked at.
    NoJson,
    /// It is JSON and no message, for this reason.
    NoMessage(&'static str),
}

/// Something that is no message. It names the request it was about if that can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpUnreadable {
    /// The request.
    pub id: Option<McpId>,
    /// Whether it looked like the answer to a request, so that its call has to end.
    pub is_answer: bool,
    /// What is wrong.
    pub kind: McpUnreadableKind,
}

impl McpUnreadable {
    /// What the sender is told.
    #[must_use]
    pub fn to_error(&self) -> McpError {
        match self.kind {
            McpUnreadableKind::NoJson => {
                McpError::new(code::PARSE, "The message is no JSON of bounded depth.")
            }
            McpUnreadableKind::NoMessage(why) => McpError::new(code::INVALID_REQUEST, why),
        }
    }
}

impl McpMessage {
    /// Reads a message. Its size is for the caller to bound, before anything is kept.
    pub fn read(bytes: &[u8]) -> Result<Self, McpUnreadable> {
        Self::read_within(bytes, NESTING_MAX)
    }

    /// Whether a message is nested too deeply to be read, whatever else it is.
    #[must_use]
    pub fn is_too_deep(bytes: &[u8]) -> bool {
        is_deeper(bytes, NESTING_MAX)
    }

    /// Reads a message that may be nested as deeply as is said.
    pub fn read_within(bytes: &[u8], nesting_max: usize) -> Result<Self, McpUnreadable> {
        let unreadable = |kind| McpUnreadable { id: None, is_answer: false, kind };
        let none = |why| unreadable(McpUnreadableKind::NoMessage(why));
        if is_deeper(bytes, nesting_max) {
            return Err(unreadable(McpUnreadableKind::NoJson));
        }
        match strict::read(bytes) {
            Ok(Value::Object(object)) => Self::of(object),
            Ok(Value::Array(_)) => Err(none("Batches are not supported.")),
            Ok(_) => Err(none("A message is a JSON object.")),
            Err(error) if error.is_data() => Err(none("A key of the message stands twice.")),
            Err(_) => Err(unreadable(McpUnreadableKind::NoJson)),
        }
    }

    /// Makes a message of an object in which no key stands twice. Keys of the envelope that nobody
    /// knows are for the transport that added them, and are passed over.
    pub fn of(mut object: Object) -> Result<Self, McpUnreadable> {
        let id = object.remove("id").filter(|id| !id.is_null());
        let id_given = id.is_some();
        let id = id.and_then(|id| McpId::deserialize(id).ok());
        let (result, error) = (object.remove("result"), object.remove("error"));
        let method = object.remove("method");
        let is_answer = method.is_none() && (result.is_some() || error.is_some());
        let none = |id: Option<McpId>, why| McpUnreadable {
            id,
            is_answer,
            kind: McpUnreadableKind::NoMessage(why),
        };
        if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(none(id, "The message does not say that it is JSON-RPC 2.0."));
        }
        if id_given && id.is_none() {
            return Err(none(None, "The id is neither a text nor a whole number."));
        }
        match (method, result, error) {
            (Some(method), None, None) => Self::asked(id, method, object),
            (None, Some(Value::Object(result)), None) => match id {
                Some(id) => Ok(Self::Result { id, result }),
                None => Err(none(None, "The answer has no id.")),
            },
            (None, None, Some(error)) => match McpError::deserialize(error) {
                Ok(error) => Ok(Self::Error { id, error }),
                Err(_) => Err(none(id, "The error has no code or no message.")),
            },
            (None, Some(_), Some(_)) => Err(none(id, "The answer has both a result and an error.")),
            (None, Some(_), None) => Err(none(id, "The result is no JSON object.")),
            (Some(_), _, _) => Err(none(id, "The message is both a request and an answer.")),
            (None, None, None) => Err(none(id, "The message has no method.")),
        }
    }

    fn asked(id: Option<McpId>, method: Value, mut rest: Object) -> Result<Self, McpUnreadable> {
        let none = |id, why| {
            let kind = McpUnreadableKind::NoMessage(why);
            Err(McpUnreadable { id, is_answer: false, kind })
        };
        let method = match method {
            Value::String(method) if method.len() <= METHOD_BYTES_MAX => method,
            _ => return none(id, "The method is no text of bounded length."),
        };
        let params = match rest.remove("params") {
            None | Some(Value::Null) => None,
            Some(Value::Object(params)) => Some(params),
            Some(_) => return none(id, "The parameters are no JSON object."),
        };
        Ok(match id {
            Some(id) => Self::Request { id, method, params },
            None => Self::Notification { method, params },
        })
    }

    /// The message as it is sent, in one line.
    #[must_use]
    pub fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for McpMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("jsonrpc", "2.0")?;
        let id = match self {
            Self::Request { id, .. } | Self::Result { id, .. } => Some(id),
            Self::Error { id, .. } => id.as_ref(),
            Self::Notification { .. } => None,
        };
        if let Some(id) = id {
            map.serialize_entry("id", id)?;
        }
        match self {
            Self::Request { method, params, .. } | Self::Notification { method, params } => {
                map.serialize_entry("method", method)?;
                if let Some(params) = params {
                    map.serialize_entry("params", params)?;
                }
            }
            Self::Result { result, .. } => map.serialize_entry("result", result)?,
            Self::Error { error, .. } => map.serialize_entry("error", error)?,
        }
        map.end()
    }
}
