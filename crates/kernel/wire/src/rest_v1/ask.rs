//! Asks: what runs wait for, and how they are decided.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{
    AllowScope, AskId, AskKind, AskOutcome, DateTime, Decision, GrantId, NoAnswer, Object, RunId,
    RunStatus, ToolId, WorldId,
};

use super::{AgentPermission, KeptValues, ToolDefinition};

/// An open ask as `GET /v1/inbox` shows it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ask {
    /// The ask's id.
    pub ask_id: AskId,
    /// Whether information or permission is asked for.
    pub kind: AskKind,
    /// The run that waits.
    pub run_id: RunId,
    /// The tool of that run.
    pub tool: ToolId,
    /// The world of that run.
    pub world: WorldId,
    /// What is asked, in one line.
    pub title: String,
    /// What the decision is about: an object from the provider, or text from the core.
    pub detail: Option<Value>,
    /// JSON Schema of the answer.
    pub schema: Option<Value>,
    /// Digest of the arguments an approval is for.
    pub args_digest: Option<String>,
    /// Hash of the tool definition an approval is for.
    pub tool_hash: Option<String>,
    /// The files an approval is for. Only these are read, even if their paths are overwritten
    /// meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<AskFile>,
    /// The token that started the run.
    pub caller: Option<GrantId>,
    /// Who may decide: `person`, `seat:S-…` or `any`.
    pub audience: String,
    /// When the ask expires.
    pub deadline: DateTime,
    /// When it was raised.
    pub created_at: DateTime,
    /// How it was decided, once it was.
    pub decision: Option<AskOutcome>,
    /// Who decided it: a token, or the core.
    pub decided_by: Option<String>,
    /// When it was decided.
    pub decided_at: Option<DateTime>,
    /// Why it was denied, or what was said instead of an answer.
    pub reason: Option<String>,
}

/// `GET /v1/asks/{ask_id}`: an ask with all that helps to decide it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AskDetail {
    /// The ask.
    pub ask: Ask,
    /// The inputs of the run that waits.
    #[schema(value_type = Object)]
    pub inputs: Object,
    /// Present when no more than hashes of the run's values are kept once it has ended.
    pub kept: Option<KeptValues>,
    /// The tool's definition now, if the tool is known.
    pub definition: Option<ToolDefinition>,
    /// Whether the definition is the one the ask is for.
    pub same_definition: bool,
    /// What the tool's provider is permitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<AgentPermission>,
    /// The runs that led to it: the one it all began with first, the one that waits last.
    pub chain: Vec<AskLink>,
    /// The latest decisions about approvals of the same tool, newest first.
    pub previous: Vec<Ask>,
    /// The latest earlier run of the same tool in the same world that succeeded.
    pub similar_run: Option<SimilarRun>,
}

/// A run that led to an ask.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskLink {
    /// The run.
    pub run_id: RunId,
    /// Its world.
    pub world: WorldId,
    /// Its tool.
    pub tool: ToolId,
    /// Its status.
    pub status: RunStatus,
    /// The token that started it.
    pub caller: Option<GrantId>,
}

/// An earlier run to compare with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SimilarRun {
    /// The run.
    pub run_id: RunId,
    /// Its world.
    pub world: WorldId,
    /// Its status.
    pub status: RunStatus,
    /// When it was accepted.
    pub created_at: DateTime,
    /// Its inputs.
    #[schema(value_type = Object)]
    pub inputs: Object,
}

/// A file that an approval is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskFile {
    /// The name of the input.
    pub name: String,
    /// Its path in the world.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its BLAKE3 hash, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b3: Option<String>,
    /// Its media type.
    pub media_type: String,
}

/// `POST /v1/questions/{ask_id}/answer`: a value, or a status instead.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerQuestion {
    /// The answer, which must match the question's schema. Null is an answer too.
    #[serde(default, deserialize_with = "crate::present::present")]
    pub value: Option<Value>,
    /// Why there is no answer.
    pub status: Option<NoAnswer>,
    /// Text to go with `off_script`.
    pub text: Option<String>,
}

/// `POST /v1/approvals/{ask_id}/decide`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideApproval {
    /// Whether the run may go on.
    pub decision: Decision,
    /// What `allow` covers: only this run (`run`, the default), or also later runs of the same tool
    /// by the same caller within the same parent run (`parent`).
    pub scope: Option<AllowScope>,
    /// Why.
    pub reason: Option<String>,
    /// The digest of the arguments that were looked at. If the ask is for others, nothing is
    /// decided.
    pub args_digest: Option<String>,
    /// The hash of the definition that was looked at. If the ask is for another, nothing is decided.
    pub tool_hash: Option<String>,
}
