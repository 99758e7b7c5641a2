//! How the edge is set up.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use wharf_engine::InputCheck;
use wharf_ports::launcher::RestartPolicy;
use wharf_protocol::agent::{CoreLimits, OversizePolicy, SessionRules};
use wharf_vocab::ProviderId;

/// How the edge is set up.
#[derive(Clone)]
pub struct AgentEdgeOptions {
    /// How agents are launched. A launch's token is good for as long as it may take to connect.
    /// Sockets of launches lie beside the one of [`AgentEdgeOptions::transport`].
    pub hosting: wharf_hosting::HostingOptions,
    /// Where agents connect.
    pub transport: Transport,
    /// The core's id, told in the welcome.
    pub instance: String,
    /// Limits and times of a session.
    pub limits: CoreLimits,
    /// Where addresses of the artifact store lead, such as `http://127.0.0.1:7421`. Agents that
    /// cannot reach it are given files; without it that is every agent that is fenced in.
    pub storage_origin: Option<String>,
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

impl AgentEdgeOptions {
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

    /// Where sockets of launches lie.
    pub(crate) fn sockets_dir(&self) -> Option<PathBuf> {
        match &self.transport {
            Transport::Unix(path) => path.parent().map(PathBuf::from),
            Transport::Tcp(_) => self.hosting.folder.parent().map(|home| home.join("run")),
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
