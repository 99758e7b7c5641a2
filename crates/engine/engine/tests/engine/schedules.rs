//! Runs that the core starts by the clock.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;
use wharf_domain::schedule::{Firing, SchedulePlan};
use wharf_domain::{Caller, Rights, Schedule, ScheduleSpec};
use wharf_memory::MemoryStore;
use wharf_ports::{ManualClock, StoreErrorKind};
use wharf_vocab::{
    CatchUp, Code, Durability, FiringState, Mode, Object, Overlap, RunKey, RunStatus, ScheduleId,
    ScheduleState, Timestamp,
};

use crate::support::{Bench, LONG, default_world, object, owner};

const START: u64 = 1_800_000_000_000;
const MINUTE: u64 = 60_000;

fn name() -> ScheduleId {
    ScheduleId::new("beat").expect("valid")
}

fn spec(tool: &str, inputs: serde_json::Value) -> ScheduleSpec {
    ScheduleSpec {
        plan: SchedulePlan::Every { ms: MINUTE },
        tool: tool.parse().expect("valid"),
        world: default_world(),
        inputs: object(inputs),
        outputs: Object::new(),
        mode: Mode::Real,
        timeout_ms: None,
        budget_micro: None,
        durability: Some(Durability::Journal),
        catch_up: CatchUp::Last,
        overlap: Overlap::Skip,
        allow: Vec::new(),
    }
}

pub(crate) fn echo() -> ScheduleSpec {
    spec("wharf/echo", json!({"text": "hello"}))
}

/// An engine whose clock is moved by hand, and the task that keeps time.
struct Clockwork {
    bench: Bench,
    clock: Arc<ManualClock>,
    task: JoinHandle<()>,
}

impl Clockwork {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp(START)));
        let bench = Bench::at(&clock).await;
        let task = keeper(&bench);
        Self { bench, clock, task }
    }

    /// The engine as it would come back after a kill -9 at this moment.
    async fn killed(self) -> Self {
        self.task.abort();
        let state = self.bench.store.state();
        let bench = Bench::with(state, self.clock.clone(), Default::default()).await;
        let task = keeper(&bench);
        Self { bench, clock: self.clock, task }
    }

    async fn add(&self, spec: ScheduleSpec) -> Schedule {
        self.bench.handle.schedules().add(&owner(), name(), spec).await.expect("added")
    }

    fn schedule(&self) -> Schedule {
        self.bench.handle.schedules().get(&name()).expect("there")
    }

    async fn history(&self) -> Vec<Firing> {
        self.bench.handle.schedules().history(&name()).await.expect("readable")
    }

    /// Waits until so many firings are settled.
    async fn settled(&self, wanted: u64) -> Schedule {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let schedule = self.schedule();
            if schedule.fired >= wanted && schedule.due.is_empty() {
                return schedule;
            }
            assert!(tokio::time::Instant::now() < deadline, "{schedule:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn key(&self, firing: &Firing) -> RunKey {
        RunKey { world: default_world(), run: firing.run.clone().expect("started") }
    }
}

fn all_runs() -> wharf_ports::RunQuery {
    wharf_ports::RunQuery { limit: 100, ..Default::default() }
}

fn keeper(bench: &Bench) -> JoinHandle<()> {
    let handle = bench.handle.clone();
    tokio::spawn(async move { handle.schedules().keep_time().await })
}

#[tokio::test]
async fn f031_a_time_starts_one_run_under_an_id_of_its_own() {
    let clockwork = Clockwork::new().await;
    let added = clockwork.add(echo()).await;
    assert_eq!(added.next(), Some(Timestamp(START + MINUTE)));
    clockwork.clock.advance_ms(MINUTE);
    let fired = clockwork.settled(1).await.last.expect("settled");
    assert_eq!((fired.state, fired.planned.0), (FiringState::Started, START + MINUTE));
    let run = clockwork.bench.end_of(&clockwork.key(&fired)).await;
    assert_eq!(run.status(), RunStatus::Succeeded);
    assert!(run.key.run.starts_with("sc-"), "{}", run.key);
    assert_eq!(run.spec.caller.grant.as_str(), "schedule.beat");
    assert!(!run.spec.caller.person);
}

