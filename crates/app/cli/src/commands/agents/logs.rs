//! `wharf agents logs`.

use wharf_client::Client;

use crate::cli::Context;
use crate::commands::providers::logs;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::Output;
use crate::plain;

use super::{steer, words};

/// What `wharf agents logs` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents logs hello
  wharf agents logs hello -n 50 -f     follow until its process ends
  wharf agents logs hello --json

Each line is marked with its source: out and err are the agent's, log is the core's own.")]
pub(crate) struct Args {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
    #[command(flatten)]
    lines: logs::LogArgs,
}

/// Prints the log.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let id = steer::find_id(&client, &args.agent).await?;
    let (agents, lines) = (client.agents(), args.lines.lines);
    if args.lines.follow {
        logs::follow(agents.follow_logs(&id, lines).await?, output).await?;
        tell_end(&client, &id, output).await?;
    } else {
        logs::show(agents.logs(&id, lines), output).await?;
    }
    Ok(Exit::Done)
}

/// Says why nothing more comes.
async fn tell_end(client: &Client, id: &str, output: Output) -> Result<()> {
    let agent = client.agents().get(id).await?;
    if !output.is_json() {
        let id = plain::line(id);
        let text = format!("its process has ended; {id} is {}", words::state(&agent));
        output.note(&output.err_paint().faint(&text));
    }
    Ok(())
}
