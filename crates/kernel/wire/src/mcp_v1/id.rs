//! Ids of requests, and progress tokens, which look alike.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::limits::ID_BYTES_MAX;

/// Largest whole number that every reader of JSON keeps exactly.
const SAFE_MAX: f64 = 9_007_199_254_740_991.0;

/// What names a request, or the progress of one: a text or a whole number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum McpId {
    /// A whole number; `1.0` is 1.
    Number(i64),
    /// A text.
    Text(String),
}

/// It is neither a text of bounded length nor a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id must be a whole number or a text of at most {ID_BYTES_MAX} bytes")]
pub struct McpIdError;

impl From<i64> for McpId {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for McpId {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for McpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for McpId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for McpId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = McpId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a whole number")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<McpId, E> {
        Ok(McpId::Number(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<McpId, E> {
        i64::try_from(number).map(McpId::Number).map_err(|_| E::custom(McpIdError))
    }

    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<McpId, E> {
        let whole = number.fract() == 0.0 && number.abs() <= SAFE_MAX;
        if whole { Ok(McpId::Number(number as i64)) } else { Err(E::custom(McpIdError)) }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<McpId, E> {
        match text.len() {
            0..=ID_BYTES_MAX => Ok(McpId::Text(text.to_owned())),
            _ => Err(E::custom(McpIdError)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m001_ids_are_texts_or_whole_numbers() {
        let read = |text: &str| serde_json::from_str::<McpId>(text).ok();
        for (text, id) in [
            ("1", McpId::from(1)),
            ("1.0", McpId::from(1)),
            ("-7", McpId::from(-7)),
            ("0", McpId::from(0)),
            ("1e3", McpId::from(1000)),
            ("\"1\"", McpId::from("1")),
            ("\"\"", McpId::from("")),
        ] {
            assert_eq!(read(text), Some(id), "{text}");
        }
        let long = format!("\"{}\"", "x".repeat(ID_BYTES_MAX + 1));
        for no_id in ["null", "1.5", "true", "[]", "{}", "1e300", "18446744073709551615", &long] {
            assert_eq!(read(no_id), None, "{no_id}");
        }
    }
}
