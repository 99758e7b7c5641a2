//! `wharf agents`: programs that the core launches and that offer tools.

mod add;
mod approve;
mod list;
mod logs;
mod scan;
mod show;
mod start;
mod steer;
mod words;

use clap::Subcommand;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;

/// What `wharf agents` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents                          list them
  wharf agents scan ~/agents            find agents below a folder
  wharf agents add ./hello              read a manifest; nothing runs yet
  wharf agents approve hello --all      approve what it asks for
  wharf agents start hello              start it, and keep it running
  wharf agents logs hello -f            read its log

A unique beginning or end of an agent's id is enough.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List agents
    #[command(after_help = "Examples:\n  wharf agents\n  wharf agents list --json")]
    List,
    /// Add the agent in a folder, and show what it asks for
    Add(add::Args),
    /// Show one agent: its state, its permissions and its tools
    Show(show::Args),
    /// Find agents below a folder, without running anything
    Scan(scan::Args),
    /// Approve all or some of what an agent asks for
    Approve(approve::Args),
    /// Revoke an approval, and stop the agent if it runs
    Revoke(steer::RevokeArgs),
    /// Start an agent and keep it running, also after a restart of the core
    Start(start::Args),
    /// Stop an agent and everything it started
    Stop(steer::StopArgs),
    /// Restart an agent, or start it
    Restart(start::RestartArgs),
    /// Print an agent's log, even if it has ended
    Logs(logs::Args),
    /// Remove an agent; its folder is not touched
    Remove(steer::RemoveArgs),
}

/// Does what the subcommand says; lists agents when there is none.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(Command::List) {
        Command::List => list::run(context).await,
        Command::Add(args) => add::run(&args, context).await,
        Command::Show(args) => show::run(&args, context).await,
        Command::Scan(args) => scan::run(&args, context).await,
        Command::Approve(args) => approve::run(args, context).await,
        Command::Revoke(args) => steer::revoke(&args, context).await,
        Command::Start(args) => start::run(&args, context).await,
        Command::Stop(args) => steer::stop(&args, context).await,
        Command::Restart(args) => start::run_restart(&args, context).await,
        Command::Logs(args) => logs::run(&args, context).await,
        Command::Remove(args) => steer::remove(&args, context).await,
    }
}
