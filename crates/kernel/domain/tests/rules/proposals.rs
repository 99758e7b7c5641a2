//! An attempt that wants an approval before it acts, and is made again with it.

use serde_json::json;
use wharf_domain::run::{AttemptError, Phase};
use wharf_domain::{Audience, Availability, Resolution};
use wharf_vocab::limits::ATTEMPTS_MAX;
use wharf_vocab::{AskId, AskKind, Code, Executed, Fault, RunStatus};

use crate::stage::{
    CANARY, Plan, Stage, assert_stands, cancel, denied, effects, executed, gate, kinds, person,
    proposes, resolve, token,
};

/// The attempt under way proposes something.
fn propose(stage: &mut Stage, what: &str) -> wharf_domain::run::Decision {
    stage.take(&stage.ended(Err(proposes(what)), 3))
}

fn allow(stage: &mut Stage) -> AskId {
    let ask_id = stage.open_ask();
    stage.take(&resolve(ask_id.clone(), Resolution::ALLOW, person("p")));
    ask_id
}

#[test]
fn r087_a_proposal_waits_for_a_person_and_the_next_attempt_runs_under_the_approval() {
    let mut stage = Plan::of(|spec| spec.hold_micro = 10).start();
    let decision = propose(&mut stage, "mail");
    assert_eq!(kinds(&decision.entries), ["attempt_failed", "ask_raised"]);
    assert_eq!(decision.effects, []);
    assert_eq!((stage.status(), stage.phase()), (RunStatus::Waiting, Phase::Gated));
    assert_eq!(stage.world(), (0, 3), "nothing is held while somebody thinks");

    let spec = stage.run.asks[0].ask.spec.clone();
    assert_eq!((spec.kind, spec.audience), (AskKind::Approval, Audience::Person));
    assert_eq!(spec.title, "Send mail");
    assert_eq!(spec.detail, Some(json!({ "title": "Send mail", "to": CANARY })));
    assert_eq!(spec.args_digest, Some(stage.run.spec.args_digest()));
    assert!(
        stage
            .reject(&resolve(spec.ask_id, Resolution::ALLOW, token("other")))
            .is(Code::PermissionDenied)
    );

    let ask_id = allow(&mut stage);
    assert_eq!((stage.status(), stage.run.attempt), (RunStatus::Running, 2));
    assert_eq!(stage.run.approval(), Some(&ask_id));
    stage.take(&stage.succeeded());
    assert_stands(&stage, RunStatus::Succeeded, None);
    assert_eq!(stage.world(), (0, 3));
}

#[test]
fn r087_a_proposal_that_is_denied_or_forgotten_ends_the_run_without_acting() {
    for (deny, code) in [(true, Code::AskDenied), (false, Code::AskExpired)] {
        let mut stage = Plan::default().start();
        propose(&mut stage, "mail");
        if deny {
            stage.take(&resolve(stage.open_ask(), denied(), person("p")));
        } else {
            stage.wake();
        }
        assert_stands(&stage, RunStatus::Refused, Some(code));
        assert_eq!(stage.run.attempt, 1);
    }
}

#[test]
fn r087_the_same_proposal_is_not_asked_for_twice_in_one_run() {
    let mut stage = Plan::default().start();
    propose(&mut stage, "mail");
    let first = allow(&mut stage);
    propose(&mut stage, "parcel");
    let second = allow(&mut stage);
    assert_ne!(first, second, "something else is another approval");
    assert_eq!(stage.run.approval(), Some(&second));

    let again = propose(&mut stage, "mail");
    assert_eq!(kinds(&again.entries), ["attempt_failed", "attempt_started"]);
    assert_eq!(effects(&again.effects), ["dispatch"]);
    assert_eq!((stage.run.asks.len(), stage.run.approval()), (2, Some(&first)));

    // It runs under the approval of just this, and still does not take it.
    propose(&mut stage, "mail");
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolDirectiveRequired));
}

