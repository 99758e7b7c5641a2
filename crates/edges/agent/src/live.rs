//! What is known of an agent besides the journal: process, connection, health.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc};
use wharf_domain::Agent;
use wharf_engine::agents::{AgentState, AgentView};
use wharf_engine::launcher::Launched;
use wharf_protocol::agent::CoreClose;
use wharf_vocab::{LaunchId, Timestamp};

use crate::conn::Command;

/// What is known of one agent besides the journal.
#[derive(Debug, Default)]
pub(crate) struct Live {
    state: Mutex<State>,
    /// Wakes the supervisor when a connection has ended.
    pub(crate) disconnected: Notify,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    reason: Option<String>,
    launched: Option<Arc<dyn Launched>>,
    launch: Option<LaunchId>,
    last_heartbeat: Option<Timestamp>,
    conn: Option<Conn>,
    closed: Option<CoreClose>,
}

impl State {
    /// The process of the current launch; the last one may belong to an earlier launch.
    fn current(&self) -> Option<&Arc<dyn Launched>> {
        let launch = self.launch.as_ref()?;
        self.launched.as_ref().filter(|launched| launched.id() == launch)
    }
}

/// How the process fares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is none.
    #[default]
    Idle,
    /// It starts, or has not connected yet.
    Starting,
    /// It is connected and well.
    Running,
    /// It is connected and not well.
    Unhealthy,
    /// It ended and will be started again.
    BackingOff,
}

/// A connection of a launch.
#[derive(Debug, Clone)]
pub(crate) struct Conn {
    pub(crate) launch: LaunchId,
    pub(crate) commands: mpsc::Sender<Command>,
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn starting(&self, launch: &LaunchId) {
        let mut state = self.lock();
        state.phase = Phase::Starting;
        state.reason = None;
        state.launch = Some(launch.clone());
        state.last_heartbeat = None;
        state.closed = None;
    }

    pub(crate) fn launched(&self, launched: Arc<dyn Launched>) {
        self.lock().launched = Some(launched);
    }

    /// The process is gone; its log stays readable.
    pub(crate) fn ended(&self, phase: Phase, reason: Option<String>) {
        let mut state = self.lock();
        state.phase = phase;
        state.reason = reason;
        state.launch = None;
        state.conn = None;
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.lock().phase = phase;
    }

    pub(crate) fn heartbeat(&self, now: Timestamp) {
        self.lock().last_heartbeat = Some(now);
    }

    /// Takes a connection of the current launch; `false` if there is one already.
    pub(crate) fn connect(&self, conn: Conn) -> bool {
        let mut state = self.lock();
        if state.conn.is_some() || state.launch.as_ref() != Some(&conn.launch) {
            return false;
        }
        state.conn = Some(conn);
        true
    }

    pub(crate) fn disconnect(&self, launch: &LaunchId, why: CoreClose) {
        let mut state = self.lock();
        if state.conn.as_ref().is_some_and(|conn| conn.launch == *launch) {
            state.conn = None;
            state.closed = Some(why);
            drop(state);
            self.disconnected.notify_one();
        }
    }

    /// Why the connection of this launch ended, if it has.
    pub(crate) fn closed(&self) -> Option<CoreClose> {
        self.lock().closed
    }

    pub(crate) fn conn(&self) -> Option<Conn> {
        self.lock().conn.clone()
    }

    /// The last launch, alive or dead.
    pub(crate) fn last_launched(&self) -> Option<Arc<dyn Launched>> {
        self.lock().launched.clone()
    }

    /// The agent as others see it.
    pub(crate) fn view(&self, agent: Agent) -> AgentView {
        let state = self.lock();
        let alive = state.launch.is_some();
        let shown = match state.phase {
            Phase::Starting => AgentState::Starting,
            Phase::Running => AgentState::Running,
            Phase::Unhealthy => AgentState::Unhealthy,
            Phase::BackingOff => AgentState::BackingOff,
            Phase::Idle => at_rest(&agent, state.launched.is_some()),
        };
        AgentView {
            state: shown,
            reason: state.reason.clone().or_else(|| agent.stop_reason.clone()),
            pid: state.current().map(|launched| launched.pid()),
            launch: state.launch.clone(),
            last_heartbeat: state.last_heartbeat.filter(|_| alive),
            fence: state.current().map(|launched| launched.fence().clone()),
            instances: usize::from(state.current().is_some()),
            agent,
        }
    }
}

fn at_rest(agent: &Agent, was_launched: bool) -> AgentState {
    match &agent.approval {
        _ if agent.stop_reason.is_some() => AgentState::Crashed,
        Some(_) if !agent.is_approved() => AgentState::Drifted,
        None => AgentState::Added,
        Some(_) if was_launched || !agent.tools.is_empty() => AgentState::Stopped,
        Some(_) => AgentState::Approved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(id: &str) -> LaunchId {
        LaunchId::new(id).expect("valid")
    }

    fn conn(id: &str) -> Conn {
        Conn { launch: launch(id), commands: mpsc::channel(1).0 }
    }

    #[test]
    fn r054_one_agent_has_one_connection_and_only_of_its_current_launch() {
        let live = Live::default();
        assert!(!live.connect(conn("l1")), "nothing was launched");
        live.starting(&launch("l1"));
        assert!(!live.connect(conn("l0")), "another launch");
        assert!(live.connect(conn("l1")));
        assert!(!live.connect(conn("l1")), "a second session");
        live.disconnect(&launch("l0"), CoreClose::Goodbye);
        assert!(live.conn().is_some(), "a stranger's end changes nothing");
        live.disconnect(&launch("l1"), CoreClose::Goodbye);
        assert!(live.conn().is_none());
    }
}
