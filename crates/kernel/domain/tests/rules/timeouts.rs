//! The running time of an attempt: it bounds running, not waiting.

use wharf_domain::run::{NewAsk, RunInput, Timer};
use wharf_domain::{Actor, Availability, Resolution};
use wharf_vocab::limits::QUESTION_DEADLINE_MS;
use wharf_vocab::{AskKind, Code, Executed, RunStatus};

use crate::stage::{
    Plan, Stage, answered, assert_stands, effects, executed, gate, kinds, person, resolve, token,
};

const TIMEOUT: u64 = 10_000;

fn running() -> Stage {
    Plan::of(|spec| spec.timeout_ms = TIMEOUT).start()
}

#[test]
fn an_attempt_that_runs_too_long_is_stopped_and_fails_the_run() {
    let mut stage = running();
    stage.wait(TIMEOUT - 1);
    stage.ignore(&RunInput::Tick);
    let late = stage.succeeded();
    let decision = stage.wake();
    assert_eq!(effects(&decision.effects), ["cancel"]);
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolTimeout));
    assert_eq!(executed(stage.error()), Some("maybe"));
    stage.ignore(&late);
}

#[test]
fn a_timeout_is_not_repeated_even_if_the_tool_does_not_act() {
    let mut stage = Plan::of(|spec| spec.side_effect_free = true).start();
    stage.wake();
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolTimeout));
    assert_eq!(stage.run.attempt, 1);
}

#[test]
fn a_result_that_comes_before_anybody_looked_at_the_clock_stands() {
    let mut stage = running();
    stage.wait(TIMEOUT + 5);
    stage.take(&stage.succeeded());
    assert_stands(&stage, RunStatus::Succeeded, None);
}

#[test]
fn the_clock_stands_while_an_ask_is_open_and_goes_on_after_it() {
    let mut stage = running();
    stage.wait(4_000);
    stage.take(&stage.question("a"));
    let timer = |stage: &Stage| stage.run.active.as_ref().expect("under way").timer;
    assert_eq!(timer(&stage), Timer::Stands(6_000));

    stage.wait(3_600_000);
    stage.ignore(&RunInput::Tick);
    assert_eq!(stage.status(), RunStatus::Waiting);

    // The clock goes on only when the last open ask is decided.
    stage.take(&stage.question("b"));
    stage.take(&resolve(stage.open_ask(), answered(), person("p")));
    assert_eq!(timer(&stage), Timer::Stands(6_000));
    stage.take(&resolve(stage.open_ask(), Resolution::Declined, person("p")));
    assert_eq!(timer(&stage), Timer::Runs(stage.now.plus_ms(6_000)));
    assert_eq!(stage.status(), RunStatus::Running);

    stage.wake();
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolTimeout));
}

#[test]
fn waiting_for_approval_or_provider_takes_nothing_from_the_running_time() {
    let mut gated = Plan::of(|spec| {
        spec.gate = gate();
        spec.timeout_ms = TIMEOUT;
    })
    .start();
    gated.wait(3_600_000);
    gated.take(&resolve(gated.open_ask(), Resolution::ALLOW, person("p")));
    let mut queued =
        Plan::of(|spec| spec.timeout_ms = TIMEOUT).provider(Availability::Coming).start();
    queued.wait(TIMEOUT - 1);
    queued.provider(Availability::Up);
    for stage in [gated, queued] {
        assert_eq!(stage.run.next_deadline(), Some(stage.now.plus_ms(TIMEOUT)));
    }
}

#[test]
fn an_ask_that_expires_is_told_to_the_attempt_which_goes_on() {
    let mut stage = running();
    let soon = stage.now.plus_ms(1_000);
    let ask = NewAsk { deadline: Some(soon), ..stage.asks(AskKind::Question, "soon") };
    stage.take(&RunInput::RaiseAsk(ask));
    stage.take(&stage.question("whenever"));
    assert_eq!(stage.run.next_deadline(), Some(soon));

    let decision = stage.wake();
    assert_eq!(kinds(&decision.entries), ["ask_resolved"]);
    assert_eq!(effects(&decision.effects), ["answer"]);
    assert_eq!(stage.run.asks[0].ask.resolved, Some((Resolution::Expired, Actor::CORE)));
    assert_eq!(stage.status(), RunStatus::Waiting);
    let raised_at = stage.run.asks[1].ask.created_at;
    assert_eq!(stage.run.next_deadline(), Some(raised_at.plus_ms(QUESTION_DEADLINE_MS)));
}

#[test]
fn each_attempt_has_the_whole_time() {
    let mut stage = Plan::of(|spec| spec.timeout_ms = TIMEOUT).start();
    stage.wait(TIMEOUT - 1);
    stage.take(&stage.failed(Code::ToolAgentLost, Executed::No));
    stage.wake();
    assert_eq!(stage.run.attempt, 2);
    assert_eq!(stage.run.next_deadline(), Some(stage.now.plus_ms(TIMEOUT)));
}

#[test]
fn an_ask_that_outlives_its_attempt_stops_the_clock_of_the_next() {
    let mut stage = Plan::of(|spec| spec.side_effect_free = true).start();
    stage.take(&stage.question("q"));
    stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
    assert_eq!(stage.status(), RunStatus::Waiting);
    stage.wake();
    assert_eq!((stage.run.attempt, stage.status()), (2, RunStatus::Waiting));
    let decision = stage.take(&resolve(stage.open_ask(), answered(), token("other")));
    assert_eq!(effects(&decision.effects), ["answer"]);
    assert_eq!(stage.run.next_deadline(), Some(stage.now.plus_ms(60_000)));
}
