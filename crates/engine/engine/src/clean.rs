//! Walking over everything that can hold text, for whoever cuts something out of texts: addresses
//! that are capabilities (`handle/scrub.rs`), secrets and the owner's patterns (`redact.rs`).

use std::ops::Range;

use serde_json::Value;
use wharf_domain::Progress;
use wharf_domain::run::NewAsk;
use wharf_vocab::{Code, Fault, Object};

/// Cuts something out of texts.
pub(crate) trait Clean {
    /// The text without it, if it had any of it.
    fn clean(&self, text: &str) -> Option<String>;

    fn text(&self, text: &mut String) {
        if let Some(clean) = self.clean(text) {
            *text = clean;
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(object) => self.object(object),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Cleans values and also names.
    fn object(&self, object: &mut Object) {
        if object.keys().any(|key| self.clean(key).is_some()) {
            let named = |(key, value): (String, Value)| (self.clean(&key).unwrap_or(key), value);
            *object = std::mem::take(object).into_iter().map(named).collect();
        }
        object.values_mut().for_each(|value| self.value(value));
    }

    fn fault(&self, fault: &mut Fault) {
        if self.clean(fault.code.as_str()).is_some() {
            fault.code = Code::ToolFailed.into();
        }
        self.text(&mut fault.message);
        self.object(&mut fault.details);
    }
    fn ask(&self, ask: &mut NewAsk) {
        self.text(&mut ask.key);
        self.text(&mut ask.title);
        ask.detail.iter_mut().chain(&mut ask.schema).for_each(|value| self.value(value));
    }

    /// Cleans pieces of progress. Text goes on from piece to piece, so that whoever cleans it needs
    /// to know what it follows: that of a channel goes to `text`, a line of the log to `line`.
    fn pieces<C>(
        &self,
        pieces: &mut [Progress],
        endings: &mut C,
        text: impl Fn(&mut C, &str, &mut String),
        line: impl Fn(&mut C, &mut String),
    ) {
        for piece in pieces {
            match piece {
                Progress::Text { channel, text: said } => {
                    self.text(channel);
                    text(endings, channel, said);
                }
                Progress::Log { text: said, .. } => line(endings, said),
                Progress::Partial { key, value } => {
                    key.iter_mut().for_each(|key| self.text(key));
                    self.value(value);
                }
                Progress::Phase { phase, .. } => self.text(phase),
                Progress::Gap { .. } | Progress::Withheld => {}
            }
        }
    }
}

/// The text with something else instead of what was found in it, in order; `None` if that is nothing.
pub(crate) fn without(text: &str, found: Vec<Range<usize>>, instead: &str) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let (mut left, mut kept) = (String::new(), 0);
    for span in found {
        left.push_str(&text[kept..span.start]);
        left.push_str(instead);
        kept = span.end;
    }
    left.push_str(&text[kept..]);
    Some(left)
}
