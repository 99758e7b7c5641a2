//! MCP servers.

use wharf_domain::ProviderKind;
use wharf_domain::provider::{McpLogin, McpPackage, McpServing};
use wharf_ports::providers::ProviderView;
use wharf_wire::rest_v1 as wire;

use crate::agent::agent;

/// An MCP server and how it fares. `None` if it is none.
#[must_use]
pub fn mcp_server(view: &ProviderView) -> Option<wire::McpServer> {
    let details = view.provider.manifest.mcp()?;
    let shown = agent(view);
    let (url, allow_private) = match &details.how {
        McpServing::Command => (None, false),
        McpServing::Url { url, allow_private } => (Some(url.clone()), *allow_private),
    };
    let (npm, pypi) = match &details.package {
        Some(McpPackage::Npm(package)) => (Some(package.clone()), None),
        Some(McpPackage::Pypi(package)) => (None, Some(package.clone())),
        None => (None, None),
    };
    let is_shown = |id: &wharf_vocab::ToolId| {
        !view.provider.tools.iter().any(|def| def.hidden && def.tool == *id)
    };
    Some(wire::McpServer {
        server_id: shown.agent_id,
        state: shown.state,
        reason: shown.reason,
        enabled: view.provider.wanted,
        listed: view.provider.settled,
        tools: shown.tools.into_iter().filter(is_shown).collect(),
        quarantined: shown.quarantined,
        command: if url.is_none() { shown.command } else { Vec::new() },
        url,
        allow_private,
        npm,
        pypi,
        description: shown.description,
        folder: shown.folder,
        added_at: shown.added_at,
        pid: shown.pid,
        launch_id: shown.launch_id,
        instances: shown.instances,
        env: details.env.clone(),
        env_secrets: details.env_secrets.clone(),
        token_secret: details.token_secret.clone(),
        header_secrets: details.header_secrets.clone(),
        oauth: details.oauth.as_ref().map(login),
        accept_new: details.accept_new,
        trust_annotations: details.trust_annotations,
        era: details.era,
        sampling: details.sampling,
        roots: details.roots,
        idle_s: details.idle_s,
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
        hints: view.hints.clone(),
    })
}

fn login(login: &McpLogin) -> wire::McpOauth {
    wire::McpOauth {
        client_id: login.client_id.clone(),
        client_secret: login.client_secret.clone(),
        issuer: login.issuer.clone(),
        scopes: login.scopes.clone(),
    }
}

/// A provider as somebody sees it who does not administer it. Which start of its process is
/// current tells where its sockets and folders lie, and variables hold whatever was typed.
#[must_use]
pub fn without_internals(mut view: ProviderView) -> ProviderView {
    if let ProviderKind::Mcp(details) = &mut view.provider.manifest.kind {
        details.env.clear();
    }
    ProviderView { launch: None, ..view }
}
