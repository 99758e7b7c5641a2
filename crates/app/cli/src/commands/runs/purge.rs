//! `wharf runs purge`: by their ids, or all that are old enough, by an order that the core keeps.

mod orders;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use wharf_vocab::{DateTime, RunStatus, Timestamp};
use wharf_wire::rest_v1::{PurgeRuns, PurgedRuns};

use super::find_all;
use crate::commands::{Context, Exit, Result, run, word};
use crate::{amount, plain};

/// What `wharf runs purge` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs purge 0197a1c2-5d3e-7f00-8000-000000000001
  wharf runs purge nightly-1 nightly-2 --world lab --yes
  wharf runs purge --older-than 30d --dry-run
  wharf runs purge --older-than 30d --status succeeded --world lab --yes
  wharf runs purge --older-than 30d --yes --detach
  wharf runs purge --list
  wharf runs purge --cancel 0197a1c2

Inputs, outputs, progress, asks and local files of the runs are removed permanently. What they cost
stays in wharf costs, and the audit keeps a record of them. Other runs go on meanwhile. With
--older-than the core keeps the order and goes on with it by itself, also after it was killed; Ctrl-C
only stops watching. Runs can also go by themselves: wharf worlds set W --run-retention 30d")]
pub(crate) struct RunsPurgeArgs {
    /// The runs' ids, or their beginnings; each must have ended
    #[arg(
        value_name = "RUN",
        required_unless_present_any = ["older_than", "list", "cancel"],
        conflicts_with = "older_than"
    )]
    runs: Vec<String>,
    /// All runs that have ended and were accepted longer ago than this, such as 30d or 12h
    #[arg(long, value_name = "AGE", value_parser = amount::duration)]
    older_than: Option<std::time::Duration>,
    /// Only runs with this status; several with commas between
    #[arg(long, value_delimiter = ',', value_parser = word::<RunStatus>(), requires = "older_than")]
    status: Vec<RunStatus>,
    /// Only runs of this tool
    #[arg(long, requires = "older_than")]
    tool: Option<String>,
    /// The runs' world [default: whichever has them; all with --older-than]
    #[arg(long)]
    world: Option<String>,
    /// Only count
    #[arg(long, requires = "older_than")]
    dry_run: bool,
    /// Do not wait until the runs are removed
    #[arg(long, requires = "older_than")]
    detach: bool,
    /// List orders to remove runs and how far they have come
    #[arg(long, conflicts_with_all = ["runs", "older_than", "cancel"])]
    list: bool,
    /// Call an order to remove runs off; what was removed stays removed
    #[arg(long, value_name = "ORDER", conflicts_with_all = ["runs", "older_than"])]
    cancel: Option<String>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Removes finished runs, once that is confirmed.
pub(super) async fn run(args: RunsPurgeArgs, context: &Context) -> Result<Exit> {
    match (&args.cancel, args.older_than) {
        _ if args.list => orders::list(context).await,
        (Some(order), _) => orders::cancel(order, context).await,
        (None, Some(age)) => old(args, age, context).await,
        (None, None) => named(args, context).await,
    }
}

async fn named(args: RunsPurgeArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let runs = find_all(&client, &args.runs, args.world.as_deref()).await?;
    let what = match runs.as_slice() {
        [one] => format!("run {}", plain::line(&one.run_id)),
        many => format!("{} runs", many.len()),
    };
    let question = format!("Remove {what} permanently?");
    if !args.yes && !output.confirm_removal("removing runs", &question)? {
        output.note("nothing removed");
        return Ok(Exit::Done);
    }
    for run in &runs {
        client.runs().purge(&run.run_id).world(run.world.as_deref()).await?;
        if !output.is_json() {
            output.note(&format!("removed {}", plain::line(&run.run_id)));
        }
    }
    if output.is_json() {
        let removed = runs.iter().map(|run| json!({"run_id": run.run_id, "world": run.world}));
        output.json(&Value::Array(removed.collect()))?;
    }
    Ok(Exit::Done)
}

async fn old(args: RunsPurgeArgs, age: std::time::Duration, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let until = amount::ms(now).saturating_sub(amount::ms(age));
    let which = PurgeRuns {
        world: args.world.as_deref().map(|world| run::id("world", world)).transpose()?,
        tool: args.tool.as_deref().map(|tool| run::id("tool", tool)).transpose()?,
        status: args.status,
        caller: None,
        correlation_id: None,
        since: None,
        until: DateTime(Timestamp(until)),
        dry: Some(true),
    };
    let counted = client.runs().purge_many(&which).await?;
    let what = runs(&counted);
    if args.dry_run || counted.matched == 0 {
        let shown = json!({"dry": true, "until": counted.until, "matched": counted.matched});
        let sentence = if counted.matched == 0 {
            "no runs to remove".to_owned()
        } else {
            format!("would remove {what}")
        };
        return output.done(&shown, &sentence);
    }
    if !args.yes
        && !output.confirm_removal("removing runs", &format!("Remove {what} permanently?"))?
    {
        return output.done(&json!({"purged": 0, "kept": 0}), "nothing removed");
    }
    let order = client.runs().order_purge(&PurgeRuns { dry: None, ..which }).await?;
    if args.detach {
        let id = plain::line(&order.purge_id);
        let sentence = format!("the order {id} was written down; see: wharf runs purge --list");
        return output.done(&order, &sentence);
    }
    orders::follow(&client, order, context).await
}

fn runs(counted: &PurgedRuns) -> String {
    let about = if counted.more { "more than " } else { "" };
    let s = if counted.matched == 1 { "" } else { "s" };
    format!("{about}{} run{s}", counted.matched)
}
