//! Both ends on one stage, with a wire between them that the test can look at.

use wharf_protocol::agent::{
    Additions, AgentConfig, AgentEvent, AgentSession, AnySchema, CoreConfig, CoreEvent, CoreSession,
};
use wharf_protocol::{Incoming, Moment, Session as _};

use super::stage::{agent_config, core_config, moment, sent, tool};

/// Both ends of one connection.
pub(crate) struct Pair {
    pub(crate) core: CoreSession,
    pub(crate) agent: AgentSession,
    pub(crate) now: u64,
    /// Everything the core has written.
    pub(crate) from_core: Vec<u8>,
    /// Everything the agent has written.
    pub(crate) from_agent: Vec<u8>,
}

impl Pair {
    pub(crate) fn new(core: CoreConfig, agent: AgentConfig) -> Self {
        Self {
            core: CoreSession::new(moment(0), core, AnySchema),
            agent: AgentSession::new(moment(0), agent),
            now: 0,
            from_core: Vec::new(),
            from_agent: Vec::new(),
        }
    }

    /// Both ends have met, all additions are granted, `say` and `wait` are registered.
    pub(crate) fn ready() -> Self {
        Self::ready_with(core_config(), agent_config())
    }

    pub(crate) fn ready_with(core: CoreConfig, mut agent: AgentConfig) -> Self {
        agent.capabilities.push("steps".to_owned());
        Self::granted(core, agent, Additions::ALL)
    }

    /// As peers met that knew of no steps.
    pub(crate) fn without_steps() -> Self {
        Self::granted(core_config(), agent_config(), Additions { steps: false, ..Additions::ALL })
    }

    fn granted(core: CoreConfig, mut agent: AgentConfig, additions: Additions) -> Self {
        agent.capabilities.extend(["invoke", "ask", "notify"].map(str::to_owned));
        let mut pair = Self::new(core, agent);
        pair.pump();
        pair.core.accept(pair.moment(), additions).expect("a hello waits");
        pair.pump();
        let tools = vec![tool("say"), tool("wait")];
        pair.agent.register(pair.moment(), tools, false).expect("live");
        pair.pump();
        pair.core_events();
        pair.agent_events();
        pair
    }

    pub(crate) fn moment(&self) -> Moment {
        moment(self.now)
    }

    /// Carries bytes back and forth until both ends are silent.
    pub(crate) fn pump(&mut self) {
        let now = self.moment();
        loop {
            let to_agent: Vec<u8> = sent(&mut self.core);
            let to_core: Vec<u8> = sent(&mut self.agent);
            if to_agent.is_empty() && to_core.is_empty() {
                return;
            }
            self.from_core.extend_from_slice(&to_agent);
            self.from_agent.extend_from_slice(&to_core);
            self.agent.receive(now, Incoming::Bytes(&to_agent));
            self.core.receive(now, Incoming::Bytes(&to_core));
        }
    }

    /// Time passes in steps of a second; both ends do what is due.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.now < end {
            self.now = end.min(self.now + 1_000);
            self.core.tick(self.moment());
            self.agent.tick(self.moment());
            self.pump();
        }
    }

    pub(crate) fn core_events(&mut self) -> Vec<CoreEvent> {
        std::iter::from_fn(|| self.core.poll_event()).collect()
    }

    pub(crate) fn agent_events(&mut self) -> Vec<AgentEvent> {
        std::iter::from_fn(|| self.agent.poll_event()).collect()
    }
}
