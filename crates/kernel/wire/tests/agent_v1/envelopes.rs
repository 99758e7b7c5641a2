//! Frames to envelopes: what is malformed, what is rejected, what passes.

use serde_json::{Value, json};
use wharf_wire::agent_v1::{AgentMessage, DecodeError, Malformed, decode};

use super::{blamed, heartbeat, read, with, without};

#[track_caller]
fn check_malformed(bytes: &[u8], why: Malformed) {
    let error = decode::<AgentMessage>(bytes).expect_err("malformed");
    assert_eq!(error, DecodeError::Malformed(why), "{}", String::from_utf8_lossy(bytes));
    assert_eq!(error.code().as_str(), "protocol.malformed");
}

#[test]
fn r003_a_frame_holds_exactly_one_object() {
    let good = heartbeat().to_string();
    assert!(decode::<AgentMessage>(format!(" \r\n\t{good} \n").as_bytes()).is_ok());
    for other in ["[]", "\"x\"", "7", "null", "true", "x", "", " "] {
        check_malformed(other.as_bytes(), Malformed::NotAnObject);
    }
    for more in ["{}", "x", "\0", ","] {
        check_malformed(format!("{good}{more}").as_bytes(), Malformed::Syntax);
    }
    check_malformed(&good.as_bytes()[..good.len() - 1], Malformed::Syntax);
}

#[test]
fn r004_the_text_is_clean_utf8() {
    let good = heartbeat().to_string();
    let mut latin1 = good.clone().into_bytes();
    latin1[10] = 0xe9;
    check_malformed(&latin1, Malformed::NotUtf8);
    check_malformed(format!("\u{feff}{good}").as_bytes(), Malformed::ByteOrderMark);
    for lone in [r"\ud800", r"\udc00", r"\ud800\ud800", r"\uDBFFx"] {
        let in_unknown_field = good.replacen('{', &format!("{{\"x\":[\"{lone}\"],"), 1);
        check_malformed(in_unknown_field.as_bytes(), Malformed::LoneSurrogate);
        let in_id = good.replacen("a1-1", lone, 1);
        check_malformed(in_id.as_bytes(), Malformed::LoneSurrogate);
    }
    assert!(decode::<AgentMessage>(good.replacen("a1-1", r"\ud83d\ude00", 1).as_bytes()).is_ok());
}

#[test]
fn r020_each_of_the_five_fields_is_required() {
    for field in ["v", "type", "id", "ts", "payload"] {
        assert_eq!(blamed(read(&without(heartbeat(), field))), field);
    }
}

#[test]
fn r021_fields_of_the_wrong_type_are_rejected() {
    for (field, wrong) in [
        ("v", vec![json!("1"), json!(1.5), json!(1.0), json!(null), json!([1])]),
        ("type", vec![json!(7), json!(null), json!(""), json!({})]),
        ("id", vec![json!(7), json!(""), json!(null), json!("x".repeat(257))]),
        ("ts", vec![json!(7), json!(null), json!("")]),
        ("payload", vec![json!([]), json!("x"), json!(null), json!(1)]),
        ("in_reply_to", vec![json!(7), json!("")]),
        ("request_id", vec![json!(7), json!({})]),
        ("correlation_id", vec![json!(false)]),
        ("causation_id", vec![json!([])]),
        ("traceparent", vec![json!(1)]),
        ("actor", vec![json!("ada"), json!({"type": "robot", "id": "x"})]),
        ("error", vec![json!("boom"), json!({"code": "x.y"})]),
    ] {
        for wrong in wrong {
            let error = read(&with(heartbeat(), field, wrong.clone())).expect_err("wrong");
            assert_eq!(error.code().as_str(), "protocol.invalid_envelope");
            assert_eq!(blamed(Err(error)), field, "{wrong}");
        }
    }
}

#[test]
fn r021_the_readable_part_of_a_rejected_message_is_told() {
    let message = with(with(heartbeat(), "request_id", json!("r-1")), "ts", json!("later"));
    let error = read(&message).expect_err("no time");
    let header = error.header().expect("readable");
    assert_eq!(header.id.as_ref().map(|id| id.as_str()), Some("a1-1"));
    assert_eq!(header.v, Some(1));
    assert!(header.expects_reply());
}

