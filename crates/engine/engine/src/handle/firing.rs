//! The clock of schedules: fires what is due and asks for its runs until there is an answer.
//!
//! That a time fired is committed before its run is asked for. Whoever asks may be gone between
//! the two; then the run is asked for when the schedule is seen again, under the same id.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use wharf_domain::schedule::{Fired, Firing, PauseCause, Settled, SettledHow};
use wharf_domain::{Caller, Schedule, ScheduleInput};
use wharf_vocab::{Backoff, Code, Fault, FiringState, Object, Overlap, ScheduleId, Timestamp};

use super::ScheduleCalls;
use super::request::NewRun;
use crate::timetable::Timetable;

/// Times and runs that are dealt with at once, so that others' runs are not held up by many.
const AT_ONCE: usize = 32;
/// How long it looks away at most: the clock may have been set meanwhile.
const LOOK_AWAY: Duration = Duration::from_secs(1);
/// A time that is taken up later than this was missed.
const LATE_MS: u64 = 10_000;
/// Pauses before something is tried again that could not be done.
const AGAIN: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(15));

/// Something that is being done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Work {
    /// A time has come.
    Time(ScheduleId),
    /// A run is asked for.
    Start(ScheduleId, Timestamp, u64),
}

/// What is to be done, and what is being done.
#[derive(Default)]
struct Desk<'a> {
    timetable: Timetable,
    waiting: std::collections::VecDeque<Work>,
    known: HashSet<Work>,
    under_way: FuturesUnordered<BoxFuture<'a, Work>>,
}

