//! A core: store, engine, built-in tools and the HTTP edge, started and stopped as one.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_engine::{EngineOptions, Handle};
use wharf_http::{
    AuditVerdict, Auditor, CoreInfo, CoreStatus, Doctor, Finding, Fix, HttpLimits, HttpListener,
    HttpServer, OwnerToken,
};
use wharf_journal::audit::AuditKey;
use wharf_ports::providers::ProviderControl;
use wharf_ports::vault::Vault;
use wharf_ports::{Clock, SteadyClock};
use wharf_tls::{Acceptor, CertFiles};
use wharf_vault::FileVault;
use wharf_vocab::{Code, Fault, NodeId};

use crate::anchoring::Anchoring;
use crate::database::StoreAdmin;
use crate::edges::{EdgeParts, Edges};
use crate::lock::HomeLock;
use crate::settings::Settings;
use crate::storage::Storage;
use crate::sweeping::SweepTask;
use crate::telemetry::Telemetry;
use crate::{Home, anchors, audit, console, doctor, fault, files, home, logging, secrets, tls};

/// How to start a core.
#[derive(Debug, Clone)]
pub struct CoreOptions {
    /// Its home.
    pub home: Home,
    /// Where it listens; environment and configuration say when absent.
    pub listen: Option<SocketAddr>,
    /// A socket that listens already, in the place of an address.
    pub socket: Option<Arc<TcpListener>>,
    /// Its certificate and key; the configuration says when absent.
    pub tls: Option<CertFiles>,
    /// Whether a proxy in front of it takes care of TLS.
    pub behind_proxy: bool,
    /// Origins of pages that may call it, besides those of its configuration.
    pub origins: Vec<String>,
    /// The folder with the console's page, instead of what the program carries.
    pub console_dir: Option<PathBuf>,
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
            socket: None,
            tls: None,
            behind_proxy: false,
            origins: Vec::new(),
            console_dir: None,
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
    url: String,
    _renewal: tls::Renewal,
    handle: Handle,
    edges: Edges,
    server: HttpServer,
    store: Arc<dyn StoreAdmin>,
    storage: Storage,
    sweeping: SweepTask,
    telemetry: Telemetry,
    owner_token: String,
    anchoring: Anchoring,
    grace: Duration,
    drain: Duration,
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
        let console = console::mount(options.console_dir.clone())?;
        let settings = settings_of(&options)?;
        let tls = {
            let named = settings.tls.clone();
            blocking(move || tls::open(named)).await?
        };
        let home = options.home.clone();
        let PreparedHome { lock, owner_token, audit_key, vault, node, seed } = {
            let home = home.clone();
            blocking(move || prepare(&home)).await?
        };
        let home_id = console::home_id(&node);
        // A taken port is noticed before the database is touched.
        let listener = listener_of(&options, &settings)?;
        let url = url_of(listener.addr(), tls.as_ref());
        let renewal = tls::Renewal::begin(&home, tls.as_ref())?;
        let clock: Arc<dyn Clock> = Arc::new(SteadyClock::system());
        let opened = settings.store.open(audit_key, &node, Arc::clone(&clock)).await;
        let store = opened.map_err(|error| fault::of_store(&error))?;
        anchors::compare(&home, &*store, clock.now()).await?;
        let vault: Arc<dyn Vault> = Arc::new(vault);
        let mut storage = Storage::open(&home, &settings.artifacts).await?;
        let telemetry = Telemetry::prepare(settings.telemetry.clone(), &node);
        let engine = EngineOptions {
            traces: telemetry.options(),
            objects: Some(Arc::clone(&storage.objects)),
            keyring: vault.keyring().await?,
            ..engine_options(
                &settings,
                EngineOptions::new(node.clone(), store.clone(), clock, seed),
            )?
        };
        let handle = Handle::start(engine).await.map_err(|error| fault::of_store(&error))?;
        storage.serve(Arc::new(handle.clone()));
        let around = EdgeParts { home: &home, settings: &settings, handle: &handle, vault: &vault };
        let edges = match around.edges(options.shim, storage.origin(), &url).await {
            Ok(edges) => edges,
            Err(fault) => {
                handle.stop(Duration::ZERO).await;
                return Err(fault);
            }
        };
        wharf_http::install_metrics();
        let telemetry = telemetry.begin(&handle);
        let owner = OwnerToken::new(&owner_token);
        let status = CoreStatus::begin(
            handle.clone(),
            home_id.clone(),
            Some(node.to_string()),
            console::vitals(home.clone(), Arc::clone(&store)),
        );
        let doctor = doctor_of(home.clone());
        let mut mounts = edges.mounts(&handle, &owner, &status, doctor.clone());
        let steering = edges.steering();
        mounts.push(console);
        let server = listener.serve(
            handle.clone(),
            wharf_http::HttpOptions {
                hosts: settings.hosts,
                origins: settings.origins,
                tls: tls.clone(),
                behind_proxy: options.behind_proxy,
                home_id,
                node: Some(node),
                agents: steering.agents,
                tools: steering.tools,
                mcp: steering.mcp,
                vault: Some(vault),
                status: Some(status),
                log: Some(logging::kept()),
                doctor: Some(doctor),
                auditor: Some(auditor_of(home.clone())),
                mounts,
                owner,
                limits: options.limits,
            },
        );
        let sweeping = SweepTask::begin(handle.clone());
        let anchoring = Anchoring::begin(home.clone(), Arc::clone(&store), lock);
        let core = Self {
            home,
            url,
            _renewal: renewal,
            handle,
            edges,
            server,
            store,
            storage,
            sweeping,
            telemetry,
            owner_token,
            anchoring,
            grace: options.grace,
            drain: options.drain,
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
        self.url.clone()
    }

