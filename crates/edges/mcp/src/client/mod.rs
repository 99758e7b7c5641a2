//! The client half: servers of MCP as hosted providers.
//!
//! [`McpServers`] is a kind of provider that `hosting` launches and looks after. Each isolation
//! unit (one process, or one connection to a server elsewhere) has a station, which owns a session
//! and takes attempts; each attempt is one call. What a server offers becomes tools of the
//! catalog, pinned as they were when they were approved.

mod asks;
mod attempt;
mod cancel;
mod capabilities;
mod catalog;
mod equip;
mod era;
mod install;
pub(crate) mod link;
mod manifest;
mod oauth;
mod report;
mod result;
mod roots;
mod sampling;
mod station;
mod upstream;

use std::collections::{HashMap, HashSet};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use wharf_domain::provider::{McpDetails, McpSampling};
use wharf_domain::{Provider, ProviderType};
use wharf_engine::Handle;
use wharf_hosting::{
    Control, Host, HostedKind, HostingOptions, LaunchGuard, ManifestFile, Places, Process,
    ReadManifest, Sockets, Upkeep,
};
use wharf_ports::launcher::LaunchSpec;
use wharf_ports::logins::LoginControl;
use wharf_ports::providers::{DeclaredProvider, Scan};
use wharf_vocab::{Code, Fault, LaunchId, ProviderId};

use self::catalog::CatalogMemory;
use self::era::EraMemory;
use self::link::dial::UpstreamDial;
use self::link::rights::{SecretReader, SecretRights, UpstreamRights};
use self::oauth::{LoginDesk, LoginMeans, LoginsOfServers};
use self::station::{CatalogRefresh, Station};
use crate::news::McpNews;

/// Takes up the MCP servers that are known, and gives what steers them.
pub async fn start(options: McpClientOptions) -> Result<Control, Fault> {
    Control::start(Arc::new(McpServers::new(options))).await
}

/// How the client half is set up.
#[derive(Clone)]
pub struct McpClientOptions {
    /// How servers are launched.
    pub hosting: HostingOptions,
    /// How long a server may have nothing to do before it is ended, unless its manifest says.
    pub idle: Duration,
    /// Who answers what a server asks of a model, unless its manifest says.
    pub sampling: McpSampling,
    /// The way to the server half.
    pub news: McpNews,
    /// Where the machine's own tools for packages are looked for, first to last.
    pub search: Vec<PathBuf>,
}

impl McpClientOptions {
    /// How long a server may have nothing to do, unless somebody says otherwise.
    pub const IDLE: Duration = Duration::from_secs(300);

    /// The usual times.
    #[must_use]
    pub fn new(hosting: HostingOptions, news: McpNews) -> Self {
        let search = wharf_hosting::packages::search_path();
        Self { hosting, idle: Self::IDLE, sampling: McpSampling::Auto, news, search }
    }
}

/// How long a server may take to end once its input has ended, before a signal tells it to.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long one request of a login may take.
const LOGIN_PATIENCE: Duration = Duration::from_secs(20);

/// What all MCP servers share.
pub(crate) struct McpServers {
    pub(crate) host: Host,
    pub(crate) options: McpClientOptions,
    /// What servers turned out to speak.
    eras: EraMemory,
    /// What servers offered.
    offers: CatalogMemory,
    /// Where people log in to servers elsewhere.
    pub(crate) logins: Arc<LoginDesk>,
    /// Servers that somebody wants to be looked at again.
    looks: Mutex<HashSet<ProviderId>>,
    /// Who reads what a server offers, by launch.
    readers: Mutex<HashMap<LaunchId, (ProviderId, CatalogRefresh)>>,
    /// The core's ends of launches whose station has not begun yet.
    ways: Mutex<HashMap<LaunchId, StdUnixStream>>,
}

/// What a record says of its MCP server.
pub(crate) fn details_of(provider: &Provider) -> Result<&McpDetails, Fault> {
    provider.manifest.mcp().ok_or_else(|| unknown(&provider.id))
}

fn unknown(id: &ProviderId) -> Fault {
    Fault::new(Code::AgentNotFound, format!("There is no MCP server {id}."))
}

impl McpServers {
    fn new(options: McpClientOptions) -> Self {
        let host = Host::new(options.hosting.clone());
        let (now, know) = (options.hosting.handle.clone(), options.hosting.handle.clone());
        let logins = Arc::new(LoginDesk::new(LoginMeans {
            vault: Arc::clone(&options.hosting.vault),
            tasks: host.tasks().clone(),
            patience: LOGIN_PATIENCE,
            now: Arc::new(move || now.now()),
            know: Arc::new(move |secret| know.trust().know_secret(secret)),
        }));
        Self {
            host,
            options,
            eras: EraMemory::default(),
            offers: CatalogMemory::default(),
            logins,
            looks: Mutex::default(),
            readers: Mutex::default(),
            ways: Mutex::default(),
        }
    }

    /// The engine.
    pub(crate) fn handle(&self) -> &Handle {
        &self.options.hosting.handle
    }