impl ScheduleCalls<'_> {
    /// Starts the runs of all schedules, for as long as it is polled. One task of a core does.
    pub async fn keep_time(self) {
        let mut desk = Desk::default();
        loop {
            for id in self.0.inner.records.schedule_news.take() {
                self.look_at(&mut desk, &id);
            }
            let now = self.0.now();
            while let Some(id) = desk.timetable.pop(now) {
                desk.want(Work::Time(id));
            }
            while desk.under_way.len() < AT_ONCE
                && let Some(work) = desk.waiting.pop_front()
            {
                desk.under_way.push(Box::pin(self.done(work)));
            }
            let next = desk.timetable.next().map_or(LOOK_AWAY, |at| at.until(now).min(LOOK_AWAY));
            tokio::select! {
                Some(work) = desk.under_way.next(), if !desk.under_way.is_empty() => {
                    desk.known.remove(&work);
                    let (Work::Time(id) | Work::Start(id, ..)) = work;
                    self.look_at(&mut desk, &id);
                }
                () = self.0.inner.records.schedule_news.come() => {}
                () = tokio::time::sleep(next) => {}
            }
        }
    }

    /// Says when a schedule is due next, and asks for what is fired and not settled.
    fn look_at(self, desk: &mut Desk<'_>, id: &ScheduleId) {
        let Some(schedule) = self.0.inner.records.schedules.shared(id) else { return };
        let next = if schedule.removed { None } else { schedule.next() };
        let taken_up = desk.known.contains(&Work::Time(id.clone()));
        desk.timetable.set(id, next.filter(|_| !taken_up));
        for firing in &schedule.due {
            desk.want(Work::Start(id.clone(), schedule.made_at, firing.n));
        }
    }

    async fn done(self, work: Work) -> Work {
        let mut again = AGAIN;
        loop {
            let tried = match &work {
                Work::Time(id) => self.fire(id).await,
                Work::Start(id, made_at, n) => self.start(id, *made_at, *n).await,
            };
            match tried {
                Ok(()) => return work,
                Err(fault) => {
                    tracing::debug!(code = %fault.code, "a schedule is tried again");
                    tokio::time::sleep(again.pause()).await;
                }
            }
        }
    }

    /// A schedule's time has come. An error is worth another try.
    async fn fire(self, id: &ScheduleId) -> Result<(), Fault> {
        let Ok(schedule) = self.get(id) else { return Ok(()) };
        let now = self.0.now();
        let due = schedule.planner().ok().and_then(|it| it.due(schedule.cursor, now));
        let Some(due) = due.filter(|_| schedule.paused.is_none()) else { return Ok(()) };
        let (caller, core) = (Caller::schedule(&schedule), Caller::core());
        if self.0.trust().check_current(&caller).is_err() {
            let pause = ScheduleInput::Pause(PauseCause::RightsEnded);
            return self.changed(&core, id, pause).await;
        }
        let late = now.ms_since(due.last) > LATE_MS;
        let left_out = self.left_out(&schedule, late);
        if left_out.is_none()
            && schedule.spec.overlap == Overlap::CancelPrevious
            && let Some(before) = self.going_on(&schedule)
        {
            let reason = "The next time of its schedule has come.";
            // It may have ended by itself meanwhile.
            let _ = self.0.runs().cancel(&caller, &before.key, reason).await;
        }
        let fired = Fired { planned: due.last, by_hand: false, missed: due.before, left_out };
        self.changed(&core, id, ScheduleInput::Fire(fired)).await?;
        if let Some(left_out) = left_out {
            count(left_out);
        }
        Ok(())
    }

    /// Asks for the run of a firing, and writes down what became of it.
    async fn start(self, id: &ScheduleId, made_at: Timestamp, n: u64) -> Result<(), Fault> {
        let Ok(schedule) = self.get(id) else { return Ok(()) };
        let firing = schedule.due.iter().find(|firing| firing.n == n);
        let Some(firing) = firing.filter(|_| schedule.made_at == made_at) else { return Ok(()) };
        let caller = Caller::schedule(&schedule);
        let (spec, planned) = (schedule.spec.clone(), firing.planned);
        let asked = match evaluated(move || spec.inputs_at(planned)).await {
            Ok(inputs) => self.0.runs().create(&caller, request(&schedule, firing, inputs)).await,
            Err(fault) => Err(fault),
        };
        let how = match asked {
            Ok(accepted) => SettledHow::Started(accepted.run.key.run.clone()),
            // Nobody has decided about it.
            Err(fault) if is_nobodys(&fault) => return Err(fault),
            Err(fault) => SettledHow::Refused(Fault { details: Default::default(), ..fault }),
        };
        let state = match how {
            SettledHow::Started(_) => FiringState::Started,
            SettledHow::Refused(_) => FiringState::Refused,
        };
        let settle = ScheduleInput::Settle(Settled { n, how });
        self.changed(&Caller::core(), id, settle).await?;
        count(state);
        Ok(())
    }

    /// Changes a schedule. That it is gone is no error.
    async fn changed(
        self,
        caller: &Caller,
        id: &ScheduleId,
        input: ScheduleInput,
    ) -> Result<(), Fault> {
        match self.0.change::<Schedule>(caller, id.clone(), input).await {
            Err(fault) if !fault.is(Code::ScheduleNotFound) => Err(fault),
            _ => Ok(()),
        }
    }
}

impl Desk<'_> {
    /// Something is to be done, unless it is being done or waits already.
    fn want(&mut self, work: Work) {
        if self.known.insert(work.clone()) {
            self.waiting.push_back(work);
        }
    }
}

fn count(result: FiringState) {
    metrics::counter!("wharf_schedule_firings_total", "result" => result.as_str()).increment(1);
}

/// Whether a fault says that the core could not decide, and not what it decided.
pub(super) fn is_nobodys(fault: &Fault) -> bool {
    [Code::CoreBusy, Code::CoreStopping, Code::StoreUnavailable, Code::StoreFull]
        .into_iter()
        .any(|code| fault.is(code))
}

/// Does what may take a while where no run waits for it.
pub(super) async fn evaluated<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    // Whoever does it can only be gone when the engine ends.
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(super::stopped()))
}

/// The request for the run of a firing: the same however often it is made.
fn request(schedule: &Schedule, firing: &Firing, inputs: Object) -> NewRun {
    let spec = &schedule.spec;
    NewRun {
        run_id: Some(schedule.run_id(firing)),
        outputs: spec.outputs.clone(),
        mode: spec.mode,
        timeout_ms: spec.timeout_ms,
        budget_micro: spec.budget_micro,
        durability: spec.durability,
        correlation_id: Some(format!("schedule:{}", schedule.id)),
        ..NewRun::new(spec.tool.clone(), inputs, spec.world.clone())
    }
}