#[test]
fn r022_times_need_a_zone_and_a_real_date() {
    let check = |ts: &str| read(&with(heartbeat(), "ts", json!(ts))).is_ok();
    for good in [
        "2026-01-16T12:00:00Z",
        "2026-01-16t12:00:00z",
        "2026-01-16T12:00:00.1Z",
        "2026-01-16T12:00:00.123456789+05:30",
        "2026-01-16T12:00:00-00:00",
        "2024-02-29T00:00:00Z",
        "2000-02-29T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "2016-12-31T23:59:60Z",
        "2016-12-31T15:59:60-08:00",
    ] {
        assert!(check(good), "{good}");
    }
    for bad in [
        "2026-01-16T12:00:00",
        "2026-01-16 12:00:00Z",
        "2026-01-16",
        "12:00:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-16T24:00:00Z",
        "2026-01-16T12:60:00Z",
        "2026-01-16T12:00:61Z",
        "2026-01-16T12:00:60Z",
        "2026-01-16T12:00:00.Z",
        "2026-01-16T12:00:00+24:00",
        "2026-01-16T12:00:00+05:60",
        "2026-01-16T12:00:00+0530",
        "2026-01-16T12:00:00ZZ",
        "2026-01-16T12:00:00Zjunk",
        "26-01-16T12:00:00Z",
        "+026-01-16T12:00:00Z",
        "２０２６-01-16T12:00:00Z",
        "yesterday",
    ] {
        assert!(!check(bad), "{bad}");
    }
}

#[test]
fn r026_a_key_that_stands_twice_is_malformed() {
    let good = heartbeat().to_string();
    for (place, twice) in [
        ("{\"id\"", "{\"id\":\"a\",\"id\""),
        ("{\"id\"", "{\"x\":1,\"x\":1,\"id\""),
        ("{\"id\"", "{\"x\":1,\"\\u0078\":1,\"id\""),
        ("{\"inflight_calls\"", "{\"status\":\"ok\",\"inflight_calls\""),
        ("{\"inflight_calls\"", "{\"x\":1,\"x\":2,\"inflight_calls\""),
    ] {
        let spoilt = good.replacen(place, twice, 1);
        assert_ne!(spoilt, good, "{place} stands in the message");
        check_malformed(spoilt.as_bytes(), Malformed::DuplicateKey);
    }
}

#[test]
fn r027_nesting_is_limited_everywhere_and_without_recursion() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let in_envelope =
        |depth| heartbeat().to_string().replacen('{', &format!("{{\"x\":{},", nested(depth)), 1);
    assert!(decode::<AgentMessage>(in_envelope(126).as_bytes()).is_ok());
    check_malformed(in_envelope(127).as_bytes(), Malformed::TooDeep);

    let in_output = |depth| {
        format!(
            r#"{{"v":1,"type":"agent.tool.result","id":"a","ts":"2026-01-16T12:00:00Z",
               "payload":{{"call_id":"c","status":"succeeded","output":{}}}}}"#,
            nested(depth)
        )
    };
    assert!(decode::<AgentMessage>(in_output(125).as_bytes()).is_ok());
    check_malformed(in_output(126).as_bytes(), Malformed::TooDeep);
    check_malformed(format!("{{\"x\":{}", "[".repeat(4_000_000)).as_bytes(), Malformed::TooDeep);
}

#[test]
fn r029_error_objects_have_a_code_and_a_message() {
    let check = |error: Value| read(&with(heartbeat(), "error", error)).is_ok();
    assert!(check(json!({"code": "a.b", "message": "m"})));
    assert!(check(json!({
        "code": "a.b", "message": "m", "details": {"x": 1}, "retryable": true, "where": "here",
    })));
    for wrong in [
        json!({"message": "m"}),
        json!({"code": "a.b"}),
        json!({"code": 7, "message": "m"}),
        json!({"code": "a.b", "message": 7}),
        json!({"code": "a.b", "message": "m", "details": []}),
        json!({"code": "a.b", "message": "m", "retryable": "yes"}),
        json!({"code": "a.b", "message": "m", "where": 7}),
    ] {
        assert!(!check(wrong.clone()), "{wrong}");
    }
}

#[test]
fn r031_what_is_refused_is_never_quoted() {
    let canary = "canary-4711";
    for spoilt in [
        with(heartbeat(), "ts", json!(canary)),
        with(heartbeat(), "v", json!(canary)),
        with(heartbeat(), "error", json!({"code": {"x": canary}})),
        with(heartbeat(), "payload", json!({"session_id": {"x": canary}})),
        with(heartbeat(), "payload", json!({"status": canary})),
    ] {
        let error = read(&spoilt).expect_err("wrong");
        assert!(!error.to_string().contains(canary), "{error}");
        assert!(!format!("{error:?}").contains(canary), "{error:?}");
    }
}

#[test]
fn r148_a_message_expects_a_reply_when_it_names_a_request_and_answers_none() {
    let unknown = with(heartbeat(), "type", json!("agent.dance"));
    let asks = with(unknown.clone(), "request_id", json!("r-1"));
    let check = |message: &Value| match read(message) {
        Err(DecodeError::UnknownType(header)) => header.expects_reply(),
        other => panic!("{other:?}"),
    };
    assert!(!check(&unknown));
    assert!(check(&asks));
    assert!(!check(&with(asks.clone(), "in_reply_to", json!("c-1"))));
    let error = json!({"code": "a.b", "message": "m"});
    assert!(!check(&with(asks, "error", error)), "an error is never answered");
}
