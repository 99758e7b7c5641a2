//! Patterns of tools: `provider/name`, each part with `*` for any characters; `*` for all.

use std::fmt;

use serde::{Deserialize, Serialize};
use wharf_vocab::ToolId;

use super::glob::Pattern;
use super::{PERMISSION_BYTES_MAX, PermissionError};

/// A pattern of tools, e.g. `llm/*`, `*/echo`, `dev.example.hello/echo`, `*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolPattern {
    text: String,
    pattern: Pattern,
}

impl ToolPattern {
    /// Reads a pattern. `*` alone is short for `*/*`.
    pub fn parse(text: &str) -> Result<Self, PermissionError> {
        let text = if text == "*" { "*/*" } else { text };
        if text.len() > PERMISSION_BYTES_MAX {
            return Err(PermissionError("is longer than 300 bytes".to_owned()));
        }
        let shaped = text.split_once('/').is_some_and(|(provider, name)| {
            let (name, version) = name.split_once('@').unwrap_or((name, "*"));
            let digits = |version: &str| version.bytes().all(|b| b.is_ascii_digit() || b == b'*');
            is_part(provider) && is_part(name) && !version.is_empty() && digits(version)
        });
        if !shaped {
            return Err(PermissionError("does not name tools as provider/name".to_owned()));
        }
        Ok(Self { text: text.to_owned(), pattern: Pattern::words(text) })
    }

    /// The pattern that fits every tool.
    pub fn any() -> Self {
        Self { text: "*/*".to_owned(), pattern: Pattern::words("*/*") }
    }

    /// Whether it fits a tool.
    pub fn matches(&self, tool: &ToolId) -> bool {
        self.pattern.matches(tool.as_str())
    }

    /// Whether every tool that `narrow` fits is fit by this one too.
    pub fn covers(&self, narrow: &Self) -> bool {
        self.pattern.covers(&narrow.pattern)
    }

    /// What it lets its holder do, for people.
    pub(super) fn describe(&self) -> String {
        let (provider, name) = self.text.split_once('/').unwrap_or((&self.text, "*"));
        let (some_provider, some_name) = (provider.contains('*'), name.contains('*'));
        match (provider, name) {
            ("*", "*") => "Call any tool".to_owned(),
            (_, "*") if !some_provider => format!("Call any tool of {provider}"),
            ("*", _) if !some_name => format!("Call the tool {name} of any provider"),
            _ if some_provider || some_name => format!("Call tools that match {}", self.text),
            _ => format!("Call the tool {}", self.text),
        }
    }
}

/// Whether it is the part of an id with stars in it.
fn is_part(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '*')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-*".contains(&b))
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<ToolPattern> for String {
    fn from(pattern: ToolPattern) -> String {
        pattern.text
    }
}

impl TryFrom<String> for ToolPattern {
    type Error = PermissionError;
    fn try_from(text: String) -> Result<Self, PermissionError> {
        Self::parse(&text)
    }
}
