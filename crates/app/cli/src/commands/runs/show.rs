//! `wharf runs show`.

mod data;
mod lineage;

use serde_json::Value;
use wharf_vocab::{AskKind, WaitKind};
use wharf_wire::rest_v1::{Receipt, Run};

use crate::commands::{Context, Exit, Output, Result, Table};
use crate::plain;
use crate::{amount, moment, output};

/// What `wharf runs show` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs show 0197a1c2-5d3e-7f00-8000-000000000001
  wharf runs show 0197a1                     a unique beginning is enough
  wharf runs show nightly --world lab --json")]
pub(crate) struct RunsShowArgs {
    /// The run's id, or the beginning of it
    run: String,
    /// The run's world [default: whichever has it]
    #[arg(long)]
    world: Option<String>,
}

/// Shows one run.
pub(crate) async fn run(args: RunsShowArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let found = super::find(&client, &args.run, args.world.as_deref()).await?;
    let call = client.runs().get(&found.run_id).world(found.world.as_deref());
    let raw: Value = call.raw().await?;
    if output.is_json() {
        output.json(&raw)?;
        return Ok(Exit::Done);
    }
    let run: Run = output::typed(raw)?;
    let mut text = text_of(&run, output);
    text.push_str(&data::text_of(&run, output));
    text.push_str(&lineage::text_of(&run, &client, output).await);
    output.text(&text)?;
    Ok(Exit::Done)
}

/// What the core measured of a run that is over.
fn receipt_of(receipt: &Receipt) -> String {
    let mut text = format!("{} on the clock", moment::length_of(receipt.wall_ms));
    if let Some(cpu_ms) = receipt.cpu_ms {
        text.push_str(&format!(", {} of processor time", moment::length_of(cpu_ms)));
    }
    if receipt.bytes_in > 0 || receipt.bytes_out > 0 {
        let (read, wrote) = (amount::about(receipt.bytes_in), amount::about(receipt.bytes_out));
        text.push_str(&format!(", {read} of files read, {wrote} written"));
    }
    text
}

/// What is to be known of a run's cost besides the sum.
pub(crate) fn money_warnings(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(receipt) = &run.receipt else { return lines };
    if receipt.over_hold {
        let (cost, held) = (amount::dollars(receipt.cost_micro), run.hold_micro.unwrap_or(0));
        let held = held.saturating_mul(u64::from(run.attempt));
        let held = match held {
            0 => "nothing was held for it".to_owned(),
            held => format!("{} was held for it", amount::dollars(held)),
        };
        lines.push(format!("warning: the run cost {cost}, and {held}"));
    }
    if receipt.incomplete {
        let line = "warning: the tool never said what it cost in the end; it may be more";
        lines.push(line.to_owned());
    }
    if receipt.capped {
        let line = "warning: the tool reported more than is believed at once, and was cut down";
        lines.push(format!("{line}; see: wharf audit"));
    }
    lines
}

/// What a run cost beside what was set aside for its attempts.
fn cost_of(run: &Run) -> String {
    if let Some(would) = run.would_cost_micro {
        return format!("nothing; it would have been {}", amount::dollars(would));
    }
    if let Some(flow) = &run.flow {
        return format!("{} with its steps", amount::dollars(flow.cost_micro));
    }
    let cost = amount::dollars(run.cost_micro);
    let held = run.held_micro.unwrap_or(0);
    if held > 0 {
        return format!("{cost} so far, {} held", amount::dollars(held));
    }
    let hold = run.hold_micro.unwrap_or(0).saturating_mul(u64::from(run.attempt));
    match hold {
        0 if run.cost_micro == 0 || run.hold_micro.is_none() => cost,
        0 => format!("{cost}, nothing was held for it"),
        hold if run.cost_micro > hold => {
            format!("{cost}, more than the {} held for it", amount::dollars(hold))
        }
        hold => format!("{cost} of {} held", amount::dollars(hold)),
    }
}

