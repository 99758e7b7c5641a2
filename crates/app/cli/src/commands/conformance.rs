//! `wharf conformance`: checks whether a peer keeps a protocol.

use std::path::PathBuf;

use wharf_conformance::{Error, Options};
use wharf_vocab::Code;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plain;

/// What `wharf conformance` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf conformance agent-protocol -- python3 agent.py
  wharf conformance agent-protocol --json -- ./my-agent --option

Exit code 1 if a requirement was broken.")]
pub(crate) struct Args {
    #[command(subcommand)]
    protocol: Protocol,
}

#[derive(Debug, clap::Subcommand)]
enum Protocol {
    /// Play a core against an agent and show which requirements it keeps
    AgentProtocol(AgentArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf conformance agent-protocol -- python3 agent.py
  wharf conformance agent-protocol --dir examples/agents/hello-python -- python3 agent.py

Needs no core. Each row is a requirement of docs/protocols/agent.md.")]
struct AgentArgs {
    /// The agent's folder, where its command starts
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// The command that starts the agent
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Checks the peer and prints the report.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    let Protocol::AgentProtocol(args) = args.protocol;
    let options = Options { dir: args.dir, ..Options::default() };
    if context.output.err_is_terminal() && !context.output.is_json() {
        context.output.note("Checking the agent; this takes a few seconds.");
    }
    let report = tokio::select! {
        report = wharf_conformance::run(args.command, options) => report.map_err(failure)?,
        // Giving the check up ends what it started.
        _ = tokio::signal::ctrl_c() => return Ok(Exit::Canceled),
    };
    if context.output.is_json() {
        context.output.json(&report.to_json())?;
    } else {
        for line in report.to_string().lines() {
            context.output.line(&plain::line(line))?;
        }
    }
    Ok(if report.passed() { Exit::Done } else { Exit::Failed })
}

#[expect(clippy::needless_pass_by_value, reason = "it is what an error is mapped with")]
fn failure(error: Error) -> Failure {
    match error {
        Error::NoCommand | Error::Folder { .. } | Error::Start { .. } => {
            Failure::usage(error.to_string())
        }
        Error::Place(_) => Failure::new(Code::HomeUnwritable, error.to_string()),
    }
}
