//! What a tool wants of whoever serves it.

use serde_json::{Map, Value};
use wharf_wire::tool_v1::{Kind, method};

use super::{Host, Reach, Reached};
use crate::builtin::{Level, Notice, Question};
use crate::transport::Outgoing;

/// What a tool wants of whoever serves it.
#[derive(Debug, PartialEq)]
pub(super) enum Wanted {
    /// A tool of the core.
    Tool(Reached, Value),
    /// A completion by a model.
    Sample(Value),
    /// An answer.
    Question(Question),
    /// That somebody is told something.
    Notice(Notice),
    /// Something that nobody here knows.
    Unknown(Outgoing),
}

impl Wanted {
    pub(super) fn of(outgoing: Outgoing, reach: &Reach, host: &impl Host) -> Self {
        let Outgoing { kind, method, payload, heard } = outgoing;
        if kind == Kind::Notify {
            return Self::Notice(notice(payload));
        }
        let known = || reach.get(&method).cloned().or_else(|| host.find(&method));
        match method.as_ref() {
            method::SAMPLE => Self::Sample(payload),
            method::FORM | method::CONFIRMATION => Self::Question(question(&method, payload)),
            _ => match known() {
                Some(tool) => Self::Tool(tool, payload),
                // Questions may have any word for a name; they are known by what they hold.
                None if is_question(&payload) => Self::Question(question(&method, payload)),
                None => Self::Unknown(Outgoing { kind, method, payload, heard }),
            },
        }
    }
}

fn is_question(payload: &Value) -> bool {
    payload.get("message").is_some_and(Value::is_string) && payload.get("schema").is_some()
}

fn question(word: &str, mut payload: Value) -> Question {
    Question {
        word: word.to_owned(),
        message: text(&payload, "message"),
        schema: payload.get_mut("schema").map(Value::take).unwrap_or_default(),
        meta: meta(&mut payload),
    }
}

fn notice(mut payload: Value) -> Notice {
    let level = payload.get("level").cloned().map(serde_json::from_value::<Level>);
    Notice {
        message: text(&payload, "message"),
        progress: payload.get("progress").and_then(Value::as_f64),
        level: level.and_then(Result::ok).unwrap_or_default(),
        meta: meta(&mut payload),
    }
}

fn text(payload: &Value, key: &str) -> String {
    payload.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn meta(payload: &mut Value) -> Map<String, Value> {
    match payload.get_mut("meta").map(Value::take) {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    }
}
