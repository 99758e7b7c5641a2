//! `wharf approve`.

use crate::commands::deny::decide;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;

/// What `wharf approve` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf approve c3
  wharf approve c3 --reason 'checked with the owner'

A beginning of the id that only one open ask has is enough; see them with: wharf inbox")]
pub(crate) struct Args {
    /// The approval's id, or its beginning
    id: String,
    /// Why
    #[arg(long)]
    reason: Option<String>,
}

/// Allows what waits for the approval, once.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    decide(&args.id, "allow", args.reason, context).await
}
