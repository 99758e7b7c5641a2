//! What can be set on the HTTP edge. Sizes that peers are told about stand in `vocab::limits`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use wharf_ports::providers::ProviderControl;
use wharf_ports::vault::Vault;
use wharf_tls::Acceptor;
pub use wharf_views::Doctor;
use wharf_views::{CoreStatus, LogRing};
use wharf_vocab::limits::{BODY_BYTES_MAX, FILE_BYTES_MAX};
use wharf_vocab::{Fault, NodeId};
use wharf_wire::rest_v1::AuditVerdict;

use crate::OwnerToken;

/// What a server is made of besides its socket and the engine.
#[derive(Clone)]
pub struct HttpOptions {
    /// The owner's token, known by its digest.
    pub owner: OwnerToken,
    /// Names besides its own address under which the server may be called, such as
    /// `wharf.example.com`; one with a port counts for that port only.
    pub hosts: Vec<String>,
    /// Origins of pages that may call besides the core's own, such as `http://localhost:5173`.
    pub origins: Vec<String>,
    /// With it the server speaks TLS, and nothing else. The names of its certificate are names of
    /// the server.
    pub tls: Option<Acceptor>,
    /// Whether everybody comes through a proxy in front, which says for whom it asks.
    pub behind_proxy: bool,
    /// What tells the core's home from others; cookies are named after it.
    pub home_id: String,
    /// The core's name among those of one Wharf.
    pub node: Option<NodeId>,
    /// Who steers agents; a core without has none and takes none.
    pub agents: Option<Arc<dyn ProviderControl>>,
    /// Who steers tool servers; a core without has none and takes none.
    pub tools: Option<Arc<dyn ProviderControl>>,
    /// Who steers MCP servers; a core without has none and takes none.
    pub mcp: Option<Arc<dyn ProviderControl>>,
    /// Who keeps secrets and keys; a core without has none and takes none.
    pub vault: Option<Arc<dyn Vault>>,
    /// What is known of the core as a whole; a core without does not watch itself.
    pub status: Option<Arc<CoreStatus>>,
    /// The newest lines of the process's log; a process that logs elsewhere has none.
    pub log: Option<Arc<LogRing>>,
    /// What the rest of the process has to say when a core is asked how it fares.
    pub doctor: Option<Doctor>,
    /// Who checks the audit; nobody when absent.
    pub auditor: Option<Auditor>,
    /// Routers of other edges on the same listener.
    pub mounts: Vec<Mount>,
    /// Sizes and times.
    pub limits: HttpLimits,
}

impl HttpOptions {
    /// A server that is called by its address only, with the usual limits, without agents,
    /// without servers of tools and without secrets.
    #[must_use]
    pub fn new(owner: OwnerToken) -> Self {
        Self {
            owner,
            hosts: Vec::new(),
            origins: Vec::new(),
            tls: None,
            behind_proxy: false,
            home_id: "00000000".to_owned(),
            node: None,
            agents: None,
            tools: None,
            mcp: None,
            vault: None,
            status: None,
            log: None,
            doctor: None,
            auditor: None,
            mounts: Vec::new(),
            limits: HttpLimits::default(),
        }
    }
}

/// Checks the audit from the first record to the last, which only the program around the edge can.
#[derive(Clone)]
pub struct Auditor(pub Arc<dyn Fn() -> Result<AuditVerdict, Fault> + Send + Sync>);

impl std::fmt::Debug for Auditor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auditor").finish_non_exhaustive()
    }
}

/// A router of another edge that is served on the same listener, behind the same checks.
///
/// Its requests carry the [`Caller`](wharf_domain::Caller) as an extension, with any good token:
/// verbs and worlds are the router's to check. Bodies have arrived whole and are no larger than
/// others. A connection that it upgrades may be silent as long as it likes; when the core stops, the
/// [`CancellationToken`](tokio_util::sync::CancellationToken) that requests carry as an extension
/// is cancelled, and a second later the connection reads as if its peer had gone.
#[derive(Debug, Clone)]
pub struct Mount {
    /// Where it begins, such as `/graphql`; metrics and audit call it that.
    pub path: &'static str,
    /// What is served, with whole paths, and without a fallback of its own.
    pub router: Router,
    /// Its routes, where they do not lie below its path.
    pub routes: &'static [&'static str],
    /// Whether nobody is asked for a token: its requests have no caller, whatever they carry.
    pub public: bool,
    /// Whether its router lets in others than bearers of tokens, too. Then requests without a good
    /// token reach it with a [`Fault`](wharf_vocab::Fault) that says why in the place of a caller,
    /// and it decides. An answer that carries a fault among its extensions is written down as a
    /// refusal.
    pub own_doors: bool,
    /// Whether its requests' bodies are passed on as they arrive, for the router to bound.
    pub streams: bool,
    /// Whether GET opens streams of events, so that it takes tickets as WebSockets do.
    pub events: bool,
    /// What it serves, as a part of an OpenAPI document in JSON: `paths` and `tags`, with references
    /// to the types that the whole document has.
    pub document: &'static str,
}

impl Mount {
    /// A router behind the usual checks.
    #[must_use]
    pub fn new(path: &'static str, router: Router) -> Self {
        Self {
            path,
            router,
            routes: &[],
            public: false,
            own_doors: false,
            streams: false,
            events: false,
            document: "{}",
        }
    }

    /// The same router, with what it serves as a part of an OpenAPI document.
    #[must_use]
    pub fn described(self, document: &'static str) -> Self {
        Self { document, ..self }
    }
}

/// Sizes and times that keep one peer from taking what others need.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// Connections at once; further ones wait in the system's queue.
    pub connections_max: usize,
    /// Largest head of a request, line and headers together.
    pub head_bytes_max: usize,
    /// Most headers of a request.
    pub headers_max: usize,
    /// Largest body of a request.
    pub body_bytes_max: usize,
    /// Memory for all bodies that are being read at once, and for all messages of WebSockets that
    /// are not whole.
    pub bodies_bytes_max: usize,
    /// Memory for all answers that wait to be read; one token has half of it.
    pub answers_bytes_max: usize,
    /// How long a head may take to arrive.
    pub head_read: Duration,
    /// How long a body may take to arrive, and a message of a WebSocket.
    pub body_read: Duration,
    /// Largest file.
    pub file_bytes_max: u64,
    /// How long nothing of a file may arrive; all of it may take as long as it needs.
    pub file_silence: Duration,
    /// How long a connection may stay open between two requests.
    pub idle: Duration,
    /// How long a peer may take nothing of what is sent to it.
    pub write: Duration,
    /// How long a peer that was answered early may go on sending what nobody reads.
    pub linger: Duration,
    /// How often a quiet event stream shows that it is alive.
    pub keep_alive: Duration,
    /// Longest time that `?wait` waits.
    pub wait_max: Duration,
    /// What the system buffers per connection before a reader counts as stalled; the system
    /// decides when absent.
    pub send_buffer_bytes: Option<u32>,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            head_bytes_max: 16 * 1024,
            headers_max: 64,
            body_bytes_max: BODY_BYTES_MAX,
            bodies_bytes_max: 64 * 1024 * 1024,
            answers_bytes_max: 128 * 1024 * 1024,
            head_read: Duration::from_secs(10),
            body_read: Duration::from_secs(60),
            file_bytes_max: FILE_BYTES_MAX,
            file_silence: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
            linger: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            wait_max: Duration::from_secs(5 * 60),
            send_buffer_bytes: None,
        }
    }
}
