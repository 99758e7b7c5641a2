//! What is different between the kinds of providers that are launched.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{self, BoxFuture};
use wharf_domain::{
    Actor, AuditEvent, AuditRecord, Provider, ProviderEvent, ProviderType, Subject,
};
use wharf_ports::launcher::{Exit, LaunchSpec, Launched, LogSource, RestartPolicy};
use wharf_ports::logins::LoginControl;
use wharf_ports::providers::{DeclaredProvider, NewFolder, Scan};
use wharf_vocab::{Code, Fault, LaunchId, ProviderId, shown};

use crate::files::{ManifestFile, ReadFolder, ReadManifest};
use crate::host::Host;
use crate::live::{Live, Upkeep};
use crate::places::Places;
use crate::sockets::Sockets;
use crate::tasks::blocking;

/// Lines of a log that are looked through for the last error of a process.
const LINES_LOOKED_AT: usize = 50;
/// Enough of a line to recognise the trouble.
const LINE_CHARS_MAX: usize = 300;

/// What must stay as long as a launch; it is dropped when that is over.
pub type LaunchGuard = Option<Box<dyn Any + Send + Sync>>;

/// A process that was started, or what stands for one that runs elsewhere.
#[derive(Clone)]
pub struct Process {
    /// The provider as it was when it was started.
    pub agent: Provider,
    /// The launch.
    pub launch: LaunchId,
    /// The process; `None` if it runs elsewhere.
    pub launched: Option<Arc<dyn Launched>>,
    /// The folders of the launch.
    pub places: Arc<Places>,
    /// What is known of the provider.
    pub live: Arc<Live>,
}

/// Why a process cannot be used: what it wrote last as an error says more.
pub async fn with_last_error(why: String, launched: &dyn Launched) -> String {
    let lines = launched.tail(LINES_LOOKED_AT).await.unwrap_or_default();
    let last = lines.iter().rev().find(|line| line.source == LogSource::Stderr);
    match last.map(|line| line.text.trim()).filter(|line| !line.is_empty()) {
        None => why,
        Some(line) => format!("{why}; its last error was: {}", shown(line, LINE_CHARS_MAX)),
    }
}

