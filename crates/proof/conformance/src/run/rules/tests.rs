//! Rules on sessions made by hand.

use serde_json::json;

use super::*;
use crate::findings::Verdict;
use crate::run::session::Taken;

fn seen(messages: &[Value], code: u16) -> Seen {
    let frame = |value: &Value| Taken { at: Duration::ZERO, value: Ok(value.clone()) };
    let end = Some(End::Closed { code, reason: String::new() });
    Seen { frames: messages.iter().map(frame).collect(), end }
}

fn ack_frame() -> Value {
    json!({ "kind": "Ack", "control": { "run_id": "r" } })
}

fn last(seq: u64, cost: impl Into<Value>) -> Value {
    let control = json!({
        "run_id": "r", "status": "success", "cost_micro": cost.into(), "final": true, "seq": seq,
    });
    json!({ "kind": "Response", "control": control, "outputs": { "text": "Hello world" } })
}

fn part(seq: u64, text: &str) -> Value {
    json!({
        "kind": "Response",
        "control": { "run_id": "r", "final": false, "seq": seq },
        "outputs": { "text": text },
    })
}

fn failed(seen: &Seen, full: bool) -> Vec<u16> {
    let asked = Asked { run_id: "r", sent: "", full, ack: Duration::from_secs(1) };
    let mut findings = Findings::default();
    judge(seen, &asked, &mut findings);
    (0..50).filter(|&number| matches!(findings.take(number), Some(Verdict::Fail(_)))).collect()
}

#[test]
fn t009_cumulative_parts_are_right_and_deltas_are_not() {
    let right = [ack_frame(), part(1, "Hello"), part(2, "Hello world"), last(3, 0)];
    assert_eq!(failed(&seen(&right, 1000), true), [0; 0]);
    let deltas = [ack_frame(), part(1, "Hello"), part(2, " world"), last(3, 0)];
    assert_eq!(failed(&seen(&deltas, 1000), true), [9]);
}

#[test]
fn t011_costs_are_whole_and_fit() {
    for cost in [json!(0), json!(12.0), json!(i64::MAX)] {
        assert_eq!(failed(&seen(&[ack_frame(), last(1, cost)], 1000), true), [0; 0]);
    }
    for cost in [json!(-1), json!(0.5), json!("1"), json!(null), json!(u64::MAX), json!(1e300)] {
        let run = seen(&[ack_frame(), last(1, cost.clone())], 1000);
        assert_eq!(failed(&run, true), [11], "{cost}");
    }
}

#[test]
fn the_original_protocol_leaves_more_out() {
    let log = json!({ "kind": "Log", "control": {}, "data": { "msg": "Loading" } });
    let run = seen(&[ack_frame(), log, last(1, 0)], 1000);
    assert_eq!(failed(&run, false), [0; 0]);
    assert_eq!(failed(&run, true), [8, 17]);
}

#[test]
fn t014_paths_and_traces_are_found_and_what_was_sent_is_not() {
    for text in [
        "Traceback (most recent call last): x",
        "cannot open /home/me/key.txt.",
        "open('/etc/passwd') failed",
        "no C:\\Users\\me",
        "one\ntwo",
    ] {
        assert!(safe::fault(text, "").is_some(), "{text}");
    }
    for text in
        ["The input text is missing.", "Use GET /run or and/or.", "https://a/b/c is refused."]
    {
        assert_eq!(safe::fault(text, ""), None, "{text}");
    }
    assert_eq!(safe::fault("/artifacts/x/y is refused.", r#"{"a":"/artifacts/x/y"}"#), None);
}

#[test]
fn t017_numbers_rise_and_only_what_was_refused_at_once_has_none() {
    let mut twice = [ack_frame(), part(1, "Hello"), last(1, 0)];
    assert_eq!(failed(&seen(&twice, 1000), true), [17]);
    twice[1]["control"]["seq"] = Value::Null;
    assert_eq!(failed(&seen(&twice, 1000), true), [17]);
    let refused = json!({
        "kind": "Response",
        "control": { "run_id": "r", "status": "error", "cost_micro": 0, "final": true },
        "outputs": {},
        "error": { "code": "ERR_INPUTS", "message": "Inputs must be an object." },
    });
    assert_eq!(failed(&seen(&[ack_frame(), refused], 1000), true), [0; 0]);
}
