//! `wharf runs purge`.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plain;

/// What `wharf runs purge` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs purge 0197a1c2-5d3e-7f00-8000-000000000001
  wharf runs purge nightly-1 nightly-2 --world lab --yes

What the runs took and gave is removed for good; the audit keeps that they were there.")]
pub(crate) struct Args {
    /// The runs' ids; each must have ended
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The runs' world
    #[arg(long)]
    world: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Removes finished runs, once that is confirmed.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    if !args.yes {
        if !output.can_ask() {
            return Err(Failure::usage("removing runs cannot be undone; confirm it with --yes"));
        }
        let what = match args.runs.as_slice() {
            [one] => format!("run {}", plain::line(one)),
            many => format!("{} runs", many.len()),
        };
        if !output.confirm(&format!("Remove {what} for good?")) {
            output.note("nothing removed");
            return Ok(Exit::Done);
        }
    }
    for run in &args.runs {
        client.runs().purge(run).world(args.world.as_deref()).await?;
        output.note(&format!("removed {}", plain::line(run)));
    }
    Ok(Exit::Done)
}
