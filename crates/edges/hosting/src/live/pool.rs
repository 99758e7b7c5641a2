//! The processes of one provider, and the queue that they take attempts from.
//!
//! Pure but for the channels it holds. An attempt that is not sent waits here and nowhere else:
//! whoever speaks with a process takes the next one that belongs there as soon as the process has
//! room for it. Where all runs share a process there is one. Where each
//! world or each run has its own, one more is kept connected as a spare: an attempt takes it at
//! once and another spare is started after it. Where processes are there on demand only, none is
//! started before an attempt waits for it.

mod admission;
mod slot;

pub(crate) use admission::{gone, not_running};
pub use slot::ProcessPhase;
pub(crate) use slot::{InstanceChannels, PoolSlot, ProcessStop};

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use wharf_domain::provider::Approval;
use wharf_engine::Dispatch;
use wharf_ports::launcher::Launched;
use wharf_vocab::{AttemptId, Fault, Isolation, LaunchId, WorldId};

use self::slot::SlotOwner;
use super::inbox::InboxCommand;
use crate::files::FileWatch;

/// Processes that one provider may have.
pub(crate) const INSTANCES_MAX: usize = 64;
/// How long the process of a world may have nothing to do.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(300);

/// When processes of a provider are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upkeep {
    /// From its start to its stop, and a spare one where worlds or runs are kept apart.
    Always,
    /// From the first attempt that waits for one until it has had nothing to do for so long.
    OnDemand {
        /// How long it may have nothing to do.
        idle: Duration,
    },
}

/// An attempt that waits to be taken.
#[derive(Debug)]
struct QueuedAttempt {
    dispatch: Dispatch,
    /// Which one it is of all that came.
    number: u64,
}

/// What a process takes next.
#[derive(Debug)]
pub(crate) enum NextAttempt {
    /// This attempt.
    Taken(Box<Dispatch>),
    /// None before somebody has looked at these files, on behalf of all attempts up to this one.
    Look(Arc<FileWatch>, u64),
}

/// How the processes of a provider are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolPolicy {
    /// Which runs share a process.
    pub(crate) isolation: Isolation,
    pub(crate) upkeep: Upkeep,
    /// Whether a process is started although nobody waits for one.
    pub(crate) looks_first: bool,
    /// Whether one more than is needed is there while runs have processes of their own.
    pub(crate) spare: bool,
    /// What such a provider is called.
    pub(crate) word: &'static str,
}

impl Default for PoolPolicy {
    fn default() -> Self {
        Self {
            isolation: Isolation::Shared,
            upkeep: Upkeep::Always,
            looks_first: false,
            spare: false,
            word: "agent",
        }
    }
}

/// The processes of one provider.
#[derive(Default)]
pub(crate) struct Pool {
    policy: PoolPolicy,
    pub(crate) slots: Vec<PoolSlot>,
    queue: VecDeque<QueuedAttempt>,
    attempts: HashMap<AttemptId, LaunchId>,
    /// How many calls all processes take at once together, where that is known.
    calls_max: Option<usize>,
    pub(crate) rest: IdleState,
    /// Why it rests.
    pub(crate) reason: Option<String>,
    /// The last launch, alive or dead.
    pub(crate) last: Option<Arc<dyn Launched>>,
    /// Why no call is taken, although the provider may be connected.
    pub(crate) blocked: Option<Fault>,
    /// Nothing new is taken: it stops once all that was taken is finished.
    pub(crate) draining: bool,
    /// The approval that its processes run under, when another manifest has taken the place of the
    /// approved one since and awaits an approval.
    pub(crate) superseded: Option<Approval>,
    /// The files that it is pinned to.
    pub(crate) watch: Option<Arc<FileWatch>>,
    /// How many attempts have come.
    placed: u64,
    /// The files were looked at after so many of them had come.
    looked_at: u64,
    /// How far these files look different; nobody takes an attempt before they were compared.
    doubt: FileDoubt,
}

/// Whether the files of a provider look different from those that were approved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum FileDoubt {
    /// They do not, as far as anybody has looked.
    #[default]
    None,
    /// They do: somebody must compare them.
    Found,
    /// Somebody compares them.
    Comparing,
}

/// How a provider fares that has no process.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum IdleState {
    #[default]
    Unknown,
    /// It is down, and what runs that need it are told.
    Down(Fault),
    /// It ended and will be started again.
    BackingOff,
    /// It is about to start.
    Coming,
}

