//! The request of a server that an ask stands for, so that a client can be asked in the same words.
//!
//! The client half raises an ask for what a server wants to know and puts this into its detail; the
//! server half finds it there when it puts the ask to the client whose call it is.

use serde_json::{Value, json};
use wharf_domain::AskSpec;
use wharf_vocab::Object;

/// Where it stands in the detail of an ask.
const FIELD: &str = "mcp";
/// Where a legacy server may name what it asks, beside the details: modern ones have names for it.
pub(crate) const NAME: &str = "dev.wharf/key";

/// What a server asked: `elicitation/create`, `sampling/createMessage` or `roots/list`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AskedRequest {
    /// The server's own key for it, if it has one.
    pub(crate) key: Option<String>,
    /// What is asked.
    pub(crate) method: String,
    /// The details, as they came. Of a form they are absent where title and schema of the ask say
    /// all.
    pub(crate) params: Option<Object>,
    /// Whether the server asks while it works on a task.
    pub(crate) in_task: bool,
}

impl AskedRequest {
    /// The detail of an ask for it.
    pub(crate) fn to_detail(&self) -> Value {
        let mut asked = Object::new();
        asked.insert("method".to_owned(), self.method.clone().into());
        asked.extend(self.key.clone().map(|key| ("key".to_owned(), key.into())));
        asked.extend(self.params.clone().map(|it| ("params".to_owned(), it.into())));
        asked.extend(self.in_task.then(|| ("task".to_owned(), true.into())));
        json!({ FIELD: asked })
    }

    /// What an ask stands for, if a server asked.
    pub(crate) fn of(ask: &AskSpec) -> Option<Self> {
        Self::in_detail(ask.detail.as_ref()?)
    }

    /// Whether a person is led to an address.
    pub(crate) fn is_address(&self) -> bool {
        let mode = self.params.as_ref().and_then(|params| params.get("mode"));
        self.method == "elicitation/create" && mode.and_then(Value::as_str) == Some("url")
    }

    fn in_detail(detail: &Value) -> Option<Self> {
        let asked = detail.get(FIELD)?.as_object()?;
        let text = |name: &str| asked.get(name).and_then(Value::as_str).map(str::to_owned);
        let params = asked.get("params").and_then(Value::as_object).cloned();
        let in_task = asked.get("task").and_then(Value::as_bool).unwrap_or(false);
        Some(Self { key: text("key"), method: text("method")?, params, in_task })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m066_an_ask_tells_what_a_server_asked() {
        let params = json!({"messages": []}).as_object().cloned();
        let method = "sampling/createMessage".to_owned();
        for (key, in_task) in [(None, false), (Some("user_name".to_owned()), true)] {
            let (method, params) = (method.clone(), params.clone());
            let asked = AskedRequest { key, method, params, in_task };
            assert_eq!(AskedRequest::in_detail(&asked.to_detail()), Some(asked));
        }
        assert_eq!(AskedRequest::in_detail(&json!({"type": "form"})), None);
    }
}
