//! From the words of programs and of the SDK to those of the core.

use std::fmt::Display;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_domain::Level;
use wharf_engine::check_schema;
use wharf_sdk::builtin::{self, Question};
use wharf_vocab::{Code, Fault, Object, ProviderId, ToolId, WorldId};

/// Longest title of a question; what is longer stands beside it.
const TITLE_CHARS_MAX: usize = 500;

pub(crate) fn world_id(world: &str) -> Result<WorldId, Fault> {
    WorldId::new(world).map_err(|error| invalid(&error))
}

pub(crate) fn tool_id(tool: &str) -> Result<ToolId, Fault> {
    ToolId::new(tool).map_err(|error| invalid(&error))
}

pub(crate) fn provider_id(provider: &str) -> Result<ProviderId, Fault> {
    ProviderId::new(provider).map_err(|error| invalid(&error))
}

pub(crate) fn invalid(error: &impl Display) -> Fault {
    Fault::new(Code::RequestInvalid, format!("{error}."))
}

/// A time as the core counts it; there is none that is no time at all.
pub(crate) fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

pub(crate) fn level_of(level: builtin::Level) -> Level {
    match level {
        builtin::Level::Debug => Level::Debug,
        builtin::Level::Info => Level::Info,
        builtin::Level::Warning => Level::Warn,
        builtin::Level::Error => Level::Error,
    }
}

/// A question as the core asks it.
pub(crate) struct CoreQuestion {
    pub(crate) title: String,
    pub(crate) schema: Value,
    pub(crate) detail: Option<Value>,
}

impl CoreQuestion {
    /// A schema that is none is shown and not checked.
    pub(crate) fn of(question: Question) -> Self {
        let Question { word, message, schema, meta } = question;
        let usable = schema.is_object() && check_schema(&schema).is_ok();
        let title: String = message.chars().take(TITLE_CHARS_MAX).collect();
        let mut detail = Object::new();
        if title.len() < message.len() {
            detail.insert("message".to_owned(), message.into());
        }
        if !usable && !schema.is_null() {
            detail.insert("schema".to_owned(), schema.clone());
        }
        if !meta.is_empty() {
            detail.insert("meta".to_owned(), meta.into());
        }
        if word != "form" {
            detail.insert("type".to_owned(), word.into());
        }
        let detail = (!detail.is_empty()).then_some(Value::Object(detail));
        Self { title, schema: if usable { schema } else { json!({}) }, detail }
    }
}
