//! `wharf deny`.

use wharf_vocab::{AskKind, Decision};
use wharf_wire::rest_v1::DecideApproval;

use crate::commands::asks;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::plain;

/// What `wharf deny` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf deny c3 --reason 'not on a Friday'

A beginning of the id that only one open ask has is enough; see them with: wharf inbox")]
pub(crate) struct Args {
    /// The approval's id, or its beginning
    id: String,
    /// Why; whoever started the run is told
    #[arg(long)]
    reason: String,
}

/// Denies what waits for the approval; its run ends refused.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    let reason = Some(args.reason);
    let decision = DecideApproval { decision: Decision::Deny, scope: None, reason };
    decide(&args.id, &decision, context).await
}

/// Decides an approval, and says what was decided about what.
pub(crate) async fn decide(
    typed: &str,
    decision: &DecideApproval,
    context: &Context,
) -> Result<Exit> {
    let client = context.client()?;
    let ask = asks::find(&client, typed, AskKind::Approval).await?;
    // Of an approval that is not open any more the core knows what became of it.
    let id = ask.as_ref().map_or(typed, |ask| &ask.ask_id);
    client.inbox().decide(id, decision).await?;
    let word = if decision.decision == Decision::Allow { "allowed" } else { "denied" };
    let what = ask.as_ref().map_or_else(
        || plain::line(typed),
        |ask| format!("{} (run {})", plain::line(&ask.title), plain::line(&ask.run_id)),
    );
    context.output.note(&format!("{word}: {what}"));
    Ok(Exit::Done)
}
