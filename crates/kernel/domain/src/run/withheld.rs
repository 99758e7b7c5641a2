//! What is kept of a run whose values are not: hashes and sizes in the place of what it was given
//! and gave, nothing in the place of what it said meanwhile.
//!
//! Progress has no hashes: a piece is often a word, and whoever can try all words could read it
//! back. Everything that is no value stays: moments, statuses, codes, costs, files, numbers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::{B3, Fault, Object};

use super::decide::DISPATCH;
use super::flow::FlowSpec;
use super::{AskRaised, AskResolved, RunSpec, RunSummary};
use super::{AttemptFailed, AttemptNoted, Created, Ended, Publishing, RoomAwaited, Run, RunEntry};
use crate::{AskEntry, AskSpec, Notice, NoticeEntry, Outcome, Resolution};

/// What stands in the place of a text that was not kept.
const NOT_KEPT: &str = "Not kept, as the tool, its world or a rule of the owner says.";
/// The facts about an error that are the core's own.
const OWN_FACTS: [&str; 1] = ["executed"];

/// What is known of a value that is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueDigest {
    /// The BLAKE3 hash of its JSON text, without spaces and with the keys of objects in order.
    pub b3: B3,
    /// How long that text is.
    pub bytes: u64,
}

/// What is known of what a run gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptDigests {
    /// Its outputs, if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<ValueDigest>,
    /// The message and the facts of its error, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ValueDigest>,
}

impl ValueDigest {
    /// Of an object.
    pub fn of(object: &Object) -> Self {
        let mut text = Vec::new();
        write_object(&mut text, object);
        let b3 = B3::parse(blake3::hash(&text).to_hex().to_string());
        Self { b3: b3.expect("a hash in hex is one"), bytes: text.len() as u64 }
    }

    fn of_error(error: &Fault) -> Self {
        let details = Value::Object(error.details.clone());
        let said = [("details", details), ("message", error.message.clone().into())];
        Self::of(&said.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }
}

fn write_object(text: &mut Vec<u8>, object: &Object) {
    let mut entries: Vec<_> = object.iter().collect();
    entries.sort_by_key(|(key, _)| key.as_str());
    text.push(b'{');
    for (at, (key, value)) in entries.into_iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        text.extend_from_slice(Value::from(key.as_str()).to_string().as_bytes());
        text.push(b':');
        write_value(text, value);
    }
    text.push(b'}');
}

fn write_value(text: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Object(object) => write_object(text, object),
        Value::Array(items) => {
            text.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(b',');
                }
                write_value(text, item);
            }
            text.push(b']');
        }
        plain => text.extend_from_slice(plain.to_string().as_bytes()),
    }
}

/// An error without what its provider said.
fn without_words(error: &Fault) -> Fault {
    let own = |(key, value): (&String, &Value)| {
        OWN_FACTS.contains(&key.as_str()).then(|| (key.clone(), value.clone()))
    };
    Fault {
        code: error.code.clone(),
        message: NOT_KEPT.to_owned(),
        retryable: error.retryable,
        details: error.details.iter().filter_map(own).collect(),
    }
}

impl Outcome {
    /// The outcome without its values, and what is known of them.
    fn withheld(&self) -> (Self, KeptDigests) {
        let of_error = |error: &Fault| {
            let kept = KeptDigests { error: Some(ValueDigest::of_error(error)), outputs: None };
            (without_words(error), kept)
        };
        match self {
            Self::Succeeded { outputs } => {
                let kept = KeptDigests { outputs: Some(ValueDigest::of(outputs)), error: None };
                (Self::Succeeded { outputs: Object::new() }, kept)
            }
            Self::Failed { error } => {
                let (error, kept) = of_error(error);
                (Self::Failed { error }, kept)
            }
            Self::Refused { error } => {
                let (error, kept) = of_error(error);
                (Self::Refused { error }, kept)
            }
            Self::Canceled { error } => {
                let (error, kept) = of_error(error);
                (Self::Canceled { error }, kept)
            }
        }
    }
}

