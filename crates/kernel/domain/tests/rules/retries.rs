//! When another attempt follows, when it may begin, and what the caller learns about the effects.

use wharf_domain::run::{AttemptError, Pause, RunInput};
use wharf_domain::{Availability, KeysKept, RunEntry, RunSpec};
use wharf_vocab::limits::{ATTEMPTS_MAX, RETRY_BACKOFF_MAX_MS, RETRY_BACKOFF_MS};
use wharf_vocab::{Code, Executed, Fault, FaultCode, RunStatus};

use crate::stage::{Plan, Stage, assert_stands, cancel, down, effects, executed, kinds};

const FREE: fn(&mut RunSpec) = |spec| spec.side_effect_free = true;
const KEYED: fn(&mut RunSpec) = |spec| {
    spec.idempotent = true;
    spec.idempotency_key = Some("key".to_owned());
};
const NO_KEY: fn(&mut RunSpec) = |spec| spec.idempotent = true;
const NOT_KEPT: fn(&mut RunSpec) = |spec| spec.idempotency_key = Some("key".to_owned());
const ACTS: fn(&mut RunSpec) = |_| {};

#[test]
fn another_attempt_follows_only_when_it_is_safe_and_may_help() {
    let retryable = Code::ToolAgentLost;
    let hopeless = Code::ToolFailed;
    let cases = [
        // The attempt provably never started.
        (ACTS, retryable, Executed::No, true),
        (ACTS, hopeless, Executed::No, false),
        (ACTS, retryable, Executed::Maybe, false),
        (ACTS, retryable, Executed::Yes, false),
        // The tool is declared free of side effects.
        (FREE, retryable, Executed::No, true),
        (FREE, retryable, Executed::Maybe, true),
        (FREE, retryable, Executed::Yes, true),
        (FREE, hopeless, Executed::Maybe, false),
        // The provider keeps keys and the run has one.
        (KEYED, retryable, Executed::Maybe, true),
        (KEYED, retryable, Executed::Yes, true),
        (KEYED, hopeless, Executed::Yes, false),
        (NO_KEY, retryable, Executed::Maybe, false),
        (NOT_KEPT, retryable, Executed::Maybe, false),
    ];
    for (row, (change, code, acted, again)) in cases.into_iter().enumerate() {
        let mut stage = Plan::of(change).start();
        let decision = stage.take(&stage.failed(code, acted));
        if again {
            assert_eq!(kinds(&decision.entries), ["attempt_failed"], "row {row}");
            assert_stands(&stage, RunStatus::Queued, None);
            assert_eq!(stage.run.last_failure.as_ref().map(|(_, acted)| *acted), Some(acted));
        } else {
            assert_eq!(kinds(&decision.entries), ["ended"], "row {row}");
            assert_stands(&stage, RunStatus::Failed, Some(code));
            assert_eq!(executed(stage.error()), Some(acted.as_str()), "row {row}");
        }
    }
}

#[test]
fn a_providers_own_code_is_retried_when_the_provider_says_so() {
    for retryable in [true, false] {
        let code = FaultCode::parse("acme.no_stock").expect("well-formed");
        let fault = Fault::with_code(code.clone(), "No stock at the moment.", retryable);
        let mut stage = Plan::of(FREE).start();
        stage.take(&stage.ended(Err(AttemptError::Failed(fault, Executed::Yes)), 0));
        assert_eq!(stage.run.is_over(), !retryable);
        if !retryable {
            assert_eq!(stage.error().code, code, "the code passes through");
        }
    }
}

#[test]
fn refusals_and_cancellations_are_never_retried() {
    let fault = Fault::new(Code::ToolBusy, "Not now.");
    for error in [AttemptError::Refused(fault.clone()), AttemptError::Canceled(fault)] {
        let mut stage = Plan::of(FREE).start();
        stage.take(&stage.ended(Err(error), 0));
        assert!(stage.run.is_over());
    }
}

#[test]
fn a_run_that_is_being_canceled_is_never_retried() {
    for code in [Code::ToolBusy, Code::ToolAgentLost, Code::ToolUnavailable] {
        let mut stage = Plan::of(FREE).start();
        stage.take(&cancel());
        stage.take(&stage.failed(code, Executed::No));
        assert!(stage.run.is_over(), "{code}");
        assert_eq!(stage.run.attempt, 1);
    }
}

