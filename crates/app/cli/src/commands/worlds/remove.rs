//! `wharf worlds remove`.

use serde_json::json;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plain;
use crate::spinner::Spinner;

/// What `wharf worlds remove` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds remove lab
  wharf worlds remove lab --force --yes

Without --force, a world with files is not removed; with it, the files are removed permanently. A
world with open runs is never removed: cancel them first. Its history stays on record.")]
pub(crate) struct Args {
    /// The world's id
    world: String,
    /// Even if it holds files
    #[arg(long)]
    force: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Removes a world, once that is confirmed.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let world = plain::line(&args.world);
    let client = context.client()?;
    if !args.yes {
        if !output.can_ask() {
            return Err(Failure::usage("removing a world cannot be undone; confirm it with --yes"));
        }
        let what = if args.force { " and all its files" } else { "" };
        if !output.confirm(&format!("Remove the world {world}{what} permanently?")) {
            if output.is_json() {
                output.json(&json!({"world": args.world, "removed": false}))?;
            } else {
                output.note("nothing removed");
            }
            return Ok(Exit::Done);
        }
    }
    let spinner = Spinner::new(output, &format!("removing {world}"));
    client.worlds().remove(&args.world, args.force).await?;
    drop(spinner);
    if output.is_json() {
        output.json(&json!({"world": args.world, "removed": true}))?;
    } else {
        output.note(&format!("removed the world {world}"));
    }
    Ok(Exit::Done)
}
