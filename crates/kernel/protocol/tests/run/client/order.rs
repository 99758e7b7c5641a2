//! What comes when, and what is read generously.

use serde_json::json;
use wharf_protocol::run::client::{Config, Ended, RunClient, RunClientEvent};
use wharf_protocol::{Incoming, Outgoing, Session as _};
use wharf_wire::run_v1::{LogLevel, Mode, Phase, RequestControl, RunRequest, close};

use super::{Stage, end, log, object, success};

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
fn t007_whatever_comes_first_counts_as_the_acknowledgement() {
    for (frame, expected) in [
        (
            log(None, "early"),
            vec![RunClientEvent::Log { level: LogLevel::Info, text: "early".to_owned() }],
        ),
        (
            json!({"kind": "Event", "data": {"phase": "started"}}),
            vec![RunClientEvent::Phase { phase: Phase::Started, progress: None }],
        ),
        (json!({"kind": "Hello"}), vec![]),
        (json!({"kind": "Ack"}), vec![]),
    ] {
        let mut stage = Stage::new();
        stage.session.connected(stage.now());
        stage.sent();
        let events = stage.say(&frame);
        let acked = frame["kind"] == "Ack";
        assert_eq!(events[0], RunClientEvent::Accepted { acked }, "{frame}");
        assert_eq!(events[1..], expected, "{frame}");
        assert!(stage.sent().is_empty() && !stage.session.is_over());
    }
}

#[test]
fn t007_the_stream_of_the_original_text_runs_word_by_word() {
    let stream = include_str!("../../../../wire/testdata/run_v1/seed/example3.jsonl");
    let request = RunRequest {
        control: RequestControl::new("r3", Mode::Real),
        inputs: object(json!({"prompt": "A cat playing piano", "duration": 10})),
        outputs: object(json!({"video": "https://s3.../w1/videos/cat-piano.mp4?put"})),
    };
    let mut stage = Stage { session: RunClient::new(Config::default(), request), ms: 0 };
    stage.session.connected(stage.now());
    let events: Vec<RunClientEvent> =
        stream.lines().flat_map(|line| stage.say_text(line)).collect();
    let outputs = object(json!({"video": "https://s3.../w1/videos/cat-piano.mp4?put"}));
    let ended = Ended::Succeeded { outputs, written: Default::default(), cost_micro: 200_000 };
    let expected = [
        RunClientEvent::Accepted { acked: false },
        RunClientEvent::Phase { phase: Phase::Started, progress: None },
        RunClientEvent::Log { level: LogLevel::Info, text: "Loading model".to_owned() },
        RunClientEvent::Phase { phase: Phase::Checkpoint, progress: Some(0.5) },
        RunClientEvent::Ended(ended),
    ];
    assert_eq!(events, expected);
}

#[test]
fn t007_a_final_response_may_come_first_and_keeps_cost_and_outputs() {
    let mut stage = Stage::new();
    stage.session.connected(stage.now());
    let events = stage.say(&success(json!({"cost_micro": 9}), &json!({"n": 1})));
    assert_eq!(events[0], RunClientEvent::Accepted { acked: false });
    let Ended::Succeeded { outputs, cost_micro: 9, .. } = end(&events) else {
        panic!("{events:?}")
    };
    assert_eq!(outputs["n"], 1);
}

#[test]
fn t007_an_acknowledgement_comes_once_per_connection_and_may_be_late() {
    let ack = json!({"kind": "Ack", "control": {"run_id": "r1"}});
    let mut stage = Stage::open();
    let events = stage.say(&ack);
    assert!(matches!(end(&events), Ended::Broken { code: "ERR_PROTOCOL", .. }));
    let mut stage = Stage::new();
    stage.session.connected(stage.now());
    stage.say(&log(None, "early"));
    assert!(stage.say(&ack).is_empty());
    let events = stage.say(&ack);
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
    assert_eq!(stage.sent(), [Outgoing::Close { code: close::PROTOCOL, reason: String::new() }]);
}