impl Pool {
    /// How processes are kept from now on.
    pub(crate) fn set_policy(&mut self, policy: PoolPolicy) {
        self.policy = policy;
    }

    /// When processes are there.
    pub(crate) fn upkeep(&self) -> Upkeep {
        self.policy.upkeep
    }

    /// Makes room for a process that is about to start.
    pub(crate) fn begin(&mut self, launch: &LaunchId) -> InstanceChannels {
        let (quits, quit_orders) = mpsc::channel(4);
        let wake = Arc::new(Notify::new());
        let owner = match self.policy.isolation {
            Isolation::Shared => SlotOwner::All,
            Isolation::World | Isolation::Run => SlotOwner::Spare,
        };
        self.slots.push(PoolSlot::new(launch.clone(), owner, quits, Arc::clone(&wake)));
        InstanceChannels { quits: quit_orders, wake }
    }

    /// Forgets a process that is gone.
    pub(crate) fn end(&mut self, launch: &LaunchId) {
        self.slots.retain(|slot| slot.launch != *launch);
        self.attempts.retain(|_, at| at != launch);
        self.wake();
    }

    pub(crate) fn slot(&mut self, launch: &LaunchId) -> Option<&mut PoolSlot> {
        self.slots.iter_mut().find(|slot| slot.launch == *launch)
    }

    /// Takes the connection of a launch; `None` if there is one already, or no such launch.
    pub(crate) fn connect(
        &mut self,
        launch: &LaunchId,
        commands: mpsc::Sender<InboxCommand>,
    ) -> Option<Arc<Notify>> {
        let slot = self.slot(launch)?;
        if slot.conn.is_some() || slot.closed.is_some() {
            return None;
        }
        slot.conn = Some(commands);
        let wake = Arc::clone(&slot.calls_wake);
        self.policy.looks_first = false;
        Some(wake)
    }

    /// Which runs may come to share a process.
    pub(crate) fn isolation_of(&self, launch: &LaunchId) -> Isolation {
        let slot = self.slots.iter().find(|slot| slot.launch == *launch);
        match slot.map(|slot| &slot.owner) {
            Some(SlotOwner::All) => Isolation::Shared,
            Some(SlotOwner::World(_)) => Isolation::World,
            // Nobody's yet: it must have nothing of anybody's.
            Some(SlotOwner::Spare | SlotOwner::Run) | None => Isolation::Run,
        }
    }

    /// How many more processes are needed now.
    pub(crate) fn missing(&self) -> usize {
        // One that is ending by itself counts until its end was judged: it may have to be waited
        // before it is started again.
        let staying = self.slots.iter().filter(|slot| !slot.leaving);
        let free =
            staying.filter(|slot| matches!(slot.owner, SlotOwner::Spare | SlotOwner::All)).count();
        let waiting = match self.policy.isolation {
            Isolation::Shared => self.queue.len().min(1),
            Isolation::World => self.homeless_worlds().len(),
            Isolation::Run => self.queue.len(),
        };
        let wanted = match (self.policy.upkeep, self.policy.isolation) {
            (Upkeep::OnDemand { .. }, _) => {
                let spare = waiting + usize::from(self.wants_spare());
                spare.max(usize::from(self.policy.looks_first))
            }
            (Upkeep::Always, Isolation::Shared) => 1,
            (Upkeep::Always, _) => waiting + 1,
        };
        wanted.saturating_sub(free).min(INSTANCES_MAX.saturating_sub(self.slots.len()))
    }

    /// Whether whoever keeps processes up may have something to do now that an attempt came or
    /// ended. Where all share one process, that is always there and well, there mostly is nothing.
    pub(crate) fn wants_care(&self) -> bool {
        let is_kept = self.policy.upkeep == Upkeep::Always;
        let is_steady = is_kept && self.policy.isolation == Isolation::Shared;
        !is_steady || self.draining || self.doubt == FileDoubt::Found || self.missing() > 0
    }

    /// Whether a process is kept for the next run although nobody waits for it yet.
    fn wants_spare(&self) -> bool {
        let is_at_work = |slot: &PoolSlot| slot.owner == SlotOwner::Run && !slot.leaving;
        let is_used = || !self.queue.is_empty() || self.slots.iter().any(is_at_work);
        self.policy.spare && self.policy.isolation == Isolation::Run && is_used()
    }

    /// Worlds of attempts that wait and have no process.
    fn homeless_worlds(&self) -> BTreeSet<&WorldId> {
        let worlds = self.queue.iter().map(|queued| &queued.dispatch.run.world);
        worlds.filter(|world| self.of_world(world).is_none()).collect()
    }

