//! The reference agent: small tools that show what an agent meets.
//!
//! The first five act on nothing; `relay` calls another tool through the core, and `write_note`
//! acts, so it is called only once somebody has approved that. Most of them exist in plain Python
//! beside this folder too.

use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wharf_sdk::{AgentProcess, Chunk, Cx, Fault, File, JsonSchema, Object, tool};

/// More than this is not given by `large_output` inline.
const INLINE_BYTES_MAX: u64 = 256 * 1024;
/// More than this is not given at all; `large_output` says so instead.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

fn main() -> ExitCode {
    AgentProcess::new("dev.wharf.hello", env!("CARGO_PKG_VERSION"))
        .keeps_idempotency_keys()
        .own(&HELLO_WORLD)
        .own(&STREAM_COUNTER)
        .own(&SLEEP)
        .own(&INVALID_INPUT)
        .own(&LARGE_OUTPUT)
        .own(&RELAY)
        .own(&WRITE_NOTE)
        .run()
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    #[serde(default)]
    name: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Greeting {
    greeting: String,
}

/// Greets by name.
#[tool(name = "hello_world", side_effects = false)]
async fn hello_world(input: Greet, _cx: Cx) -> Result<Greeting, Fault> {
    let name = input.name.as_deref().unwrap_or("world");
    Ok(Greeting { greeting: format!("Hello, {name}!") })
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Count {
    /// How far to count. Each number streams two pieces, and a call may stream 10,000.
    #[schemars(range(min = 0, max = 4_000))]
    n: u32,
    /// How long to wait between two numbers.
    #[serde(default)]
    #[schemars(range(min = 0, max = 60_000))]
    delay_ms: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Counted {
    counted: u32,
}

/// Counts to n and streams every step.
#[tool(name = "stream_counter", side_effects = false)]
async fn stream_counter(input: Count, cx: Cx) -> Result<Counted, Fault> {
    for number in 1..=input.n {
        cx.text(format!("{number}\n")).await?;
        let fraction = f64::from(number) / f64::from(input.n);
        cx.status(format!("counted to {number} of {}", input.n), fraction).await?;
        if number < input.n {
            cx.sleep(Duration::from_millis(input.delay_ms)).await?;
        }
    }
    Ok(Counted { counted: input.n })
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Nap {
    /// How long to sleep.
    #[schemars(range(min = 0, max = 3_600_000))]
    ms: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Slept {
    slept_ms: u64,
}

/// Sleeps until the time is over or the call is canceled.
#[tool(side_effects = false)]
async fn sleep(input: Nap, cx: Cx) -> Result<Slept, Fault> {
    cx.sleep(Duration::from_millis(input.ms)).await?;
    Ok(Slept { slept_ms: input.ms })
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct OnlyInteger {
    /// Any integer; anything else is refused before the tool sees it.
    must_be: i64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct GivenInteger {
    integer: i64,
}

/// Takes an integer and refuses all else.
#[tool(name = "invalid_input", side_effects = false)]
async fn invalid_input(input: OnlyInteger, _cx: Cx) -> Result<GivenInteger, Fault> {
    Ok(GivenInteger { integer: input.must_be })
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Wanted {
    /// How many bytes to give.
    bytes: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Large {
    text: File,
    /// How many bytes the text has.
    bytes: u64,
    /// How many were wanted.
    wanted: u64,
    /// Whether the text is shorter than was wanted.
    truncated: bool,
}

/// Gives as many bytes as wanted, up to a bound.
#[tool(name = "large_output", side_effects = false)]
async fn large_output(input: Wanted, cx: Cx) -> Result<Large, Fault> {
    let most = if cx.info().outputs_dir.is_some() { FILE_BYTES_MAX } else { INLINE_BYTES_MAX };
    let given = input.bytes.min(most);
    let text = std::iter::repeat_n('x', usize::try_from(given).unwrap_or(0)).collect();
    Ok(Large {
        text: cx.large_text("text", text).await?,
        bytes: given,
        wanted: input.bytes,
        truncated: given < input.bytes,
    })
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Relay {
    /// The tool to call; the manifest asks for the permission.
    tool_id: String,
    /// What to call it with.
    #[serde(default)]
    input: Object,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Relayed {
    output: Object,
}

/// Calls another tool and passes on what it says.
#[tool]
async fn relay(input: Relay, cx: Cx) -> Result<Relayed, Fault> {
    let mut call = cx.calling(input.tool_id).start(&input.input)?;
    while let Some(piece) = call.next().await {
        match piece {
            Chunk::Text { text, .. } => cx.text(text).await?,
            Chunk::Status { text, fraction } => cx.status(text, fraction).await?,
            Chunk::Partial { json } => cx.partial(&json).await?,
        }
    }
    Ok(Relayed { output: call.output().await? })
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Note {
    /// What to write.
    text: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Noted {
    note: File,
}

/// Writes a note to a file, once that is approved.
#[tool(name = "write_note", side_effects = true, requires_directive = true)]
async fn write_note(input: Note, cx: Cx) -> Result<Noted, Fault> {
    Ok(Noted { note: cx.write("note", input.text).await? })
}
