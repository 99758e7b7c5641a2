//! `wharf token create`.

use std::time::Duration;

use wharf_vocab::{Code, Verb};
use wharf_wire::rest_v1::{CreateToken, Token};

use crate::commands::{CliError, Context, Exit, Result, word};
use crate::{amount, output, plain, table};

/// Said of a token for which nobody said how long it is valid.
const ENDLESS: &str =
    "warning: it is valid until you revoke it; bound it with --ttl 30d, or say --ttl never";

/// What `wharf token create` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf token create --world lab --verb run,read --tool 'llm/*' --ttl 8h
  wharf token create --world lab --verb run,read --budget-micro 5000000    five dollars
  wharf token create --verb read,answer,approve --person --label 'my phone'
  TOKEN=$(wharf token create --verb read)
  wharf token create --verb metrics --label prometheus

Verbs: run (start and cancel runs), read (look), answer (questions), approve (decide approvals),
operate (start and stop agents, read their logs), serve (offer tools), metrics (read metrics and
nothing else), admin (everything else).
The token is printed once, to standard output; what it allows goes to standard error.")]
pub(crate) struct TokenCreateArgs {
    /// What the token allows
    #[arg(long = "verb", required = true, value_delimiter = ',', value_parser = word::<Verb>())]
    verbs: Vec<Verb>,
    /// Only in this world; may be repeated [default: all worlds]
    #[arg(long = "world", value_name = "WORLD", value_delimiter = ',')]
    worlds: Vec<String>,
    /// Only tools that match, such as llm/* or */echo; may be repeated [default: all tools]
    #[arg(long = "tool", value_name = "PATTERN", value_delimiter = ',')]
    tools: Vec<String>,
    /// How long it is valid, such as 8h or 30d; never for one that does not end [default: never]
    #[arg(long, value_name = "DURATION", value_parser = lifetime)]
    ttl: Option<Lifetime>,
    /// The most its runs may cost, in millionths of a dollar; needs exactly one --world
    #[arg(long, value_name = "N")]
    budget_micro: Option<u64>,
    /// It is a person's token, which may decide what is reserved for people
    #[arg(long)]
    person: bool,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
}

/// How long a token is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    Of(Duration),
    /// Until it is revoked.
    Endless,
}

fn lifetime(text: &str) -> std::result::Result<Lifetime, String> {
    match text {
        "never" => Ok(Lifetime::Endless),
        text => amount::duration(text).map(Lifetime::Of),
    }
}

/// Makes the token.
pub(super) async fn run(args: TokenCreateArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let worlds = args.worlds.iter().map(|typed| crate::commands::run::id("worlds", typed));
    let worlds = Some(worlds.collect::<Result<_>>()?);
    let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
    let body = CreateToken {
        label: args.label,
        verbs: args.verbs,
        worlds: worlds.filter(|worlds: &Vec<_>| !worlds.is_empty()),
        tools: some(args.tools),
        ttl_ms: match args.ttl {
            Some(Lifetime::Of(ttl)) => Some(amount::ms(ttl)),
            Some(Lifetime::Endless) | None => None,
        },
        expires_at: None,
        budget_micro: args.budget_micro,
        person: args.person.then_some(true),
    };
    let raw = context.client()?.tokens().create(&body).raw().await?;
    if output.is_json() {
        output.json(&raw)?;
        return Ok(Exit::Done);
    }
    let made: Token = output::typed(raw)?;
    let token = made.token.as_deref().ok_or_else(|| {
        CliError::new(Code::CoreInternal, "the core created a token and did not return it")
    })?;
    output.note(&text_of(&made));
    if args.ttl.is_none() {
        output.note(&output.err_paint().attention(ENDLESS));
    }
    output.line(&plain::line(token))?;
    Ok(Exit::Done)
}

/// What a token is good for.
fn text_of(token: &Token) -> String {
    let verbs: Vec<_> = token.verbs.iter().map(|verb| verb.as_str()).collect();
    let worlds =
        token.worlds.as_ref().map_or("all worlds".to_owned(), |list| table::joined(list, ", "));
    let tools = token.tools.as_ref().map_or("all tools".to_owned(), |list| list.join(", "));
    let until = token.expires_at.map(crate::moment::relative_to_now);
    let until = until.map_or("for ever".to_owned(), |until| format!("it ends {until}"));
    let who = if token.person { "a person's token" } else { "a token" };
    let id = &token.token_id;
    plain::line(&format!(
        "{who} {id} to {} in {worlds} with {tools}; {until}. It is shown only now.",
        verbs.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_length_or_never() {
        assert_eq!(lifetime("never"), Ok(Lifetime::Endless));
        assert_eq!(lifetime("8h"), Ok(Lifetime::Of(Duration::from_secs(8 * 3_600))));
        assert!(lifetime("8").is_err() && lifetime("forever").is_err());
    }

    #[test]
    fn a_token_is_described_in_one_line() {
        let token: Token = serde_json::from_str(
            r#"{"token_id":"g-1","label":"","state":"active","verbs":["run","read"],
                "worlds":["lab"],"person":true,"created_at":"2026-11-15T09:00:00.000Z","created_by":"owner"}"#,
        )
        .expect("a token");
        assert_eq!(
            text_of(&token),
            "a person's token g-1 to run, read in lab with all tools; for ever. \
             It is shown only now."
        );
    }
}
