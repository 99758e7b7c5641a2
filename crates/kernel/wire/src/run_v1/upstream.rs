//! What peers of the half-migrated wire expect beside the messages: `content` with the run's id,
//! the phase or the line.

use serde_json::{Value, json};

use super::{Frame, encode};

/// The text of a frame with the `content` that such peers look for; everything else is as
/// [`encode`] writes it.
#[must_use]
pub fn encode_upstream(frame: &Frame) -> String {
    let content = match frame {
        Frame::Ack(ack) => json!({"run_id": ack.control.run_id}),
        Frame::Event(event) => json!({"phase": event.data.phase}),
        Frame::Log(log) => json!({"msg": log.data.msg}),
        Frame::Request(_) | Frame::Cancel(_) | Frame::Token(_) | Frame::Response(_) => {
            return encode(frame);
        }
    };
    match serde_json::to_value(frame) {
        Ok(Value::Object(mut object)) => {
            object.insert("content".to_owned(), content);
            Value::Object(object).to_string()
        }
        _ => encode(frame),
    }
}
