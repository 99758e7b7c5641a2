//! Values that GraphQL has no type for.

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};
use wharf_vocab::Timestamp;

/// A whole number of up to 64 bits, without sign. It is written as text, because many programs
/// cannot hold large numbers; read are text and whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Int64(pub(crate) u64);

#[Scalar(name = "Int64")]
impl ScalarType for Int64 {
    fn parse(value: Value) -> InputValueResult<Self> {
        let number = match &value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        };
        let wanted = "it must be a whole number from 0 to 18446744073709551615";
        number.map(Self).ok_or_else(|| InputValueError::custom(wanted))
    }

    fn to_value(&self) -> Value {
        Value::String(self.0.to_string())
    }
}

/// A moment as RFC 3339 text in UTC with milliseconds; read is any offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DateTime(pub(crate) Timestamp);

impl serde::Serialize for DateTime {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&wharf_vocab::DateTime(self.0).to_string())
    }
}

#[Scalar(name = "DateTime")]
impl ScalarType for DateTime {
    fn parse(value: Value) -> InputValueResult<Self> {
        let moment = match &value {
            Value::String(text) => text.parse::<wharf_vocab::DateTime>().ok(),
            _ => None,
        };
        let wanted = "it must be a time such as 2026-01-31T12:00:00Z";
        moment.map(|at| Self(at.0)).ok_or_else(|| InputValueError::custom(wanted))
    }

    fn to_value(&self) -> Value {
        Value::String(wharf_vocab::DateTime(self.0).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t045_amounts_are_text_and_never_lose_a_digit() {
        assert_eq!(Int64(u64::MAX).to_value(), Value::String("18446744073709551615".into()));
        for (given, expect) in [
            (Value::from(7), Some(7)),
            (Value::from(u64::MAX), Some(u64::MAX)),
            (Value::from("18446744073709551615"), Some(u64::MAX)),
            (Value::from("007"), Some(7)),
            (Value::from("18446744073709551616"), None),
            (Value::from("-1"), None),
            (Value::from(-1), None),
            (Value::from(1.5), None),
            (Value::from("1e3"), None),
            (Value::from("+1"), None),
            (Value::from(""), None),
            (Value::Boolean(true), None),
        ] {
            let read = <Int64 as ScalarType>::parse(given.clone());
            assert_eq!(read.ok().map(|number| number.0), expect, "{given}");
        }
    }

    #[test]
    fn t045_moments_are_utc_and_read_with_any_offset() {
        let at = Timestamp(1_763_164_800_007);
        assert_eq!(DateTime(at).to_value(), Value::from("2025-11-15T00:00:00.007Z"));
        let read = |text: &str| <DateTime as ScalarType>::parse(Value::from(text)).ok();
        assert_eq!(read("2025-11-15T01:00:00.007+01:00"), Some(DateTime(at)));
        assert_eq!(read("1950-01-01T00:00:00Z"), Some(DateTime(Timestamp(0))));
        for bad in ["2025-11-15", "yesterday", "7d", ""] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
