//! What an owner approves of a provider, as options.

use wharf_vocab::{Isolation, SandboxLevel};
use wharf_wire::rest_v1::ApproveAgent;

use super::limits::LimitArgs;
use crate::commands::word;

/// Which permissions are approved, and on what terms.
#[derive(Debug, clap::Args)]
pub(crate) struct ApprovalArgs {
    /// Approve only this permission; may be repeated
    #[arg(long = "permission", value_name = "P", num_args = 1..)]
    permissions: Vec<String>,
    /// The sandbox it runs in [default: as the core is configured, else standard; a stricter one
    /// if the manifest asks for it]
    #[arg(long, value_parser = word::<SandboxLevel>())]
    sandbox: Option<SandboxLevel>,
    /// Which runs share a process [default: as the manifest says, else shared]
    #[arg(long, value_parser = word::<Isolation>())]
    isolation: Option<Isolation>,
    #[command(flatten)]
    limits: LimitArgs,
}

impl ApprovalArgs {
    /// Whether permissions are named.
    pub(crate) fn names_permissions(&self) -> bool {
        !self.permissions.is_empty()
    }

    /// Whether anything is said at all.
    pub(crate) fn says_something(&self) -> bool {
        let has_terms = self.sandbox.is_some() || self.isolation.is_some();
        has_terms || self.names_permissions() || self.limits.to_limits().is_some()
    }

    /// What the core is asked to approve, if the manifest is still the one with this hash. Where it
    /// is not all and nothing is named, the provider is approved and nothing that it asks for.
    pub(crate) fn into_request(self, all: bool, manifest_hash: Option<String>) -> ApproveAgent {
        ApproveAgent {
            manifest_hash,
            all: all.then_some(true),
            permissions: (!all).then_some(self.permissions),
            sandbox: self.sandbox,
            isolation: self.isolation,
            limits: self.limits.to_limits(),
        }
    }
}
