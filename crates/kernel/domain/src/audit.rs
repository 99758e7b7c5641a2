//! Audit records: who did what to what, with ids and facts, never payloads.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::Object;
pub use wharf_vocab::Severity;

/// One record of the audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// What happened, such as `tool.call_completed`.
    pub event: String,
    /// How much it matters.
    pub severity: Severity,
    /// Who did it: `grant:…`, `provider:…` or `core`.
    pub actor: String,
    /// What it was done to: `run:…`, `ask:…`, `world:…`, `route:…`.
    pub subject: String,
    /// Ids and facts.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub facts: Object,
}

impl AuditRecord {
    /// A record of ordinary work.
    #[must_use]
    pub fn new(event: &str, actor: impl Into<String>, subject: impl Into<String>) -> Self {
        Self {
            event: event.to_owned(),
            severity: Severity::Info,
            actor: actor.into(),
            subject: subject.into(),
            facts: Object::new(),
        }
    }

    /// The same record with another severity.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The same record with one more fact.
    #[must_use]
    pub fn fact(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(key.to_owned(), value.into());
        self
    }
}
