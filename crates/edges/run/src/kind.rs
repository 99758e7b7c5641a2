//! Tool servers as a kind of provider that is hosted.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use wharf_domain::provider::{Serving, ToolServer};
use wharf_domain::{Provider, ProviderType};
use wharf_hosting::{
    Host, HostedKind, LaunchGuard, ManifestFile, Places, Process, ReadFolder, ReadManifest,
    Sockets, Upkeep, blocking,
};
use wharf_ports::Steps;
use wharf_ports::launcher::{Exit, ExitHow, LaunchSpec};
use wharf_ports::providers::{NewFolder, Scan};
use wharf_vocab::{Code, Fault, LaunchId, ProviderId};
use wharf_wire::run_v1::HANDLER_EXIT;

use crate::environment::{self, Needs};
use crate::link::{ServerAddress, ServerEndpoint};
use crate::station::ServerLaunch;
use crate::tools::{ToolServers, server_of, unknown};
use crate::{added, equip, manifest};

/// Where manifests of tool servers stand.
const FILE: ManifestFile = ManifestFile {
    name: manifest::FILE_NAME,
    invalid: Code::ToolManifestInvalid,
    read: manifest::read,
    read_again: manifest::read_again,
};

/// The sentence of an error as the core's program prints it, with its word and its code.
fn sentence_of(line: &str) -> String {
    let text = line.strip_prefix("error: ").unwrap_or(line);
    let text = text.rsplit_once(" [").map_or(text, |(text, _)| text);
    if text.is_empty() { "The handler cannot be imported.".to_owned() } else { text.to_owned() }
}

impl ToolServers {
    /// Removes environments that no tool has. None of them is in use yet.
    pub(crate) async fn sweep_environments(&self) -> Result<(), Fault> {
        let used = self.keys(|_| true);
        let folder = environment::folder(self).to_owned();
        blocking(move || {
            environment::sweep(&folder, &used);
            Ok(())
        })
        .await
    }

    /// The environments of tools that are to be counted.
    fn keys(&self, counts: impl Fn(&Provider) -> bool) -> BTreeSet<String> {
        let all = self.options.hosting.handle.providers().list();
        let keys = all.iter().filter(|one| counts(one)).filter_map(environment::key_of);
        keys.cloned().collect()
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

    /// An environment is there before its tool is approved.
    fn prepare(self: Arc<Self>, agent: Provider) -> BoxFuture<'static, Result<(), Fault>> {
        async move {
            let server = server_of(&agent)?;
            let Some(wanted) = &server.environment else { return Ok(()) };
            let Some(made) = &wanted.made else { return Ok(()) };
            let (folder, steps) = (Path::new(&agent.folder), &Steps::default());
            let needs = Needs { id: &agent.id, folder, wanted, steps };
            environment::restore(&self, needs, made).await
        }
        .boxed()
    }

    fn inspect(&self, agent: &Provider) -> Result<(), Fault> {
        environment::made_of(agent).map_or(Ok(()), |made| environment::inspect(self, made))
    }

    fn removed(&self, agent: &Provider) {
        // Others that ended may still have processes; they are looked at when the core starts.
        let used = self.keys(|other| other.id != agent.id);
        if let Some(key) = environment::key_of(agent).filter(|key| !used.contains(*key)) {
            environment::remove(self, key);
        }
    }

    fn read_folder(
        self: Arc<Self>,
        new: NewFolder,
    ) -> BoxFuture<'static, Result<ReadFolder, Fault>> {
        async move { added::read(&self, new).await }.boxed()
    }

    fn is_dropped(&self, known: &Provider, read: &ReadFolder) -> bool {
        added::is_dropped(known, read)
    }

    fn upkeep(&self, _agent: &Provider) -> Upkeep {
        Upkeep::OnDemand { idle: self.options.idle }
    }

    fn is_hopeless(&self, agent: &Provider, exit: &Exit) -> Option<Fault> {
        let is_handler =
            server_of(agent).is_ok_and(|server| matches!(server.how, Serving::Handler { .. }));
        let is_unfit = is_handler && exit.how == ExitHow::Code(HANDLER_EXIT);
        is_unfit.then(|| {
            let said = exit.last_stderr.as_deref().map_or("", str::trim);
            Fault::new(Code::ToolHandlerInvalid, sentence_of(said))
        })
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
        self.begun(launch, way);
        Ok(None)
    }

    fn launched(self: Arc<Self>, process: Process) {
        ServerLaunch::open(self, process);
    }

    fn over(&self, launch: &LaunchId) {
        ToolServers::over(self, launch);
    }
}
