//! MCP servers.

use std::time::Duration;

use wharf_wire::rest_v1::{
    AddMcp, AgentLogLine, ApproveAgent, BeginMcpLogin, EndMcpLogin, McpLoginPage, McpLoginState,
    McpServer, Page,
};

use super::providers::LogFollower;
use crate::call::{Call, List};
use crate::client::Client;
use crate::error::Result;

/// A package is installed before its approval is answered.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// MCP servers, as [`Client::mcp_servers`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct McpServers<'a>(pub(super) &'a Client);

impl McpServers<'_> {
    /// All MCP servers.
    pub fn list(&self) -> List<McpServer> {
        List::new(self.0, &["v1", "mcp"])
    }

    /// One MCP server.
    pub fn get(&self, id: &str) -> Call<McpServer> {
        self.0.read_at(&["v1", "mcp", id])
    }

    /// Adds an MCP server: a command, an address, a package, or a folder of the core's machine.
    /// Nothing is started unless it is approved at once.
    pub fn add(&self, server: &AddMcp) -> Call<McpServer> {
        self.0.post_to(&["v1", "mcp"]).body(server).timeout(INSTALL_TIMEOUT)
    }

    /// Approves what an MCP server asks for, and starts it; the answer does not wait until it runs.
    pub fn approve(&self, id: &str, terms: &ApproveAgent) -> Call<McpServer> {
        self.0.post_to(&["v1", "mcp", id, "approve"]).body(terms).timeout(INSTALL_TIMEOUT)
    }

    /// Takes an MCP server's approval back and stops it.
    pub fn revoke(&self, id: &str) -> Call<McpServer> {
        self.0.post_to(&["v1", "mcp", id, "revoke"])
    }

    /// Allows calls of an MCP server.
    pub fn start(&self, id: &str) -> Call<McpServer> {
        self.0.post_to(&["v1", "mcp", id, "start"])
    }

    /// Stops an MCP server and forbids calls of it.
    pub fn stop(&self, id: &str) -> Call<McpServer> {
        self.0.post_to(&["v1", "mcp", id, "stop"])
    }

    /// Stops an MCP server and starts it again.
    pub fn restart(&self, id: &str) -> Call<McpServer> {
        self.0.post_to(&["v1", "mcp", id, "restart"])
    }

    /// Begins to log in at an MCP server elsewhere, and gives the page to open.
    pub fn login(&self, id: &str, begin: &BeginMcpLogin) -> Call<McpLoginPage> {
        self.0.post_to(&["v1", "mcp", id, "login"]).body(begin)
    }

    /// Ends a login with what its page led back with, or waits a while for a code to be typed.
    pub fn finish_login(&self, id: &str, end: &EndMcpLogin) -> Call<McpLoginState> {
        self.0.post_to(&["v1", "mcp", id, "login", "finish"]).body(end)
    }

    /// Forgets what logins at an MCP server brought.
    pub fn forget_login(&self, id: &str) -> Call<()> {
        self.0.delete_at(&["v1", "mcp", id, "login"])
    }

    /// Reads again what an MCP server offers.
    pub fn refresh(&self, id: &str) -> Call<McpServer> {
        self.0.post_to(&["v1", "mcp", id, "refresh"])
    }

    /// Removes an MCP server that is stopped.
    pub fn remove(&self, id: &str) -> Call<()> {
        self.0.delete_at(&["v1", "mcp", id])
    }

    /// The last lines of an MCP server's log.
    pub fn logs(&self, id: &str, lines: u64) -> Call<Page<AgentLogLine>> {
        let lines = lines.to_string();
        self.0.read_at(&["v1", "mcp", id, "logs"]).query("lines", Some(&lines))
    }

    /// The last lines of an MCP server's log, and then new ones until its process ends.
    pub async fn follow_logs(&self, id: &str, lines: u64) -> Result<LogFollower> {
        LogFollower::open(self.0, &["v1", "mcp", id, "logs"], lines).await
    }
}
