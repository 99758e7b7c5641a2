//! Asks: what runs wait for, and how they are decided.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wharf_vocab::{
    AllowScope, AskId, AskKind, DateTime, Decision, GrantId, NoAnswer, RunId, ToolId, WorldId,
};

/// An open ask as `GET /v1/inbox` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ask {
    /// The ask's id.
    pub ask_id: AskId,
    /// `question` or `approval`.
    pub kind: AskKind,
    /// The run that waits.
    pub run_id: RunId,
    /// The tool of that run.
    pub tool: ToolId,
    /// The world of that run.
    pub world: WorldId,
    /// What is asked, in one line.
    pub title: String,
    /// What the decision is about: what a provider proposes, as an object, or why the core asks,
    /// as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
    /// JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Digest of the arguments an approval is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_digest: Option<String>,
    /// Hash of the tool's definition an approval is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_hash: Option<String>,
    /// The files an approval is for: these and no others are read, whatever is written to their
    /// paths meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<AskFile>,
    /// The grant whose run it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<GrantId>,
    /// Who may decide: `person`, `seat:S-…` or `any`.
    pub audience: String,
    /// When the ask expires.
    pub deadline: DateTime,
    /// When it was raised.
    pub created_at: DateTime,
}

/// A file that an approval is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskFile {
    /// The input that it is.
    pub name: String,
    /// Its path in the world.
    pub path: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their BLAKE3 hash, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b3: Option<String>,
    /// What kind of data it is.
    pub media_type: String,
}

/// `POST /v1/questions/{ask_id}/answer`: a value, or a status when there is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerQuestion {
    /// The answer, fitting the question's schema; null is an answer too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<Value>,
    /// `declined`, `cancelled` or `off_script`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NoAnswer>,
    /// Free text that goes with `off_script`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// `POST /v1/approvals/{ask_id}/decide`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideApproval {
    /// `allow` or `deny`.
    pub decision: Decision,
    /// How far an allowance reaches: `run`, only this run (the default), or `parent`, also later
    /// runs of the same tool and caller within the same parent run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<AllowScope>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Reads a field that is there, so that null counts as a value and only absence as none.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}
