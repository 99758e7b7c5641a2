//! Sessions with one fault each, and the requirements that rules find broken in them.

use serde_json::{Value, json};

use super::judge;
use crate::findings::{Findings, Verdict};
use crate::requirements::CHECKED;
use crate::transcript::Transcript;

/// A session in which everything is right up to the first call.
fn session() -> Transcript {
    let mut seen = Transcript::default();
    let hello = json!({
        "session_token": "secret-token", "agent_id": "a.b", "agent_version": "1.0.0",
        "protocol": { "supported_versions": [1], "capabilities": [] },
    });
    receive(&mut seen, "agent.hello", json!({ "payload": hello }));
    let welcome = json!({ "session_id": "s1" });
    seen.sent(json!({ "type": "core.welcome", "id": "w1", "payload": welcome }));
    let call = json!({ "call_id": "c1", "tool_id": "a.b/t", "input": {} });
    seen.sent(json!({ "type": "core.tool.call", "id": "k1", "request_id": "q1", "payload": call }));
    seen
}

/// Takes a message of the agent whose envelope is filled up where it says nothing else.
fn receive(seen: &mut Transcript, kind: &str, mut fields: Value) {
    let id = format!("m{}", seen.lines.len());
    let usual = [("v", json!(1)), ("id", json!(id)), ("ts", json!("2026-01-01T00:00:00Z"))];
    for (name, value) in usual.into_iter().chain([("type", json!(kind))]) {
        if fields.get(name).is_none() {
            fields[name] = value;
        }
    }
    seen.frame(fields.to_string().as_bytes());
}

fn stream(seq: u64, channel: &str, data: Value) -> (&'static str, Value) {
    let mut payload = json!({ "call_id": "c1", "seq": seq, "channel": channel });
    payload["data"] = data;
    ("agent.tool.stream", json!({ "request_id": "q1", "payload": payload }))
}

fn result(status: &str, more: &Value) -> (&'static str, Value) {
    let mut payload = json!({ "call_id": "c1", "status": status });
    for (name, value) in more.as_object().into_iter().flatten() {
        payload[name] = value.clone();
    }
    ("agent.tool.result", json!({ "request_id": "q1", "in_reply_to": "k1", "payload": payload }))
}

fn heartbeat(session_id: &str, uptime_ms: i64, status: &str) -> (&'static str, Value) {
    let payload = json!({
        "session_id": session_id, "uptime_ms": uptime_ms, "inflight_calls": 0, "status": status,
    });
    ("agent.heartbeat", json!({ "payload": payload }))
}

#[track_caller]
fn check(messages: Vec<(&str, Value)>, expect: &[u16]) {
    let mut seen = session();
    for (kind, fields) in messages {
        receive(&mut seen, kind, fields);
    }
    let mut findings = Findings::default();
    judge(&seen, "secret-token", &mut findings);
    let broken = |number: &u16| matches!(findings.clone().take(*number), Some(Verdict::Fail(_)));
    let broken: Vec<u16> = CHECKED.iter().map(|(number, _)| *number).filter(broken).collect();
    assert_eq!(broken, expect, "{findings:?}");
}

#[test]
fn a_session_without_a_fault_breaks_nothing() {
    check(
        vec![
            heartbeat("s1", 1, "ok"),
            stream(1, "stdout", json!({ "text": "a" })),
            stream(2, "status", json!({ "text": "b", "fraction": 0.5 })),
            stream(3, "partial_result", json!({ "json": {} })),
            result("succeeded", &json!({ "output": {}, "metrics": { "cost_micro": 5 } })),
            heartbeat("s1", 1, "degraded"),
        ],
        &[],
    );
}

#[test]
fn r023_an_id_that_is_used_twice_is_found() {
    let (kind, mut twice) = heartbeat("s1", 1, "ok");
    twice["id"] = json!("m0");
    check(vec![(kind, twice)], &[23]);
}

