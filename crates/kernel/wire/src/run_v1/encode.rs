//! From a message to the text of a frame.

use super::Frame;

/// The text of a frame: one line of strict JSON. A message holds nothing that JSON cannot say,
/// so this never fails.
#[must_use]
pub fn encode(frame: &Frame) -> String {
    serde_json::to_string(frame).unwrap_or_default()
}
