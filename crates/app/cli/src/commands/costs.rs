//! `wharf costs`: what runs have cost.

use clap::builder::PossibleValuesParser;
use serde_json::Value;
use wharf_vocab::Micro;
use wharf_wire::rest_v1::Costs;

use crate::commands::{Context, Exit, Output, Result, Table};
use crate::{amount, moment, output};

/// How many characters the longest bar has.
const BAR_CHARS: u64 = 24;

/// Parts of a character, from an eighth to the whole.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// What `wharf costs` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf costs                                    the total cost of each tool
  wharf costs --by day --since 7d                the last seven days
  wharf costs --by agent --world lab --json
  wharf costs --since 2026-11-01T00:00:00Z --until 2026-12-01T00:00:00Z

A run counts once, on the day it was accepted (UTC), with the cost of its own attempts so far.
Failed runs count; child runs count separately; removed runs do not count.")]
pub(crate) struct CostsArgs {
    /// How to group the rows
    #[arg(long, value_name = "WHAT", default_value = "tool")]
    #[arg(value_parser = PossibleValuesParser::new(["tool", "world", "agent", "day"]))]
    by: String,
    /// Only runs accepted since then: how long ago, such as 7d, 24h or 90m, or an RFC 3339 time
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only runs accepted before then, written like --since
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Only runs of this world
    #[arg(long)]
    world: Option<String>,
}

/// Shows what runs have cost.
pub(crate) async fn run(args: CostsArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let call = context.client()?.costs().query("by", Some(&args.by));
    let call = call.query("since", args.since.as_deref()).query("until", args.until.as_deref());
    let raw: Value = call.world(args.world.as_deref()).raw().await?;
    if output.is_json() {
        output.json(&raw)?;
        return Ok(Exit::Done);
    }
    let costs: Costs = output::typed(raw)?;
    if costs.items.is_empty() {
        let narrowed = args.since.is_some() || args.until.is_some() || args.world.is_some();
        output.note(if narrowed {
            "nothing was spent: no such run was started"
        } else {
            "nothing was spent so far; try: wharf run wharf/sleep ms=1 cost_micro=1500"
        });
        return Ok(Exit::Done);
    }
    output.text(&table_of(&costs, &args.by, output).text())?;
    if costs.total_micro == 0 {
        output.note("these runs cost nothing");
    }
    Ok(Exit::Done)
}

fn table_of(costs: &Costs, by: &str, output: Output) -> Table {
    let heading = match by {
        "world" => "WORLD",
        "agent" => "AGENT",
        "day" => "DAY",
        _ => "TOOL",
    };
    let headings = [heading, "COST", "RUNS", "FAILED", "TOOK", "SHARE"];
    let mut table = Table::new(output, &headings)
        .keep_whole(&[0, 1, 2, 5])
        .leave_out(3, "0")
        .leave_out(5, "")
        .spare(&[5, 4, 3]);
    let most = costs.items.iter().map(|item| item.cost_micro).max().unwrap_or(0);
    let blocks = output.out_paint().is_on();
    for item in &costs.items {
        table.row([
            &item.key,
            &amount(item.cost_micro, item.saturated),
            &item.runs.to_string(),
            &item.failed.to_string(),
            &moment::length_of(item.wall_ms),
            &bar(item.cost_micro, most, blocks),
        ]);
    }
    if costs.items.len() > 1 {
        let sum = |of: fn(&wharf_wire::rest_v1::CostItem) -> u64| {
            costs.items.iter().map(of).fold(0, u64::saturating_add)
        };
        table.row([
            "total",
            &amount(costs.total_micro, costs.saturated),
            &sum(|item| item.runs).to_string(),
            &sum(|item| item.failed).to_string(),
            &moment::length_of(sum(|item| item.wall_ms)),
            "",
        ]);
    }
    table
}

fn amount(micro: Micro, saturated: bool) -> String {
    let dollars = amount::dollars(micro);
    if saturated { format!("over {dollars}") } else { dollars }
}

/// A bar as long as its part of the largest amount. Whatever costs something can be seen.
fn bar(amount: Micro, most: Micro, blocks: bool) -> String {
    if amount == 0 || most == 0 {
        return String::new();
    }
    let steps = if blocks { BAR_CHARS * 8 } else { BAR_CHARS };
    let part = u128::from(amount) * u128::from(steps) / u128::from(most);
    let part = usize::try_from(part).unwrap_or(0).max(1);
    if !blocks {
        return "#".repeat(part);
    }
    let mut bar = "█".repeat(part / 8);
    if let Some(rest) = (part % 8).checked_sub(1) {
        bar.push(EIGHTHS[rest]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use wharf_wire::rest_v1::CostItem;

    use super::*;

    fn item(key: &str, cost_micro: u64, failed: u64) -> CostItem {
        CostItem { key: key.into(), runs: 2, failed, cost_micro, wall_ms: 61_500, saturated: false }
    }

    fn costs(items: Vec<CostItem>) -> Costs {
        let total_micro = items.iter().map(|item| item.cost_micro).sum();
        Costs { items, total_micro, saturated: false, next_cursor: None }
    }

    #[test]
    fn bars_stand_for_their_part_of_the_largest() {
        let bars = |blocks| [1_000, 500, 1, 0].map(|amount| bar(amount, 1_000, blocks));
        let ascii = ["#".repeat(24), "#".repeat(12), "#".to_owned(), String::new()];
        assert_eq!(bars(false), ascii);
        assert_eq!(bars(true), ["█".repeat(24), "█".repeat(12), "▏".to_owned(), String::new()]);
        assert_eq!(bar(u64::MAX, u64::MAX, false).len(), 24);
        assert_eq!(bar(0, 0, true), "");
        assert_eq!(bar(41, 192, true), "█████▏");
    }

    #[test]
    fn a_table_has_exact_dollars_and_a_total() {
        let costs = costs(vec![item("a/x", 1_234_567, 1), item("b/y", 200_000, 0)]);
        let text = table_of(&costs, "tool", Output::new(false)).text();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<_> = text.lines().map(words).collect();
        assert_eq!(lines[0], ["TOOL", "COST", "RUNS", "FAILED", "TOOK", "SHARE"]);
        assert_eq!(lines[1][..6], ["a/x", "$1.234567", "2", "1", "1m", "1s"]);
        assert_eq!(lines[2], ["b/y", "$0.20", "2", "0", "1m", "1s", "###"]);
        assert_eq!(lines[3], ["total", "$1.434567", "4", "1", "2m", "3s"]);
        assert!(text.is_ascii(), "tests are no terminal: {text}");
    }

    #[test]
    fn one_row_needs_no_total_and_no_failure_needs_no_column() {
        let text = table_of(&costs(vec![item("lab", 0, 0)]), "world", Output::new(false)).text();
        assert!(text.starts_with("WORLD") && !text.contains("FAILED"), "{text}");
        assert!(!text.contains("total") && !text.contains("SHARE"), "{text}");
    }

    #[test]
    fn a_sum_that_is_too_large_says_so() {
        assert_eq!(amount(u64::MAX, true), "over $18446744073709.551615");
    }
}
