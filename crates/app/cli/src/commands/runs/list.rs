//! `wharf runs list`.

use wharf_client::{Client, RunFilter};
use wharf_vocab::RunStatus;
use wharf_wire::rest_v1::Run;

use crate::commands::{Context, Exit, Output, Result, Table, word};
use crate::{amount, moment, output};

/// What `wharf runs list` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs
  wharf runs list --status failed,refused --since 24h
  wharf runs list --error 'tool.*' --text refused --since 7d
  wharf runs list --text invoice
  wharf runs list --caller g-0193 --until 7d
  wharf runs list --world lab --tool wharf/count --all --json")]
pub(crate) struct RunsListArgs {
    /// Only runs of this world
    #[arg(long)]
    world: Option<String>,
    /// Only runs of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Only runs with this status; several with commas between
    #[arg(long, value_delimiter = ',', value_parser = word::<RunStatus>())]
    status: Vec<RunStatus>,
    /// Only runs that this token started
    #[arg(long, value_name = "TOKEN-ID")]
    caller: Option<String>,
    /// Only runs that this run started: its id, the beginning of it, or WORLD/RUN
    #[arg(long, value_name = "RUN")]
    parent: Option<String>,
    /// Only runs that are part of this
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// Only runs whose id begins so
    #[arg(long, value_name = "TEXT")]
    id_prefix: Option<String>,
    /// Only runs that did not succeed with this code, such as tool.timeout or 'tool.*'
    #[arg(long, value_name = "CODE")]
    error: Option<String>,
    /// Only runs whose world, id, tool, correlation id or error (code and message) contains this
    /// text; inputs and outputs are not searched
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Only runs accepted since then: a time, or an age such as 7d or 24h
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only runs accepted before then
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// No limit
    #[arg(long)]
    all: bool,
}

impl RunsListArgs {
    /// Whether only some runs are wanted.
    fn is_narrow(&self) -> bool {
        let texts = [
            &self.world,
            &self.tool,
            &self.caller,
            &self.parent,
            &self.correlation_id,
            &self.id_prefix,
            &self.error,
            &self.text,
            &self.since,
            &self.until,
        ];
        !self.status.is_empty() || texts.iter().any(|text| text.is_some())
    }
}

/// Lists runs.
pub(crate) async fn run(args: RunsListArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let (world, tool) = (args.world.as_deref(), args.tool.as_deref());
    let client = context.client()?;
    let parent = match &args.parent {
        Some(typed) => Some(parent(&client, typed, world).await?),
        None => None,
    };
    let filter = RunFilter {
        world,
        tool,
        status: &args.status,
        caller: args.caller.as_deref(),
        parent: parent.as_deref(),
        correlation_id: args.correlation_id.as_deref(),
        id_prefix: args.id_prefix.as_deref(),
        error: args.error.as_deref(),
        error_text: None,
        text: args.text.as_deref(),
        since: args.since.as_deref(),
        until: args.until.as_deref(),
    };
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let most = if args.all { usize::MAX } else { limit };
    let (items, more) = client.runs().list(&filter).raw().first(most).await?;
    if let (Some(world), true) = (world, items.is_empty()) {
        // Runs outlive their world, so only an empty list can mean that there is none.
        client.worlds().get(world).await?;
    }
    if output.is_json() {
        output.json(&items)?;
        return Ok(Exit::Done);
    }
    let runs: Vec<Run> = output::rows(items)?;
    if runs.is_empty() {
        output.note(if args.is_narrow() {
            "no run fits; see all of them with: wharf runs"
        } else {
            "no runs; start one with: wharf run wharf/count n=20"
        });
    } else {
        output.text(&table_of(&runs, output).text())?;
    }
    if more {
        output.note("there are more; see them with --all or a larger --limit");
    }
    Ok(Exit::Done)
}

/// A terminal with fewer columns gets shorter ids and times.
const ROOMY: usize = 110;
/// How much of an id that the core made tells it from all others.
const ID_CHARS: usize = 18;

/// The beginnings of ids by which the runs of a list can be told apart and named; whole ids where
/// that is not so.
fn short_ids(runs: &[Run]) -> Vec<&str> {
    let is_made = |id: &str| id.len() == 36 && id.matches('-').count() == 4;
    let cut = |id| if is_made(id) { &id[..ID_CHARS] } else { id };
    let short: Vec<&str> = runs.iter().map(|run| cut(run.run_id.as_str())).collect();
    let different: std::collections::BTreeSet<&str> = short.iter().copied().collect();
    match different.len() == short.len() {
        true => short,
        false => runs.iter().map(|run| run.run_id.as_str()).collect(),
    }
}

/// The run that started others, as the core wants it named.
async fn parent(client: &Client, typed: &str, world: Option<&str>) -> Result<String> {
    if typed.contains('/') {
        return Ok(typed.to_owned());
    }
    let found = super::find(client, typed, world).await?;
    let world = found.world.as_deref().unwrap_or(super::DEFAULT_WORLD);
    Ok(format!("{world}/{}", found.run_id))
}

fn table_of(runs: &[Run], output: Output) -> Table {
    let is_narrow = output.width().is_some_and(|width| width < ROOMY);
    let ids = if is_narrow { short_ids(runs) } else { Vec::new() };
    let headings = ["RUN", "TOOL", "STATUS", "CREATED", "TOOK", "WORLD", "COST"];
    let mut table = Table::new(output, &headings)
        .keep_whole(&[0, 1, 2])
        .leave_out(5, "default")
        .leave_out(6, "")
        .spare(&[4, 6]);
    for (at, run) in runs.iter().enumerate() {
        let created = match is_narrow {
            true => moment::relative_to_now(run.created_at),
            false => moment::shown(run.created_at),
        };
        let took = match run.ended_at {
            Some(ended) => moment::between(run.created_at, ended),
            None => moment::since(run.created_at),
        };
        let cost =
            if run.cost_micro == 0 { String::new() } else { amount::dollars(run.cost_micro) };
        let cells = [
            ids.get(at).copied().unwrap_or(run.run_id.as_str()),
            &run.tool,
            run.status.as_str(),
            &created,
            &took,
            &run.world,
            &cost,
        ];
        table.row_with_state(cells, 2);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(id: &str) -> Run {
        serde_json::from_value(json!({"run_id": id, "tool": "a/b", "world": "w", "mode": "real",
            "durability": "journal", "status": "queued", "attempt": 0, "cost_micro": 0,
            "created_at": "2026-11-15T09:00:00.000Z"}))
        .expect("a run")
    }

    #[test]
    fn an_id_is_cut_only_while_it_tells_runs_apart() {
        let made = "01a1ef28-7db7-75cb-a296-2d1e0a49a85d";
        let other = "01a1ef28-7db7-75cc-a296-2d1e0a49a85d";
        let twin = "01a1ef28-7db7-75cb-ffff-2d1e0a49a85d";
        let shown = |ids: &[&str]| -> Vec<String> {
            let runs: Vec<Run> = ids.iter().map(|id| run(id)).collect();
            short_ids(&runs).into_iter().map(str::to_owned).collect()
        };
        let own = "an-id-of-my-own-that-is-rather-long";
        assert_eq!(shown(&[made, other, own]), [&made[..18], &other[..18], own]);
        assert_eq!(shown(&[made, twin]), [made, twin]);
    }
}
