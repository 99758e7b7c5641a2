//! A core: store, engine, built-in tools and the HTTP edge, started and stopped as one.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_agent::AgentEdge;
use wharf_domain::{Caller, WorldSettings};
use wharf_engine::Handle;
use wharf_hosting::Control;
use wharf_http::{
    CoreInfo, Doctor, Finding, HttpLimits, HttpListener, HttpServer, Mount, OwnerToken,
};
use wharf_journal::audit::AuditKey;
use wharf_operator::OperatorEdge;
use wharf_ports::providers::ProviderControl;
use wharf_ports::vault::Vault;
use wharf_ports::{Clock, SteadyClock};
use wharf_store_sqlite::SqliteStore;
use wharf_tool::ToolEdge;
use wharf_vault::FileVault;
use wharf_vocab::{Code, Fault, NodeId, ToolId, WorldId};

use crate::agents::Surroundings;
use crate::anchoring::Anchoring;
use crate::lock::HomeLock;
use crate::settings::Settings;
use crate::storage::Storage;
use crate::sweeping::SweepTask;
use crate::{Home, agents, anchors, doctor, fault, files, home, secrets, tools};

/// How to start a core.
#[derive(Debug, Clone)]
pub struct CoreOptions {
    /// Its home.
    pub home: Home,
    /// Where it listens; environment and configuration say when absent.
    pub listen: Option<SocketAddr>,
    /// Whether a proxy in front of it takes care of TLS.
    pub behind_proxy: bool,
    /// Origins of pages that may call it, besides those of its configuration.
    pub origins: Vec<String>,
    /// Sizes and times of its HTTP edge.
    pub limits: HttpLimits,
    /// How long attempts that are under way may take to end when it stops.
    pub grace: Duration,
    /// How long requests that are under way may take to end when it stops.
    pub drain: Duration,
    /// The program that becomes the parent of launched processes; this one when absent.
    pub shim: Option<PathBuf>,
}

impl CoreOptions {
    /// A core on this home, as its configuration says.
    #[must_use]
    pub fn new(home: Home) -> Self {
        Self {
            home,
            listen: None,
            behind_proxy: false,
            origins: Vec::new(),
            limits: HttpLimits::default(),
            grace: Duration::from_secs(3),
            drain: Duration::from_secs(10),
            shim: None,
        }
    }
}

/// A core that is up. One that is dropped without [`stop`](Self::stop) goes on, and keeps its
/// home, until the runtime it was started on ends.
pub struct Core {
    home: Home,
    handle: Handle,
    edges: Edges,
    server: HttpServer,
    store: Arc<SqliteStore>,
    storage: Storage,
    sweeping: SweepTask,
    owner_token: String,
    anchoring: Anchoring,
    grace: Duration,
    drain: Duration,
}

/// What faces providers, callers and operators beside the HTTP edge.
struct Edges {
    agents: AgentEdge,
    tools: Control,
    operators: OperatorEdge,
    peers: ToolEdge,
}

/// What a home gives a core that has it for itself.
struct PreparedHome {
    lock: HomeLock,
    owner_token: String,
    audit_key: AuditKey,
    vault: FileVault,
    node: NodeId,
    seed: u64,
}

