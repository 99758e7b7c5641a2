//! Asks of an attempt: the same key is the same ask, limits, and what becomes of open asks.

use wharf_domain::run::{NewAsk, RunEffect, RunInput};
use wharf_domain::{Actor, Availability, Resolution};
use wharf_vocab::limits::{QUESTION_DEADLINE_MS, RUN_ASKS_MAX, RUN_ASKS_OPEN_MAX};
use wharf_vocab::{AskKind, Code, Executed, RunStatus};

use crate::stage::{
    CANARY, Plan, Stage, answered, assert_stands, cancel, effects, gate, kinds, person, resolve,
    token,
};

fn free() -> Stage {
    Plan::of(|spec| spec.side_effect_free = true).start()
}

fn answer(stage: &Stage) -> RunInput {
    resolve(stage.open_ask(), answered(), person("p"))
}

#[test]
fn an_ask_makes_the_run_wait_and_its_answer_reaches_the_attempt() {
    let mut stage = free();
    let raised = stage.take(&stage.question("q"));
    assert_eq!(kinds(&raised.entries), ["ask_raised"]);
    assert_eq!(raised.effects, []);
    assert_eq!(stage.status(), RunStatus::Waiting);
    let spec = &stage.run.asks[0].ask.spec;
    assert_eq!((spec.kind, spec.key.as_str()), (AskKind::Question, "q"));
    assert_eq!(spec.deadline, stage.now.plus_ms(QUESTION_DEADLINE_MS));
    assert_eq!((&spec.args_digest, &spec.tool_hash), (&None, &None), "questions lock nothing");

    let decision = stage.take(&answer(&stage));
    assert_eq!(kinds(&decision.entries), ["ask_resolved"]);
    let told = RunEffect::Answer {
        attempt_id: stage.attempt_id(),
        key: "q".to_owned(),
        resolution: answered(),
    };
    assert_eq!(decision.effects, [told]);
    assert_eq!(stage.status(), RunStatus::Running);
}

#[test]
fn every_way_to_end_a_question_reaches_the_attempt() {
    let text = CANARY.to_owned();
    for resolution in
        [answered(), Resolution::Declined, Resolution::Cancelled, Resolution::OffScript { text }]
    {
        let mut stage = free();
        stage.take(&stage.question("q"));
        stage.take(&resolve(stage.open_ask(), resolution.clone(), person("p")));
        let by = Actor::from(&person("p").grant);
        assert_eq!(stage.run.asks[0].ask.resolved, Some((resolution, by)));
    }
}

#[test]
fn an_attempts_approval_is_bound_to_the_runs_arguments_and_does_not_end_the_run() {
    for resolution in [Resolution::ALLOW, crate::stage::denied()] {
        let mut stage = free();
        stage.take(&RunInput::RaiseAsk(stage.asks(AskKind::Approval, "send")));
        let raised = &stage.run.asks[0];
        assert!(!raised.gate);
        assert_eq!(raised.ask.spec.args_digest, Some(stage.run.spec.args_digest()));
        assert_eq!(raised.ask.spec.tool_hash, Some(stage.run.spec.tool_hash.clone()));
        let decision = stage.take(&resolve(stage.open_ask(), resolution, person("p")));
        assert_eq!(effects(&decision.effects), ["answer"]);
        assert_eq!(stage.status(), RunStatus::Running, "the attempt decides what that means");
    }
}

#[test]
fn the_same_key_is_the_same_ask() {
    let mut stage = free();
    stage.take(&stage.question("q"));
    stage.ignore(&stage.question("q"));
    stage.take(&answer(&stage));
    let again = stage.take(&stage.question("q"));
    assert_eq!(kinds(&again.entries), [""; 0]);
    let told = RunEffect::Answer {
        attempt_id: stage.attempt_id(),
        key: "q".to_owned(),
        resolution: answered(),
    };
    assert_eq!(again.effects, [told]);
    assert_eq!(stage.run.asks.len(), 1);
    assert_eq!(stage.status(), RunStatus::Running);
}

#[test]
fn the_same_key_is_the_same_ask_for_the_attempt_after_a_crash() {
    let mut stage = free();
    stage.take(&stage.question("answered"));
    stage.take(&answer(&stage));
    stage.take(&stage.question("open"));
    stage.take(&RunInput::Recovered);
    stage.wake();
    assert_eq!(stage.run.attempt, 2);

    assert_eq!(effects(&stage.take(&stage.question("answered")).effects), ["answer"]);
    stage.ignore(&stage.question("open"));
    assert_eq!(stage.run.asks.len(), 2);
    let decision = stage.take(&answer(&stage));
    assert_eq!(effects(&decision.effects), ["answer"], "the new attempt is told");
}

#[test]
fn an_ask_answered_between_two_attempts_is_kept_for_the_next() {
    let mut stage = free();
    stage.take(&stage.question("q"));
    stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
    let decision = stage.take(&answer(&stage));
    assert_eq!(kinds(&decision.entries), ["ask_resolved"]);
    assert_eq!(decision.effects, [], "nobody is there to be told");
    assert_eq!(stage.status(), RunStatus::Queued);
    stage.wake();
    assert_eq!(effects(&stage.take(&stage.question("q")).effects), ["answer"]);
}