#[tokio::test]
async fn f031_what_was_fired_before_a_crash_is_started_once_after_it() {
    let clockwork = Clockwork::new().await;
    clockwork.add(echo()).await;
    // The firing is committed, and nobody is left to ask for its run.
    clockwork.task.abort();
    while !clockwork.task.is_finished() {
        tokio::task::yield_now().await;
    }
    clockwork.bench.handle.schedules().trigger(&owner(), &name()).await.expect("fired");
    assert_eq!(clockwork.schedule().due.len(), 1);
    let clockwork = clockwork.killed().await;
    let fired = clockwork.settled(1).await.last.expect("settled");
    let key = clockwork.key(&fired);
    clockwork.bench.end_of(&key).await;

    // A core that comes back once more finds nothing to do.
    let clockwork = clockwork.killed().await;
    assert!(clockwork.schedule().due.is_empty());
    let runs = clockwork.bench.handle.run_lists().list(all_runs()).await;
    assert_eq!(runs.expect("listed").runs.len(), 1);
}

#[tokio::test]
async fn f031_a_store_that_fails_or_lies_loses_no_time_and_doubles_none() {
    let clockwork = Clockwork::new().await;
    // What the store could not take of a run is offered again later, by the same clock.
    clockwork.add(ScheduleSpec { overlap: Overlap::Parallel, ..echo() }).await;
    let store: &MemoryStore = &clockwork.bench.store;
    for n in 1..=6_u64 {
        match n % 3 {
            0 => store.fail_commits(1, StoreErrorKind::Unavailable),
            1 => store.deny_commits(1),
            _ => store.deny_commits(2),
        }
        clockwork.clock.advance_ms(MINUTE);
        let fired = clockwork.settled(n).await.last.expect("settled");
        assert_eq!(fired.state, FiringState::Started, "{fired:?}");
    }
    let planned: Vec<u64> =
        clockwork.history().await.iter().rev().map(|it| (it.planned.0 - START) / MINUTE).collect();
    assert_eq!(planned, [1, 2, 3, 4, 5, 6]);
    let runs = clockwork.bench.handle.run_lists().list(all_runs()).await;
    assert_eq!(runs.expect("listed").runs.len(), 6);
}

#[tokio::test]
async fn f031_missed_times_are_left_out_or_made_up_for_once() {
    for (catch_up, state) in
        [(CatchUp::Last, FiringState::Started), (CatchUp::None, FiringState::Missed)]
    {
        let clockwork = Clockwork::new().await;
        clockwork.add(ScheduleSpec { catch_up, ..echo() }).await;
        clockwork.task.abort();
        clockwork.clock.advance_ms(5 * MINUTE + 30_000);
        let clockwork = clockwork.killed().await;
        let fired = clockwork.settled(1).await.last.expect("settled");
        assert_eq!((fired.state, fired.missed), (state, 4), "{catch_up}");
        assert_eq!(fired.planned.0, START + 5 * MINUTE);
        assert_eq!(clockwork.schedule().fired, 1);
        // What comes next is on time.
        clockwork.clock.advance_ms(30_000);
        let fired = clockwork.settled(2).await.last.expect("settled");
        assert_eq!(fired.planned.0, START + 6 * MINUTE);
        clockwork.task.abort();
    }
}

