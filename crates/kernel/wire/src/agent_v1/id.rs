//! Ids as they stand on the wire.
//!
//! A peer may write its ids as it likes, so they are wider than the ids of the vocabulary: any
//! text of 1 to 256 bytes without control characters. The bound keeps what a session remembers
//! about a peer small.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::limits::WIRE_ID_BYTES_MAX;

/// Why a text is not an id of this wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id has 1 to {WIRE_ID_BYTES_MAX} bytes and no control characters")]
pub struct WireIdError;

fn is_wire_id(text: &str) -> bool {
    (1..=WIRE_ID_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

macro_rules! wire_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and makes an id of it.
            pub fn new(text: impl AsRef<str>) -> Result<Self, WireIdError> {
                let text = text.as_ref();
                if is_wire_id(text) { Ok(Self(text.into())) } else { Err(WireIdError) }
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = WireIdError;
            fn try_from(text: String) -> Result<Self, WireIdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }
    };
}

wire_id!(
    /// The id of one message, unique per sender in a session.
    MessageId
);
wire_id!(
    /// The id of one call of a tool; Wharf's name for it is the attempt's id.
    CallId
);
wire_id!(
    /// The id of a call that an agent makes through the core.
    InvokeId
);
wire_id!(
    /// The id of a question that an agent asks; the field is called `ask_id`.
    QuestionId
);
wire_id!(
    /// The id of a session.
    SessionId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_text_without_control_characters() {
        for good in ["1", "4c3c0c7b-4c9a", "call:7 β", &"x".repeat(256)] {
            assert!(MessageId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a\nb", "a\u{0}", &"x".repeat(257)] {
            assert_eq!(MessageId::new(bad), Err(WireIdError), "{bad}");
        }
    }
}
