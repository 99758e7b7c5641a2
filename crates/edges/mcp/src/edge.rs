//! The edge: its routers, its start and its end.

use std::sync::Arc;
use std::time::Duration;

use wharf_engine::Handle;

use crate::news::McpNews;
use crate::server::oauth::{self, McpOauth};
use crate::server::routes;
use crate::server::shared::{McpServerSettings, ServerShared};

/// How long what goes on beside requests may take to end when the core stops.
const END_MAX: Duration = Duration::from_secs(2);

/// What the edge is made of.
#[derive(Debug, Clone)]
pub struct McpEdgeOptions {
    /// The engine.
    pub handle: Handle,
    /// How clients are served.
    pub server: McpServerSettings,
    /// The authorization server elsewhere whose tokens are taken, if any.
    pub oauth: Option<Arc<McpOauth>>,
}

impl McpEdgeOptions {
    /// The usual settings.
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        Self { handle, server: McpServerSettings::default(), oauth: None }
    }
}

/// The edge that speaks MCP. Cloning it is cheap.
#[derive(Clone)]
pub struct McpEdge {
    pub(crate) shared: Arc<ServerShared>,
}

impl McpEdge {
    /// Begins to serve clients, once its router is mounted.
    #[must_use]
    pub fn start(options: McpEdgeOptions) -> Self {
        let McpEdgeOptions { handle, server, oauth } = options;
        let shared = ServerShared::new(handle, server, McpNews::default());
        Self { shared: Arc::new(ServerShared { oauth, ..shared }) }
    }

    /// The way between both halves, for [`crate::McpClientOptions`].
    #[must_use]
    pub fn news(&self) -> McpNews {
        self.shared.news.clone()
    }

    /// The routes below `/mcp`, where clients connect. Whoever mounts them lets strangers through
    /// to them: they decide about tokens that are not Wharf's own.
    pub fn clients(&self) -> axum::Router {
        routes::router(Arc::clone(&self.shared))
    }

    /// The routes below `/.well-known/oauth-protected-resource`. Whoever mounts them lets everybody
    /// through.
    pub fn well_known(&self) -> axum::Router {
        oauth::router(Arc::clone(&self.shared))
    }

    /// Ends what goes on beside requests. What is stored stays.
    pub async fn stop(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        // What takes longer is left to the end of the process.
        let _ = tokio::time::timeout(END_MAX, self.shared.tasks.wait()).await;
    }
}
