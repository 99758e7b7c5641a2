//! What is known of a provider besides the journal: processes, connections, health.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use wharf_domain::provider::ProviderLimits;
use wharf_domain::{Availability, Provider};
use wharf_engine::launcher::Launched;
use wharf_engine::providers::{ProviderHealth, ProviderState, ProviderView};
use wharf_engine::{Dispatch, Handle};
use wharf_vocab::{AttemptId, Code, Fault, Isolation, LaunchId, ProviderId, Timestamp, WorldId};

use crate::command::{Closed, Command};
use crate::files::Watch;
use crate::kind::Upkeep;
use crate::places::Places;
use crate::pool::{Begun, Failed, Phase, Policy, Pool, Quit, Slot};

/// What is known of one provider besides the journal.
#[derive(Debug, Default)]
pub struct Live {
    state: Mutex<State>,
    /// Wakes the supervisor: a process may be needed, or be needed no more.
    pub(crate) changed: Notify,
    /// What the catalog was last told; held while it is told.
    told: tokio::sync::Mutex<Option<Availability>>,
    /// Held while pinned files are read again.
    pub(crate) rechecking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    pool: Pool,
    rest: Rest,
    reason: Option<String>,
    last: Option<Arc<dyn Launched>>,
    /// Why no call is taken, although the agent may be connected.
    blocked: Option<Fault>,
    watch: Option<Arc<Watch>>,
    /// Attempts that are held while files are read again, and whether they were canceled.
    held: HashMap<AttemptId, bool>,
}

