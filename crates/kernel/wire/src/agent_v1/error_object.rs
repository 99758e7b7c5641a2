//! The error object that every message may carry.

use serde::{Deserialize, Serialize};
use wharf_vocab::Object;

/// What went wrong, free of secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// A stable code for programs.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// Facts for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Object>,
    /// Whether the same request may succeed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The part of the sender that failed.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Fields for debugging. Wharf reads them and never writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug: Option<Object>,
}
