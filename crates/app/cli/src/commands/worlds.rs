//! `wharf worlds`: worlds, their settings, their money and their files.

mod correct;
mod create;
mod du;
mod gc;
mod get;
mod list;
mod ls;
mod put;
mod remove;
mod removed;
mod rm;
mod set;
mod settings;
mod show;

use clap::Subcommand;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;

pub(super) use ls::{everything, short};

/// What `wharf worlds` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds
  wharf worlds create lab --limit-micro 5000000 --default-hold-micro 1000
  wharf worlds set lab --publish staged --retention 30d
  wharf worlds put lab /in/photo.jpg photo.jpg
  wharf worlds ls lab
  wharf worlds get lab /out/small.jpg small.jpg")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List worlds
    #[command(after_help = "Examples:\n  wharf worlds\n  wharf worlds list --json")]
    List,
    /// Create a world
    Create(create::Args),
    /// Show one world: its settings, its budget and its size
    #[command(after_help = "Examples:\n  wharf worlds show default")]
    Show {
        /// The world's id
        world: String,
    },
    /// Change a world's settings
    Set(set::Args),
    /// Set a world's budget
    Budget(set::Budget),
    /// Correct the amount a world has spent
    Correct(correct::Args),
    /// Remove a world
    Remove(remove::Args),
    /// List a world's files
    Ls(ls::Args),
    /// Put a file into a world
    Put(put::Args),
    /// Get a file out of a world
    Get(get::Args),
    /// Remove files from a world
    Rm(rm::Args),
    /// Show how much a world holds, by folder
    Du(du::Args),
    /// Remove files past their retention, and leftovers
    Gc(gc::Args),
}

/// Does what the subcommand says; lists worlds when there is none.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(Command::List) {
        Command::List => list::run(context).await,
        Command::Create(args) => create::run(args, context).await,
        Command::Show { world } => show::run(&world, context).await,
        Command::Set(args) => set::run(args, context).await,
        Command::Budget(args) => set::run_budget(args, context).await,
        Command::Correct(args) => correct::run(args, context).await,
        Command::Remove(args) => remove::run(&args, context).await,
        Command::Ls(args) => ls::run(args, context).await,
        Command::Put(args) => put::run(args, context).await,
        Command::Get(args) => get::run(args, context).await,
        Command::Rm(args) => rm::run(&args, context).await,
        Command::Du(args) => du::run(&args, context).await,
        Command::Gc(args) => gc::run(&args, context).await,
    }
}
