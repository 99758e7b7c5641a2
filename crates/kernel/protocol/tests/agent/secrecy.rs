//! Tokens and payloads stay where they belong.

use serde_json::json;
use wharf_protocol::agent::{
    AdmissionRefusal, AgentSession, AnySchema, CoreEvent, CoreSession, Violation,
};
use wharf_protocol::{Incoming, Session as _};
use wharf_wire::agent_v1::SessionToken;

use super::stage::{AgentStage, CoreStage, agent_config, core_config, frame, hello, moment, sent};

const CANARY: &str = "canary-4711";

#[test]
fn r052_no_debug_output_and_no_answer_shows_a_token() {
    let mut config = agent_config();
    config.token = SessionToken::new(CANARY);
    assert!(!format!("{config:?}").contains(CANARY));
    let mut agent = AgentSession::new(moment(0), config);
    assert!(!format!("{agent:?}").contains(CANARY), "with the hello still to be written");
    let hello = sent(&mut agent);

    let mut core = CoreSession::new(moment(0), core_config(), AnySchema);
    for half in hello.chunks(hello.len() / 2 + 1) {
        core.receive(moment(0), Incoming::Bytes(half));
        assert!(!format!("{core:?}").contains(CANARY));
    }
    let event = core.poll_event().expect("the hello");
    assert!(!format!("{event:?}").contains(CANARY));
    core.refuse(moment(0), AdmissionRefusal::Unauthorized).expect("a hello waits");
    let answer = sent(&mut core);
    assert!(!String::from_utf8_lossy(&answer).contains(CANARY));
}

#[test]
fn r052_a_malformed_hello_is_refused_without_its_token() {
    let mut broken = Vec::new();
    for (field, value) in [
        ("agent_id", json!(7)),
        ("agent_version", json!([CANARY])),
        ("protocol", json!(CANARY)),
        ("manifest_hash", json!([CANARY])),
    ] {
        let mut payload = hello();
        payload["session_token"] = json!(CANARY);
        payload[field] = value;
        let message = json!({"v": 1, "type": "agent.hello", "id": "x", "payload": payload,
            "ts": "2026-01-16T12:00:00Z"});
        broken.push(message.to_string());
    }
    broken.push(format!("{{\"session_token\":\"{CANARY}\""));
    broken.push(format!("{{\"type\":\"{CANARY}\",\"v\":\"{CANARY}\"}}"));
    for body in broken {
        let mut stage = CoreStage::new(core_config());
        stage.receive(&frame(body.as_bytes()));
        assert!(stage.session.is_closed());
        let (events, written) = (stage.events(), stage.written());
        let shown = format!("{:?}{events:?}{written:?}", stage.session);
        assert!(!shown.contains(CANARY), "{shown}");
    }
}

#[test]
fn r031_errors_about_messages_never_quote_them() {
    let mut core = CoreStage::calling("c-1");
    let mut agent = AgentStage::ready();
    let payload = json!({
        "call_id": "c-1", "status": CANARY, "output": {"x": CANARY}, "error": CANARY,
        "seq": CANARY, "channel": CANARY, "data": CANARY, "tools": CANARY, "input": CANARY,
        "tool_id": 7, "session_id": [CANARY], "reason": [CANARY], "registered": CANARY,
    });
    for kind in ["tool.result", "tool.stream", "tools.register", "heartbeat", "dance"] {
        core.say_with(&format!("agent.{kind}"), &payload, &json!({"request_id": "r-1"}));
    }
    for kind in ["tool.call", "tool.cancel", "tools.registered", "goodbye", "dance"] {
        agent.say(&format!("core.{kind}"), &payload);
    }
    let written = format!("{:?}{:?}", core.written(), agent.written());
    assert!(written.contains("protocol.invalid_envelope"));
    assert!(!written.contains(CANARY), "{written}");
    let events = core.events();
    assert!(!format!("{events:?}").contains(CANARY), "{events:?}");
}

#[test]
fn a_violation_has_no_room_for_content() {
    let mut stage = CoreStage::calling("c-1");
    stage.stream(CANARY, 1, CANARY);
    stage.say("agent.tool.result", &json!({"call_id": CANARY, "status": "succeeded"}));
    stage.say("agent.pong", &json!({"x": CANARY}));
    let violations: Vec<Violation> = stage
        .events()
        .into_iter()
        .map(|event| match event {
            CoreEvent::Violation(violation) => violation,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(violations.len(), 3);
    assert!(!format!("{violations:?}").contains(CANARY));
}
