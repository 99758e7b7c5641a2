//! All that is the same for every kind of provider, and what its parts share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use wharf_domain::{AuditRecord, Provider};
use wharf_vocab::{Code, Fault, ProviderId, StreamId, ToolId};

use crate::fence::PermissionContext;
use crate::live::Live;
use crate::options::HostingOptions;
use crate::tasks::Tasks;
use crate::{places, sockets};

/// All that is the same for every kind of provider.
pub struct Host {
    options: HostingOptions,
    providers: Mutex<BTreeMap<ProviderId, HostEntry>>,
    tasks: Tasks,
}

/// What is wanted of a supervisor; each is answered when it is so.
#[derive(Debug)]
pub(crate) enum SupervisorOrder {
    /// Keep the processes up.
    Start(oneshot::Sender<()>),
    /// Let others take the place of the processes: what is under way ends where it is. Answered
    /// once no attempt goes to the old ones any more.
    Replace(oneshot::Sender<()>),
    /// End the processes.
    Stop {
        /// Why, as runs that need it are told.
        why: Fault,
        /// Whether they are started again then.
        again: bool,
        done: oneshot::Sender<()>,
    },
    /// End the processes once what they have is finished. It is answered when they are gone, and
    /// also when another order comes in between.
    Drain {
        /// Why, as runs that need it are told then.
        why: Fault,
        done: oneshot::Sender<()>,
    },
}

/// One provider's place.
#[derive(Clone)]
pub(crate) struct HostEntry {
    pub(crate) live: Arc<Live>,
    pub(crate) orders: mpsc::Sender<SupervisorOrder>,
}

impl Host {
    /// Begins with nobody. What an earlier core has left of launches is removed, so only a core
    /// that has these folders for itself may come here.
    #[must_use]
    pub fn new(options: HostingOptions) -> Self {
        sockets::sweep(&options);
        places::sweep(&options);
        Self { options, providers: Mutex::default(), tasks: Tasks::default() }
    }

    /// How it is set up.
    #[must_use]
    pub fn options(&self) -> &HostingOptions {
        &self.options
    }

    /// What goes on beside its connections.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Forgets all providers, which have been stopped, and waits for what still goes on.
    pub(crate) async fn finish(&self) {
        self.with(BTreeMap::clear);
        self.tasks.finish().await;
    }

    /// What is known of a provider besides the journal.
    #[must_use]
    pub fn live(&self, id: &ProviderId) -> Option<Arc<Live>> {
        self.with(|providers| providers.get(id).map(|entry| Arc::clone(&entry.live)))
    }

    /// Writes down what became of a provider.
    pub async fn audit(&self, id: &ProviderId, record: AuditRecord) {
        // When the engine is gone nothing can be written any more.
        let _ = self.options.handle.audit().record(&StreamId::Provider(id.clone()), record).await;
    }

    /// Marks the tools of a provider that are not what was taken on.
    pub fn quarantine(&self, agent: &Provider) {
        let why = |tool: &ToolId| {
            let said = "its definition is not the one that was approved";
            format!("{said} (`wharf tools diff {tool}` shows the change)")
        };
        let changed = agent.quarantined().map(|def| (def.tool.clone(), why(&def.tool)));
        // What cannot be used at all says so, whether it was taken on or not.
        let unfit = agent.tools.iter().filter_map(|def| {
            let reason = def.mcp.as_ref()?.unfit.clone()?;
            Some((def.tool.clone(), reason))
        });
        let marked = changed.chain(unfit).collect();
        self.options.handle.providers().set_quarantine(&agent.id, marked);
    }

    /// What the permissions of a provider in this folder are judged against.
    pub(crate) fn ground(&self, folder: &str) -> PermissionContext {
        PermissionContext {
            user_home: self.options.user_home.clone(),
            hidden: self.options.hidden.clone(),
            folder: PathBuf::from(folder),
        }
    }

    pub(crate) fn entry(&self, id: &ProviderId) -> Option<HostEntry> {
        self.with(|providers| providers.get(id).cloned())
    }

    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut BTreeMap<ProviderId, HostEntry>) -> T,
    ) -> T {
        work(&mut self.providers.lock())
    }
}

/// Random bytes of the operating system as hex text.
pub fn random_hex(bytes: usize) -> Result<String, Fault> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(|_| {
        Fault::new(Code::CoreInternal, "The operating system gives no random numbers.")
    })?;
    Ok(hex::encode(random))
}
