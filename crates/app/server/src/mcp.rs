//! MCP as a core sets it up: the edge that clients come to, and the servers that are providers.

use std::time::Duration;

use wharf_engine::Handle;
use wharf_hosting::Control;
use wharf_mcp::{McpClientOptions, McpEdge, McpEdgeOptions, McpNews};
use wharf_vocab::Fault;

use crate::Home;
use crate::agents::{Surroundings, hosting};
use crate::settings::Settings;

/// The edge that clients of MCP come to, as it is set.
pub(crate) fn edge(settings: &Settings, handle: &Handle) -> Result<McpEdge, Fault> {
    let (server, oauth) = (settings.mcp.server(), settings.mcp.oauth()?);
    Ok(McpEdge::start(McpEdgeOptions { server, oauth, ..McpEdgeOptions::new(handle.clone()) }))
}

/// Takes up the servers of MCP that the core knows. What they say reaches clients by `news`.
pub(crate) async fn servers(
    home: &Home,
    settings: &Settings,
    handle: &Handle,
    around: Surroundings,
    news: McpNews,
) -> Result<Control, Fault> {
    let hosting = hosting(home, settings, handle, "mcp", around)?;
    let set = &settings.mcp;
    wharf_mcp::start(McpClientOptions {
        idle: set.idle_s.map_or(McpClientOptions::IDLE, Duration::from_secs),
        sampling: set.sampling,
        ..McpClientOptions::new(hosting, news)
    })
    .await
}
