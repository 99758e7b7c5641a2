//! A tool server in Rust: counts the words of a text, and lists them where a list is wanted.
//!
//! ```text
//! text-words --port 8000
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wharf_sdk::toolserver::ToolServer;
use wharf_sdk::{Cx, Fault, File, tool};

/// What a thousand words cost, in micro-dollars.
const PRICE: u64 = 10;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Input {
    /// The text, or a reference to a file with it.
    text: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Output {
    /// How many words there are.
    words: u64,
    /// How often each occurs, where the caller wants a file of it.
    table: Option<File>,
}

/// Counts the words of a text.
#[tool]
async fn count(input: Input, cx: Cx) -> Result<Output, Fault> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for word in input.text.split_whitespace() {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
    let words: u64 = counts.values().sum();
    cx.log(format!("There are {words} words, {} of them different.", counts.len())).await?;
    cx.partial(&json!({"words": words})).await?;
    let table = if cx.is_wanted("table") {
        let lines: String =
            counts.iter().map(|(word, count)| format!("{word}\t{count}\n")).collect();
        Some(cx.write("table", lines).await?)
    } else {
        None
    };
    cx.status("", 1.0).await?;
    cx.cost(words.div_ceil(1_000) * PRICE);
    Ok(Output { words, table })
}

fn main() -> ExitCode {
    ToolServer::own("text/words@1", &COUNT).run()
}
