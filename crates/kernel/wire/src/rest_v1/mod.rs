//! The REST API, version 1: request bodies, answers and the events of a run.
//!
//! Times are RFC 3339 text with milliseconds in UTC. Optional fields are left out when empty.
//! Requests refuse unknown fields, so that a misspelt one is noticed; answers may grow.

mod agent;
mod event;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wharf_vocab::{AskKind, Durability, Mode, Object, RunStatus};

pub use agent::{AddAgent, Agent, AgentLogLine, ApproveAgent};
pub use event::{
    AskEvent, AttemptEvent, DecidedEvent, Event, FinishedEvent, GapEvent, LogEvent, MarkEvent,
    PartialEvent, ProgressEvent, TextEvent,
};

/// `POST /v1/runs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRun {
    /// The tool to run, `provider/name`.
    pub tool: String,
    /// The tool's inputs, an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub inputs: Value,
    /// Where outputs go, an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub outputs: Value,
    /// The world the run belongs to; `default` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<String>,
    /// `real` or `mock`; `real` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub mode: Option<Mode>,
    /// An id of the caller's own for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The run whose local files this one may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// The same key with the same request gives the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// How long one attempt may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The caller's own id for what this run is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The most the run and its children may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_micro: Option<u64>,
    /// `journal` or `memory`; the tool's own default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub durability: Option<Durability>,
}

/// What `POST /v1/runs` answers with when it does not wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunAccepted {
    /// The run's id.
    pub run_id: String,
    /// Where the run stands.
    #[schema(value_type = String)]
    pub status: RunStatus,
}

/// A run as `GET /v1/runs/{id}` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// The run's id.
    pub run_id: String,
    /// The tool.
    pub tool: String,
    /// The world.
    pub world: String,
    /// `real` or `mock`.
    #[schema(value_type = String)]
    pub mode: Mode,
    /// `journal` or `memory`.
    #[schema(value_type = String)]
    pub durability: Durability,
    /// Where the run stands.
    #[schema(value_type = String)]
    pub status: RunStatus,
    /// How many attempts have been made; 0 before the first.
    pub attempt: u32,
    /// What the run has cost.
    pub cost_micro: u64,
    /// When it was accepted.
    pub created_at: String,
    /// When its first attempt began.
    #[serde(default)]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<String>,
    /// Its outputs; empty until it has succeeded.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub outputs: Object,
    /// Files it wrote.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub artifacts: Vec<Value>,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// The oldest ask it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// The caller's own id for what this run is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The run that started this one, `world/run_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// An open ask as `GET /v1/inbox` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ask {
    /// The ask's id.
    pub ask_id: String,
    /// `question` or `approval`.
    #[schema(value_type = String)]
    pub kind: AskKind,
    /// The run that waits.
    pub run_id: String,
    /// The tool of that run.
    pub tool: String,
    /// The world of that run.
    pub world: String,
    /// What is asked, in one line.
    pub title: String,
    /// JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Digest of the arguments an approval is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_digest: Option<String>,
    /// Who may decide: `person`, `seat:S-…` or `any`.
    pub audience: String,
    /// When the ask expires.
    pub deadline: String,
    /// When it was raised.
    pub created_at: String,
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
    pub status: Option<String>,
    /// Free text that goes with `off_script`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// `POST /v1/approvals/{ask_id}/decide`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideApproval {
    /// `allow` or `deny`.
    pub decision: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `POST /v1/runs/{id}/cancel`; the body may be empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRun {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A tool of the catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Tool {
    /// `provider/name`.
    pub tool_id: String,
    /// The name alone.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Who executes it.
    pub provider: String,
    /// JSON Schema of the inputs.
    pub input_schema: Value,
    /// JSON Schema of the outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether it acts on the world.
    pub side_effects: bool,
    /// Whether each run needs an approval.
    pub requires_directive: bool,
    /// `available`, `starting`, `unavailable`, `disabled` or `quarantined`.
    pub state: String,
    /// Why it is in that state, when there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
}

/// A world and its account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct World {
    /// The world's id.
    pub world: String,
    /// When it was made.
    pub created_at: String,
    /// The most its runs may cost; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_micro: Option<u64>,
    /// What is set aside for runs under way.
    pub held_micro: u64,
    /// What its runs have cost.
    pub spent_micro: u64,
    /// What is set aside for a run whose tool names no price.
    pub default_hold_micro: u64,
}

/// `POST /v1/worlds`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWorld {
    /// The world's id.
    pub world: String,
    /// The most its runs may cost; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_micro: Option<u64>,
    /// What is set aside for a run whose tool names no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_hold_micro: Option<u64>,
}

/// `PUT /v1/worlds/{w}/budget`: replaces the limit; what is absent means "no limit" and "hold 0".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBudget {
    /// The most the world's runs may cost; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_micro: Option<u64>,
    /// What is set aside for a run whose tool names no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_hold_micro: Option<u64>,
}

/// One record of the audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditRecord {
    /// The record's place in the whole audit.
    pub id: u64,
    /// The chain the record belongs to.
    pub shard: u8,
    /// The record's place in its chain.
    pub n: u64,
    /// When it happened.
    pub at: String,
    /// What happened, such as `tool.call_completed`.
    pub event: String,
    /// How much it matters: `info`, `warn`, `error` or `security`.
    pub severity: String,
    /// Who did it.
    pub actor: String,
    /// What it was done to.
    pub subject: String,
    /// Ids and facts, never payloads.
    #[schema(value_type = Object)]
    pub facts: Object,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The page's items.
    pub items: Vec<T>,
    /// Where the next page begins; null on the last one.
    pub next_cursor: Option<String>,
}

/// The body of every error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorInfo,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorInfo {
    /// For programs; each code has a page.
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// Facts about the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub details: Option<Object>,
}

/// What `run/core.json` in the home says about a core that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreInfo {
    /// Base URL of the HTTP API.
    pub http: String,
    /// Base URL of the artifact store, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Path of the socket agents connect to, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<String>,
    /// The core's process id.
    pub pid: u32,
    /// The core's version.
    pub version: String,
}

/// Reads a field that is there, so that null counts as a value and only absence as none.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}
