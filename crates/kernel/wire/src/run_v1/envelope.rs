//! The envelope: how a tool says whether it went well without a whole response around it.

use serde_json::Value;
use wharf_vocab::Object;

use super::Failure;
use super::value::failure;

/// What an envelope says.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// Outputs, or what went wrong.
    pub result: Result<Object, Failure>,
    /// Micro-dollars. Kept as it came, since it is judged apart.
    pub cost_micro: Option<Value>,
}

/// Reads an envelope: an object with the `status` `success` or `error` and an object `outputs` or
/// `error`, whatever else stands in it (`run_id`, `execution_id`, `meta` and the like). Anything
/// else is none. An error that it reports is never a success, whatever its status says.
#[must_use]
pub fn read_envelope(object: &Object) -> Option<Envelope> {
    let is_error = match object.get("status")?.as_str()? {
        "success" => false,
        "error" => true,
        _ => return None,
    };
    let outputs = object.get("outputs").and_then(Value::as_object);
    let error = failure(object.get("error"));
    if outputs.is_none() && error.is_none() {
        return None;
    }
    let result = match error {
        Some(error) => Err(error),
        None if is_error => Err(Failure::unknown()),
        None => Ok(outputs.cloned().unwrap_or_default()),
    };
    Some(Envelope { result, cost_micro: object.get("cost_micro").cloned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run_v1::code;

    fn read(value: &Value) -> Option<Envelope> {
        read_envelope(value.as_object().expect("an object"))
    }

    #[test]
    fn t016_a_reported_error_is_never_a_success() {
        for reported in [
            json!({"status": "error", "error": {"code": "E", "message": "no"}}),
            json!({"status": "error", "run_id": "r", "meta": {}, "error": {"code": "E"}}),
            json!({"status": "error", "execution_id": "x", "meta": {}, "error": {"code": "E"}}),
            json!({"status": "error", "outputs": {}, "meta": {}, "error": {"code": "E"}}),
            json!({"status": "success", "outputs": {}, "error": {"code": "E"}}),
        ] {
            let envelope = read(&reported).expect("an envelope");
            assert_eq!(envelope.result.expect_err("an error").code, "E", "{reported}");
        }
        for silent in [json!({}), json!(null), json!(false)] {
            let envelope = read(&json!({"status": "error", "outputs": {"a": 1}, "error": silent}));
            assert_eq!(envelope.expect("one").result.expect_err("failed").code, code::UNKNOWN);
        }
        let told = read(&json!({"status": "error", "error": "It broke."})).expect("one");
        assert_eq!(told.result.expect_err("an error").message, "It broke.");
    }

    #[test]
    fn t016_what_went_well_keeps_outputs_and_cost() {
        let given = json!({"status": "success", "outputs": {"a": 1}, "error": null, "meta": {"m": 1},
            "execution_id": "x", "cost_micro": 7});
        let envelope = read(&given).expect("an envelope");
        assert_eq!(envelope.result.expect("well")["a"], 1);
        assert_eq!(envelope.cost_micro, Some(json!(7)));
    }

    #[test]
    fn outputs_that_only_look_like_it_are_outputs() {
        for outputs in [
            json!({"outputs": {"a": 1}}),
            json!({"status": "success"}),
            json!({"status": "error", "message": "a tool may say so"}),
            json!({"status": "done", "outputs": {}}),
            json!({"status": "success", "outputs": [1], "error": 7}),
            json!({"status": 1, "error": {"code": "E"}}),
        ] {
            assert_eq!(read(&outputs), None, "{outputs}");
        }
    }
}
