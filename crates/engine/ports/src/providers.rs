//! Steering agents: what edges that face people need of the edge that faces agents.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use wharf_domain::provider::{ProviderLimits, Wish};
use wharf_domain::{Caller, Manifest, Provider};
pub use wharf_vocab::ProviderState;
use wharf_vocab::{
    Code, Digest, Fault, Health, Isolation, LaunchId, Object, ProviderId, SandboxLevel,
    SeriesRange, Timestamp, ToolId,
};

use crate::Steps;
use crate::launcher::{FenceReport, LogLine};
use crate::logins::LoginControl;

/// An agent and how it fares.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderView {
    /// What the journal knows of it.
    pub provider: Provider,
    /// How it fares.
    pub state: ProviderState,
    /// Why, when there is something to say.
    pub reason: Option<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// Its launch.
    pub launch: Option<LaunchId>,
    /// When it last said that it is alive.
    pub last_heartbeat: Option<Timestamp>,
    /// What it said of itself then.
    pub health: Option<ProviderHealth>,
    /// How it is fenced in, once it runs.
    pub fence: Option<FenceReport>,
    /// How many of its processes run.
    pub instances: usize,
    /// The limits that hold for it, whoever set them.
    pub limits: ProviderLimits,
    /// What its manifest asks for beyond what is usual.
    pub wishes: Vec<Wish>,
    /// What its owner should know before approving it, one sentence each; told when it is added.
    pub hints: Vec<String>,
}

/// What an agent says of itself with each heartbeat.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderHealth {
    /// How it feels, in the word of its wire: `ok`, `degraded` or `unhealthy`.
    pub status: Health,
    /// How long it has been up.
    pub uptime_ms: u64,
    /// How many calls it works on.
    pub inflight_calls: u64,
    /// Figures of its own.
    pub details: Object,
}

/// What the processes of a provider used in one step of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsagePoint {
    /// When the step began.
    pub at: Timestamp,
    /// The most memory that was seen in use.
    pub memory_bytes: u64,
    /// The processor time that was used in the step.
    pub cpu_ms: u64,
    /// The most processes that were seen.
    pub processes: u32,
}

/// A provider that somebody describes instead of naming the folder with its manifest: the core
/// writes the manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredProvider {
    /// Its id.
    pub id: ProviderId,
    /// What its manifest is to say.
    pub manifest: Manifest,
    /// Where the command was typed; paths in it are meant from there.
    pub cwd: Option<PathBuf>,
    /// Where its program is looked for first.
    pub search: Vec<PathBuf>,
}

/// What is to be added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewFolder {
    /// The folder with a manifest, or a file where the kind of provider takes one.
    pub path: PathBuf,
    /// The namespace of tools whose manifest names none.
    pub namespace: Option<String>,
    /// Where it is told what is done meanwhile.
    pub steps: Steps,
}

impl From<PathBuf> for NewFolder {
    fn from(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }
}

/// What an owner approves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approve {
    /// Hash of the manifest that the owner looked at; the one that is known now when absent.
    pub manifest_hash: Option<Digest>,
    /// The permissions; all that the manifest asks for when absent.
    pub permissions: Option<Vec<String>>,
    /// How firmly it is fenced in; the core's default, or what the manifest says where that is
    /// stricter, when absent.
    pub sandbox: Option<SandboxLevel>,
    /// Which runs share a process; what the manifest says, or all, when absent.
    pub isolation: Option<Isolation>,
    /// The owner's limits.
    pub limits: ProviderLimits,
}

/// What a scan found in one folder.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundProvider {
    /// The folder.
    pub folder: PathBuf,
    /// The agent's id and manifest, or why the manifest cannot be used.
    pub manifest: Result<(ProviderId, Manifest), Fault>,
}

/// What a scan found, and whether it looked everywhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// What was found, in the order of folders.
    pub found: Vec<FoundProvider>,
    /// Why it did not look everywhere, if it did not.
    pub cut_short: Option<String>,
}

/// What steering leads to.
pub type Steering<'a, T> = BoxFuture<'a, Result<T, Fault>>;

/// Steers agents.
pub trait ProviderControl: Send + Sync + 'static {
    /// All agents.
    fn list(&self) -> Vec<ProviderView>;

    /// One agent.
    fn show(&self, id: &ProviderId) -> Result<ProviderView, Fault>;

    /// Reads the manifest in a folder and takes the agent up.
    fn add(&self, caller: Caller, folder: PathBuf) -> Steering<'_, ProviderView>;

    /// Takes up all that a folder or a file has: several tools may be in one. At least one.
    fn add_all(&self, caller: Caller, new: NewFolder) -> Steering<'_, Vec<ProviderView>> {
        let adding = self.add(caller, new.path);
        Box::pin(async move { Ok(vec![adding.await?]) })
    }

    /// Writes the manifest of a provider and takes it up. Nothing is run.
    fn declare(&self, caller: Caller, declared: DeclaredProvider) -> Steering<'_, ProviderView> {
        drop((caller, declared));
        let message = "Such a provider is added by its folder.";
        Box::pin(std::future::ready(Err(Fault::new(Code::RequestInvalid, message))))
    }

    /// Looks for manifests below a folder. It runs nothing and ends in bounded time.
    fn scan(&self, folder: PathBuf) -> Steering<'_, Scan>;

    /// How the agent's files differ from what was approved, one line each.
    fn drift(&self, id: ProviderId) -> Steering<'_, Vec<String>>;

    /// Approves the manifest, or a part of what it asks for.
    fn approve(
        &self,
        caller: Caller,
        id: ProviderId,
        approve: Approve,
    ) -> Steering<'_, ProviderView>;

    /// Takes the approval back; a running agent is stopped.
    fn revoke(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView>;

    /// Takes on tools whose definition changed; all of them when none is named.
    fn approve_tools(
        &self,
        caller: Caller,
        id: ProviderId,
        tools: Vec<ToolId>,
    ) -> Steering<'_, ProviderView>;

    /// Lets it run from now on, also after a restart of the core.
    fn start(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView>;

    /// Stops it and waits until it is gone.
    fn stop(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView>;

    /// Lets it finish what is under way, refuses what is new and stops it then. It does not wait
    /// for that; starting it again takes it back, and stopping it ends it at once.
    fn drain(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView>;

    /// Stops it if it runs, and starts it.
    fn restart(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView>;

    /// Reads again what it offers, also if nothing says that it has changed.
    fn refresh(&self, caller: Caller, id: ProviderId) -> Steering<'_, ProviderView> {
        drop((caller, id));
        let message = "Such a provider says by itself what it offers.";
        Box::pin(std::future::ready(Err(Fault::new(Code::RequestInvalid, message))))
    }

    /// Forgets it.
    fn remove(&self, caller: Caller, id: ProviderId) -> Steering<'_, ()>;

    /// What its processes used lately, oldest first; a step without any is left out.
    fn usage(&self, id: &ProviderId, range: SeriesRange) -> Result<Vec<UsagePoint>, Fault>;

    /// The last lines of its log, also when it is dead.
    fn logs(&self, id: ProviderId, lines: usize) -> Steering<'_, Vec<LogLine>>;

    /// The last lines of its log and then new ones, while it runs.
    fn follow_logs(
        &self,
        id: ProviderId,
        lines: usize,
    ) -> Steering<'_, BoxStream<'static, LogLine>>;

    /// Who lets people log in to servers elsewhere; nobody where that cannot be.
    fn logins(&self) -> Option<Arc<dyn LoginControl>> {
        None
    }
}
