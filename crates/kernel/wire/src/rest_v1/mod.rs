//! The REST API, version 1: request bodies, answers and the events of a run.
//!
//! Times are RFC 3339 text with milliseconds in UTC. Optional fields are left out when empty.
//! Requests refuse unknown fields, so that a misspelt one is noticed; answers may grow.

mod agent;
mod ask;
mod event;
mod file;
mod token;
mod tool;
mod tool_server;
mod world;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wharf_vocab::{
    DateTime, Durability, Mode, Object, RunId, RunStatus, SeatId, Severity, ToolId, Verdict,
    WaitKind, WorldId,
};

pub use agent::{
    AddAgent, Agent, AgentHealth, AgentLimits, AgentLogLine, AgentPermission, AgentWish,
    ApproveAgent, FoundAgent, FoundAgents, Rate, ScanAgents,
};
pub use ask::{AnswerQuestion, Ask, AskFile, DecideApproval};
pub use event::{
    AskEvent, AttemptEvent, DecidedEvent, Event, FinishedEvent, GapEvent, LogEvent, MarkEvent,
    PartialEvent, ProgressEvent, TextEvent,
};
pub use file::{
    Artifact, BeginUpload, Collected, CompleteUpload, Receipt, Trace, TraceStep, Upload,
    UploadPart, Usage,
};
pub use token::{CreateTicket, CreateToken, Keys, RotateKeys, Secret, Ticket, Token};
pub use tool::{Tool, ToolDefinition, ToolDiff};
pub use tool_server::{AddTool, Operative, ToolServer};
pub use world::{CorrectWorld, CreateWorld, PolicyRule, SetBudget, SetWorld, World};

/// `POST /v1/runs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRun {
    /// The tool to run, `provider/name`.
    pub tool: ToolId,
    /// The tool's inputs, an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub inputs: Value,
    /// Where outputs go, an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub outputs: Value,
    /// The world the run belongs to; `default` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<WorldId>,
    /// `real` or `mock`; `real` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// An id of the caller's own for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The run whose local files this one may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
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
    pub durability: Option<Durability>,
    /// What surrounds the call, for providers that ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<RunContext>,
    /// Seats of operators that have a say in the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<RunOperator>,
}

/// Seats of operators that have a say in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunOperator {
    /// The seat that must let the run pass, unless a rule asks somebody else anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<SeatId>,
    /// The seat that is asked when a worker fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub senior: Option<SeatId>,
    /// How long the gating seat is waited for before others may decide; 5 minutes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// What surrounds a call. It tells a provider where its caller stands, and permits nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunContext {
    /// The folder of the project that the caller works on, an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_root: Option<String>,
    /// Further files and folders the call is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_paths: Vec<String>,
    /// How the caller shows things, as an object.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[schema(value_type = Object)]
    pub ui: Object,
}

/// What `POST /v1/runs` answers with when it does not wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunAccepted {
    /// The run's id.
    pub run_id: RunId,
    /// Where the run stands.
    pub status: RunStatus,
}

/// A run as `GET /v1/runs/{id}` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// The run's id.
    pub run_id: RunId,
    /// The tool.
    pub tool: ToolId,
    /// The world.
    pub world: WorldId,
    /// `real` or `mock`.
    pub mode: Mode,
    /// `journal` or `memory`.
    pub durability: Durability,
    /// Where the run stands.
    pub status: RunStatus,
    /// How many attempts have been made; 0 before the first.
    pub attempt: u32,
    /// What the run has cost so far.
    pub cost_micro: u64,
    /// What it would have cost, if it only pretended; lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_cost_micro: Option<u64>,
    /// What is set aside for each attempt; lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_micro: Option<u64>,
    /// What is set aside now, for the attempt under way; lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_micro: Option<u64>,
    /// When it was accepted.
    pub created_at: DateTime,
    /// When its first attempt began.
    #[serde(default)]
    pub started_at: Option<DateTime>,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<DateTime>,
    /// Its outputs; empty until it has succeeded. Lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub outputs: Option<Object>,
    /// Its inputs; files as `world://` addresses, others without what lets somebody in. Lists
    /// leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub inputs: Option<Object>,
    /// Files it read and wrote; what it wrote is there once it has succeeded. Lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<Artifact>>,
    /// The run whose local files it may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    /// What the core measured, once it is over; lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// The oldest ask it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// What it waits for while it is `queued`; lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// The caller's own id for what this run is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The run that started this one, `world/run_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// What a run waits for while it is `queued`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WaitingFor {
    /// `room` at its provider, its `provider` itself, or a `retry`.
    pub kind: WaitKind,
    /// Why, as people read it.
    pub message: String,
    /// Since when, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime>,
    /// When the waiting ends at the latest.
    pub until: DateTime,
}

