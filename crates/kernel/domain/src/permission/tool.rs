//! Patterns of tools: `provider/name`, each part with `*` for any characters; `*` for all.

use std::fmt;

use serde::{Deserialize, Serialize};
use wharf_vocab::ToolId;

use super::{PermissionError, glob};

/// A pattern of tools, e.g. `llm/*`, `*/echo`, `dev.example.hello/echo`, `*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolPattern(String);

impl ToolPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PermissionError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-*@/".contains(c);
        let shaped = text == "*" || text.split('/').filter(|part| !part.is_empty()).count() == 2;
        if !shaped || !text.chars().all(allowed) || text.matches('/').count() > 1 {
            return Err(PermissionError("does not name tools as provider/name".to_owned()));
        }
        Ok(Self(if text == "*" { "*/*".to_owned() } else { text.to_owned() }))
    }

    /// The pattern that fits every tool.
    #[must_use]
    pub fn any() -> Self {
        Self("*/*".to_owned())
    }

    /// Whether it fits a tool.
    #[must_use]
    pub fn matches(&self, tool: &ToolId) -> bool {
        glob::matches(&self.0, tool.as_str(), '/')
    }

    /// Whether every tool that `narrow` fits is fit by this one too.
    #[must_use]
    pub fn covers(&self, narrow: &Self) -> bool {
        self.0 == "*/*" || glob::covers(&self.0, &narrow.0, '/')
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ToolPattern> for String {
    fn from(pattern: ToolPattern) -> String {
        pattern.0
    }
}

impl TryFrom<String> for ToolPattern {
    type Error = PermissionError;
    fn try_from(text: String) -> Result<Self, PermissionError> {
        Self::parse(&text)
    }
}
