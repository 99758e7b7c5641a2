//! Messages from the future, and errors about errors.

use serde_json::{Value, json};
use wharf_protocol::agent::{Breach, CoreClose, CoreEvent};

use super::stage::{AgentStage, CoreStage, closed, core_config};

#[test]
fn r148_an_unknown_type_that_wants_an_answer_gets_an_error() {
    let request = json!({"request_id": "r-7", "correlation_id": "chat:1"});
    let mut core = CoreStage::live();
    for kind in ["agent.dance", "telepathy"] {
        let id = core.say_with(kind, &json!({"x": 1}), &request);
        let answer = core.answer();
        assert_eq!(answer["type"], "core.error");
        assert_eq!(answer["payload"], json!({}));
        assert_eq!(answer["in_reply_to"], *id);
        assert_eq!(answer["request_id"], "r-7");
        assert_eq!(answer["error"]["code"], "protocol.unknown_type");
    }
    assert_eq!(core.events(), []);
    assert!(core.session.is_live());

    let mut agent = AgentStage::live();
    let id = agent.say_with("core.dance", &json!({}), &request);
    let answer = agent.answer();
    assert_eq!(answer["type"], "agent.error");
    assert_eq!(answer["in_reply_to"], *id);
    assert!(agent.session.is_live());
}

#[test]
fn r149_an_unknown_type_that_wants_no_answer_is_ignored() {
    for more in [json!({}), json!({"request_id": "r-7", "in_reply_to": "c1-1"})] {
        let mut core = CoreStage::live();
        core.say_with("agent.dance", &json!({}), &more);
        assert!(core.written().is_empty());
        assert_eq!(core.events(), []);
        assert!(core.session.is_live());

        let mut agent = AgentStage::live();
        agent.say_with("core.dance", &json!({}), &more);
        assert!(agent.written().is_empty());
        assert!(agent.session.is_live());
    }
}

#[test]
fn r149_a_strict_core_ends_the_session() {
    let mut config = core_config();
    config.close_on_unknown_type = true;
    let mut stage = CoreStage::live_with(config);
    stage.say("agent.dance", &json!({}));
    assert_eq!(closed(&stage.events()), Some(CoreClose::Violation(Breach::UnknownType)));
}

#[test]
fn r150_an_error_is_never_answered_by_an_error() {
    let error: Value = json!({"code": "tool.limit", "message": "Too much."});
    let mut core = CoreStage::live();
    core.say("agent.error", &json!({}));
    core.say_with("agent.error", &json!({}), &json!({"error": error, "request_id": "r"}));
    core.say_with("agent.error", &json!({}), &json!({"error": 7, "request_id": "r"}));
    core.say_with("agent.dance", &json!({}), &json!({"error": error, "request_id": "r"}));
    core.say_with("agent.heartbeat", &json!({}), &json!({"error": error}));
    assert!(core.written().is_empty());
    assert!(core.session.is_live());

    let mut agent = AgentStage::live();
    agent.say_with("core.error", &json!({}), &json!({"error": error, "request_id": "r"}));
    agent.say_with("core.dance", &json!({}), &json!({"error": error, "request_id": "r"}));
    assert!(agent.written().is_empty());
    assert!(agent.session.is_live());
}

#[test]
fn r158_an_error_of_the_peer_reaches_the_owner() {
    let mut stage = CoreStage::live();
    let more = json!({"in_reply_to": "c1-1", "error": {"code": "acme.odd", "message": "Odd."}});
    stage.say_with("agent.error", &json!({}), &more);
    let events = stage.events();
    let [CoreEvent::PeerError { in_reply_to: Some(id), fault }] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(id.as_str(), "c1-1");
    assert_eq!(fault.code.as_str(), "acme.odd");
    assert!(stage.written().is_empty());
}

#[test]
fn r154_no_message_of_a_session_shows_where_in_the_code_it_came_from() {
    let mut stage = CoreStage::live();
    for payload in [json!({}), json!({"session_id": 7}), json!({"status": []})] {
        stage.say("agent.heartbeat", &payload);
    }
    let written = stage.written();
    assert_eq!(written.len(), 3);
    for message in written {
        let text = message["error"]["message"].as_str().expect("text").to_owned();
        for trace in [".rs", "panicked", "line ", "column", "src/", "Error("] {
            assert!(!text.contains(trace), "{text}");
        }
    }
}
