//! How providers are launched.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_domain::provider::{DefaultTerms, ProviderLimits};
use wharf_engine::Handle;
use wharf_ports::launcher::Egress;
use wharf_ports::launcher::{Launcher, RestartPolicy};
use wharf_ports::vault::Vault;
use wharf_vocab::SandboxLevel;

use crate::throttle;

/// How providers are launched.
#[derive(Clone)]
pub struct HostingOptions {
    /// The engine.
    pub handle: Handle,
    /// Who starts processes.
    pub launcher: Arc<dyn Launcher>,
    /// Where providers' own folders lie: data, home, temporary files, logs. No other host has
    /// its folders there.
    pub folder: PathBuf,
    /// Where sockets of launches lie, unless the path is too long. No other host has its sockets
    /// there.
    pub sockets_dir: Option<PathBuf>,
    /// When a crashed provider is started again.
    pub restart: RestartPolicy,
    /// How long a process may take to end.
    pub stop_grace: Duration,
    /// How long a process may take until there is a connection.
    pub connect_within: Duration,
    /// Who keeps secrets.
    pub vault: Arc<dyn Vault>,
    /// Who lets processes out to hosts.
    pub egress: Arc<dyn Egress>,
    /// What `~` stands for in permissions; without it such permissions give nothing.
    pub user_home: Option<PathBuf>,
    /// Folders that no process ever sees, whatever was approved.
    pub hidden: Vec<PathBuf>,
    /// How firmly processes are fenced in when an approval does not say; a manifest may ask for
    /// more.
    pub sandbox: SandboxLevel,
    /// The least a process must be fenced in; what its approval says when absent.
    pub sandbox_min: Option<SandboxLevel>,
    /// The owner's limits for all providers.
    pub limits: ProviderLimits,
}

impl HostingOptions {
    /// What holds for whatever is launched, unless its owner says something else about it.
    pub(crate) fn usual(&self) -> DefaultTerms {
        throttle::usual(self.sandbox, &self.limits)
    }
}
