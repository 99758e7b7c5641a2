//! `wharf token revoke`.

use serde_json::json;
use wharf_vocab::Code;
use wharf_wire::rest_v1::Token;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plain;

/// What `wharf token revoke` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf token revoke g-0193a7

It takes effect at once, also for tokens narrowed from it. A unique beginning of the id is enough.")]
pub(crate) struct Args {
    /// The token's id, or its beginning; never the token itself
    id: String,
}

/// Makes the token worthless.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let id = pick(&client.tokens().list().all().await?, &args.id)?;
    client.tokens().revoke(&id).await?;
    if context.output.is_json() {
        context.output.json(&json!({"token_id": id, "state": "revoked"}))?;
    } else {
        context.output.note(&format!("revoked {}", plain::line(&id)));
    }
    Ok(Exit::Done)
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
            Err(Failure::new(Code::GrantNotFound, message))
        }
        (None, several) => {
            let message = format!("{} tokens have an id that begins so", several.len());
            Err(Failure::usage(message))
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
