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

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;

/// What `wharf agents` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents                          list them
  wharf agents scan ~/agents            see what lies below a folder
  wharf agents add ./hello              read a manifest; nothing runs yet
  wharf agents approve hello --all      allow what it asks for
  wharf agents start hello              start it, and keep it running
  wharf agents logs hello -f            see what it says

The beginning or the end of an agent's id is enough when no other has it.")]
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
    /// Show one agent: how it fares, what it asks for, what it offers
    Show(show::Args),
    /// Look for agents below a folder; nothing runs
    Scan(scan::Args),
    /// Approve what an agent asks for, or a part of it
    Approve(approve::Args),
    /// Take an approval back; a running agent is stopped
    Revoke(steer::RevokeArgs),
    /// Start an agent and keep it running, also after a restart of the core
    Start(start::Args),
    /// Stop an agent and everything it started
    Stop(steer::StopArgs),
    /// Stop an agent if it runs, and start it
    Restart(start::RestartArgs),
    /// Print an agent's log, also of one that is dead
    Logs(logs::Args),
    /// Forget an agent; its folder stays as it is
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
