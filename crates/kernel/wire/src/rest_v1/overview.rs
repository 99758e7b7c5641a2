//! What the console shows at a glance: providers of every kind in one shape, accounts, what a
//! search finds, and whether the audit is whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{
    DateTime, Isolation, Keeping, LaunchId, ProviderId, ProviderState, SandboxLevel, ToolId,
    ToolState, WorldId,
};

use super::agent::known;
use super::{AgentHealth, AgentLimits, AgentPermission, AgentWish, Artifact, Run};

/// A provider of any kind, in one shape.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Provider {
    /// Its id: of a tool server that is the tool's id.
    pub provider_id: String,
    /// What it is: `agent`, `tool_server`, `mcp_server`, `operative`, `operator` or `builtin`.
    pub kind: String,
    /// Its state. One that connects by itself is `running` while it is connected.
    pub state: ProviderState,
    /// Why it is in that state, when there is something to say.
    pub reason: Option<String>,
    /// Its name for people.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether it is to run, or may be called, once approved.
    pub enabled: Option<bool>,
    /// When it was added.
    pub added_at: Option<DateTime>,
    /// Its process, while there is one.
    pub pid: Option<u32>,
    /// The current start of its process; shown only to administrators.
    pub launch_id: Option<LaunchId>,
    /// How many of its processes run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub instances: u64,
    /// When it last sent a heartbeat.
    pub last_heartbeat: Option<DateTime>,
    /// What that heartbeat said.
    pub health: Option<AgentHealth>,
    /// Its sandbox: the one achieved while it runs, otherwise the one approved.
    pub sandbox: Option<SandboxLevel>,
    /// The sandbox it is to have, once approved.
    pub sandbox_wanted: Option<SandboxLevel>,
    /// What the sandbox lacks or does differently, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox_notes: Vec<String>,
    /// Which runs share a process, once approved.
    pub isolation: Option<Isolation>,
    /// What its manifest asks for, each with what it means and whether it was approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<AgentPermission>,
    /// What was approved; absent until its present manifest is approved.
    pub permissions_approved: Option<Vec<String>>,
    /// What its manifest asks for beyond the usual, such as a weaker sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wishes: Vec<AgentWish>,
    /// The limits in force: the stricter of the manifest's and the owner's.
    #[serde(default, skip_serializing_if = "AgentLimits::is_empty", deserialize_with = "known")]
    pub limits: AgentLimits,
    /// How each of these limits is enforced while it runs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits_kept: BTreeMap<String, Keeping>,
    /// Hash of its manifest.
    pub manifest_hash: Option<String>,
    /// How its files differ from what was approved, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<String>,
    /// The tools it offers.
    pub tools: Vec<ToolId>,
    /// Tools offered with a definition other than the approved one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<ToolId>,
    /// The folder with its manifest.
    pub folder: Option<String>,
    /// What is started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Where it is, if it runs elsewhere.
    pub url: Option<String>,
    /// Where its source code is, according to its manifest.
    pub source: Option<String>,
}

/// One start of a provider's process, as the audit tells it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderLaunch {
    /// When the process was started.
    pub started_at: DateTime,
    /// When it ended.
    pub ended_at: Option<DateTime>,
    /// Whether it ended by itself although it was to run.
    pub crashed: bool,
    /// How it ended, where that is known.
    pub reason: Option<String>,
    /// Its process.
    pub pid: Option<u64>,
}

/// What the processes of a provider used lately, step by step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderUsage {
    /// How far back the steps go: `1h` or `24h`.
    pub range: String,
    /// How long a step is.
    pub step_ms: u64,
    /// The steps, oldest first. A step without a process is left out.
    pub points: Vec<ProviderUsagePoint>,
}

/// What the processes of a provider used in one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderUsagePoint {
    /// When the step began.
    pub at: DateTime,
    /// The most memory seen in use; what processes share counts for each.
    pub memory_bytes: u64,
    /// The processor time used in the step.
    pub cpu_ms: u64,
    /// The most processes seen.
    pub processes: u64,
}

/// An account of the budget tree.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Account {
    /// The account: `world:W`, or `token:G` of a token with a budget.
    pub account: String,
    /// The account above it.
    pub parent: Option<String>,
    /// The world it belongs to.
    pub world: WorldId,
    /// The most that may be set aside and spent on it.
    pub limit_micro: Option<u64>,
    /// What was spent.
    pub spent_micro: u64,
    /// What is set aside.
    pub held_micro: u64,
    /// By how much more is spent and set aside than the limit allows.
    pub over_micro: Option<u64>,
    /// How long what is left lasts at the pace of late; absent without a limit, where fewer than
    /// ten runs of the last seven days have cost something, for a token whose account others have
    /// spent from, too, and to tokens that are for some tools only.
    pub lasts: Option<Lasts>,
}

/// How long what is left of a limit lasts: at the mean pace of the last 24 hours and at that of the
/// last seven days, the shorter time first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lasts {
    /// At the faster pace, in milliseconds.
    pub min_ms: u64,
    /// At the slower pace, in milliseconds.
    pub max_ms: u64,
}

/// `GET /v1/worlds/{w}/artifacts`: a page of files, and of folders with `delimiter`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactPage {
    /// The files.
    pub items: Vec<Artifact>,
    /// The folders; only with `delimiter`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folders: Option<Vec<Folder>>,
    /// The cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// A folder: what the paths of files have in common up to a slash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Folder {
    /// Its path, which ends with a slash.
    pub path: String,
    /// How many files it holds, those in folders within included, as far as was counted.
    #[serde(default)]
    pub files: u64,
    /// How many bytes the files have that were counted.
    #[serde(default)]
    pub bytes: u64,
    /// Whether counting ended early, so that there may be more.
    #[serde(default)]
    pub more: bool,
}

/// `GET /v1/search`: what was found, a few of each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Search {
    /// Runs whose id begins so, newest first.
    pub runs: Vec<Run>,
    /// Tools whose id or description has the text.
    pub tools: Vec<FoundTool>,
    /// Providers whose id has the text.
    pub providers: Vec<FoundProvider>,
    /// Worlds whose id has the text.
    pub worlds: Vec<FoundWorld>,
    /// Flows whose name has the text, with the tool that each is.
    #[serde(default)]
    pub flows: Vec<FoundName>,
    /// Schedules whose name has the text, with the tool that each runs.
    #[serde(default)]
    pub schedules: Vec<FoundName>,
    /// Triggers whose name has the text, with the tool that each runs.
    #[serde(default)]
    pub triggers: Vec<FoundName>,
}

/// Something with a name that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FoundName {
    /// Its name.
    pub name: String,
    /// The tool that it is or runs.
    pub tool_id: ToolId,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FoundTool {
    /// The tool.
    pub tool_id: ToolId,
    /// What it does.
    pub description: String,
    /// Whether it can be called.
    pub state: ToolState,
}

/// A provider that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FoundProvider {
    /// The provider.
    pub provider_id: ProviderId,
    /// What it is, as providers say it.
    pub kind: String,
}

/// A world that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FoundWorld {
    /// The world.
    pub world: WorldId,
}

/// `POST /v1/audit/verify`: whether the audit is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditVerdict {
    /// Whether nothing is wrong.
    pub ok: bool,
    /// How many records were read.
    pub records: u64,
    /// How many chains they form.
    pub chains: u32,
    /// What is wrong and where, one sentence each.
    pub findings: Vec<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
