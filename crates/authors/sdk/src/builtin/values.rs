//! What built-in tools take and give.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wharf_wire::tool_v1::method;

/// A question.
///
/// ```
/// use wharf_sdk::builtin::Question;
///
/// let question = Question::form("Which seat?", serde_json::json!({"type": "string"}));
/// assert_eq!(question.word, "form");
/// ```
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

impl Question {
    /// A question that is answered by a value of a schema.
    #[must_use]
    pub fn form(message: impl Into<String>, schema: Value) -> Self {
        Self { word: form(), message: message.into(), schema, meta: Map::new() }
    }

    /// A question that is answered by a yes or a no.
    #[must_use]
    pub fn confirmation(message: impl Into<String>, schema: Value) -> Self {
        Self { word: method::CONFIRMATION.to_owned(), ..Self::form(message, schema) }
    }
}

/// Where `meta` says how long the answer is waited for.
const DEADLINE: &str = "deadlineMs";

impl Question {
    /// The same question, whose answer is waited for so long.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.meta.insert(DEADLINE.to_owned(), ms.into());
        self
    }

    /// How long the answer is waited for, in milliseconds, if the question says so.
    #[must_use]
    pub fn deadline_ms(&self) -> Option<u64> {
        self.meta.get(DEADLINE).and_then(Value::as_u64)
    }
}

fn form() -> String {
    method::FORM.to_owned()
}

/// How a question was answered.
///
/// ```
/// use wharf_sdk::builtin::Answer;
///
/// fn seat(answer: Answer<String>) -> Option<String> {
///     match answer {
///         Answer::Accepted(seat) => Some(seat),
///         Answer::OffScript(words) => words.strip_prefix("please ").map(str::to_owned),
///         Answer::Declined | Answer::Cancelled | Answer::Denied | Answer::Expired => None,
///     }
/// }
/// assert_eq!(seat(Answer::OffScript("please 12A".to_owned())), Some("12A".to_owned()));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", content = "content", rename_all = "snake_case")]
pub enum Answer<T = Value> {
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
    /// Not in time.
    Expired,
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
///
/// ```
/// use wharf_sdk::builtin::{Level, Notice};
///
/// let notice = Notice::new("The disk is nearly full.").level(Level::Warning).progress(0.9);
/// assert_eq!(notice.level, Level::Warning);
/// ```
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

impl Notice {
    /// A message for whoever is interested.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// The same message, as urgent as this.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// The same message, saying how far the work is, from 0 to 1.
    #[must_use]
    pub fn progress(mut self, progress: f64) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl From<&str> for Notice {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl From<String> for Notice {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// What a model is asked to complete.
///
/// ```
/// use wharf_sdk::builtin::{Prompt, Said};
///
/// let prompt = Prompt::new("Name three ports.").max_tokens(50);
/// assert_eq!(prompt.prompt, Said::Text("Name three ports.".to_owned()));
/// ```
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

impl Prompt {
    /// A text to complete.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { prompt: Said::Text(text.into()), ..Self::default() }
    }

    /// A conversation to go on with.
    #[must_use]
    pub fn conversation(messages: Vec<Message>) -> Self {
        Self { prompt: Said::Messages(messages), ..Self::default() }
    }

    /// The same, with at most so many tokens said.
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// The same, by this model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }
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
