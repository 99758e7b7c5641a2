//! Tool servers and operatives: what is shown of them, and what can be asked for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{
    DateTime, GrantId, Isolation, Keeping, LaunchId, ProviderState, SandboxLevel, ServerKind,
    ToolId,
};

use super::agent::known;
use super::{AgentLimits, AgentPermission, AgentWish, ErrorInfo};

/// The server of a tool and its state.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolServer {
    /// How the tool is served.
    pub kind: ServerKind,
    /// Its state. An idle server is `running` without a process.
    pub state: ProviderState,
    /// Why it is in that state, when there is something to say.
    pub reason: Option<String>,
    /// Whether it may be called, once approved.
    pub enabled: bool,
    /// The folder with its manifest.
    pub folder: String,
    /// What is started, or where the server is: the handler's file, the program and its arguments,
    /// the image, or the address.
    pub command: Vec<String>,
    /// When it was added.
    pub added_at: DateTime,
    /// Its process, while there is one.
    pub pid: Option<u32>,
    /// The current start of its process; shown only to administrators.
    pub launch_id: Option<LaunchId>,
    /// How many of its processes run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub instances: u64,
    /// Its sandbox: the one achieved while it runs, otherwise the one approved.
    pub sandbox: SandboxLevel,
    /// The sandbox it is to have, once approved.
    pub sandbox_wanted: Option<SandboxLevel>,
    /// What the sandbox lacks or does differently, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox_notes: Vec<String>,
    /// Which runs share a process, once approved.
    pub isolation: Option<Isolation>,
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
    /// The limits in force: the stricter of the manifest's and the owner's.
    #[serde(default, skip_serializing_if = "AgentLimits::is_empty", deserialize_with = "known")]
    pub limits: AgentLimits,
    /// How each of these limits is enforced while it runs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits_kept: BTreeMap<String, Keeping>,
    /// Hash of its manifest.
    pub manifest_hash: String,
    /// Digests of the files approved with it, by path relative to the folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pinned_files: BTreeMap<String, String>,
    /// How its files differ from what was approved, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<String>,
    /// The interpreter and the packages that its handler runs with, if its manifest asks for them.
    pub environment: Option<ToolEnvironment>,
}

/// What a handler runs with.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolEnvironment {
    /// The interpreter it was made with.
    pub interpreter: String,
    /// The interpreter's version.
    pub version: String,
    /// The file that names its packages.
    pub requirements: Option<String>,
    /// The environment's name: a hash of what went into it. Tools with the same share it.
    pub key: Option<String>,
    /// What is installed in it, those that others need included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<LockedPackage>,
}

/// A package at one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LockedPackage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The hash of its archive.
    pub sha256: String,
}

/// `POST /v1/tools`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddTool {
    /// The folder with the tool server's manifest, or the file of a handler that has none: an
    /// absolute path on the core's machine.
    pub folder: String,
    /// The namespace of the tools of a handler that has no manifest; `local` when absent.
    pub namespace: Option<String>,
    /// Whether to approve it at once; then it may be called.
    pub approve: Option<bool>,
    /// With `approve`: these permissions and no others; everything the manifest asks for when
    /// absent.
    pub permissions: Option<Vec<String>>,
    /// With `approve`: its sandbox; when absent, the stricter of the core's default and the
    /// manifest's.
    pub sandbox: Option<SandboxLevel>,
}

/// What is done while a tool server is added, for whoever waits: the data of a `step` event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddStep {
    /// One line.
    pub text: String,
}

/// Why a tool server was not added: the data of a `failed` event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AddFailed {
    /// The status that the answer would have had without events.
    pub status: u16,
    /// What went wrong.
    pub error: ErrorInfo,
}

/// An operative: a name under which a client serves tools.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Operative {
    /// The name, which its tools' ids begin with.
    pub name: String,
    /// Whether a client is connected under this name.
    pub connected: bool,
    /// The token of the connected client.
    pub grant: Option<GrantId>,
    /// When its last connection ended, if one has since the core started.
    pub last_seen: Option<DateTime>,
    /// The ids of its tools.
    pub tools: Vec<ToolId>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