#[tokio::test]
async fn f031_a_time_that_comes_while_a_run_goes_on_is_dealt_with_as_said() {
    let sleep = json!({"ms": 600_000});
    for overlap in [Overlap::Skip, Overlap::Parallel, Overlap::CancelPrevious] {
        let clockwork = Clockwork::new().await;
        let spec = ScheduleSpec { overlap, ..spec("wharf/sleep", sleep.clone()) };
        clockwork.add(spec).await;
        clockwork.clock.advance_ms(MINUTE);
        let first = clockwork.settled(1).await.last.expect("settled");
        let first = clockwork.key(&first);
        clockwork.clock.advance_ms(MINUTE);
        let second = clockwork.settled(2).await.last.expect("settled");
        let goes_on = || async {
            let run = clockwork.bench.handle.runs().get(&first).await.expect("known");
            !run.is_over()
        };
        match overlap {
            Overlap::Skip => assert_eq!(second.state, FiringState::Skipped),
            _ => assert_eq!(second.state, FiringState::Started),
        }
        match overlap {
            Overlap::CancelPrevious => {
                let run = clockwork.bench.end_of(&first).await;
                assert_eq!(run.status(), RunStatus::Canceled);
            }
            _ => assert!(goes_on().await, "{overlap}"),
        }
        clockwork.task.abort();
    }
}

