//! `wharf runs`: what ran, what runs, and what to do about it.

mod list;
mod show;
mod steer;
mod watch;

pub(super) use show::money_warnings;

use clap::Subcommand;

use crate::commands::{Context, Exit, Result};

/// What `wharf runs` takes.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: list::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List runs, the newest first
    List(list::Args),
    /// Show one run
    Show(show::Args),
    /// Follow a run from its start to its end
    Watch(watch::Args),
    /// Cancel runs
    Cancel(steer::CancelArgs),
    /// Remove finished runs permanently
    Purge(steer::PurgeArgs),
}

/// Does what the subcommand says; lists runs when there is none.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(Command::List(args.list)) {
        Command::List(args) => list::run(args, context).await,
        Command::Show(args) => show::run(args, context).await,
        Command::Watch(args) => watch::run(args, context).await,
        Command::Cancel(args) => steer::cancel(args, context).await,
        Command::Purge(args) => steer::purge(args, context).await,
    }
}
