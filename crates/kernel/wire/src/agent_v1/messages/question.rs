//! Questions that an agent asks while it works on a call; needs the capability `ask`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionAnswer {
    /// The agent's id for the question.
    pub ask_id: QuestionId,
    /// How it was answered.
    pub status: AnswerStatus,
    /// The answer; `null` is an answer too.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What was said instead of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

/// Keeps a value that is there apart from one that is not, also when it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