    /// The way into its engine.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// What steers its agents.
    #[must_use]
    pub fn agents(&self) -> &impl ProviderControl {
        self.edges.hosted.agents.control()
    }

    /// What steers its tool servers.
    #[must_use]
    pub fn tools(&self) -> &impl ProviderControl {
        &self.edges.hosted.tools
    }

    /// What steers its MCP servers.
    #[must_use]
    pub fn mcp_servers(&self) -> &impl ProviderControl {
        &self.edges.hosted.mcp
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
        self.edges.drain().await;
        // Event streams still tell of what ends now.
        self.handle.stop(self.grace).await;
        // Beside what stops anyway: whatever ended is told, if the collector takes it soon.
        tokio::join!(self.edges.stop(), self.telemetry.end());
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
            agents: Some(self.edges.hosted.agents.address().to_owned()),
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

/// What the home, the environment and the command line say together.
fn settings_of(options: &CoreOptions) -> Result<Settings, Fault> {
    let inherited = options.socket.as_ref().and_then(|socket| socket.local_addr().ok());
    Settings::load(&options.home)?
        .with_tls(options.tls.clone())
        .with_options(inherited.or(options.listen), options.behind_proxy)?
        .with_origins(options.origins.clone())
}

/// The socket of the API: one that was handed over, or a new one.
fn listener_of(options: &CoreOptions, settings: &Settings) -> Result<HttpListener, Fault> {
    match options.socket.as_ref().and_then(|socket| socket.try_clone().ok()) {
        Some(socket) => HttpListener::adopt(socket),
        None => HttpListener::bind(settings.listen, &options.limits),
    }
}

/// What the settings say about an engine.
fn engine_options(settings: &Settings, engine: EngineOptions) -> Result<EngineOptions, Fault> {
    Ok(EngineOptions {
        origins: settings.artifacts.origins.clone(),
        policy: settings.policy.clone(),
        retention: settings.retention.clone(),
        redaction: settings.redaction.compile()?,
        input_checks: settings.agent_rules.input_checks(),
        held_bytes_max: settings.runs_memory_bytes,
        home: std::env::var("HOME").ok().filter(|home| home.starts_with('/')),
        ..engine
    })
}

/// The address of an API that listens there, as a client on this machine uses it. With TLS it is
/// one that the certificate is for, if there is one.
fn url_of(mut addr: SocketAddr, tls: Option<&Acceptor>) -> String {
    if addr.ip().is_unspecified() {
        let loopback = if addr.is_ipv4() { [127, 0, 0, 1].into() } else { LOOPBACK_V6 };
        addr.set_ip(loopback);
    }
    let Some(tls) = tls else { return format!("http://{addr}") };
    let certificate = tls.certificate();
    let by_name = !certificate.is_for(&addr.ip().to_string()) && certificate.is_for("localhost");
    match by_name && addr.ip().is_loopback() {
        true => format!("https://localhost:{}", addr.port()),
        false => format!("https://{addr}"),
    }
}

/// What the process says beside its HTTP edge when it is asked how it fares.
fn doctor_of(home: Home) -> Doctor {
    Doctor(Arc::new(move || {
        let check = doctor::check_disk(&home);
        let fixes = if check.verdict == doctor::Verdict::Ok { Vec::new() } else { room_fixes() };
        vec![Finding { name: check.name, verdict: check.verdict, text: check.text, fixes }]
    }))
}

/// How room is made on the disk.
fn room_fixes() -> Vec<Fix> {
    let fix = |text: &str, command: &str| Fix {
        text: text.to_owned(),
        command: Some(command.to_owned()),
    };
    vec![
        fix("See which world takes the most room.", "wharf worlds list"),
        fix("Remove files past their retention, and leftovers.", "wharf worlds gc default"),
    ]
}

/// Checks the audit while the core is up; everything is only read.
fn auditor_of(home: Home) -> Auditor {
    Auditor(Arc::new(move || {
        let report = audit::verify(&home)?;
        Ok(AuditVerdict {
            ok: report.findings.is_empty(),
            records: report.records,
            chains: report.chains,
            findings: report.findings,
        })
    }))
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

/// Does what blocks on a thread that may be blocked.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(internal()))
}

pub(crate) fn internal() -> Fault {
    Fault::new(Code::CoreInternal, "Something inside the core went wrong; its log says more.")
}
