//! `wharf agents remove`.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::plain;

use super::find;

/// What `wharf agents remove` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents remove hello

It must be stopped. Its approval and its tools are forgotten; its folder stays as it is.")]
pub(crate) struct Args {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
}

/// Forgets the agent.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let id = find::find_id(&client, &args.agent).await?;
    client.delete(&["v1", "agents", &id], &[]).await?;
    context.output.note(&format!("removed {}", plain::line(&id)));
    Ok(Exit::Done)
}