#[test]
fn attempts_are_bounded_visible_and_paused_longer_each_time() {
    for chance in [0, 1, 7, u64::MAX] {
        let mut plan = Plan::of(FREE);
        plan.chance = chance;
        let mut stage = plan.start();
        let mut full = RETRY_BACKOFF_MS;
        for attempt in 1..ATTEMPTS_MAX {
            assert_eq!(stage.run.attempt, attempt);
            stage.wait(3);
            stage.take(&stage.failed(Code::ToolBusy, Executed::Maybe));
            let Some(Pause::Backoff(at)) = stage.run.pause else { panic!("a pause follows") };
            let pause = at.ms_since(stage.now);
            assert!((full / 2..=full).contains(&pause), "attempt {attempt} pauses {pause}");
            full = (full * 2).min(RETRY_BACKOFF_MAX_MS);

            stage.now = at;
            let decision = stage.take(&RunInput::Tick);
            assert_eq!(kinds(&decision.entries), ["attempt_started"]);
            assert_eq!(effects(&decision.effects), ["dispatch"]);
        }
        assert_eq!(stage.run.attempt, ATTEMPTS_MAX);
        assert_eq!(stage.run.started_at, Some(stage.run.created_at), "the first attempt's start");
        stage.take(&stage.failed(Code::ToolBusy, Executed::Maybe));
        assert_stands(&stage, RunStatus::Failed, Some(Code::ToolBusy));

        let failures = stage.journal.iter().filter_map(|(_, entry)| match entry {
            RunEntry::AttemptFailed(failed) => Some((&failed.error, failed.executed)),
            _ => None,
        });
        for (error, acted) in failures {
            assert!(error.is(Code::ToolBusy));
            assert_eq!((acted, executed(error)), (Executed::Maybe, Some("maybe")));
        }
    }
}

#[test]
fn only_time_ends_the_pause_before_a_retry() {
    let mut stage = Plan::of(FREE).start();
    stage.take(&stage.failed(Code::ToolBusy, Executed::Maybe));
    stage.ignore(&RunInput::Provider);
    stage.ignore(&RunInput::Tick);
    stage.ignore(&RunInput::Recovered);
    stage.wake();
    assert_eq!(stage.run.attempt, 2);
}

#[test]
fn a_retry_meets_the_provider_as_it_is_then() {
    let cases = [
        (Availability::Coming, RunStatus::Queued, None),
        (Availability::Unhealthy, RunStatus::Failed, Some(Code::ToolAgentUnhealthy)),
        (down(), RunStatus::Failed, Some(Code::ToolUnavailable)),
    ];
    for (provider, status, code) in cases {
        let mut stage = Plan::of(FREE).start();
        stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
        stage.provider = provider;
        stage.wake();
        assert_stands(&stage, status, code);
    }
}

/// Whoever reads the error must know whether *anything* of the run may have acted.
#[test]
fn the_last_error_does_not_hide_what_an_earlier_attempt_may_have_done() {
    type Act = fn(&mut Stage);
    let ends: [(&str, Act); 6] = [
        ("is busy, and then down", |stage| {
            stage.wake();
            stage.take(&stage.failed(Code::ToolAgentLost, Executed::No));
            stage.provider = down();
            stage.wake();
        }),
        ("fails again without having started", |stage| {
            stage.wake();
            stage.take(&stage.failed(Code::ToolFailed, Executed::No));
        }),
        ("is down", |stage| {
            stage.provider = down();
            stage.wake();
        }),
        ("is unhealthy", |stage| {
            stage.provider = Availability::Unhealthy;
            stage.wake();
        }),
        ("does not come back", |stage| {
            stage.provider = Availability::Coming;
            stage.wake();
            stage.wake();
        }),
        ("is not asked again", |stage| {
            stage.take(&cancel());
        }),
    ];
    for (what, act) in ends {
        let mut stage = Plan::of(FREE).start();
        stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
        act(&mut stage);
        assert_eq!(executed(stage.error()), Some("maybe"), "the provider {what}");
    }
}

#[test]
fn r102_r169_a_key_is_a_reason_to_try_again_only_while_it_is_kept() {
    let kept = |for_ms: Option<u64>, beyond_process: bool| {
        move |spec: &mut RunSpec| {
            KEYED(spec);
            spec.keys_kept = Some(KeysKept { for_ms, beyond_process });
        }
    };
    let (busy, lost) = (Code::ToolBusy, Code::ToolAgentLost);
    // For how long, beyond the process, after how long, why, and whether there is another attempt.
    for (row, (for_ms, beyond_process, after_ms, code, again)) in [
        (None, false, 3_600_000, busy, true),
        (None, false, 0, lost, false),
        (None, true, 0, lost, true),
        (Some(60_000), false, 10_000, busy, true),
        (Some(60_000), false, 10_000, lost, false),
        (Some(60_000), true, 10_000, lost, true),
        (Some(60_000), true, 60_000, busy, false),
        (Some(60_000), true, 60_000, lost, false),
    ]
    .into_iter()
    .enumerate()
    {
        let mut plan = Plan::of(ACTS);
        kept(for_ms, beyond_process)(&mut plan.spec);
        plan.spec.timeout_ms = 7_200_000;
        let mut stage = plan.start();
        stage.wait(after_ms);
        stage.take(&stage.failed(code, Executed::Maybe));
        assert_eq!(!stage.run.is_over(), again, "row {row}");
    }
}

#[test]
fn r169_the_pause_before_another_attempt_counts_too() {
    let mut plan = Plan::of(KEYED);
    plan.spec.keys_kept =
        Some(KeysKept { for_ms: Some(RETRY_BACKOFF_MS / 2), beyond_process: true });
    let mut stage = plan.start();
    stage.take(&stage.failed(Code::ToolBusy, Executed::Maybe));
    assert!(stage.run.is_over(), "the key would be forgotten by then");
}
