//! What the built-in tools do.

use std::time::Duration;

use futures::StreamExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wharf_domain::{Audience, Progress, Resolution, ToolDef};
use wharf_engine::in_process::{InProcess, LocalCx};
use wharf_vocab::{Code, Fault, FaultCode};

use crate::notify::notify;
use crate::{BuiltinOptions, sample};

/// The provider of all built-in tools.
pub(crate) fn provider(options: BuiltinOptions) -> Result<InProcess, Fault> {
    build(options)
        .map_err(|error| Fault::new(Code::CoreInternal, format!("A built-in tool: {error}.")))
}

fn build(options: BuiltinOptions) -> Result<InProcess, wharf_vocab::IdError> {
    let provider = InProcess::new("wharf")?
        .tool("echo", "Gives its inputs back as outputs, files as their text.", harmless, echo)?
        .tool("count", "Counts to n, one number at a time.", harmless, count)?
        .tool("sleep", "Waits, and can be canceled while it does.", at_a_price, sleep)?
        .tool("fail", "Fails the way it is told to.", harmless, fail)?
        .tool("ask", "Asks a question and gives the answer back.", harmless, ask)?
        .tool("approve-me", "Runs only once somebody has approved it.", guarded, approve_me)?
        .tool("notify", "Keeps a message in the run's log.", harmless, notify)?;
    sample::add(provider, options.model_tool)
}

fn harmless(def: &mut ToolDef) {
    def.free = true;
    def.side_effects = Some(false);
    def.mock = true;
    def.timeout_ms = Some(60 * 60 * 1000);
}

/// It costs what it is told to.
fn at_a_price(def: &mut ToolDef) {
    harmless(def);
    def.free = false;
}

fn guarded(def: &mut ToolDef) {
    harmless(def);
    def.requires_directive = true;
}

type BuiltinResult<T> = Result<(T, u64), Fault>;

/// Anything.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Anything(Map<String, Value>);

/// Largest file whose text is given back.
const ECHO_FILE_BYTES_MAX: u64 = 1024 * 1024;

async fn echo(mut input: Anything, cx: LocalCx) -> BuiltinResult<Anything> {
    for (name, bytes) in cx.data().input_files() {
        if bytes > ECHO_FILE_BYTES_MAX {
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
        input.0.insert(name, text.into());
    }
    Ok((input, 0))
}

/// What to count to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CountInput {
    /// How far to count.
    #[schemars(range(min = 1, max = 1_000_000))]
    n: u32,
    /// How long to wait between two numbers.
    #[serde(default = "count_delay")]
    #[schemars(range(max = 60_000))]
    delay_ms: u64,
}

fn count_delay() -> u64 {
    100
}

/// How far the count came.
#[derive(Serialize, JsonSchema)]
struct CountOutput {
    /// The last number.
    n: u32,
    /// The sum of all numbers.
    sum: u64,
}

async fn count(input: CountInput, cx: LocalCx) -> BuiltinResult<CountOutput> {
    let mut sum = 0;
    for number in 1..=input.n {
        sum += u64::from(number);
        cx.progress(vec![
            Progress::Text { channel: "stdout".to_owned(), text: format!("{number}\n") },
            Progress::Phase {
                phase: "counting".to_owned(),
                fraction: Some(f64::from(number) / f64::from(input.n)),
            },
        ])
        .await?;
        if input.delay_ms > 0 && number < input.n {
            tokio::time::sleep(Duration::from_millis(input.delay_ms)).await;
        }
    }
    Ok((CountOutput { n: input.n, sum }, 0))
}

/// How long to sleep.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SleepInput {
    /// How many milliseconds to sleep.
    #[schemars(range(max = 3_600_000))]
    ms: u64,
    /// What to report as the run's cost, to try budgets.
    #[serde(default)]
    #[schemars(range(max = 1_000_000_000))]
    cost_micro: u64,
}

/// How long it slept.
#[derive(Serialize, JsonSchema)]
struct SleepOutput {
    /// How many milliseconds.
    slept_ms: u64,
}

async fn sleep(input: SleepInput, _cx: LocalCx) -> BuiltinResult<SleepOutput> {
    tokio::time::sleep(Duration::from_millis(input.ms)).await;
    Ok((SleepOutput { slept_ms: input.ms }, input.cost_micro))
}

/// How to fail.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FailInput {
    /// The error code, dotted.
    #[serde(default = "fail_code")]
    code: String,
    /// The error message.
    #[serde(default = "fail_message")]
    #[schemars(length(max = 1000))]
    message: String,
    /// Whether trying again may help; then the core does.
    #[serde(default)]
    retryable: bool,
}

fn fail_code() -> String {
    Code::ToolFailed.as_str().to_owned()
}

fn fail_message() -> String {
    "The tool failed because it was told to.".to_owned()
}

/// Nothing: the tool never succeeds.
#[derive(Serialize, JsonSchema)]
struct Never {}

async fn fail(input: FailInput, _cx: LocalCx) -> BuiltinResult<Never> {
    let Some(code) = FaultCode::parse(&input.code) else {
        let message = "The code must be lower-case words joined by dots, such as acme.no_stock.";
        return Err(Fault::new(Code::ToolInvalidInput, message).with("path", "/code"));
    };
    Err(Fault::with_code(code, input.message, input.retryable))
}

/// What to ask.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskInput {
    /// The question.
    #[serde(default = "ask_question")]
    #[schemars(length(min = 1, max = 500), extend("x-wharf-literal" = true))]
    question: String,
    /// JSON Schema of the answer; any text when absent.
    #[serde(default = "ask_schema")]
    schema: Map<String, Value>,
    /// What else there is to know about the question.
    #[serde(default)]
    detail: Option<Map<String, Value>>,
}

fn ask_question() -> String {
    "What is your favorite color?".to_owned()
}

fn ask_schema() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!("string"))])
}

/// How the question ended.
#[derive(Serialize, JsonSchema)]
struct AskOutput {
    /// `answered`, `declined`, `cancelled`, `off_script` or `expired`.
    status: String,
    /// The answer, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
}

async fn ask(input: AskInput, cx: LocalCx) -> BuiltinResult<AskOutput> {
    let schema = Some(Value::Object(input.schema));
    let detail = input.detail.map(Value::Object);
    let ended = cx.ask_about("question", &input.question, schema, Audience::Any, detail).await?;
    let status = ended.as_str().to_owned();
    let answer = match ended {
        Resolution::Answered { value } => Some(value),
        Resolution::OffScript { text } => Some(Value::String(text)),
        _ => None,
    };
    Ok((AskOutput { status, answer }, 0))
}

/// What is to be approved.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApproveInput {
    /// What the run is for; it is shown to nobody but is part of what is approved.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    purpose: String,
}

/// That it was approved.
#[derive(Serialize, JsonSchema)]
struct ApproveOutput {
    /// Always true: without an approval the tool does not run.
    approved: bool,
    /// What the run was for.
    purpose: String,
}

async fn approve_me(input: ApproveInput, _cx: LocalCx) -> BuiltinResult<ApproveOutput> {
    Ok((ApproveOutput { approved: true, purpose: input.purpose }, 0))
}
