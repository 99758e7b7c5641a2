//! What an agent says to people while it works: questions, which need the capability `ask`, and
//! notices, which need `notify`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;

use crate::agent_v1::{CallId, QuestionId};

/// `agent.question.ask`: ask a person or a seat for information.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionAsk {
    /// The agent's id for the question.
    pub ask_id: QuestionId,
    /// The call that waits for the answer.
    pub call_id: CallId,
    /// The question, in a line.
    pub title: String,
    /// The JSON Schema of the answer.
    pub schema: Value,
    /// How long the question stays open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// `core.question.answer`: the single answer to a question.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionAnswer {
    /// The agent's id for the question.
    pub ask_id: QuestionId,
    /// How it was answered.
    pub status: AnswerStatus,
    /// The answer; `null` is an answer too.
    #[serde(default, deserialize_with = "crate::present::present")]
    pub value: Option<Value>,
    /// What was said instead of an answer.
    pub text: Option<String>,
}

/// How a question was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerStatus {
    /// With a value.
    Answered,
    /// Whoever was asked does not want to answer.
    Declined,
    /// The question was withdrawn.
    Cancelled,
    /// Nobody may be asked this.
    Denied,
    /// Whoever was asked said something else, in `text`.
    OffScript,
    /// Nobody answered in time.
    Expired,
}

/// `agent.notice`: tell something, without an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentNotice {
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
