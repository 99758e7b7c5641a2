//! Agents: what is shown of them, what can be asked for, and the lines of their logs.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{
    DateTime, Health, Isolation, Keeping, LaunchId, LogSource, Object, ProviderId, ProviderState,
    SandboxLevel, ToolId,
};

use super::ErrorInfo;

/// An agent and its state.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// The agent's id.
    pub agent_id: ProviderId,
    /// Its state.
    pub state: ProviderState,
    /// Why it is in that state, when there is something to say.
    pub reason: Option<String>,
    /// Its process, while there is one.
    pub pid: Option<u32>,
    /// The current start of its process; shown only to administrators.
    pub launch_id: Option<LaunchId>,
    /// When it last sent a heartbeat.
    pub last_heartbeat: Option<DateTime>,
    /// What that heartbeat said.
    pub health: Option<AgentHealth>,
    /// Its sandbox: the one achieved while it runs, otherwise the one approved.
    pub sandbox: SandboxLevel,
    /// The tools it has offered; they stay listed while it is not connected.
    pub tools: Vec<ToolId>,
    /// Its name for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is for.
    pub description: String,
    /// The folder with its manifest.
    pub folder: String,
    /// The program that is started, and its arguments.
    pub command: Vec<String>,
    /// When it was added.
    pub added_at: DateTime,
    /// What its manifest asks for.
    pub permissions_requested: Vec<String>,
    /// What was approved; absent until its present manifest is approved.
    pub permissions_approved: Option<Vec<String>>,
    /// The same, each with what it means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<AgentPermission>,
    /// What its manifest asks for beyond the usual, such as a weaker sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wishes: Vec<AgentWish>,
    /// The sandbox it is to have, once approved.
    pub sandbox_wanted: Option<SandboxLevel>,
    /// What the sandbox lacks or does differently, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox_notes: Vec<String>,
    /// Which runs share a process, once approved.
    pub isolation: Option<Isolation>,
    /// How many of its processes run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub instances: u64,
    /// The limits in force: the stricter of the manifest's and the owner's.
    #[serde(default, skip_serializing_if = "AgentLimits::is_empty", deserialize_with = "known")]
    pub limits: AgentLimits,
    /// How each of these limits is enforced while it runs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits_kept: BTreeMap<String, Keeping>,
    /// Hash of its manifest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest_hash: String,
    /// Digests of the files approved with it, by path relative to the folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pinned_files: BTreeMap<String, String>,
    /// How its files differ from what was approved, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<String>,
    /// Tools offered with a definition other than the approved one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<ToolId>,
    /// Where its source code is, according to its manifest.
    pub source: Option<String>,
}

/// What an agent reports with each heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentHealth {
    /// Its health.
    pub status: Health,
    /// How long it has been up.
    pub uptime_ms: u64,
    /// The number of calls in progress.
    pub inflight_calls: u64,
    /// Figures of its own, such as the depth of a queue.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[schema(value_type = std::collections::HashMap<String, Value>)]
    pub details: Object,
}

/// A permission that a manifest asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentPermission {
    /// The permission as the manifest writes it.
    pub permission: String,
    /// What it allows the agent to do, for people.
    pub meaning: String,
    /// Whether it was approved unchanged.
    pub approved: bool,
    /// What was approved instead, when that is less.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub narrowed_to: Vec<String>,
}

/// Something beyond the usual that a manifest asks for. It takes effect only if the owner grants it
/// in an approval, with `sandbox` or `limits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentWish {
    /// What it is about: `sandbox`, or the name of a limit such as `memory_bytes`.
    pub what: String,
    /// What the manifest asks for.
    pub asked: String,
    /// What applies otherwise.
    pub usual: String,
    /// What it would allow, for people.
    pub meaning: String,
    /// Whether the owner granted it.
    pub granted: bool,
}

/// How much an agent may be asked to do and may use. An absent limit is bounded only by the core.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentLimits {
    /// Calls in progress at once.
    pub calls_max: Option<u32>,
    /// Calls per period.
    pub rate: Option<Rate>,
    /// How long one call may run.
    pub call_ms: Option<u64>,
    /// Largest inputs of a call, as JSON text.
    pub input_bytes: Option<u64>,
    /// Largest outputs of a call, as JSON text.
    pub output_bytes: Option<u64>,
    /// Progress one call may write.
    pub stream_bytes: Option<u64>,
    /// Memory of all its processes in total.
    pub memory_bytes: Option<u64>,
    /// Processor time of all its processes in total, from start to end.
    pub cpu_ms: Option<u64>,
    /// Share of processors, in thousandths of one; enforced where the system can.
    pub cpu_millicores: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// Bytes in its own folders, and size of any one file.
    pub disk_bytes: Option<u64>,
}

