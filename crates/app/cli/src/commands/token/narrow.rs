//! `wharf token narrow`: works without a core.

use std::io::Read as _;
use std::time::Duration;

use serde_json::json;
use wharf_server::tokens::{self, Narrower};
use wharf_vocab::Verb;

use crate::amount;
use crate::commands::{CliError, Context, Exit, Result, word};

/// No token is longer.
const TOKEN_BYTES_MAX: u64 = 8 * 1024;

/// What `wharf token narrow` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf token narrow --verb read --ttl 10m < token.txt
  echo \"$TOKEN\" | wharf token narrow --world lab --tool 'llm/*' --name ci
  wharf token narrow --token \"$TOKEN\" --verb run

The token is read from standard input or --token. Rights can only be removed, never added. The new
token is never a person's, and is revoked together with the original.")]
#[command(group = clap::ArgGroup::new("less").required(true).multiple(true))]
pub(crate) struct TokenNarrowArgs {
    /// Only these verbs
    #[arg(long = "verb", value_delimiter = ',', value_parser = word::<Verb>(), group = "less")]
    verbs: Vec<Verb>,
    /// Only in this world; may be repeated
    #[arg(long = "world", value_name = "WORLD", value_delimiter = ',', group = "less")]
    worlds: Vec<String>,
    /// Only tools that match; may be repeated
    #[arg(long = "tool", value_name = "PATTERN", value_delimiter = ',', group = "less")]
    tools: Vec<String>,
    /// How long it is valid from now on
    #[arg(long, value_name = "DURATION", value_parser = amount::duration, group = "less")]
    ttl: Option<Duration>,
    /// A name for it, shown in the audit [default: a random one]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// Prints the narrower token.
pub(super) fn run(args: TokenNarrowArgs, context: &Context) -> Result<Exit> {
    let token = match &context.locator.token {
        Some(token) => token.trim().to_owned(),
        None => read_token()?,
    };
    let name = args.name.unwrap_or_else(|| {
        // The end of such an id is random.
        let id = uuid::Uuid::now_v7().simple().to_string();
        format!("n{}", &id[id.len() - 8..])
    });
    fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
        (!list.is_empty()).then_some(list)
    }
    let by = Narrower {
        name,
        verbs: some(args.verbs),
        worlds: some(args.worlds),
        tools: some(args.tools),
        ttl: args.ttl,
    };
    let narrowed = tokens::narrow(&token, by)?;
    if context.output.is_json() {
        context.output.json(&json!({"token": narrowed}))?;
    } else {
        context.output.line(&narrowed)?;
    }
    Ok(Exit::Done)
}

fn read_token() -> Result<String> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(TOKEN_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| CliError::unreadable("standard input", &error))?;
    match text.trim() {
        "" => Err(CliError::usage("there is no token on standard input; send it, or give --token")),
        token => Ok(token.to_owned()),
    }
}
