//! `wharf runs`: what ran, what runs, and what to do about it.

mod find;
mod list;
mod purge;
mod retry;
mod show;
mod watch;

pub(super) use find::{DEFAULT_WORLD, FoundRun, find, named};
pub(super) use show::money_warnings;

use clap::Subcommand;
use serde_json::{Value, json};
use wharf_client::Client;

use crate::commands::{CliError, Context, Exit, Result};
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
    /// Run again what a run did, with other inputs if you like
    Retry(retry::RunsRetryArgs),
    /// Cancel runs
    Cancel(CancelArgs),
    /// Remove finished runs permanently
    Purge(purge::RunsPurgeArgs),
}

/// Does what the subcommand says; lists runs when there is none.
pub(crate) async fn run(args: RunsArgs, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(RunsCommand::List(Box::new(args.list))) {
        RunsCommand::List(args) => list::run(*args, context).await,
        RunsCommand::Show(args) => show::run(args, context).await,
        RunsCommand::Watch(args) => watch::run(args, context).await,
        RunsCommand::Retry(args) => retry::run(args, context).await,
        RunsCommand::Cancel(args) => cancel(args, context).await,
        RunsCommand::Purge(args) => purge::run(args, context).await,
    }
}

/// What `wharf runs cancel` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs cancel 0197a1c2-5d3e-7f00-8000-000000000001
  wharf runs cancel 0197a1
  wharf runs cancel nightly --world lab --reason 'wrong input'

Exit code 1 if a run was over already.")]
struct CancelArgs {
    /// The runs' ids, or their beginnings
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The runs' world [default: whichever has them]
    #[arg(long)]
    world: Option<String>,
    /// Why
    #[arg(long)]
    reason: Option<String>,
    /// End a flow at once: do not wait for its steps, and undo nothing of what they did
    #[arg(long)]
    force: bool,
}

/// Asks for each run to be canceled; it ends when its provider has let go.
async fn cancel(args: CancelArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let (mut exit, mut answers) = (Exit::Done, Vec::new());
    for run in find_all(&client, &args.runs, args.world.as_deref()).await? {
        let reason = args.reason.as_deref();
        let call = match args.force {
            true => client.runs().force_cancel(&run.run_id, reason),
            false => client.runs().cancel(&run.run_id, reason),
        };
        let answer = call.world(run.world.as_deref()).await?;
        let id = plain::line(&run.run_id);
        // What nothing works on ends with the request; what ended so before is only over.
        let canceled = answer.status == wharf_vocab::RunStatus::Canceled && !run.was_over;
        let over = answer.status.is_terminal() && !canceled;
        if over {
            exit = Exit::Failed;
        }
        if !output.is_json() {
            output.note(&match (over, canceled) {
                (true, _) => format!("{id} is over: {}", answer.status),
                (_, true) => format!("canceled {id}"),
                _ => format!("canceling {id}"),
            });
        }
        answers.push(json!({"run_id": run.run_id, "world": run.world, "status": answer.status}));
    }
    if output.is_json() {
        output.json(&Value::Array(answers))?;
    }
    Ok(exit)
}

/// All runs that were typed, before anything is done to the first of them.
async fn find_all(client: &Client, typed: &[String], world: Option<&str>) -> Result<Vec<FoundRun>> {
    let mut found: Vec<FoundRun> = Vec::new();
    for typed in typed {
        let run = find(client, typed, world).await?;
        if found.contains(&run) {
            return Err(CliError::usage(format!("{} is named twice", plain::line(&run.run_id))));
        }
        found.push(run);
    }
    Ok(found)
}
