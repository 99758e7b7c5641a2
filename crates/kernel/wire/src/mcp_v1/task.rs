//! Tasks: those of 2025-11-25, which a client asks for, and those of the extension, which a server
//! decides on. They differ in the names of their times and in where their result is to be had.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Object;

use super::{McpError, McpInputRequest, McpMeta, McpOpen, McpResultType};

/// Milliseconds; `5000.0` is 5000.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct McpMs(pub u64);

impl<'de> Deserialize<'de> for McpMs {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and within bounds"
    )]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Number::deserialize(deserializer)?;
        let whole = |ms: f64| ms.fract() == 0.0 && (0.0..9e15).contains(&ms);
        match (number.as_u64(), number.as_f64()) {
            (Some(ms), _) => Ok(Self(ms)),
            (None, Some(ms)) if whole(ms) => Ok(Self(ms as u64)),
            _ => Err(D::Error::custom("a time must be a whole number of milliseconds")),
        }
    }
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpTaskStatus {
    /// It is under way.
    Working,
    /// It waits for the client.
    InputRequired,
    /// It has a result.
    Completed,
    /// It has an error.
    Failed,
    /// It was called off.
    Cancelled,
}

impl McpTaskStatus {
    /// Whether nothing follows.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task of 2025-11-25: result of `tasks/get` and `tasks/cancel`, parameters of
/// `notifications/tasks/status`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpTaskOf11 {
    /// Names it.
    pub task_id: String,
    /// Where it is.
    pub status: McpTaskStatus,
    /// More about that, for people.
    pub status_message: Option<String>,
    /// When it began.
    pub created_at: String,
    /// When it last changed.
    pub last_updated_at: String,
    /// How long it is kept from its beginning on.
    pub ttl: McpTaskTtl,
    /// How often to ask.
    pub poll_interval: Option<McpMs>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// How long a task is kept. It is always said: `null` is for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct McpTaskTtl(pub Option<McpMs>);

/// Answer of 2025-11-25 to a request that became a task.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpTaskBegun {
    /// The task.
    pub task: McpOpen<McpTaskOf11>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// A page of `tasks/list`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpTasksPage {
    /// The tasks.
    pub tasks: Vec<McpOpen<McpTaskOf11>>,
    /// Where the next page begins; absent on the last.
    pub next_cursor: Option<String>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// A task of the extension: a result instead of another, result of `tasks/get`, parameters of
/// `notifications/tasks`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpTask {
    /// `task` where it stands for another result, `complete` where it was asked for.
    pub result_type: Option<McpResultType>,
    /// Names it.
    pub task_id: String,
    /// Where it is.
    pub status: McpTaskStatus,
    /// More about that, for people.
    pub status_message: Option<String>,
    /// When it began.
    pub created_at: String,
    /// When it last changed.
    pub last_updated_at: String,
    /// How long it is kept from its beginning on.
    pub ttl_ms: McpTaskTtl,
    /// How often to ask.
    pub poll_interval_ms: Option<McpMs>,
    /// What the client is asked, while it waits for it.
    pub input_requests: Option<BTreeMap<String, McpOpen<McpInputRequest>>>,
    /// What came of it.
    pub result: Option<Object>,
    /// What went wrong.
    pub error: Option<McpError>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// Parameters of `tasks/get`, `tasks/result` and `tasks/cancel`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpTaskRef {
    /// The task.
    pub task_id: String,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}

/// Parameters of `tasks/update`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpTaskUpdate {
    /// The task.
    pub task_id: String,
    /// Answers to what it asked.
    pub input_responses: BTreeMap<String, Object>,
    /// What travels beside it.
    #[serde(rename = "_meta")]
    pub meta: Option<McpMeta>,
}
