//! `wharf worlds remove`.

use std::time::Duration;

use reqwest::Method;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plain;
use crate::spinner::Spinner;

/// A world with many files takes its time.
const TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// What `wharf worlds remove` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds remove lab
  wharf worlds remove lab --force --yes

Without --force only a world is removed that holds no files and has no runs under way. With it
its runs are canceled and its files are gone for good. The audit keeps what happened in it.")]
pub(crate) struct Args {
    /// The world's id
    world: String,
    /// Also if it holds files or has runs under way
    #[arg(long)]
    force: bool,
    /// Do not ask
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
        if !output.confirm(&format!("Remove the world {world}{what} for good?")) {
            output.note("nothing removed");
            return Ok(Exit::Done);
        }
    }
    let spinner = Spinner::new(output, &format!("removing {world}"));
    let query = [("force", args.force.then_some("true"))];
    let request = client.request(Method::DELETE, &["v1", "worlds", &args.world], &query)?;
    client.send(request.timeout(TIMEOUT)).await?;
    drop(spinner);
    output.note(&format!("removed the world {world}"));
    Ok(Exit::Done)
}
