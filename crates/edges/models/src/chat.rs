//! `llm/chat@1`: a conversation goes on, with text that grows while it is made.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use wharf_domain::{Level, ToolDef};
use wharf_engine::QuoteFor;
use wharf_engine::in_process::{InProcess, LocalCx, ToolFailure, ToolOutput, schema_of};
use wharf_ports::vault::{Secret, Vault};
use wharf_vocab::{Code, Executed, Fault, Micro, Mode, Object, ToolId, UnknownCost};

use crate::answer::{PartialAnswer, TokenUsage};
use crate::dial::{self, Call, CallFailure};
use crate::input::{ChatInput, ToolCall, plain};
use crate::meter::Meter;
use crate::prices::Price;
use crate::providers::{Api, ModelChoice};
use crate::{CHAT, ModelOptions, NamedProvider, anthropic, openai};

/// How long a call may take.
const TIMEOUT_MS: u64 = 10 * 60 * 1000;
/// Largest file that is taken as a text.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Inputs that may be files.
const FILE_INPUTS: [&str; 2] = ["prompt", "system"];
/// Between two words of an answer that is made up, and how many have a pause.
const MOCK_PAUSE: Duration = Duration::from_millis(10);
const MOCK_PAUSES_MAX: usize = 200;

/// Everything that calls need.
pub(crate) struct Models {
    vault: Arc<dyn Vault>,
    pub(crate) options: ModelOptions,
    client: reqwest::Client,
}

/// How the conversation went on.
#[derive(Debug, Serialize, JsonSchema)]
struct ChatOutput {
    /// What the model said.
    text: String,
    /// The tools that it asks for.
    tool_calls: Vec<ToolCall>,
    /// Why it ended: `stop`, `length`, `tool_calls`, `content_filter`, or the provider's own word.
    finish_reason: String,
    /// Tokens that were used.
    usage: TokenUsage,
    /// The model, as the provider calls it.
    model: String,
    /// The provider.
    provider: String,
    /// Whether the price of the model is known, so that the run's cost is right.
    price_known: bool,
}

pub(crate) fn provider(models: &Arc<Models>) -> Result<NamedProvider, Fault> {
    let named = |error| Fault::new(Code::CoreInternal, format!("A built-in tool: {error}."));
    let tool = ToolId::new(CHAT).map_err(named)?;
    let description = "Goes on with a conversation by a language model: text that grows while it \
                       is made, or tools that the model asks for.";
    let def = ToolDef {
        output_schema: Some(schema_of::<ChatOutput>()),
        // To repeat it by itself would be to pay twice.
        side_effects: Some(true),
        destructive: Some(false),
        mock: true,
        timeout_ms: Some(TIMEOUT_MS),
        capabilities: vec!["streaming".to_owned()],
        tags: vec!["model".to_owned()],
        ..ToolDef::new(tool.clone(), description, schema_of::<ChatInput>())
    };
    let (quotes, calls) = (Arc::clone(models), Arc::clone(models));
    let provider = InProcess::new(CHAT).map_err(named)?.priced_tool(
        def,
        move |wanted| quotes.quote(wanted),
        move |inputs, cx| {
            let models = Arc::clone(&calls);
            async move { Box::pin(models.chat(inputs, cx)).await }
        },
    );
    Ok((tool.provider(), provider))
}

impl Models {
    pub(crate) fn new(vault: Arc<dyn Vault>, options: ModelOptions) -> Result<Self, Fault> {
        Ok(Self { vault, options, client: dial::client()? })
    }

    /// The most that a call costs: its input by an estimate that is rather too high, and all the
    /// tokens that it may write.
    fn quote(&self, wanted: &QuoteFor<'_>) -> Option<Micro> {
        let input: ChatInput = serde_json::from_value(Value::Object(wanted.inputs.clone())).ok()?;
        let bytes = input.bytes().saturating_add(wanted.file_bytes);
        let output = input.max_tokens.unwrap_or(self.options.max_tokens);
        let usage = TokenUsage::new(bytes.div_ceil(2), output);
        let choices = self.options.providers.meant(input.model.as_deref());
        let prices = choices.iter().filter_map(|choice| self.price(choice));
        prices.map(|price| price.of(&usage)).max()
    }

