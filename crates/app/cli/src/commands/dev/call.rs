//! The prompt: what is typed, and calling the tool that it names.

use serde_json::Value;
use wharf_client::Client;
use wharf_vocab::Code;
use wharf_wire::rest_v1::CreateRun;

use super::provider::{Offered, short};
use crate::commands::run::{follow, print_outcome, request_of};
use crate::commands::tool::words;
use crate::commands::{CliError, Exit, Output, Result};
use crate::render::Renderer;
use crate::{inputs, plain};

pub(super) const HELP: &str = "\
  TOOL KEY=VALUE …   call a tool, such as: shout text=hello; --out KEY.world=/PATH as with wharf run
  tools              list the tools
  help               show this
  quit               leave; so do Ctrl-D and Ctrl-C";

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptLine {
    /// An empty line.
    Nothing,
    Help,
    Tools,
    Leave,
    /// A tool and its inputs.
    Call {
        tool: String,
        words: Vec<String>,
    },
    /// What cannot be read, and why.
    Unreadable(String),
}

impl PromptLine {
    pub(super) fn read(line: &str) -> Self {
        match line.trim() {
            "" => return Self::Nothing,
            "help" | "?" => return Self::Help,
            "tools" => return Self::Tools,
            "quit" | "exit" => return Self::Leave,
            _ => {}
        }
        match words(line) {
            Ok(mut words) => {
                let tool = words.remove(0);
                Self::Call { tool, words }
            }
            Err(why) => Self::Unreadable(why),
        }
    }
}

/// What is said before the first prompt.
pub(super) fn introduction(offered: &Offered) -> String {
    let example = offered.tools.first().map_or("TOOL", short);
    format!(
        "{}call one with its inputs, such as: {} KEY=VALUE (help, tools, quit)",
        offered.list(),
        plain::line(example)
    )
}

/// Asks for the next line.
pub(super) fn prompt(output: Output) {
    output.ask_for_line(&output.err_paint().strong("> "));
}

/// Calls a tool, shows its progress, and prints what it gives.
pub(super) async fn run(
    client: &Client,
    offered: &Offered,
    typed: &str,
    words: &[String],
    output: Output,
) -> Result<Exit> {
    let tool = offered.find(typed)?;
    let (pairs, outputs) = places(words)?;
    let inputs = inputs::object(&pairs, Some(&tool.input_schema), Code::ToolInvalidInput)?;
    let outputs = inputs::outputs(&outputs)?;
    let mut request: CreateRun = request_of(tool.tool_id.clone(), inputs)?;
    if !outputs.is_empty() {
        request.outputs = Value::Object(outputs);
    }
    let accepted = client.runs().submit(&request, |_| {}).await?;
    let mut renderer = Renderer::new(output);
    let run = &accepted.run_id;
    let end = follow::to_end(client.clone(), run, None, Some(&mut renderer)).await;
    renderer.finish();
    let Some(end) = end? else { return Ok(Exit::Canceled) };
    print_outcome(end, Some(&renderer), output)
}

/// Inputs, and where outputs go: what stands behind `--out`, as with `wharf run`.
fn places(words: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    let (mut pairs, mut outputs) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word != "--out" {
            pairs.push(word.clone());
            continue;
        }
        let place = words.next().ok_or_else(|| CliError::usage("--out takes KEY.world=/PATH"))?;
        outputs.push(place.clone());
    }
    Ok((pairs, outputs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_word_of_the_prompt_or_a_call() {
        let call = |tool: &str, pairs: &[&str]| PromptLine::Call {
            tool: tool.to_owned(),
            words: pairs.iter().map(|pair| (*pair).to_owned()).collect(),
        };
        assert_eq!(PromptLine::read("  "), PromptLine::Nothing);
        assert_eq!(PromptLine::read("help"), PromptLine::Help);
        assert_eq!(PromptLine::read(" quit "), PromptLine::Leave);
        assert_eq!(
            PromptLine::read("shout text='two words' n=3"),
            call("shout", &["text=two words", "n=3"])
        );
        assert!(matches!(PromptLine::read("shout 'text"), PromptLine::Unreadable(_)));
    }
}
