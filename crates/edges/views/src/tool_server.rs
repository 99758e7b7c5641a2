//! Tool servers, and what they mean for their tools.

use wharf_domain::provider::{LockedPackage, Serving, ToolEnvironment};
use wharf_engine::CatalogTool;
use wharf_ports::providers::{ProviderState, ProviderView};
use wharf_vocab::{ServerKind, ToolState};
use wharf_wire::rest_v1 as wire;

use crate::agent::agent;
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
        ProviderState::Draining => (ToolState::Unavailable, why("it stops soon")),
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

/// A tool server and how it fares, as an agent would be shown. `None` if it is none.
#[must_use]
pub fn tool_server(view: &ProviderView) -> Option<wire::ToolServer> {
    let server = view.provider.manifest.tool_server()?;
    let shown = agent(view);
    Some(wire::ToolServer {
        kind: kind(&server.how),
        state: shown.state,
        reason: shown.reason,
        enabled: view.provider.wanted,
        folder: shown.folder,
        command: shown.command,
        added_at: shown.added_at,
        pid: shown.pid,
        launch_id: shown.launch_id,
        instances: shown.instances,
        sandbox: shown.sandbox,
        sandbox_wanted: shown.sandbox_wanted,
        sandbox_notes: shown.sandbox_notes,
        isolation: shown.isolation,
        permissions_requested: shown.permissions_requested,
        permissions_approved: shown.permissions_approved,
        permissions: shown.permissions,
        wishes: shown.wishes,
        limits: shown.limits,
        limits_kept: shown.limits_kept,
        manifest_hash: shown.manifest_hash,
        pinned_files: shown.pinned_files,
        drift: shown.drift,
        environment: server.environment.as_ref().and_then(environment),
    })
}

fn environment(wanted: &ToolEnvironment) -> Option<wire::ToolEnvironment> {
    let made = wanted.made.as_ref()?;
    let package = |package: &LockedPackage| wire::LockedPackage {
        name: package.name.clone(),
        version: package.version.clone(),
        sha256: package.sha256.clone(),
    };
    Some(wire::ToolEnvironment {
        interpreter: made.interpreter.clone(),
        version: made.version.clone(),
        requirements: wanted.requirements.clone(),
        key: made.key.clone(),
        packages: made.packages.iter().map(package).collect(),
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
