use serde_json::json;

use super::*;
use crate::Caller;
use crate::grant::Rights;

fn name() -> ScheduleId {
    ScheduleId::new("nightly").expect("valid")
}

fn spec(plan: SchedulePlan) -> ScheduleSpec {
    ScheduleSpec {
        plan,
        tool: "wharf/echo".parse().expect("valid"),
        world: WorldId::new("lab").expect("valid"),
        inputs: json!({"text": "hello"}).as_object().cloned().expect("an object"),
        outputs: Object::new(),
        mode: Mode::Real,
        timeout_ms: None,
        budget_micro: None,
        durability: None,
        catch_up: CatchUp::Last,
        overlap: Overlap::Skip,
        allow: Vec::new(),
    }
}

/// A schedule whose entries are decided and applied as in a shard.
struct Story {
    schedule: Option<Schedule>,
    now: u64,
}

impl Story {
    fn begun(plan: SchedulePlan) -> Self {
        let mut story = Self { schedule: None, now: 1_000 };
        let add = ScheduleInput::Add { spec: Box::new(spec(plan)), account: None };
        assert!(story.say(&add).expect("may"));
        story
    }

    /// Whether an input changed something.
    fn say(&mut self, input: &ScheduleInput) -> Result<bool, Fault> {
        let by = Caller::owner().to_ref();
        let decided = Schedule::decide(self.schedule.as_ref(), &name(), input, &by)?;
        let Some((entry, _)) = decided else { return Ok(false) };
        let next = Schedule::apply(self.schedule.take(), &name(), Timestamp(self.now), &entry);
        self.schedule = Some(next.expect("follows"));
        Ok(true)
    }

    fn fire(&mut self, planned: u64) -> bool {
        self.now = self.now.max(planned);
        self.say(&ScheduleInput::Fire(fired(planned))).expect("may")
    }

    fn it(&self) -> &Schedule {
        self.schedule.as_ref().expect("made")
    }
}

fn fired(planned: u64) -> Fired {
    Fired { planned: Timestamp(planned), by_hand: false, missed: 0, left_out: None }
}

fn every_minute() -> SchedulePlan {
    SchedulePlan::Every { ms: 60_000 }
}

#[test]
fn f031_no_time_fires_twice_and_none_before_one_that_did() {
    let mut story = Story::begun(every_minute());
    assert_eq!(story.it().next(), Some(Timestamp(61_000)));
    assert!(story.fire(61_000));
    assert!(!story.fire(61_000), "not twice");
    assert!(!story.fire(60_000), "not back");
    assert_eq!(story.it().next(), Some(Timestamp(121_000)));
    assert_eq!((story.it().fired, story.it().due.len()), (1, 1));
}

#[test]
fn f031_the_id_of_a_run_is_of_its_schedule_and_time() {
    let mut story = Story::begun(every_minute());
    assert!(story.fire(61_000) && story.fire(121_000));
    let [first, second] = story.it().due.as_slice() else { panic!("{:?}", story.it().due) };
    let ids = [first, second].map(|firing| story.it().run_id(firing));
    assert!(ids.iter().all(|id| id.starts_with(RUN_PREFIX)), "{ids:?}");
    assert_ne!(ids[0], ids[1]);
    let again = Firing { n: 9, at: Timestamp(9), ..first.clone() };
    assert_eq!(story.it().run_id(&again), ids[0], "of the time alone");
    let later = Schedule { made_at: Timestamp(2), ..story.it().clone() };
    assert_ne!(later.run_id(first), ids[0], "a schedule of the same name is another one");
}

#[test]
fn f031_what_is_fired_is_due_until_it_is_settled() {
    let mut story = Story::begun(every_minute());
    assert!(story.fire(61_000));
    let run = story.it().run_id(&story.it().due[0]);
    let settled = Settled { n: 1, how: SettledHow::Started(run.clone()) };
    assert!(story.say(&ScheduleInput::Settle(settled.clone())).expect("may"));
    assert!(!story.say(&ScheduleInput::Settle(settled)).expect("may"), "once");
    assert!(story.it().due.is_empty());
    assert_eq!(story.it().last_run, Some(run));
    let last = story.it().last.as_ref().expect("settled");
    assert_eq!(last.state, FiringState::Started);
}

#[test]
fn f030_what_passes_while_it_is_paused_is_not_missed() {
    let mut story = Story::begun(every_minute());
    assert!(story.say(&ScheduleInput::Pause(PauseCause::Asked)).expect("may"));
    assert_eq!((story.it().next(), story.it().state()), (None, ScheduleState::Paused));
    assert!(!story.fire(61_000), "it starts nothing");
    story.now = 500_000;
    assert!(story.say(&ScheduleInput::Resume).expect("may"));
    assert_eq!(story.it().next(), Some(Timestamp(541_000)));
    assert!(!story.say(&ScheduleInput::Resume).expect("may"));
}

