//! Frames that a handler emits, read with patience.

use serde::Deserialize;
use serde_json::Value;
use wharf_wire::run_v1::{LogLevel, Phase};

use crate::Report;

/// What a frame says, or nothing for one that means nothing to a server.
pub(super) fn report(frame: &Value) -> Option<Report> {
    let data = frame.get("data").or_else(|| frame.get("content")).unwrap_or(&Value::Null);
    match frame.get("kind")?.as_str()? {
        "Log" => Some(Report::Log {
            level: known(data.get("level")).unwrap_or(LogLevel::Info),
            text: text(data.get("msg")?),
            at: data.get("timestamp").and_then(Value::as_f64),
        }),
        "Event" => {
            let phase: Phase = known(data.get("phase"))?;
            Some(Report::Event { phase, progress: data.get("progress").and_then(Value::as_f64) })
        }
        "Response" => Some(Report::Partial(frame.get("outputs")?.as_object()?.clone())),
        _ => None,
    }
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
        assert_eq!(report(&json!({"kind": "Event", "data": {"phase": "lost"}})), None);
        assert_eq!(report(&json!({"kind": "Token", "content": {"text": "x"}})), None);
        assert_eq!(report(&json!("Log")), None);
    }

    #[test]
    fn t009_a_response_before_the_end_is_partial_whatever_it_says() {
        let frame = json!({"kind": "Response", "control": {"final": true}, "outputs": {"a": 1}});
        let Some(Report::Partial(outputs)) = report(&frame) else { panic!("not partial") };
        assert_eq!(outputs["a"], 1);
    }
}
