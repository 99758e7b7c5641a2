//! Canceling a call.

use serde::{Deserialize, Serialize};

use crate::agent_v1::CallId;

/// `core.tool.cancel`: stop executing a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCancel {
    /// The call.
    pub call_id: CallId,
    /// Why, free of secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long it may take to stop, counted from receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
