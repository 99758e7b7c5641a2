//! `wharf/sample`: a completion by whichever model tool is set up.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wharf_domain::scope::is_uri;
use wharf_domain::{Outcome, ToolDef};
use wharf_engine::in_process::{InProcess, LocalCx};
use wharf_vocab::{Code, Fault, Object, ToolId};

/// The model tools when none is named: one that was added by hand, and the core's own.
const USUAL: [&str; 2] = ["llm/litellm@1", "llm/chat@1"];
/// How long a completion may take.
const TIMEOUT_MS: u64 = 10 * 60 * 1000;

/// Adds the tool.
pub(crate) fn add(
    provider: InProcess,
    model_tool: Option<ToolId>,
) -> Result<InProcess, wharf_vocab::IdError> {
    let named = Arc::new(model_tool);
    let description = "Completes a prompt or a conversation with the model tool that is set up.";
    provider.tool("sample", description, costly, move |input, cx| {
        let named = Arc::clone(&named);
        async move { sample(input, &cx, named.as_ref().as_ref()).await }
    })
}

fn costly(def: &mut ToolDef) {
    def.mock = true;
    def.timeout_ms = Some(TIMEOUT_MS);
}

/// What to complete.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SampleInput {
    /// What the user says, or the conversation so far.
    #[schemars(extend("x-wharf-literal" = true))]
    prompt: Prompt,
    /// The most tokens to write.
    #[schemars(range(min = 1))]
    max_tokens: Option<u64>,
    /// How free the answer is.
    #[schemars(range(min = 0.0, max = 2.0))]
    temperature: Option<f64>,
    /// Where to stop.
    stop: Option<Stop>,
    /// The model's name, when not the tool's usual one.
    model: Option<String>,
    /// Whatever the caller notes; nothing is done with it.
    #[serde(default, rename = "meta")]
    _meta: Value,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Prompt {
    Text(String),
    Messages(Vec<Message>),
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Message {
    /// Who says it.
    role: String,
    /// What is said.
    content: Value,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

/// What the model wrote.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SampleOutput {
    /// The text.
    text: String,
    /// How many tokens it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Map<String, Value>>,
    /// The model that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<String>,
}

async fn sample(
    input: SampleInput,
    cx: &LocalCx,
    named: Option<&ToolId>,
) -> Result<(SampleOutput, u64), Fault> {
    let usual = USUAL.iter().filter_map(|usual| ToolId::new(*usual).ok());
    let mut candidates = named.cloned().map_or_else(|| usual.collect(), |tool| vec![tool]);
    candidates.retain(|tool| cx.has_tool(tool));
    let Some(tool) = candidates.into_iter().next() else { return Err(unavailable(named)) };
    let run = cx.call_and_follow(tool, inputs(input)).await?;
    match &run.outcome {
        // What it cost is booked on the child's account, which lies below this run's.
        Some(Outcome::Succeeded { outputs }) => Ok((output(outputs)?, 0)),
        Some(outcome) => Err(outcome.error().cloned().unwrap_or_else(|| unavailable(named))),
        None => Err(unavailable(named)),
    }
}

/// What the model tool is given.
fn inputs(input: SampleInput) -> Object {
    let mut inputs = Object::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            inputs.insert(name.to_owned(), value);
        }
    };
    match input.prompt {
        // As an input of its own, text that looks like an address would stand for a file.
        Prompt::Text(text) if is_uri(&text) => {
            set("messages", json!([{"role": "user", "content": text}]));
        }
        Prompt::Text(text) => set("prompt", text.into()),
        Prompt::Messages(messages) => set("messages", json!(messages)),
    }
    set("max_tokens", json!(input.max_tokens));
    set("temperature", json!(input.temperature));
    set("model", json!(input.model));
    match input.stop {
        Some(Stop::One(text)) => set("stop", json!([text])),
        Some(Stop::Several(texts)) => set("stop", json!(texts)),
        None => {}
    }
    inputs
}

/// What the model tool gave.
fn output(outputs: &Object) -> Result<SampleOutput, Fault> {
    let text = |name: &str| outputs.get(name).and_then(Value::as_str).map(str::to_owned);
    let Some(written) = text("response").or_else(|| text("text")) else {
        let message = "The model tool gave neither `response` nor `text`.";
        return Err(Fault::new(Code::ToolInvalidOutput, message));
    };
    let counts = [
        ("prompt_tokens", "promptTokens"),
        ("completion_tokens", "completionTokens"),
        ("tokens", "totalTokens"),
    ];
    let counted = counts.into_iter().filter_map(|(name, shown)| {
        let count = outputs.get(name).filter(|count| count.is_number())?;
        Some((shown.to_owned(), count.clone()))
    });
    let mut usage: Map<String, Value> = counted.collect();
    if let Some(Value::Object(given)) = outputs.get("usage") {
        let shown = |(name, count): (&String, &Value)| {
            let known = [("input_tokens", 0), ("output_tokens", 1), ("total_tokens", 2)];
            let known = known.iter().find(|(given, _)| given == name);
            (known.map_or(name.as_str(), |(_, at)| counts[*at].1).to_owned(), count.clone())
        };
        usage.extend(given.iter().map(shown));
    }
    Ok(SampleOutput {
        text: written,
        usage: (!usage.is_empty()).then_some(usage),
        model: text("model"),
        finish_reason: text("finish_reason").or_else(|| text("finishReason")),
    })
}

fn unavailable(named: Option<&ToolId>) -> Fault {
    let message = match named {
        Some(tool) => {
            format!("There is no tool {tool}, which `[models] tool` in wharf.toml names.")
        }
        None => format!(
            "No model is set up: there is no tool {}; name another one as `[models] tool` in \
             wharf.toml.",
            USUAL.join(" and no tool ")
        ),
    };
    Fault { retryable: false, ..Fault::new(Code::ToolUnavailable, message) }
}
