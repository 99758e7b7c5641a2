//! The sentences in which a run's events are told. Every peer's word in them is made safe.

use serde_json::Value;
use wharf_vocab::{AskKind, AskOutcome, Code, Executed, Level, RunStatus};
use wharf_wire::rest_v1::{Ask, AttemptEvent, DecidedEvent, GapEvent, PartialEvent, Run};

use crate::amount;
use crate::moment;
use crate::output::Paint;
use crate::plain;
use crate::shape::SchemaNode;

/// What the bar says while an ask is open.
pub(super) fn waiting(ask: &Ask) -> &'static str {
    match ask.kind {
        AskKind::Question => "waiting for an answer",
        AskKind::Approval => "waiting for an approval",
    }
}

/// What is asked, and what to type for it.
pub(super) fn ask(ask: &Ask, paint: Paint) -> String {
    let head = format!("{}: {}", waiting(ask), plain::line(&ask.title));
    let id = plain::line(&ask.ask_id);
    let how = match ask.kind {
        AskKind::Question => format!("wharf answer {id} {}", answer_hint(ask.schema.as_ref())),
        AskKind::Approval => format!("wharf approve {id}\n  wharf deny {id} --reason …"),
    };
    format!("{}\n  {how}", paint.attention(&head))
}

/// What an answer looks like, short enough to be typed from.
fn answer_hint(schema: Option<&Value>) -> String {
    let Some(schema) = schema else { return "VALUE".to_owned() };
    let shape = SchemaNode::new(schema);
    let fields = shape.fields();
    if !shape.is_only("object") || fields.is_empty() {
        return hint(shape);
    }
    if let [(_, field)] = fields.as_slice() {
        return hint(*field);
    }
    let wanted = fields.iter().filter(|(key, _)| shape.requires(key)).take(4);
    let pairs: Vec<_> =
        wanted.map(|(key, field)| format!("{}={}", plain::cut(key, 30), hint(*field))).collect();
    if pairs.is_empty() { "key=value …".to_owned() } else { pairs.join(" ") }
}

fn hint(shape: SchemaNode<'_>) -> String {
    match shape.choices() {
        Some(_) => plain::cut(&shape.kind(), 60),
        None if shape.is_only("boolean") => "yes|no".to_owned(),
        None if shape.is_only("integer") || shape.is_only("number") => "NUMBER".to_owned(),
        None if shape.is_only("string") => "TEXT".to_owned(),
        None => "VALUE".to_owned(),
    }
}

/// How an ask was decided.
pub(super) fn decided(event: &DecidedEvent, paint: Paint) -> String {
    let by = plain::line(&event.by);
    let text = match event.decision {
        AskOutcome::Allow => return paint.good(&format!("allowed by {by}")),
        AskOutcome::Answered => return paint.good(&format!("answered by {by}")),
        AskOutcome::Deny => format!("denied by {by}"),
        AskOutcome::OffScript => format!("answered off script by {by}"),
        AskOutcome::Expired => "no answer in time".to_owned(),
        AskOutcome::Withdrawn => "the ask was withdrawn".to_owned(),
        said @ (AskOutcome::Declined | AskOutcome::Cancelled) => format!("{said} by {by}"),
    };
    paint.attention(&text)
}

/// That another attempt begins, and why.
pub(super) fn attempt(event: &AttemptEvent) -> String {
    let acted = match event.executed {
        Executed::No => "the one before it had not begun",
        Executed::Yes => "the one before it had acted",
        Executed::Maybe => "how far the one before it came is not known",
    };
    // Its code is named after agents, and as true when the core died that was at work itself.
    let reason = match plain::line(&event.reason) {
        code if code == Code::ToolAgentLost.as_str() => {
            format!("since whoever worked on it was lost ({code})")
        }
        code => format!("after {code}"),
    };
    format!("retry: attempt {} {reason}; {acted}", event.attempt)
}

/// A line of the tool's log; `text` is safe already.
pub(super) fn log(level: Level, text: &str, paint: Paint) -> String {
    let mark = match level {
        Level::Error => paint.bad(level.as_str()),
        Level::Warn => paint.attention(level.as_str()),
        Level::Info | Level::Debug => paint.faint(level.as_str()),
    };
    format!("{mark}: {text}")
}

/// That part of the tool's progress is missing.
pub(super) fn gap(event: &GapEvent) -> String {
    format!("part of the tool's progress is missing ({} to {})", event.from, event.to)
}

/// A value that is not final yet.
pub(super) fn partial(event: &PartialEvent) -> String {
    let value = event.value.to_string();
    match &event.key {
        Some(key) => plain::cut(&format!("{key} = {value}"), 60),
        None => plain::cut(&value, 60),
    }
}

/// How the run ended.
pub(super) fn finished(run: &Run, paint: Paint) -> String {
    let took = run.ended_at.map(|ended| moment::between(run.created_at, ended));
    let took = took.map(|took| format!(" after {took}")).unwrap_or_default();
    let mut text = format!("{}{took}", run.status);
    if run.cost_micro > 0 {
        text = format!("{text}, cost {}", amount::dollars(run.cost_micro));
    }
    if let Some(would) = run.would_cost_micro.filter(|would| *would > 0) {
        text = format!("{text}, would have cost {}", amount::dollars(would));
    }
    if let Some(error) = &run.error {
        let (message, code) = (plain::line(&error.message), plain::line(&error.code));
        text = format!("{text}: {message} [{code}]");
    }
    match run.status {
        RunStatus::Succeeded => paint.good(&text),
        RunStatus::Canceled => paint.attention(&text),
        _ => paint.bad(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_hint_shows_what_to_type() {
        for (schema, expect) in [
            (None, "VALUE"),
            (Some(json!({"type": "string"})), "TEXT"),
            (Some(json!({"type": "boolean"})), "yes|no"),
            (Some(json!({"enum": ["a", "b"]})), "a|b"),
            (Some(json!({"type": "object", "properties": {"color": {"type": "string"}}})), "TEXT"),
            (
                Some(json!({
                    "type": "object",
                    "required": ["n", "ok"],
                    "properties": {
                        "n": {"type": "integer"}, "ok": {"type": "boolean"}, "x": {}
                    },
                })),
                "n=NUMBER ok=yes|no",
            ),
        ] {
            assert_eq!(answer_hint(schema.as_ref()), expect, "{schema:?}");
        }
    }

    #[test]
    fn a_hostile_title_stays_text() {
        let hostile: Ask = serde_json::from_value(json!({
            "ask_id": "00a", "kind": "approval", "run_id": "r", "tool": "t/x", "world": "w",
            "title": "ok?\u{1b}[2J\nerror: all fine", "audience": "person",
            "deadline": "2026-11-15T09:00:00Z", "created_at": "2026-11-15T09:00:00Z",
        }))
        .expect("an ask");
        let text = ask(&hostile, Paint::off());
        assert!(
            text.starts_with("waiting for an approval: ok? error: all fine\n  wharf approve 00a")
        );
    }
}
