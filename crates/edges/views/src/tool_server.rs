//! Tool servers, and what they mean for their tools.

use wharf_domain::provider::{Approval, Serving};
use wharf_engine::CatalogTool;
use wharf_ports::providers::{ProviderState, ProviderView};
use wharf_vocab::{DateTime, SandboxLevel, ServerKind, ToolState};
use wharf_wire::rest_v1 as wire;

use crate::agent::{limits_kept, permissions, to_limits, wish};
use crate::tool::{tool, tool_of};

/// A tool with a server of its own: as the catalog has it, if it is there, but in the state that
/// its server gives it. `None` if it is no tool server.
#[must_use]
pub fn served_tool(view: &ProviderView, known: Option<&CatalogTool>) -> Option<wire::Tool> {
    let server = view.provider.manifest.tool_server()?;
    let mut shown = known.map_or_else(|| tool_of(&server.tool), tool);
    let quarantined = known.is_some_and(|known| known.quarantine.is_some());
    if !quarantined && let Some((state, reason)) = state(view, known.is_some()) {
        shown.state = state;
        shown.state_reason = reason;
    }
    Some(shown)
}

/// The state that a server gives its tool; `None` where the catalog knows better.
fn state(view: &ProviderView, is_known: bool) -> Option<(ToolState, Option<String>)> {
    let why = |otherwise: &str| Some(view.reason.clone().unwrap_or_else(|| otherwise.to_owned()));
    let (state, reason) = match view.state {
        ProviderState::Added => (ToolState::Unavailable, Some("not approved".to_owned())),
        ProviderState::Drifted => {
            (ToolState::Unavailable, why("its files are not the ones that were approved"))
        }
        ProviderState::Crashed => (ToolState::Unavailable, why("it ended too often")),
        ProviderState::Approved | ProviderState::Stopped if !view.provider.wanted => {
            (ToolState::Disabled, view.reason.clone())
        }
        _ if is_known => return None,
        ProviderState::Running => (ToolState::Available, None),
        ProviderState::Unhealthy => (ToolState::Unavailable, why("its server is not healthy")),
        ProviderState::Approved
        | ProviderState::Stopped
        | ProviderState::Starting
        | ProviderState::BackingOff => (ToolState::Starting, view.reason.clone()),
    };
    Some((state, reason))
}

/// A tool server and how it fares. `None` if it is none.
#[must_use]
pub fn tool_server(view: &ProviderView) -> Option<wire::ToolServer> {
    let agent = &view.provider;
    let manifest = &agent.manifest;
    let server = manifest.tool_server()?;
    let same = |approval: &&Approval| approval.manifest_hash == agent.manifest_hash;
    let approval = agent.approval.as_ref().filter(same);
    let command = std::iter::once(&manifest.entrypoint.program).chain(&manifest.entrypoint.args);
    let wanted = approval.map(|approval| approval.terms.sandbox);
    let achieved = view.fence.as_ref().map(|fence| fence.level);
    let pinned = approval.map(|approval| {
        approval.files.iter().map(|(path, digest)| (path.clone(), digest.to_string())).collect()
    });
    let given = approval.map_or(&[][..], |given| &given.permissions);
    Some(wire::ToolServer {
        kind: kind(&server.how),
        state: view.state,
        reason: view.reason.clone(),
        enabled: agent.wanted,
        folder: agent.folder.clone(),
        command: command.cloned().collect(),
        added_at: DateTime(agent.added_at),
        pid: view.pid,
        launch_id: view.launch.clone(),
        instances: view.instances as u64,
        sandbox: achieved.or(wanted).unwrap_or(SandboxLevel::None),
        sandbox_wanted: wanted,
        sandbox_notes: view.fence.as_ref().map_or_else(Vec::new, |fence| fence.notes.clone()),
        isolation: approval.map(|approval| approval.terms.isolation),
        permissions_requested: manifest.permissions.clone(),
        permissions_approved: approval.map(|approval| approval.permissions.clone()),
        permissions: permissions(manifest, given),
        wishes: view.wishes.iter().map(wish).collect(),
        limits: to_limits(&view.limits),
        limits_kept: view.fence.as_ref().map(limits_kept).unwrap_or_default(),
        manifest_hash: agent.manifest_hash.to_string(),
        pinned_files: pinned.unwrap_or_default(),
        drift: agent.drift.clone(),
    })
}

fn kind(how: &Serving) -> ServerKind {
    match how {
        Serving::Handler { .. } => ServerKind::Handler,
        Serving::Program { .. } => ServerKind::Program,
        Serving::Image { .. } => ServerKind::Image,
        Serving::Remote { .. } => ServerKind::Remote,
    }
}
