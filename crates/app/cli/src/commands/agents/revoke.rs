//! `wharf agents revoke`.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;

use super::{act, words};

/// What `wharf agents revoke` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents revoke hello

It is stopped if it runs, and cannot be started until it is approved again.")]
pub(crate) struct Args {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
}

/// Takes the approval back, and returns once the agent is gone.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    act::act(context, &args.agent, ("revoke", "revoking"), |agent| {
        format!("is not approved any more; it is {}", words::state(agent))
    })
    .await
}
