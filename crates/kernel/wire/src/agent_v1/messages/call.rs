//! The call of a tool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::{Mode, Object};

use crate::agent_v1::{CallId, PartyKind};

/// `core.tool.call`: execute a tool.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The same key with the same input is executed once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Who calls: for display, never for authorisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// What surrounds the call; free of secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallContext {
    /// Whether the call is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The root of the project that the call is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_root: Option<String>,
    /// Files that the call is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_paths: Option<Vec<String>>,
    /// Hints for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<Object>,
    /// The approval the call runs under. It is the call's `causation_id` too, which without an
    /// approval names the run that made the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// Names of inputs that are references: their values are addresses, or paths of files that
    /// were copied for the call. Without it no input is one, whatever its text looks like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refs: Option<Vec<String>>,
    /// Where a fenced agent finds input files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs_dir: Option<String>,
    /// Where a fenced agent puts output files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs_dir: Option<String>,
    /// Where each output goes: an address or a path by the output's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<BTreeMap<String, String>>,
}
