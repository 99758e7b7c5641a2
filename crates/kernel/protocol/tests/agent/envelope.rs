//! Envelopes, as sessions see them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wharf_protocol::agent::{Breach, CoreClose, CoreEvent};
use wharf_protocol::{Closed, Session as _};

use super::stage::{AgentStage, CoreStage, closed, frame, moment};

fn heartbeat() -> Value {
    json!({
        "v": 1, "type": "agent.heartbeat", "id": "x-77", "ts": "2026-01-16T12:00:00Z",
        "payload": {"session_id": "s-1", "uptime_ms": 1, "inflight_calls": 0, "status": "ok"},
    })
}

#[test]
fn r019_what_a_session_writes_has_the_five_fields() {
    let mut stage = CoreStage::calling("c-1");
    stage.session.ping(stage.moment()).expect("live");
    stage.say("agent.tools.unregister", &json!({"tool_ids": []}));
    for message in stage.written() {
        assert_eq!(message["v"], 1);
        assert!(message["type"].as_str().is_some_and(|kind| kind.starts_with("core.")));
        assert!(message["id"].as_str().is_some_and(|id| id.starts_with("c1-")));
        assert_eq!(message["ts"], "2026-01-16T12:00:00.000Z");
        assert!(message["payload"].is_object());
    }
}

#[test]
fn r020_a_message_without_a_required_field_is_answered_and_dropped() {
    for field in ["v", "type", "id", "ts", "payload"] {
        let mut stage = CoreStage::live();
        let mut message = heartbeat();
        message.as_object_mut().expect("an object").remove(field);
        stage.receive(&frame(message.to_string().as_bytes()));
        let answer = stage.answer();
        assert_eq!(answer["type"], "core.error");
        assert_eq!(answer["error"]["code"], "protocol.invalid_envelope");
        assert!(answer["error"]["message"].as_str().expect("text").contains(field));
        let expected = if field == "id" { Value::Null } else { json!("x-77") };
        assert_eq!(answer["in_reply_to"], expected, "{field}");
        assert_eq!(stage.breaches(), [Breach::Field]);
        assert!(stage.session.is_live(), "{field}");
    }
}

#[test]
fn r021_a_message_with_a_wrong_type_is_answered_and_dropped() {
    for (field, wrong) in [
        ("v", json!("1")),
        ("v", json!(1.5)),
        ("v", json!(null)),
        ("type", json!(7)),
        ("id", json!(7)),
        ("id", json!("")),
        ("payload", json!([])),
        ("payload", json!("x")),
        ("payload", json!(null)),
    ] {
        let mut stage = CoreStage::live();
        let mut message = heartbeat();
        message[field] = wrong.clone();
        stage.receive(&frame(message.to_string().as_bytes()));
        assert_eq!(stage.answer()["error"]["code"], "protocol.invalid_envelope", "{wrong}");
        assert_eq!(stage.events().len(), 1, "only the violation: {wrong}");
        assert!(stage.session.is_live());
    }
}

#[test]
fn r022_clocks_may_disagree_by_centuries() {
    for ts in ["1970-01-01T00:00:00Z", "2999-12-31T23:59:59.5+14:00"] {
        let mut stage = CoreStage::live();
        let mut message = heartbeat();
        message["ts"] = json!(ts);
        stage.receive(&frame(message.to_string().as_bytes()));
        assert!(matches!(stage.events()[..], [CoreEvent::Heartbeat { .. }]), "{ts}");
    }
    let mut stage = CoreStage::live();
    let mut message = heartbeat();
    message["ts"] = json!("2026-01-16T12:00:00");
    stage.receive(&frame(message.to_string().as_bytes()));
    assert_eq!(stage.breaches(), [Breach::Field]);
}

#[test]
fn r023_ids_never_repeat() {
    let mut core = CoreStage::ready();
    let mut agent = AgentStage::ready();
    let mut seen = BTreeSet::new();
    for n in 0..50_000_u64 {
        core.say("agent.tools.unregister", &json!({"tool_ids": []}));
        agent.say("core.ping", &json!({}));
        for message in core.written().into_iter().chain(agent.written()) {
            let id = message["id"].as_str().expect("text").to_owned();
            assert!(seen.insert(id), "after {n}");
        }
    }
    assert_eq!(seen.len(), 100_000);
}

