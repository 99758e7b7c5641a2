//! What a client may send behind its request.

use serde_json::Value;

use super::value::{self, Refusal, read};
use super::{Cancel, Control, close};

/// A frame behind the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Later {
    /// Stop the run.
    Cancel(Cancel),
    /// A kind that nobody here knows; it is ignored.
    Unknown,
}

/// Reads a frame behind the first, or says how the connection is closed.
pub fn decode_later(text: &str, bytes_max: usize) -> Result<Later, Refusal> {
    if text.len() > bytes_max {
        return Err(Refusal::new(close::TOO_LARGE, "the frame is too large"));
    }
    let frame = read(text)?;
    match frame.get("kind").and_then(Value::as_str) {
        Some("Request") => Err(Refusal::new(close::PROTOCOL, "one run per connection")),
        Some("Cancel") => {
            let run_id = match frame.get("control").and_then(|control| control.get("run_id")) {
                None | Some(Value::Null) => None,
                Some(named) => Some(
                    value::run_id(named)
                        .ok_or(Refusal::new(close::PROTOCOL, "control.run_id is not text"))?,
                ),
            };
            Ok(Later::Cancel(Cancel { control: Control { run_id, ..Control::default() } }))
        }
        Some(_) => Ok(Later::Unknown),
        None => Err(Refusal::new(close::PROTOCOL, "no kind")),
    }
}