impl AgentLimits {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A number of calls per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How many.
    pub count: u32,
    /// The period in milliseconds.
    pub per_ms: u64,
}

/// `POST /v1/agents/scan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScanAgents {
    /// The folder to search for manifests: an absolute path on the core's machine.
    pub folder: String,
}

/// What a scan found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundAgents {
    /// What was found, in the order of folders.
    pub items: Vec<FoundAgent>,
    /// Why the search was incomplete, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<String>,
}

/// A folder with a manifest.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundAgent {
    /// The folder.
    pub folder: String,
    /// The agent's id, if the manifest is valid.
    pub agent_id: Option<ProviderId>,
    /// Its name for people.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<AgentPermission>,
    /// The state of the agent with this id, if it was added already.
    pub state: Option<ProviderState>,
    /// Why the manifest is not valid.
    pub error: Option<ErrorInfo>,
}

/// `POST /v1/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddAgent {
    /// The folder with the agent's manifest: an absolute path on the core's machine.
    pub folder: String,
}

/// `POST /v1/agents/{id}/approve`: some of the permissions its manifest asks for, or all of them.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveAgent {
    /// These permissions and no others; an empty list approves the agent without any.
    pub permissions: Option<Vec<String>>,
    /// Everything the manifest asks for.
    pub all: Option<bool>,
    /// The agent's `manifest_hash` as it was reviewed. If its manifest has changed since, nothing is
    /// approved.
    pub manifest_hash: Option<String>,
    /// Its sandbox; when absent, the stricter of the core's default and the manifest's.
    pub sandbox: Option<SandboxLevel>,
    /// Which runs share a process; as the manifest says when absent.
    pub isolation: Option<Isolation>,
    /// The owner's limits; the manifest's apply where they are stricter.
    pub limits: Option<AgentLimits>,
}

/// A line of an agent's log, also the data of a `log` event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentLogLine {
    /// When it was written.
    pub at: DateTime,
    /// Who wrote it.
    pub source: LogSource,
    /// The line without its end.
    pub text: String,
}

/// Reads limits of an answer, which may name some that are not known here.
pub(super) fn known<'de, D: Deserializer<'de>>(from: D) -> Result<AgentLimits, D::Error> {
    const KNOWN: [&str; 12] = [
        "calls_max",
        "rate",
        "call_ms",
        "input_bytes",
        "output_bytes",
        "stream_bytes",
        "memory_bytes",
        "cpu_ms",
        "cpu_millicores",
        "processes",
        "open_files",
        "disk_bytes",
    ];
    let mut limits = Object::deserialize(from)?;
    limits.retain(|name, _| KNOWN.contains(&name.as_str()));
    AgentLimits::deserialize(Value::Object(limits)).map_err(D::Error::custom)
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::super::tests::survives;
    use super::*;

    #[test]
    fn every_message_survives_its_text_form() {
        let examples = include_str!("../../testdata/rest_v1/agents.ndjson");
        let mut names = std::collections::BTreeSet::new();
        for line in examples.lines() {
            let (name, data) = line.split_once(' ').expect("name and data");
            names.insert(name);
            match name {
                "Agent" => survives::<Agent>(data),
                "AddAgent" => survives::<AddAgent>(data),
                "ApproveAgent" => survives::<ApproveAgent>(data),
                "ScanAgents" => survives::<ScanAgents>(data),
                "FoundAgents" => survives::<FoundAgents>(data),
                "AgentLogLine" => survives::<AgentLogLine>(data),
                other => panic!("{other} is no message"),
            }
        }
        assert_eq!(names.len(), 6, "each message has an example");
    }

    #[test]
    fn a_misspelt_request_is_noticed_and_an_answer_may_grow() {
        assert!(serde_json::from_str::<AddAgent>(r#"{"folder":"/a","dir":"/b"}"#).is_err());
        assert!(serde_json::from_str::<ApproveAgent>(r#"{"permission":["a:b"]}"#).is_err());
        let odd = r#"{"all":true,"limits":{"calls_max":1,"dreams":2}}"#;
        assert!(serde_json::from_str::<ApproveAgent>(odd).is_err());
        let examples = include_str!("../../testdata/rest_v1/agents.ndjson");
        let agent = examples.lines().find(|line| line.contains("calls_max")).expect("one");
        let grown = agent.replace("\"calls_max\":4", "\"calls_max\":4,\"dreams\":2");
        let grown = grown.strip_prefix("Agent ").expect("an agent");
        let grown: Agent = serde_json::from_str(grown).expect("an answer may grow");
        assert_eq!(grown.limits.calls_max, Some(4));
        let line = r#"{"at":"2026-11-15T09:00:00Z","source":"stdout","text":"x","launch_id":"l1"}"#;
        assert!(serde_json::from_str::<AgentLogLine>(line).is_ok());
    }
}
