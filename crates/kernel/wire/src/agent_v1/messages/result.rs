//! The end of a call.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::Object;

use crate::agent_v1::{CallId, ErrorObject, Rfc3339};

/// `agent.tool.result`: the single end of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call_id: CallId,
    /// How it ended.
    pub status: CallStatus,
    /// What it gave. Only an object is a valid output; that is judged when the call ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// When work on it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Rfc3339>,
    /// When work on it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Rfc3339>,
    /// Figures such as `duration_ms` and `cost_micro`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Object>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// Well.
    Succeeded,
    /// With an error.
    Failed,
    /// By a cancel.
    Canceled,
}
