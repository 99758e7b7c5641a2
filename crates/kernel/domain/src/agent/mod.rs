//! Agents: providers that the core launches from a folder with a manifest.
//!
//! What stands here is durable: which manifest is known, what of it the owner approved, whether
//! the agent is to run, and which tools it has offered. How its process fares is not durable and
//! lives with whoever launches it.

mod decide;
mod entry;
mod manifest;

use wharf_vocab::{AgentId, Digest, Timestamp};

pub use decide::AgentInput;
pub use entry::{
    AgentAdded, AgentApproved, AgentEntry, AgentRemoved, AgentStopped, AgentWanted, ToolsOffered,
};
pub use manifest::{AgentManifest, Entrypoint};

use crate::ToolDef;

/// An agent as its journal tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// When it was added.
    pub added_at: Timestamp,
    /// The folder its manifest lies in.
    pub folder: String,
    /// Hash of the manifest's bytes.
    pub manifest_hash: Digest,
    /// What the manifest says.
    pub manifest: AgentManifest,
    /// What the owner approved, if anything.
    pub approval: Option<Approval>,
    /// Whether it is to run, also after a restart of the core.
    pub wanted: bool,
    /// Why it was stopped, when it did not end at the owner's wish.
    pub stop_reason: Option<String>,
    /// The tools it has offered; they keep their place while it is away.
    pub tools: Vec<ToolDef>,
    /// Whether it was removed.
    pub removed: bool,
}

/// What the owner approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Hash of the manifest the approval is for.
    pub manifest_hash: Digest,
    /// The permissions that were given.
    pub permissions: Vec<String>,
}

impl Agent {
    /// The agent after an entry; `None` if the entry cannot follow.
    #[must_use]
    pub fn apply(
        agent: Option<Self>,
        id: &AgentId,
        at: Timestamp,
        entry: &AgentEntry,
    ) -> Option<Self> {
        if let AgentEntry::Added(added) = entry {
            return Some(Self::added(agent, id, at, added));
        }
        let mut agent = agent?;
        match entry {
            AgentEntry::Added(_) => {}
            AgentEntry::Approved(approved) => {
                agent.approval = Some(Approval {
                    manifest_hash: approved.manifest_hash.clone(),
                    permissions: approved.permissions.clone(),
                });
            }
            AgentEntry::Wanted(_) => {
                agent.wanted = true;
                agent.stop_reason = None;
            }
            AgentEntry::Stopped(stopped) => {
                agent.wanted = false;
                agent.stop_reason.clone_from(&stopped.reason);
            }
            AgentEntry::ToolsOffered(offered) => agent.tools.clone_from(&offered.tools),
            AgentEntry::Removed(_) => {
                agent.removed = true;
                agent.wanted = false;
                agent.approval = None;
                agent.tools.clear();
            }
        }
        Some(agent)
    }

    /// A manifest that was added again keeps the tools' places but needs a new approval.
    fn added(agent: Option<Self>, id: &AgentId, at: Timestamp, added: &AgentAdded) -> Self {
        let known = agent.filter(|agent| !agent.removed);
        Self {
            id: id.clone(),
            added_at: known.as_ref().map_or(at, |agent| agent.added_at),
            folder: added.folder.clone(),
            manifest_hash: added.manifest_hash.clone(),
            manifest: added.manifest.clone(),
            approval: None,
            wanted: false,
            stop_reason: None,
            tools: known.map_or_else(Vec::new, |agent| agent.tools),
            removed: false,
        }
    }

    /// Whether the manifest it has now is the one the owner approved.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        let same = |approval: &Approval| approval.manifest_hash == self.manifest_hash;
        self.approval.as_ref().is_some_and(same)
    }
}
