//! Providers that have a record: agents, tool servers and MCP servers, which the core takes up
//! from a folder with a manifest, and operatives, which connect by themselves.
//!
//! All have the same life here: added, approved, wanted, stopped, drifted, removed; what differs
//! stands in [`ProviderKind`].
//!
//! What stands here is durable: which manifest is known, what of it the owner approved, whether
//! the agent is to run, and which tools it has offered. How its process fares is not durable and
//! lives with whoever launches it.

mod decide;
mod entry;
mod limits;
mod manifest;
mod mcp;
mod server;
mod wish;

use std::collections::BTreeMap;

use wharf_vocab::{Digest, GrantId, ProviderId, Timestamp, ToolId};

pub use decide::ProviderInput;
pub use entry::{
    EarlierPins, ProviderAdded, ProviderApproved, ProviderDrifted, ProviderEntry, ProviderRemoved,
    ProviderRevoked, ProviderStopped, ProviderWanted, Terms, ToolsApproved, ToolsOffered,
};
pub use limits::{ProviderLimits, Rate, Usage};
pub use manifest::{AgentDetails, Entrypoint, Manifest, ProviderKind, ProviderType};
pub use mcp::{
    McpDetails, McpEraChoice, McpLogin, McpOrigin, McpPackage, McpRoots, McpSampling, McpServing,
};
pub use server::{
    LockedPackage, MadeEnvironment, Serving, ToolEnvironment, ToolServer, ToolSource,
};
pub use wish::{DefaultTerms, OwnerTerms, Wish, WishKind};

use crate::permission::{Permission, ToolPattern, permissions_hash};
use crate::{CallerRef, ToolDef};

/// Names that belong to the core. An agent under one of them could offer tools in the core's name.
pub const RESERVED_IDS: [&str; 4] = ["wharf", "core", "owner", "flow"];

/// An agent as its journal tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    /// Its id.
    pub id: ProviderId,
    /// When it was added.
    pub added_at: Timestamp,
    /// The folder its manifest lies in.
    pub folder: String,
    /// Hash of the manifest's bytes.
    pub manifest_hash: Digest,
    /// What the manifest says.
    pub manifest: Manifest,
    /// What the owner approved, if anything.
    pub approval: Option<Approval>,
    /// Whether it is to run, also after a restart of the core.
    pub wanted: bool,
    /// Why it was stopped, when it did not end at the owner's wish.
    pub stop_reason: Option<String>,
    /// The tools it has offered; they keep their place while it is away.
    pub tools: Vec<ToolDef>,
    /// The definitions that were taken on under the approval, each when it was first offered.
    pub pinned: BTreeMap<ToolId, ToolDef>,
    /// What was taken on under an approval that is no more. It counts again if the same manifest is
    /// approved again.
    pub earlier: Option<EarlierPins>,
    /// Whether its tools were offered under the approval: those that come later are new.
    pub settled: bool,
    /// How its files differ from what was approved, if they do.
    pub drift: Vec<String>,
    /// Whether it was removed.
    pub removed: bool,
    /// Every grant that is not a person's own and with which it was added or approved.
    pub makers: Vec<GrantId>,
}

/// What the owner approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Hash of the manifest the approval is for.
    pub manifest_hash: Digest,
    /// The permissions that were given.
    pub permissions: Vec<String>,
    /// Hash of all permissions that the manifest asks for; older approvals do not have it.
    pub permissions_hash: Option<Digest>,
    /// Digests of the files that the entrypoint names, by their paths from the folder.
    pub files: BTreeMap<String, Digest>,
    /// How it is to run.
    pub terms: Terms,
}

impl Provider {
    /// The agent after an entry; `None` if the entry cannot follow.
    pub fn apply(
        agent: Option<Self>,
        id: &ProviderId,
        at: Timestamp,
        entry: &ProviderEntry,
    ) -> Option<Self> {
        if let ProviderEntry::Added(added) = entry {
            return Some(Self::added(agent, id, at, added));
        }
        let mut agent = agent?;
        match entry {
            ProviderEntry::Added(_) => {}
            ProviderEntry::Approved(approved) => {
                agent.repin(approved);
                agent.drift.clear();
                agent.makers = agent.approved_by(&approved.by);
                agent.approval = Some(Approval {
                    manifest_hash: approved.manifest_hash.clone(),
                    permissions: approved.permissions.clone(),
                    permissions_hash: approved.permissions_hash.clone(),
                    files: approved.files.clone(),
                    terms: approved.terms.clone(),
                });
            }
            ProviderEntry::Revoked(_) => {
                agent.earlier = agent.pins_put_aside();
                agent.approval = None;
                agent.wanted = false;
                agent.pinned.clear();
                agent.settled = false;
                agent.drift.clear();
            }
            ProviderEntry::Drifted(drifted) => agent.drift.clone_from(&drifted.difference),
            ProviderEntry::ToolsApproved(approved) => {
                let taken = agent.tools.iter().filter(|def| approved.tools.contains(&def.tool));
                let taken: Vec<_> = taken.cloned().collect();
                agent.pinned.extend(by_id(&taken));
            }
            ProviderEntry::Wanted(_) => {
                agent.wanted = true;
                agent.stop_reason = None;
            }
            ProviderEntry::Stopped(stopped) => {
                agent.wanted = false;
                agent.stop_reason.clone_from(&stopped.reason);
            }
            // A later entry says all that this one did.
            ProviderEntry::ToolsOffered(ToolsOffered { replaced: Some(_), .. }) => {}
            ProviderEntry::ToolsOffered(offered) => {
                agent.tools.clone_from(&offered.tools);
                if let Some(otherwise) = &offered.otherwise {
                    agent.pinned = by_id(otherwise);
                    agent.earlier.clone_from(&offered.earlier);
                }
                // Without an approval that holds there is nothing to take a tool on under.
                let taken = if agent.is_approved() { &offered.tools[..] } else { &[] };
                for def in taken.iter().filter(|def| !offered.untaken.contains(&def.tool)) {
                    agent.pinned.entry(def.tool.clone()).or_insert_with(|| def.clone());
                }
                agent.settled = offered.closed || agent.is_approved();
            }
            ProviderEntry::Removed(_) => {
                agent.removed = true;
                agent.wanted = false;
                agent.approval = None;
                agent.tools.clear();
                agent.pinned.clear();
                agent.settled = false;
                agent.earlier = None;
            }
        }
        Some(agent)
    }