    fn queued_of(&self, world: &WorldId) -> usize {
        self.queue.iter().filter(|queued| queued.dispatch.run.world == *world).count()
    }

    /// All processes take so many calls at once together.
    pub(crate) fn limit_calls(&mut self, calls_max: usize) {
        self.calls_max = Some(calls_max.max(1));
        self.wake();
    }

    /// A process takes so many calls at once.
    pub(crate) fn limit_calls_of(&mut self, launch: &LaunchId, calls_max: usize) {
        if let Some(slot) = self.slot(launch) {
            slot.calls_max = Some(calls_max.max(1));
        }
    }

    /// Whether nothing is left that was taken.
    pub(crate) fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.calls() == 0
    }

    /// How many calls all processes have together.
    fn calls(&self) -> usize {
        self.slots.iter().map(|slot| slot.calls).sum()
    }

    fn of_world(&self, world: &WorldId) -> Option<usize> {
        let own = |slot: &PoolSlot| {
            slot.is_usable() && matches!(&slot.owner, SlotOwner::World(of) if of == world)
        };
        self.slots.iter().position(own)
    }

    /// Lets an attempt wait until a process takes it.
    pub(crate) fn place(&mut self, dispatch: Dispatch) -> Result<(), Fault> {
        if let Some(fault) = &self.blocked {
            return Err(fault.clone());
        }
        if let (Upkeep::OnDemand { .. }, IdleState::Down(why)) = (self.policy.upkeep, &self.rest) {
            return Err(not_running("The tool is not available", why));
        }
        if dispatch.reattach && self.has(&dispatch.attempt_id) {
            // It was asked for again because its shard was loaded anew. Whoever has it goes on.
            return Ok(());
        }
        self.admit(&dispatch.run.world, 0)?;
        self.placed += 1;
        self.queue.push_back(QueuedAttempt { dispatch, number: self.placed });
        self.wake();
        Ok(())
    }

    fn has(&self, attempt: &AttemptId) -> bool {
        self.attempts.contains_key(attempt)
            || self.queue.iter().any(|queued| queued.dispatch.attempt_id == *attempt)
    }

    /// Wakes all who speak with processes: there may be something to take.
    pub(crate) fn wake(&self) {
        self.slots.iter().filter(|slot| slot.is_usable()).for_each(|slot| {
            slot.calls_wake.notify_one();
        });
    }

    /// Takes the next attempt that belongs to a process, if it has room for one and the provider's
    /// files were looked at after that attempt came.
    pub(crate) fn take(&mut self, launch: &LaunchId) -> Option<NextAttempt> {
        let at = self.slots.iter().position(|slot| slot.launch == *launch)?;
        let slot = &self.slots[at];
        let full = self.calls_max.is_some_and(|max| self.calls() >= max);
        if full || slot.is_busy(0) || !slot.is_usable() || self.blocked.is_some() {
            return None;
        }
        let is_spare = slot.owner == SlotOwner::Spare;
        let belongs = |world: &WorldId| match self.policy.isolation {
            Isolation::Shared => self.best() == Some(at),
            Isolation::World => self.of_world(world).map_or(is_spare, |own| own == at),
            Isolation::Run => is_spare,
        };
        let next = |queued: &QueuedAttempt| belongs(&queued.dispatch.run.world);
        let next = self.queue.iter().position(next)?;
        if let Some(watch) = &self.watch
            && self.queue[next].number > self.looked_at
        {
            let look = || NextAttempt::Look(Arc::clone(watch), self.placed);
            return (self.doubt == FileDoubt::None).then(look);
        }
        let QueuedAttempt { dispatch, .. } = self.queue.remove(next)?;
        let slot = &mut self.slots[at];
        match self.policy.isolation {
            Isolation::Shared => {}
            Isolation::World => slot.owner = SlotOwner::World(dispatch.run.world.clone()),
            Isolation::Run => slot.owner = SlotOwner::Run,
        }
        slot.calls += 1;
        self.attempts.insert(dispatch.attempt_id.clone(), launch.clone());
        Some(NextAttempt::Taken(Box::new(dispatch)))
    }

    /// The files were looked at after so many attempts had come, and look as they were approved.
    pub(crate) fn looked(&mut self, placed: u64) {
        self.looked_at = self.looked_at.max(placed);
    }

    /// The files look different: attempts that came since the last look wait until somebody has
    /// compared them.
    pub(crate) fn doubted(&mut self) {
        if self.doubt == FileDoubt::None {
            self.doubt = FileDoubt::Found;
        }
    }

    /// Begins to compare the files, if somebody must; how many attempts have come.
    pub(crate) fn compare(&mut self) -> Option<u64> {
        let compare = self.doubt == FileDoubt::Found;
        compare.then(|| {
            self.doubt = FileDoubt::Comparing;
            self.placed
        })
    }

    /// The files were compared after so many attempts had come, and are as they were approved.
    pub(crate) fn compared(&mut self, placed: u64) {
        self.doubt = FileDoubt::None;
        self.looked(placed);
        self.wake();
    }

    /// Gives up what waits: the files are not known to be as they were approved.
    pub(crate) fn give_up_doubted(&mut self) -> Vec<Dispatch> {
        self.doubt = FileDoubt::None;
        self.take_all()
    }

    /// The process that takes the attempts of all: a well one if there is one, else any.
    fn best(&self) -> Option<usize> {
        let well = |slot: &PoolSlot| slot.is_usable() && slot.phase == ProcessPhase::Running;
        let any = || self.slots.iter().rposition(PoolSlot::is_usable);
        self.slots.iter().rposition(well).or_else(any)
    }

    /// Gives up what waits.
    pub(crate) fn take_all(&mut self) -> Vec<Dispatch> {
        self.queue.drain(..).map(|queued| queued.dispatch).collect()
    }

    /// Gives up what waits for a process that is gone, where another is not started for it.
    pub(crate) fn take_stranded(&mut self) -> Vec<Dispatch> {
        let is_kept = self.policy.upkeep == Upkeep::Always;
        match is_kept && self.policy.isolation == Isolation::Shared && self.best().is_none() {
            true => self.take_all(),
            false => Vec::new(),
        }
    }

    /// Takes an attempt out of the queue.
    pub(crate) fn take_queued(&mut self, attempt: &AttemptId) -> Option<Dispatch> {
        let is_it = |queued: &QueuedAttempt| queued.dispatch.attempt_id == *attempt;
        let at = self.queue.iter().position(is_it)?;
        self.queue.remove(at).map(|queued| queued.dispatch)
    }

    /// Tells the process that has an attempt something, if one has.
    pub(crate) fn tell(&mut self, attempt: &AttemptId, command: InboxCommand) {
        let Some(launch) = self.attempts.get(attempt).cloned() else { return };
        if let Some(slot) = self.slot(&launch) {
            slot.canceled |= matches!(command, InboxCommand::Cancel { .. });
            slot.send(command);
        }
    }

    /// An attempt has ended. A process that was told to stop it and did not may still be at
    /// work: its own one is killed, one that others use is replaced.
    pub(crate) fn call_over(&mut self, launch: &LaunchId, attempt: &AttemptId, unresponsive: bool) {
        self.attempts.remove(attempt);
        let Some(slot) = self.slot(launch) else { return };
        slot.calls = slot.calls.saturating_sub(1);
        slot.idle_since = Instant::now();
        match slot.owner {
            SlotOwner::Run if slot.canceled => slot.quit(ProcessStop::Kill),
            SlotOwner::Run => slot.quit(ProcessStop::Stop),
            _ if unresponsive && !slot.leaving => slot.quit(ProcessStop::Drain),
            _ => {}
        }
        // One that is kept for the next run waits from now on.
        let spares = self.slots.iter_mut().filter(|slot| slot.owner == SlotOwner::Spare);
        spares.for_each(|slot| slot.idle_since = Instant::now());
        self.wake();
    }

    /// Ends processes that have had nothing to do for long and are not kept for that; when to
    /// look again.
    pub(crate) fn end_idle(&mut self, now: Instant) -> Option<Instant> {
        let (on_demand, idle_max) = match self.policy.upkeep {
            Upkeep::Always => (false, IDLE_MAX),
            Upkeep::OnDemand { idle } => (true, idle),
        };
        let mut next = None;
        let wants_spare = self.wants_spare();
        for slot in &mut self.slots {
            let ends = match slot.owner {
                SlotOwner::World(_) => true,
                SlotOwner::Spare if wants_spare => false,
                _ => on_demand && slot.phase != ProcessPhase::Starting,
            };
            if !ends || slot.leaving || slot.calls > 0 {
                continue;
            }
            let until = slot.idle_since + idle_max;
            if until <= now {
                slot.quit(ProcessStop::Stop);
            } else {
                next = Some(next.map_or(until, |next: Instant| next.min(until)));
            }
        }
        next
    }
}

#[cfg(test)]
mod tests;
