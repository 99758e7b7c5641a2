//! Tool servers and operatives: what is shown of them, and what can be asked for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wharf_vocab::{
    DateTime, GrantId, Isolation, Keeping, LaunchId, ProviderState, SandboxLevel, ServerKind,
    ToolId,
};

use super::agent::known;
use super::{AgentLimits, AgentPermission, AgentWish};

/// The server of a tool and how it fares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolServer {
    /// How the tool is served: `handler`, `program`, `image` or `remote`.
    pub kind: ServerKind,
    /// `added`, `approved`, `starting`, `running`, `unhealthy`, `backing_off`, `stopped`,
    /// `crashed` or `drifted`. One that has nothing to do is `running` without a process.
    pub state: ProviderState,
    /// Why it is in that state, when there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it may be asked, once it is approved.
    pub enabled: bool,
    /// The folder its manifest lies in.
    pub folder: String,
    /// What is started, or where it is: the handler's file, the program and its arguments, the
    /// image, or the address.
    pub command: Vec<String>,
    /// When it was added.
    pub added_at: DateTime,
    /// Its process, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The start of its process that is current; shown to those who may administer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_id: Option<LaunchId>,
    /// How many of its processes run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub instances: u64,
    /// How it is fenced in: `none`, `basic`, `standard` or `strict`. While it runs this is what
    /// was achieved, else what was approved.
    pub sandbox: SandboxLevel,
    /// How firmly it is to be fenced in, once approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_wanted: Option<SandboxLevel>,
    /// What of the fence is missing or done in another way, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox_notes: Vec<String>,
    /// Which runs share a process, once approved: `shared`, `world` or `run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// What its manifest asks for.
    pub permissions_requested: Vec<String>,
    /// What of it was approved; absent until the manifest it has now is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions_approved: Option<Vec<String>>,
    /// The same, each with what it means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<AgentPermission>,
    /// What its manifest asks for beyond what is usual, such as a looser fence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wishes: Vec<AgentWish>,
    /// The limits that hold: the stricter of the manifest's and the owner's.
    #[serde(default, skip_serializing_if = "AgentLimits::is_empty", deserialize_with = "known")]
    pub limits: AgentLimits,
    /// How each of these limits is kept while it runs, by its name: `kernel`, `measured` or
    /// `unkept`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits_kept: BTreeMap<String, Keeping>,
    /// Hash of its manifest.
    pub manifest_hash: String,
    /// Digests of the files that were approved with it, by their paths from the folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pinned_files: BTreeMap<String, String>,
    /// How its files differ from what was approved, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<String>,
}

/// `POST /v1/tools`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddTool {
    /// The folder with the tool server's manifest: an absolute path on the core's machine.
    pub folder: String,
    /// Whether to approve it at once; then it may be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
    /// With `approve`: these permissions and no others; everything the manifest asks for when
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<String>>,
    /// With `approve`: how firmly it is fenced in, `none`, `basic`, `standard` or `strict`; the
    /// core's default, or what the manifest asks for where that is more, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxLevel>,
}

/// A name that an operative serves tools under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Operative {
    /// The name, which its tools' ids begin with.
    pub name: String,
    /// Whether somebody is connected under it.
    pub connected: bool,
    /// The grant of whoever is connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
    /// When a connection under it last ended, if one did since the core was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<DateTime>,
    /// The ids of its tools.
    pub tools: Vec<ToolId>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