impl Core {
    /// Starts a core; when this returns, it is ready and its home says so.
    pub async fn start(options: CoreOptions) -> Result<Self, Fault> {
        let CoreOptions { home, listen, behind_proxy, origins, limits, grace, drain, shim } =
            options;
        let settings = Settings::load(&home)?.with_options(listen, behind_proxy)?;
        let settings = settings.with_origins(origins)?;
        let PreparedHome { lock, owner_token, audit_key, vault, node, seed } = {
            let home = home.clone();
            blocking(move || prepare(&home)).await?
        };
        // A taken port is noticed before the database is touched.
        let listener = HttpListener::bind(settings.listen, &limits)?;
        let clock: Arc<dyn Clock> = Arc::new(SteadyClock::system());
        let store = {
            let (path, clock) = (settings.store.clone(), Arc::clone(&clock));
            let open = move || SqliteStore::open(&path, &audit_key, clock);
            Arc::new(blocking(move || open().map_err(|error| fault::of_store(&error))).await?)
        };
        anchors::compare(&home, &store, clock.now()).await?;
        let vault: Arc<dyn Vault> = Arc::new(vault);
        let mut storage = Storage::open(&home, &settings.artifacts).await?;
        let engine = wharf_engine::EngineOptions {
            objects: Some(Arc::clone(&storage.objects)),
            origins: settings.artifacts.origins.clone(),
            keyring: vault.keyring().await?,
            policy: settings.policy.clone(),
            redaction: settings.redaction.compile()?,
            input_checks: settings.agent_rules.input_checks(),
            held_bytes_max: settings.runs_memory_bytes,
            home: std::env::var("HOME").ok().filter(|home| home.starts_with('/')),
            ..wharf_engine::EngineOptions::new(node, store.clone(), clock, seed)
        };
        let handle = Handle::start(engine).await.map_err(|error| fault::of_store(&error))?;
        storage.serve(Arc::new(handle.clone()));
        let around = EdgeParts { home: &home, settings: &settings, handle: &handle, vault: &vault };
        let edges = match around.edges(shim, storage.origin(), listener.addr()).await {
            Ok(edges) => edges,
            Err(fault) => {
                handle.stop(Duration::ZERO).await;
                return Err(fault);
            }
        };
        wharf_http::install_metrics();
        let owner = OwnerToken::new(&owner_token);
        let server = listener.serve(
            handle.clone(),
            wharf_http::HttpOptions {
                hosts: settings.hosts,
                origins: settings.origins,
                agents: Some(Arc::new(edges.agents.control().clone())),
                tools: Some(Arc::new(edges.tools.clone())),
                vault: Some(vault),
                doctor: Some(doctor_of(home.clone())),
                mounts: edges.mounts(&handle, &owner),
                owner,
                limits,
            },
        );
        let sweeping = SweepTask::begin(handle.clone());
        let anchoring = Anchoring::begin(home.clone(), Arc::clone(&store), lock);
        let core = Self {
            home,
            handle,
            edges,
            server,
            store,
            storage,
            sweeping,
            owner_token,
            anchoring,
            grace,
            drain,
        };
        match core.announce() {
            Ok(()) => Ok(core),
            Err(fault) => {
                core.stop().await?;
                Err(fault)
            }
        }
    }

    /// Where its HTTP API is.
    #[must_use]
    pub fn http_addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// The base address of its HTTP API, as a client on this machine uses it.
    #[must_use]
    pub fn http_url(&self) -> String {
        url_of(self.server.addr())
    }

    /// The way into its engine.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// What steers its agents.
    #[must_use]
    pub fn agents(&self) -> &impl ProviderControl {
        self.edges.agents.control()
    }

    /// What steers its tool servers.
    #[must_use]
    pub fn tools(&self) -> &impl ProviderControl {
        &self.edges.tools
    }

    /// The owner's token.
    #[must_use]
    pub fn owner_token(&self) -> &str {
        &self.owner_token
    }

    /// Stops it: no new requests; what is under way ends, or is kept for the next start.
    pub async fn stop(self) -> Result<(), Fault> {
        self.server.drain();
        self.sweeping.end();
        if let Err(error) = home::withdraw_announcement(&self.home, &self.info()) {
            tracing::warn!(%error, "run/core.json could not be removed");
        }
        // Whoever calls over a connection is told to go; whoever executes may finish first.
        self.edges.peers.drain().await;
        // Event streams still tell of what ends now.
        self.handle.stop(self.grace).await;
        tokio::join!(self.edges.operators.stop(), self.edges.peers.stop());
        // What agents and tool servers still do is taken up again at the next start, or given up there.
        tokio::join!(self.edges.agents.stop(), self.edges.tools.stop_all());
        self.server.stop(self.drain).await;
        self.storage.stop().await;
        // Whoever starts next may have the home once the database is closed.
        let lock = self.anchoring.end().await;
        let closed = self.store.close().await;
        drop(lock);
        closed.map_err(|error| fault::of_store(&error))
    }

    /// What clients are told of it.
    fn info(&self) -> CoreInfo {
        CoreInfo {
            http: self.http_url(),
            storage: Some(self.storage.origin()),
            agents: Some(self.edges.agents.address().to_owned()),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Tells clients where the core is.
    fn announce(&self) -> Result<(), Fault> {
        let text = serde_json::to_vec(&self.info()).unwrap_or_default();
        let written = files::replace(&self.home.core_file(), &text);
        written.map_err(|error| self.home.unwritable(&error))
    }
}

/// The address of an API that listens there, as a client on this machine uses it.
fn url_of(mut addr: SocketAddr) -> String {
    if addr.ip().is_unspecified() {
        let loopback = if addr.is_ipv4() { [127, 0, 0, 1].into() } else { LOOPBACK_V6 };
        addr.set_ip(loopback);
    }
    format!("http://{addr}")
}

/// What edges are started with.
struct EdgeParts<'a> {
    home: &'a Home,
    settings: &'a Settings,
    handle: &'a Handle,
    vault: &'a Arc<dyn Vault>,
}

impl EdgeParts<'_> {
    /// Gives the engine its built-in tools and a world, and starts the edges around it.
    async fn edges(
        &self,
        shim: Option<PathBuf>,
        origin: String,
        listens: SocketAddr,
    ) -> Result<Edges, Fault> {
        furnish(self.handle, self.settings.model_tool.clone()).await?;
        let (agents, tools) = self.host(shim, origin).await?;
        let operators = self.operators(listens).await?;
        let peers = ToolEdge::start(wharf_tool::ToolEdgeOptions::new(self.handle.clone())).await;
        Ok(Edges { agents, tools, operators, peers })
    }

