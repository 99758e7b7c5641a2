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
pub(crate) struct ArtifactsArgs {
    #[command(subcommand)]
    command: ArtifactsCommand,
}

#[derive(Debug, Subcommand)]
enum ArtifactsCommand {
    /// List all files of a world
    List(ArtifactsListArgs),
    /// Show which runs wrote and read a file
    Trace(trace::ArtifactsTraceArgs),
}

/// What `wharf artifacts list` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf artifacts list lab
  wharf artifacts list lab /out/ --local --json")]
struct ArtifactsListArgs {
    /// The world's id
    world: String,
    /// Only paths that begin with this
    prefix: Option<String>,
    /// Include local files of runs
    #[arg(long)]
    local: bool,
}

/// Does what the subcommand says.
pub(crate) async fn run(args: ArtifactsArgs, context: &Context) -> Result<Exit> {
    match args.command {
        ArtifactsCommand::List(list) => {
            worlds::everything(list.world, list.prefix.as_deref(), list.local, context).await
        }
        ArtifactsCommand::Trace(args) => trace::run(&args, context).await,
    }
}
