//! The single end of a call.

use serde_json::{Value, json};
use wharf_protocol::agent::{Breach, CallOutcome, CallReport, CoreEvent, SendError};
use wharf_vocab::{Code, Fault, Object};

use super::pair::Pair;
use super::stage::{AgentStage, CoreStage, breaches, call_id, ends, object, request};

/// Sends a result for a fresh call; returns its outcome and what was wrong with it.
fn result(payload: &Value) -> (CallOutcome, Vec<Breach>) {
    let mut stage = CoreStage::calling("c-1");
    let mut payload = payload.clone();
    payload["call_id"] = json!("c-1");
    stage.say_of_call("agent.tool.result", &payload);
    let events = stage.events();
    let ends = ends(&events);
    assert_eq!(ends.len(), 1, "{events:?}");
    (ends[0].1.outcome.clone(), breaches(&events))
}

fn code(outcome: &CallOutcome) -> &str {
    match outcome {
        CallOutcome::Succeeded(_) => "",
        CallOutcome::Failed(fault) | CallOutcome::Canceled(fault) => fault.code.as_str(),
    }
}

#[test]
fn r117_an_agent_gives_each_call_exactly_one_result() {
    let mut stage = AgentStage::working("c-1");
    let (now, id) = (stage.moment(), call_id("c-1"));
    let outcome = CallOutcome::Succeeded(Object::new());
    stage.session.finish(now, &id, outcome.clone().into()).expect("open");
    let again = stage.session.finish(now, &id, outcome.into());
    assert_eq!(again, Err(SendError::NotOpen));
    assert_eq!(stage.answer()["type"], "agent.tool.result");
}

#[test]
fn r118_a_second_result_is_ignored() {
    let mut stage = CoreStage::calling("c-1");
    stage.succeed("c-1");
    stage.events();
    let second = json!({"call_id": "c-1", "status": "failed"});
    stage.say_of_call("agent.tool.result", &second);
    let events = stage.events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(breaches(&events), [Breach::SecondResult]);
}

#[test]
fn r119_a_result_for_an_unknown_call_is_ignored() {
    let mut stage = CoreStage::calling("c-1");
    stage.succeed("c-9");
    let events = stage.events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(breaches(&events), [Breach::UnknownCall]);
    assert_eq!(stage.session.open_calls().count(), 1);

    let mut other = CoreStage::ready();
    other.succeed("c-1");
    assert_eq!(other.breaches(), [Breach::UnknownCall], "the call of another session");
}

#[test]
fn r120_a_status_nobody_knows_fails_the_call() {
    for status in [json!("exploded"), json!("SUCCEEDED"), json!(7), json!(null)] {
        let (outcome, breaches) = result(&json!({"status": status, "output": {}}));
        assert_eq!(code(&outcome), "tool.protocol_violation", "{status}");
        assert_eq!(breaches, [Breach::Result]);
    }
}

#[test]
fn r121_what_did_not_succeed_carries_an_error_and_what_did_an_output() {
    let fault = Fault::new(Code::ToolInternal, "The tool failed inside.");
    for (outcome, status) in [
        (CallOutcome::Succeeded(object(json!({"a": 1}))), "succeeded"),
        (CallOutcome::Failed(fault.clone()), "failed"),
        (CallOutcome::Canceled(fault), "canceled"),
    ] {
        let mut stage = AgentStage::working("c-1");
        stage.session.finish(stage.moment(), &call_id("c-1"), outcome.into()).expect("open");
        let payload = stage.answer()["payload"].clone();
        assert_eq!(payload["status"], status);
        assert_eq!(payload["output"].is_object(), status == "succeeded");
        assert_eq!(payload["error"]["code"].is_string(), status != "succeeded");
    }
}

#[test]
fn r122_results_that_contradict_themselves_fail() {
    let (outcome, breaches) = result(&json!({"status": "failed"}));
    assert_eq!(code(&outcome), "tool.unspecified");
    assert_eq!(breaches, []);
    let error = json!({"code": "acme.no_stock", "message": "Empty."});
    let (outcome, breaches) = result(&json!({"status": "succeeded", "output": {}, "error": error}));
    assert!(matches!(&outcome, CallOutcome::Failed(_)));
    assert_eq!(code(&outcome), "acme.no_stock");
    assert_eq!(breaches, [Breach::Contradiction]);
}

