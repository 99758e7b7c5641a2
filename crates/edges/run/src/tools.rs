//! Tool servers as a kind of provider that is hosted.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use wharf_domain::provider::{Serving, ToolServer};
use wharf_domain::{Provider, ProviderType};
use wharf_hosting::{
    Host, HostedKind, LaunchGuard, ManifestFile, Places, Process, ReadManifest, Sockets, Upkeep,
};
use wharf_ports::launcher::LaunchSpec;
use wharf_ports::providers::Scan;
use wharf_vocab::{Code, Fault, LaunchId, ProviderId};

use crate::RunEdgeOptions;
use crate::equip::LaunchRoute;
use crate::link::{ServerAddress, ServerEndpoint};
use crate::station::ServerLaunch;
use crate::{equip, manifest};

/// What all tool servers share.
pub(crate) struct ToolServers {
    pub(crate) host: Host,
    pub(crate) options: RunEdgeOptions,
    /// The ways to launches that are under way.
    ways: Mutex<HashMap<LaunchId, LaunchRoute>>,
    /// How many launches there have been.
    lives: AtomicU64,
}

/// Where manifests of tool servers stand.
const FILE: ManifestFile = ManifestFile {
    name: manifest::FILE_NAME,
    invalid: Code::ToolManifestInvalid,
    read: manifest::read,
};

/// What a record says of its tool server.
pub(crate) fn server_of(agent: &Provider) -> Result<&ToolServer, Fault> {
    agent.manifest.tool_server().ok_or_else(|| unknown(&agent.id))
}

pub(crate) fn unknown(id: &ProviderId) -> Fault {
    Fault::new(Code::ToolNotFound, format!("There is no tool server {id}."))
}

impl ToolServers {
    pub(crate) fn new(options: RunEdgeOptions) -> Self {
        let host = Host::new(options.hosting.clone());
        Self { host, options, ways: Mutex::default(), lives: AtomicU64::new(0) }
    }

    /// A number that no other launch has.
    pub(crate) fn next_life(&self) -> u64 {
        self.lives.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The way to a launch.
    pub(crate) fn way(&self, launch: &LaunchId) -> Option<LaunchRoute> {
        self.ways.lock().get(launch).cloned()
    }

    /// Refuses a server elsewhere that could not get at the files of its runs.
    fn check_remote(&self, url: &str, server: &ToolServer) -> Result<(), Fault> {
        let storage = &self.options.storage;
        let origin = &storage.origin;
        let refused = |why: String| {
            let message = format!("The tool server cannot be used: {why}.");
            Err(Fault::new(Code::ToolManifestInvalid, message).with("field", "url"))
        };
        let endpoint = ServerEndpoint::parse(url)?;
        if matches!(endpoint.address, ServerAddress::Tls { .. }) && !storage.is_public {
            return refused(format!(
                "it is elsewhere, and this core's files are under {origin}, which does not lead \
                 here from there; give [artifacts] a public_url"
            ));
        }
        if server.https_only && !equip::is_encrypted(origin) {
            return refused(format!(
                "it fetches files only under https://, and this core's files are under {origin}; \
                 give [artifacts] a public_url"
            ));
        }
        Ok(())
    }
}

impl HostedKind for ToolServers {
    fn host(&self) -> &Host {
        &self.host
    }

    fn of(&self) -> ProviderType {
        ProviderType::ToolServer
    }

    fn manifest_file(&self) -> ManifestFile {
        FILE
    }

    fn scan(&self, _folder: &Path) -> Result<Scan, Fault> {
        let message = "Tool servers are not looked for; add a folder by its name.";
        Err(Fault::new(Code::RequestInvalid, message))
    }

    fn unknown(&self, id: &ProviderId) -> Fault {
        unknown(id)
    }

    fn check(&self, read: &ReadManifest) -> Result<(), Fault> {
        let Some(server) = read.manifest.tool_server() else { return Ok(()) };
        match &server.how {
            Serving::Remote { url } => self.check_remote(url, server),
            Serving::Image { .. } if self.options.container.is_empty() => {
                Err(equip::no_container())
            }
            _ => Ok(()),
        }
    }

    fn upkeep(&self, _agent: &Provider) -> Upkeep {
        Upkeep::OnDemand { idle: self.options.idle }
    }

    fn has_process(&self, agent: &Provider) -> bool {
        agent.manifest.tool_server().is_some_and(|server| server.how.is_launched())
    }

    fn equip(
        self: Arc<Self>,
        agent: &Provider,
        places: &Places,
        spec: &mut LaunchSpec,
        sockets: &mut Sockets,
    ) -> Result<LaunchGuard, Fault> {
        let launch = spec.launch.clone();
        let served = (agent, server_of(agent)?);
        let way = equip::equip(&self.options, served, places, spec, sockets)?;
        self.ways.lock().insert(launch, way);
        Ok(None)
    }

    fn launched(self: Arc<Self>, process: Process) {
        ServerLaunch::open(self, process);
    }

    fn over(&self, launch: &LaunchId) {
        self.ways.lock().remove(launch);
    }
}
