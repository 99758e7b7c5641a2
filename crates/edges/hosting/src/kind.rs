//! What is different between the kinds of providers that are launched.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use wharf_domain::{
    Actor, AuditEvent, AuditRecord, Provider, ProviderEvent, ProviderType, Subject,
};
use wharf_ports::launcher::{LaunchSpec, Launched, RestartPolicy};
use wharf_ports::providers::Scan;
use wharf_vocab::{Code, Fault, LaunchId, ProviderId};

use crate::files::{ManifestFile, ReadManifest};
use crate::host::Host;
use crate::live::{Live, Upkeep};
use crate::places::Places;
use crate::sockets::Sockets;

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

    /// Refuses a manifest that this core cannot take up.
    fn check(&self, _read: &ReadManifest) -> Result<(), Fault> {
        Ok(())
    }

    /// When its processes are there.
    fn upkeep(&self, _agent: &Provider) -> Upkeep {
        Upkeep::Always
    }

    /// When a process of it that crashed is started again.
    fn restart(&self, _id: &ProviderId) -> RestartPolicy {
        self.host().options().restart
    }

    /// Whether it runs on this machine, as a process of this core.
    fn has_process(&self, _agent: &Provider) -> bool {
        true
    }

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

    /// A launch is over, or did not come about.
    fn over(&self, _launch: &LaunchId) {}
}
