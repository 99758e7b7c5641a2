//! What every request can reach.

use std::sync::{Arc, OnceLock};

use axum::http::Method;
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wharf_engine::Handle;
use wharf_views::{ChangeTexts, Steering};
use wharf_web::sse::{self, ReadPermission, Sse};
use wharf_wire::rest_v1::Changes;

use crate::access::{Need, RouteAccess};
use crate::console::Console;
use crate::file_tickets::FileTickets;
use crate::hosts::Hosts;
use crate::metrics::Gauge;
use crate::options::{HttpOptions, Mount};
use crate::tickets::Tickets;
use crate::unread::UnreadAnswers;

/// What metrics and audit call a request that fits no route.
pub(crate) const UNMATCHED: &str = "unmatched";

/// Writes the API document, with what is mounted beside the core's own routes.
pub(crate) type DocumentWriter = fn(&[Mount]) -> String;

/// What every request can reach.
pub(crate) struct App {
    pub(crate) handle: Handle,
    pub(crate) options: HttpOptions,
    pub(crate) hosts: Hosts,
    pub(crate) tickets: Tickets,
    pub(crate) console: Console,
    pub(crate) file_tickets: FileTickets,
    /// Whoever steers providers of all kinds.
    pub(crate) steering: Steering,
    /// What changed, as event streams tell it.
    pub(crate) changes: ChangeTexts,
    /// The core's own routes.
    pub(crate) routes: Vec<RouteAccess>,
    /// The API document, from when somebody first wanted it.
    document: OnceLock<Bytes>,
    write_document: DocumentWriter,
    pub(crate) stops: StopSignals,
    /// Memory for bodies that are being read, in KiB.
    pub(crate) bodies: Arc<Semaphore>,
    /// Answers that nobody has read yet.
    pub(crate) unread: Arc<UnreadAnswers>,
}

/// Under which names the server may be called.
fn hosts(options: &HttpOptions) -> Hosts {
    Hosts::new(&options.hosts, &options.origins, options.tls.is_some())
        .with_certificate(options.tls.clone())
}

impl App {
    pub(crate) fn new(
        handle: Handle,
        options: HttpOptions,
        stops: StopSignals,
        routes: Vec<RouteAccess>,
        write_document: DocumentWriter,
    ) -> Self {
        let limits = &options.limits;
        let HttpOptions { agents, tools, mcp, .. } = &options;
        let steering = Steering { agents: agents.clone(), tools: tools.clone(), mcp: mcp.clone() };
        Self {
            hosts: hosts(&options),
            tickets: Tickets::default(),
            console: Console::new(&options.home_id),
            file_tickets: FileTickets::default(),
            steering,
            changes: ChangeTexts::new(change_event),
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes_max.div_ceil(1024))),
            unread: Arc::new(UnreadAnswers::new(limits.answers_bytes_max)),
            handle,
            options,
            routes,
            document: OnceLock::new(),
            write_document,
            stops,
        }
    }

    /// The API document. Making it takes many times the memory that it has, so a core of which nobody
    /// wants it has none. The first time it blocks.
    pub(crate) fn document(&self) -> Bytes {
        let write = || (self.write_document)(&self.options.mounts).into();
        self.document.get_or_init(write).clone()
    }

    /// A route's name as it was told, for labels that live for ever. What is mounted has one name.
    pub(crate) fn label(&self, route: &str) -> &'static str {
        let own = self.routes.iter().map(|known| known.path).find(|path| *path == route);
        let below =
            |path: &&str| route.strip_prefix(path).is_some_and(|rest| !rest.starts_with(is_part));
        let mounts = || self.options.mounts.iter();
        let listed = || mounts().find(|mount| mount.routes.contains(&route)).map(|it| it.path);
        own.or_else(listed)
            .or_else(|| mounts().map(|mount| mount.path).find(below))
            .unwrap_or(UNMATCHED)
    }

    /// Whether nobody is asked who they are there.
    pub(crate) fn is_public(&self, route: &str) -> bool {
        self.options.mounts.iter().any(|mount| mount.public && mount.path == route)
    }

    /// What a request to a route needs. One that no route takes needs a token and nothing else: it
    /// is told that there is no such route or method.
    pub(crate) fn need(&self, route: &str, method: &Method) -> Option<Need> {
        // What answers GET answers HEAD.
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let mut routes = self.routes.iter();
        routes.find(|known| known.path == route && known.method == *method).map(|known| known.need)
    }

    /// Whether what is mounted under this name lets in others than bearers of tokens.
    pub(crate) fn has_own_doors(&self, route: &str) -> bool {
        self.options.mounts.iter().any(|mount| mount.own_doors && mount.path == route)
    }

    /// Whether GET on this route opens a stream of events, so that it takes tickets.
    pub(crate) fn is_stream(&self, route: &str) -> bool {
        let own = self.routes.iter().any(|known| known.path == route && known.streams);
        own || self.options.mounts.iter().any(|mount| mount.events && mount.path == route)
    }

    /// An answer that streams what `source` gives, while it is `allowed` and the core goes on.
    pub(crate) fn stream(
        &self,
        source: BoxStream<'static, String>,
        allowed: ReadPermission,
        farewell: &'static str,
    ) -> Response {
        let counted = Gauge::up("wharf_http_event_streams");
        let (keep_alive, closing) = (self.options.limits.keep_alive, self.stops.closing.clone());
        let events = Sse::new(source, allowed, keep_alive, closing, farewell);
        sse::respond(events.inspect(move |_| {
            let _lasts = &counted;
        }))
    }
}

/// A frame of changes as one event.
fn change_event(shown: &Changes) -> Option<String> {
    let data = serde_json::to_string(shown).ok()?;
    Some(sse::message(None, "changes", &data))
}

fn is_part(c: char) -> bool {
    c != '/'
}

/// The steps of an orderly end.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopSignals {
    /// No more connections; whoever waits is answered now.
    pub(crate) draining: CancellationToken,
    /// Event streams end.
    pub(crate) closing: CancellationToken,
    /// Whatever is left is cut off.
    pub(crate) aborted: CancellationToken,
}