fn text_of(run: &Run, output: Output) -> String {
    let mut table = Table::bare(output).keep_whole(&[0]).uncut(&[1]);
    table.row(["run", &run.run_id]);
    table.row(["tool", &run.tool]);
    table.row(["world", &run.world]);
    table.row_with_state(["status", run.status.as_str()], 1);
    table.row(["mode", run.mode.as_str()]);
    table.row(["durability", run.durability.as_str()]);
    table.row(["attempts", &run.attempt.to_string()]);
    table.row(["cost", &cost_of(run)]);
    table.row(["created", &moment::shown(run.created_at)]);
    for (name, at) in [("started", run.started_at), ("ended", run.ended_at)] {
        if let Some(at) = at {
            table.row([name, &moment::shown(at)]);
        }
    }
    if let Some(receipt) = &run.receipt {
        table.row(["measured", &receipt_of(receipt)]);
    }
    if let Some(flow) = &run.flow {
        if let Some(status) = &flow.status {
            let said = status.as_str().map_or_else(|| status.to_string(), str::to_owned);
            table.row(["state", &plain::line(&said)]);
        }
        table.row(["steps", &flow.steps.to_string()]);
        for (name, id) in [("goes on from", &flow.restarts), ("goes on as", &flow.restarted_as)] {
            if let Some(id) = id {
                table.row([name, id.as_str()]);
            }
        }
    }
    for line in money_warnings(run) {
        table.row(["", &line]);
    }
    for (name, value) in [
        ("part of", run.correlation_id.as_deref()),
        ("started by", run.parent.as_deref()),
        ("continues", run.continues.as_deref()),
    ] {
        if let Some(value) = value {
            table.row([name, value]);
        }
    }
    kept_rows(&mut table, run);
    if let Some(error) = &run.error {
        table.row(["error", &format!("{} [{}]", error.message, error.code)]);
    }
    waiting_rows(&mut table, run);
    table.text()
}

/// What is kept of values that are not there.
fn kept_rows(table: &mut Table, run: &Run) {
    let Some(kept) = &run.kept else { return };
    let known =
        [("inputs", &kept.inputs), ("outputs", &kept.outputs), ("error's words", &kept.error)];
    for (name, digest) in known {
        if let Some(digest) = digest {
            let (bytes, b3) = (amount::about(digest.bytes), &digest.b3);
            table.row([name, &format!("kept as digest: {bytes}, b3 {b3}")]);
        }
    }
    if kept.inputs.is_none() {
        table.row(["values", "kept as digest once it has ended"]);
    }
}

/// What it waits for, and what to type for it.
fn waiting_rows(table: &mut Table, run: &Run) {
    if let Some(waiting) = run.waiting_for.as_ref().filter(|it| it.kind != WaitKind::Ask) {
        let what = match waiting.kind {
            WaitKind::Ask => "an answer",
            WaitKind::Room => "room at its provider",
            WaitKind::Provider => "its provider",
            WaitKind::Retry => "its next attempt",
        };
        let until = moment::shown(waiting.until);
        table.row(["waits for", &format!("{what}, until {until}: {}", waiting.message)]);
    }
    if let Some(ask) = &run.ask {
        let command = match ask.kind {
            AskKind::Question => "answer",
            AskKind::Approval => "approve",
        };
        table.row(["waits for", &ask.title]);
        table.row(["so type", &format!("wharf {command} {}", ask.ask_id)]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn t041_a_receipt_says_what_the_core_measured() {
        let receipt = |cpu_ms: Value| -> Receipt {
            output::typed(json!({"cost_micro": 5, "wall_ms": 2_340, "cpu_ms": cpu_ms,
                "bytes_in": 1_536, "bytes_out": 3, "over_hold": false}))
            .expect("a receipt")
        };
        assert_eq!(
            receipt_of(&receipt(json!(120))),
            "2.3s on the clock, 120ms of processor time, 1.5 KiB of files read, 3 B written"
        );
        assert!(!receipt_of(&receipt(Value::Null)).contains("processor"));
    }

    #[test]
    fn a_cost_stands_beside_what_was_held() {
        let shown = |attempt: u32, cost: u64, hold: Value, held: u64| {
            let run = json!({"run_id": "r", "tool": "a/b", "world": "w", "mode": "real",
                "durability": "journal", "status": "running", "attempt": attempt,
                "cost_micro": cost, "hold_micro": hold, "held_micro": held, "created_at": "2026-11-15T09:00:00.000Z"});
            cost_of(&output::typed(run).expect("a run"))
        };
        assert_eq!(shown(1, 50, json!(60), 0), "$0.00005 of $0.00006 held");
        assert_eq!(shown(2, 50, json!(60), 0), "$0.00005 of $0.00012 held");
        assert_eq!(shown(2, 50, json!(60), 60), "$0.00005 so far, $0.00006 held");
        assert_eq!(shown(1, 70, json!(60), 0), "$0.00007, more than the $0.00006 held for it");
        assert_eq!(shown(1, 70, json!(0), 0), "$0.00007, nothing was held for it");
        assert_eq!(shown(1, 0, json!(0), 0), "$0.00");
        assert_eq!(shown(0, 0, json!(60), 0), "$0.00");
        assert_eq!(shown(1, 70, Value::Null, 0), "$0.00007", "an older core says nothing of it");
    }
}
