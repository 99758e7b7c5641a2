//! `wharf tools logs`.

use crate::cli::Context;
use crate::commands::providers::logs;
use crate::exit::Exit;
use crate::failure::Result;

use super::{find, words};

/// What `wharf tools logs` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools logs text/shout@1
  wharf tools logs text/shout@1 -n 50 -f     follow until its process ends
  wharf tools logs text/shout@1 --json

Each line is marked with its source: out and err are the server's, log is the core's own.")]
pub(crate) struct Args {
    /// The tool, or a unique beginning or end of its id
    tool: String,
    #[command(flatten)]
    lines: logs::LogArgs,
}

/// Prints the log.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let id = find(&client, &args.tool).await?;
    let (tools, lines) = (client.tools(), args.lines.lines);
    if args.lines.follow {
        logs::follow(tools.follow_logs(&id, lines).await?, output).await?;
    } else {
        logs::show(tools.logs(&id, lines), output).await?;
    }
    if args.lines.follow && !output.is_json() {
        let tool = client.tools().get(&id).await?;
        let text = format!("its process has ended; {id} is {}", words::state(&tool));
        output.note(&output.err_paint().faint(&text));
    }
    Ok(Exit::Done)
}
