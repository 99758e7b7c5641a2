//! Schedules: making, pausing, showing and removing them.

use wharf_domain::schedule::{Fired, Firing, PauseCause, unknown};
use wharf_domain::{Caller, Entry, Run, Schedule, ScheduleInput, ScheduleSpec};
use wharf_vocab::{Fault, FiringState, ScheduleId, StreamId, Verb};

use super::ScheduleCalls;
use super::firing::evaluated;
use super::names::NameKind;

/// Firings that the history of a schedule shows at most.
const HISTORY_MAX: usize = 1_000;

impl ScheduleCalls<'_> {
    /// Makes a schedule. Its runs act with a part of what its maker may do, and no longer than
    /// that.
    pub async fn add(
        self,
        caller: &Caller,
        id: ScheduleId,
        spec: ScheduleSpec,
    ) -> Result<Schedule, Fault> {
        self.0.trust().authorise(caller, Verb::Run, &spec.world)?;
        caller.rights.check_tool(&spec.tool)?;
        self.0.worlds().get(&spec.world).await?;
        self.0.providers().tool(&spec.tool)?;
        let now = self.0.now();
        if spec.plan.planner(now)?.next(now).is_none() {
            return Err(spec.plan.never());
        }
        let checked = spec.clone();
        evaluated(move || checked.check_expressions()).await?;
        let whose = |schedule: &Schedule| (!schedule.removed).then(|| schedule.by.share());
        let shares = self.0.inner.records.schedules.find(whose).into_iter();
        let _place = self.0.inner.names.take(NameKind::Schedules, caller, shares)?;
        let input = ScheduleInput::Add { spec: Box::new(spec), account: caller.account.clone() };
        self.0.change(caller, id, input).await
    }

    /// A schedule that is there.
    pub fn get(self, id: &ScheduleId) -> Result<Schedule, Fault> {
        let known = self.0.inner.records.schedules.get(id);
        known.filter(|schedule| !schedule.removed).ok_or_else(|| unknown(id))
    }

    /// All schedules, by name.
    pub fn list(self) -> Vec<Schedule> {
        let mut schedules = self.0.inner.records.schedules.all();
        schedules.retain(|schedule| !schedule.removed);
        schedules
    }

    /// Lets a schedule start nothing until it is resumed. What goes on goes on.
    pub async fn pause(self, caller: &Caller, id: &ScheduleId) -> Result<Schedule, Fault> {
        self.may_change(caller, id)?;
        self.0.change(caller, id.clone(), ScheduleInput::Pause(PauseCause::Asked)).await
    }

    /// Lets a schedule go on. What passed meanwhile was not missed.
    pub async fn resume(self, caller: &Caller, id: &ScheduleId) -> Result<Schedule, Fault> {
        let schedule = self.may_change(caller, id)?;
        // It would be paused again at its next time.
        self.0.trust().check_current(&Caller::schedule(&schedule))?;
        self.0.change(caller, id.clone(), ScheduleInput::Resume).await
    }

    /// Starts a run of a schedule now, whatever time it is and whatever goes on.
    pub async fn trigger(self, caller: &Caller, id: &ScheduleId) -> Result<Schedule, Fault> {
        let schedule = self.may_change(caller, id)?;
        self.0.trust().check_current(&Caller::schedule(&schedule))?;
        let planned = self.0.now();
        let fired = Fired { planned, by_hand: true, missed: 0, left_out: None };
        let after: Schedule = self.0.change(caller, id.clone(), ScheduleInput::Fire(fired)).await?;
        if after.fired == schedule.fired {
            let message = "Too many runs of this schedule are about to be started; try again.";
            return Err(Fault::new(wharf_vocab::Code::CoreBusy, message));
        }
        Ok(after)
    }

    /// Removes a schedule. Its runs stay.
    pub async fn remove(self, caller: &Caller, id: &ScheduleId) -> Result<Schedule, Fault> {
        self.may_change(caller, id)?;
        self.0.change(caller, id.clone(), ScheduleInput::Remove).await
    }

    /// What became of a schedule's times, newest first.
    pub async fn history(self, id: &ScheduleId) -> Result<Vec<Firing>, Fault> {
        self.get(id)?;
        let stream = StreamId::Schedule(id.clone());
        let stored = self.0.inner.store.load(stream).await?.ok_or_else(|| unknown(id))?;
        let mut schedule = None;
        let mut firings: Vec<Firing> = Vec::new();
        for (at, entry) in &stored.entries {
            let Entry::Schedule(entry) = entry else { continue };
            schedule = Schedule::apply(schedule, id, *at, entry);
            let Some(schedule) = &schedule else { continue };
            if schedule.fired == 0 {
                // A schedule of the same name that was removed.
                firings.clear();
            }
            for firing in schedule.due.iter().chain(&schedule.last) {
                match firings.iter_mut().rev().find(|known| known.n == firing.n) {
                    Some(known) => known.clone_from(firing),
                    None => firings.push(firing.clone()),
                }
            }
        }
        firings.reverse();
        firings.truncate(HISTORY_MAX);
        Ok(firings)
    }

    /// Whether a caller may change a schedule: whoever made it, or whose rights it comes from, and
    /// whoever may operate in its world.
    fn may_change(self, caller: &Caller, id: &ScheduleId) -> Result<Schedule, Fault> {
        let schedule = self.get(id)?;
        let world = &schedule.spec.world;
        let may = || {
            self.0.trust().authorise(caller, Verb::Run, world)?;
            caller.rights.check_tool(&schedule.spec.tool)?;
            if caller.owns(&Caller::schedule(&schedule).to_ref()) {
                return Ok(());
            }
            caller.rights.check(Verb::Operate, world)
        };
        self.0.audited(caller, world, may())?;
        Ok(schedule)
    }

    /// The run of a firing that goes on, if one does.
    pub(super) fn going_on(self, schedule: &Schedule) -> Option<std::sync::Arc<Run>> {
        let run = schedule.last_run.clone()?;
        let key = wharf_vocab::RunKey { world: schedule.spec.world.clone(), run };
        self.0.inner.hub.run(&key).filter(|run| !run.is_over())
    }

    /// Why a time that has come starts nothing, if it does not.
    pub(super) fn left_out(self, schedule: &Schedule, late: bool) -> Option<FiringState> {
        use wharf_domain::schedule::DUE_MAX;
        use wharf_vocab::{CatchUp, Overlap};
        let spec = &schedule.spec;
        if late && spec.catch_up == CatchUp::None {
            return Some(FiringState::Missed);
        }
        let busy = !schedule.due.is_empty() || self.going_on(schedule).is_some();
        let skips = match spec.overlap {
            Overlap::Skip => busy,
            Overlap::Parallel | Overlap::CancelPrevious => schedule.due.len() >= DUE_MAX,
        };
        skips.then_some(FiringState::Skipped)
    }
}
