//! The agent wire from outside: frames, envelopes, messages and their examples.

mod envelopes;
mod examples;
mod framing;
mod payloads;

use serde_json::{Value, json};
use wharf_wire::agent_v1::{AgentMessage, DecodeError, Envelope, decode};

/// A well-formed message to be spoilt by a test.
fn heartbeat() -> Value {
    json!({
        "v": 1, "type": "agent.heartbeat", "id": "a1-1", "ts": "2026-01-16T12:00:00Z",
        "payload": {"session_id": "s-1", "uptime_ms": 1, "inflight_calls": 0, "status": "ok"},
    })
}

/// The message with one field set to a value.
fn with(mut message: Value, field: &str, value: Value) -> Value {
    message.as_object_mut().expect("an object").insert(field.to_owned(), value);
    message
}

/// The message without one field.
fn without(mut message: Value, field: &str) -> Value {
    message.as_object_mut().expect("an object").remove(field);
    message
}

fn read(message: &Value) -> Result<Envelope<AgentMessage>, DecodeError> {
    decode(message.to_string().as_bytes())
}

/// The field that a rejected message is blamed for.
#[track_caller]
fn blamed(result: Result<Envelope<AgentMessage>, DecodeError>) -> String {
    match result {
        Err(DecodeError::Rejected(rejected)) => rejected.field,
        other => panic!("not rejected but {other:?}"),
    }
}