/// How an agent fares that has no process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It is down, and why.
    #[default]
    Unknown,
    Down(String),
    /// It ended and will be started again.
    BackingOff,
    /// It is about to start.
    Coming,
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The provider is to run: how its processes are kept, and which files it is pinned to.
    pub(crate) fn prepare(&self, policy: Policy, watch: Watch) {
        let mut state = self.lock();
        state.pool.set_policy(policy);
        state.watch = Some(Arc::new(watch));
        state.blocked = None;
    }

    pub(crate) fn begin(&self, launch: &LaunchId) -> Begun {
        let mut state = self.lock();
        state.rest = Rest::Coming;
        state.reason = None;
        state.pool.begin(launch)
    }

    /// Gives a launch its folders; which they are depends on who shares its process.
    pub(crate) fn settle(
        &self,
        launch: &LaunchId,
        make: impl FnOnce(Isolation) -> Places,
    ) -> Arc<Places> {
        let mut state = self.lock();
        let isolation = state.pool.isolation_of(launch);
        let places = Arc::new(make(isolation));
        if let Some(slot) = state.pool.slot(launch) {
            slot.places = Some(Arc::clone(&places));
        }
        places
    }

    /// The folders of a launch.
    #[must_use]
    pub fn places(&self, launch: &LaunchId) -> Option<Arc<Places>> {
        self.lock().pool.slot(launch)?.places.clone()
    }

    pub(crate) fn launched(&self, launched: &Arc<dyn Launched>, notes: &[String]) {
        let mut state = self.lock();
        state.last = Some(Arc::clone(launched));
        if let Some(slot) = state.pool.slot(launched.id()) {
            slot.notes = notes.to_vec();
            slot.launched.send_replace(Some(Arc::clone(launched)));
        }
    }

    /// The process of a launch, once it is there. A hello may well come before whoever started
    /// the process knows of it.
    pub async fn process(
        &self,
        launch: &LaunchId,
        patience: Duration,
    ) -> Option<Arc<dyn Launched>> {
        let mut launched = self.lock().pool.slot(launch)?.launched.subscribe();
        let ready = tokio::time::timeout(patience, launched.wait_for(Option::is_some)).await;
        ready.ok()?.ok()?.clone()
    }

    /// The process of a launch, if it is known already.
    #[must_use]
    pub fn started(&self, launch: &LaunchId) -> Option<Arc<dyn Launched>> {
        self.lock().pool.slot(launch)?.process()
    }

    /// A process is gone; its log stays readable.
    pub(crate) fn end(&self, launch: &LaunchId) {
        self.lock().pool.end(launch);
    }

    /// How the agent fares while it has no process.
    pub(crate) fn rest(&self, rest: Rest, reason: Option<String>) {
        let mut state = self.lock();
        state.rest = rest;
        state.reason = reason;
    }

    /// A pause between restarts is over.
    pub(crate) fn rested(&self) {
        let mut state = self.lock();
        if state.rest == Rest::BackingOff {
            state.rest = Rest::Coming;
        }
    }

    /// A process fares like this now; attempts that could not be handed to it.
    #[must_use = "attempts that cannot be handed over must be ended"]
    pub fn set_phase(&self, launch: &LaunchId, phase: Phase) -> Failed {
        let mut state = self.lock();
        if let Some(slot) = state.pool.slot(launch) {
            slot.phase = phase;
        }
        state.pool.serve_waiting()
    }

    /// The agent itself says that this process takes no more calls.
    pub fn retire(&self, launch: &LaunchId) {
        if let Some(slot) = self.lock().pool.slot(launch) {
            slot.retired = true;
        }
    }

    /// A process gave a sign of life, and said how it feels.
    pub fn heartbeat(&self, launch: &LaunchId, now: Timestamp, health: ProviderHealth) {
        if let Some(slot) = self.lock().pool.slot(launch) {
            slot.last_heartbeat = Some(now);
            slot.health = Some(health);
        }
    }

    /// Takes the connection of a launch; `false` if there is one already, or no such launch.
    #[must_use = "a connection that is not taken must end"]
    pub fn connect(&self, launch: &LaunchId, commands: mpsc::Sender<Command>) -> bool {
        let mut state = self.lock();
        let Some(slot) = state.pool.slot(launch) else { return false };
        if slot.conn.is_some() || slot.closed.is_some() {
            return false;
        }
        slot.conn = Some(commands);
        true
    }

    /// The connection of a launch is gone, or will never be there.
    pub fn disconnect(&self, launch: &LaunchId, why: Closed) {
        if let Some(slot) = self.lock().pool.slot(launch) {
            slot.conn = None;
            slot.closed = Some(why);
            slot.wake.notify_one();
        }
        self.changed.notify_one();
    }

    /// Whether a launch has a connection now, and why its last one ended.
    pub(crate) fn connection(&self, launch: &LaunchId) -> (bool, Option<Closed>) {
        let mut state = self.lock();
        state
            .pool
            .slot(launch)
            .map_or((false, None), |slot| (slot.conn.is_some(), slot.closed.clone()))
    }

    pub(crate) fn commands(&self, launch: &LaunchId) -> Option<mpsc::Sender<Command>> {
        self.lock().pool.slot(launch)?.conn.clone()
    }

    /// Tells all processes to end.
    pub(crate) fn quit_all(&self, how: Quit) {
        self.lock().pool.slots.iter_mut().for_each(|slot| slot.quit(how));
    }

    pub(crate) fn missing(&self) -> usize {
        self.lock().pool.missing()
    }

    pub(crate) fn has_usable(&self) -> bool {
        self.lock().pool.slots.iter().any(Slot::is_usable)
    }

    pub(crate) fn end_idle(&self, now: Instant) -> Option<Instant> {
        self.lock().pool.end_idle(now)
    }

    /// A process has nothing more to do with an attempt. One that was told to stop and did not
    /// is unresponsive.
    pub fn call_over(&self, launch: &LaunchId, attempt: &AttemptId, unresponsive: bool) {
        self.lock().pool.call_over(launch, attempt, unresponsive);
        self.changed.notify_one();
    }

    /// The provider takes so many calls at once, over all of its processes.
    pub fn limit_calls(&self, calls_max: usize) {
        self.lock().pool.limit_calls(calls_max);
    }

    /// A process takes so many calls at once.
    pub fn limit_calls_of(&self, launch: &LaunchId, calls_max: usize) {
        self.lock().pool.limit_calls_of(launch, calls_max);
    }

    /// Whether an attempt would be taken now, or told something better than that there is no room.
    pub(crate) fn has_room(&self, world: &WorldId, coming: usize) -> bool {
        let state = self.lock();
        state.blocked.is_some() || state.pool.has_room(world, coming + state.held.len())
    }

    pub(crate) fn place(&self, dispatch: Dispatch) -> Result<(), Fault> {
        let mut state = self.lock();
        if let Some(fault) = &state.blocked {
            return Err(fault.clone());
        }
        if let (Upkeep::OnDemand { .. }, Rest::Down(reason)) = (state.pool.upkeep(), &state.rest) {
            let message = format!("The tool is not available: {reason}.");
            return Err(Fault::new(Code::ToolUnavailable, message));
        }
        let placed = state.pool.place(dispatch);
        drop(state);
        self.changed.notify_one();
        placed
    }

    pub(crate) fn pass_on(&self, attempt: &AttemptId, command: Command) {
        self.lock().pool.pass_on(attempt, command);
    }

    pub(crate) fn take_waiting(&self, attempt: &AttemptId) -> Option<Dispatch> {
        self.lock().pool.take_waiting(attempt)
    }

    pub(crate) fn fail_waiting(&self, fault: &Fault) -> Failed {
        self.lock().pool.fail_waiting(fault)
    }

    /// Takes no more calls, for this reason.
    pub(crate) fn block(&self, fault: Fault) {
        self.lock().blocked = Some(fault);
    }

    pub(crate) fn unblock(&self) {
        self.lock().blocked = None;
    }

    pub(crate) fn blocked(&self) -> Option<Fault> {
        self.lock().blocked.clone()
    }

    pub(crate) fn watch(&self) -> Option<Arc<Watch>> {
        self.lock().watch.clone()
    }

    /// Holds an attempt while files are read again.
    pub(crate) fn hold(&self, attempt: &AttemptId) {
        self.lock().held.insert(attempt.clone(), false);
    }

    /// Marks a held attempt as canceled; `false` if it is not held.
    pub(crate) fn cancel_held(&self, attempt: &AttemptId) -> bool {
        self.lock().held.get_mut(attempt).map(|canceled| *canceled = true).is_some()
    }

    /// Lets go of a held attempt; whether it was canceled meanwhile.
    pub(crate) fn release(&self, attempt: &AttemptId) -> bool {
        self.lock().held.remove(attempt).unwrap_or(false)
    }

    /// The last launch, alive or dead.
    pub(crate) fn last_launched(&self) -> Option<Arc<dyn Launched>> {
        self.lock().last.clone()
    }

    /// Tells the catalog whether calls can be made now.
    pub async fn announce(&self, handle: &Handle, id: &ProviderId) {
        let mut told = self.told.lock().await;
        let availability = self.availability();
        if told.as_ref() == Some(&availability) {
            return;
        }
        *told = Some(availability.clone());
        // When the engine is gone nobody needs to know.
        let _ = handle.set_availability(id.clone(), availability).await;
    }

    fn availability(&self) -> Availability {
        let state = self.lock();
        if let Rest::Down(reason) = &state.rest {
            return Availability::Down { reason: reason.clone() };
        }
        if matches!(state.pool.upkeep(), Upkeep::OnDemand { .. }) {
            return Availability::Up;
        }
        let usable = || state.pool.slots.iter().filter(|slot| slot.is_usable());
        if usable().any(|slot| slot.phase == Phase::Running) {
            Availability::Up
        } else if usable().next().is_some() {
            Availability::Unhealthy
        } else {
            Availability::Coming
        }
    }

    /// The agent as others see it.
    pub(crate) fn view(&self, agent: Provider, limits: ProviderLimits) -> ProviderView {
        let state = self.lock();
        let slots = || state.pool.slots.iter().filter(|slot| slot.closed.is_none());
        let rank = |slot: &&Slot| (slot.leaving, slot.phase != Phase::Running, !slot.is_usable());
        let front = slots().min_by_key(rank);
        let shown = match (front.map(|slot| slot.phase), &state.rest) {
            (Some(Phase::Starting), _) => ProviderState::Starting,
            (Some(Phase::Running), _) => ProviderState::Running,
            (Some(Phase::Unhealthy), _) => ProviderState::Unhealthy,
            (None, Rest::Coming) if state.pool.upkeep() != Upkeep::Always => ProviderState::Running,
            (None, Rest::BackingOff) => ProviderState::BackingOff,
            (None, Rest::Coming) => ProviderState::Starting,
            (None, Rest::Unknown | Rest::Down(_)) => at_rest(&agent, state.last.is_some()),
        };
        let process = front.and_then(Slot::process);
        let drift = (!agent.drift.is_empty()).then(|| agent.drift.join("; "));
        ProviderView {
            state: shown,
            reason: state.reason.clone().or(drift).or_else(|| agent.stop_reason.clone()),
            pid: process.as_ref().map(|launched| launched.pid()),
            launch: front.map(|slot| slot.launch.clone()),
            last_heartbeat: front.and_then(|slot| slot.last_heartbeat),
            health: front.and_then(|slot| slot.health.clone()),
            fence: process.as_ref().map(|launched| {
                let mut fence = launched.fence().clone();
                fence.notes.extend(front.iter().flat_map(|slot| slot.notes.clone()));
                fence
            }),
            instances: slots().filter(|slot| slot.process().is_some()).count(),
            limits,
            wishes: Vec::new(),
            provider: agent,
        }
    }
}

