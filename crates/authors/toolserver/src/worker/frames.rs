//! Frames that a handler emits, read with patience.

use serde::Deserialize;
use serde_json::Value;
use wharf_vocab::Object;
use wharf_wire::run_v1::{LogLevel, Phase};

use crate::Report;

/// What a frame says, or nothing for one that means nothing to a server. The authors' software has
/// `content` for what the protocol calls `data`.
pub(super) fn report(frame: &Value) -> Option<Report> {
    let of = |name| frame.get(name).filter(|value| !value.is_null());
    let data = of("data").or_else(|| of("content")).unwrap_or(&Value::Null);
    match frame.get("kind")?.as_str()? {
        "Log" => Some(Report::Log {
            level: known(data.get("level")).unwrap_or(LogLevel::Info),
            text: text(data.get("msg")?),
            at: data.get("timestamp").and_then(Value::as_f64),
        }),
        "Event" => match known(data.get("phase"))? {
            Phase::Other(_) => other(frame),
            phase => {
                let progress = data.get("progress").and_then(Value::as_f64);
                let text = data.get("text").and_then(Value::as_str).filter(|it| !it.is_empty());
                let phase = text.map_or(phase, |text| Phase::Other(text.to_owned()));
                Some(Report::Event { phase, progress })
            }
        },
        "Token" => Some(Report::Text(data.get("text")?.as_str()?.to_owned())),
        "Response" => Some(Report::Partial(frame.get("outputs")?.as_object()?.clone())),
        // These are the server's to say.
        "Ack" | "Request" | "Cancel" => None,
        _ => other(frame),
    }
}

/// What a frame says the run has cost so far, as it came.
pub(super) fn cost(frame: &Value) -> Option<&Value> {
    frame.get("control")?.get("cost_micro").filter(|cost| !cost.is_null())
}

/// The phase of an event in another word than the protocol's, and how much is done.
pub(crate) fn other_phase(frame: &Object) -> Option<(String, Option<f64>)> {
    let data = frame.get("data").or_else(|| frame.get("content"))?;
    let word = data.get("phase")?.as_str()?.to_owned();
    Some((word, data.get("progress").and_then(Value::as_f64)))
}

fn other(frame: &Value) -> Option<Report> {
    frame.as_object().cloned().map(Report::Other)
}

fn known<'a, T: Deserialize<'a>>(value: Option<&'a Value>) -> Option<T> {
    T::deserialize(value?).ok()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn t016_frames_of_handlers_are_read_with_patience() {
        let log = report(&json!({"kind": "Log", "data": {"msg": "hello", "level": "loud"}}));
        let text = "hello".to_owned();
        assert_eq!(log, Some(Report::Log { level: LogLevel::Info, text, at: None }));
        let event =
            report(&json!({"kind": "Event", "data": {"phase": "checkpoint", "progress": 2}}));
        let phase = Phase::Checkpoint;
        assert_eq!(event, Some(Report::Event { phase, progress: Some(2.0) }));
        let said =
            report(&json!({"kind": "Event", "data": {"phase": "checkpoint", "text": "line 8"}}));
        let phase = Phase::Other("line 8".to_owned());
        assert_eq!(said, Some(Report::Event { phase, progress: None }));
        assert_eq!(report(&json!({"kind": "Event", "data": {}})), None);
        assert_eq!(report(&json!({"kind": "Ack"})), None);
        assert_eq!(report(&json!("Log")), None);
    }

    #[test]
    fn t008_frames_of_the_authors_software_mean_something() {
        let token = report(&json!({"kind": "Token", "content": {"text": "x"}}));
        assert_eq!(token, Some(Report::Text("x".to_owned())));
        let log = report(&json!({"kind": "Log", "data": null, "content": {"msg": "hello"}}));
        assert!(matches!(log, Some(Report::Log { text, .. }) if text == "hello"));
        for frame in [
            json!({"kind": "Event", "content": {"phase": "paused", "by": "c"}}),
            json!({"kind": "Frame", "content": {"n": 1}}),
        ] {
            let object = frame.as_object().expect("an object").clone();
            assert_eq!(report(&frame), Some(Report::Other(object)), "{frame}");
        }
    }

    #[test]
    fn t011_any_frame_may_say_what_the_run_has_cost() {
        let frame = json!({"kind": "Log", "control": {"cost_micro": 7}, "data": {"msg": "x"}});
        assert_eq!(cost(&frame), Some(&json!(7)));
        assert_eq!(cost(&json!({"kind": "Log", "control": {"cost_micro": null}})), None);
        assert_eq!(cost(&json!({"kind": "Log"})), None);
    }

    #[test]
    fn t009_a_response_before_the_end_is_partial_whatever_it_says() {
        let frame = json!({"kind": "Response", "control": {"final": true}, "outputs": {"a": 1}});
        let Some(Report::Partial(outputs)) = report(&frame) else { panic!("not partial") };
        assert_eq!(outputs["a"], 1);
    }
}
