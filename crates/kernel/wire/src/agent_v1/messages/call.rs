//! The call of a tool, how it is canceled and how it ends.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{Mode, Object};

use crate::agent_v1::{CallId, ErrorObject, PartyKind, Rfc3339};

/// `core.tool.call`: execute a tool.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id.
    pub call_id: CallId,
    /// The tool.
    pub tool_id: String,
    /// The tool's arguments. Only an object can be executed; anything else is answered as an
    /// invalid input, so that the call still ends.
    pub input: Value,
    /// How long it may take, counted from receipt.
    pub timeout_ms: Option<u64>,
    /// The same key with the same input is executed once.
    pub idempotency_key: Option<String>,
    /// Who calls: for display, never for authorisation.
    pub caller: Option<Caller>,
    /// What surrounds the call; free of secrets.
    pub context: Option<CallContext>,
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// What kind of party it is.
    #[serde(rename = "type")]
    pub kind: PartyKind,
    /// Its id.
    pub id: String,
}

/// What surrounds a call.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallContext {
    /// Whether the call is real.
    pub mode: Option<Mode>,
    /// The root of the project that the call is about.
    pub project_root: Option<String>,
    /// Files that the call is about.
    pub resource_paths: Option<Vec<String>>,
    /// Hints for display.
    pub ui: Option<Object>,
    /// The approval the call runs under. It is the call's `causation_id` too, which without an
    /// approval names the run that made the call.
    pub approval: Option<String>,
    /// Names of inputs that are references: their values are addresses, or paths of files that
    /// were copied for the call. Without it no input is one, whatever its text looks like.
    pub refs: Option<Vec<String>>,
    /// Where a fenced agent finds input files.
    pub inputs_dir: Option<String>,
    /// Where a fenced agent puts output files.
    pub outputs_dir: Option<String>,
    /// Where each output goes: an address or a path by the output's key.
    pub outputs: Option<BTreeMap<String, String>>,
}

/// `core.tool.cancel`: stop executing a tool.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCancel {
    /// The call.
    pub call_id: CallId,
    /// Why, free of secrets.
    pub reason: Option<String>,
    /// How long it may take to stop, counted from receipt.
    pub deadline_ms: Option<u64>,
}

/// `agent.tool.cancel_ack`: the cancel was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelAck {
    /// The call.
    pub call_id: CallId,
    /// Whether there is something to cancel.
    pub accepted: bool,
    /// A remark, free of secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// `agent.tool.result`: the single end of a call.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call_id: CallId,
    /// How it ended.
    pub status: CallStatus,
    /// What it gave. Only an object is a valid output; that is judged when the call ends.
    pub output: Option<Value>,
    /// Why it did not succeed.
    pub error: Option<ErrorObject>,
    /// When work on it began.
    pub started_at: Option<Rfc3339>,
    /// When work on it ended.
    pub finished_at: Option<Rfc3339>,
    /// Figures such as `duration_ms` and `cost_micro`.
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
