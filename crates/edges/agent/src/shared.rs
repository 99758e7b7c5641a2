//! What all connections of agents share, and what holds for the agent behind one of them.

use std::time::Duration;

use tokio::time::Instant;
use wharf_domain::provider::ProviderLimits;
use wharf_engine::Handle;
use wharf_hosting::{Host, Live};
use wharf_vocab::{ProviderId, SandboxLevel};

use crate::options::AgentEdgeOptions;
use crate::tokens::SessionTokens;

/// How long the agent's limits are taken as they were last read.
const LIMITS_FRESH: Duration = Duration::from_secs(1);

/// What connections share.
pub(crate) struct AgentHub {
    pub(crate) host: Host,
    pub(crate) handle: Handle,
    pub(crate) options: AgentEdgeOptions,
    pub(crate) tokens: SessionTokens,
    /// Where agents connect, as they are told.
    pub(crate) address: String,
}

/// What an agent may be asked, and whether it is fenced in.
pub(crate) struct AgentBounds {
    pub(crate) limits: ProviderLimits,
    pub(crate) fenced: bool,
    read_at: Instant,
}

impl AgentBounds {
    /// Lets attempts wait for which the agent has no room.
    pub(crate) fn announce(&self, shared: &AgentHub, id: &ProviderId, live: &Live) {
        let most = shared.options.session_rules(id).calls_open_max;
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let calls_max = self.limits.calls_max.map_or(most, |max| max.min(most));
        live.limit_calls(usize::try_from(calls_max).unwrap_or(usize::MAX));
    }

    pub(crate) fn read(shared: &AgentHub, id: &ProviderId) -> Self {
        let (limits, fenced) = match shared.handle.providers().get(id) {
            Ok(agent) => {
                let level = agent.approval.as_ref().map(|approval| approval.terms.sandbox);
                let fenced = level.is_some_and(|level| level != SandboxLevel::None);
                (wharf_hosting::limits(&agent, &shared.options.hosting.limits), fenced)
            }
            // An agent that is not known any more is about to lose its connection.
            Err(_) => (shared.options.hosting.limits.clone(), false),
        };
        Self { limits, fenced, read_at: Instant::now() }
    }

    /// Reads them anew if they were read a while ago.
    pub(crate) fn refresh(&mut self, shared: &AgentHub, id: &ProviderId, live: &Live) {
        if self.read_at.elapsed() >= LIMITS_FRESH {
            *self = Self::read(shared, id);
            self.announce(shared, id, live);
        }
    }
}
