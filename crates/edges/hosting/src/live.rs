//! What is known of a provider besides the journal: processes, connections, health.

mod inbox;
mod pool;

pub use inbox::{Assignment, ConnectionEnd, ConnectionGuard, Inbox, InboxCommand, Permit};
pub(crate) use pool::{
    IdleState, InstanceChannels, PoolPolicy, PoolSlot, ProcessStop, gone, not_running,
};
pub use pool::{ProcessPhase, Upkeep};

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;
use wharf_domain::provider::{Approval, ProviderLimits, Rate};
use wharf_domain::{Availability, Provider};
use wharf_engine::Handle;
use wharf_ports::launcher::Launched;
use wharf_ports::providers::{ProviderHealth, ProviderState, ProviderView};
use wharf_vocab::{Code, Fault, FaultCode, Isolation, LaunchId, ProviderId, Timestamp};

use crate::files::FileWatch;
use crate::places::Places;
use crate::throttle::Throttle;
use crate::usage::UsageSeries;
use pool::Pool;

/// Why a provider that is drained takes nothing, as people read it.
const DRAINING: &str = "it finishes what is under way and then stops";

/// What is known of one provider besides the journal.
#[derive(Default)]
pub struct Live {
    pool: Mutex<Pool>,
    /// Wakes the supervisor: a process may be needed, or be needed no more.
    pub(crate) changed: Notify,
    /// What the catalog was last told; held while it is told.
    told: tokio::sync::Mutex<Option<Availability>>,
    /// Held while pinned files are read again.
    pub(crate) rechecking: tokio::sync::Mutex<()>,
    throttle: Mutex<Throttle>,
    usage: Mutex<UsageSeries>,
}

