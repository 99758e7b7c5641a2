//! Text to JSON, strictly: bounded in depth, and no key twice at any depth.

use serde_json::Value;
use wharf_vocab::Object;

use super::{Failure, close, code};
use crate::agent_v1::Malformed;
use crate::agent_v1::scan::scan;
use crate::strict;

/// Why a connection is closed: a code of WebSockets and a short reason. It never quotes what the
/// peer sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} ({code})")]
pub struct Refusal {
    /// One of [`close`].
    pub code: u16,
    /// A few words.
    pub reason: &'static str,
}

impl Refusal {
    /// A refusal.
    #[must_use]
    pub const fn new(code: u16, reason: &'static str) -> Self {
        Self { code, reason }
    }
}

/// Reads the one object that a frame consists of. The look over the bytes comes before anything
/// is allocated for them.
pub(super) fn read(text: &str) -> Result<Object, Refusal> {
    scan(text).map_err(|why| match why {
        Malformed::TooDeep => Refusal::new(close::INVALID, "nested too deeply"),
        _ => Refusal::new(close::INVALID, "not JSON"),
    })?;
    let value = strict::read(text.as_bytes()).map_err(|error| match error.is_data() {
        true => Refusal::new(close::INVALID, TWICE),
        false => Refusal::new(close::INVALID, "not JSON"),
    })?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Refusal::new(close::PROTOCOL, "not an object")),
    }
}

/// A part that must be an object if it is there; one that is not there is empty.
pub(super) fn object(value: Option<Value>) -> Option<Object> {
    match value {
        None | Some(Value::Null) => Some(Object::new()),
        Some(Value::Object(object)) => Some(object),
        Some(_) => None,
    }
}

/// The id of a run as text; a whole number is one too, since some languages write it so.
pub(super) fn run_id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_u64() || number.is_i64() => Some(number.to_string()),
        _ => None,
    }
}

/// What a peer says went wrong; an empty object says nothing.
pub(super) fn failure(error: Option<&Value>) -> Option<Failure> {
    match error? {
        Value::Object(error) if !error.is_empty() => {
            let text =
                |name| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            Some(Failure {
                code: text("code").unwrap_or(code::UNKNOWN).to_owned(),
                message: text("message").unwrap_or_default().to_owned(),
            })
        }
        Value::String(message) if !message.is_empty() => {
            Some(Failure { message: message.clone(), ..Failure::unknown() })
        }
        _ => None,
    }
}

const TWICE: &str = "a key stands twice";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, code: u16, reason: &'static str) {
        assert_eq!(read(text), Err(Refusal::new(code, reason)), "{text:.60}");
    }

    #[test]
    fn t005_what_is_no_object_is_told_apart_from_what_is_no_json() {
        for text in ["", "{", "nope", "{\"a\":1} 2", "{'a':1}", "NaN", "{\"a\":NaN}", "\u{feff}{}"]
        {
            refused(text, close::INVALID, "not JSON");
        }
        refused(r#"{"a":"\ud83d"}"#, close::INVALID, "not JSON");
        for text in ["1", "null", "\"Request\"", "[]", "[{\"kind\":\"Request\"}]", "true"] {
            refused(text, close::PROTOCOL, "not an object");
        }
    }

    #[test]
    fn a_key_stands_once_at_any_depth() {
        refused(r#"{"a":1,"a":1}"#, close::INVALID, TWICE);
        refused(r#"{"a":[{"b":1,"\u0062":2}]}"#, close::INVALID, TWICE);
        assert!(read(r#"{"a":{"b":1},"b":{"b":2}}"#).is_ok());
    }

    #[test]
    fn depth_is_bounded_before_the_parser_recurses() {
        let deep = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
        assert!(read(&deep(super::super::limits::NESTING_MAX - 1)).is_ok());
        refused(&deep(super::super::limits::NESTING_MAX), close::INVALID, "nested too deeply");
        refused(&deep(1_000_000), close::INVALID, "nested too deeply");
    }

    #[test]
    fn every_kind_of_value_is_kept() {
        let text = r#"{"a":[null,true,-1,18446744073709551615,0.5,"x",{}]}"#;
        let read = Value::Object(read(text).expect("reads"));
        assert_eq!(read, serde_json::from_str::<Value>(text).expect("JSON"));
    }
}
