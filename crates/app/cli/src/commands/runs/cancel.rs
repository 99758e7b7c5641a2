//! `wharf runs cancel`.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::plain;

/// What `wharf runs cancel` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs cancel 0197a1c2-5d3e-7f00-8000-000000000001
  wharf runs cancel nightly --world lab --reason 'wrong input'")]
pub(crate) struct Args {
    /// The runs' ids
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The runs' world
    #[arg(long)]
    world: Option<String>,
    /// Why
    #[arg(long)]
    reason: Option<String>,
}

/// Asks for each run to be canceled; it ends when its provider has let go.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let (world, reason) = (args.world.as_deref(), args.reason.as_deref());
    for run in &args.runs {
        client.runs().cancel(run, reason).world(world).await?;
        context.output.note(&format!("canceling {}", plain::line(run)));
    }
    Ok(Exit::Done)
}