#[test]
fn the_key_of_the_gate_is_not_the_attempts() {
    let mut stage = Plan::of(|spec| spec.gate = gate()).start();
    stage.take(&resolve(stage.open_ask(), Resolution::ALLOW, person("p")));
    let key = stage.run.asks[0].ask.spec.key.clone();
    let decision = stage.take(&RunInput::RaiseAsk(stage.asks(AskKind::Approval, &key)));
    assert_eq!(kinds(&decision.entries), ["ask_raised"], "the approval of dispatch is used up");
}

/// An allowance is for what was shown; the same key cannot smuggle something else under it.
#[test]
fn an_edited_approval_needs_a_key_of_its_own() {
    let mut stage = free();
    let shown = stage.asks(AskKind::Approval, "k");
    stage.take(&RunInput::RaiseAsk(shown.clone()));
    let title = "Delete everything?".to_owned();
    let edited = RunInput::RaiseAsk(NewAsk { title, ..shown.clone() });
    let question = RunInput::RaiseAsk(NewAsk { kind: AskKind::Question, ..shown.clone() });
    for decided in [false, true] {
        for other in [&edited, &question] {
            assert!(stage.reject(other).is(Code::RequestInvalid));
        }
        let repeat = stage.take(&RunInput::RaiseAsk(shown.clone()));
        assert_eq!(repeat.effects.len(), usize::from(decided));
        if !decided {
            stage.take(&resolve(stage.open_ask(), Resolution::ALLOW, person("p")));
        }
    }
}

#[test]
fn only_the_attempt_under_way_may_ask() {
    let mut stage = free();
    let stale = stage.question("q");
    stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
    assert!(stage.reject(&stale).is(Code::ToolCanceled), "while queued");
    stage.wake();
    assert!(stage.reject(&stale).is(Code::ToolCanceled), "while another attempt is under way");
    stage.take(&stage.question("q"));
    stage.take(&stage.succeeded());
    assert!(stage.reject(&stale).is(Code::ToolCanceled), "after the end");
}

#[test]
fn a_run_may_have_so_many_asks_open_and_so_many_in_its_life() {
    let mut stage = free();
    for n in 0..RUN_ASKS_OPEN_MAX {
        stage.take(&stage.question(&format!("q{n}")));
    }
    assert!(stage.reject(&stage.question("one more")).is(Code::AskLimit));
    stage.ignore(&stage.question("q0"));
    stage.take(&answer(&stage));
    stage.take(&stage.question("one more"));

    while stage.run.asks.len() < RUN_ASKS_MAX {
        stage.take(&answer(&stage));
        let key = format!("q{}", stage.run.asks.len());
        stage.take(&stage.question(&key));
    }
    stage.take(&answer(&stage));
    assert!(stage.run.open_asks().count() < RUN_ASKS_OPEN_MAX);
    assert!(stage.reject(&stage.question("the last straw")).is(Code::AskLimit));
}

#[test]
fn open_asks_are_withdrawn_when_the_run_ends() {
    type Act = fn(&mut Stage);
    let acts: [Act; 4] = [
        |stage| drop(stage.take(&stage.succeeded())),
        |stage| drop(stage.take(&stage.failed(Code::ToolFailed, Executed::Yes))),
        |stage| {
            let attempt_id = stage.attempt_id();
            stage.take(&RunInput::OutputTooLarge { attempt_id });
        },
        |stage| {
            stage.take(&cancel());
            stage.wake();
        },
    ];
    for act in acts {
        let mut stage = free();
        stage.take(&stage.question("a"));
        stage.take(&stage.question("b"));
        act(&mut stage);
        assert!(stage.run.is_over());
        for raised in &stage.run.asks {
            let withdrawn = Some((Resolution::Withdrawn, Actor::CORE));
            assert_eq!(raised.ask.resolved, withdrawn);
        }
        let late = resolve(stage.run.asks[0].ask.spec.ask_id.clone(), answered(), person("p"));
        assert!(stage.reject(&late).is(Code::AskDecided));
    }
}

#[test]
fn an_ask_whose_attempt_is_gone_expires_all_the_same() {
    let mut stage = free();
    let deadline = stage.now.plus_ms(500);
    let ask = NewAsk { deadline: Some(deadline), ..stage.asks(AskKind::Question, "q") };
    stage.take(&RunInput::RaiseAsk(ask));
    stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
    stage.provider = Availability::Coming;
    while stage.now < deadline {
        stage.wake();
    }
    assert_eq!(stage.run.asks[0].ask.resolved, Some((Resolution::Expired, Actor::CORE)));
    assert_stands(&stage, RunStatus::Queued, None);
}

#[test]
fn an_unknown_ask_is_not_found_in_any_phase() {
    let unknown = || resolve("2anone".parse().expect("an ask id"), answered(), token("other"));
    let running = free();
    let gated = Plan::of(|spec| spec.gate = gate()).start();
    let queued = Plan::default().provider(Availability::Coming).start();
    let mut over = free();
    over.take(&over.succeeded());
    for mut stage in [running, gated, queued, over] {
        assert!(stage.reject(&unknown()).is(Code::AskNotFound), "{:?}", stage.phase());
    }
}
