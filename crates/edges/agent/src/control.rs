//! The edge as others hold it: agents are steered through [`ProviderControl`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;
use wharf_domain::{Caller, Provider, ProviderKind};
use wharf_engine::launcher::{LaunchSpec, LogLine, RestartPolicy};
use wharf_engine::providers::{Approve, ProviderControl, ProviderView, Scan};
use wharf_hosting::{Control, Host, Kept, Kind, ManifestFile, Places, Sockets};
use wharf_vocab::{Fault, LaunchId, ProviderId, ToolId};

use crate::listen::Listener;
use crate::options::Options;
use crate::tokens::Tokens;
use crate::{connect, manifest, scan};

/// The edge that faces agents. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct AgentEdge {
    shared: Arc<Shared>,
    control: Control,
    stop: CancellationToken,
}

/// What connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) host: Host,
    pub(crate) options: Options,
    pub(crate) tokens: Tokens,
    /// Where agents connect, as they are told.
    pub(crate) address: String,
}

impl Kind for Shared {
    fn host(&self) -> &Host {
        &self.host
    }

    fn word(&self) -> &'static str {
        "agent"
    }

    fn owns(&self, agent: &Provider) -> bool {
        match agent.manifest.kind {
            ProviderKind::Agent(_) => true,
            ProviderKind::ToolServer(_) | ProviderKind::Operative => false,
        }
    }

    fn manifest_file(&self) -> ManifestFile {
        manifest::FILE
    }

    fn scan(&self, folder: &Path) -> Result<Scan, Fault> {
        scan::scan(folder, scan::Bounds::default())
    }

    fn equip<'a>(
        self: Arc<Self>,
        agent: &'a Provider,
        places: &'a Places,
        spec: &'a mut LaunchSpec,
        sockets: &'a mut Sockets,
    ) -> BoxFuture<'a, Result<Kept, Fault>> {
        for (name, value) in connect::environment(&self, agent, places, spec) {
            spec.env.insert(name.to_owned(), value);
        }
        futures::future::ready(connect::connect(&self, agent, spec, sockets)).boxed()
    }

    fn restart(&self, id: &ProviderId) -> RestartPolicy {
        self.options.rule_of(id).restart.unwrap_or(self.options.restart)
    }

    fn over(&self, launch: &LaunchId) {
        self.tokens.revoke(launch);
    }
}

impl AgentEdge {
    /// Opens the socket and starts what is wanted.
    pub async fn start(options: Options) -> Result<Self, Fault> {
        let (listener, address) = Listener::bind(&options.transport).await?;
        let shared = Arc::new(Shared {
            host: Host::new(options.hosting()),
            options,
            tokens: Tokens::default(),
            address,
        });
        let stop = CancellationToken::new();
        let control = Control::start(Arc::clone(&shared) as Arc<dyn Kind>).await?;
        let listening = listener.run(Arc::clone(&shared), stop.clone());
        shared.host.tasks().spawn("accepting connections", listening);
        Ok(Self { shared, control, stop })
    }

    /// Where agents connect: a path, or `tcp:` and an address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// Ends all agents in order. They stay wanted, so the next core starts them again.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.control.stop_all().await;
        self.shared.host.finish().await;
    }
}

impl ProviderControl for AgentEdge {
    fn list(&self) -> Vec<ProviderView> {
        self.control.list()
    }

    fn show(&self, id: &ProviderId) -> Result<ProviderView, Fault> {
        self.control.show(id)
    }

    fn add(&self, caller: Caller, folder: PathBuf) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.control.add(caller, folder)
    }

    fn scan(&self, folder: PathBuf) -> BoxFuture<'_, Result<Scan, Fault>> {
        self.control.scan(folder)
    }

    fn drift(&self, id: ProviderId) -> BoxFuture<'_, Result<Vec<String>, Fault>> {
        self.control.drift(id)
    }

    fn approve(
        &self,
        caller: Caller,
        id: ProviderId,
        approve: Approve,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.control.approve(caller, id, approve)
    }

    fn revoke(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.control.revoke(caller, id)
    }

    fn approve_tools(
        &self,
        caller: Caller,
        id: ProviderId,
        tools: Vec<ToolId>,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.control.approve_tools(caller, id, tools)
    }

    fn start(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.control.start(caller, id)
    }

    fn stop(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        ProviderControl::stop(&self.control, caller, id)
    }

    fn restart(
        &self,
        caller: Caller,
        id: ProviderId,
    ) -> BoxFuture<'_, Result<ProviderView, Fault>> {
        self.control.restart(caller, id)
    }

    fn remove(&self, caller: Caller, id: ProviderId) -> BoxFuture<'_, Result<(), Fault>> {
        self.control.remove(caller, id)
    }

    fn logs(&self, id: ProviderId, lines: usize) -> BoxFuture<'_, Result<Vec<LogLine>, Fault>> {
        self.control.logs(id, lines)
    }

    fn follow_logs(
        &self,
        id: ProviderId,
        lines: usize,
    ) -> BoxFuture<'_, Result<BoxStream<'static, LogLine>, Fault>> {
        self.control.follow_logs(id, lines)
    }
}
