//! The processes of one provider, and which attempt goes to which of them.
//!
//! Pure but for the channels it holds. Where all runs share a process there is one. Where each
//! world or each run has its own, one more is kept connected as a spare: an attempt takes it at
//! once and another spare is started behind it. Where processes are there on demand only, none is
//! started before an attempt waits for it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use wharf_engine::Dispatch;
use wharf_engine::launcher::Launched;
use wharf_engine::providers::ProviderHealth;
use wharf_vocab::{AttemptId, Code, Fault, Isolation, LaunchId, Timestamp, WorldId};

use crate::command::{Closed, Command};
use crate::kind::Upkeep;
use crate::places::Places;

/// Processes that one provider may have.
pub(crate) const INSTANCES_MAX: usize = 64;
/// How long the process of a world may have nothing to do.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(300);

/// Attempts that may wait for a process; others wait in line with the engine.
const WAITING_MAX: usize = 64;

/// How a process fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It starts, or has not offered its tools yet.
    Starting,
    /// It is connected and well.
    Running,
    /// It is connected and not well.
    Unhealthy,
}

/// How a process is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quit {
    /// In order, soon.
    Stop,
    /// The same, and the core starts another one then.
    Again,
    /// In order, once the calls that are under way have ended.
    Drain,
    /// At once.
    Kill,
}

/// Whose process it is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    /// Nobody's yet.
    Spare,
    /// Everybody's.
    All,
    /// A world's.
    World(WorldId),
    /// A run's.
    Run,
}

/// One process, from before its start until after its end.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) launch: LaunchId,
    pub(crate) phase: Phase,
    pub(crate) launched: watch::Sender<Option<Arc<dyn Launched>>>,
    /// Its folders; some go with it.
    pub(crate) places: Option<Arc<Places>>,
    /// What was approved and could not be given, one sentence each.
    pub(crate) notes: Vec<String>,
    pub(crate) last_heartbeat: Option<Timestamp>,
    /// What it said of itself then.
    pub(crate) health: Option<ProviderHealth>,
    pub(crate) conn: Option<mpsc::Sender<Command>>,
    /// Why its connection has ended.
    pub(crate) closed: Option<Closed>,
    /// Wakes whoever looks after it when its connection has ended.
    pub(crate) wake: Arc<Notify>,
    /// It gets no more attempts, and another takes its place.
    pub(crate) leaving: bool,
    /// It wants no more attempts.
    pub(crate) retired: bool,
    quits: mpsc::Sender<Quit>,
    owner: Owner,
    calls: usize,
    /// How many calls it takes at once, where that is known.
    calls_max: Option<usize>,
    /// Whether an attempt of it was canceled.
    canceled: bool,
    idle_since: Instant,
}

/// What looking after a new process takes.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) quits: mpsc::Receiver<Quit>,
    pub(crate) wake: Arc<Notify>,
}

/// Attempts that cannot be handed over after all.
pub type Failed = Vec<(Dispatch, Fault)>;

/// How the processes of a provider are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// Which runs share a process.
    pub(crate) isolation: Isolation,
    pub(crate) upkeep: Upkeep,
    /// What such a provider is called.
    pub(crate) word: &'static str,
}

impl Default for Policy {
    fn default() -> Self {
        Self { isolation: Isolation::Shared, upkeep: Upkeep::Always, word: "agent" }
    }
}

/// The processes of one provider.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    policy: Policy,
    pub(crate) slots: Vec<Slot>,
    waiting: VecDeque<Dispatch>,
    attempts: HashMap<AttemptId, LaunchId>,
    /// How many calls all processes take at once together, where that is known.
    calls_max: Option<usize>,
}

impl Slot {
    /// Whether attempts can go to it.
    pub(crate) fn is_usable(&self) -> bool {
        !self.leaving && !self.retired && self.conn.is_some() && self.phase != Phase::Starting
    }

    /// Whether it has as many calls as it takes, once so many more have come.
    fn is_busy(&self, coming: usize) -> bool {
        self.calls_max.is_some_and(|max| self.calls + coming >= max)
    }

    pub(crate) fn process(&self) -> Option<Arc<dyn Launched>> {
        self.launched.borrow().clone()
    }

