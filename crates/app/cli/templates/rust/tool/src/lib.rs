//! The tool {{id}}: counts what a text has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wharf_sdk::{Cx, Error, Fault, Scope, Tool};

/// What is counted.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// The text, or a reference to a file with it.
    pub text: String,
}

/// What was counted.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// How many words there are.
    pub words: usize,
    /// How many lines there are.
    pub lines: usize,
}

/// The tool. Its types are those of its input, its output and its progress.
pub const COUNT: Tool<Input, Counted, String> =
    Tool::new("count", "Counts the words and lines of a text.");

async fn count(input: Input, cx: Cx<String>) -> Result<Counted, Fault> {
    cx.progress("counting".to_owned()).await;
    let text = input.text;
    let words = text.split_whitespace().count();
    let lines = text.lines().count();
    Ok(Counted { words, lines })
}

/// A scope with the tool.
pub fn tools() -> Result<Scope, Error> {
    let scope = Scope::root();
    scope.provide(&COUNT, count)?;
    Ok(scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(text: &str) -> Input {
        let text = text.to_owned();
        Input { text }
    }

    #[tokio::test]
    async fn words_and_lines_are_counted() {
        let scope = tools().expect("tools");
        let mut call = COUNT.call(&scope, input("to be\nor not to be\n"));
        let status = call.progress().await;
        assert_eq!(status.as_deref(), Some("counting"));
        assert_eq!(call.await, Ok(Counted { words: 6, lines: 2 }));
    }

    #[tokio::test]
    async fn nothing_has_nothing() {
        let scope = tools().expect("tools");
        let counted = COUNT.call(&scope, input("")).await;
        assert_eq!(counted, Ok(Counted { words: 0, lines: 0 }));
    }
}
