//! What every request can reach.

use std::sync::Arc;

use axum::response::Response;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wharf_engine::Handle;
use wharf_ports::providers::ProviderControl;
use wharf_ports::vault::Vault;
use wharf_web::sse::{self, Allowed, Sse};

use crate::auth::OwnerToken;
use crate::hosts::Hosts;
use crate::metrics::Gauge;
use crate::openapi;
use crate::options::{Doctor, Limits, Mount, Options};
use crate::tickets::Tickets;
use crate::unread::Unread;

/// What every request can reach.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) handle: Handle,
    pub(crate) owner: OwnerToken,
    pub(crate) hosts: Hosts,
    pub(crate) agents: Option<Arc<dyn ProviderControl>>,
    pub(crate) tools: Option<Arc<dyn ProviderControl>>,
    pub(crate) vault: Option<Arc<dyn Vault>>,
    pub(crate) doctor: Option<Doctor>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) tickets: Tickets,
    /// The API document.
    pub(crate) document: String,
    pub(crate) limits: Limits,
    pub(crate) stops: Stops,
    /// Memory for bodies that are being read, in KiB.
    pub(crate) bodies: Arc<Semaphore>,
    /// Answers that nobody has read yet.
    pub(crate) unread: Arc<Unread>,
}

impl App {
    pub(crate) fn new(handle: Handle, options: Options, stops: Stops) -> Self {
        let Options { owner, hosts, origins, agents, tools, vault, doctor, mounts, limits } =
            options;
        let bodies = Arc::new(Semaphore::new(limits.bodies_bytes_max.div_ceil(1024)));
        let unread = Arc::new(Unread::new(limits.answers_bytes_max));
        let hosts = Hosts::new(&hosts, &origins);
        let document = openapi::text(&mounts);
        Self {
            handle,
            owner,
            hosts,
            agents,
            tools,
            vault,
            doctor,
            mounts,
            tickets: Tickets::default(),
            document,
            limits,
            stops,
            bodies,
            unread,
        }
    }

    /// An answer that streams what `source` gives, while it is `allowed` and the core goes on.
    pub(crate) fn stream(
        &self,
        source: BoxStream<'static, String>,
        allowed: Allowed,
        farewell: &'static str,
    ) -> Response {
        let counted = Gauge::up("wharf_http_event_streams");
        let (keep_alive, closing) = (self.limits.keep_alive, self.stops.closing.clone());
        let events = Sse::new(source, allowed, keep_alive, closing, farewell);
        sse::respond(events.inspect(move |_| {
            let _lasts = &counted;
        }))
    }
}

/// The steps of an orderly end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stops {
    /// No more connections; whoever waits is answered now.
    pub(crate) draining: CancellationToken,
    /// Event streams end.
    pub(crate) closing: CancellationToken,
    /// Whatever is left is cut off.
    pub(crate) aborted: CancellationToken,
}
