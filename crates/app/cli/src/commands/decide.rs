//! `wharf approve` and `wharf deny`.

use wharf_vocab::{AllowScope, AskKind, Decision};
use wharf_wire::rest_v1::DecideApproval;

use crate::commands::{Context, Exit, Result, asks};
use crate::plain;

/// What `wharf approve` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf approve c3
  wharf approve c3 --reason 'checked with the owner'
  wharf approve c3 --for-parent     also later calls of this tool by the same run

A unique beginning of the id is enough; list open asks with: wharf inbox")]
pub(crate) struct ApproveArgs {
    /// The approval's id, or its beginning
    id: String,
    /// Why
    #[arg(long)]
    reason: Option<String>,
    /// Also approve later runs of this tool by the same caller within the same parent run
    #[arg(long)]
    for_parent: bool,
}

/// Allows what waits for the approval.
pub(crate) async fn approve(args: ApproveArgs, context: &Context) -> Result<Exit> {
    let scope = args.for_parent.then_some(AllowScope::Parent);
    let decision = DecideApproval {
        decision: Decision::Allow,
        scope,
        reason: args.reason,
        args_digest: None,
        tool_hash: None,
    };
    decide(&args.id, &decision, context).await
}

/// What `wharf deny` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf deny c3 --reason 'not on a Friday'

A unique beginning of the id is enough; list open asks with: wharf inbox")]
pub(crate) struct DenyArgs {
    /// The approval's id, or its beginning
    id: String,
    /// Why; the caller of the run sees it
    #[arg(long)]
    reason: String,
}

/// Denies what waits for the approval; its run ends refused.
pub(crate) async fn deny(args: DenyArgs, context: &Context) -> Result<Exit> {
    let reason = Some(args.reason);
    let decision = DecideApproval {
        decision: Decision::Deny,
        scope: None,
        reason,
        args_digest: None,
        tool_hash: None,
    };
    decide(&args.id, &decision, context).await
}

/// Decides an approval, and says what was decided about what.
async fn decide(typed: &str, decision: &DecideApproval, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let ask = asks::find(&client, typed, AskKind::Approval).await?;
    // The core reports how a closed approval was decided.
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