    pub(crate) fn quit(&mut self, how: Quit) {
        self.leaving = true;
        // A full channel holds orders enough; a closed one belongs to a process that is gone.
        let _ = self.quits.try_send(how);
    }

    fn send(&self, command: Command, word: &str) -> Result<(), Fault> {
        let Some(conn) = &self.conn else { return Err(gone(word)) };
        conn.try_send(command).map_err(|error| match error {
            TrySendError::Full(_) => too_much(word),
            TrySendError::Closed(_) => gone(word),
        })
    }
}

impl Pool {
    /// How processes are kept from now on.
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// When processes are there.
    pub(crate) fn upkeep(&self) -> Upkeep {
        self.policy.upkeep
    }

    /// Makes room for a process that is about to start.
    pub(crate) fn begin(&mut self, launch: &LaunchId) -> Begun {
        let (quits, quit_orders) = mpsc::channel(4);
        let wake = Arc::new(Notify::new());
        self.slots.push(Slot {
            launch: launch.clone(),
            phase: Phase::Starting,
            launched: watch::Sender::new(None),
            places: None,
            notes: Vec::new(),
            last_heartbeat: None,
            health: None,
            conn: None,
            closed: None,
            wake: Arc::clone(&wake),
            leaving: false,
            retired: false,
            quits,
            owner: if self.policy.isolation == Isolation::Shared {
                Owner::All
            } else {
                Owner::Spare
            },
            calls: 0,
            calls_max: None,
            canceled: false,
            idle_since: Instant::now(),
        });
        Begun { quits: quit_orders, wake }
    }

    /// Forgets a process that is gone.
    pub(crate) fn end(&mut self, launch: &LaunchId) {
        self.slots.retain(|slot| slot.launch != *launch);
        self.attempts.retain(|_, at| at != launch);
    }