#[test]
fn r024_another_version_ends_the_session() {
    for v in [0, 2, -1, 99] {
        let mut stage = CoreStage::live();
        let mut message = heartbeat();
        message["v"] = json!(v);
        message["type"] = json!(if v == 99 { "agent.unheard_of" } else { "agent.heartbeat" });
        stage.receive(&frame(message.to_string().as_bytes()));
        assert_eq!(stage.answer()["error"]["code"], "protocol.unsupported_version");
        let events = stage.events();
        assert_eq!(closed(&events), Some(CoreClose::Violation(Breach::WrongVersion)), "{v}");
    }
    let mut agent = AgentStage::live();
    agent.say_with("core.ping", &json!({}), &json!({"v": 2}));
    assert_eq!(agent.answer()["error"]["code"], "protocol.unsupported_version");
    assert!(agent.session.is_closed());
}

#[test]
fn r026_a_key_that_stands_twice_ends_the_session() {
    let mut stage = CoreStage::live();
    let twice = heartbeat().to_string().replacen('{', "{\"x\":1,\"x\":2,", 1);
    stage.receive(&frame(twice.as_bytes()));
    assert!(stage.session.is_closed());
    assert_eq!(stage.answer()["error"]["code"], "protocol.malformed");
}

#[test]
fn r027_hostile_nesting_ends_the_session_and_nothing_else() {
    let mut stage = CoreStage::live();
    let deep = format!("{{\"x\":{}", "[".repeat(3_000_000));
    stage.receive(&frame(deep.as_bytes()));
    assert!(stage.session.is_closed());
}

#[test]
fn r028_a_message_with_an_error_is_still_routed_by_its_type() {
    let mut stage = CoreStage::live();
    let error = json!({"error": {"code": "tool.limit", "message": "Too much."}});
    let payload =
        json!({"session_id": "s-1", "uptime_ms": 1, "inflight_calls": 0, "status": "degraded"});
    stage.say_with("agent.heartbeat", &payload, &error);
    assert!(matches!(stage.events()[..], [CoreEvent::Heartbeat { .. }, _]));
}

#[test]
fn r029_errors_that_a_session_writes_have_a_code_a_message_and_a_word_on_retrying() {
    let mut stage = CoreStage::live();
    stage.say("agent.heartbeat", &json!({}));
    let error = stage.answer()["error"].clone();
    assert!(error["code"].is_string() && error["message"].is_string());
    assert!(error["retryable"].is_boolean());
    assert!(error.get("debug").is_none(), "r030");
}

#[test]
fn r032_a_message_of_the_other_end_ends_the_session() {
    let mut stage = CoreStage::live();
    stage.say("core.ping", &json!({}));
    assert_eq!(stage.answer()["error"]["code"], "protocol.unexpected_message");
    let events = stage.events();
    assert_eq!(closed(&events), Some(CoreClose::Violation(Breach::WrongDirection)));

    let mut agent = AgentStage::live();
    agent.say("agent.pong", &json!({}));
    assert_eq!(agent.answer()["error"]["code"], "protocol.unexpected_message");
    assert!(agent.session.is_closed());
}

#[test]
fn ten_faults_in_a_minute_end_the_session_and_nine_do_not() {
    let mut stage = CoreStage::live();
    for _ in 0..9 {
        stage.say("agent.heartbeat", &json!({}));
    }
    assert!(stage.session.is_live());
    stage.now += 60_000;
    for _ in 0..9 {
        stage.say("agent.heartbeat", &json!({}));
    }
    assert!(stage.session.is_live(), "the first nine are a minute old");
    stage.events();
    stage.written();
    stage.say("agent.heartbeat", &json!({}));
    assert_eq!(closed(&stage.events()), Some(CoreClose::TooManyViolations));
    let last = stage.written().pop().expect("a goodbye");
    assert_eq!(last["type"], "core.goodbye");
    assert_eq!(last["payload"]["reason"], "protocol.violations");
}

#[test]
fn a_closed_session_takes_and_says_nothing() {
    let mut stage = CoreStage::live();
    stage.say("core.ping", &json!({}));
    stage.events();
    stage.written();
    stage.heartbeat("ok");
    stage.session.tick(moment(1_000_000));
    stage.session.end(moment(1_000_000), Closed::ended());
    assert_eq!(stage.events(), []);
    assert!(stage.written().is_empty());
    assert_eq!(stage.session.deadline(), None);
}
