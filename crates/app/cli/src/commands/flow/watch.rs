//! `wharf flow watch`: the steps of a run as a tree, drawn again until the flow is over.

use std::time::Duration;

use serde_json::json;
use wharf_client::Client;
use wharf_vocab::DateTime;
use wharf_wire::rest_v1::{Run, RunStep};

use crate::commands::{Context, Exit, Output, Result, runs};
use crate::{amount, moment, plain};

/// How often the tree is drawn again.
const EVERY: Duration = Duration::from_millis(500);
/// How deep flows in flows are drawn.
const DEPTH_MAX: usize = 8;

/// A step, and how far it stands below the run.
type Drawn = (usize, RunStep);

/// Draws a run's steps; again and again until it is over, unless `once`.
pub(super) async fn run(
    typed: &str,
    world: Option<&str>,
    once: bool,
    context: &Context,
) -> Result<Exit> {
    let (client, output) = (context.client()?, context.output);
    let found = runs::find(&client, typed, world).await?;
    let (id, world) = (found.run_id.as_str(), found.world.as_deref());
    let mut drawn = String::new();
    loop {
        let run = client.runs().get(id).world(world).await?;
        let mut steps = Vec::new();
        gather(&client, (id, world), 1, &mut steps).await?;
        let is_last = run.status.is_terminal() || once;
        if output.is_json() {
            if is_last {
                let steps: Vec<&RunStep> = steps.iter().map(|(_, step)| step).collect();
                output.json(&json!({"run": run, "steps": steps}))?;
            }
        } else {
            let text = draw(&run, &steps, output);
            if text != drawn && (output.out_is_terminal() || is_last) {
                if output.out_is_terminal() && !drawn.is_empty() {
                    output.clear()?;
                }
                output.text(&text)?;
                drawn = text;
            }
        }
        if is_last {
            return Ok(Exit::Done);
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// The steps of a run, each before those of the flow that it runs.
async fn gather(
    client: &Client,
    run: (&str, Option<&str>),
    depth: usize,
    steps: &mut Vec<Drawn>,
) -> Result<()> {
    for step in client.runs().steps(run).await?.items {
        let below = step
            .run_id
            .clone()
            .filter(|_| depth < DEPTH_MAX && step.tool.as_ref().is_some_and(|tool| tool.is_flow()));
        steps.push((depth + step.path.matches('/').count(), step));
        if let Some(below) = below {
            Box::pin(gather(client, (below.as_str(), run.1), depth + 1, steps)).await?;
        }
    }
    Ok(())
}

fn draw(run: &Run, steps: &[Drawn], output: Output) -> String {
    let ended = run.ended_at.map(|ended| moment::between(run.created_at, ended));
    let cost = run.flow.as_ref().map_or(run.cost_micro, |flow| flow.cost_micro);
    let facts = (cost, ended.unwrap_or_else(|| moment::since(run.created_at)));
    let mut text = line(&run.tool, run.status.as_str(), facts, output);
    if let Some(status) = run.flow.as_ref().and_then(|flow| flow.status.as_ref()) {
        let said = status.as_str().map_or_else(|| status.to_string(), str::to_owned);
        text.push_str(&format!("  {}\n", plain::line(&said)));
    }
    for (depth, step) in steps {
        text.push_str(&"  ".repeat(*depth));
        let name = match (&step.tool, step.attempt) {
            (Some(tool), 1) => format!("{}: {tool}", step.path),
            (Some(tool), attempt) => format!("{}: {tool}, try {attempt}", step.path),
            (None, _) => step.path.clone(),
        };
        text.push_str(&line(&name, &step.status, (step.cost_micro, took(step)), output));
    }
    text
}

fn took(step: &RunStep) -> String {
    let since = |from: DateTime| match step.ended_at {
        Some(ended) => moment::between(from, ended),
        None => moment::since(from),
    };
    since(step.started_at)
}

fn line(name: &str, status: &str, (cost, took): (u64, String), output: Output) -> String {
    let paint = output.out_paint();
    let shown = match status {
        "succeeded" => paint.good(status),
        "failed" | "refused" | "canceled" => paint.bad(status),
        "waiting" | "retrying" => paint.attention(status),
        other => other.to_owned(),
    };
    let cost = match cost {
        0 => String::new(),
        micro => format!("  {}", amount::dollars(micro)),
    };
    format!("{}  {shown}  {}{cost}\n", plain::line(name), paint.faint(&took))
}
