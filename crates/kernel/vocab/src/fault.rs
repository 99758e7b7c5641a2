//! An error that may be shown: a code, one sentence, and facts that a program can read.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::MESSAGE_BYTES_MAX;
use crate::{Code, Executed, Object};

/// The code of a fault: one of ours, or a well-formed one that a provider made up.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FaultCode {
    /// One of Wharf's own codes.
    Known(Code),
    /// A provider's own code, dotted and well-formed.
    Provider(String),
}

impl FaultCode {
    /// Takes a provider's code if it is well-formed: lower-case words joined by dots.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(code) = Code::parse(text) {
            return Some(Self::Known(code));
        }
        let word = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        let well_formed = text.len() <= 100 && text.contains('.') && text.split('.').all(word);
        well_formed.then(|| Self::Provider(text.to_owned()))
    }

    /// The code as peers see it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(code) => code.as_str(),
            Self::Provider(text) => text,
        }
    }
}

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Code> for FaultCode {
    fn from(code: Code) -> Self {
        Self::Known(code)
    }
}

impl From<FaultCode> for String {
    fn from(code: FaultCode) -> String {
        code.as_str().to_owned()
    }
}

impl TryFrom<String> for FaultCode {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is not a dotted error code"))
    }
}

/// An error that may be shown to whoever asked. It never carries secrets or payloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Fault {
    /// What went wrong, for programs.
    pub code: FaultCode,
    /// What went wrong, for people: one sentence.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// Facts about the error.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub details: Object,
}

impl Fault {
    /// A field, argument or parameter of a request cannot be used.
    #[must_use]
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::new(Code::RequestInvalid, message).with("field", field)
    }

    /// A fault with one of our own codes.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self::with_code(code.into(), message, code.is_retryable())
    }

    /// A fault with any code.
    #[must_use]
    pub fn with_code(code: FaultCode, message: impl Into<String>, retryable: bool) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE_BYTES_MAX {
            let end = (0..=MESSAGE_BYTES_MAX).rev().find(|&at| message.is_char_boundary(at));
            message.truncate(end.unwrap_or(0));
        }
        Self { code, message, retryable, details: Object::new() }
    }

    /// The same fault with one more fact.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// The same fault, saying whether the attempt acted on the world.
    #[must_use]
    pub fn executed(self, executed: Executed) -> Self {
        self.with("executed", executed.as_str())
    }

    /// Whether the fault has this code.
    #[must_use]
    pub fn is(&self, code: Code) -> bool {
        self.code == FaultCode::Known(code)
    }

    /// The HTTP status that goes with the fault when it refuses a request.
    #[must_use]
    pub fn http_status(&self) -> u16 {
        match &self.code {
            FaultCode::Known(code) => code.http_status(),
            FaultCode::Provider(_) => 502,
        }
    }
}

/// Somebody else's text as it may stand in a message or a log: without control characters, and so
/// many characters at most.
#[must_use]
pub fn shown(text: &str, chars_max: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_providers_code_passes_only_when_well_formed() {
        assert!(matches!(FaultCode::parse("tool.timeout"), Some(FaultCode::Known(_))));
        assert!(matches!(FaultCode::parse("acme.no_stock"), Some(FaultCode::Provider(_))));
        for bad in ["", "plain", "a.", ".b", "A.b", "a b.c", &format!("a.{}", "x".repeat(200))] {
            assert_eq!(FaultCode::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let fault = Fault::new(Code::ToolFailed, "ä".repeat(MESSAGE_BYTES_MAX));
        assert!(fault.message.len() <= MESSAGE_BYTES_MAX);
        assert!(fault.message.chars().all(|c| c == 'ä'));
    }

    #[test]
    fn text_of_others_is_shown_without_control_characters_and_cut() {
        assert_eq!(shown("a\u{1b}[31mb\nc\u{7f}d", 8), "a[31mbcd");
        assert_eq!(shown("ääää", 3), "äää");
    }
}
