//! What comes when, and what is read generously.

use serde_json::json;
use wharf_protocol::run::client::{Ended, Event, Outgoing};
use wharf_wire::run_v1::{LogLevel, Phase, close};

use super::{Stage, end, log, object};

#[test]
fn t004_the_request_says_which_attempt_and_all_additions() {
    let mut stage = Stage::new();
    assert!(stage.session.wants_connection());
    stage.session.connected(stage.now());
    let expected = json!({
        "kind": "Request",
        "control": {
            "run_id": "r1", "mode": "real", "attempt": 2, "refs": ["file"],
            "deadline_ms": 9000, "required": ["out"],
        },
        "inputs": {"a": 1},
        "outputs": {"out": "/x"},
    });
    assert_eq!(stage.messages(), [expected]);
    assert!(!stage.session.wants_connection());
}

#[test]
fn t007_nothing_counts_before_the_acknowledgement() {
    for frame in [
        log(None, "early"),
        json!({"kind": "Event", "data": {"phase": "started"}}),
        json!({"kind": "Response", "control": {"final": true, "status": "success"}}),
    ] {
        let mut stage = Stage::new();
        stage.session.connected(stage.now());
        stage.sent();
        let events = stage.say(&frame);
        let Ended::Broken { code, .. } = end(&events) else { panic!("{events:?}") };
        assert_eq!(*code, "ERR_PROTOCOL");
        assert_eq!(stage.sent(), [Outgoing::Close { code: close::PROTOCOL }]);
    }
}

#[test]
fn t007_an_acknowledgement_comes_once_per_connection() {
    let mut stage = Stage::open();
    let events = stage.say(&json!({"kind": "Ack", "control": {"run_id": "r1"}}));
    assert!(matches!(end(&events), Ended::Broken { code: "ERR_PROTOCOL", .. }));
}

#[test]
fn t007_a_server_that_does_not_acknowledge_is_given_up() {
    let mut stage = Stage::with(|config| config.ack_ms = 500);
    stage.session.connected(stage.now());
    stage.sent();
    stage.pass(499);
    assert!(stage.events().is_empty());
    stage.pass(1);
    let events = stage.events();
    let Ended::Lost { cause, asked: true } = end(&events) else { panic!("{events:?}") };
    assert!(cause.contains("acknowledge"), "{cause}");
    assert_eq!(stage.sent(), [Outgoing::Close { code: close::PROTOCOL }]);
}

#[test]
fn t008_run_id_level_and_timestamp_may_be_missing() {
    let mut stage = Stage::open();
    let event = |level, text: &str| Event::Log { level, text: text.to_owned() };
    for (frame, expected) in [
        (json!({"kind": "Log", "data": {"msg": "a"}}), event(LogLevel::Info, "a")),
        (
            json!({"kind": "Log", "control": {"run_id": "r1"},
                   "data": {"msg": "b", "level": "warn", "timestamp": 1_234_567_890}}),
            event(LogLevel::Warn, "b"),
        ),
        (
            json!({"kind": "Log", "data": {"msg": "c", "level": "loud", "timestamp": "now"}}),
            event(LogLevel::Info, "c"),
        ),
        (
            json!({"kind": "Event", "data": {"phase": "checkpoint", "progress": 0.5}}),
            Event::Phase { phase: Phase::Checkpoint, progress: Some(0.5) },
        ),
        (
            json!({"kind": "Event", "data": {"phase": "started"}}),
            Event::Phase { phase: Phase::Started, progress: None },
        ),
    ] {
        assert_eq!(stage.say(&frame), [expected], "{frame}");
    }
}

#[test]
fn t008_unknown_fields_kinds_and_phases_are_ignored() {
    let mut stage = Stage::open();
    assert!(stage.say(&json!({"kind": "Token", "content": {"text": "x"}})).is_empty());
    assert!(stage.say(&json!({"kind": "Event", "data": {"phase": "resting"}})).is_empty());
    let frame =
        json!({"kind": "Log", "more": 1, "control": {"x": 2}, "data": {"msg": "a", "y": 3}});
    assert_eq!(stage.say(&frame).len(), 1);
    assert!(!stage.session.is_over());
}

#[test]
fn t008_another_runs_id_is_a_breach() {
    for kind in ["Ack", "Log", "Event", "Response"] {
        let mut stage = if kind == "Ack" { Stage::new() } else { Stage::open() };
        stage.session.connected(stage.now());
        let data = json!({"msg": "x", "phase": "started"});
        let frame = json!({"kind": kind, "control": {"run_id": "r2"}, "data": data});
        let events = stage.say(&frame);
        assert!(matches!(end(&events), Ended::Broken { code: "ERR_PROTOCOL", .. }), "{kind}");
    }
}

#[test]
fn t008_progress_outside_its_range_is_clamped() {
    let mut stage = Stage::open();
    for (said, taken) in [(-3.0, 0.0), (7.5, 1.0), (0.25, 0.25)] {
        let data = json!({"phase": "checkpoint", "progress": said});
        let events = stage.say(&json!({"kind": "Event", "data": data}));
        let expected = Event::Phase { phase: Phase::Checkpoint, progress: Some(taken) };
        assert_eq!(events, [expected]);
    }
}

#[test]
fn t013_a_bare_checkpoint_is_only_a_sign_of_life() {
    let mut stage = Stage::open();
    let frame = json!({"kind": "Event", "data": {"phase": "checkpoint"}});
    for _ in 0..10 {
        stage.pass(10_000);
        assert!(stage.say(&frame).is_empty());
    }
    assert!(!stage.session.is_over());
}

#[test]
fn t009_partial_outputs_come_as_they_are_with_any_number_of_keys() {
    let mut stage = Stage::open();
    let outputs = json!({"text": "Hello", "n": 1, "list": [1]});
    let frame = json!({"kind": "Response", "control": {"final": false}, "outputs": outputs});
    assert_eq!(stage.say(&frame), [Event::Partial(object(outputs))]);
    let empty = json!({"kind": "Response", "control": {}, "outputs": {}});
    assert!(stage.say(&empty).is_empty());
}

#[test]
fn t012_what_is_no_message_ends_the_attempt() {
    for text in ["", "{", "[]", "1", r#"{"kind":"Log","data":{"msg":NaN}}"#, r#"{"a":1}"#] {
        let mut stage = Stage::open();
        let events = stage.say_text(text);
        assert!(matches!(end(&events), Ended::Broken { code: "ERR_PROTOCOL", .. }), "{text}");
    }
    let mut stage = Stage::open();
    stage.session.received_binary();
    let events = stage.events();
    assert!(matches!(end(&events), Ended::Broken { code: "ERR_PROTOCOL", .. }));
    assert_eq!(stage.sent(), [Outgoing::Close { code: close::UNSUPPORTED }]);
}

#[test]
fn what_a_server_said_is_not_repeated_when_it_cannot_be_read() {
    let mut stage = Stage::open();
    let events = stage.say_text(r#"{"kind": "Log", "data": "canary"}"#);
    assert!(!format!("{events:?}").contains("canary"));
}
