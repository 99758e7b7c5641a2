//! `wharf agents stop`.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;

use super::{act, words};

/// What `wharf agents stop` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents stop hello

It is told to end, and killed with everything it started if it does not. It stays stopped, also
after a restart of the core, until it is started.")]
pub(crate) struct Args {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
}

/// Stops the agent, and returns once it is gone.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    act::act(context, &args.agent, ("stop", "stopping"), |agent| {
        format!("is {}", words::state(agent))
    })
    .await
}
