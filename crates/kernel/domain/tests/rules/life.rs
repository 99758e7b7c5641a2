//! A run's life from being accepted to its outcome: the ordinary one, the approval that guards
//! dispatch, and providers that are not there.

use wharf_domain::run::{AttemptError, RunInput};
use wharf_domain::{Audience, Availability, Outcome, Resolution, Run, RunEntry};
use wharf_vocab::limits::{APPROVAL_DEADLINE_MS, PROVIDER_WAIT_MS};
use wharf_vocab::{AskKind, Code, Fault, RunStatus, Timestamp};

use crate::stage::{
    Plan, Stage, assert_stands, cancel, denied, down, effects, executed, gate, kinds, object,
    person, resolve, token,
};

#[test]
fn an_ordinary_run_is_two_decisions() {
    let (mut stage, created) = Plan::default().try_start().expect("accepted");
    assert_eq!(kinds(&created.entries), ["created", "attempt_started"]);
    assert_eq!(effects(&created.effects), ["dispatch"]);
    assert_eq!((stage.status(), stage.run.attempt), (RunStatus::Running, 1));

    stage.wait(250);
    let ended = stage.take(&stage.ended(Ok(object("result")), 7));
    assert_eq!(kinds(&ended.entries), ["ended"]);
    assert_eq!(ended.effects, []);
    assert_stands(&stage, RunStatus::Succeeded, None);
    assert_eq!(stage.run.outcome, Some(Outcome::Succeeded { outputs: object("result") }));
    assert_eq!(stage.run.cost_micro, 7);
    assert_eq!(stage.run.started_at, Some(stage.run.created_at));
    assert_eq!(stage.run.ended_at, Some(stage.now));

    let summary = stage.run.summary();
    assert_eq!((summary.status, summary.attempt, summary.cost_micro), (stage.status(), 1, 7));
    assert_eq!(summary.error, None);
}

#[test]
fn a_provider_may_refuse_or_stop_by_itself() {
    let fault = Fault::new(Code::RunModeUnsupported, "The tool cannot pretend.");
    let cases = [
        (AttemptError::Refused(fault.clone()), RunStatus::Refused),
        (AttemptError::Canceled(fault), RunStatus::Canceled),
    ];
    for (error, status) in cases {
        let mut stage = Plan::of(|spec| spec.side_effect_free = true).start();
        stage.take(&stage.ended(Err(error), 0));
        assert_stands(&stage, status, Some(Code::RunModeUnsupported));
    }
}

#[test]
fn output_beyond_the_limit_stops_the_attempt_and_fails_the_run() {
    let mut stage = Plan::of(|spec| spec.side_effect_free = true).start();
    let attempt_id = stage.attempt_id();
    let stale = RunInput::OutputTooLarge { attempt_id: "another".parse().expect("an id") };
    stage.ignore(&stale);
    let decision = stage.take(&RunInput::OutputTooLarge { attempt_id });
    assert_eq!(effects(&decision.effects), ["cancel"]);
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolOutputTooLarge));
}

#[test]
fn results_of_other_attempts_and_late_results_change_nothing() {
    let mut stage = Plan::default().start();
    let RunInput::AttemptEnded { report, .. } = stage.succeeded() else { unreachable!() };
    let attempt_id = "another".parse().expect("an id");
    stage.ignore(&RunInput::AttemptEnded { attempt_id, report });

    let result = stage.succeeded();
    stage.take(&result);
    let before = stage.run.clone();
    stage.ignore(&result);
    assert_eq!(stage.run, before);
}

#[test]
fn a_stream_that_does_not_begin_with_a_creation_is_no_run() {
    let stage = Plan::default().start();
    let tail = stage.journal[1..].iter().map(|(at, entry)| (*at, entry));
    assert_eq!(Run::replay(tail), None);
    assert_eq!(Run::replay(std::iter::empty::<(Timestamp, &RunEntry)>()), None);
}

fn gated() -> Stage {
    Plan::of(|spec| spec.gate = gate()).start()
}

#[test]
fn a_run_that_needs_approval_waits_with_a_lock_on_what_will_run() {
    let (stage, created) = Plan::of(|spec| spec.gate = gate()).try_start().expect("accepted");
    assert_eq!(kinds(&created.entries), ["created", "ask_raised"]);
    assert_eq!(created.effects, []);
    assert_eq!((stage.status(), stage.run.attempt), (RunStatus::Waiting, 0));

    let raised = stage.run.open_asks().next().expect("an ask is open");
    let ask = &raised.ask.spec;
    assert!(raised.gate);
    assert_eq!((ask.kind, &ask.audience), (AskKind::Approval, &Audience::Person));
    assert_eq!(ask.args_digest, Some(stage.run.spec.args_digest()));
    assert_eq!(ask.tool_hash, Some(stage.run.spec.tool_hash.clone()));
    assert_eq!(ask.caller, stage.run.spec.caller);
    assert_eq!(ask.deadline, stage.now.plus_ms(APPROVAL_DEADLINE_MS));
}

#[test]
fn an_approved_run_goes_on_and_the_approval_is_used_up() {
    let mut stage = gated();
    let allow = resolve(stage.open_ask(), Resolution::ALLOW, person("p"));
    let decision = stage.take(&allow);
    assert_eq!(kinds(&decision.entries), ["ask_resolved", "attempt_started"]);
    assert_eq!(effects(&decision.effects), ["dispatch"]);
    assert!(stage.reject(&allow).is(Code::AskDecided));
    assert_eq!(stage.run.attempt, 1);
}

