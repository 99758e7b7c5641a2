//! Whether a tool may be used now: its definition is approved, and so is the agent behind it.

use std::collections::BTreeMap;

use wharf_domain::provider::RESERVED_IDS;
use wharf_domain::run::RunContext;
use wharf_domain::{Permission, Provider, ProviderKind, json_weight};
use wharf_ports::Dispatch;
use wharf_vocab::{Code, Fault, GrantId, ProviderId, ToolId};

use crate::catalog::{Catalog, CatalogTool, not_found};
use crate::records::Records;

/// Most paths a context may name.
const PATHS_MAX: usize = 256;
/// Longest path of a context.
const PATH_BYTES_MAX: usize = 4096;
/// Largest description of what a caller's program shows, as JSON text.
const UI_BYTES_MAX: usize = 64 * 1024;

/// How the core checks inputs against a tool's schema before a run is accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InputCheck {
    /// Inputs that do not fit are refused.
    #[default]
    Enforce,
    /// Inputs that do not fit are let pass, and the run's log says so.
    Warn,
    /// Only the agent checks.
    Off,
}

/// How the inputs of agents' tools are checked; those of all others are always enforced.
#[derive(Debug, Clone, Default)]
pub struct InputChecks {
    /// Of agents of which nothing else is said.
    pub agents: InputCheck,
    /// Of single agents.
    pub by_id: BTreeMap<ProviderId, InputCheck>,
}

impl InputChecks {
    /// How an agent's inputs are checked.
    pub fn of_agent(&self, id: &ProviderId) -> InputCheck {
        self.by_id.get(id).copied().unwrap_or(self.agents)
    }

    /// How the inputs of a tool are checked.
    pub(crate) fn of(&self, records: &Records, tool: &ToolId) -> InputCheck {
        if self.agents == InputCheck::Enforce && self.by_id.is_empty() {
            return InputCheck::Enforce;
        }
        let provider = tool.provider();
        let of_kind = |known: &Provider| match known.manifest.kind {
            ProviderKind::Agent(_) => self.of_agent(&provider),
            ProviderKind::ToolServer(_) | ProviderKind::Mcp(_) | ProviderKind::Operative => {
                InputCheck::Enforce
            }
        };
        records.providers.look(&provider, of_kind).unwrap_or(InputCheck::Enforce)
    }
}

/// Whether a tool may be called at all.
pub(crate) fn check_tool(records: &Records, tool: &CatalogTool) -> Result<(), Fault> {
    let id = &tool.def.tool;
    if let Some(reason) = &tool.quarantine {
        let reason = reason.trim_end_matches('.');
        let message = format!("The tool {id} may not be called: {reason}.");
        return Err(Fault::new(Code::ToolQuarantined, message).with("tool", id.as_str()));
    }
    of_agent(records, &id.provider(), check_agent).unwrap_or(Ok(()))
}

/// Whether an attempt may be handed out now: nothing that was revoked starts any more. What was
/// approved is what runs: a definition that changed while the run waited is another tool.
pub(crate) fn check_dispatch(
    catalog: &Catalog,
    records: &Records,
    dispatch: &Dispatch,
) -> Result<(), Fault> {
    if dispatch.reattach {
        return Ok(());
    }
    let spec = &dispatch.spec;
    let caller = &spec.caller;
    let chain = caller.links.iter().chain(&caller.root).chain([&caller.grant]);
    if let Some(id) = records.grants.revoked(chain) {
        return Err(revoked(&id));
    }
    let tool = catalog.tool(&spec.tool).ok_or_else(|| not_found(&spec.tool))?;
    check_tool(records, &tool)?;
    if dispatch.approval.is_some() && tool.hash != spec.tool_hash {
        let message = format!("The tool {} is not the one that was approved any more.", spec.tool);
        return Err(Fault::new(Code::ToolQuarantined, message).with("tool", spec.tool.as_str()));
    }
    Ok(())
}

