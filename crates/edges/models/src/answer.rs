//! What a provider says, as far as it has come.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault};

use crate::input::ToolCall;

/// What an answer may have: text and arguments of tools together.
pub(crate) const ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Tools that one answer may ask for.
const CALLS_MAX: usize = 256;
/// Bytes that make a token, about, where a provider does not count.
const TOKEN_BYTES: u64 = 4;

/// Tokens that went in and came out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct TokenUsage {
    /// Tokens that the model read.
    pub(crate) input_tokens: u64,
    /// Tokens that it wrote, those that it only thought included.
    pub(crate) output_tokens: u64,
    /// Both together.
    pub(crate) total_tokens: u64,
    /// Those of the input that the provider knew from before.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    pub(crate) cached_tokens: u64,
    /// Those of the input that it remembers from now on.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    pub(crate) cache_write_tokens: u64,
    /// Whether they are estimated, because the provider did not count them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub(crate) estimated: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl TokenUsage {
    pub(crate) fn new(input_tokens: u64, output_tokens: u64) -> Self {
        let total_tokens = input_tokens.saturating_add(output_tokens);
        Self { input_tokens, output_tokens, total_tokens, ..Self::default() }
    }

    /// About how many tokens so many bytes are.
    pub(crate) fn estimated(input_bytes: u64, output_bytes: u64) -> Self {
        let tokens = |bytes: u64| bytes.div_ceil(TOKEN_BYTES);
        Self { estimated: true, ..Self::new(tokens(input_bytes), tokens(output_bytes)) }
    }
}

/// What has come of an answer.
#[derive(Debug, Default)]
pub(crate) struct PartialAnswer {
    pub(crate) text: String,
    calls: Vec<PartialCall>,
    /// Why it ended, in words that are the same for every provider.
    pub(crate) finish_reason: Option<String>,
    pub(crate) model: Option<String>,
    /// What the provider counted: the input as soon as it says so, all of it at the end.
    pub(crate) usage: Option<TokenUsage>,
    /// The provider said that this was all.
    pub(crate) is_whole: bool,
    bytes: usize,
}

#[derive(Debug)]
struct PartialCall {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

/// Why an answer cannot be read on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerFlaw {
    /// It is larger than what is read.
    TooLarge,
    /// It is not what the API promises.
    Unreadable,
    /// The provider itself says that something went wrong, in its own words.
    Error(Option<String>),
}

impl PartialAnswer {
    /// Adds text.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), AnswerFlaw> {
        self.count(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Adds to a call, which may be a new one.
    pub(crate) fn call(
        &mut self,
        index: u64,
        id: Option<&str>,
        name: Option<&str>,
        arguments: &str,
    ) -> Result<(), AnswerFlaw> {
        let (id, name) = (id.unwrap_or_default(), name.unwrap_or_default());
        self.count(id.len() + name.len() + arguments.len())?;
        if let Some(call) = self.calls.iter_mut().find(|call| call.index == index) {
            call.id.push_str(id);
            call.name.push_str(name);
            call.arguments.push_str(arguments);
            return Ok(());
        }
        if self.calls.len() >= CALLS_MAX {
            return Err(AnswerFlaw::TooLarge);
        }
        let (id, name, arguments) = (id.to_owned(), name.to_owned(), arguments.to_owned());
        self.calls.push(PartialCall { index, id, name, arguments });
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), AnswerFlaw> {
        self.bytes += bytes;
        if self.bytes > ANSWER_BYTES_MAX { Err(AnswerFlaw::TooLarge) } else { Ok(()) }
    }

    /// How many bytes have come.
    pub(crate) fn bytes(&self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(u64::MAX)
    }

    /// Whether anything of it has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.bytes > 0 || self.finish_reason.is_some()
    }

    /// The tools that the model asks for.
    pub(crate) fn tool_calls(&self) -> Vec<ToolCall> {
        let whole = |call: &PartialCall| {
            let empty = call.arguments.trim().is_empty();
            let read = serde_json::from_str(&call.arguments);
            let arguments = match empty {
                true => Value::Object(serde_json::Map::new()),
                false => read.unwrap_or_else(|_| call.arguments.clone().into()),
            };
            ToolCall { id: call.id.clone(), name: call.name.clone(), arguments }
        };
        self.calls.iter().map(whole).collect()
    }

    /// What it means that it cannot be read on.
    pub(crate) fn fault(&self, flaw: AnswerFlaw) -> (Fault, Executed) {
        let fault = match flaw {
            AnswerFlaw::TooLarge => {
                let message = "The model's answer is larger than 2 MiB; ask for less with \
                               `max_tokens`.";
                Fault::new(Code::ToolOutputTooLarge, message)
            }
            AnswerFlaw::Unreadable => {
                let message = "The provider's answer is not what its API promises; look at `kind` \
                               and `base_url` of the provider in wharf.toml.";
                Fault::new(Code::LlmAnswerInvalid, message)
            }
            AnswerFlaw::Error(said) => {
                let said = said.map_or_else(String::new, |said| format!(": {said}"));
                let message = format!("The provider ended its answer with an error{said}");
                let code = match self.has_begun() {
                    true => Code::LlmStreamCut,
                    false => Code::LlmUnavailable,
                };
                Fault::new(code, with_full_stop(message))
            }
        };
        (fault, if self.has_begun() { Executed::Yes } else { Executed::Maybe })
    }
}

/// A text as a sentence.
pub(crate) fn with_full_stop(mut text: String) -> String {
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}