#[tokio::test]
async fn f032_when_the_rights_of_its_maker_end_it_is_paused() {
    let clockwork = Clockwork::new().await;
    let until = Some(Timestamp(START + 90_000));
    let maker = Caller::token("g-1", Rights { until, ..Rights::all() });
    let schedules = clockwork.bench.handle.schedules();
    schedules.add(&maker, name(), echo()).await.expect("added");
    clockwork.clock.advance_ms(MINUTE);
    clockwork.settled(1).await;
    clockwork.clock.advance_ms(MINUTE);
    let deadline = tokio::time::Instant::now() + LONG;
    while clockwork.schedule().state() != ScheduleState::Paused {
        assert!(tokio::time::Instant::now() < deadline, "it goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(clockwork.schedule().fired, 1);
    let refused = schedules.resume(&owner(), &name()).await.expect_err("its rights are over");
    assert!(refused.is(Code::PermissionDenied), "{refused}");
    clockwork.bench.audited(|record| record.event == "schedule.paused").await;
}

#[tokio::test]
async fn f032_a_schedule_reaches_no_further_than_whoever_makes_or_changes_it() {
    let clockwork = Clockwork::new().await;
    let schedules = clockwork.bench.handle.schedules();
    let mut rights = Rights::all();
    rights.worlds = Some([wharf_vocab::WorldId::new("other").expect("valid")].into());
    let stranger = Caller::token("g-2", rights);
    let refused = schedules.add(&stranger, name(), echo()).await.expect_err("another world");
    assert!(refused.is(Code::PermissionDenied), "{refused}");
    clockwork.add(echo()).await;
    let mut rights = Rights::all();
    rights.verbs.remove(&wharf_vocab::Verb::Operate);
    let other = Caller::token("g-3", rights);
    for tried in [
        schedules.pause(&other, &name()).await,
        schedules.trigger(&other, &name()).await,
        schedules.remove(&other, &name()).await,
    ] {
        let refused = tried.expect_err("not its own");
        assert!(refused.is(Code::PermissionDenied), "{refused}");
    }
    let operator = Caller::token("g-4", Rights::all());
    schedules.pause(&operator, &name()).await.expect("whoever may operate may");
    schedules.remove(&owner(), &name()).await.expect("its maker may");
    let missing = ScheduleSpec { tool: "no/tool".parse().expect("valid"), ..echo() };
    let refused = schedules.add(&owner(), name(), missing).await.expect_err("no such tool");
    assert!(refused.is(Code::ToolNotFound), "{refused}");
}

#[tokio::test]
async fn f030_what_never_comes_is_refused() {
    let clockwork = Clockwork::new().await;
    let add = async |plan: SchedulePlan| {
        let spec = ScheduleSpec { plan, ..echo() };
        clockwork.bench.handle.schedules().add(&owner(), name(), spec).await
    };
    let passed = SchedulePlan::At { at: Timestamp(START - 1), tz: "UTC".to_owned() };
    let refused = add(passed).await.expect_err("it has passed");
    assert_eq!(refused.details["field"], "at");
    let never = SchedulePlan::Cron { pattern: "0 0 30 2 *".to_owned(), tz: "UTC".to_owned() };
    let refused = add(never).await.expect_err("there is no such day");
    assert_eq!(refused.details["field"], "cron");
}

#[tokio::test]
async fn f030_what_is_refused_is_told_and_the_next_time_comes() {
    let clockwork = Clockwork::new().await;
    clockwork.add(spec("wharf/count", json!({"n": "many"}))).await;
    for n in 1..=2 {
        clockwork.clock.advance_ms(MINUTE);
        let fired = clockwork.settled(n).await.last.expect("settled");
        assert_eq!(fired.state, FiringState::Refused);
        assert!(fired.error.expect("why").is(Code::ToolInvalidInput));
    }
}

#[tokio::test]
async fn f033_many_that_are_due_at_once_all_start() {
    let clockwork = Clockwork::new().await;
    let schedules = clockwork.bench.handle.schedules();
    let id = |n: u32| ScheduleId::new(format!("s{n}")).expect("valid");
    for n in 0..300 {
        schedules.add(&owner(), id(n), echo()).await.expect("added");
    }
    clockwork.clock.advance_ms(MINUTE);
    let deadline = tokio::time::Instant::now() + LONG;
    for n in 0..300 {
        while schedules.get(&id(n)).expect("there").last.is_none() {
            assert!(tokio::time::Instant::now() < deadline, "{n} did not start");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let all = schedules.list();
    assert!(all.iter().all(|it| it.fired == 1 && it.last_run.is_some()));
}

#[tokio::test]
async fn f032_inputs_are_expressions_over_the_planned_time() {
    let clockwork = Clockwork::new().await;
    let text = "${planned_at.substring(0, 10)} ${int(planned_at.substring(11, 13)) + 1}";
    let wrong = spec("wharf/echo", json!({"text": "${now}"}));
    let refused = clockwork.bench.handle.schedules().add(&owner(), name(), wrong).await;
    assert_eq!(refused.expect_err("there is no `now`").details["field"], "inputs");
    clockwork.add(spec("wharf/echo", json!({"text": text}))).await;
    clockwork.clock.advance_ms(MINUTE);
    clockwork.settled(1).await;
    let history = clockwork.history().await;
    let run = clockwork.bench.end_of(&clockwork.key(&history[0])).await;
    assert_eq!(crate::support::outputs_of(&run)["text"], "2027-01-15 9");
    clockwork.task.abort();
}

#[tokio::test]
async fn f032_a_time_whose_expressions_fail_is_refused_and_the_next_comes() {
    let clockwork = Clockwork::new().await;
    clockwork.add(spec("wharf/echo", json!({"text": "${planned_at.substring(90, 91)}"}))).await;
    clockwork.clock.advance_ms(MINUTE);
    let schedule = clockwork.settled(1).await;
    let last = schedule.last.expect("fired");
    assert_eq!(last.state, FiringState::Refused);
    assert!(last.error.expect("why").is(Code::FlowExpression));
    clockwork.clock.advance_ms(MINUTE);
    clockwork.settled(2).await;
    clockwork.task.abort();
}

#[tokio::test]
async fn f033_a_thousand_that_are_due_at_once_all_start() {
    let clockwork = Clockwork::new().await;
    let schedules = clockwork.bench.handle.schedules();
    for n in 0..1_000 {
        let id = ScheduleId::new(format!("s{n}")).expect("valid");
        schedules.add(&owner(), id, echo()).await.expect("added");
    }
    clockwork.clock.advance_ms(MINUTE);
    let deadline = tokio::time::Instant::now() + LONG;
    let started =
        |it: &Schedule| it.last.as_ref().is_some_and(|firing| firing.state == FiringState::Started);
    while !schedules.list().iter().all(started) {
        assert!(tokio::time::Instant::now() < deadline, "some did not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(schedules.list().iter().all(|it| it.fired == 1));
    clockwork.task.abort();
}