#[test]
fn r123_a_canceled_call_says_so() {
    let (outcome, _) = result(&json!({"status": "canceled"}));
    assert!(matches!(&outcome, CallOutcome::Canceled(_)));
    assert_eq!(code(&outcome), "tool.canceled");
    let error = json!({"code": "acme.unplugged", "message": "Unplugged."});
    let (outcome, _) = result(&json!({"status": "canceled", "error": error}));
    assert_eq!(code(&outcome), "acme.unplugged");
}

#[test]
fn an_error_at_the_top_counts_when_the_payload_has_none() {
    let mut stage = CoreStage::calling("c-1");
    let payload = json!({"call_id": "c-1", "status": "failed"});
    let more = json!({"request_id": "r-1",
        "error": {"code": "acme.top", "message": "Top."}});
    stage.say_with("agent.tool.result", &payload, &more);
    assert_eq!(stage.failure(), "acme.top");
}

#[test]
fn r124_an_output_is_an_object() {
    for output in [json!([]), json!("x"), json!(7), json!(true)] {
        let (outcome, _) = result(&json!({"status": "succeeded", "output": output}));
        assert_eq!(code(&outcome), "tool.invalid_output");
    }
    let (outcome, _) = result(&json!({"status": "succeeded"}));
    assert_eq!(outcome, CallOutcome::Succeeded(Object::new()));
}

#[test]
fn r125_an_output_above_the_tools_limit_is_not_given_on() {
    let mut stage = CoreStage::ready();
    let mut call = request("c-1");
    call.output_bytes_max = Some(100);
    stage.session.call(stage.moment(), call).expect("taken");
    let payload =
        json!({"call_id": "c-1", "status": "succeeded", "output": {"canary": "x".repeat(200)}});
    stage.say_of_call("agent.tool.result", &payload);
    let events = stage.events();
    assert!(!format!("{events:?}").contains("canary"));
    assert_eq!(code(&ends(&events)[0].1.outcome), "tool.output_too_large");
}

#[test]
fn r127_times_are_in_order_even_when_the_calendar_is_not() {
    let mut stage = AgentStage::working("c-1");
    let mut now = stage.moment();
    now.ms += 1_000;
    now.at.0 -= 5_000;
    let outcome = CallOutcome::Succeeded(Object::new());
    stage.session.finish(now, &call_id("c-1"), outcome.into()).expect("open");
    let payload = stage.answer()["payload"].clone();
    assert_eq!(payload["started_at"], "2026-01-16T12:00:00.000Z");
    assert_eq!(payload["finished_at"], "2026-01-16T12:00:00.000Z");
    assert_eq!(payload["metrics"]["duration_ms"], 1_000);
}

#[test]
fn outputs_that_the_agent_wrote_itself_are_named_in_the_result() {
    let output = json!({"report": {"$written": true}, "inline": {"value": 7}});
    let (outcome, _) = result(&json!({"status": "succeeded", "output": output}));
    assert_eq!(outcome, CallOutcome::Succeeded(object(output)));
}

#[test]
fn r165_a_cost_is_a_whole_number_or_nothing() {
    let check = |cost: Value| {
        let mut stage = CoreStage::calling("c-1");
        let metrics = json!({"cost_micro": cost, "cpu_ms": 3});
        let payload = json!({"call_id": "c-1", "status": "succeeded", "metrics": metrics});
        stage.say_of_call("agent.tool.result", &payload);
        let events = stage.events();
        let end = ends(&events).remove(0).1;
        assert!(matches!(end.outcome, CallOutcome::Succeeded(_)));
        assert_eq!(end.metrics, object(json!({"cpu_ms": 3})));
        (end.cost_micro, breaches(&events))
    };
    assert_eq!(check(json!(250)), (250, vec![]));
    assert_eq!(check(json!(0)), (0, vec![]));
    assert_eq!(check(json!(u64::MAX)), (u64::MAX, vec![]));
    let huge: Value = serde_json::from_str("18446744073709551616").expect("JSON");
    for wrong in [json!(-1), json!(1.5), json!("250"), json!(null), json!({}), json!(1e30), huge] {
        assert_eq!(check(wrong.clone()), (0, vec![Breach::Cost]), "{wrong}");
    }
}

#[test]
fn r165_an_agent_reports_its_cost() {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    let report = CallReport {
        cost_micro: Some(1_200),
        ..CallReport::from(CallOutcome::Succeeded(Object::new()))
    };
    pair.agent.finish(pair.moment(), &call_id("c-1"), report).expect("open");
    pair.pump();
    let events = pair.core_events();
    assert!(matches!(&events[..], [CoreEvent::CallEnded { end, .. }] if end.cost_micro == 1_200));
}
