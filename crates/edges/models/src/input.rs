//! What a caller asks for, in words that are the same for every provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A conversation, and how it is to go on.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatInput {
    /// What the user says: the next message, or the only one. It may be a file.
    #[serde(default)]
    pub(crate) prompt: Option<String>,
    /// The conversation so far.
    #[serde(default)]
    #[schemars(length(max = 10_000), extend("x-wharf-literal" = true))]
    pub(crate) messages: Vec<ChatMessage>,
    /// What the model is to be and to do. It may be a file.
    #[serde(default)]
    pub(crate) system: Option<String>,
    /// The model, such as `gpt-5.4-mini`, `claude-sonnet-5` or `PROVIDER/MODEL`.
    #[serde(default)]
    #[schemars(length(min = 1, max = 256), extend("x-wharf-literal" = true))]
    pub(crate) model: Option<String>,
    /// The most tokens to write.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) max_tokens: Option<u64>,
    /// How free the answer is.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub(crate) temperature: Option<f64>,
    /// Texts that end the answer.
    #[serde(default)]
    #[schemars(length(max = 16), extend("x-wharf-literal" = true))]
    pub(crate) stop: Vec<String>,
    /// Tools that the model may ask for; the caller runs them and goes on with the results.
    #[serde(default)]
    #[schemars(length(max = 256), extend("x-wharf-literal" = true))]
    pub(crate) tools: Vec<OfferedTool>,
    /// `auto`, `none`, `required`, or the name of the tool that is to be used.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128), extend("x-wharf-literal" = true))]
    pub(crate) tool_choice: Option<String>,
    /// JSON Schema that the answer is to fit; the answer is JSON then.
    #[serde(default)]
    pub(crate) response_schema: Option<serde_json::Map<String, Value>>,
}

/// Something that was said.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ChatMessage {
    /// Who says it.
    pub(crate) role: Role,
    /// What is said: text, or a list of parts such as `{"type": "text", "text": "…"}` and
    /// `{"type": "image_url", "image_url": {"url": "…"}}`.
    #[serde(default)]
    pub(crate) content: Value,
    /// The tools that the model asked for, as they stood in the outputs.
    #[serde(default)]
    pub(crate) tool_calls: Vec<ToolCall>,
    /// Which of them a message of the role `tool` is the result of.
    #[serde(default)]
    pub(crate) tool_call_id: Option<String>,
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Whoever sets the rules.
    #[serde(alias = "developer")]
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool that the model asked for.
    Tool,
}

impl Role {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A tool that the model may ask for.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct OfferedTool {
    /// Its name.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) name: String,
    /// What it does.
    #[serde(default)]
    pub(crate) description: Option<String>,
    /// JSON Schema of its arguments.
    #[serde(default)]
    pub(crate) input_schema: Option<serde_json::Map<String, Value>>,
}

impl OfferedTool {
    pub(crate) fn schema(&self) -> Value {
        let any = || json!({"type": "object", "properties": {}});
        self.input_schema.clone().map_or_else(any, Value::Object)
    }
}

/// A tool that the model asks for.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct ToolCall {
    /// The model's name for this call.
    pub(crate) id: String,
    /// The tool.
    pub(crate) name: String,
    /// Its arguments; text where the model wrote no JSON.
    #[serde(default)]
    pub(crate) arguments: Value,
}

impl ChatInput {
    /// The conversation without what sets the rules, and those rules.
    pub(crate) fn conversation(&self) -> (Vec<String>, Vec<ChatMessage>) {
        let mut rules: Vec<String> = self.system.iter().cloned().collect();
        let mut said = Vec::new();
        for message in &self.messages {
            match message.role {
                Role::System => rules.push(plain(&message.content)),
                _ => said.push(message.clone()),
            }
        }
        if let Some(prompt) = &self.prompt {
            said.push(ChatMessage {
                role: Role::User,
                content: prompt.clone().into(),
                tool_calls: Vec::new(),
                tool_call_id: None,
            });
        }
        (rules, said)
    }

    /// How many bytes the provider is given to read, about.
    pub(crate) fn bytes(&self) -> u64 {
        let (rules, said) = self.conversation();
        let said = said.iter().map(|message| {
            let calls = message.tool_calls.iter().map(|call| call.arguments.to_string().len());
            text_bytes(&message.content) + calls.sum::<usize>()
        });
        let tools = self.tools.iter().map(|tool| {
            tool.name.len()
                + tool.description.as_ref().map_or(0, String::len)
                + tool.schema().to_string().len()
        });
        let all = rules.iter().map(String::len).chain(said).chain(tools).sum::<usize>();
        u64::try_from(all).unwrap_or(u64::MAX)
    }
}

/// The text of a content, its parts joined.
pub(crate) fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Pictures are counted by the provider, and not by their bytes.
fn text_bytes(content: &Value) -> usize {
    match content {
        Value::Array(parts) => {
            let one = |part: &Value| part["text"].as_str().map_or(4_000, str::len);
            parts.iter().map(one).sum()
        }
        other => plain(other).len(),
    }
}
