//! `wharf artifacts`: files, and the runs they passed through.

mod trace;

use clap::Subcommand;

use super::worlds;
use crate::commands::{Context, Exit, Result};

/// What `wharf artifacts` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf artifacts list lab
  wharf artifacts trace lab /out/small.jpg")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List all files of a world
    List(List),
    /// Show which runs wrote and read a file
    Trace(trace::Args),
}

/// What `wharf artifacts list` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf artifacts list lab
  wharf artifacts list lab /out/ --local --json")]
struct List {
    /// The world's id
    world: String,
    /// Only paths that begin with this
    prefix: Option<String>,
    /// Include local files of runs
    #[arg(long)]
    local: bool,
}

/// Does what the subcommand says.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    match args.command {
        Command::List(list) => {
            worlds::everything(list.world, list.prefix.as_deref(), list.local, context).await
        }
        Command::Trace(args) => trace::run(&args, context).await,
    }
}
