//! `wharf runs purge`: by their ids, or all that are old enough.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use wharf_client::Client;
use wharf_vocab::{DateTime, RunStatus, Timestamp};
use wharf_wire::rest_v1::{PurgeRuns, PurgedRuns};

use super::find_all;
use crate::commands::{Context, Exit, Result, run, word};
use crate::progress::Spinner;
use crate::{amount, plain};

/// What `wharf runs purge` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs purge 0197a1c2-5d3e-7f00-8000-000000000001
  wharf runs purge nightly-1 nightly-2 --world lab --yes
  wharf runs purge --older-than 30d --dry-run
  wharf runs purge --older-than 30d --status succeeded --world lab --yes

Inputs, outputs, progress, asks and local files of the runs are removed permanently. What they cost
stays in wharf costs, and the audit keeps a record of them. Other runs go on meanwhile. Runs can
also go by themselves: wharf worlds set W --run-retention 30d")]
pub(crate) struct RunsPurgeArgs {
    /// The runs' ids, or their beginnings; each must have ended
    #[arg(
        value_name = "RUN",
        required_unless_present = "older_than",
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
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Removes finished runs, once that is confirmed.
pub(super) async fn run(args: RunsPurgeArgs, context: &Context) -> Result<Exit> {
    match args.older_than {
        Some(age) => old(args, age, context).await,
        None => named(args, context).await,
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
    let spinner = Spinner::new(output, &format!("removing {what}"));
    let done = all(&client, PurgeRuns { dry: None, ..which }).await?;
    drop(spinner);
    let kept = match done.kept {
        0 => String::new(),
        1 => "; 1 is needed by a run in progress and stays".to_owned(),
        many => format!("; {many} are needed by runs in progress and stay"),
    };
    let s = if done.purged == 1 { "" } else { "s" };
    let sentence = format!("removed {} run{s}{kept}", done.purged);
    output.done(&json!({"until": done.until, "purged": done.purged, "kept": done.kept}), &sentence)
}

/// Asks until nothing is left to remove. A core that is away for a moment is waited for.
async fn all(client: &Client, which: PurgeRuns) -> Result<PurgedRuns> {
    let mut sum = client.runs().purge_many_surely(&which).await?;
    while sum.more {
        let next = client.runs().purge_many_surely(&which).await?;
        sum = PurgedRuns { purged: sum.purged + next.purged, ..next };
    }
    Ok(sum)
}

fn runs(counted: &PurgedRuns) -> String {
    let about = if counted.more { "more than " } else { "" };
    let s = if counted.matched == 1 { "" } else { "s" };
    format!("{about}{} run{s}", counted.matched)
}
