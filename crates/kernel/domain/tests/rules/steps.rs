//! Durable steps in code: what a run remembers of them, and how long it goes on.

use serde_json::{Value, json};
use wharf_domain::RunEntry;
use wharf_domain::run::RunInput;
use wharf_domain::run::steps::{LocalKept, StepEntry, StepInput, StepMark};
use wharf_vocab::limits::{DURABLE_FAILURES_MAX, DURABLE_STEPS_MAX, DURABLE_VALUES_BYTES_MAX};
use wharf_vocab::{Code, Digest, Executed, Fault, FaultCode, RunStatus, StepName};

use crate::stage::{Plan, Stage, effects, executed, kinds};

fn durable() -> Stage {
    Plan::of(|spec| spec.durable = true).start()
}

fn name(name: &str, n: u32) -> StepName {
    StepName::new(name, n).expect("valid")
}

fn ask(stage: &Stage, step: StepName, tool: &str, arguments: &str) -> RunInput {
    let (tool, attempt_id) = (tool.parse().expect("a tool id"), stage.attempt_id());
    let arguments = Digest::of(&[arguments.as_bytes()]);
    RunInput::Step(StepInput::Ask { attempt_id, step, tool, arguments })
}

fn ended(stage: &Stage, step: StepName) -> RunInput {
    let child = stage.run.step_run(&step);
    RunInput::Step(StepInput::Ended { step, child, status: RunStatus::Succeeded })
}

fn keep(stage: &Stage, step: StepName, value: Option<Value>) -> RunInput {
    RunInput::Step(StepInput::Keep { attempt_id: stage.attempt_id(), step, value })
}

/// The attempt is lost, and the next one begins.
fn again(stage: &mut Stage) {
    stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
    stage.wake();
}

#[test]
fn f022_a_step_is_written_down_once_under_a_name_of_its_own() {
    let mut stage = durable();
    let decision = stage.take(&ask(&stage, name("fetch", 1), "web/fetch", "a"));
    let [RunEntry::Step(entry)] = &decision.entries[..] else { panic!("{:?}", decision.entries) };
    let StepEntry::Asked(asked) = &**entry else { panic!("{entry:?}") };
    assert!(asked.child.as_str().starts_with("st-"), "{}", asked.child);
    let other = stage.run.step_run(&name("fetch", 2));
    assert_ne!(asked.child, other);
    for child in [&asked.child, &other] {
        let key = wharf_vocab::RunKey { run: child.clone(), ..stage.run.key.clone() };
        assert_eq!(key.shard(), stage.run.key.shard(), "steps live beside their run");
    }
    stage.ignore(&ask(&stage, name("fetch", 1), "web/fetch", "a"));
    again(&mut stage);
    stage.ignore(&ask(&stage, name("fetch", 1), "web/fetch", "a"));
    stage.take(&ended(&stage, name("fetch", 1)));
    stage.ignore(&ended(&stage, name("fetch", 1)));
    stage.ignore(&ask(&stage, name("fetch", 1), "web/fetch", "a"));
}

#[test]
fn f022_only_the_attempt_under_way_asks_and_only_of_a_durable_tool() {
    let mut stage = durable();
    let late = ask(&stage, name("fetch", 1), "web/fetch", "a");
    again(&mut stage);
    assert_eq!(stage.reject(&late).code, Code::PermissionDenied.into());
    let mut stage = Plan::default().start();
    let wanted = ask(&stage, name("fetch", 1), "web/fetch", "a");
    assert_eq!(stage.reject(&wanted).code, Code::PermissionDenied.into());
}

#[test]
fn f022_the_clock_of_an_attempt_stands_while_a_step_is_open() {
    let mut stage = durable();
    stage.take(&ask(&stage, name("slow", 1), "acme/slow", ""));
    assert_eq!(stage.run.next_deadline(), None);
    stage.wait(10 * 60_000);
    stage.take(&ended(&stage, name("slow", 1)));
    assert_eq!(stage.run.next_deadline(), Some(stage.now.plus_ms(60_000)));
}

#[test]
fn f023_what_was_kept_first_counts_and_comes_back() {
    let mut stage = durable();
    stage.ignore(&keep(&stage, name("dice", 1), None));
    stage.take(&keep(&stage, name("dice", 1), Some(json!(4))));
    again(&mut stage);
    stage.ignore(&keep(&stage, name("dice", 1), None));
    stage.ignore(&keep(&stage, name("dice", 1), Some(json!(6))));
    let log = stage.run.steps.as_deref().expect("durable");
    assert_eq!(log.get(&name("dice", 1)), Some(&StepMark::Local(json!(4))));
}

