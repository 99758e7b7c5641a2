//! The REST API, version 1: request bodies, answers and the events of a run.
//!
//! Times are RFC 3339 text with milliseconds in UTC. Optional fields are left out when empty.
//! Requests refuse unknown fields, so that a misspelt one is noticed; answers may grow.

mod agent;
mod ask;
mod costs;
mod doctor;
mod event;
mod file;
mod operative;
mod secret;
mod ticket;
mod token;
mod tool;
mod tool_server;
mod world;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wharf_vocab::{Durability, Mode, Object, RunStatus};

pub use agent::{
    AddAgent, Agent, AgentHealth, AgentLimits, AgentLogLine, AgentPermission, AgentWish,
    ApproveAgent, FoundAgent, FoundAgents, Rate, ScanAgents,
};
pub use ask::{AnswerQuestion, Ask, AskFile, DecideApproval};
pub use costs::{CostItem, Costs};
pub use doctor::{Diagnosis, Finding};
pub use event::{
    AskEvent, AttemptEvent, DecidedEvent, Event, FinishedEvent, GapEvent, LogEvent, MarkEvent,
    PartialEvent, ProgressEvent, TextEvent,
};
pub use file::{
    Artifact, BeginUpload, Collected, CompleteUpload, Receipt, Trace, TraceStep, Upload,
    UploadPart, Usage,
};
pub use operative::Operative;
pub use secret::Secret;
pub use ticket::{CreateTicket, Ticket};
pub use token::{CreateToken, Keys, RotateKeys, Token};
pub use tool::{Tool, ToolDefinition, ToolDiff};
pub use tool_server::{AddTool, ToolServer};
pub use world::{CorrectWorld, CreateWorld, PolicyRule, SetBudget, SetWorld, World};

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
    pub gate: Option<String>,
    /// The seat that is asked when a worker fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub senior: Option<String>,
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
    pub created_at: String,
    /// When its first attempt began.
    #[serde(default)]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<String>,
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
    pub continues: Option<String>,
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
    pub kind: String,
    /// Why, as people read it.
    pub message: String,
    /// Since when, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// When the waiting ends at the latest.
    pub until: String,
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
