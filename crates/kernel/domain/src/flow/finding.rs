//! What is wrong with a document, and where.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingLevel {
    /// The document is not taken.
    Error,
    /// It is taken, but something may be wrong.
    Warning,
}

impl FindingLevel {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// What is wrong with a document, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowFinding {
    /// The place in the document, such as `steps[3].inputs.text`; empty for all of it.
    pub place: String,
    /// How much it matters.
    pub level: FindingLevel,
    /// What is wrong, in a sentence.
    pub text: String,
}

impl FlowFinding {
    /// Something because of which the document is not taken.
    pub fn error(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), level: FindingLevel::Error, text: text.into() }
    }

    /// Something that may be wrong.
    pub fn warning(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), level: FindingLevel::Warning, text: text.into() }
    }

    /// Whether the document is not taken because of it.
    pub fn is_error(&self) -> bool {
        self.level == FindingLevel::Error
    }
}

impl fmt::Display for FlowFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            return f.write_str(&self.text);
        }
        write!(f, "{}: {}", self.place, self.text)
    }
}