#[test]
fn r105_numbers_that_do_not_follow_each_other_are_found() {
    let text = || json!({ "text": "a" });
    check(vec![stream(2, "log", text())], &[105]);
    check(vec![stream(1, "log", text()), stream(1, "log", text())], &[105]);
    check(vec![stream(1, "log", text()), stream(3, "log", text())], &[105]);
}

#[test]
fn r107_channels_and_data_that_do_not_fit_are_found() {
    check(vec![stream(1, "music", json!({ "text": "a" }))], &[107]);
    check(vec![stream(1, "stdout", json!({ "json": {} }))], &[107]);
    check(vec![stream(1, "partial_result", json!({ "text": "a" }))], &[107]);
}

#[test]
fn r109_a_chunk_after_the_end_is_found() {
    let (kind, mut last) = stream(1, "log", json!({ "text": "a" }));
    last["payload"]["done"] = json!(true);
    check(vec![(kind, last), stream(2, "log", json!({ "text": "b" }))], &[109]);
    let end = result("succeeded", &json!({ "output": {} }));
    check(vec![end, stream(1, "log", json!({ "text": "late" }))], &[109]);
}

#[test]
fn r121_results_without_what_they_need_are_found() {
    check(vec![result("failed", &json!({}))], &[121]);
    check(vec![result("finished", &json!({}))], &[121]);
    check(vec![result("succeeded", &json!({ "output": {}, "error": error("tool.x") }))], &[121]);
}

fn error(code: &str) -> Value {
    json!({ "code": code, "message": "A reason." })
}

#[test]
fn r123_a_canceled_result_names_its_code() {
    check(vec![result("canceled", &json!({ "error": error("tool.canceled") }))], &[]);
    check(vec![result("canceled", &json!({ "error": error("oops") }))], &[123]);
}

#[test]
fn r127_times_that_run_backwards_are_found() {
    let times = json!({
        "output": {}, "started_at": "2026-01-02T00:00:00Z", "finished_at": "2026-01-01T00:00:00Z",
    });
    check(vec![result("succeeded", &times)], &[127]);
}

#[test]
fn r131_canceled_and_succeeded_at_once_are_found() {
    let canceled = result("canceled", &json!({ "error": error("tool.canceled") }));
    check(vec![result("succeeded", &json!({ "output": {} })), canceled], &[131]);
}

#[test]
fn r137_an_acknowledgement_behind_the_result_is_found() {
    let ack = json!({ "payload": { "call_id": "c1", "accepted": true } });
    let canceled = result("canceled", &json!({ "error": error("tool.canceled") }));
    check(vec![canceled, ("agent.tool.cancel_ack", ack)], &[137]);
}

#[test]
fn r140_heartbeats_that_do_not_tell_the_truth_are_found() {
    check(vec![heartbeat("s2", 1, "ok")], &[140]);
    check(vec![heartbeat("s1", 1, "fine")], &[140]);
    check(vec![heartbeat("s1", 9, "ok"), heartbeat("s1", 8, "ok")], &[140]);
}

#[test]
fn r029_errors_without_their_parts_are_found() {
    check(vec![result("failed", &json!({ "error": { "code": "tool.x" } }))], &[29]);
    let debug = json!({ "code": "tool.x", "message": "m", "debug": {} });
    check(vec![result("failed", &json!({ "error": debug }))], &[30]);
}

#[test]
fn r032_a_message_of_a_core_is_found() {
    check(vec![("core.ping", json!({ "payload": {} }))], &[32]);
}

#[test]
fn r052_a_token_behind_the_hello_is_found() {
    check(vec![stream(1, "log", json!({ "text": "it is secret-token" }))], &[52]);
}

#[test]
fn r165_a_cost_that_is_no_whole_number_is_found() {
    for cost in [json!(-1), json!(0.5), json!("5")] {
        let metrics = json!({ "output": {}, "metrics": { "cost_micro": cost } });
        check(vec![result("succeeded", &metrics)], &[165]);
    }
}

#[test]
fn r168_a_fraction_outside_its_bounds_is_found() {
    check(vec![stream(1, "status", json!({ "text": "a", "fraction": 1.5 }))], &[168]);
}