    pub(crate) fn slot(&mut self, launch: &LaunchId) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.launch == *launch)
    }

    /// Which runs may come to share a process.
    pub(crate) fn isolation_of(&self, launch: &LaunchId) -> Isolation {
        let slot = self.slots.iter().find(|slot| slot.launch == *launch);
        match slot.map(|slot| &slot.owner) {
            Some(Owner::All) => Isolation::Shared,
            Some(Owner::World(_)) => Isolation::World,
            // Nobody's yet: it must have nothing of anybody's.
            Some(Owner::Spare | Owner::Run) | None => Isolation::Run,
        }
    }

    /// How many more processes are needed now.
    pub(crate) fn missing(&self) -> usize {
        // One that is ending by itself counts until its end was judged: it may have to be waited
        // before it is started again.
        let staying = self.slots.iter().filter(|slot| !slot.leaving);
        let free = staying.filter(|slot| matches!(slot.owner, Owner::Spare | Owner::All)).count();
        let waiting = match self.policy.isolation {
            Isolation::Shared => self.waiting.len().min(1),
            Isolation::World => self.waiting_worlds().len(),
            Isolation::Run => self.waiting.len(),
        };
        let wanted = match (self.policy.upkeep, self.policy.isolation) {
            (Upkeep::OnDemand { .. }, _) => waiting,
            (Upkeep::Always, Isolation::Shared) => 1,
            (Upkeep::Always, _) => waiting + 1,
        };
        wanted.saturating_sub(free).min(INSTANCES_MAX.saturating_sub(self.slots.len()))
    }

    fn waiting_worlds(&self) -> BTreeSet<&WorldId> {
        self.waiting.iter().map(|dispatch| &dispatch.run.world).collect()
    }

    /// All processes take so many calls at once together.
    pub(crate) fn limit_calls(&mut self, calls_max: usize) {
        self.calls_max = Some(calls_max.max(1));
    }

    /// A process takes so many calls at once.
    pub(crate) fn limit_calls_of(&mut self, launch: &LaunchId, calls_max: usize) {
        if let Some(slot) = self.slot(launch) {
            slot.calls_max = Some(calls_max.max(1));
        }
    }

    /// Whether an attempt in a world would be taken, or could wait for a process, beside so many
    /// others that are about to come.
    pub(crate) fn has_room(&self, world: &WorldId, coming: usize) -> bool {
        if self.is_busy(coming) {
            return false;
        }
        let fits = |at: usize| !self.slots[at].is_busy(coming);
        let can_wait = || self.waiting.len() + coming < WAITING_MAX;
        let taken = self.slots.iter().filter(|slot| slot.owner != Owner::Spare).count();
        let spares = || {
            let spare = |slot: &&Slot| slot.owner == Owner::Spare && slot.is_usable();
            self.slots.iter().filter(spare).count()
        };
        match self.policy.isolation {
            Isolation::Shared => self.best().map_or_else(can_wait, fits),
            Isolation::World => match self.of_world(world) {
                Some(at) => fits(at),
                None if spares() > coming => true,
                None if self.waiting_worlds().contains(world) => can_wait(),
                None => {
                    let needed = self.waiting_worlds().len() + 1 + coming;
                    can_wait() && taken + needed <= INSTANCES_MAX
                }
            },
            Isolation::Run => {
                let needed = self.waiting.len() + 1 + coming;
                spares() > coming || (can_wait() && taken + needed <= INSTANCES_MAX)
            }
        }
    }

    /// Whether no more calls are taken by all processes together.
    fn is_busy(&self, coming: usize) -> bool {
        let calls: usize = self.slots.iter().map(|slot| slot.calls).sum();
        self.calls_max.is_some_and(|max| calls + self.waiting.len() + coming >= max)
    }

    fn of_world(&self, world: &WorldId) -> Option<usize> {
        let own = |slot: &Slot| {
            slot.is_usable() && matches!(&slot.owner, Owner::World(of) if of == world)
        };
        self.slots.iter().position(own)
    }

    /// Hands an attempt to the process it belongs to, or lets it wait for one.
    pub(crate) fn place(&mut self, dispatch: Dispatch) -> Result<(), Fault> {
        if dispatch.reattach
            && let Some(launch) = self.attempts.get(&dispatch.attempt_id).cloned()
            && let Some(at) = self.slots.iter().position(|slot| slot.launch == launch)
        {
            // Whoever has it need not be found anew; it is told that it was asked again.
            return self.slots[at].send(Command::Call(Box::new(dispatch)), self.policy.word);
        }
        let (at, owner) = match self.policy.isolation {
            Isolation::Shared => (self.best(), None),
            Isolation::World => match self.of_world(&dispatch.run.world) {
                Some(at) => (Some(at), None),
                None => (self.spare(), Some(Owner::World(dispatch.run.world.clone()))),
            },
            Isolation::Run => (self.spare(), Some(Owner::Run)),
        };
        match (at, owner) {
            _ if self.is_busy(0) => Err(too_much(self.policy.word)),
            (Some(at), _) if self.slots[at].is_busy(0) => Err(too_much(self.policy.word)),
            (Some(at), owner) => self.hand_over(at, owner, dispatch),
            (None, None) if self.policy.upkeep == Upkeep::Always => Err(gone(self.policy.word)),
            (None, _) => self.wait(dispatch),
        }
    }

    /// The process that takes the attempts of all: a well one if there is one, else any.
    fn best(&self) -> Option<usize> {
        let well = |slot: &Slot| slot.is_usable() && slot.phase == Phase::Running;
        let any = || self.slots.iter().rposition(Slot::is_usable);
        self.slots.iter().rposition(well).or_else(any)
    }

    fn spare(&self) -> Option<usize> {
        self.slots.iter().position(|slot| slot.owner == Owner::Spare && slot.is_usable())
    }

    fn hand_over(
        &mut self,
        at: usize,
        owner: Option<Owner>,
        dispatch: Dispatch,
    ) -> Result<(), Fault> {
        let (slot, word) = (&mut self.slots[at], self.policy.word);
        let attempt = dispatch.attempt_id.clone();
        slot.send(Command::Call(Box::new(dispatch)), word)?;
        slot.calls += 1;
        if let Some(owner) = owner {
            slot.owner = owner;
        }
        self.attempts.insert(attempt, slot.launch.clone());
        Ok(())
    }

    fn wait(&mut self, dispatch: Dispatch) -> Result<(), Fault> {
        let taken = self.slots.iter().filter(|slot| slot.owner != Owner::Spare).count();
        let needed = match self.policy.isolation {
            Isolation::Shared => 0,
            Isolation::World if self.waiting_worlds().contains(&dispatch.run.world) => 0,
            Isolation::World => self.waiting_worlds().len() + 1,
            Isolation::Run => self.waiting.len() + 1,
        };
        let word = self.policy.word;
        if needed > 0 && taken + needed > INSTANCES_MAX {
            let message = format!("The {word} has as many processes as it may; try again later.");
            return Err(Fault::new(Code::ToolBusy, message));
        }
        if self.waiting.len() >= WAITING_MAX {
            return Err(too_much(word));
        }
        self.waiting.push_back(dispatch);
        Ok(())
    }

    /// Hands over what waits, as far as there are processes for it.
    pub(crate) fn serve_waiting(&mut self) -> Failed {
        let mut failed = Vec::new();
        let next = |pool: &Self| pool.waiting.iter().position(|dispatch| pool.has_place(dispatch));
        while let Some(dispatch) = next(self).and_then(|at| self.waiting.remove(at)) {
            self.place_or_fail(dispatch, &mut failed);
        }
        failed
    }

    /// Whether there is a process that an attempt can go to now.
    fn has_place(&self, dispatch: &Dispatch) -> bool {
        let of_world = |slot: &Slot| {
            slot.is_usable()
                && matches!(&slot.owner, Owner::World(world) if *world == dispatch.run.world)
        };
        match self.policy.isolation {
            Isolation::Shared => self.best().is_some(),
            Isolation::World => self.spare().is_some() || self.slots.iter().any(of_world),
            Isolation::Run => self.spare().is_some(),
        }
    }

    fn place_or_fail(&mut self, dispatch: Dispatch, failed: &mut Failed) {
        if let Err(fault) = self.place(dispatch.clone()) {
            failed.push((dispatch, fault));
        }
    }

    /// Gives up what waits.
    pub(crate) fn fail_waiting(&mut self, fault: &Fault) -> Failed {
        self.waiting.drain(..).map(|dispatch| (dispatch, fault.clone())).collect()
    }

    /// Takes an attempt back that waits for a process.
    pub(crate) fn take_waiting(&mut self, attempt: &AttemptId) -> Option<Dispatch> {
        let at = self.waiting.iter().position(|dispatch| dispatch.attempt_id == *attempt)?;
        self.waiting.remove(at)
    }

    /// Passes something on to the process that has an attempt, if one has.
    pub(crate) fn pass_on(&mut self, attempt: &AttemptId, command: Command) {
        let Some(launch) = self.attempts.get(attempt).cloned() else { return };
        let word = self.policy.word;
        let is_cancel = matches!(command, Command::Cancel { .. });
        if let Some(slot) = self.slot(&launch) {
            slot.canceled |= is_cancel;
            // Without a connection the attempt is lost already, which ends it too.
            let _ = slot.send(command, word);
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
            Owner::Run if slot.canceled => slot.quit(Quit::Kill),
            Owner::Run => slot.quit(Quit::Stop),
            _ if unresponsive && !slot.leaving => slot.quit(Quit::Drain),
            _ => {}
        }
    }

    /// Ends processes that have had nothing to do for long and are not kept for that; when to
    /// look again.
    pub(crate) fn end_idle(&mut self, now: Instant) -> Option<Instant> {
        let (on_demand, idle_max) = match self.policy.upkeep {
            Upkeep::Always => (false, IDLE_MAX),
            Upkeep::OnDemand { idle } => (true, idle),
        };
        let mut next = None;
        for slot in &mut self.slots {
            let ends = match slot.owner {
                Owner::World(_) => true,
                _ => on_demand && slot.phase != Phase::Starting,
            };
            if !ends || slot.leaving || slot.calls > 0 {
                continue;
            }
            let until = slot.idle_since + idle_max;
            if until <= now {
                slot.quit(Quit::Stop);
            } else {
                next = Some(next.map_or(until, |next: Instant| next.min(until)));
            }
        }
        next
    }
}

fn gone(word: &str) -> Fault {
    Fault::new(Code::ToolAgentLost, format!("The {word} is not connected."))
}

fn too_much(word: &str) -> Fault {
    Fault::new(Code::ToolBusy, format!("The {word} has too much to do; try again later."))
}

#[cfg(test)]
mod tests;