    fn price(&self, choice: &ModelChoice<'_>) -> Option<Price> {
        self.options.prices.of(&choice.provider.name, &choice.model)
    }

    async fn chat(&self, mut inputs: Object, cx: LocalCx) -> Result<ToolOutput, ToolFailure> {
        read_files(&mut inputs, &cx).await.map_err(unasked)?;
        let input: ChatInput = wharf_vocab::json::fit(Value::Object(inputs), "The input")
            .map_err(|fault| unasked(Fault::new(Code::ToolInvalidInput, fault.message)))?;
        if input.conversation().1.is_empty() {
            let message = "There is neither a prompt nor a message.";
            return Err(unasked(Fault::new(Code::ToolInvalidInput, message)));
        }
        let choices = self.options.providers.meant(input.model.as_deref());
        if choices.is_empty() {
            return Err(unasked(self.nobody()));
        }
        if cx.attempt().dispatch().spec.mode == Mode::Mock {
            return self.pretend(&input, &choices, &cx).await;
        }
        let (choice, key) = self.with_key(choices, &cx).await.map_err(unasked)?;
        self.ask(&input, &choice, key, &cx).await
    }

    /// The first whose key is there, or who needs none.
    async fn with_key<'a>(
        &self,
        choices: Vec<ModelChoice<'a>>,
        cx: &LocalCx,
    ) -> Result<(ModelChoice<'a>, Option<Secret>), Fault> {
        let mut missing = Vec::new();
        for choice in choices {
            let Some(name) = &choice.provider.key else { return Ok((choice, None)) };
            match self.vault.get(name.clone()).await {
                Ok(key) => {
                    let value = String::from_utf8_lossy(key.expose()).into_owned();
                    cx.handle().trust().know_secret(&value);
                    return Ok((choice, Some(key)));
                }
                Err(fault) if fault.is(Code::SecretNotFound) => missing.push(name.to_string()),
                Err(fault) => return Err(fault),
            }
        }
        missing.dedup();
        let commands: Vec<_> =
            missing.iter().map(|name| format!("wharf secret set {name}")).collect();
        let message = format!(
            "There is no key for the model provider: keep it with `{}`.",
            commands.join("` or `")
        );
        Err(Fault::new(Code::LlmKeyMissing, message).with("secrets", missing))
    }

    /// Whether the key of a provider is there, or not needed.
    pub(crate) async fn has_key(&self, name: Option<&wharf_vocab::SecretName>) -> bool {
        match name {
            Some(name) => self.vault.get(name.clone()).await.is_ok(),
            None => true,
        }
    }

    async fn ask(
        &self,
        input: &ChatInput,
        choice: &ModelChoice<'_>,
        key: Option<Secret>,
        cx: &LocalCx,
    ) -> Result<ToolOutput, ToolFailure> {
        let ModelChoice { provider, model } = choice;
        let max_tokens = input.max_tokens.unwrap_or(self.options.max_tokens);
        let field = &provider.max_tokens_field;
        let body = match provider.api {
            Api::OpenAi => openai::request(input, model, max_tokens, field),
            Api::Anthropic => anthropic::request(input, model, max_tokens, field),
        };
        let price = self.price(choice);
        if price.is_none() {
            tell_unpriced(choice, cx).await.map_err(unasked)?;
        }
        let mut meter = Meter::new(cx.attempt().clone(), price.clone(), input.bytes());
        let mut answer = PartialAnswer::default();
        let trace = cx.attempt().dispatch().trace.clone();
        let call = Call { provider, key, body, silence: self.options.silence, trace };
        let asked = async {
            let response = call.open(&self.client, cx, &mut meter).await?;
            call.read(response, cx, &mut meter, &mut answer).await
        };
        if let Err(CallFailure { fault, executed }) = asked.await {
            let cost_micro = cost(meter.end(), price.is_some(), executed, cx);
            return Err(ToolFailure { fault, executed, cost_micro });
        }
        let usage = meter.usage(&answer);
        if usage.estimated {
            let line = "The provider did not count the tokens; they are estimated.";
            cx.log(Level::Warn, line).await?;
        }
        let cost_micro = cost(meter.end(), price.is_some(), Executed::Yes, cx);
        let output = ChatOutput {
            tool_calls: answer.tool_calls(),
            finish_reason: answer.finish_reason.unwrap_or_else(|| "stop".to_owned()),
            usage,
            model: answer.model.unwrap_or_else(|| model.clone()),
            provider: provider.name.clone(),
            price_known: price.is_some(),
            text: answer.text,
        };
        Ok(ToolOutput { outputs: object(&output)?, cost_micro })
    }

    /// Says something that follows from the last message, without asking anybody.
    async fn pretend(
        &self,
        input: &ChatInput,
        choices: &[ModelChoice<'_>],
        cx: &LocalCx,
    ) -> Result<ToolOutput, ToolFailure> {
        let Some(choice) = choices.first() else { return Err(unasked(self.nobody())) };
        let (_, said) = input.conversation();
        let last = said.last().map(|message| plain(&message.content)).unwrap_or_default();
        let text = format!("You said: {last}");
        for (at, word) in text.split_inclusive(' ').enumerate() {
            if at > 0 && at < MOCK_PAUSES_MAX {
                tokio::time::sleep(MOCK_PAUSE).await;
            }
            cx.text("text", word).await?;
        }
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let usage = TokenUsage::estimated(input.bytes(), length);
        let price = self.price(choice);
        let output = ChatOutput {
            text,
            tool_calls: Vec::new(),
            finish_reason: "stop".to_owned(),
            usage,
            model: choice.model.clone(),
            provider: choice.provider.name.clone(),
            price_known: price.is_some(),
        };
        let cost_micro = price.map_or(0, |price| price.of(&usage));
        Ok(ToolOutput { outputs: object(&output)?, cost_micro })
    }

    fn nobody(&self) -> Fault {
        let names: Vec<_> = self.options.providers.iter().map(|it| it.name.as_str()).collect();
        let message = format!(
            "No provider is known for this model: name it as PROVIDER/MODEL, where the provider \
             is one of {}, or add it to `[models]` in wharf.toml.",
            names.join(", ")
        );
        Fault::new(Code::ToolInvalidInput, message).with("path", "/model")
    }
}

