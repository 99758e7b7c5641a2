//! Chat completions, as OpenAI and many others offer them.

use serde::Deserialize;
use serde_json::{Value, json};
use wharf_protocol::sse::SseMessage;
use wharf_vocab::Object;

use crate::answer::{AnswerFlaw, PartialAnswer, TokenUsage};
use crate::input::{ChatInput, ChatMessage, Role};

/// What says that a stream is over.
const DONE: &str = "[DONE]";

/// The request.
pub(crate) fn request(
    input: &ChatInput,
    model: &str,
    max_tokens: u64,
    max_tokens_field: &str,
) -> Value {
    let (rules, said) = input.conversation();
    let mut messages = Vec::new();
    if !rules.is_empty() {
        messages.push(json!({"role": "system", "content": rules.join("\n\n")}));
    }
    messages.extend(said.iter().map(message));
    let mut body = Object::new();
    body.insert("model".into(), model.into());
    body.insert("messages".into(), messages.into());
    body.insert("stream".into(), true.into());
    body.insert("stream_options".into(), json!({"include_usage": true}));
    body.insert(max_tokens_field.to_owned(), max_tokens.into());
    if let Some(temperature) = input.temperature {
        body.insert("temperature".into(), temperature.into());
    }
    if !input.stop.is_empty() {
        body.insert("stop".into(), json!(input.stop));
    }
    if !input.tools.is_empty() {
        let tool = |tool: &crate::input::OfferedTool| {
            let mut function = json!({"name": tool.name, "parameters": tool.schema()});
            if let Some(description) = &tool.description {
                function["description"] = json!(description);
            }
            json!({"type": "function", "function": function})
        };
        body.insert("tools".into(), input.tools.iter().map(tool).collect());
    }
    if let Some(choice) = &input.tool_choice {
        let choice = match choice.as_str() {
            "auto" | "none" | "required" => json!(choice),
            name => json!({"type": "function", "function": {"name": name}}),
        };
        body.insert("tool_choice".into(), choice);
    }
    if let Some(schema) = &input.response_schema {
        let schema = json!({"name": "answer", "schema": schema});
        body.insert(
            "response_format".into(),
            json!({"type": "json_schema", "json_schema": schema}),
        );
    }
    Value::Object(body)
}

fn message(message: &ChatMessage) -> Value {
    let mut written = json!({"role": message.role.as_str(), "content": message.content});
    if !message.tool_calls.is_empty() {
        let call = |call: &crate::input::ToolCall| {
            let arguments = match &call.arguments {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let function = json!({"name": call.name, "arguments": arguments});
            json!({"id": call.id, "type": "function", "function": function})
        };
        written["tool_calls"] = message.tool_calls.iter().map(call).collect();
    }
    if message.role == Role::Tool {
        written["tool_call_id"] = json!(message.tool_call_id);
    }
    written
}

#[derive(Debug, Deserialize)]
struct Chunk {
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<OpenaiUsage>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    #[serde(default)]
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Delta {
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: u64,
    id: Option<String>,
    #[serde(default)]
    function: FunctionDelta,
}

#[derive(Debug, Default, Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Debug, Deserialize)]
struct OpenaiUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    prompt_tokens_details: Option<UsageDetails>,
}

#[derive(Debug, Deserialize)]
struct UsageDetails {
    cached_tokens: Option<u64>,
}

/// Takes one event; what it adds to the text.
pub(crate) fn take(answer: &mut PartialAnswer, event: &SseMessage) -> Result<String, AnswerFlaw> {
    if event.data.trim() == DONE {
        answer.is_whole = true;
        return Ok(String::new());
    }
    let chunk: Chunk = serde_json::from_str(&event.data).map_err(|_| AnswerFlaw::Unreadable)?;
    if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
        return Err(AnswerFlaw::Error(error["message"].as_str().map(str::to_owned)));
    }
    if chunk.model.is_some() {
        answer.model = chunk.model;
    }
    let mut added = String::new();
    for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
        for text in choice.delta.content.iter().chain(&choice.delta.refusal) {
            answer.add(text)?;
            added.push_str(text);
        }
        for call in choice.delta.tool_calls.unwrap_or_default() {
            let arguments = call.function.arguments.unwrap_or_default();
            answer.call(
                call.index,
                call.id.as_deref(),
                call.function.name.as_deref(),
                &arguments,
            )?;
        }
        if choice.finish_reason.is_some() {
            answer.finish_reason = choice.finish_reason;
        }
    }
    if let Some(usage) = chunk.usage {
        let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
        answer.usage = Some(TokenUsage {
            cached_tokens: cached.unwrap_or(0).min(usage.prompt_tokens),
            ..TokenUsage::new(usage.prompt_tokens, usage.completion_tokens)
        });
    }
    Ok(added)
}
