//! `wharf runs cancel`.

use wharf_wire::rest_v1::CancelRun;

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
    let query = [("world", args.world.as_deref())];
    let body = CancelRun { reason: args.reason };
    for run in &args.runs {
        client.post(&["v1", "runs", run, "cancel"], &query, &body).await?;
        context.output.note(&format!("canceling {}", plain::line(run)));
    }
    Ok(Exit::Done)
}
