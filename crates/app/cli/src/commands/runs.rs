//! `wharf runs`: what ran, what runs, and what to do about it.

mod list;
mod show;
mod watch;

pub(super) use show::money_warnings;

use clap::Subcommand;

use crate::commands::{Context, Exit, Result};
use crate::plain;

/// What `wharf runs` takes.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    list: list::RunsListArgs,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List runs, the newest first
    List(Box<list::RunsListArgs>),
    /// Show one run
    Show(show::RunsShowArgs),
    /// Follow a run from its start to its end
    Watch(watch::RunsWatchArgs),
    /// Cancel runs
    Cancel(CancelArgs),
    /// Remove finished runs permanently
    Purge(PurgeArgs),
}

/// Does what the subcommand says; lists runs when there is none.
pub(crate) async fn run(args: RunsArgs, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(RunsCommand::List(Box::new(args.list))) {
        RunsCommand::List(args) => list::run(*args, context).await,
        RunsCommand::Show(args) => show::run(args, context).await,
        RunsCommand::Watch(args) => watch::run(args, context).await,
        RunsCommand::Cancel(args) => cancel(args, context).await,
        RunsCommand::Purge(args) => purge(args, context).await,
    }
}

/// What `wharf runs cancel` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs cancel 0197a1c2-5d3e-7f00-8000-000000000001
  wharf runs cancel nightly --world lab --reason 'wrong input'")]
struct CancelArgs {
    /// The runs' ids
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The runs' world
    #[arg(long)]
    world: Option<String>,
    /// Why
    #[arg(long)]
    reason: Option<String>,
}

/// Asks for each run to be canceled; it ends when its provider has let go.
async fn cancel(args: CancelArgs, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let (world, reason) = (args.world.as_deref(), args.reason.as_deref());
    for run in &args.runs {
        client.runs().cancel(run, reason).world(world).await?;
        context.output.note(&format!("canceling {}", plain::line(run)));
    }
    Ok(Exit::Done)
}

/// What `wharf runs purge` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs purge 0197a1c2-5d3e-7f00-8000-000000000001
  wharf runs purge nightly-1 nightly-2 --world lab --yes

Inputs and outputs of the runs are removed permanently; the audit keeps a record of them.")]
struct PurgeArgs {
    /// The runs' ids; each must have ended
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The runs' world
    #[arg(long)]
    world: Option<String>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Removes finished runs, once that is confirmed.
async fn purge(args: PurgeArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let what = match args.runs.as_slice() {
        [one] => format!("run {}", plain::line(one)),
        many => format!("{} runs", many.len()),
    };
    let question = format!("Remove {what} permanently?");
    if !args.yes && !output.confirm_removal("removing runs", &question)? {
        output.note("nothing removed");
        return Ok(Exit::Done);
    }
    for run in &args.runs {
        client.runs().purge(run).world(args.world.as_deref()).await?;
        output.note(&format!("removed {}", plain::line(run)));
    }
    Ok(Exit::Done)
}