fn at_rest(agent: &Provider, was_launched: bool) -> ProviderState {
    match &agent.approval {
        Some(_) if !agent.is_approved() => ProviderState::Drifted,
        _ if agent.stop_reason.is_some() => ProviderState::Crashed,
        None => ProviderState::Added,
        Some(_) if was_launched || !agent.tools.is_empty() => ProviderState::Stopped,
        Some(_) => ProviderState::Approved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(id: &str) -> LaunchId {
        LaunchId::new(id).expect("valid")
    }

    fn commands() -> mpsc::Sender<Command> {
        mpsc::channel(1).0
    }

    #[test]
    fn r054_a_launch_has_one_connection_and_a_stranger_has_none() {
        let live = Live::default();
        assert!(!live.connect(&launch("l1"), commands()), "nothing was launched");
        live.begin(&launch("l1"));
        assert!(!live.connect(&launch("l0"), commands()), "another launch");
        assert!(live.connect(&launch("l1"), commands()));
        assert!(!live.connect(&launch("l1"), commands()), "a second session");
        live.disconnect(&launch("l0"), Closed::Over);
        assert!(live.connection(&launch("l1")).0, "a stranger's end changes nothing");
        live.disconnect(&launch("l1"), Closed::Over);
        assert_eq!(live.connection(&launch("l1")), (false, Some(Closed::Over)));
        assert!(!live.connect(&launch("l1"), commands()), "a launch connects once");
    }
}
