//! The REST API, version 1: request bodies, answers and the events of a run.
//!
//! Times are RFC 3339 text with milliseconds in UTC. Optional fields are left out when empty.
//! Requests refuse unknown fields, so that a misspelt one is noticed; answers may grow.

mod agent;
mod ask;
mod console;
mod event;
mod file;
mod flow;
mod login;
mod mcp;
mod overview;
mod receiver;
mod runs;
mod schedule;
mod system;
mod token;
mod tool;
mod tool_server;
mod trigger;
mod world;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{
    AskId, DateTime, Durability, Fault, GrantId, Mode, Object, Retain, RunId, RunStatus, SeatId,
    Severity, ToolId, Verdict, WaitKind, WorldId,
};

pub use agent::{
    AddAgent, Agent, AgentHealth, AgentLimits, AgentLogLine, AgentPermission, AgentWish,
    ApproveAgent, FoundAgent, FoundAgents, Rate, ScanAgents,
};
pub use ask::{AnswerQuestion, Ask, AskDetail, AskFile, AskLink, DecideApproval, SimilarRun};
pub use console::{
    BeginConsole, Change, Changes, ConsoleLink, ConsoleSession, CreateFileTicket, FileTicket,
};
pub use event::{
    AskEvent, AttemptEvent, DecidedEvent, Event, FinishedEvent, GapEvent, LogEvent, MarkEvent,
    PartialEvent, ProgressEvent, TextEvent,
};
pub use file::{
    Artifact, BeginUpload, Collected, CompleteUpload, Receipt, Trace, TraceRun, TraceStep, Upload,
    UploadPart, Usage,
};
pub use flow::{
    AddFlow, CheckFlow, Flow, FlowCheck, FlowFinding, RerunFlow, RunFlow, RunStep, SendSignal,
};
pub use login::{BeginMcpLogin, EndMcpLogin, McpLoginPage, McpLoginState};
pub use mcp::{AddMcp, McpOauth, McpServer};
pub use overview::{
    Account, ArtifactPage, AuditVerdict, Folder, FoundName, FoundProvider, FoundTool, FoundWorld,
    Lasts, Provider, ProviderLaunch, ProviderUsage, ProviderUsagePoint, Search,
};
pub use receiver::{CreateReceiver, Delivery, Receiver, TestNotification};
pub use runs::{
    CancelRuns, CanceledRuns, OrderPurge, Purge, PurgeRuns, PurgedRuns, RunAgain, RunAttempt,
    RunCount, RunLineage, RunNode, RunStats, RunStatsItem, RunTransfer, RunTree,
};
pub use schedule::{CreateSchedule, Firing, Schedule};
pub use system::{
    CoreLog, CoreLogLine, EndedRuns, System, SystemLimit, SystemPoint, SystemQueue, SystemSeries,
};
pub use token::{CreateTicket, CreateToken, Keys, RotateKeys, Secret, Ticket, Token};
pub use tool::{Tool, ToolDefinition, ToolDiff};
pub use tool_server::{
    AddFailed, AddStep, AddTool, LockedPackage, Operative, ToolEnvironment, ToolServer,
};
pub use trigger::{
    CreateTrigger, HookAccepted, TestTrigger, TestedTrigger, Trigger, TriggerFiring,
};
pub use world::{CorrectWorld, CreateWorld, PolicyRule, SetBudget, SetWorld, World};

/// `POST /v1/runs`.
#[skip_serializing_none]
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
    pub world: Option<WorldId>,
    /// Whether to act or to pretend; `real` when absent.
    pub mode: Option<Mode>,
    /// An id for the run, chosen by the caller.
    pub run_id: Option<RunId>,
    /// The run whose local files this one may read.
    pub continues: Option<RunId>,
    /// Repeating a request with the same key returns the same run.
    pub idempotency_key: Option<String>,
    /// How long one attempt may run.
    pub timeout_ms: Option<u64>,
    /// An id, chosen by the caller, for what this run is part of.
    pub correlation_id: Option<String>,
    /// The most the run and its children may cost.
    pub budget_micro: Option<u64>,
    /// Whether the run is stored; the tool's default when absent.
    pub durability: Option<Durability>,
    /// Where the caller works, for providers that ask for it.
    pub context: Option<RunContext>,
    /// Seats of operators that have a say in the run.
    pub operator: Option<RunOperator>,
}

/// Seats of operators that have a say in a run.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunOperator {
    /// The seat that must allow the run, unless a rule asks someone else anyway.
    pub gate: Option<SeatId>,
    /// The seat that is asked when a worker fails.
    pub senior: Option<SeatId>,
    /// How long to wait for the gating seat before others may decide; 5 minutes when absent.
    pub deadline_ms: Option<u64>,
}

