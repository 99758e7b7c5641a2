//! Single payloads: what each refuses, and what each forgives.

use serde_json::{Value, json};
use wharf_wire::agent_v1::{AgentMessage, Chunk, DecodeError, Envelope, ToolEntry};

use super::{blamed, read};

fn message(kind: &str, payload: &Value) -> Result<Envelope<AgentMessage>, DecodeError> {
    read(&json!({
        "v": 1, "type": kind, "id": "a1-1", "ts": "2026-01-16T12:00:00Z", "payload": payload,
    }))
}

#[test]
fn r046_a_token_that_is_no_text_counts_as_missing() {
    for token in [json!(null), json!(7), json!({"a": 1}), json!(["x"]), json!("")] {
        let hello = json!({"session_token": token, "agent_id": "a", "agent_version": "1.0.0"});
        let Ok(Envelope { message: AgentMessage::Hello(hello), .. }) =
            message("agent.hello", &hello)
        else {
            panic!("{token} spoils the message");
        };
        assert!(hello.session_token.is_empty());
    }
    let hello = json!({"agent_id": "a", "agent_version": "1.0.0"});
    assert!(message("agent.hello", &hello).is_ok());
}

#[test]
fn r056_a_hello_without_a_version_is_rejected() {
    let hello = json!({"session_token": "t", "agent_id": "a"});
    assert_eq!(blamed(message("agent.hello", &hello)), "payload.agent_version");
}

#[test]
fn r070_a_tool_that_cannot_be_read_leaves_its_siblings_alone() {
    let tools = json!({"tools": [
        {"tool_id": "a/one", "name": "one", "description": "d", "input_schema": {}},
        {"tool_id": "a/two", "name": 7},
        "three",
        {"tool_id": "a/four"},
    ]});
    let Ok(Envelope { message: AgentMessage::ToolsRegister(register), .. }) =
        message("agent.tools.register", &tools)
    else {
        panic!("one tool spoils all");
    };
    let ids: Vec<(&str, bool)> = register
        .tools
        .iter()
        .map(|tool| match tool {
            ToolEntry::Readable(tool) => (tool.tool_id.as_str(), true),
            ToolEntry::Unreadable(tool) => (tool.tool_id.as_str(), false),
        })
        .collect();
    assert_eq!(ids, [("a/one", true), ("a/two", false), ("", false), ("a/four", true)]);
}

fn stream(seq: &Value, channel: &str, data: &Value) -> Result<Envelope<AgentMessage>, DecodeError> {
    let payload = json!({"call_id": "c-1", "seq": seq, "channel": channel, "data": data});
    message("agent.tool.stream", &payload)
}

#[test]
fn r106_a_seq_is_an_integer() {
    for seq in [json!(-1), json!(1.5), json!(1.0), json!("1"), json!(null)] {
        let error = stream(&seq, "log", &json!({"text": "x"})).expect_err("no integer");
        let DecodeError::Rejected(rejected) = error else { panic!("{seq}") };
        assert_eq!(rejected.field, "payload.seq", "{seq}");
        assert_eq!(rejected.call_id.expect("readable").as_str(), "c-1");
    }
}

#[test]
fn r107_each_channel_has_its_own_shape_of_data() {
    for channel in ["stdout", "stderr", "log", "status"] {
        assert!(stream(&json!(1), channel, &json!({"text": "x"})).is_ok(), "{channel}");
        for data in [json!({}), json!({"json": {}}), json!({"text": 7}), json!("x"), json!(null)] {
            assert_eq!(blamed(stream(&json!(1), channel, &data)), "payload.data", "{channel}");
        }
    }
    assert!(stream(&json!(1), "partial_result", &json!({"json": {"a": 1}})).is_ok());
    for data in [json!({"text": "x"}), json!({"json": 7}), json!({"json": []}), json!({})] {
        assert_eq!(blamed(stream(&json!(1), "partial_result", &data)), "payload.data");
    }
}

#[test]
fn r108_an_unknown_channel_is_rejected() {
    assert_eq!(blamed(stream(&json!(1), "telepathy", &json!({"text": "x"}))), "payload.channel");
}

#[test]
fn r168_a_status_may_say_how_far_it_is() {
    for (given, kept) in [(0.25, 0.25), (7.0, 1.0), (-1.0, 0.0)] {
        let data = json!({"text": "x", "fraction": given});
        let Ok(Envelope { message: AgentMessage::ToolStream(stream), .. }) =
            stream(&json!(1), "status", &data)
        else {
            panic!("{given}");
        };
        let fraction = Some(kept);
        assert_eq!(stream.chunk, Chunk::Status { text: "x".to_owned(), fraction });
    }
    let wrong = json!({"text": "x", "fraction": "half"});
    assert_eq!(blamed(stream(&json!(1), "status", &wrong)), "payload.data");
}

#[test]
fn r120_a_result_that_cannot_be_read_still_names_its_call() {
    for (field, value) in [
        ("status", json!("exploded")),
        ("status", json!(null)),
        ("error", json!("boom")),
        ("started_at", json!("2026-01-16 12:00")),
        ("metrics", json!(7)),
    ] {
        let mut payload = json!({"call_id": "c-1", "status": "failed"});
        payload[field] = value;
        let error = message("agent.tool.result", &payload).expect_err("wrong");
        let DecodeError::Rejected(rejected) = error else { panic!("{field}") };
        assert_eq!(rejected.field, format!("payload.{field}"));
        assert_eq!(rejected.call_id.expect("readable").as_str(), "c-1");
    }
}

#[test]
fn r075_a_replace_that_is_null_counts_as_absent() {
    for (replace, replaces) in [(json!(null), false), (json!(false), false), (json!(true), true)] {
        let register = json!({"tools": [], "replace": replace});
        let Ok(Envelope { message: AgentMessage::ToolsRegister(register), .. }) =
            message("agent.tools.register", &register)
        else {
            panic!("{replace} spoils the message");
        };
        assert_eq!(register.replace, replaces);
    }
    let error = message("agent.tools.register", &json!({"tools": [], "replace": "yes"}));
    assert_eq!(blamed(error), "payload.replace");
}

#[test]
fn r165_a_message_that_is_wrong_still_tells_its_call_and_its_cost() {
    for payload in [
        json!({"call_id": "c", "status": "done", "metrics": {"cost_micro": 7}}),
        json!({"call_id": "c", "status": "done", "cost_micro": 7}),
    ] {
        let Err(DecodeError::Rejected(rejected)) = message("agent.tool.result", &payload) else {
            panic!("{payload} is taken");
        };
        let call_id = rejected.call_id.as_ref().map(|id| id.as_str());
        assert_eq!((call_id, rejected.cost_micro), (Some("c"), Some(7)));
    }
    let Err(DecodeError::Rejected(rejected)) =
        message("agent.tool.result", &json!({"call_id": "c", "metrics": {"cost_micro": -1}}))
    else {
        panic!("taken");
    };
    assert_eq!(rejected.cost_micro, None);
}