#[test]
fn f025_another_tool_or_other_arguments_end_the_run_and_name_both() {
    let cases: [(&str, &str, &str); 3] = [
        ("web/get", "a", "web/get with the arguments"),
        ("web/fetch", "b", "web/fetch with the arguments"),
        ("", "", "local code"),
    ];
    for (tool, arguments, now) in cases {
        let mut stage = durable();
        stage.take(&ask(&stage, name("fetch", 1), "web/fetch", "a"));
        again(&mut stage);
        let input = match tool {
            "" => keep(&stage, name("fetch", 1), Some(json!(1))),
            tool => ask(&stage, name("fetch", 1), tool, arguments),
        };
        let decision = stage.take(&input);
        assert_eq!(kinds(&decision.entries), ["ended"]);
        assert_eq!(effects(&decision.effects), ["cancel"]);
        let error = stage.error();
        assert_eq!(error.code, Code::StepDiverged.into());
        let before = "web/fetch with the arguments";
        assert!(error.message.contains("fetch#1") && error.message.contains(before), "{error}");
        assert!(error.details["now"].as_str().expect("text").starts_with(now), "{error}");
        assert_ne!(error.details["now"], error.details["before"]);
        assert_eq!(executed(error), Some("maybe"));
    }
}

#[test]
fn f026_an_attempt_of_a_durable_tool_is_repeated_whatever_the_reason() {
    let lost = [Code::ToolAgentLost, Code::ToolInternal, Code::ToolFailed, Code::ToolUnspecified];
    for code in lost {
        for acted in [Executed::No, Executed::Maybe, Executed::Yes] {
            let mut stage = durable();
            let decision = stage.take(&stage.failed(code, acted));
            assert_eq!(kinds(&decision.entries), ["attempt_failed"], "{code} {acted}");
        }
    }
    // Its time is over.
    let mut stage = durable();
    let decision = stage.wake();
    assert_eq!(kinds(&decision.entries), ["attempt_failed"]);
    assert_eq!(effects(&decision.effects), ["cancel"]);
    // Its core was killed.
    let mut stage = durable();
    let decision = stage.take(&RunInput::Recovered);
    assert_eq!(kinds(&decision.entries), ["attempt_failed"]);
}

#[test]
fn f026_what_its_author_raised_and_called_final_is_an_answer() {
    for (retryable, expected) in [(false, "ended"), (true, "attempt_failed")] {
        let mut stage = durable();
        let code = FaultCode::parse("acme.no_stock").expect("well-formed");
        let fault = Fault::with_code(code, "There is no stock left.", retryable);
        let error = wharf_domain::run::AttemptError::Failed(fault, Executed::Maybe);
        let decision = stage.take(&stage.ended(Err(error), 0));
        assert_eq!(kinds(&decision.entries), [expected]);
    }
}

#[test]
fn f026_five_failures_without_a_newly_finished_step_end_the_run() {
    let mut stage = durable();
    let lost = |stage: &mut Stage| stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
    for round in 1..=3 {
        for _ in 1..DURABLE_FAILURES_MAX {
            assert_eq!(kinds(&lost(&mut stage).entries), ["attempt_failed"]);
            stage.wake();
        }
        // One step more, and it may fail as often again.
        if round == 2 {
            stage.take(&keep(&stage, name("value", round), Some(json!(round))));
        } else {
            stage.take(&ask(&stage, name("fetch", round), "web/fetch", "a"));
            stage.take(&ended(&stage, name("fetch", round)));
        }
    }
    for _ in 1..DURABLE_FAILURES_MAX {
        assert_eq!(kinds(&lost(&mut stage).entries), ["attempt_failed"]);
        stage.wake();
    }
    assert_eq!(kinds(&lost(&mut stage).entries), ["ended"]);
    assert_eq!(stage.error().code, Code::ToolAgentLost.into());
}

#[test]
fn f026_what_has_begun_waits_for_a_provider_that_is_away() {
    let mut stage = durable();
    stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
    stage.provider = wharf_domain::Availability::Unhealthy;
    assert_eq!(kinds(&stage.wake().entries), ["provider_awaited"]);
    let decision = stage.provider(wharf_domain::Availability::Up);
    assert_eq!(kinds(&decision.entries), ["attempt_started"]);
}

#[test]
fn f022_f023_a_run_remembers_so_many_steps_and_so_large_values_and_no_more() {
    let mut stage = durable();
    let text = "x".repeat(usize::try_from(DURABLE_VALUES_BYTES_MAX / 2).expect("fits"));
    stage.take(&keep(&stage, name("large", 1), Some(json!(text))));
    let fault = stage.reject(&keep(&stage, name("large", 2), Some(json!(text))));
    assert_eq!((fault.code, fault.retryable), (Code::ToolLimit.into(), false));
    let mut stage = durable();
    for n in 1..=u32::try_from(DURABLE_STEPS_MAX).expect("few") {
        let kept = LocalKept { step: name("n", n), value: json!(n) };
        stage.run.apply(stage.now, &RunEntry::Step(Box::new(StepEntry::Kept(kept))));
    }
    let fault = stage.reject(&keep(&stage, name("one", 1), Some(json!(1))));
    assert_eq!(fault.code, Code::ToolLimit.into());
    let fault = stage.reject(&ask(&stage, name("two", 1), "web/fetch", "a"));
    assert_eq!(fault.code, Code::ToolLimit.into());
}