/// Where the caller works. It informs the provider and grants no rights.
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
    /// The status of the run.
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
    /// Whether it acts or pretends.
    pub mode: Mode,
    /// Whether it is stored.
    pub durability: Durability,
    /// The status of the run.
    pub status: RunStatus,
    /// How many attempts have been made; 0 before the first.
    pub attempt: u32,
    /// What the run has cost so far.
    pub cost_micro: u64,
    /// What a mock run would have cost; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_cost_micro: Option<u64>,
    /// What is set aside for each attempt; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_micro: Option<u64>,
    /// What is set aside for the current attempt; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_micro: Option<u64>,
    /// How long one attempt may run; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The most it and its children may cost, if it was started with such a limit; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_micro: Option<u64>,
    /// When it was accepted.
    pub created_at: DateTime,
    /// When its first attempt began.
    #[serde(default)]
    pub started_at: Option<DateTime>,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<DateTime>,
    /// Its outputs; empty until it has succeeded. Not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub outputs: Option<Object>,
    /// Its inputs; files as `world://` addresses, other addresses without credentials. Not in
    /// lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub inputs: Option<Object>,
    /// The files it read and, once it has succeeded, those it wrote. Not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<Artifact>>,
    /// The run whose local files it may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    /// What the core measured, once the run has ended; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// The oldest ask it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// What it waits for while it is `queued` or `waiting`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// An id, chosen by the caller, for what this run is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The run that started this one, `world/run_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The token that started it; unknown of runs of older cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<GrantId>,
    /// What it is doing, as its provider last said, while it is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// How much of that is done, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Whether it has cost more than was set aside for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_hold: bool,
    /// Its attempts, oldest first; only where one run is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<RunAttempt>>,
    /// Files that the core handed to its provider or took from it, in the order in which that
    /// began, of attempts that have ended; not in lists. What a provider fetches by an address is
    /// not among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Vec<RunTransfer>>,
    /// Present when no more than hashes of its values are kept once it has ended; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptValues>,
    /// How far it is, if it is a flow; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<RunFlow>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_full(retain: &Retain) -> bool {
    *retain == Retain::Full
}

/// What is kept of the values of a run once it has ended.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptValues {
    /// `digest`: no more than hashes.
    pub retain: Retain,
    /// The hash in the place of its inputs; absent while they are still known.
    pub inputs: Option<ValueDigest>,
    /// The hash in the place of its outputs; absent while they are still known.
    pub outputs: Option<ValueDigest>,
    /// The hash in the place of its error's message and details; absent while they are still
    /// known.
    pub error: Option<ValueDigest>,
}

/// The hash of a value that is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValueDigest {
    /// BLAKE3 of the value as JSON without spaces and with the keys of objects in order.
    pub b3: String,
    /// The length of that JSON text.
    pub bytes: u64,
}

/// What a run waits for while it is `queued` or `waiting`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WaitingFor {
    /// An ask, room at its provider, its provider itself, or its next attempt.
    pub kind: WaitKind,
    /// Why, for people.
    pub message: String,
    /// Since when, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime>,
    /// When the waiting ends at the latest.
    pub until: DateTime,
    /// The ask, if it waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_id: Option<AskId>,
}

/// `POST /v1/runs/{id}/cancel`; the body may be empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRun {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether a flow is to end at once: nobody waits for its steps or undoes what they did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// One record of the audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditRecord {
    /// The record's number in the whole audit.
    pub id: u64,
    /// The chain the record belongs to.
    pub shard: u8,
    /// The record's number in its chain.
    pub n: u64,
    /// When it happened.
    pub at: DateTime,
    /// What happened, such as `tool.call_completed`.
    pub event: String,
    /// How severe it is.
    pub severity: Severity,
    /// Who did it.
    pub actor: String,
    /// What it was done to.
    pub subject: String,
    /// Ids and facts, never the contents of runs or files.
    #[schema(value_type = Object)]
    pub facts: Object,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The page's items.
    pub items: Vec<T>,
    /// The cursor of the next page; null on the last one.
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
    /// A stable code for programs; each has a page in the documentation.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// Facts about the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub details: Option<Object>,
}

impl From<&Fault> for ErrorInfo {
    fn from(fault: &Fault) -> Self {
        Self {
            code: fault.code.as_str().to_owned(),
            message: fault.message.clone(),
            retryable: fault.retryable,
            details: (!fault.details.is_empty()).then(|| fault.details.clone()),
        }
    }
}

/// `GET /v1/doctor`: the checks and what each found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diagnosis {
    /// The worst result of all checks.
    pub status: Verdict,
    /// The core's version.
    pub version: String,
    /// The checks.
    pub checks: Vec<Finding>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// What was checked.
    pub name: String,
    /// The result.
    pub verdict: Verdict,
    /// What was found.
    pub text: String,
    /// What to do about it; none if all is well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<Fix>,
}

/// Something to do about what a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fix {
    /// What it does, for people.
    pub text: String,
    /// What to type on the core's machine, where there is something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// `GET /v1/costs`: sums by row, and their total.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Costs {
    /// One row for each tool, world, agent or day. Days are in order, others by cost, highest first.
    pub items: Vec<CostItem>,
    /// The total of all rows.
    pub total_micro: u64,
    /// Whether the total exceeds what the number can hold; it is the largest number then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub saturated: bool,
    /// Always null: all rows are on one page.
    pub next_cursor: Option<String>,
}

/// What the runs of one tool, world, agent or day have cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CostItem {
    /// The tool, world or agent, or the day in UTC as `2026-11-15`.
    pub key: String,
    /// The number of runs.
    pub runs: u64,
    /// How many of them failed.
    pub failed: u64,
    /// What they have cost, including failed ones.
    pub cost_micro: u64,
    /// The total time of those that have ended, from their first attempts.
    pub wall_ms: u64,
    /// Whether the cost exceeds what the number can hold; it is the largest number then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub saturated: bool,
}

/// What `run/core.json` in the home says about a core that is up.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreInfo {
    /// Base URL of the HTTP API.
    pub http: String,
    /// Base URL of the artifact store, once there is one.
    pub storage: Option<String>,
    /// Path of the socket agents connect to, once there is one.
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

    /// A message is read from its example, and written as it stands there.
    #[track_caller]
    pub(super) fn survives<T: Serialize + DeserializeOwned>(line: &str) {
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
                "AddFailed" => survives::<AddFailed>(data),
                "AddStep" => survives::<AddStep>(data),
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
        assert_eq!(names.len(), 26, "each message has an example");
    }
}
