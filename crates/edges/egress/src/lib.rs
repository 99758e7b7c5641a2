//! The way out for fenced processes: a proxy that lets through only approved hosts.
//!
//! Each agent has a door of its own: a Unix socket on which it speaks to an HTTP/1.1 proxy. A
//! `CONNECT` opens a tunnel, a request with a whole `http://` address is forwarded, one per
//! connection. A host is let through when an approved pattern fits it; then its name is resolved
//! here, and the connection goes to the very address that was checked. A name is never followed
//! to an address of this machine or its networks: only a pattern that names the address itself,
//! or `localhost`, leads there. The one exception is the host and port of the artifact store, once
//! a pattern fits them: its owner has said where it is. Doors for hosts that the machine's own
//! settings name lead wherever those names do.
//!
//! What passes a tunnel is not looked at. The name in a TLS greeting or an inner `Host` may differ
//! from the approved one; a server that serves several names at one address can be asked for all
//! of them. Refusals are audited with host and port, never with anything else that was sent.

mod body;
mod connection;
mod door;
mod gate;
mod head;
mod meter;
mod refusal;
mod request;
mod response;
mod target;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use wharf_domain::permission::HostPattern;
use wharf_engine::Handle;
use wharf_ports::launcher::{Egress, EgressDoor};
use wharf_vocab::{Fault, ProviderId};

use crate::door::Door;
use crate::gate::{Gate, Resolve, SystemNames};
use crate::target::Target;

/// Opens doors through which agents reach approved hosts.
pub struct EgressProxy {
    shared: Arc<ProxyState>,
}

/// What all doors share.
struct ProxyState {
    handle: Handle,
    resolver: Box<dyn Resolve>,
    limits: EgressLimits,
    storage: Option<Target>,
}

/// How long things may take and how many there may be.
#[derive(Debug, Clone)]
struct EgressLimits {
    /// Connections through one door.
    connections_max: usize,
    /// Until a request's head is there.
    head: Duration,
    /// Until a name is resolved.
    resolve: Duration,
    /// Until one address answers.
    connect: Duration,
    /// Until any address answers.
    connect_all: Duration,
    /// Without a byte either way.
    idle: Duration,
}

impl Default for EgressLimits {
    fn default() -> Self {
        Self {
            connections_max: 64,
            head: Duration::from_secs(10),
            resolve: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            connect_all: Duration::from_secs(30),
            idle: Duration::from_secs(5 * 60),
        }
    }
}

impl EgressProxy {
    /// A proxy that audits what it refuses through this engine.
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        Self::of(handle, Box::new(SystemNames), EgressLimits::default(), None)
    }

    /// The same for a core whose artifact store is at this origin, such as
    /// `http://minio.internal:9000`: approved agents reach it wherever its name leads.
    #[must_use]
    pub fn with_storage(handle: Handle, origin: &str) -> Self {
        Self::of(handle, Box::new(SystemNames), EgressLimits::default(), target_of(origin))
    }

    fn of(
        handle: Handle,
        resolver: Box<dyn Resolve>,
        limits: EgressLimits,
        storage: Option<Target>,
    ) -> Self {
        Self { shared: Arc::new(ProxyState { handle, resolver, limits, storage }) }
    }
}

/// The host and port of an origin.
fn target_of(origin: &str) -> Option<Target> {
    let (scheme, rest) = origin.split_once("://")?;
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    Target::parse(rest.strip_suffix('/').unwrap_or(rest), Some(usual))
}

impl Egress for EgressProxy {
    fn open(
        &self,
        agent: ProviderId,
        socket: PathBuf,
        allowed: Vec<HostPattern>,
    ) -> BoxFuture<'_, Result<Arc<dyn EgressDoor>, Fault>> {
        let gate = Gate::new(agent, allowed, Arc::clone(&self.shared));
        async move { Door::open(socket, gate).map(|door| Arc::new(door) as Arc<dyn EgressDoor>) }
            .boxed()
    }

    fn open_own(
        &self,
        agent: ProviderId,
        socket: PathBuf,
        allowed: Vec<HostPattern>,
    ) -> BoxFuture<'_, Result<Arc<dyn EgressDoor>, Fault>> {
        let gate = Gate::new(agent, allowed, Arc::clone(&self.shared)).own();
        async move { Door::open(socket, gate).map(|door| Arc::new(door) as Arc<dyn EgressDoor>) }
            .boxed()
    }
}
