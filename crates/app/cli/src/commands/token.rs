//! `wharf token`: rights that are handed out.

mod create;
mod narrow;

use clap::Subcommand;
use serde_json::json;
use wharf_vocab::Code;
use wharf_wire::rest_v1::{Keys, RotateKeys, Token};

use crate::commands::{CliError, Context, Exit, Output, Result, Table};
use crate::{amount, moment, plain, table};

/// What `wharf token` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf token create --world lab --verb run,read --ttl 8h
  wharf token create --verb approve,answer,read --person --label 'my phone'
  wharf token list
  wharf token revoke g-0193
  wharf token narrow --verb read < token.txt
  wharf token rotate")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: Option<TokenCommand>,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// List tokens, without their text
    #[command(after_help = "Examples:\n  wharf token\n  wharf token list --json")]
    List,
    /// Create a token, and print it once
    Create(create::TokenCreateArgs),
    /// Revoke a token, and all tokens narrowed from it
    #[command(after_help = "\
Examples:
  wharf token revoke g-0193a7

It takes effect at once, also for tokens narrowed from it. A unique beginning of the id is enough.")]
    Revoke {
        /// The token's id, or its beginning; never the token itself
        id: String,
    },
    /// Derive a token with fewer rights, without a core
    Narrow(narrow::TokenNarrowArgs),
    /// Create a new signing key for tokens
    #[command(after_help = "\
Examples:
  wharf token rotate                existing tokens stay valid
  wharf token rotate --drop-old     every existing token becomes invalid

The owner's token is not affected.")]
    Rotate {
        /// Discard older keys, which invalidates every token made with them
        #[arg(long)]
        drop_old: bool,
    },
}

/// Does what the subcommand says; lists tokens when there is none.
pub(crate) async fn run(args: TokenArgs, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(TokenCommand::List) {
        TokenCommand::List => {
            let empty = "no tokens but the owner's; make one with: wharf token create --verb read";
            super::list(context.client()?.tokens().list(), empty, context.output, table_of).await
        }
        TokenCommand::Create(args) => create::run(args, context).await,
        TokenCommand::Revoke { id } => revoke(&id, context).await,
        TokenCommand::Narrow(args) => narrow::run(args, context),
        TokenCommand::Rotate { drop_old } => rotate(drop_old, context).await,
    }
}

fn table_of(tokens: &[Token], output: Output) -> Table {
    let headings =
        ["TOKEN", "STATE", "VERBS", "WORLDS", "TOOLS", "PERSON", "BUDGET", "EXPIRES", "LABEL"];
    let mut table = Table::new(output, &headings)
        .keep_whole(&[0, 1])
        .leave_out(4, "all")
        .leave_out(5, "no")
        .leave_out(6, "")
        .leave_out(8, "");
    for token in tokens {
        let verbs: Vec<_> = token.verbs.iter().map(|verb| verb.as_str()).collect();
        let all = |list: Option<String>| list.unwrap_or_else(|| "all".to_owned());
        let expires = token.expires_at.map(moment::relative_to_now);
        let cells = [
            token.token_id.as_str(),
            token.state.as_str(),
            &verbs.join(" "),
            &all(token.worlds.as_ref().map(|list| table::joined(list, " "))),
            &all(token.tools.as_ref().map(|list| list.join(" "))),
            if token.person { "yes" } else { "no" },
            &token.budget_micro.map(amount::dollars).unwrap_or_default(),
            &expires.unwrap_or_else(|| "never".to_owned()),
            &token.label,
        ];
        table.row_with_state(cells, 1);
    }
    table
}

/// Makes a new key.
async fn rotate(drop_old: bool, context: &Context) -> Result<Exit> {
    let body = RotateKeys { drop_old: drop_old.then_some(true) };
    let raw = context.client()?.tokens().rotate(&body).raw().await?;
    context.output.answer(raw, |keys: Keys| {
        let older = keys.keys.len().saturating_sub(1);
        let current = plain::line(&keys.current);
        format!("{current} signs tokens from now on; {older} older keys are still valid\n")
    })
}

/// Makes the token worthless.
async fn revoke(typed: &str, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let id = pick(&client.tokens().list().all().await?, typed)?;
    client.tokens().revoke(&id).await?;
    let sentence = format!("revoked {}", plain::line(&id));
    context.output.done(&json!({"token_id": id, "state": "revoked"}), &sentence)
}

fn pick(tokens: &[Token], typed: &str) -> Result<String> {
    let fits = |token: &&Token| !typed.is_empty() && token.token_id.starts_with(typed);
    let fitting: Vec<&Token> = tokens.iter().filter(fits).collect();
    let whole = fitting.iter().find(|token| token.token_id == typed);
    match (whole, fitting.as_slice()) {
        (Some(one), _) | (None, [one]) => Ok(one.token_id.to_string()),
        // What was typed may be a token itself, so it is not repeated.
        (None, []) => {
            let message = "there is no token with this id; list them with: wharf token list";
            Err(CliError::new(Code::GrantNotFound, message))
        }
        (None, several) => {
            let message = format!("{} tokens have an id that begins so", several.len());
            Err(CliError::usage(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unique_beginning_is_enough_and_nothing_is_repeated() {
        let token = |id: &str| -> Token {
            serde_json::from_value(json!({"token_id": id, "label": "", "state": "active",
                "verbs": [], "person": false, "created_at": "2026-11-15T09:00:00.000Z", "created_by": "owner"}))
            .expect("a token")
        };
        let tokens = [token("g-1a"), token("g-1b"), token("g-1")];
        assert_eq!(pick(&tokens, "g-1a"), Ok("g-1a".into()));
        assert_eq!(pick(&tokens, "g-1"), Ok("g-1".into()));
        assert_eq!(pick(&tokens, "g-").expect_err("several").exit().number(), 2);
        for nobody in ["", "whf1.c4nary"] {
            let failure = pick(&tokens, nobody).expect_err("none");
            assert!(failure.is(Code::GrantNotFound) && !failure.message().contains("c4nary"));
        }
    }
}
