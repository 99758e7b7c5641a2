//! A core: store, engine, built-in tools and the HTTP edge, started and stopped as one.

use std::net::SocketAddr;

use wharf_engine::Handle;
use wharf_vocab::{Code, Fault};

use crate::Home;

/// How to start a core.
#[derive(Debug, Clone)]
pub struct CoreOptions {
    /// Its home.
    pub home: Home,
    /// Where it listens; the configuration says when absent.
    pub listen: Option<SocketAddr>,
    /// Whether a proxy in front of it takes care of TLS.
    pub behind_proxy: bool,
}

impl CoreOptions {
    /// A core on this home, as its configuration says.
    #[must_use]
    pub fn new(home: Home) -> Self {
        Self { home, listen: None, behind_proxy: false }
    }
}

/// A core that is up.
#[derive(Debug)]
pub struct Core {
    addr: SocketAddr,
    handle: Handle,
    owner_token: String,
}

impl Core {
    /// Starts a core; when this returns, it is ready.
    pub async fn start(options: CoreOptions) -> Result<Self, Fault> {
        let _ = options;
        Err(Fault::new(Code::CoreInternal, "This version cannot start a core yet."))
    }

    /// Where its HTTP API is.
    #[must_use]
    pub fn http_addr(&self) -> SocketAddr {
        self.addr
    }

    /// The way into its engine.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The owner's token.
    #[must_use]
    pub fn owner_token(&self) -> &str {
        &self.owner_token
    }

    /// Stops it: no new requests, what is under way ends or is kept for the next start.
    pub async fn stop(self) -> Result<(), Fault> {
        Ok(())
    }
}
