//! Results that have no file of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Object;

use super::{
    McpContent, McpImplementation, McpMeta, McpMs, McpOpen, McpResourceContents, McpRole, McpRoot,
    McpServerCapabilities,
};

/// What kind of result a modern server gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum McpResultType {
    /// The one that was asked for.
    Complete,
    /// More has to be known first ([`McpInputRequired`]).
    InputRequired,
    /// It became a task of the extension ([`super::McpTask`]).
    Task,
    /// None that is known; the result cannot be used.
    Other(String),
}

impl McpResultType {
    /// Under which field results say it.
    pub const FIELD: &'static str = "resultType";

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Complete => "complete",
            Self::InputRequired => "input_required",
            Self::Task => "task",
            Self::Other(other) => other,
        }
    }

    /// What a result says of itself; one that says nothing is complete.
    #[must_use]
    pub fn of(result: &Object) -> Self {
        match result.get(Self::FIELD) {
            None => Self::Complete,
            Some(Value::String(kind)) => Self::from(kind.clone()),
            Some(_) => Self::Other(String::new()),
        }
    }
}

impl From<String> for McpResultType {
    fn from(text: String) -> Self {
        match text.as_str() {
            "complete" => Self::Complete,
            "input_required" => Self::InputRequired,
            "task" => Self::Task,
            _ => Self::Other(text),
        }
    }
}

impl From<McpResultType> for String {
    fn from(kind: McpResultType) -> Self {
        kind.as_str().to_owned()
    }
}

/// For whom a result may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpCacheScope {
    /// For everybody.
    Public,
    /// For whoever asked.
    Private,
}

/// Result of what only needs to be known to have arrived: `ping`, `resources/subscribe`,
/// `logging/setLevel`, modern `tasks/update` and `tasks/cancel`, the end of `subscriptions/listen`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpEmptyResult {
    /// That it is complete; 2026-07-28.
    pub result_type: Option<McpResultType>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// Result of `initialize`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpInitializeResult {
    /// The version that is spoken from now on.
    pub protocol_version: String,
    /// What the server can do.
    pub capabilities: McpOpen<McpServerCapabilities>,
    /// Who it is.
    pub server_info: McpOpen<McpImplementation>,
    /// How it is to be used, for models.
    pub instructions: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// Result of `server/discover`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpDiscoverResult {
    /// Versions that are spoken without a handshake.
    pub supported_versions: Vec<String>,
    /// What the server can do.
    pub capabilities: McpOpen<McpServerCapabilities>,
    /// How it is to be used, for models.
    pub instructions: Option<String>,
    /// How long this is good.
    pub ttl_ms: Option<McpMs>,
    /// For whom it is good.
    pub cache_scope: Option<McpCacheScope>,
    /// Always that it is complete.
    pub result_type: Option<McpResultType>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// Result of `tools/call`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpCallResult {
    /// What the tool says. Some servers leave it out beside structured content.
    #[serde(default)]
    pub content: Vec<McpContent>,
    /// The same as a value: an object before 2026-07-28, anything since.
    pub structured_content: Option<Value>,
    /// Whether the tool failed.
    pub is_error: Option<bool>,
    /// That it is complete; 2026-07-28.
    pub result_type: Option<McpResultType>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// Result of a modern request that needs to know more first.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpInputRequired {
    /// That more has to be known.
    pub result_type: Option<McpResultType>,
    /// What the client is asked, by keys that its answers carry.
    pub input_requests: Option<BTreeMap<String, McpOpen<McpInputRequest>>>,
    /// What the client gives along when it repeats the request, unread.
    pub request_state: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// A request inside of a result: `elicitation/create`, `sampling/createMessage` or `roots/list`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpInputRequest {
    /// What is asked.
    pub method: String,
    /// The details; [`super::McpRequest::read`] reads them.
    pub params: Option<Object>,
}

/// Result of `resources/read`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpReadResult {
    /// What the resource contains, in parts.
    pub contents: Vec<McpOpen<McpResourceContents>>,
    /// How long this is good; 2026-07-28.
    pub ttl_ms: Option<McpMs>,
    /// For whom it is good; 2026-07-28.
    pub cache_scope: Option<McpCacheScope>,
    /// That it is complete; 2026-07-28.
    pub result_type: Option<McpResultType>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// Result of `prompts/get`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpPromptResult {
    /// What the prompt is for.
    pub description: Option<String>,
    /// What it says.
    pub messages: Vec<McpOpen<McpPromptMessage>>,
    /// That it is complete; 2026-07-28.
    pub result_type: Option<McpResultType>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpPromptMessage {
    /// Who says it.
    pub role: McpRole,
    /// What is said.
    pub content: McpContent,
}

/// Result of `completion/complete`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpCompleteResult {
    /// What the argument may be.
    pub completion: McpOpen<McpCompletion>,
    /// That it is complete; 2026-07-28.
    pub result_type: Option<McpResultType>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// What an argument may be.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpCompletion {
    /// At most 100 values.
    pub values: Vec<String>,
    /// How many there are.
    pub total: Option<Number>,
    /// Whether there are more.
    pub has_more: Option<bool>,
}

/// Result of `roots/list`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpRootsResult {
    /// The folders.
    pub roots: Vec<McpOpen<McpRoot>>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}
