//! `wharf up`: a core in the foreground until a signal stops it.

use std::net::SocketAddr;
use std::path::PathBuf;

use wharf_vocab::Fault;

use crate::{Core, CoreOptions, Home};

/// How to start a core in the foreground.
#[derive(Debug, Clone)]
pub struct UpOptions {
    /// Its home.
    pub home: Home,
    /// Where it listens; environment and configuration say when absent.
    pub listen: Option<SocketAddr>,
    /// Whether a proxy in front of it takes care of TLS.
    pub behind_proxy: bool,
    /// Whether to add the example providers.
    pub demo: bool,
}

/// What is told once the core is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// Where its API is.
    pub http: String,
    /// Its home.
    pub home: PathBuf,
    /// How many tools it has.
    pub tools: usize,
}

/// Runs a core until SIGINT or SIGTERM, then lets it finish what is under way.
pub async fn up(options: UpOptions, on_ready: impl FnOnce(&Ready) + Send) -> Result<(), Fault> {
    let UpOptions { home, listen, behind_proxy, .. } = options;
    let path = home.path().to_owned();
    let core = Core::start(CoreOptions { home, listen, behind_proxy }).await?;
    let http = format!("http://{}", core.http_addr());
    on_ready(&Ready { http, home: path, tools: core.handle().tools().len() });
    core.stop().await
}