#[test]
fn r087_an_approval_given_before_is_used_when_the_provider_is_back() {
    let mut stage = Plan::default().start();
    propose(&mut stage, "mail");
    let first = allow(&mut stage);
    propose(&mut stage, "parcel");
    allow(&mut stage);
    stage.provider = Availability::Coming;
    propose(&mut stage, "mail");
    assert_eq!(stage.phase(), Phase::Queued);
    stage.provider(Availability::Up);
    assert_eq!((stage.status(), stage.run.approval()), (RunStatus::Running, Some(&first)));
}

#[test]
fn r087_proposals_are_bounded_in_number_and_size() {
    let mut stage = Plan::default().start();
    for round in 0..8 {
        propose(&mut stage, &round.to_string());
        allow(&mut stage);
    }
    propose(&mut stage, "one more");
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolDirectiveRequired));
    assert_eq!(stage.run.asks.len(), 8);

    let mut stage = Plan::default().start();
    propose(&mut stage, &"x".repeat(20_000));
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolDirectiveRequired));
    assert_eq!(stage.run.asks, []);
}

#[test]
fn r087_without_a_proposal_there_is_nothing_to_approve() {
    let code = Code::ToolDirectiveRequired;
    for details in [json!(null), json!("text"), json!([1])] {
        let fault = Fault::new(code, "It needs a directive.").with("proposal", details);
        let mut stage = Plan::default().start();
        stage.take(&stage.ended(Err(AttemptError::Failed(fault, Executed::No)), 0));
        assert_stands(&stage, RunStatus::Failed, Some(code));
        assert_eq!(executed(stage.error()), Some("no"));
    }
}

#[test]
fn a_title_is_cut_and_cleaned_or_made_up() {
    let long = "ä".repeat(500);
    for (title, shown) in [
        (json!("  Pay\u{7}\n  "), "Pay".to_owned()),
        (json!(long), "ä".repeat(200)),
        (json!("\n"), "Allow acme/work to do what it proposes?".to_owned()),
        (json!(7), "Allow acme/work to do what it proposes?".to_owned()),
    ] {
        let fault = Fault::new(Code::ToolDirectiveRequired, "It needs a directive.")
            .with("proposal", json!({ "amount": 1 }))
            .with("title", title);
        let mut stage = Plan::default().start();
        stage.take(&stage.ended(Err(AttemptError::Failed(fault, Executed::No)), 0));
        assert_eq!(stage.run.asks[0].ask.spec.title, shown);
    }
}

#[test]
fn waiting_for_approvals_takes_nothing_from_the_retries() {
    let mut stage = Plan::of(|spec| spec.side_effect_free = true).start();
    for round in 0..4 {
        propose(&mut stage, &round.to_string());
        allow(&mut stage);
    }
    for _ in 1..ATTEMPTS_MAX {
        stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
        stage.wake();
    }
    assert_eq!((stage.status(), stage.run.attempt), (RunStatus::Running, 4 + ATTEMPTS_MAX));
    let kept = stage.run.asks.last().map(|raised| &raised.ask.spec.ask_id);
    assert_eq!(stage.run.approval(), kept, "a retry keeps the approval");
    stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolAgentLost));
}

#[test]
fn a_proposal_of_a_run_that_is_called_off_is_not_shown_to_anybody() {
    let mut stage = Plan::default().start();
    stage.take(&cancel());
    propose(&mut stage, "mail");
    assert!(stage.run.is_over() && stage.run.asks.is_empty());
}

#[test]
fn a_gate_and_a_proposal_are_two_approvals() {
    let mut stage = Plan::of(|spec| spec.gate = gate()).start();
    let first = allow(&mut stage);
    assert_eq!(stage.run.approval(), Some(&first));
    propose(&mut stage, "mail");
    let second = allow(&mut stage);
    assert_eq!(stage.run.approval(), Some(&second));
    assert_eq!(stage.run.attempt, 2);
}
