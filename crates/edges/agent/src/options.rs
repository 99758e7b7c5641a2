//! How the edge is set up.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_domain::agent::AgentLimits;
use wharf_engine::Handle;
use wharf_engine::egress::Egress;
use wharf_engine::launcher::{Launcher, RestartPolicy};
use wharf_engine::vault::Vault;
use wharf_protocol::agent::CoreLimits;
use wharf_vocab::SandboxLevel;

/// How the edge is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The engine.
    pub handle: Handle,
    /// Who starts processes.
    pub launcher: Arc<dyn Launcher>,
    /// Where agents' own folders lie: data, home, temporary files, logs.
    pub agents_dir: PathBuf,
    /// Where agents connect.
    pub transport: Transport,
    /// The core's id, told in the welcome.
    pub instance: String,
    /// Limits and times of a session.
    pub limits: CoreLimits,
    /// When a crashed agent is started again.
    pub restart: RestartPolicy,
    /// How long an agent may take to end.
    pub stop_grace: Duration,
    /// How long a launch's token is good.
    pub token_life: Duration,
    /// Who keeps secrets.
    pub vault: Arc<dyn Vault>,
    /// Who lets agents out to hosts.
    pub egress: Arc<dyn Egress>,
    /// Where addresses of the artifact store lead, such as `http://127.0.0.1:7421`. Agents that
    /// cannot reach it are given files; without it that is every agent that is fenced in.
    pub storage_origin: Option<String>,
    /// What `~` stands for in permissions; without it such permissions give nothing.
    pub user_home: Option<PathBuf>,
    /// Folders that no agent ever sees, whatever was approved.
    pub hidden: Vec<PathBuf>,
    /// How firmly agents are fenced in when an approval does not say.
    pub sandbox: SandboxLevel,
    /// The least an agent must be fenced in; what its approval says when absent.
    pub sandbox_min: Option<SandboxLevel>,
    /// The owner's limits for all agents.
    pub agent_limits: AgentLimits,
}

impl Options {
    /// What launching agents needs of this.
    pub(crate) fn hosting(&self) -> wharf_hosting::Options {
        let sockets_dir = match &self.transport {
            Transport::Unix(path) => path.parent().map(PathBuf::from),
            Transport::Tcp(_) => self.agents_dir.parent().map(|home| home.join("run")),
        };
        wharf_hosting::Options {
            handle: self.handle.clone(),
            launcher: Arc::clone(&self.launcher),
            folder: self.agents_dir.clone(),
            sockets_dir,
            restart: self.restart,
            stop_grace: self.stop_grace,
            connect_within: self.token_life,
            vault: Arc::clone(&self.vault),
            egress: Arc::clone(&self.egress),
            user_home: self.user_home.clone(),
            hidden: self.hidden.clone(),
            sandbox: self.sandbox,
            sandbox_min: self.sandbox_min,
            limits: self.agent_limits.clone(),
        }
    }
}

/// Where agents connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A Unix socket at this path, in a folder of the owner's alone.
    Unix(PathBuf),
    /// A loopback address.
    Tcp(SocketAddr),
}