#[test]
fn f030_a_run_by_hand_moves_no_time() {
    let mut story = Story::begun(every_minute());
    story.now = 30_000;
    let by_hand = ScheduleInput::Fire(Fired { by_hand: true, ..fired(30_000) });
    assert!(story.say(&by_hand).expect("may") && story.say(&by_hand).expect("may"));
    let ids: Vec<_> = story.it().due.iter().map(|firing| story.it().run_id(firing)).collect();
    assert_ne!(ids[0], ids[1]);
    assert_eq!(story.it().next(), Some(Timestamp(61_000)));
    story.say(&ScheduleInput::Pause(PauseCause::Asked)).expect("may");
    assert!(story.say(&by_hand).expect("may"), "also while it is paused");
}

#[test]
fn f030_one_moment_is_over_when_it_has_fired() {
    let mut story = Story::begun(SchedulePlan::At { at: Timestamp(5_000), tz: "UTC".to_owned() });
    assert_eq!(story.it().state(), ScheduleState::Active);
    assert!(story.fire(5_000));
    assert_eq!((story.it().state(), story.it().next()), (ScheduleState::Over, None));
}

#[test]
fn f030_a_name_can_be_used_again_after_it_was_removed() {
    let mut story = Story::begun(every_minute());
    let add = ScheduleInput::Add { spec: Box::new(spec(every_minute())), account: None };
    assert!(story.say(&add).expect_err("taken").is(Code::ScheduleExists));
    assert!(story.fire(61_000));
    assert!(story.say(&ScheduleInput::Remove).expect("may"));
    for input in [ScheduleInput::Remove, ScheduleInput::Resume, ScheduleInput::Fire(fired(99_000))]
    {
        assert!(story.say(&input).expect_err("gone").is(Code::ScheduleNotFound));
    }
    assert!(story.say(&add).expect("may"));
    assert_eq!((story.it().fired, story.it().removed), (0, false));
}

#[test]
fn f031_runs_that_are_about_to_be_started_are_bounded() {
    let mut story = Story::begun(every_minute());
    let started = (1..100).filter(|n| story.fire(1_000 + n * 60_000)).count();
    assert_eq!(started, DUE_MAX);
    let left_out = Fired { left_out: Some(FiringState::Skipped), ..fired(9_000_000) };
    assert!(story.say(&ScheduleInput::Fire(left_out)).expect("may"));
    assert_eq!(story.it().due.len(), DUE_MAX);
}

#[test]
fn f030_what_a_schedule_holds_is_bounded() {
    let by = Caller::owner().to_ref();
    let add = |spec: ScheduleSpec| {
        let add = ScheduleInput::Add { spec: Box::new(spec), account: None };
        Schedule::decide(None, &name(), &add, &by).map(|_| ())
    };
    let mut large = spec(every_minute());
    large.inputs.insert("text".to_owned(), json!("x".repeat(INPUTS_BYTES_MAX)));
    assert_eq!(add(large).expect_err("too large").details["field"], "inputs");
    let many = vec![ToolPattern::any(); ALLOW_MAX + 1];
    let many = ScheduleSpec { allow: many, ..spec(every_minute()) };
    assert_eq!(add(many).expect_err("too many").details["field"], "allow");
    assert!(add(spec(SchedulePlan::Every { ms: 1 })).is_err());
}

#[test]
fn f032_a_schedule_acts_with_a_part_of_its_makers_rights() {
    let until = Some(Timestamp(77));
    let maker = Caller::token("g-1", Rights { until, ..Rights::all() });
    let made = Story::begun(every_minute());
    let schedule = Schedule { by: maker.to_ref(), ..made.it().clone() };
    let caller = Caller::schedule(&schedule);
    assert!(!caller.person);
    assert_eq!((caller.grant.as_str(), caller.rights.until), ("schedule.nightly", until));
    assert!(caller.links.contains(&maker.grant), "revoked with its maker's");
    let rights = &caller.rights;
    let (lab, other) = (WorldId::new("lab").expect("valid"), WorldId::new("b").expect("valid"));
    assert!(rights.check(wharf_vocab::Verb::Run, &lab).is_ok());
    assert!(rights.check(wharf_vocab::Verb::Run, &other).is_err());
    assert!(rights.check(wharf_vocab::Verb::Approve, &lab).is_err());
    assert!(rights.check_tool(&"wharf/echo".parse().expect("valid")).is_ok());
    assert!(rights.check_tool(&"wharf/count".parse().expect("valid")).is_err());
    let by_owner = Caller::schedule(made.it());
    assert!(!by_owner.person && Caller::owner().owns(&by_owner.to_ref()));
}