/// What is booked. Where nobody knows the price that is what the world wants for such cases.
fn cost(metered: Micro, is_priced: bool, executed: Executed, cx: &LocalCx) -> Micro {
    let spec = &cx.attempt().dispatch().spec;
    match is_priced || executed == Executed::No {
        true => metered,
        false if spec.unknown_cost == UnknownCost::Held => spec.hold_micro,
        false => 0,
    }
}

async fn tell_unpriced(choice: &ModelChoice<'_>, cx: &LocalCx) -> Result<(), Fault> {
    let ModelChoice { provider, model } = choice;
    let line = format!(
        "The price of {}/{model} is not known, so what this run costs is not counted; set it \
         under [models.prices] in wharf.toml.",
        provider.name
    );
    cx.log(Level::Warn, line).await
}

/// Puts the text of files where their references stand.
async fn read_files(inputs: &mut Object, cx: &LocalCx) -> Result<(), Fault> {
    for (name, bytes) in cx.data().input_files() {
        if !FILE_INPUTS.contains(&name.as_str()) {
            let message =
                format!("The input `{name}` cannot be a file; `prompt` and `system` can.");
            return Err(Fault::new(Code::ToolInvalidInput, message));
        }
        if bytes > FILE_BYTES_MAX {
            let message = format!("The file of `{name}` is larger than 1 MiB.");
            return Err(Fault::new(Code::ToolInputTooLarge, message));
        }
        let mut body = cx.data().read(&name).await?;
        let mut text = Vec::new();
        while let Some(piece) = body.stream.next().await {
            text.extend_from_slice(&piece?);
        }
        let text = String::from_utf8(text).map_err(|_| {
            let message = format!("The file of `{name}` is not text.");
            Fault::new(Code::ToolInvalidInput, message)
        })?;
        inputs.insert(name, text.into());
    }
    Ok(())
}

/// Nobody was asked.
fn unasked(fault: Fault) -> ToolFailure {
    let CallFailure { fault, executed } = CallFailure::before(fault);
    ToolFailure { fault, executed, cost_micro: 0 }
}

fn object(output: &impl Serialize) -> Result<Object, Fault> {
    match serde_json::to_value(output) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(Fault::new(Code::ToolInternal, "The tool's output is not JSON.")),
    }
}
