//! Cancel: at once while nothing is under way, otherwise the provider has a deadline.

use serde_json::Value;
use wharf_domain::run::{AttemptError, RunInput};
use wharf_domain::{Actor, Availability, Outcome, Resolution};
use wharf_vocab::limits::CANCEL_GRACE_MS;
use wharf_vocab::{Code, Executed, Fault, RunStatus};

use crate::stage::{
    Plan, Stage, answered, assert_stands, cancel, effects, executed, gate, kinds, object, person,
    resolve,
};

fn canceling() -> Stage {
    let mut stage = Plan::of(|spec| spec.side_effect_free = true).start();
    stage.take(&cancel());
    stage
}

fn by(stage: &Stage) -> Option<&str> {
    stage.error().details.get("by").and_then(Value::as_str)
}

#[test]
fn a_run_with_nothing_under_way_is_canceled_at_once() {
    let queued = Plan::default().provider(Availability::Coming).start();
    let gated = Plan::of(|spec| spec.gate = gate()).start();
    let mut pausing = Plan::default().start();
    pausing.take(&pausing.failed(Code::ToolAgentLost, Executed::No));
    for mut stage in [queued, gated, pausing] {
        let decision = stage.take(&cancel());
        assert_eq!(kinds(&decision.entries).last(), Some(&"ended"));
        assert_eq!(decision.effects, []);
        assert_stands(&stage, RunStatus::Canceled, Some(Code::ToolCanceled));
        assert_eq!((by(&stage), executed(stage.error())), (Some("grant:starter"), Some("no")));
    }
}

#[test]
fn a_cancel_reaches_the_provider_and_waits_for_it() {
    let mut stage = Plan::default().start();
    let decision = stage.take(&cancel());
    assert_eq!(kinds(&decision.entries), ["cancel_requested"]);
    assert_eq!(effects(&decision.effects), ["cancel"]);
    assert_eq!(stage.status(), RunStatus::Running);
    assert_eq!(stage.run.next_deadline(), Some(stage.now.plus_ms(CANCEL_GRACE_MS)));

    let stopped = Fault::new(Code::ToolCanceled, "Stopped when told.");
    stage.take(&stage.ended(Err(AttemptError::Canceled(stopped)), 0));
    assert_stands(&stage, RunStatus::Canceled, Some(Code::ToolCanceled));
    assert_eq!(by(&stage), Some("grant:starter"));
}

#[test]
fn a_second_cancel_does_not_move_the_deadline() {
    let mut stage = canceling();
    let due = stage.run.next_deadline();
    stage.wait(CANCEL_GRACE_MS / 2);
    stage.ignore(&cancel());
    assert_eq!(stage.run.next_deadline(), due);
}

#[test]
fn a_provider_that_does_not_stop_is_not_waited_for_longer() {
    let mut stage = canceling();
    let late = stage.ended(Ok(object("late")), 9);
    stage.wait(CANCEL_GRACE_MS - 1);
    stage.ignore(&RunInput::Tick);
    stage.wait(1);
    stage.take(&RunInput::Tick);
    assert_stands(&stage, RunStatus::Canceled, Some(Code::ToolCanceled));
    assert_eq!(executed(stage.error()), Some("maybe"));

    assert_eq!(kinds(&stage.take(&late).entries), ["cost_reported"], "only its cost counts");
    stage.ignore(&late);
    assert_eq!((stage.run.cost_micro, stage.world()), (9, (0, 9)));
    assert_stands(&stage, RunStatus::Canceled, Some(Code::ToolCanceled));
}

#[test]
fn the_deadline_counts_even_if_the_attempts_own_time_ends_before_it() {
    let mut stage = Plan::of(|spec| spec.timeout_ms = 1_000).start();
    stage.wait(500);
    stage.take(&cancel());
    let due = stage.now.plus_ms(CANCEL_GRACE_MS);
    assert_eq!(stage.run.next_deadline(), Some(due), "the timeout has nothing to say any more");
    stage.wake();
    assert_eq!(stage.now, due);
    assert_stands(&stage, RunStatus::Canceled, Some(Code::ToolCanceled));
}

#[test]
fn a_result_that_comes_before_the_deadline_stands() {
    let mut done = canceling();
    done.take(&done.ended(Ok(object("result")), 0));
    assert_eq!(done.run.outcome, Some(Outcome::Succeeded { outputs: object("result") }));

    let mut failed = canceling();
    failed.take(&failed.failed(Code::ToolInternal, Executed::Yes));
    assert_stands(&failed, RunStatus::Failed, Some(Code::ToolInternal));
    assert_eq!(executed(failed.error()), Some("yes"));

    let mut refused = canceling();
    let fault = Fault::new(Code::ToolLimit, "Too much today.");
    refused.take(&refused.ended(Err(AttemptError::Refused(fault)), 0));
    assert_stands(&refused, RunStatus::Refused, Some(Code::ToolLimit));
}

#[test]
fn losing_the_provider_while_it_was_told_to_stop_is_a_cancel() {
    for code in [Code::ToolAgentLost, Code::ToolCanceled] {
        let mut stage = canceling();
        stage.take(&stage.failed(code, Executed::Maybe));
        assert_stands(&stage, RunStatus::Canceled, Some(Code::ToolCanceled));
        assert_eq!((by(&stage), executed(stage.error())), (Some("grant:starter"), Some("maybe")));
        assert_eq!(stage.run.attempt, 1);
    }
}

#[test]
fn a_run_that_asks_can_be_canceled_and_its_ask_is_withdrawn_with_the_end() {
    let mut stage = Plan::default().start();
    stage.take(&stage.question("q"));
    let ask = stage.open_ask();
    stage.take(&cancel());
    let fault = stage.reject(&resolve(ask, answered(), person("p")));
    assert!(fault.is(Code::AskDecided));
    assert!(fault.message.contains("cancel"), "says what is the case: {}", fault.message);
    assert!(stage.reject(&stage.question("another")).is(Code::ToolCanceled));

    let decision = stage.wake();
    assert_eq!(kinds(&decision.entries), ["ask_resolved", "ended"]);
    assert_eq!(stage.run.asks[0].ask.resolved, Some((Resolution::Withdrawn, Actor::CORE)));
    assert_stands(&stage, RunStatus::Canceled, Some(Code::ToolCanceled));
}

#[test]
fn too_much_output_while_stopping_ends_the_run_with_that() {
    let mut stage = canceling();
    stage.take(&RunInput::OutputTooLarge { attempt_id: stage.attempt_id() });
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolOutputTooLarge));
}
