//! The edge as others hold it, and agents as a kind of provider that is hosted.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wharf_domain::{Provider, ProviderType};
use wharf_hosting::{Control, Host, HostedKind, LaunchGuard, ManifestFile, Places, Sockets};
use wharf_ports::launcher::{LaunchSpec, RestartPolicy};
use wharf_ports::providers::Scan;
use wharf_vocab::{Fault, LaunchId, ProviderId};

use crate::listen::AgentListener;
use crate::options::AgentEdgeOptions;
use crate::shared::AgentHub;
use crate::tokens::SessionTokens;
use crate::{connect, manifest, scan};

/// The edge that faces agents. Cloning it is cheap.
#[derive(Clone)]
pub struct AgentEdge {
    shared: Arc<AgentHub>,
    control: Control,
    stop: CancellationToken,
}

impl HostedKind for AgentHub {
    fn host(&self) -> &Host {
        &self.host
    }

    fn of(&self) -> ProviderType {
        ProviderType::Agent
    }

    fn manifest_file(&self) -> ManifestFile {
        manifest::FILE
    }

    fn scan(&self, folder: &Path) -> Result<Scan, Fault> {
        scan::scan(folder, scan::ScanBounds::default())
    }

    fn equip(
        self: Arc<Self>,
        agent: &Provider,
        places: &Places,
        spec: &mut LaunchSpec,
        sockets: &mut Sockets,
    ) -> Result<LaunchGuard, Fault> {
        for (name, value) in connect::environment(&self, agent, places, spec) {
            spec.env.insert(name.to_owned(), value);
        }
        connect::connect(&self, agent, spec, sockets)
    }

    fn restart(&self, id: &ProviderId) -> RestartPolicy {
        self.options.rule_of(id).restart.unwrap_or(self.options.hosting.restart)
    }

    fn over(&self, launch: &LaunchId) {
        self.tokens.revoke(launch);
    }
}

impl AgentEdge {
    /// Opens the socket and starts what is wanted.
    pub async fn start(mut options: AgentEdgeOptions) -> Result<Self, Fault> {
        let (listener, address) = AgentListener::bind(&options.transport).await?;
        options.hosting.sockets_dir = options.sockets_dir();
        let shared = Arc::new(AgentHub {
            host: Host::new(options.hosting.clone()),
            handle: options.hosting.handle.clone(),
            options,
            tokens: SessionTokens::default(),
            address,
        });
        let stop = CancellationToken::new();
        let control = Control::start(Arc::clone(&shared) as Arc<dyn HostedKind>).await?;
        let listening = listener.run(Arc::clone(&shared), stop.clone());
        shared.host.tasks().spawn("accepting connections", listening);
        Ok(Self { shared, control, stop })
    }

    /// Where agents connect: a path, or `tcp:` and an address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// What steers the agents.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Ends all agents in order. They stay wanted, so the next core starts them again.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.control.stop_all().await;
    }
}
