//! Tools that every scope knows: asking for input, telling, and completions by a model.
//!
//! They are ordinary tools: they can be provided, wrapped by layers and served like any other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wharf_vocab::{Code, Fault};

use crate::exposed::compile;
use crate::wire::Wire;
use crate::{Cx, Tool, Within, schema};

/// Asks for input. Every way in which whoever is asked may react is an output.
pub const ELICIT: Tool<Question, Reply> =
    Tool::speaking("wharf:elicit", "Asks for structured input.", Wire::Elicit);

/// Tells something, without waiting for more than that it arrived.
pub const NOTIFY: Tool<Notice, ()> =
    Tool::speaking("wharf:notify", "Tells something.", Wire::Notify);

/// Has a model complete a text.
pub const SAMPLE: Tool<Prompt, Completion> =
    Tool::speaking("wharf:sample", "Has a model complete a text.", Wire::Sample);

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The caller's own word for it: `form`, `confirmation`, …
    #[serde(rename = "type", default = "form", skip_serializing_if = "String::is_empty")]
    pub word: String,
    /// What is asked.
    pub message: String,
    /// JSON Schema of the answer.
    #[serde(default)]
    pub schema: Value,
    /// Whatever else the two sides want to tell each other.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

fn form() -> String {
    wharf_wire::tool_v1::method::FORM.to_owned()
}

/// How a question was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", content = "content", rename_all = "snake_case")]
pub enum Reply {
    /// With a value.
    Accepted(Value),
    /// Whoever was asked does not want to.
    Declined,
    /// It was called off.
    Cancelled,
    /// It was not allowed.
    Denied,
    /// With words instead of a value.
    OffScript(String),
}

/// How a typed question was answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Elicited<T> {
    /// With a value that fits.
    Accepted(T),
    /// Whoever was asked does not want to.
    Declined,
    /// It was called off.
    Cancelled,
    /// It was not allowed.
    Denied,
    /// With words instead of a value.
    OffScript(String),
}

/// How urgent a notice is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// For whoever looks for a mistake.
    Debug,
    /// For whoever is interested.
    #[default]
    Info,
    /// Something is not as it should be.
    #[serde(alias = "warn")]
    Warning,
    /// Something went wrong.
    Error,
}

/// A one-way message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// What is told.
    pub message: String,
    /// How far the work is, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// How urgent it is.
    #[serde(default)]
    pub level: Level,
    /// Whatever else the two sides want to tell each other.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

/// What a model is asked to complete.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// A text, or a conversation so far.
    pub prompt: Said,
    /// How much it may say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// How freely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Where it stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// Which model is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whatever else the two sides want to tell each other.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

/// A text, or a conversation so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Said {
    /// A text.
    Text(String),
    /// A conversation.
    Messages(Vec<Message>),
}

impl Default for Said {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who says it: `system`, `user`, `assistant`.
    pub role: String,
    /// What is said.
    pub content: String,
}

/// What a model said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// What it said.
    pub text: String,
    /// How many tokens it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// Which model it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
}

/// Asks for a value of a type. Only trouble on the way is an error; an answer that does not fit
/// the type is one, too.
pub async fn elicit<T: crate::Data>(
    within: &impl Within,
    message: impl Into<String>,
) -> Result<Elicited<T>, Fault> {
    let asked = schema::of_input::<T>();
    let fits = compile(&asked);
    let question =
        Question { word: form(), message: message.into(), schema: asked, meta: Map::new() };
    Ok(match ELICIT.call(within, question).await? {
        Reply::Accepted(value) => {
            let unfit = |path: &str| {
                let message = format!("The answer does not fit the question at {path:?}.");
                Fault::new(Code::AskAnswerInvalid, message).with("path", path)
            };
            if let Ok(fits) = &fits
                && let Err(error) = fits.validate(&value)
            {
                return Err(unfit(error.instance_path().as_str()));
            }
            let read = serde_path_to_error::deserialize(value);
            Elicited::Accepted(read.map_err(|error| unfit(&error.path().to_string()))?)
        }
        Reply::Declined => Elicited::Declined,
        Reply::Cancelled => Elicited::Cancelled,
        Reply::Denied => Elicited::Denied,
        Reply::OffScript(text) => Elicited::OffScript(text),
    })
}

impl<P> Cx<P> {
    /// Asks for a value of a type; see [`elicit`].
    pub async fn elicit<T: crate::Data>(
        &self,
        message: impl Into<String>,
    ) -> Result<Elicited<T>, Fault> {
        elicit(self, message).await
    }

    /// Tells something.
    pub async fn notify(&self, message: impl Into<String>) -> Result<(), Fault> {
        let notice = Notice { message: message.into(), ..Notice::default() };
        NOTIFY.call(self, notice).await
    }

    /// Has a model complete a text.
    pub async fn sample(&self, prompt: impl Into<String>) -> Result<Completion, Fault> {
        let prompt = Prompt { prompt: Said::Text(prompt.into()), ..Prompt::default() };
        SAMPLE.call(self, prompt).await
    }
}
