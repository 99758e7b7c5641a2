//! The edge as others hold it.

use std::sync::Arc;
use std::time::Duration;

use wharf_hosting::{Control, HostedKind};
use wharf_vocab::Fault;

use crate::options::Options;
use crate::tools::ToolServers;

/// What a launch may take beyond the time its server has to get well.
const CONNECT_SLACK: Duration = Duration::from_secs(10);

/// The edge that faces tool servers. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct RunEdge {
    control: Control,
}

impl RunEdge {
    /// Takes up the tool servers that are known. None is started before a run needs it.
    pub async fn start(mut options: Options) -> Result<Self, Fault> {
        options.hosting.connect_within = options.healthy_within + CONNECT_SLACK;
        let tools = Arc::new(ToolServers::new(options));
        Ok(Self { control: Control::start(tools as Arc<dyn HostedKind>).await? })
    }

    /// What steers the tool servers.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Ends all servers in order. They stay enabled, so the next core takes them up again.
    pub async fn stop(&self) {
        self.control.stop_all().await;
    }
}
