//! `wharf worlds`: worlds, their settings, their money and their files.

mod du;
mod gc;
mod get;
mod ls;
mod put;
mod rm;
mod settings;
mod show;

use clap::Subcommand;
use serde_json::json;

use crate::commands::{Context, Exit, Result, Table};
use crate::progress::Spinner;
use crate::{amount, moment, plain};

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
pub(crate) struct WorldsArgs {
    #[command(subcommand)]
    command: Option<WorldsCommand>,
}

#[derive(Debug, Subcommand)]
enum WorldsCommand {
    /// List worlds
    #[command(after_help = "Examples:\n  wharf worlds\n  wharf worlds list --json")]
    List,
    /// Create a world
    Create(settings::WorldsCreateArgs),
    /// Show one world: its settings, its budget and its size
    #[command(after_help = "Examples:\n  wharf worlds show default")]
    Show {
        /// The world's id
        world: String,
    },
    /// Change a world's settings
    Set(settings::WorldsSetArgs),
    /// Set a world's budget
    Budget(settings::WorldsBudgetArgs),
    /// Correct the amount a world has spent
    Correct(settings::WorldsCorrectArgs),
    /// Remove a world
    #[command(after_help = "\
Examples:
  wharf worlds remove lab
  wharf worlds remove lab --force --yes
  wharf worlds remove lab --force --purge-runs --yes

Without --force, a world with files is not removed; with it, the files are removed permanently. A
world with open runs is never removed: cancel them first. Runs that have ended stay, unless
--purge-runs removes them, too, in the background; costs and the audit stay in any case.")]
    Remove {
        /// The world's id
        world: String,
        /// Even if it holds files
        #[arg(long)]
        force: bool,
        /// Remove its runs, too
        #[arg(long)]
        purge_runs: bool,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// List a world's files
    Ls(ls::WorldsLsArgs),
    /// Put a file into a world
    Put(put::WorldsPutArgs),
    /// Get a file out of a world
    Get(get::WorldsGetArgs),
    /// Remove files from a world
    Rm(rm::WorldsRmArgs),
    /// Show how much a world holds, by folder
    #[command(after_help = "\
Examples:
  wharf worlds du lab
  wharf worlds du lab --json")]
    Du {
        /// The world's id
        world: String,
    },
    /// Remove files past their retention, and leftovers
    Gc(gc::WorldsGcArgs),
}

/// Does what the subcommand says; lists worlds when there is none.
pub(crate) async fn run(args: WorldsArgs, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(WorldsCommand::List) {
        WorldsCommand::List => list(context).await,
        WorldsCommand::Create(args) => settings::create(args, context).await,
        WorldsCommand::Show { world } => show::run(&world, context).await,
        WorldsCommand::Set(args) => settings::set(args, context).await,
        WorldsCommand::Budget(args) => settings::budget(args, context).await,
        WorldsCommand::Correct(args) => settings::correct(args, context).await,
        WorldsCommand::Remove { world, force, purge_runs, yes } => {
            remove(&world, (force, purge_runs), yes, context).await
        }
        WorldsCommand::Ls(args) => ls::run(args, context).await,
        WorldsCommand::Put(args) => put::run(args, context).await,
        WorldsCommand::Get(args) => get::run(args, context).await,
        WorldsCommand::Rm(args) => rm::run(&args, context).await,
        WorldsCommand::Du { world } => du::run(&world, context).await,
        WorldsCommand::Gc(args) => gc::run(&args, context).await,
    }
}

/// Lists worlds. How much each holds is shown by `show` and `du`, which must add it up.
async fn list(context: &Context) -> Result<Exit> {
    super::list(context.client()?.worlds().list(), "", context.output, |worlds, output| {
        let headings = ["WORLD", "LIMIT", "SPENT", "HELD", "LEFT", "PUBLISH", "KEEPS", "CREATED"];
        let mut table = Table::new(output, &headings)
            .keep_whole(&[0])
            .leave_out(5, "direct")
            .leave_out(6, "")
            .spare(&[7, 3, 6, 5]);
        for world in worlds {
            let keeps = world.retention_days.map(|days| format!("{days}d")).unwrap_or_default();
            table.row([
                &world.world,
                &show::limit_of(world),
                &amount::dollars(world.spent_micro),
                &amount::dollars(world.held_micro),
                &show::left_of(world),
                world.publish.as_str(),
                &keeps,
                &moment::shown(world.created_at),
            ]);
        }
        table
    })
    .await
}

/// Removes a world, once that is confirmed.
async fn remove(
    world: &str,
    (force, purge_runs): (bool, bool),
    yes: bool,
    context: &Context,
) -> Result<Exit> {
    let (output, shown) = (context.output, plain::line(world));
    let client = context.client()?;
    let what = match (force, purge_runs) {
        (true, true) => ", all its files and its runs",
        (true, false) => " and all its files",
        (false, true) => " and its runs",
        (false, false) => "",
    };
    let question = format!("Remove the world {shown}{what} permanently?");
    if !yes && !output.confirm_removal("removing a world", &question)? {
        return output.done(&json!({"world": world, "removed": false}), "nothing removed");
    }
    let spinner = Spinner::new(output, &format!("removing {shown}"));
    let worlds = client.worlds();
    match purge_runs {
        true => worlds.remove_with_runs(world, force).await?,
        false => worlds.remove(world, force).await?,
    }
    drop(spinner);
    let sentence = format!("removed the world {shown}");
    output.done(&json!({"world": world, "removed": true}), &sentence)
}
