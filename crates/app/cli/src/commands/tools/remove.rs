//! `wharf tools remove`.

use wharf_vocab::Code;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};

use super::find;

/// What `wharf tools remove` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools remove text/shout@1
  wharf tools remove text/shout@1 --yes      even if it is enabled

An enabled tool is disabled first, after confirmation. Its approval is forgotten; its folder, its
runs and their files are not touched.")]
pub(crate) struct Args {
    /// The tool, or a unique beginning or end of its id
    tool: String,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Forgets the tool's server.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let id = find(&client, &args.tool).await?;
    let tool = client.tools().get(&id).await?;
    if tool.server.is_some_and(|server| server.enabled) {
        if !args.yes && !output.can_ask() {
            let message = format!("{id} is enabled; disable it first, or confirm it with --yes");
            return Err(Failure::new(Code::AgentRunning, message));
        }
        if !args.yes && !output.confirm(&format!("{id} is enabled. Disable and remove it?")) {
            return Ok(Exit::Done);
        }
        client.tools().disable(&id).await?;
    }
    client.tools().remove(&id).await?;
    output.note(&format!("removed {id}"));
    Ok(Exit::Done)
}
