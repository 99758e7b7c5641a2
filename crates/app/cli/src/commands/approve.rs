//! `wharf approve`.

use wharf_vocab::{AllowScope, Decision};
use wharf_wire::rest_v1::DecideApproval;

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
  wharf approve c3 --for-parent     also the next calls of this tool by the same run

A beginning of the id that only one open ask has is enough; see them with: wharf inbox")]
pub(crate) struct Args {
    /// The approval's id, or its beginning
    id: String,
    /// Why
    #[arg(long)]
    reason: Option<String>,
    /// Also later runs of the same tool that the same caller starts within the same parent run
    #[arg(long)]
    for_parent: bool,
}

/// Allows what waits for the approval.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    let scope = args.for_parent.then_some(AllowScope::Parent);
    let decision = DecideApproval { decision: Decision::Allow, scope, reason: args.reason };
    decide(&args.id, &decision, context).await
}
