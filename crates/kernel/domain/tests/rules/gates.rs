//! Seats that gate a run are asked about each of its attempts, and told how each ended.

use wharf_domain::{Audience, Caller, Gate, NewSeat, Notice, Resolution, RunSpec, Scope, Seat};
use wharf_domain::{Availability, SeatEntry, SeatInput};
use wharf_vocab::{Code, Digest, Executed, RunStatus, SeatId, Timestamp};

use crate::stage::{Plan, Stage, assert_stands, denied, executed, gate, person, proposes, resolve};

fn seat_id() -> SeatId {
    SeatId::new("S-night").expect("valid")
}

/// An operator on the seat, which somebody else than the run's caller made.
fn seat() -> Caller {
    let new = NewSeat {
        desc: String::new(),
        token: Digest::of(&[b"t"]),
        roles: Vec::new(),
        tools: Vec::new(),
        person: false,
    };
    let by = person("somebody").to_ref();
    let decided = Seat::decide(None, &seat_id(), &SeatInput::Create(Box::new(new)), &by);
    let (entry, _) = decided.expect("may").expect("changes");
    assert!(matches!(entry, SeatEntry::Created(_)));
    Caller::seat(&Seat::apply(None, &seat_id(), Timestamp(1), &entry).expect("a seat"))
}

fn seat_gate() -> Option<Gate> {
    gate().map(|gate| Gate { audience: Audience::Seat(seat_id()), ..gate })
}

fn gated(change: fn(&mut RunSpec)) -> Stage {
    Plan::of(|spec| {
        spec.gate = seat_gate();
        spec.side_effect_free = true;
        change(spec);
    })
    .start()
}

fn allow(stage: &mut Stage, by: Caller) {
    stage.take(&resolve(stage.open_ask(), Resolution::ALLOW, by));
}

fn told(notices: &[Notice]) -> Vec<(u32, Option<&str>)> {
    notices
        .iter()
        .map(|notice| {
            assert_eq!(notice.seat, seat_id());
            (notice.task.attempt, notice.error.as_ref().map(|error| error.code.as_str()))
        })
        .collect()
}

#[test]
fn o013_a_seat_is_asked_about_each_attempt_by_the_name_that_the_attempt_will_have() {
    let mut stage = gated(|_| {});
    let mut names = Vec::new();
    for attempt in 1..=3 {
        let ask = stage.run.open_asks().next().expect("it is asked").ask.spec.clone();
        assert_eq!(ask.task, Some(stage.run.task(attempt)), "known before it begins");
        names.push(ask.task.expect("named").task_id);
        assert_stands(&stage, RunStatus::Waiting, None);
        allow(&mut stage, seat());
        assert_stands(&stage, RunStatus::Running, None);
        assert_eq!(stage.run.attempt, attempt);
        let decision = stage.take(&stage.failed(Code::ToolBusy, Executed::Maybe));
        assert_eq!(told(&decision.notices), [(attempt, Some("tool.busy"))]);
        assert_stands(&stage, RunStatus::Queued, None);
        stage.wake();
    }
    names.dedup();
    assert_eq!(names.len(), 3, "each attempt has its own");
    allow(&mut stage, seat());
    let decision = stage.take(&stage.succeeded());
    assert_eq!(told(&decision.notices), [(4, None)]);
    assert_stands(&stage, RunStatus::Succeeded, None);
}

#[test]
fn o013_what_a_person_says_counts_for_the_run() {
    for change in [|_: &mut RunSpec| {}, |spec: &mut RunSpec| spec.gate = gate()] {
        let mut stage = gated(change);
        allow(&mut stage, person("p"));
        stage.take(&stage.failed(Code::ToolBusy, Executed::Maybe));
        stage.wake();
        assert_stands(&stage, RunStatus::Running, None);
        assert_eq!(stage.run.attempt, 2);
    }
}

#[test]
fn o013_a_seat_that_stops_a_later_attempt_refuses_the_run_and_says_what_was_done() {
    let mut stage = gated(|_| {});
    allow(&mut stage, seat());
    stage.take(&stage.failed(Code::ToolBusy, Executed::Maybe));
    stage.wake();
    let decision = stage.take(&resolve(stage.open_ask(), denied(), seat()));
    assert_stands(&stage, RunStatus::Refused, Some(Code::AskDenied));
    assert_eq!(executed(stage.error()), Some("maybe"), "the first attempt may have acted");
    assert_eq!(decision.notices, [], "no attempt ended");
}

#[test]
fn o013_what_is_remembered_for_the_tool_is_not_asked_for_again() {
    let mut stage = gated(|spec| {
        spec.gate = seat_gate().map(|gate| Gate { remember: true, ..gate });
    });
    allow(&mut stage, seat());
    stage.take(&stage.failed(Code::ToolBusy, Executed::Maybe));
    stage.wake();
    assert_stands(&stage, RunStatus::Running, None);
}

#[test]
fn o013_a_seat_gates_what_follows_a_proposal_and_does_not_stand_for_its_approval() {
    let mut stage = gated(|_| {});
    allow(&mut stage, seat());
    let decision = stage.take(&stage.ended(Err(proposes("a")), 0));
    assert_eq!(told(&decision.notices), [(1, Some("tool.directive_required"))]);
    let proposal = stage.open_ask();
    stage.take(&resolve(proposal.clone(), Resolution::ALLOW, person("p")));
    assert_stands(&stage, RunStatus::Waiting, None);
    allow(&mut stage, seat());
    assert_stands(&stage, RunStatus::Running, None);
    assert_eq!(stage.run.approval(), Some(&proposal), "the attempt runs under what it proposed");
}

#[test]
fn o014_an_attempt_that_ends_in_any_way_is_told_of_once() {
    let ends: [fn(&mut Stage) -> Vec<Notice>; 4] = [
        |stage| stage.take(&stage.succeeded()).notices,
        |stage| stage.take(&stage.failed(Code::ToolFailed, Executed::Yes)).notices,
        |stage| stage.wake().notices,
        |stage| {
            stage.take(&crate::stage::cancel());
            stage.wake().notices
        },
    ];
    for (row, end) in ends.into_iter().enumerate() {
        let mut stage = gated(|_| {});
        allow(&mut stage, seat());
        let notices = end(&mut stage);
        assert_eq!(notices.len(), 1, "row {row}");
        assert_eq!(notices[0].task, stage.run.task(1), "row {row}");
        assert!(stage.run.is_over(), "row {row}");
    }
}

#[test]
fn o014_a_run_that_nobody_let_pass_is_told_of_to_nobody() {
    let mut stage = gated(|_| {});
    let decision = stage.take(&crate::stage::cancel());
    assert_eq!(decision.notices, []);
    let mut ungated = Plan::default().start();
    assert_eq!(ungated.take(&ungated.succeeded()).notices, []);
}

#[test]
fn a_seats_word_is_written_as_one_for_the_attempt() {
    let mut stage = gated(|_| {});
    stage.provider = Availability::Up;
    allow(&mut stage, seat());
    let (resolution, _) = stage.run.asks[0].ask.resolved.clone().expect("decided");
    assert_eq!(resolution, Resolution::Allow { scope: Scope::Attempt });
}
