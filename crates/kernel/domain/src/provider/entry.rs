//! What is written about an agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{Digest, Isolation, SandboxLevel, ToolId};

use super::{Manifest, ProviderLimits};
use crate::{CallerRef, ToolDef};

/// One entry of an agent's stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ProviderEntry {
    /// Its manifest became known, or was read again.
    Added(ProviderAdded),
    /// The owner approved the manifest.
    Approved(ProviderApproved),
    /// It is to run.
    Wanted(ProviderWanted),
    /// It is not to run.
    Stopped(ProviderStopped),
    /// It offers these tools, and no others.
    ToolsOffered(ToolsOffered),
    /// The owner took the approval back.
    Revoked(ProviderRevoked),
    /// Its files are not the ones that were approved.
    Drifted(ProviderDrifted),
    /// The owner took on changed tools.
    ToolsApproved(ToolsApproved),
    /// It was removed.
    Removed(ProviderRemoved),
}

/// A manifest became known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAdded {
    /// The folder it lies in.
    pub folder: String,
    /// Hash of its bytes.
    pub manifest_hash: Digest,
    /// What it says.
    pub manifest: Manifest,
    /// Who added it.
    pub by: CallerRef,
}

/// The owner approved a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderApproved {
    /// Hash of the manifest the approval is for.
    pub manifest_hash: Digest,
    /// The permissions that were given.
    pub permissions: Vec<String>,
    /// Hash of all permissions that the manifest asks for; older approvals do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions_hash: Option<Digest>,
    /// Digests of the files that the entrypoint names, by their paths from the folder.
    #[serde(default)]
    pub files: BTreeMap<String, Digest>,
    /// How it is to run.
    #[serde(default)]
    pub terms: Terms,
    /// Whether definitions of tools that were taken on under the same manifest stay what counts.
    /// Under approvals of older cores those that were offered then took their place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_pins: bool,
    /// Who approved.
    pub by: CallerRef,
}

/// How an approved agent is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// How firmly it is fenced in.
    pub sandbox: SandboxLevel,
    /// Which runs share a process.
    pub isolation: Isolation,
    /// The owner's limits; the manifest's hold where they are stricter.
    pub limits: ProviderLimits,
    /// Whether the manifest's limits count only where they are stricter than what is usual.
    /// Approvals of older cores do not say so, and go on as they were.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_tightened: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            sandbox: SandboxLevel::Standard,
            isolation: Isolation::Shared,
            limits: ProviderLimits::default(),
            only_tightened: false,
        }
    }
}

/// The owner took the approval back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderRevoked {
    /// Who took it back.
    pub by: CallerRef,
}

/// The agent's files are not the ones that were approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderDrifted {
    /// What differs, one line each.
    pub difference: Vec<String>,
}

/// The owner took on changed tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolsApproved {
    /// Which.
    pub tools: Vec<ToolId>,
    /// Who took them on.
    pub by: CallerRef,
}

/// The agent is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderWanted {
    /// Who wants it.
    pub by: CallerRef,
}

/// The agent is not to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderStopped {
    /// Why, when it was not the owner's wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who stopped it.
    pub by: CallerRef,
}

/// The agent offers these tools. It says all that is known of the agent's tools afterwards, so
/// that only the newest of these entries has to be kept whole.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolsOffered {
    /// All of them.
    pub tools: Vec<ToolDef>,
    /// What was taken on before and is not what is offered now; older entries do not say.
    pub otherwise: Option<Vec<ToolDef>>,
    /// What was taken on under an approval that is no more.
    pub earlier: Option<EarlierPins>,
    /// Whether tools that came after the first offer under the approval are not taken on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// Which of the tools are not taken on for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untaken: Vec<ToolId>,
    /// Digest of what was offered, when a later offer has taken its place and nothing else of it
    /// is kept.
    pub replaced: Option<Digest>,
}

/// Definitions that were taken on under an approval that is no more. They count again if the same
/// manifest is approved again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlierPins {
    /// Hash of the manifest that it was for.
    pub manifest_hash: Digest,
    /// The definitions.
    pub pinned: Vec<ToolDef>,
}

impl ToolsOffered {
    /// What is kept of an offer when a later one takes its place; `None` if it is that already.
    fn replaced(&self) -> Option<Self> {
        let digest = || Some(ToolDef::digest_of(&self.tools));
        self.replaced.is_none().then(|| Self { replaced: digest(), ..Self::default() })
    }
}

impl ProviderEntry {
    /// Whether all that earlier entries of the same kind say is said again here.
    pub fn replaces_earlier(&self) -> bool {
        matches!(self, Self::ToolsOffered(offered) if offered.otherwise.is_some())
    }

    /// Whether a later entry has taken its place.
    pub fn is_replaced(&self) -> bool {
        matches!(self, Self::ToolsOffered(offered) if offered.replaced.is_some())
    }

    /// What is kept of an entry when a later one takes its place; `None` if it stays as it is.
    pub fn replaced(&self) -> Option<Self> {
        match self {
            Self::ToolsOffered(offered) => offered.replaced().map(Self::ToolsOffered),
            _ => None,
        }
    }
}

/// The agent was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderRemoved {
    /// Who removed it.
    pub by: CallerRef,
}
