//! One-way messages to people; needs the capability `notify`.

use serde::{Deserialize, Serialize};

use crate::agent_v1::CallId;

/// `agent.notice`: tell something, without an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The call it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// How important it is.
    pub level: NoticeLevel,
    /// What is told.
    pub text: String,
}

/// How important a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// For authors.
    Debug,
    /// Good to know.
    Info,
    /// Something may go wrong.
    #[serde(alias = "warning")]
    Warn,
    /// Something went wrong.
    Error,
}
