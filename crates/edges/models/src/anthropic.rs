//! Messages, as Anthropic offers them.

use serde::Deserialize;
use serde_json::{Value, json};
use wharf_protocol::sse::SseMessage;
use wharf_vocab::Object;

use crate::answer::{AnswerFlaw, PartialAnswer, TokenUsage};
use crate::input::{ChatInput, ChatMessage, Role};

/// The version of the API that is spoken.
pub(crate) const VERSION: &str = "2023-06-01";

/// The request.
pub(crate) fn request(
    input: &ChatInput,
    model: &str,
    max_tokens: u64,
    max_tokens_field: &str,
) -> Value {
    let (rules, said) = input.conversation();
    let mut body = Object::new();
    body.insert("model".into(), model.into());
    body.insert("messages".into(), messages(&said).into());
    body.insert("stream".into(), true.into());
    body.insert(max_tokens_field.to_owned(), max_tokens.into());
    if !rules.is_empty() {
        body.insert("system".into(), rules.join("\n\n").into());
    }
    if let Some(temperature) = input.temperature {
        body.insert("temperature".into(), temperature.into());
    }
    if !input.stop.is_empty() {
        body.insert("stop_sequences".into(), json!(input.stop));
    }
    if !input.tools.is_empty() {
        let tool = |tool: &crate::input::OfferedTool| {
            let mut offered = json!({"name": tool.name, "input_schema": tool.schema()});
            if let Some(description) = &tool.description {
                offered["description"] = json!(description);
            }
            offered
        };
        body.insert("tools".into(), input.tools.iter().map(tool).collect());
    }
    if let Some(choice) = &input.tool_choice {
        let choice = match choice.as_str() {
            "auto" | "none" => json!({"type": choice}),
            "required" => json!({"type": "any"}),
            name => json!({"type": "tool", "name": name}),
        };
        body.insert("tool_choice".into(), choice);
    }
    if let Some(schema) = &input.response_schema {
        body.insert(
            "output_config".into(),
            json!({"format": {"type": "json_schema", "schema": schema}}),
        );
    }
    Value::Object(body)
}

/// Messages by turns: what one side says in a row is one message, and results of tools are said by
/// the user.
fn messages(said: &[ChatMessage]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in said {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let blocks = blocks(message);
        match turns.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    turns.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn blocks(message: &ChatMessage) -> Vec<Value> {
    let mut blocks = match &message.content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(parts) => parts.iter().map(block).collect(),
        _ => Vec::new(),
    };
    if message.role == Role::Tool {
        let result =
            json!({"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks});
        return vec![result];
    }
    blocks.extend(message.tool_calls.iter().map(|call| {
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})
    }));
    blocks
}

/// A part of a content. Pictures are written differently here; other parts pass as they are.
fn block(part: &Value) -> Value {
    let Some(url) = part["image_url"]["url"].as_str() else { return part.clone() };
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let source = match data {
        Some((media_type, data)) => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        None => json!({"type": "url", "url": url}),
    };
    json!({"type": "image", "source": source})
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AnthropicEvent {
    MessageStart {
        message: MessageStart,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: BlockDelta,
    },
    MessageDelta {
        delta: MessageDelta,
        usage: Option<AnthropicUsage>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct MessageStart {
    model: Option<String>,
    usage: Option<AnthropicUsage>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta {
    TextDelta {
        text: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct MessageDelta {
    stop_reason: Option<String>,
}

/// Input is counted in three parts that do not overlap; what is said later counts.
#[derive(Debug, Deserialize)]
struct AnthropicUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

/// Takes one event; what it adds to the text.
pub(crate) fn take(answer: &mut PartialAnswer, event: &SseMessage) -> Result<String, AnswerFlaw> {
    let event = serde_json::from_str(&event.data).map_err(|_| AnswerFlaw::Unreadable)?;
    match event {
        AnthropicEvent::MessageStart { message } => {
            answer.model = message.model;
            count(answer, message.usage);
        }
        AnthropicEvent::ContentBlockStart { content_block: Block::Text { text }, .. }
        | AnthropicEvent::ContentBlockDelta { delta: BlockDelta::TextDelta { text }, .. } => {
            answer.add(&text)?;
            return Ok(text);
        }
        AnthropicEvent::ContentBlockStart { index, content_block: Block::ToolUse { id, name } } => {
            answer.call(index, Some(&id), Some(&name), "")?;
        }
        AnthropicEvent::ContentBlockDelta {
            index,
            delta: BlockDelta::InputJsonDelta { partial_json },
        } => {
            answer.call(index, None, None, &partial_json)?;
        }
        AnthropicEvent::MessageDelta { delta, usage } => {
            if let Some(reason) = delta.stop_reason {
                answer.finish_reason = Some(finish_reason(reason));
            }
            count(answer, usage);
        }
        AnthropicEvent::MessageStop => answer.is_whole = true,
        AnthropicEvent::Error { error } => {
            return Err(AnswerFlaw::Error(error["message"].as_str().map(str::to_owned)));
        }
        AnthropicEvent::ContentBlockStart { .. }
        | AnthropicEvent::ContentBlockDelta { .. }
        | AnthropicEvent::Other => {}
    }
    Ok(String::new())
}

/// The same reasons as those of chat completions, where there are such.
fn finish_reason(reason: String) -> String {
    match reason.as_str() {
        "end_turn" | "stop_sequence" => "stop".to_owned(),
        "max_tokens" | "model_context_window_exceeded" => "length".to_owned(),
        "tool_use" => "tool_calls".to_owned(),
        "refusal" => "content_filter".to_owned(),
        _ => reason,
    }
}

fn count(answer: &mut PartialAnswer, usage: Option<AnthropicUsage>) {
    let Some(usage) = usage else { return };
    let before = answer.usage.unwrap_or_default();
    let cached = usage.cache_read_input_tokens.unwrap_or(before.cached_tokens);
    let written = usage.cache_creation_input_tokens.unwrap_or(before.cache_write_tokens);
    let plain = usage.input_tokens.unwrap_or(
        before.input_tokens.saturating_sub(before.cached_tokens + before.cache_write_tokens),
    );
    let input = plain.saturating_add(cached).saturating_add(written);
    answer.usage = Some(TokenUsage {
        cached_tokens: cached,
        cache_write_tokens: written,
        ..TokenUsage::new(input, usage.output_tokens.unwrap_or(before.output_tokens))
    });
}