/// What one edge adds to launching and looking after its providers.
pub trait HostedKind: Send + Sync + 'static {
    /// All that is the same for every kind.
    fn host(&self) -> &Host;

    /// What such a provider is.
    fn of(&self) -> ProviderType;

    /// What such a provider is called in a sentence.
    fn word(&self) -> &'static str {
        self.of().words()
    }

    /// A record of what became of a provider.
    fn record(&self, id: &ProviderId, event: ProviderEvent) -> AuditRecord {
        let of = self.of();
        AuditRecord::new(AuditEvent::of(of, event), Actor::CORE, Subject::provider(of, id))
    }

    /// Whether a record is of a provider of this kind.
    fn owns(&self, provider: &Provider) -> bool {
        provider.manifest.kind.of() == self.of()
    }

    /// Where manifests stand.
    fn manifest_file(&self) -> ManifestFile;

    /// Looks for manifests below a folder. It blocks.
    fn scan(&self, folder: &Path) -> Result<Scan, Fault>;

    /// What is said when there is no such provider.
    fn unknown(&self, id: &ProviderId) -> Fault {
        Fault::new(Code::AgentNotFound, format!("There is no {} {id}.", self.word()))
    }

    /// Reads what a folder has to be added: mostly one provider. Some kinds take a file as well.
    fn read_folder(
        self: Arc<Self>,
        new: NewFolder,
    ) -> BoxFuture<'static, Result<ReadFolder, Fault>> {
        let file = self.manifest_file();
        async move {
            let folder = tokio::fs::canonicalize(&new.path).await.map_err(|_| {
                Fault::new(file.invalid, format!("There is no folder {}.", new.path.display()))
            })?;
            blocking(move || {
                let read = (file.read)(&folder)?;
                self.check(&read)?;
                let hints = self.hints(&read);
                Ok(ReadFolder { folder, manifests: vec![read], hints })
            })
            .await
        }
        .boxed()
    }

    /// Whether a known provider goes when a folder is added: it was a part of that, and is none any
    /// more.
    fn is_dropped(&self, _known: &Provider, _read: &ReadFolder) -> bool {
        false
    }

    /// Refuses a manifest that this core cannot take up.
    fn check(&self, _read: &ReadManifest) -> Result<(), Fault> {
        Ok(())
    }

    /// When its processes are there.
    fn upkeep(&self, _agent: &Provider) -> Upkeep {
        Upkeep::Always
    }

    /// Whether a process is started with the provider although nobody waits for one: what it
    /// offers is known only once it has run.
    fn looks_first(&self, _agent: &Provider) -> bool {
        false
    }

    /// Whether a process waits for the next run while runs have processes of their own.
    fn keeps_spare(&self) -> bool {
        false
    }

    /// Reads again what it offers, if a process of it is there; otherwise the next start looks at
    /// that, although it is known. Not every kind is looked at.
    fn refresh(self: Arc<Self>, _id: ProviderId) -> BoxFuture<'static, Result<bool, Fault>> {
        let message = format!("The {} says by itself what it offers.", self.word());
        future::ready(Err(Fault::new(Code::RequestInvalid, message))).boxed()
    }

    /// When a process of it that crashed is started again.
    fn restart(&self, _id: &ProviderId) -> RestartPolicy {
        self.host().options().restart
    }

    /// Why another start of a process that ended like this would end in the same way, if it would.
    fn is_hopeless(&self, _agent: &Provider, _exit: &Exit) -> Option<Fault> {
        None
    }

    /// Whether it runs on this machine, as a process of this core.
    fn has_process(&self, _agent: &Provider) -> bool {
        true
    }

    /// How long a process may take to end by itself once its connection is closed, before a signal
    /// tells it to.
    fn farewell(&self) -> Duration {
        Duration::ZERO
    }

    /// Writes the manifest of a provider that was declared instead of added by its folder; the
    /// folder. It blocks.
    fn declare(&self, _declared: DeclaredProvider) -> Result<PathBuf, Fault> {
        let message = format!("The {} is added by its folder.", self.word());
        Err(Fault::new(Code::RequestInvalid, message))
    }

    /// What an owner should know before approving it, one sentence each. It blocks.
    fn hints(&self, _read: &ReadManifest) -> Vec<String> {
        Vec::new()
    }

    /// Makes what an approval is to be pinned to, besides what is there already.
    fn prepare(self: Arc<Self>, _agent: Provider) -> BoxFuture<'static, Result<(), Fault>> {
        future::ready(Ok(())).boxed()
    }

    /// Looks at what pinned files alone do not show, before each launch. It blocks. Of a fault that
    /// says that something drifted the message is what differs, as one line.
    fn inspect(&self, _agent: &Provider) -> Result<(), Fault> {
        Ok(())
    }

    /// The provider was removed; what was made for it goes too. It blocks.
    fn removed(&self, _agent: &Provider) {}

    /// Gives a launch what only this kind needs. The launch has its environment, its folders and
    /// its fence already.
    fn equip(
        self: Arc<Self>,
        agent: &Provider,
        places: &Places,
        spec: &mut LaunchSpec,
        sockets: &mut Sockets,
    ) -> Result<LaunchGuard, Fault>;

    /// A process was started. Whoever speaks with it calls [`Live::connect`] in the end, or
    /// [`Live::disconnect`] if that cannot be.
    fn launched(self: Arc<Self>, _process: Process) {}

    /// Who lets people log in to such providers, where they run elsewhere and want that.
    fn logins(self: Arc<Self>) -> Option<Arc<dyn LoginControl>> {
        None
    }

    /// A launch is over, or did not come about.
    fn over(&self, _launch: &LaunchId) {}
}
