//! What all tool servers share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use wharf_domain::Provider;
use wharf_domain::provider::ToolServer;
use wharf_hosting::Host;
use wharf_ports::vault::Secret;
use wharf_vocab::{Code, Fault, LaunchId, ProviderId};

use crate::RunEdgeOptions;
use crate::link::ServerAddress;

/// What all tool servers share.
pub(crate) struct ToolServers {
    pub(crate) host: Host,
    pub(crate) options: RunEdgeOptions,
    /// The ways to launches that are under way.
    ways: Mutex<HashMap<LaunchId, LaunchRoute>>,
    /// How many launches there have been.
    lives: AtomicU64,
}

/// The core's way to a launch.
#[derive(Debug, Clone)]
pub(crate) struct LaunchRoute {
    /// Where it is. The socket is the core's own, out of the reach of the launch.
    pub(crate) address: ServerAddress,
    /// What the server was told to ask for.
    pub(crate) secret: Option<Secret>,
}

/// What a record says of its tool server.
pub(crate) fn server_of(agent: &Provider) -> Result<&ToolServer, Fault> {
    agent.manifest.tool_server().ok_or_else(|| unknown(&agent.id))
}

pub(crate) fn unknown(id: &ProviderId) -> Fault {
    Fault::new(Code::ToolNotFound, format!("There is no tool server {id}."))
}

impl ToolServers {
    pub(crate) fn new(options: RunEdgeOptions) -> Self {
        let host = Host::new(options.hosting.clone());
        Self { host, options, ways: Mutex::default(), lives: AtomicU64::new(0) }
    }

    /// A number that no other launch has.
    pub(crate) fn next_life(&self) -> u64 {
        self.lives.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A launch is under way, and this is the way to it.
    pub(crate) fn begun(&self, launch: LaunchId, way: LaunchRoute) {
        self.ways.lock().insert(launch, way);
    }

    /// A launch is over.
    pub(crate) fn over(&self, launch: &LaunchId) {
        self.ways.lock().remove(launch);
    }

    /// The way to a launch.
    pub(crate) fn way(&self, launch: &LaunchId) -> Option<LaunchRoute> {
        self.ways.lock().get(launch).cloned()
    }
}
