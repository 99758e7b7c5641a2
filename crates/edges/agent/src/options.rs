//! How the edge is set up.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_engine::Handle;
use wharf_engine::launcher::{Launcher, RestartPolicy};
use wharf_protocol::agent::CoreLimits;

/// How the edge is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The engine.
    pub handle: Handle,
    /// Who starts processes.
    pub launcher: Arc<dyn Launcher>,
    /// Where agents' own folders lie: data, home, temporary files, logs.
    pub agents_dir: PathBuf,
    /// Where agents connect.
    pub transport: Transport,
    /// The core's id, told in the welcome.
    pub instance: String,
    /// Limits and times of a session.
    pub limits: CoreLimits,
    /// When a crashed agent is started again.
    pub restart: RestartPolicy,
    /// How long an agent may take to end.
    pub stop_grace: Duration,
    /// How long a launch's token is good.
    pub token_life: Duration,
}

/// Where agents connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A Unix socket at this path, in a folder of the owner's alone.
    Unix(PathBuf),
    /// A loopback address.
    Tcp(SocketAddr),
}
