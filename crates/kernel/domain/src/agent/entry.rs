//! What is written about an agent.

use serde::{Deserialize, Serialize};
use wharf_vocab::Digest;

use super::AgentManifest;
use crate::{CallerRef, ToolDef};

/// One entry of an agent's stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AgentEntry {
    /// Its manifest became known, or was read again.
    Added(AgentAdded),
    /// The owner approved the manifest.
    Approved(AgentApproved),
    /// It is to run.
    Wanted(AgentWanted),
    /// It is not to run.
    Stopped(AgentStopped),
    /// It offers these tools, and no others.
    ToolsOffered(ToolsOffered),
    /// It was removed.
    Removed(AgentRemoved),
}

/// A manifest became known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentAdded {
    /// The folder it lies in.
    pub folder: String,
    /// Hash of its bytes.
    pub manifest_hash: Digest,
    /// What it says.
    pub manifest: AgentManifest,
    /// Who added it.
    pub by: CallerRef,
}

/// The owner approved a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentApproved {
    /// Hash of the manifest the approval is for.
    pub manifest_hash: Digest,
    /// The permissions that were given.
    pub permissions: Vec<String>,
    /// Who approved.
    pub by: CallerRef,
}

/// The agent is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentWanted {
    /// Who wants it.
    pub by: CallerRef,
}

/// The agent is not to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStopped {
    /// Why, when it was not the owner's wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who stopped it.
    pub by: CallerRef,
}

/// The agent offers these tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolsOffered {
    /// All of them.
    pub tools: Vec<ToolDef>,
}

/// The agent was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRemoved {
    /// Who removed it.
    pub by: CallerRef,
}