    /// What counts of the tools' definitions under a new approval. Another manifest is another
    /// matter; under the same one a definition that changed has to be taken on by itself.
    fn repin(&mut self, approved: &ProviderApproved) {
        let same = |hash: &Digest| *hash == approved.manifest_hash;
        let earlier = self.earlier.take();
        match &self.approval {
            Some(approval) if same(&approval.manifest_hash) => {
                if !approved.keeps_pins {
                    self.pinned.extend(by_id(&self.tools));
                }
            }
            _ => {
                let earlier =
                    earlier.filter(|pins| approved.keeps_pins && same(&pins.manifest_hash));
                self.pinned = earlier.map(|pins| by_id(&pins.pinned)).unwrap_or_default();
                self.settled = !self.pinned.is_empty();
            }
        }
    }

    /// The definitions that count now, to be found again; those of before if none do.
    fn pins_put_aside(&self) -> Option<EarlierPins> {
        let of = |approval: &Approval| EarlierPins {
            manifest_hash: approval.manifest_hash.clone(),
            pinned: self.pinned.values().cloned().collect(),
        };
        self.approval.as_ref().map(of).or_else(|| self.earlier.clone())
    }

    /// A manifest that was added again keeps the tools' places but needs a new approval.
    fn added(agent: Option<Self>, id: &ProviderId, at: Timestamp, added: &ProviderAdded) -> Self {
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
            earlier: known.as_ref().and_then(Self::pins_put_aside),
            tools: known.map_or_else(Vec::new, |agent| agent.tools),
            pinned: BTreeMap::new(),
            settled: false,
            drift: Vec::new(),
            removed: false,
            makers: added.by.links(),
        }
    }

    fn approved_by(&self, by: &CallerRef) -> Vec<GrantId> {
        let mut makers = self.makers.clone();
        makers.extend(by.links().into_iter().filter(|link| !self.makers.contains(link)));
        makers
    }

    /// Whether the manifest it has now, and what it asks for, is what the owner approved, and
    /// nothing has drifted.
    pub fn is_approved(&self) -> bool {
        let same = |approval: &Approval| {
            let asked = || permissions_hash(&self.manifest.permissions);
            approval.manifest_hash == self.manifest_hash
                && approval.permissions_hash.as_ref().is_none_or(|hash| *hash == asked())
        };
        self.drift.is_empty() && self.approval.as_ref().is_some_and(same)
    }

    /// The permissions the owner gave; none without an approval that holds.
    pub fn permissions(&self) -> Vec<Permission> {
        let given = self.approval.as_ref().filter(|_| self.is_approved());
        let given = given.map_or(&[][..], |approval| &approval.permissions);
        given.iter().filter_map(|text| Permission::parse(text).ok()).collect()
    }

    /// The tools that the owner lets it call.
    pub fn callable(&self) -> Vec<ToolPattern> {
        let tools = self.permissions().into_iter().filter_map(|permission| match permission {
            Permission::Invoke(pattern) => Some(pattern),
            _ => None,
        });
        tools.collect()
    }

    /// Whether another offer of the same tools would take nothing on.
    fn is_pinned(&self) -> bool {
        match self.keeps_new_out() {
            true => self.settled,
            false => self.tools.iter().all(|def| self.pinned.contains_key(&def.tool)),
        }
    }

    /// Whether tools that come after its approval wait for somebody to take them on: under a new
    /// name a changed tool would pass for another one.
    fn keeps_new_out(&self) -> bool {
        self.manifest.mcp().is_some_and(|details| !details.accept_new)
    }

    /// Whether what it offers from now on is taken on only as far as it was before.
    fn is_closed(&self) -> bool {
        self.settled && self.keeps_new_out()
    }

    /// Tools that are offered with another definition than was taken on, or that are new where
    /// new ones wait.
    pub fn quarantined(&self) -> impl Iterator<Item = &ToolDef> {
        self.tools.iter().filter(|def| self.is_changed(def))
    }

    /// What was taken on and is not what is offered now. Without an approval that holds nothing
    /// that is offered is taken on, so that is all of it.
    fn pinned_otherwise(&self, tools: &[ToolDef]) -> Vec<ToolDef> {
        let approved = self.is_approved();
        let same = |pinned: &&ToolDef| !(approved && tools.contains(pinned));
        self.pinned.values().filter(same).cloned().collect()
    }

    fn is_changed(&self, def: &ToolDef) -> bool {
        match self.pinned.get(&def.tool) {
            Some(pinned) => pinned.hash() != def.hash(),
            None => self.is_closed(),
        }
    }
}

fn by_id(tools: &[ToolDef]) -> BTreeMap<ToolId, ToolDef> {
    tools.iter().map(|def| (def.tool.clone(), def.clone())).collect()
}
