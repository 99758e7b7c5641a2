//! What makes two requests the same.

use serde_json::Value;
use wharf_vocab::{Digest, Object};
use wharf_wire::run_v1::{Mode, Request};

/// The digest of what a request asks for: mode, inputs and outputs. The query of every address is
/// left out, whether it is listed as a reference or not, since a core that was restarted signs
/// anew.
#[must_use]
pub fn digest(request: &Request) -> Digest {
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
    use wharf_wire::run_v1::{Mode, Request, RequestControl};

    use super::*;

    fn request(mode: Mode, inputs: Value, outputs: Value) -> Request {
        let object = |value: Value| value.as_object().expect("an object").clone();
        let control = RequestControl::new("r", mode);
        Request { control, inputs: object(inputs), outputs: object(outputs) }
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
