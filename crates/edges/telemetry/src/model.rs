//! What is known of the call of a model: which one, and how many tokens. What was asked and
//! answered is nobody's business here.

use serde_json::Value;
use wharf_domain::{Outcome, Run};
use wharf_vocab::Object;

/// The tool that talks to models, in whichever version.
const CHAT: &str = "llm/chat";
/// The longest name that is passed on.
const NAME_BYTES_MAX: usize = 100;

/// What is known of the call of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelCall {
    /// Whether it was a conversation with a model, and nothing else that counts tokens.
    pub(crate) is_chat: bool,
    /// The model that was asked for.
    pub(crate) wanted: Option<String>,
    /// The model that answered.
    pub(crate) model: Option<String>,
    /// Whose it is.
    pub(crate) provider: Option<String>,
    /// Why the answer ended.
    pub(crate) finish_reason: Option<String>,
    /// Tokens that were read.
    pub(crate) input_tokens: Option<u64>,
    /// Tokens that were written.
    pub(crate) output_tokens: Option<u64>,
}

impl ModelCall {
    /// What a run that is over says of it: one of a tool that chats, or one whose outputs report
    /// what was used.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let is_chat = run.spec.tool.as_str().split('@').next() == Some(CHAT);
        let wanted = run.spec.inputs.get("model").filter(|_| is_chat).and_then(plain_name);
        let Some(Outcome::Succeeded { outputs }) = &run.outcome else {
            return is_chat.then(|| Self { is_chat, wanted, ..Self::default() });
        };
        let usage = outputs.get("usage").and_then(Value::as_object);
        let count = |names: [&str; 2]| {
            let usage = usage?;
            names.iter().find_map(|name| usage.get(*name).and_then(Value::as_u64))
        };
        let input_tokens = count(["input_tokens", "prompt_tokens"]);
        let output_tokens = count(["output_tokens", "completion_tokens"]);
        if !is_chat && input_tokens.is_none() && output_tokens.is_none() {
            return None;
        }
        let named = |name: &str| named(outputs, name);
        Some(Self {
            is_chat,
            wanted,
            model: named("model"),
            provider: named("provider"),
            finish_reason: named("finish_reason"),
            input_tokens,
            output_tokens,
        })
    }
}

fn named(outputs: &Object, name: &str) -> Option<String> {
    outputs.get(name).and_then(plain_name)
}

/// A value that can only be a name: what has spaces, or is longer, is text of somebody's.
fn plain_name(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@+".contains(&byte);
    let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain);
    fits.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_can_be_a_name_is_one() {
        for name in ["gpt-4o-mini", "anthropic/claude@2026:thinking", "llama3.2"] {
            assert_eq!(plain_name(&json!(name)).as_deref(), Some(name));
        }
        let long = "m".repeat(NAME_BYTES_MAX + 1);
        for other in [json!(""), json!("Tell me a story"), json!(long), json!(7), json!("a\n")] {
            assert_eq!(plain_name(&other), None, "{other}");
        }
    }
}