    /// The edges that launch: agents and tool servers.
    async fn host(
        &self,
        shim: Option<PathBuf>,
        origin: String,
    ) -> Result<(AgentEdge, Control), Fault> {
        let Self { home, settings, handle, vault } = *self;
        let launcher = agents::launcher(shim.clone())?;
        let around = Surroundings { launcher, vault: Arc::clone(vault), origin };
        let agents = agents::start(home, settings, handle, around.clone()).await?;
        match tools::start(home, settings, handle, around, shim).await {
            Ok(tools) => Ok((agents, tools)),
            Err(fault) => {
                agents.stop().await;
                Err(fault)
            }
        }
    }

    /// The edge that faces operators, as it is set.
    async fn operators(&self, listens: SocketAddr) -> Result<OperatorEdge, Fault> {
        let set = &self.settings.operators;
        let base_url = set.base_url.clone().unwrap_or_else(|| url_of(listens));
        let mut options = wharf_operator::OperatorEdgeOptions::new(self.handle.clone(), base_url);
        if let Some(directive) = &set.directive {
            options.directive.clone_from(directive);
        }
        if let Some(hours) = set.away_hours {
            options.away_max = Duration::from_secs(hours.saturating_mul(60 * 60));
        }
        OperatorEdge::start(options).await
    }
}

/// What the process says beside its HTTP edge when it is asked how it fares.
fn doctor_of(home: Home) -> Doctor {
    Doctor(Arc::new(move || {
        let check = doctor::check_disk(&home);
        vec![Finding { name: check.name, verdict: check.verdict, text: check.text }]
    }))
}

impl Edges {
    /// Other edges on the listener of the HTTP edge.
    fn mounts(&self, handle: &Handle, owner: &OwnerToken) -> Vec<Mount> {
        use wharf_operator::document as operator;
        use wharf_tool::document as tool;
        // A browser names itself on a WebSocket of GraphQL only once that is open.
        let (known, owner) = (handle.clone(), owner.clone());
        let bearer =
            move |token: &str| owner.bearer(token, |token| known.trust().authenticate(token));
        let graphql = wharf_graphql::router(handle.clone(), Arc::new(bearer));
        let graphql = Mount { own_doors: true, ..Mount::new("/graphql", graphql) };
        let seats =
            Mount { own_doors: true, ..Mount::new("/v1/operators", self.operators.seats()) };
        let workers = Mount::new("/v1/worker", self.operators.workers());
        let workers = Mount { own_doors: true, streams: true, ..workers };
        let connections = Mount { events: true, ..Mount::new("/v1/tool", self.peers.peers()) };
        vec![
            graphql.described(wharf_graphql::DOCUMENT),
            seats.described(operator::SEATS),
            Mount::new("/v1/tasks", self.operators.tasks()).described(operator::TASKS),
            workers.described(operator::WORKERS),
            connections.described(tool::PEERS),
            Mount::new("/v1/operatives", self.peers.operatives()).described(tool::OPERATIVES),
        ]
    }
}

const LOOPBACK_V6: std::net::IpAddr = std::net::IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);

/// Takes the home for this core alone.
fn prepare(home: &Home) -> Result<PreparedHome, Fault> {
    home.make()?;
    let lock = HomeLock::take(home)?;
    home::clear_announcement(home).map_err(|error| home.unwritable(&error))?;
    Ok(PreparedHome {
        owner_token: secrets::owner_token(home)?,
        audit_key: secrets::audit_key(home)?,
        vault: FileVault::open(home.secrets_folder())?,
        node: secrets::node_id(home)?,
        seed: secrets::seed(home)?,
        lock,
    })
}

/// Gives an engine what every core has: the built-in tools and a world to begin with.
async fn furnish(handle: &Handle, model_tool: Option<ToolId>) -> Result<(), Fault> {
    wharf_builtin::register_with(handle, wharf_builtin::BuiltinOptions { model_tool }).await?;
    let world = WorldId::new("default").map_err(|_| internal())?;
    let made = handle.worlds().create(&Caller::owner(), world, WorldSettings::default()).await;
    match made {
        Err(fault) if !fault.is(Code::WorldExists) => Err(fault),
        _ => Ok(()),
    }
}

/// Does what blocks on a thread that may be blocked.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(internal()))
}

fn internal() -> Fault {
    Fault::new(Code::CoreInternal, "Something inside the core went wrong; its log says more.")
}