/// `POST /v1/runs/{id}/cancel`; the body may be empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRun {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
    pub at: DateTime,
    /// What happened, such as `tool.call_completed`.
    pub event: String,
    /// How much it matters: `info`, `warn`, `error` or `security`.
    pub severity: Severity,
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

/// `GET /v1/doctor`: what was looked at, and what was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diagnosis {
    /// The worst of the checks: `ok`, `warn` or `fail`.
    pub status: Verdict,
    /// The core's version.
    pub version: String,
    /// What was looked at.
    pub checks: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// What was looked at.
    pub name: String,
    /// `ok`, `warn` (it works, but somebody should look) or `fail`.
    pub verdict: Verdict,
    /// What was seen.
    pub text: String,
}

/// `GET /v1/costs`: sums, and all of them together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Costs {
    /// One row for each tool, world, agent or day. Days come in their order, all else with the
    /// dearest first.
    pub items: Vec<CostItem>,
    /// What all rows cost together.
    pub total_micro: u64,
    /// Whether that is more than the number can say, which then is the largest there is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub saturated: bool,
    /// Always null: all rows come at once.
    pub next_cursor: Option<String>,
}

/// What the runs of one tool, world, agent or day cost together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CostItem {
    /// The tool, world or agent, or the day in UTC as `2026-11-15`.
    pub key: String,
    /// How many runs there are.
    pub runs: u64,
    /// How many of them failed.
    pub failed: u64,
    /// What they have cost, failed ones too.
    pub cost_micro: u64,
    /// How long those that are over took from their first attempt on.
    pub wall_ms: u64,
    /// Whether they cost more than the number can say, which then is the largest there is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub saturated: bool,
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use std::fmt::Debug;

    #[track_caller]
    fn survives<T: Serialize + DeserializeOwned + Debug + PartialEq>(line: &str) {
        let message: T = serde_json::from_str(line).expect("readable");
        assert_eq!(serde_json::to_string(&message).expect("writes"), line);
    }

    #[test]
    fn every_message_survives_its_text_form() {
        let examples = include_str!("../../testdata/rest_v1/messages.ndjson");
        let mut names = std::collections::BTreeSet::new();
        for line in examples.lines() {
            let (name, data) = line.split_once(' ').expect("name and data");
            names.insert(name);
            match name {
                "CreateRun" => survives::<CreateRun>(data),
                "Ask" => survives::<Ask>(data),
                "DecideApproval" => survives::<DecideApproval>(data),
                "Tool" => survives::<Tool>(data),
                "AddTool" => survives::<AddTool>(data),
                "ToolDiff" => survives::<ToolDiff>(data),
                "CreateToken" => survives::<CreateToken>(data),
                "Token" => survives::<Token>(data),
                "RotateKeys" => survives::<RotateKeys>(data),
                "Keys" => survives::<Keys>(data),
                "Secret" => survives::<Secret>(data),
                "World" => survives::<World>(data),
                "SetWorld" => survives::<SetWorld>(data),
                "Artifact" => survives::<Artifact>(data),
                "Trace" => survives::<Trace>(data),
                "Upload" => survives::<Upload>(data),
                "BeginUpload" => survives::<BeginUpload>(data),
                "CompleteUpload" => survives::<CompleteUpload>(data),
                "Collected" => survives::<Collected>(data),
                "Usage" => survives::<Usage>(data),
                "Receipt" => survives::<Receipt>(data),
                "CreateTicket" => survives::<CreateTicket>(data),
                "Ticket" => survives::<Ticket>(data),
                "Diagnosis" => survives::<Diagnosis>(data),
                other => panic!("{other} is no message"),
            }
        }
        assert_eq!(names.len(), 24, "each message has an example");
    }
}
