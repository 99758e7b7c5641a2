//! The edge: its routers, its start and its end.

use std::sync::Arc;
use std::time::Duration;

use wharf_wire::tool_v1::close;

use crate::options::ToolEdgeOptions;
use crate::routes;
use crate::shared::PeerHub;
use crate::sink;
use crate::stations::Order;

/// How long what goes on beside connections may take to end when the core stops.
const END_MAX: Duration = Duration::from_secs(2);

/// The edge that speaks the tool protocol. Cloning it is cheap.
#[derive(Clone)]
pub struct ToolEdge {
    shared: Arc<PeerHub>,
}

impl ToolEdge {
    /// Takes up the operatives there are; runs wait for them for a while.
    pub async fn start(options: ToolEdgeOptions) -> Self {
        let shared = Arc::new(PeerHub::new(options));
        let known = shared.options.handle.providers().list().into_iter();
        for agent in known.filter(|known| !known.manifest.kind.is_launched()) {
            if let Err(fault) = sink::take_up(&shared, &agent.id, agent.tools).await {
                tracing::error!(provider = %agent.id, %fault, "an operative was not taken up");
            }
        }
        Self { shared }
    }

    /// The routes below `/v1/tool`, where peers connect.
    pub fn peers(&self) -> axum::Router {
        routes::peers(Arc::clone(&self.shared))
    }

    /// The routes below `/v1/operatives`, for whoever looks after them.
    pub fn operatives(&self) -> axum::Router {
        routes::operatives(Arc::clone(&self.shared))
    }

    /// Ends the connections of principals: what they started and did not detach is called off.
    /// Operatives may go on with what they have.
    pub async fn drain(&self) {
        self.shared.draining.cancel();
        self.shared.followers.close();
        // What an operative asks for may go on; it is not waited for.
        let _ = tokio::time::timeout(END_MAX, self.shared.followers.wait()).await;
    }

    /// Ends all connections. Names and their tools stay.
    pub async fn stop(&self) {
        self.shared.draining.cancel();
        self.shared.stop.cancel();
        let reason = || "the core stops".to_owned();
        for station in self.shared.stations() {
            station.tell(Order::Close { code: close::RESTART, reason: reason() });
        }
        self.shared.background.close();
        // What takes longer is left to the end of the process.
        let _ = tokio::time::timeout(END_MAX, self.shared.background.wait()).await;
    }
}
