//! One run of the book, and what makes two requests the same.

use std::collections::BTreeSet;

use serde_json::Value;
use wharf_vocab::{Digest, Object};
use wharf_wire::run_v1::{Mode, RunRequest};

use super::speech::Speech;
use super::{Credential, RunNo, WatcherNo};

/// What names a run: who asked, the world it belongs to, its id, and which attempt.
pub(super) type Name = (Credential, Option<String>, String, u32);

#[derive(Debug)]
pub(super) struct Record {
    pub(super) name: Name,
    pub(super) digest: Digest,
    pub(super) speech: Speech,
    pub(super) watchers: BTreeSet<WatcherNo>,
    pub(super) stage: RecordStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordStage {
    /// It is waited for or executed. When nobody watches, since when.
    Open { alone_since_ms: Option<u64>, is_canceled: bool },
    /// Its final response is there.
    Ended { at_ms: u64 },
}

/// A reader of a run: a position in what the run says.
#[derive(Debug)]
pub(super) struct RunWatcher {
    pub(super) run: RunNo,
    /// The index of the frame it gets next.
    pub(super) next: usize,
    /// What was there when it came; only what comes behind counts as waiting for it.
    pub(super) live_from: usize,
    pub(super) waiting_bytes: usize,
    pub(super) is_slow: bool,
}

impl Record {
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.stage, RecordStage::Ended { .. })
    }
}

/// The digest of what a request asks for: mode, inputs and outputs. The query of every address is
/// left out, whether it is listed as a reference or not, since a core that was restarted signs
/// anew.
#[must_use]
pub fn digest(request: &RunRequest) -> Digest {
    let mode = match request.control.mode {
        Mode::Mock => "mock",
        Mode::Real => "real",
    };
    let inputs = Digest::of_object(&without_queries(&request.inputs));
    let outputs = Digest::of_object(&without_queries(&request.outputs));
    Digest::of(&[mode.as_bytes(), inputs.as_str().as_bytes(), outputs.as_str().as_bytes()])
}

fn without_queries(object: &Object) -> Object {
    object.iter().map(|(key, value)| (key.clone(), without_query(value))).collect()
}

/// A value without the queries of the addresses in it, however deep they stand.
fn without_query(value: &Value) -> Value {
    match value {
        Value::String(text) if is_address(text) => {
            Value::from(text.split('?').next().unwrap_or_default())
        }
        Value::Array(list) => list.iter().map(without_query).collect(),
        Value::Object(object) => Value::Object(without_queries(object)),
        other => other.clone(),
    }
}

fn is_address(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wharf_wire::run_v1::{Mode, RequestControl, RunRequest};

    use super::*;

    fn request(mode: Mode, inputs: Value, outputs: Value) -> RunRequest {
        let object = |value: Value| value.as_object().expect("an object").clone();
        let control = RequestControl::new("r", mode);
        RunRequest { control, inputs: object(inputs), outputs: object(outputs) }
    }

    #[test]
    fn t017_a_request_is_what_it_asks_for_and_not_how_it_was_signed() {
        let one = request(
            Mode::Real,
            json!({"a": "https://s/x?sig=1", "b": "q?x"}),
            json!({"o": "https://s/o?sig=1"}),
        );
        let mut again = one.clone();
        again.inputs["a"] = json!("https://s/x?sig=2");
        again.outputs["o"] = json!("https://s/o");
        again.control.after = Some(7);
        again.control.deadline_ms = Some(1);
        assert_eq!(digest(&one), digest(&again));
        let others = [
            ("mode", {
                let mut other = one.clone();
                other.control.mode = Mode::Mock;
                other
            }),
            ("path", request(Mode::Real, json!({"a": "https://s/y", "b": "q?x"}), json!({}))),
            ("inline", {
                let mut other = one.clone();
                other.inputs["b"] = json!("q?y");
                other
            }),
            ("sides", request(Mode::Real, json!({}), json!({"a": "https://s/x", "b": "q?x"}))),
        ];
        for (name, other) in others {
            assert_ne!(digest(&one), digest(&other), "{name}");
        }
    }

    #[test]
    fn t017_queries_are_left_out_wherever_an_address_stands() {
        let mut one = request(
            Mode::Mock,
            json!({"a": "https://s/x?1", "b": [{"c": "http://s?1"}]}),
            json!({}),
        );
        one.control.refs = Some(Vec::new());
        let mut two = one.clone();
        two.inputs["a"] = json!("https://s/x?2");
        two.inputs["b"] = json!([{"c": "http://s?2"}]);
        assert_eq!(digest(&one), digest(&two));
        two.inputs["b"] = json!([{"c": "see http://s?2"}]);
        assert_ne!(digest(&one), digest(&two), "text that only contains an address is text");
    }
}
