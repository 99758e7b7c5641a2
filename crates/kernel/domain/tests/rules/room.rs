//! A provider without room: runs wait for their turn, and nothing of that counts as a try.

use wharf_domain::run::{AttemptError, Pause, RunEffect, RunInput};
use wharf_domain::{Availability, RunSpec};
use wharf_vocab::limits::ATTEMPTS_MAX;
use wharf_vocab::{Code, Executed, Fault, RunStatus};

use crate::stage::{Plan, Stage, assert_stands, cancel, down, effects, executed, kinds};

const TIMEOUT: u64 = 5_000;
const SHORT: fn(&mut RunSpec) = |spec| spec.timeout_ms = TIMEOUT;

/// A run that waits behind others from the beginning.
fn in_line() -> Stage {
    Plan { full: true, ..Plan::of(SHORT) }.start()
}

fn turned_away(stage: &mut Stage) {
    let decision = stage.take(&stage.failed(Code::ToolBusy, Executed::No));
    assert_eq!(kinds(&decision.entries), ["room_awaited"]);
    assert_eq!(effects(&decision.effects), ["queue"]);
}

#[test]
fn a_run_that_finds_others_waiting_begins_no_attempt() {
    let (mut stage, decision) =
        Plan { full: true, ..Plan::of(|spec| spec.hold_micro = 10) }.try_start().expect("accepted");
    assert_eq!(kinds(&decision.entries), ["created", "room_awaited"]);
    assert_eq!(effects(&decision.effects), ["queue"]);
    assert_stands(&stage, RunStatus::Queued, None);
    assert_eq!((stage.run.attempt, stage.world()), (0, (0, 0)), "it holds no money meanwhile");
    let room = stage.run.awaits_room().expect("it waits for room");
    assert!(room.reason.contains("acme"), "{}", room.reason);

    let decision = stage.take(&RunInput::Turn);
    assert_eq!(kinds(&decision.entries), ["attempt_started"]);
    assert_eq!(effects(&decision.effects), ["dispatch"]);
    assert_eq!((stage.run.attempt, stage.world()), (1, (10, 0)));
    stage.take(&stage.succeeded());
    assert_stands(&stage, RunStatus::Succeeded, None);
}

#[test]
fn a_provider_that_is_busy_uses_up_no_attempt_however_often_it_says_so() {
    let mut stage = Plan::of(|spec| spec.hold_micro = 7).start();
    let mut pauses = Vec::new();
    for _ in 0..3 * ATTEMPTS_MAX {
        turned_away(&mut stage);
        assert_eq!((stage.run.attempt, stage.run.started_at), (0, None), "it never began");
        assert_eq!(stage.world(), (0, 0), "nothing is held or spent");
        let room = stage.run.awaits_room().expect("it waits for room").clone();
        pauses.push(room.from.ms_since(stage.now));
        stage.take(&RunInput::Turn);
        assert_eq!(stage.run.attempt, 1, "the number is the same again");
    }
    assert_eq!(pauses[0], 0, "the first time it may be offered again at once");
    assert!(pauses[4] > pauses[1], "later ones wait longer: {pauses:?}");
    stage.take(&stage.succeeded());
    assert_stands(&stage, RunStatus::Succeeded, None);
}

#[test]
fn waiting_for_room_ends_with_the_runs_own_timeout_and_says_that_it_never_began() {
    let mut stage = Plan::of(SHORT).start();
    let began = stage.now;
    turned_away(&mut stage);
    stage.wait(TIMEOUT / 2);
    stage.take(&RunInput::Turn);
    turned_away(&mut stage);
    assert_eq!(stage.run.next_deadline(), Some(began.plus_ms(TIMEOUT)), "one limit for all of it");
    let decision = stage.wake();
    assert_eq!(effects(&decision.effects), ["leave_queue"]);
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolTimeout));
    assert_eq!(executed(stage.error()), Some("no"));
    assert_eq!(stage.error().details["waited_for"], "room");
}

#[test]
fn an_attempt_that_had_to_wait_has_the_whole_time() {
    let mut stage = in_line();
    stage.wait(TIMEOUT - 1);
    stage.take(&RunInput::Turn);
    assert_eq!(stage.run.next_deadline(), Some(stage.now.plus_ms(TIMEOUT)));
}

#[test]
fn a_run_in_line_is_canceled_at_once() {
    let mut stage = in_line();
    let decision = stage.take(&cancel());
    assert_eq!(effects(&decision.effects), ["leave_queue"]);
    assert_stands(&stage, RunStatus::Canceled, Some(Code::ToolCanceled));
    assert_eq!(executed(stage.error()), Some("no"));
    stage.ignore(&RunInput::Turn);
}

#[test]
fn a_restart_lets_it_stand_in_line_again() {
    for mut stage in [in_line(), {
        let mut stage = Plan::of(|spec| spec.reattach = true).start();
        turned_away(&mut stage);
        stage
    }] {
        let room = stage.run.awaits_room().expect("it waits").clone();
        let decision = stage.take(&RunInput::Recovered);
        assert_eq!(decision.entries, [], "nothing is written for it");
        let again = room.times > 1;
        assert_eq!(decision.effects, [RunEffect::Queue { from: room.from, again }]);
    }
}

#[test]
fn a_provider_that_goes_away_is_waited_for_unless_it_is_down() {
    for (provider, code) in [
        (Availability::Coming, None),
        (Availability::Unhealthy, None),
        (down(), Some(Code::ToolUnavailable)),
    ] {
        let mut stage = in_line();
        stage.provider(provider);
        let status = if code.is_some() { RunStatus::Failed } else { RunStatus::Queued };
        assert_stands(&stage, status, code);
        if code.is_none() {
            let decision = stage.take(&RunInput::Turn);
            assert_eq!(effects(&decision.effects), ["queue"], "it keeps its place");
        }
    }
}

#[test]
fn a_retry_stands_in_line_like_everybody_else() {
    let mut stage = Plan::default().start();
    stage.take(&stage.failed(Code::ToolAgentLost, Executed::No));
    stage.full = true;
    let decision = stage.wake();
    assert_eq!(kinds(&decision.entries), ["room_awaited"]);
    assert!(matches!(stage.run.pause, Some(Pause::Room(_))));
    stage.take(&RunInput::Turn);
    assert_eq!(stage.run.attempt, 2);
}

#[test]
fn busy_after_something_was_done_or_paid_is_a_try_like_any_other() {
    let busy = || Fault::new(Code::ToolBusy, "Not now.");
    let mut stage = Plan::of(|spec| spec.side_effect_free = true).start();
    let decision = stage.take(&stage.ended(Err(AttemptError::Failed(busy(), Executed::No)), 4));
    assert_eq!(kinds(&decision.entries), ["attempt_failed"]);
    assert_eq!(stage.run.cost_micro, 4, "what it cost is kept");
    stage.wake();
    let decision = stage.take(&stage.ended(Err(AttemptError::Failed(busy(), Executed::Maybe)), 0));
    assert_eq!(kinds(&decision.entries), ["attempt_failed"]);
    assert_eq!(stage.run.attempt, 2);
}