#[test]
fn an_approved_run_meets_its_provider_as_it_is_then() {
    let cases = [
        (Availability::Coming, RunStatus::Queued, None),
        (Availability::Unhealthy, RunStatus::Failed, Some(Code::ToolAgentUnhealthy)),
        (down(), RunStatus::Failed, Some(Code::ToolUnavailable)),
    ];
    for (provider, status, code) in cases {
        let mut stage = gated();
        stage.provider = provider;
        stage.take(&resolve(stage.open_ask(), Resolution::ALLOW, person("p")));
        assert_stands(&stage, status, code);
    }
}

#[test]
fn a_denied_expired_or_canceled_approval_ends_the_run_before_anything_was_dispatched() {
    type Act = fn(&mut Stage) -> wharf_domain::run::Decision;
    let deny: Act = |stage| stage.take(&resolve(stage.open_ask(), denied(), person("p")));
    let cases = [
        (deny, RunStatus::Refused, Code::AskDenied),
        ((|stage| stage.wake()) as Act, RunStatus::Refused, Code::AskExpired),
        (|stage| stage.take(&cancel()), RunStatus::Canceled, Code::ToolCanceled),
    ];
    for (act, status, code) in cases {
        let mut stage = gated();
        let decision = act(&mut stage);
        assert_eq!(kinds(&decision.entries), ["ask_resolved", "ended"]);
        assert_eq!(decision.effects, []);
        assert_stands(&stage, status, Some(code));
        assert_eq!((stage.run.attempt, stage.run.started_at), (0, None));
    }
}

#[test]
fn a_denial_tells_the_caller_why() {
    let mut stage = gated();
    let deny = Resolution::Deny { reason: "it is Friday".to_owned() };
    stage.take(&resolve(stage.open_ask(), deny, person("p")));
    assert!(stage.error().message.contains("it is Friday"), "{}", stage.error().message);
}

#[test]
fn an_approval_given_after_its_expiry_starts_nothing() {
    let mut stage = gated();
    stage.wait(APPROVAL_DEADLINE_MS);
    let late = resolve(stage.open_ask(), Resolution::ALLOW, person("p"));
    assert!(stage.reject(&late).is(Code::AskExpired));
    assert_eq!(stage.run.attempt, 0);
    stage.take(&RunInput::Tick);
    assert_stands(&stage, RunStatus::Refused, Some(Code::AskExpired));
}

#[test]
fn a_gated_run_does_not_care_for_its_provider() {
    let mut stage = gated();
    for provider in [Availability::Coming, down(), Availability::Unhealthy, Availability::Up] {
        stage.provider = provider;
        stage.ignore(&RunInput::Provider);
    }
}

#[test]
fn a_provider_that_is_up_coming_unhealthy_or_down() {
    let cases = [
        (Availability::Up, RunStatus::Running, None, None),
        (Availability::Coming, RunStatus::Queued, None, None),
        (Availability::Unhealthy, RunStatus::Failed, Some(Code::ToolAgentUnhealthy), Some("no")),
        (down(), RunStatus::Failed, Some(Code::ToolUnavailable), Some("no")),
    ];
    for (provider, status, code, acted) in cases {
        // At once, and after having been awaited.
        let at_once = Plan::default().provider(provider.clone()).start();
        let mut awaited = Plan::default().provider(Availability::Coming).start();
        awaited.wait(10);
        awaited.provider(provider);
        for stage in [at_once, awaited] {
            assert_stands(&stage, status, code);
            let error = stage.run.outcome.as_ref().and_then(Outcome::error);
            assert_eq!(error.and_then(executed), acted, "nothing was tried");
        }
    }
}

#[test]
fn a_provider_that_is_down_for_a_reason_of_its_own_says_that_and_nothing_else() {
    let reason = "The files are not the ones that were approved.".to_owned();
    let drifted = Availability::Down { reason: reason.clone(), code: Code::AgentDrifted };
    for (provider, code, message) in [
        (drifted, Code::AgentDrifted, reason.as_str()),
        (
            Availability::down("It crashed."),
            Code::ToolUnavailable,
            "The tool's provider is down: It crashed.",
        ),
    ] {
        let stage = Plan::default().provider(provider).start();
        assert_stands(&stage, RunStatus::Failed, Some(code));
        let error = stage.run.outcome.as_ref().and_then(Outcome::error).expect("failed");
        assert_eq!((error.message.as_str(), error.retryable), (message, code.is_retryable()));
    }
}

#[test]
fn a_provider_is_awaited_for_the_timeout_or_half_a_minute() {
    let cases = [(5_000, 5_000), (PROVIDER_WAIT_MS, PROVIDER_WAIT_MS), (600_000, PROVIDER_WAIT_MS)];
    for (timeout_ms, wait_ms) in cases {
        let plan = Plan::of(|spec| spec.timeout_ms = timeout_ms).provider(Availability::Coming);
        let mut stage = plan.start();
        let until = stage.now.plus_ms(wait_ms);
        assert_eq!(stage.run.next_deadline(), Some(until));

        stage.wait(wait_ms / 2);
        assert_eq!(kinds(&stage.provider(Availability::Coming).entries), [""; 0]);
        assert_eq!(stage.run.next_deadline(), Some(until), "news do not lengthen the wait");

        stage.wake();
        assert_stands(&stage, RunStatus::Failed, Some(Code::ToolUnavailable));
        assert_eq!(executed(stage.error()), Some("no"));
    }
}

#[test]
fn a_token_that_started_the_run_cannot_approve_it() {
    let mut stage = gated();
    let own = resolve(stage.open_ask(), Resolution::ALLOW, token("starter"));
    assert!(stage.reject(&own).is(Code::PermissionDenied));
    assert_eq!(stage.status(), RunStatus::Waiting);
}