/// What of a context the tool's provider may know. Only agents get one, and of paths only those
/// that the owner approved for the agent.
pub(crate) fn context(
    records: &Records,
    provider: &ProviderId,
    context: RunContext,
    home: Option<&str>,
) -> Result<RunContext, Fault> {
    if context.is_empty() {
        return Ok(context);
    }
    let Some(permissions) = of_agent(records, provider, Provider::permissions) else {
        return Ok(RunContext::default());
    };
    if context.resource_paths.len() > PATHS_MAX {
        let message = format!("A context names {PATHS_MAX} paths at most.");
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    if context.ui.as_ref().is_some_and(|ui| json_weight(ui) > UI_BYTES_MAX) {
        let message = format!("The ui of a context has {UI_BYTES_MAX} bytes at most.");
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    for path in context.paths() {
        if !is_canonical(path) || !permissions.iter().any(|given| reaches(given, path, home)) {
            let message = format!("No path approved for {provider} holds a path of the context.");
            let fault = Fault::new(Code::PermissionDenied, message);
            return Err(fault.with("permission", "filesystem:read"));
        }
    }
    Ok(context)
}

/// The refusal that goes with a grant that is worth nothing any more.
pub(crate) fn revoked(id: &GrantId) -> Fault {
    let message = "A grant this is asked with has been revoked.";
    Fault::new(Code::PermissionDenied, message).with("grant", id.as_str())
}

fn of_agent<T>(
    records: &Records,
    provider: &ProviderId,
    look: impl FnOnce(&Provider) -> T,
) -> Option<T> {
    if RESERVED_IDS.contains(&provider.as_str()) {
        return None;
    }
    records.providers.look(provider, |agent| (!agent.removed).then(|| look(agent)))?
}

fn check_agent(agent: &Provider) -> Result<(), Fault> {
    // An operative is let in by its token, and that is all the approval there is.
    if !agent.manifest.kind.is_launched() || agent.is_approved() {
        return Ok(());
    }
    let kind = agent.manifest.kind.of();
    let fault = match agent.drift.is_empty() {
        true => {
            let message = format!("The {} {} is not approved.", kind.words(), agent.id);
            Fault::new(Code::AgentNotApproved, message)
        }
        false => kind.drifted(&agent.id, &agent.drift),
    };
    Err(fault.with("agent", agent.id.as_str()))
}

/// Whether a path is absolute and says where it leads without any detour.
fn is_canonical(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    path.len() <= PATH_BYTES_MAX
        && !path.chars().any(char::is_control)
        && rest.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

fn reaches(permission: &Permission, path: &str, home: Option<&str>) -> bool {
    let (Permission::Read(glob) | Permission::Write(glob)) = permission else { return false };
    let glob = home.map_or_else(|| glob.clone(), |home| glob.at_home(home));
    glob.matches(path) || glob.root() == (path, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r103_a_path_that_takes_a_detour_is_not_canonical() {
        for good in ["/srv", "/srv/data/a b", "/srv/..data"] {
            assert!(is_canonical(good), "{good}");
        }
        let long = format!("/{}", "a".repeat(PATH_BYTES_MAX));
        for bad in
            ["", "srv", "~/x", "/", "//", "/a/", "/a//b", "/a/../b", "/a/./b", "/a\nb", &long]
        {
            assert!(!is_canonical(bad), "{bad}");
        }
    }

    #[test]
    fn r103_a_path_lies_within_what_was_approved_or_it_does_not() {
        let reach = |text: &str, path: &str| {
            let permission = Permission::parse(text).expect("valid");
            reaches(&permission, path, Some("/home/ada"))
        };
        assert!(reach("filesystem:read:/srv/data/**", "/srv/data/x/y"));
        assert!(reach("filesystem:read:/srv/data/**", "/srv/data"));
        assert!(reach("filesystem:write:~/notes/**", "/home/ada/notes/today.md"));
        assert!(!reach("filesystem:read:/srv/data/**", "/srv/database"));
        assert!(!reach("filesystem:read:/srv/data/**", "/srv"));
        assert!(!reach("network:egress:srv.dev", "/srv"));
    }
}
