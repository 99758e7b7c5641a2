//! Parameters of requests and notifications that have no file of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Object;

use super::{
    McpClientCapabilities, McpId, McpImplementation, McpLogLevel, McpMeta, McpMs, McpOpen,
};

/// None of their own: `ping`, `server/discover`, `roots/list`, notices that a list changed.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpNoParams {
    /// What travels beside them.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// `initialize`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpInitialize {
    /// The version that the client wants.
    pub protocol_version: String,
    /// What it can do.
    pub capabilities: McpOpen<McpClientCapabilities>,
    /// Who it is.
    pub client_info: McpOpen<McpImplementation>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// Any list.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpCursor {
    /// Where to begin; absent for the first page.
    pub cursor: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// `tools/call`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpToolCall {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Option<Object>,
    /// That it is to be a task, and how long that is kept; 2025-11-25.
    pub task: Option<McpOpen<McpTaskWish>>,
    /// Answers to what an earlier attempt asked; 2026-07-28.
    pub input_responses: Option<BTreeMap<String, Object>>,
    /// What the earlier attempt gave along; 2026-07-28.
    pub request_state: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// That a request is to be a task; 2025-11-25.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpTaskWish {
    /// How long it is to be kept.
    pub ttl: Option<McpMs>,
}

/// `resources/read`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceRead {
    /// The resource.
    pub uri: String,
    /// Answers to what an earlier attempt asked; 2026-07-28.
    pub input_responses: Option<BTreeMap<String, Object>>,
    /// What the earlier attempt gave along; 2026-07-28.
    pub request_state: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// `resources/subscribe`, `resources/unsubscribe`, `notifications/resources/updated`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpResourceUri {
    /// The resource.
    pub uri: String,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// `prompts/get`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpPromptGet {
    /// The prompt.
    pub name: String,
    /// Its arguments.
    pub arguments: Option<BTreeMap<String, String>>,
    /// Answers to what an earlier attempt asked; 2026-07-28.
    pub input_responses: Option<BTreeMap<String, Object>>,
    /// What the earlier attempt gave along; 2026-07-28.
    pub request_state: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// `completion/complete`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpComplete {
    /// What the argument belongs to.
    #[serde(rename = "ref")]
    pub reference: McpOpen<McpCompleteRef>,
    /// The argument that is being written.
    pub argument: McpOpen<McpCompleteArgument>,
    /// Those that are written already.
    pub context: Option<McpOpen<McpCompleteContext>>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// A prompt by name (`ref/prompt`), or a template by address (`ref/resource`).
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpCompleteRef {
    /// Which of the two.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of the prompt.
    pub name: Option<String>,
    /// Of the template.
    pub uri: Option<String>,
}

/// An argument that is being written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpCompleteArgument {
    /// Its name.
    pub name: String,
    /// What is there of it.
    pub value: String,
}

/// Arguments that are written already.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpCompleteContext {
    /// By name.
    pub arguments: Option<BTreeMap<String, String>>,
}

/// `logging/setLevel`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpSetLevel {
    /// From which level on.
    pub level: McpLogLevel,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// `subscriptions/listen`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpListen {
    /// What is to be told.
    pub notifications: McpOpen<McpFilter>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// `notifications/subscriptions/acknowledged`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpListened {
    /// What will be told of what was wanted.
    pub notifications: McpOpen<McpFilter>,
    /// The request that is meant.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// What is to be told.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpFilter {
    /// That the tools changed.
    pub tools_list_changed: Option<bool>,
    /// That the prompts changed.
    pub prompts_list_changed: Option<bool>,
    /// That the resources changed.
    pub resources_list_changed: Option<bool>,
    /// That one of these resources changed.
    pub resource_subscriptions: Option<Vec<String>>,
    /// That one of these tasks changed; the Tasks extension.
    pub task_ids: Option<Vec<String>>,
}

/// `notifications/cancelled`
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpCanceled {
    /// The request; absent only in 2025-11-25.
    pub request_id: Option<McpId>,
    /// Why, for people.
    pub reason: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// `notifications/progress`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpProgress {
    /// What the request gave along.
    pub progress_token: McpId,
    /// How far it is; it only rises.
    pub progress: Number,
    /// How far it goes.
    pub total: Option<Number>,
    /// What is being done.
    pub message: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// `notifications/message`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpLog {
    /// How urgent it is.
    pub level: McpLogLevel,
    /// Who says it.
    pub logger: Option<String>,
    /// What it says.
    pub data: Value,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// `notifications/elicitation/complete`; 2025-11-25
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpElicitationDone {
    /// What was asked.
    pub elicitation_id: String,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}