    /// The core's end of a launch's standard input and output. There is one, for one station.
    fn way(&self, launch: &LaunchId) -> Option<StdUnixStream> {
        self.ways.lock().remove(launch)
    }

    /// Who looks after a server that is in use. All its processes offer the same, so any will do.
    fn reader(&self, id: &ProviderId) -> Option<CatalogRefresh> {
        let readers = self.readers.lock();
        readers.values().find(|(of, _)| of == id).map(|(_, reader)| reader.clone())
    }

    /// What lets the core in at a server elsewhere: a token that its owner set by hand, or a login.
    fn rights(
        self: &Arc<Self>,
        provider: &Provider,
        details: &McpDetails,
        dial: &UpstreamDial,
    ) -> Result<Arc<dyn UpstreamRights>, Fault> {
        let servers = Arc::clone(self);
        let read: SecretReader = Arc::new(move |name| {
            let servers = Arc::clone(&servers);
            Box::pin(async move { wharf_hosting::secret(&*servers, &name).await })
        });
        let headers = details.header_secrets.clone();
        let token = details.token_secret.clone();
        let has_token = token.is_some()
            || headers.keys().any(|header| header.eq_ignore_ascii_case("authorization"));
        let rights = SecretRights::new(provider.id.clone(), token, headers, read)?;
        match has_token {
            true => Ok(Arc::new(rights)),
            false => Ok(self.logins.rights(&provider.id, rights, dial.clone())),
        }
    }
}

impl HostedKind for McpServers {
    fn host(&self) -> &Host {
        &self.host
    }

    fn of(&self) -> ProviderType {
        ProviderType::Mcp
    }

    fn manifest_file(&self) -> ManifestFile {
        manifest::FILE
    }

    fn scan(&self, _folder: &Path) -> Result<Scan, Fault> {
        let message = "MCP servers are not looked for; add a folder by its name.";
        Err(Fault::new(Code::RequestInvalid, message))
    }

    fn unknown(&self, id: &ProviderId) -> Fault {
        unknown(id)
    }

    fn upkeep(&self, provider: &Provider) -> Upkeep {
        let said = provider.manifest.mcp().and_then(|details| details.idle_s);
        let idle = said.map_or(self.options.idle, Duration::from_secs);
        Upkeep::OnDemand { idle }
    }

    /// Once what it offers was taken on, it is started by the first run.
    fn looks_first(&self, provider: &Provider) -> bool {
        self.looks.lock().remove(&provider.id) || !provider.settled
    }

    fn refresh(self: Arc<Self>, id: ProviderId) -> BoxFuture<'static, Result<bool, Fault>> {
        Box::pin(async move {
            let Some(reader) = self.reader(&id) else {
                self.looks.lock().insert(id);
                return Ok(false);
            };
            reader.read_again().await;
            Ok(true)
        })
    }

    /// Servers may take long to begin.
    fn keeps_spare(&self) -> bool {
        true
    }

    /// The end of its input tells a server to go.
    fn farewell(&self) -> Duration {
        FAREWELL
    }

    fn declare(&self, declared: DeclaredProvider) -> Result<PathBuf, Fault> {
        manifest::declare(&self.options.hosting, declared)
    }

    fn hints(&self, read: &ReadManifest) -> Vec<String> {
        manifest::hints(&read.manifest)
    }

    fn logins(self: Arc<Self>) -> Option<Arc<dyn LoginControl>> {
        Some(Arc::new(LoginsOfServers::new(self)))
    }

    /// A package is there before its files are pinned.
    fn prepare(self: Arc<Self>, provider: Provider) -> BoxFuture<'static, Result<(), Fault>> {
        async move {
            match provider.manifest.mcp().and_then(|details| details.package.clone()) {
                Some(package) => install::install(&self, &provider, &package).await,
                None => Ok(()),
            }
        }
        .boxed()
    }

    fn inspect(&self, provider: &Provider) -> Result<(), Fault> {
        match provider.manifest.mcp().and_then(|details| details.package.as_ref()) {
            Some(package) => install::inspect(provider, package),
            None => Ok(()),
        }
    }

    fn removed(&self, provider: &Provider) {
        self.offers.forget(&provider.id);
        self.logins.removed(&provider.id);
        manifest::forget(&self.options.hosting, &provider.id, &provider.folder);
    }

    fn has_process(&self, provider: &Provider) -> bool {
        provider.manifest.mcp().is_some_and(|details| details.how.is_launched())
    }

    fn equip(
        self: Arc<Self>,
        provider: &Provider,
        _places: &Places,
        spec: &mut LaunchSpec,
        _sockets: &mut Sockets,
    ) -> Result<LaunchGuard, Fault> {
        let launch = spec.launch.clone();
        let ours = equip::equip(provider, details_of(provider)?, &self.options.search, spec)?;
        self.ways.lock().insert(launch, ours);
        Ok(None)
    }

    fn launched(self: Arc<Self>, process: Process) {
        Station::open(self, process);
    }

    fn over(&self, launch: &LaunchId) {
        self.ways.lock().remove(launch);
        self.readers.lock().remove(launch);
    }
}
