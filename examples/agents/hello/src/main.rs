//! The reference agent: five small tools that show what an agent meets.
//!
//! None of them acts on the world. The same tools exist in plain Python beside this folder.

use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wharf_sdk::{Agent, Cx, Fault, JsonSchema};

/// More than this is not given by `large_output`; it says so instead.
const OUTPUT_BYTES_MAX: u64 = 256 * 1024;

fn main() -> ExitCode {
    Agent::new("dev.wharf.hello", env!("CARGO_PKG_VERSION"))
        .keeps_idempotency_keys()
        .tool("hello_world", "Greets by name.", hello_world)
        .side_effects(false)
        .tool("stream_counter", "Counts to n and streams every step.", stream_counter)
        .side_effects(false)
        .tool("sleep", "Sleeps until the time is over or the call is canceled.", sleep)
        .side_effects(false)
        .tool("invalid_input", "Takes an integer and refuses all else.", invalid_input)
        .side_effects(false)
        .tool("large_output", "Gives as many bytes as wanted, up to a bound.", large_output)
        .side_effects(false)
        .run()
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    #[serde(default)]
    name: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Greeting {
    greeting: String,
}

async fn hello_world(input: Greet, _cx: Cx) -> Result<Greeting, Fault> {
    let name = input.name.as_deref().unwrap_or("world");
    Ok(Greeting { greeting: format!("Hello, {name}!") })
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    /// How far to count. Each number streams two pieces, and a call may stream 10,000.
    #[schemars(range(min = 0, max = 4_000))]
    n: u32,
    /// How long to wait between two numbers.
    #[serde(default)]
    #[schemars(range(min = 0, max = 60_000))]
    delay_ms: u64,
}

#[derive(Serialize, JsonSchema)]
struct Counted {
    counted: u32,
}

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

#[derive(Deserialize, JsonSchema)]
struct Nap {
    /// How long to sleep.
    #[schemars(range(min = 0, max = 3_600_000))]
    ms: u64,
}

#[derive(Serialize, JsonSchema)]
struct Slept {
    slept_ms: u64,
}

async fn sleep(input: Nap, cx: Cx) -> Result<Slept, Fault> {
    cx.sleep(Duration::from_millis(input.ms)).await?;
    Ok(Slept { slept_ms: input.ms })
}

#[derive(Deserialize, JsonSchema)]
struct OnlyInteger {
    /// Any integer; anything else is refused before the tool sees it.
    must_be: i64,
}

#[derive(Serialize, JsonSchema)]
struct GivenInteger {
    integer: i64,
}

async fn invalid_input(input: OnlyInteger, _cx: Cx) -> Result<GivenInteger, Fault> {
    Ok(GivenInteger { integer: input.must_be })
}

#[derive(Deserialize, JsonSchema)]
struct Wanted {
    /// How many bytes to give.
    bytes: u64,
}

#[derive(Serialize, JsonSchema)]
struct Large {
    text: String,
    /// How many bytes the text has.
    bytes: u64,
    /// How many were wanted.
    wanted: u64,
    /// Whether the text is shorter than was wanted.
    truncated: bool,
}

async fn large_output(input: Wanted, _cx: Cx) -> Result<Large, Fault> {
    let given = input.bytes.min(OUTPUT_BYTES_MAX);
    Ok(Large {
        text: std::iter::repeat_n('x', usize::try_from(given).unwrap_or(0)).collect(),
        bytes: given,
        wanted: input.bytes,
        truncated: given < input.bytes,
    })
}