impl Live {
    /// The processes and what waits for them.
    pub(crate) fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock()
    }

    /// What its processes used lately.
    pub(crate) fn usage(&self) -> MutexGuard<'_, UsageSeries> {
        self.usage.lock()
    }

    /// Its processes.
    pub(crate) fn processes(&self) -> Vec<Arc<dyn Launched>> {
        self.pool().slots.iter().filter_map(PoolSlot::process).collect()
    }

    /// The provider is to run: how its processes are kept, and which files it is pinned to.
    pub(crate) fn prepare(&self, policy: PoolPolicy, watch: FileWatch) {
        let mut pool = self.pool();
        pool.set_policy(policy);
        pool.watch = Some(Arc::new(watch));
        pool.blocked = None;
        pool.draining = false;
        pool.superseded = None;
    }

    /// Another manifest has taken the place of the one that its processes run by: calls that are
    /// under way go on, and others are refused until it is approved.
    pub(crate) fn supersede(&self, approval: Option<Approval>, why: Fault) {
        let mut pool = self.pool();
        if !matches!(pool.rest, IdleState::Down(_)) {
            pool.superseded = pool.superseded.take().or(approval);
            pool.blocked = Some(why);
        }
    }

    pub(crate) fn begin(&self, launch: &LaunchId) -> InstanceChannels {
        let mut pool = self.pool();
        pool.rest = IdleState::Coming;
        pool.reason = None;
        pool.begin(launch)
    }

    /// Gives a launch its folders; which they are depends on who shares its process.
    pub(crate) fn settle(
        &self,
        launch: &LaunchId,
        make: impl FnOnce(Isolation) -> Places,
    ) -> Arc<Places> {
        let mut pool = self.pool();
        let isolation = pool.isolation_of(launch);
        let places = Arc::new(make(isolation));
        if let Some(slot) = pool.slot(launch) {
            slot.places = Some(Arc::clone(&places));
        }
        places
    }

    /// The folders of a launch.
    #[must_use]
    pub fn places(&self, launch: &LaunchId) -> Option<Arc<Places>> {
        self.pool().slot(launch)?.places.clone()
    }

    pub(crate) fn launched(&self, launched: &Arc<dyn Launched>, notes: &[String]) {
        let mut pool = self.pool();
        pool.last = Some(Arc::clone(launched));
        if let Some(slot) = pool.slot(launched.id()) {
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
        let mut launched = self.pool().slot(launch)?.launched.subscribe();
        let ready = tokio::time::timeout(patience, launched.wait_for(Option::is_some)).await;
        ready.ok()?.ok()?.clone()
    }

    /// The process of a launch, if it is known already.
    #[must_use]
    pub fn started(&self, launch: &LaunchId) -> Option<Arc<dyn Launched>> {
        self.pool().slot(launch)?.process()
    }

    /// How the agent fares while it has no process.
    pub(crate) fn rest(&self, rest: IdleState, reason: Option<String>) {
        let mut pool = self.pool();
        pool.rest = rest;
        pool.reason = reason;
    }

    /// A pause between restarts is over.
    pub(crate) fn rested(&self) {
        let mut pool = self.pool();
        if pool.rest == IdleState::BackingOff {
            pool.rest = IdleState::Coming;
        }
    }

    /// A process fares like this now.
    pub fn set_phase(&self, launch: &LaunchId, phase: ProcessPhase) {
        let mut pool = self.pool();
        if let Some(slot) = pool.slot(launch) {
            slot.phase = phase;
        }
        pool.wake();
    }

    /// Why the provider fares as it does, as people read it; nothing when absent.
    pub fn explain(&self, reason: Option<String>) {
        self.pool().reason = reason;
    }

    /// The agent itself says that this process takes no more calls.
    pub fn retire(&self, launch: &LaunchId) {
        if let Some(slot) = self.pool().slot(launch) {
            slot.retired = true;
        }
        self.changed.notify_one();
    }

    /// A process gave a sign of life, and said how it feels.
    pub fn heartbeat(&self, launch: &LaunchId, now: Timestamp, health: ProviderHealth) {
        if let Some(slot) = self.pool().slot(launch) {
            slot.last_heartbeat = Some(now);
            slot.health = Some(health);
        }
    }

    /// The connection of a launch is gone, or will never be there.
    pub fn disconnect(&self, launch: &LaunchId, why: ConnectionEnd) {
        if let Some(slot) = self.pool().slot(launch) {
            slot.conn = None;
            slot.closed = Some(why);
            slot.wake.notify_one();
        }
        self.changed.notify_one();
    }

    /// Whether a launch has a connection now, and why its last one ended.
    pub(crate) fn connection(&self, launch: &LaunchId) -> (bool, Option<ConnectionEnd>) {
        let mut pool = self.pool();
        pool.slot(launch).map_or((false, None), |slot| (slot.conn.is_some(), slot.closed.clone()))
    }

    /// The process of a launch, if it has one.
    pub fn process_of(&self, launch: &LaunchId) -> Option<Arc<dyn Launched>> {
        self.pool().slot(launch)?.process()
    }

    /// Counts a call that has come, or says that it comes too soon.
    pub fn count(&self, rate: Option<Rate>) -> Result<(), Fault> {
        self.throttle.lock().count_call(Instant::now(), rate)
    }

    /// The provider takes so many calls at once, over all of its processes.
    pub fn limit_calls(&self, calls_max: usize) {
        self.pool().limit_calls(calls_max);
    }

    /// A process takes so many calls at once.
    pub fn limit_calls_of(&self, launch: &LaunchId, calls_max: usize) {
        self.pool().limit_calls_of(launch, calls_max);
    }

    pub(crate) fn unblock(&self) {
        let mut pool = self.pool();
        pool.blocked = None;
        pool.wake();
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
        let _ = handle.providers().set_availability(id.clone(), availability).await;
    }

    fn availability(&self) -> Availability {
        let pool = self.pool();
        if let IdleState::Down(why) = &pool.rest {
            let code = match &why.code {
                FaultCode::Known(code) => *code,
                FaultCode::Provider(_) => Code::ToolUnavailable,
            };
            return Availability::Down { reason: why.message.clone(), code };
        }
        if pool.draining {
            return Availability::down(DRAINING);
        }
        if matches!(pool.upkeep(), Upkeep::OnDemand { .. }) {
            return Availability::Up;
        }
        let usable = || pool.slots.iter().filter(|slot| slot.is_usable());
        if usable().any(|slot| slot.phase == ProcessPhase::Running) {
            Availability::Up
        } else if usable().next().is_some() {
            Availability::Unhealthy
        } else {
            Availability::Coming
        }
    }

    /// The agent as others see it.
    pub(crate) fn view(&self, agent: Provider, limits: ProviderLimits) -> ProviderView {
        let pool = self.pool();
        let slots = || pool.slots.iter().filter(|slot| slot.closed.is_none());
        let rank = |slot: &&PoolSlot| {
            (slot.leaving, slot.phase != ProcessPhase::Running, !slot.is_usable())
        };
        let front = slots().min_by_key(rank);
        let shown = match (front.map(|slot| slot.phase), &pool.rest) {
            _ if pool.draining => ProviderState::Draining,
            _ if pool.superseded.is_some() => at_rest(&agent, true),
            (Some(ProcessPhase::Starting), _) => ProviderState::Starting,
            (Some(ProcessPhase::Running), _) => ProviderState::Running,
            (Some(ProcessPhase::Unhealthy), _) => ProviderState::Unhealthy,
            (None, IdleState::Coming) if pool.upkeep() != Upkeep::Always => ProviderState::Running,
            (None, IdleState::BackingOff) => ProviderState::BackingOff,
            (None, IdleState::Coming) => ProviderState::Starting,
            (None, IdleState::Unknown | IdleState::Down(_)) => at_rest(&agent, pool.last.is_some()),
        };
        let draining = (shown == ProviderState::Draining).then(|| DRAINING.to_owned());
        let process = front.and_then(PoolSlot::process);
        let drift = (!agent.drift.is_empty()).then(|| agent.drift.join("; "));
        ProviderView {
            state: shown,
            reason: draining
                .or_else(|| pool.reason.clone())
                .or(drift)
                .or_else(|| agent.stop_reason.clone()),
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
            hints: Vec::new(),
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

    #[test]
    fn r054_a_launch_has_one_connection_and_a_stranger_has_none() {
        let live = Live::default();
        let connects = |id: &str| {
            let (commands, _) = tokio::sync::mpsc::channel(1);
            live.pool().connect(&launch(id), commands).is_some()
        };
        assert!(!connects("l1"), "nothing was launched");
        live.begin(&launch("l1"));
        assert!(!connects("l0"), "another launch");
        assert!(connects("l1"));
        assert!(!connects("l1"), "a second session");
        live.disconnect(&launch("l0"), ConnectionEnd::Over);
        assert!(live.connection(&launch("l1")).0, "a stranger's end changes nothing");
        live.disconnect(&launch("l1"), ConnectionEnd::Over);
        assert_eq!(live.connection(&launch("l1")), (false, Some(ConnectionEnd::Over)));
        assert!(!connects("l1"), "a launch connects once");
    }
}