impl RunEntry {
    /// The entry without values. Doing it twice changes nothing more.
    #[must_use]
    pub(crate) fn withheld(self) -> Self {
        match self {
            Self::Created(created) => {
                Self::Created(Created { spec: created.spec.withheld(), ..created })
            }
            Self::RoomAwaited(awaited) => {
                Self::RoomAwaited(RoomAwaited { reason: String::new(), ..awaited })
            }
            Self::AttemptNoted(noted) => Self::AttemptNoted(AttemptNoted { value: None, ..noted }),
            Self::AttemptFailed(failed) => {
                Self::AttemptFailed(AttemptFailed { error: without_words(&failed.error), ..failed })
            }
            Self::Flow(entry) => Self::Flow(Box::new(entry.withheld(without_words))),
            Self::Step(entry) => Self::Step(Box::new(entry.withheld(without_words))),
            Self::AskRaised(raised) => {
                Self::AskRaised(AskRaised { ask: Box::new(raised.ask.withheld()), ..raised })
            }
            Self::AskResolved(resolved) => Self::AskResolved(AskResolved {
                resolution: resolved.resolution.withheld(),
                ..resolved
            }),
            Self::Publishing(begun) => {
                Self::Publishing(Box::new(Publishing { outputs: Object::new(), ..*begun }))
            }
            Self::Ended(ended) if ended.kept.is_none() => {
                let (outcome, kept) = ended.outcome.withheld();
                Self::Ended(Ended { outcome, kept: Some(Box::new(kept)), ..ended })
            }
            other => other,
        }
    }
}

impl RunSpec {
    fn withheld(&self) -> Arc<Self> {
        let known = || ValueDigest::of(&self.inputs);
        let inputs_kept = Some(self.inputs_kept.clone().unwrap_or_else(known));
        let mut spec = Self { inputs: Object::new().into(), inputs_kept, ..self.clone() };
        spec.context.ui = None;
        spec.flow = spec.flow.map(FlowSpec::withheld);
        Arc::new(spec)
    }
}

impl AskSpec {
    fn withheld(self) -> Self {
        let key = if self.key == DISPATCH { self.key } else { String::new() };
        Self { key, title: NOT_KEPT.to_owned(), detail: None, schema: None, ..self }
    }
}

impl Resolution {
    fn withheld(self) -> Self {
        match self {
            Self::Answered { .. } => Self::Answered { value: Value::Null },
            Self::OffScript { .. } => Self::OffScript { text: String::new() },
            other => other,
        }
    }
}

impl AskEntry {
    pub(crate) fn withheld(self) -> Self {
        match self {
            Self::Raised(spec) => Self::Raised(Box::new(spec.withheld())),
            Self::Resolved { resolution, by } => {
                Self::Resolved { resolution: resolution.withheld(), by }
            }
        }
    }
}

impl NoticeEntry {
    pub(crate) fn withheld(self) -> Self {
        match self {
            Self::Owed(notice) => {
                let error = notice.error.as_ref().map(without_words);
                Self::Owed(Box::new(Notice { error, ..*notice }))
            }
            over @ Self::Over(_) => over,
        }
    }
}

impl RunSummary {
    /// What lists show of a run that is over and whose values are not kept.
    #[must_use]
    pub fn withheld(self) -> Self {
        Self { error: self.error.as_ref().map(without_words), ..self }
    }
}

impl Run {
    /// Whether its values are written down no more, though they may be known for a while.
    pub fn is_withheld(&self) -> bool {
        self.is_over() && self.spec.is_withheld()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            _ => panic!("an object"),
        }
    }

    #[test]
    fn a_digest_is_the_hash_of_compact_json_with_its_keys_in_order() {
        let one = ValueDigest::of(&object(json!({"b": [1, {"y": null, "x": "ä\n"}], "a": true})));
        let text = "{\"a\":true,\"b\":[1,{\"x\":\"ä\\n\",\"y\":null}]}";
        assert_eq!(one.b3.as_str(), blake3::hash(text.as_bytes()).to_hex().as_str());
        assert_eq!(one.bytes, text.len() as u64);
        let other = ValueDigest::of(&object(json!({"a": true, "b": [1, {"x": "ä\n", "y": null}]})));
        assert_eq!(one, other);
    }

    #[test]
    fn an_end_keeps_its_code_and_loses_its_words_and_that_only_once() {
        let error = Fault::new(wharf_vocab::Code::ToolFailed, "The canary sang.")
            .with("executed", "yes")
            .with("song", "canary");
        let ended = RunEntry::Ended(Ended::new(Outcome::Failed { error: error.clone() }, 7));
        let RunEntry::Ended(once) = ended.withheld() else { panic!("the same kind") };
        let text = serde_json::to_string(&once).expect("written");
        assert!(!text.contains("canary") && text.contains("tool.failed"), "{text}");
        assert!(text.contains("\"executed\":\"yes\""), "{text}");
        let kept = once.kept.clone().and_then(|kept| kept.error).expect("known by its hash");
        assert_eq!(kept, ValueDigest::of_error(&error));
        assert_eq!(RunEntry::Ended(once.clone()).withheld(), RunEntry::Ended(once));
    }
}