#[test]
fn t008_run_id_level_and_timestamp_may_be_missing() {
    let mut stage = Stage::open();
    let event = |level, text: &str| RunClientEvent::Log { level, text: text.to_owned() };
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
            RunClientEvent::Phase { phase: Phase::Checkpoint, progress: Some(0.5) },
        ),
        (
            json!({"kind": "Event", "data": {"phase": "checkpoint", "text": " line\t8 "}}),
            RunClientEvent::Phase { phase: Phase::Other("line 8".to_owned()), progress: None },
        ),
        (
            json!({"kind": "Event", "data": {"phase": "started"}}),
            RunClientEvent::Phase { phase: Phase::Started, progress: None },
        ),
    ] {
        assert_eq!(stage.say(&frame), [expected], "{frame}");
    }
}

#[test]
fn t008_frames_of_the_authors_software_are_text_lines_and_progress() {
    let mut stage = Stage::new();
    stage.session.connected(stage.now());
    let read = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/testdata/run_v1/upstream/");
        std::fs::read_to_string(format!("{folder}{name}.json")).expect("readable")
    };
    let phase =
        |word: &str| RunClientEvent::Phase { phase: word.to_owned().into(), progress: None };
    let text = "Using generic handler stub - override protocol/handler.py".to_owned();
    for (name, expected) in [
        ("ack", RunClientEvent::Accepted { acked: true }),
        ("event.started", phase("started")),
        ("log", RunClientEvent::Log { level: LogLevel::Info, text }),
        ("token", RunClientEvent::Text("Mock ".to_owned())),
        ("event.paused", phase("paused")),
        ("event.resumed", phase("resumed")),
        ("event.budget_updated", phase("budget_updated")),
    ] {
        assert_eq!(stage.say_text(read(name).trim()), [expected], "{name}");
    }
    for (name, code) in [
        ("envelope.error.meta", "ERR_PROVIDER"),
        ("envelope.error.execution_id", "ERR_PROVIDER"),
        ("response.validation", "ERR_VALIDATION"),
    ] {
        let events = Stage::open().say_text(read(name).trim());
        assert!(matches!(end(&events), Ended::Failed { code: it, .. } if it == code), "{name}");
    }
    let events = Stage::open().say_text(read("envelope.success").trim());
    assert!(matches!(end(&events), Ended::Succeeded { cost_micro: 100, .. }));
}

#[test]
fn t008_a_token_beside_a_response_with_its_number_is_the_same_text() {
    let mut stage = Stage::open();
    let control = json!({"run_id": "r1", "seq": 1, "final": false});
    let frame = json!({"kind": "Response", "control": control, "outputs": {"text": "Hel"}});
    assert_eq!(stage.say(&frame).len(), 1);
    let token = |seq| {
        let control = json!({"run_id": "r1", "seq": seq});
        json!({"kind": "Token", "control": control, "content": {"text": "Hel"}})
    };
    assert!(stage.say(&token(1)).is_empty());
    assert_eq!(stage.say(&token(2)), [RunClientEvent::Text("Hel".to_owned())]);
}

#[test]
fn t008_unknown_fields_and_kinds_are_ignored() {
    let mut stage = Stage::open();
    assert!(stage.say(&json!({"kind": "Frame", "content": {"text": "x"}})).is_empty());
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
        let expected = RunClientEvent::Phase { phase: Phase::Checkpoint, progress: Some(taken) };
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
    assert_eq!(stage.say(&frame), [RunClientEvent::Partial(object(outputs))]);
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
    stage.session.receive(stage.now(), Incoming::Bytes(b"x"));
    let events = stage.events();
    assert!(matches!(end(&events), Ended::Broken { code: "ERR_PROTOCOL", .. }));
    assert_eq!(stage.sent(), [Outgoing::Close { code: close::UNSUPPORTED, reason: String::new() }]);
}

#[test]
fn what_a_server_said_is_not_repeated_when_it_cannot_be_read() {
    let mut stage = Stage::open();
    let events = stage.say_text(r#"{"kind": "Log", "data": "canary"}"#);
    assert!(!format!("{events:?}").contains("canary"));
}
