//! How the edge is set up.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_domain::provider::ProviderLimits;
use wharf_engine::{Handle, InputCheck};
use wharf_ports::egress::Egress;
use wharf_ports::launcher::{Launcher, RestartPolicy};
use wharf_ports::vault::Vault;
use wharf_protocol::agent::{CoreLimits, OversizePolicy, SessionRules};
use wharf_vocab::{ProviderId, SandboxLevel};

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
    pub agent_limits: ProviderLimits,
    /// What holds on the wire for agents of which nothing else is said.
    pub rule: AgentRule,
    /// What holds for single agents.
    pub rules: BTreeMap<ProviderId, AgentRule>,
}

/// What holds for an agent on the wire, where the owner can choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentRule {
    /// How the core checks inputs for it; as the engine was told.
    pub input_check: InputCheck,
    /// Whether a frame above the limit is let go by and answered, instead of closing the
    /// connection.
    pub reject_oversize: bool,
    /// Whether a message of unknown type closes the connection.
    pub strict: bool,
    /// Largest frame, when not as usual.
    pub frame_bytes_max: Option<u32>,
    /// Calls that may be open, when not as usual.
    pub calls_open_max: Option<usize>,
    /// When it is started again after a crash, when not as usual.
    pub restart: Option<RestartPolicy>,
}

impl Options {
    /// What holds for an agent.
    pub(crate) fn rule_of(&self, id: &ProviderId) -> &AgentRule {
        self.rules.get(id).unwrap_or(&self.rule)
    }

    /// The same, as a session is told of it.
    pub(crate) fn session_rules(&self, id: &ProviderId) -> SessionRules {
        let (rule, usual) = (self.rule_of(id), SessionRules::new(&self.limits));
        SessionRules {
            frame_bytes_max: rule.frame_bytes_max.unwrap_or(usual.frame_bytes_max),
            calls_open_max: rule.calls_open_max.unwrap_or(usual.calls_open_max),
            oversize: if rule.reject_oversize {
                OversizePolicy::Reject
            } else {
                OversizePolicy::Close
            },
            close_on_unknown_type: rule.strict,
        }
    }

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
