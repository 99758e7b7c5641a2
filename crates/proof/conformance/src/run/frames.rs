//! Requests that a check sends, and a look into messages that come.

use serde_json::{Map, Value, json};
use wharf_vocab::Object;

use super::session::Seen;

/// A run id that nobody used before.
pub(super) fn run_id() -> String {
    format!("check-{}", uuid::Uuid::now_v7())
}

/// A request of a run that pretends.
pub(super) fn request(run_id: &str, inputs: &Object) -> Value {
    json!({
        "kind": "Request",
        "control": { "run_id": run_id, "mode": "mock" },
        "inputs": inputs,
        "outputs": {},
    })
}

/// A request to stop.
pub(super) fn cancel(run_id: &str) -> Value {
    json!({ "kind": "Cancel", "control": { "run_id": run_id } })
}

/// The inputs and one more.
pub(super) fn with(inputs: &Object, key: &str, value: impl Into<Value>) -> Object {
    let mut all: Map<String, Value> = inputs.clone();
    all.insert(key.to_owned(), value.into());
    all
}

/// A message's kind.
pub(super) fn kind(message: &Value) -> &str {
    message["kind"].as_str().unwrap_or_default()
}

/// Whether it is a final Response.
pub(super) fn is_final(message: &Value) -> bool {
    kind(message) == "Response" && message["control"]["final"] == true
}

/// Whether it is a partial Response.
pub(super) fn is_partial(message: &Value) -> bool {
    kind(message) == "Response" && !is_final(message)
}

/// Whether it is an Event of this phase.
pub(super) fn is_phase(message: &Value, phase: &str) -> bool {
    kind(message) == "Event" && message["data"]["phase"] == phase
}

/// Whether the handler has shown itself.
pub(super) fn is_work(message: &Value) -> bool {
    is_phase(message, "started") || is_partial(message)
}

impl Seen {
    /// Every message that could be read.
    pub(super) fn messages(&self) -> impl DoubleEndedIterator<Item = &Value> {
        self.frames.iter().filter_map(|taken| taken.value.as_ref().ok())
    }

    /// The final Response.
    pub(super) fn final_response(&self) -> Option<&Value> {
        self.messages().find(|message| is_final(message))
    }

    /// How the run ended: `success`, or the code of its error.
    pub(super) fn outcome(&self) -> Option<String> {
        let last = self.final_response()?;
        if last["control"]["status"] == "success" {
            return Some("success".to_owned());
        }
        Some(last["error"]["code"].as_str().unwrap_or("an error without a code").to_owned())
    }

    /// The outcome in words.
    pub(super) fn ended_as(&self) -> String {
        self.outcome().unwrap_or_else(|| "no final Response".to_owned())
    }

    /// Whether the handler has shown itself.
    pub(super) fn worked(&self) -> bool {
        self.messages().any(is_work)
    }
}
