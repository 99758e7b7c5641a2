//! Walking over everything that can hold text, for whoever cuts something out of texts: addresses
//! that are capabilities (`handle/scrub.rs`), secrets and the owner's patterns (`redact.rs`).

use serde_json::Value;
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
}
