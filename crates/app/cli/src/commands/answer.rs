//! `wharf answer`: answers a question, from the command line or in a form.

use std::io;

use serde_json::Value;
use wharf_vocab::{AskKind, NoAnswer};
use wharf_wire::rest_v1::{AnswerQuestion, Ask};

use crate::commands::{CliError, Context, Exit, Output, Result, asks};
use crate::form::Form;
use crate::{inputs, plain};

/// What `wharf answer` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf answer c3                         fill in a form
  wharf answer c3 blue                    one plain value
  wharf answer c3 name=Ada age=36         the fields of an object
  wharf answer c3 --value '{\"age\":36}'    the answer as JSON
  wharf answer c3 --decline
  wharf answer c3 --text 'ask me again on Monday'

A unique beginning of the id is enough; list open asks with: wharf inbox")]
pub(crate) struct AnswerArgs {
    /// The question's id, or its beginning
    id: String,
    /// The answer: one value, or key=value pairs, typed by the question's schema
    #[arg(value_name = "VALUE", conflicts_with = "instead")]
    words: Vec<String>,
    #[command(flatten)]
    instead: AnswerChoice,
}

/// Other ways to answer; at most one of them.
#[derive(Debug, clap::Args)]
#[group(id = "instead", multiple = false)]
struct AnswerChoice {
    /// The answer as JSON: as text, from a file, or from standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    value: Option<String>,
    /// Decline to answer
    #[arg(long)]
    decline: bool,
    /// Cancel what the question is about
    #[arg(long)]
    cancel: bool,
    /// Answer with free text that does not follow the question's form
    #[arg(long)]
    text: Option<String>,
}

/// Answers the question.
pub(crate) async fn run(args: AnswerArgs, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let ask = asks::find(&client, &args.id, AskKind::Question).await?;
    let Some(answer) = answer_of(&args, ask.as_ref(), context.output)? else {
        context.output.note("left without an answer");
        return Ok(Exit::Failed);
    };
    // Of a question that is not open any more the core knows what became of it.
    let id = ask.map_or(args.id, |ask| ask.ask_id.to_string());
    client.inbox().answer(&id, &answer).await?;
    let word = answer.status.map_or("answered", NoAnswer::as_str).replace('_', " ");
    context.output.note(&format!("{word}: {}", plain::line(&id)));
    Ok(Exit::Done)
}

fn answer_of(
    args: &AnswerArgs,
    ask: Option<&Ask>,
    output: Output,
) -> Result<Option<AnswerQuestion>> {
    let status = |status: NoAnswer, text: Option<String>| AnswerQuestion {
        value: None,
        status: Some(status),
        text,
    };
    let schema = ask.and_then(|ask| ask.schema.as_ref());
    let AnswerChoice { value, decline, cancel, text } = &args.instead;
    let value = match (value, text) {
        (Some(json), _) => inputs::json(json)?,
        (None, Some(text)) => return Ok(Some(status(NoAnswer::OffScript, Some(text.clone())))),
        (None, None) if *decline => return Ok(Some(status(NoAnswer::Declined, None))),
        (None, None) if *cancel => return Ok(Some(status(NoAnswer::Cancelled, None))),
        (None, None) if !args.words.is_empty() => inputs::answer(&args.words, schema)?,
        (None, None) => match ask {
            Some(ask) => match form(ask, output)? {
                Some(value) => value,
                None => return Ok(None),
            },
            None => return Err(asks::not_open(&args.id)),
        },
    };
    Ok(Some(AnswerQuestion { value: Some(value), status: None, text: None }))
}

fn form(ask: &Ask, output: Output) -> Result<Option<Value>> {
    if !output.can_ask() {
        let message =
            "there is no terminal to ask on; give the answer as VALUE, key=value or --value";
        return Err(CliError::usage(message));
    }
    Form::new(io::stdin().lock(), io::stderr())
        .fill(&ask.title, ask.schema.as_ref())
        .map_err(|error| CliError::unreadable("the terminal", &error))
}
