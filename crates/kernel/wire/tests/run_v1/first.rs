//! The first frame: every row of how it may be wrong.

use serde_json::{Value, json};
use wharf_wire::run_v1::limits::{FRAME_BYTES_MAX, RUN_ID_BYTES_MAX};
use wharf_wire::run_v1::{FirstFrame, Mode, RunRequest, UnfitRequest, close, code, decode_first};

fn request() -> Value {
    json!({"kind": "Request", "control": {"run_id": "r1"}, "inputs": {"a": 1}, "outputs": {}})
}

fn with(pointer: &str, value: Value) -> Value {
    let mut request = request();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    request.pointer_mut(parent).expect("there")[name] = value;
    request
}

#[track_caller]
fn closed(text: &str, code: u16) {
    match decode_first(text, FRAME_BYTES_MAX) {
        Err(refusal) => {
            assert_eq!(refusal.code, code, "{text:.80}");
            assert!(!refusal.reason.is_empty() && refusal.reason.len() < 100);
        }
        Ok(other) => panic!("{text:.80} gave {other:?}"),
    }
}

#[track_caller]
fn accepted(frame: &Value) -> RunRequest {
    match decode_first(&frame.to_string(), FRAME_BYTES_MAX) {
        Ok(FirstFrame::Request(request)) => *request,
        other => panic!("{frame} gave {other:?}"),
    }
}

#[track_caller]
fn unfit(frame: &Value) -> UnfitRequest {
    match decode_first(&frame.to_string(), FRAME_BYTES_MAX) {
        Ok(FirstFrame::Unfit(unfit)) => unfit,
        other => panic!("{frame} gave {other:?}"),
    }
}

#[test]
fn t004_the_mode_is_mock_unless_it_says_real() {
    assert_eq!(accepted(&request()).control.mode, Mode::Mock);
    assert_eq!(accepted(&with("/control/mode", Value::Null)).control.mode, Mode::Mock);
    assert_eq!(accepted(&with("/control/mode", json!("mock"))).control.mode, Mode::Mock);
    assert_eq!(accepted(&with("/control/mode", json!("real"))).control.mode, Mode::Real);
    for mode in [json!("REAL"), json!(" real"), json!(""), json!("live"), json!(1), json!(["real"])]
    {
        let unfit = unfit(&with("/control/mode", mode));
        assert_eq!((unfit.run_id.as_str(), unfit.code), ("r1", code::INPUTS));
    }
}

#[test]
fn t004_additions_have_defaults_and_forms() {
    let plain = accepted(&request()).control;
    assert_eq!((plain.attempt, plain.refs, plain.after), (1, None, None));
    assert_eq!((plain.deadline_ms, plain.required.len()), (None, 0));
    let control = json!({"run_id": "r", "attempt": 2, "refs": ["a"], "after": 7.0,
        "deadline_ms": 5, "required": ["x"], "from_the_future": {}});
    let full = accepted(&with("/control", control)).control;
    assert_eq!((full.attempt, full.refs, full.after), (2, Some(vec!["a".into()]), Some(7)));
    assert_eq!((full.deadline_ms, full.required), (Some(5), vec!["x".to_owned()]));
    for (field, wrong) in [
        ("attempt", json!(0)),
        ("attempt", json!(-1)),
        ("attempt", json!(1.5)),
        ("attempt", json!("1")),
        ("attempt", json!(u64::MAX)),
        ("refs", json!("a")),
        ("refs", json!([1])),
        ("after", json!(-1)),
        ("deadline_ms", json!("soon")),
        ("required", json!({})),
    ] {
        assert_eq!(unfit(&with(&format!("/control/{field}"), wrong)).code, code::INPUTS, "{field}");
    }
}

#[test]
fn t005_not_json_closes_with_1007() {
    for text in ["", "hello", "{\"kind\":", "{\"kind\":\"Request\",}", "{} {}", "{\"a\":Infinity}"]
    {
        closed(text, close::INVALID);
    }
    closed(r#"{"kind":"Request","kind":"Request"}"#, close::INVALID);
    closed(r#"{"kind":"Request","control":{"run_id":"a","run_id":"b"}}"#, close::INVALID);
}

#[test]
fn t005_another_shape_or_kind_closes_with_1002() {
    for text in ["[]", "null", "\"Request\"", "17", "{}"] {
        closed(text, close::PROTOCOL);
    }
    for kind in [json!("request"), json!("Cancel"), json!("RunOpen"), json!(null), json!(1)] {
        closed(&with("/kind", kind).to_string(), close::PROTOCOL);
    }
}

#[test]
fn t005_no_run_id_closes_with_1008() {
    for control in [json!({}), json!(null), json!("r1"), json!([]), json!({"run_id": ""})] {
        closed(&with("/control", control).to_string(), close::POLICY);
    }
    for run_id in
        [json!(null), json!(7.5), json!(true), json!({}), json!("x".repeat(RUN_ID_BYTES_MAX + 1))]
    {
        closed(&with("/control/run_id", run_id).to_string(), close::POLICY);
    }
    closed(r#"{"kind":"Request","inputs":{}}"#, close::POLICY);
    closed(r#"{"kind":"Request","control":{"run_id":"a\nb"}}"#, close::POLICY);
}

#[test]
fn t005_a_whole_number_is_the_text_of_its_digits() {
    for (run_id, text) in
        [(json!(7), "7"), (json!(-1), "-1"), (json!(u64::MAX), "18446744073709551615")]
    {
        assert_eq!(accepted(&with("/control/run_id", run_id)).control.run_id, text);
    }
    let refusal = decode_first(&with("/control/run_id", json!(7.5)).to_string(), FRAME_BYTES_MAX);
    assert_eq!(refusal.expect_err("no id").reason, "control.run_id must be text");
}

#[test]
fn t005_too_large_closes_with_1009_before_it_is_read() {
    let text = request().to_string();
    assert!(decode_first(&text, text.len()).is_ok());
    let refusal = decode_first(&text, text.len() - 1).expect_err("too large");
    assert_eq!(refusal.code, close::TOO_LARGE);
    let refusal = decode_first(&"[".repeat(100), 99).expect_err("too large");
    assert_eq!(refusal.code, close::TOO_LARGE);
}

#[test]
fn t006_missing_and_null_are_empty_and_other_shapes_are_unfit() {
    let mut bare = request();
    bare.as_object_mut().expect("an object").retain(|key, _| key == "kind" || key == "control");
    let read = accepted(&bare);
    assert!(read.inputs.is_empty() && read.outputs.is_empty());
    for side in ["/inputs", "/outputs"] {
        accepted(&with(side, Value::Null));
        for wrong in [json!([]), json!("x"), json!(1), json!(true), json!([{}])] {
            let unfit = unfit(&with(side, wrong));
            assert_eq!((unfit.run_id.as_str(), unfit.code), ("r1", code::INPUTS));
            assert!(unfit.message.contains(&side[1..]), "{}", unfit.message);
        }
    }
}
