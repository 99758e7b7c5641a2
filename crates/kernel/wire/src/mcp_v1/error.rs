//! Errors as messages carry them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{McpElicit, McpEra, McpOpen, McpRevision};

/// Numbers of errors. Those from -32000 to -32019 were given out without a register: of them only
/// the one here means anything, and only when it is read.
pub mod code {
    /// It is no JSON.
    pub const PARSE: i64 = -32700;
    /// It is JSON and no message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not fit.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something went wrong inside.
    pub const INTERNAL: i64 = -32603;
    /// There is no such resource, before 2026-07-28.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Headers and body differ, or a header is missing.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client did not declare what is needed.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The version is not spoken.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// A person has to open an address first; 2025-11-25 only.
    pub const URL_ELICITATION: i64 = -32042;

    /// Whether only a modern server answers so.
    #[must_use]
    pub fn is_modern(code: i64) -> bool {
        matches!(code, HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION)
    }
}

/// What a request was answered with instead of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct McpError {
    /// What went wrong, for programs.
    pub code: i64,
    /// What went wrong, for people.
    pub message: String,
    /// Facts about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl McpError {
    /// An error without facts.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Parameters that do not fit.
    #[must_use]
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// There is no such method, at least not here and now.
    #[must_use]
    pub fn method_not_found() -> Self {
        Self::new(code::METHOD_NOT_FOUND, "There is no such method.")
    }

    /// A version that is not spoken. Only modern requests are told so, and those of a legacy client
    /// begin with a handshake: so what is listed is what `server/discover` lists.
    #[must_use]
    pub fn unsupported_version(requested: &str) -> Self {
        let modern = |revision: &McpRevision| revision.era() == McpEra::Modern;
        let supported = McpRevision::SUPPORTED.into_iter().filter(modern);
        let supported: Vec<_> = supported.map(McpRevision::as_str).collect();
        let data = json!({"supported": supported, "requested": requested});
        let message = "The protocol version is not supported.";
        Self { data: Some(data), ..Self::new(code::UNSUPPORTED_VERSION, message) }
    }

    /// The versions that an error of this kind says are spoken.
    #[must_use]
    pub fn supported_versions(&self) -> Vec<McpRevision> {
        let listed = self.data.as_ref().and_then(|data| data.get("supported")?.as_array());
        let names = listed.into_iter().flatten().filter_map(Value::as_str);
        names.filter_map(McpRevision::parse).collect()
    }

    /// The client did not declare what is needed; `required` is a part of capabilities.
    #[must_use]
    pub fn missing_capability(required: &Value) -> Self {
        let message = "The client does not declare a capability that this needs.";
        let data = json!({"requiredCapabilities": required});
        Self { data: Some(data), ..Self::new(code::MISSING_CAPABILITY, message) }
    }

    /// The addresses that an error of this kind names.
    #[must_use]
    pub fn url_elicitations(&self) -> Vec<McpOpen<McpElicit>> {
        let listed = self.data.as_ref().and_then(|data| data.get("elicitations"));
        listed.and_then(|list| Deserialize::deserialize(list).ok()).unwrap_or_default()
    }
}
