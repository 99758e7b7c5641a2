//! Times as the wire writes them: RFC 3339 text with a zone.
//!
//! The text is kept as it was written.

use std::fmt;

use serde::{Deserialize, Serialize};
pub use wharf_vocab::Rfc3339Error;
use wharf_vocab::{DateTime, Timestamp, rfc3339_ms};

/// A checked RFC 3339 date and time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rfc3339(String);

impl Rfc3339 {
    /// Checks the text.
    pub fn new(text: impl Into<String>) -> Result<Self, Rfc3339Error> {
        let text = text.into();
        if rfc3339_ms(&text).is_some() { Ok(Self(text)) } else { Err(Rfc3339Error) }
    }

    /// The text as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Timestamp> for Rfc3339 {
    /// Writes a moment in UTC with milliseconds.
    fn from(at: Timestamp) -> Self {
        Self(DateTime(at).to_string())
    }
}

impl TryFrom<String> for Rfc3339 {
    type Error = Rfc3339Error;
    fn try_from(text: String) -> Result<Self, Rfc3339Error> {
        Self::new(text)
    }
}

impl From<Rfc3339> for String {
    fn from(time: Rfc3339) -> String {
        time.0
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_768_564_800_123, "2026-01-16T12:00:00.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Rfc3339::from(Timestamp(ms)).as_str(), text);
        }
    }

    #[test]
    fn what_is_written_is_also_accepted() {
        for day in 0..60_000_u64 {
            let written = Rfc3339::from(Timestamp(day * 86_400_000 + day));
            assert!(Rfc3339::new(written.as_str()).is_ok(), "{written}");
        }
    }
}
