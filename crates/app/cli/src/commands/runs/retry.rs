//! `wharf runs retry`: runs again what a run did, from what the core has stored of it.

use std::time::Duration;

use serde_json::Value;
use wharf_client::Client;
use wharf_vocab::{Code, Mode};
use wharf_wire::rest_v1::{Run, RunAgain};

use super::{find, named};
use crate::commands::run::{self, Following};
use crate::commands::{Context, Exit, Output, Result, word};
use crate::{amount, inputs, moment, plain};

/// What `wharf runs retry` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf runs retry 0197a1
  wharf runs retry nightly --set n=5 --set text=hello     with other inputs
  wharf runs retry nightly --unset limit --timeout 5m
  wharf runs retry nightly --mode mock --json

The tool, the inputs and all else are those of the run that is repeated, unless an option says
otherwise. The new run is followed as by wharf run, and gives its exit code.
A unique beginning of the id is enough.")]
pub(crate) struct RunsRetryArgs {
    /// The run to repeat: its id, or the beginning of it
    run: String,
    /// The run's world [default: whichever has it]
    #[arg(long)]
    world: Option<String>,
    /// Another value for an input, typed by the tool's schema; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Leave out an input; may be repeated
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// The world of the new run [default: that of the run]
    #[arg(long = "in", value_name = "WORLD")]
    target: Option<String>,
    /// Whether the new run really acts or only mocks it [default: as the run did]
    #[arg(long, value_parser = word::<Mode>())]
    mode: Option<Mode>,
    /// How long one attempt may run, such as 30s or 5m [default: as it was]
    #[arg(long, value_name = "DURATION", value_parser = amount::duration)]
    timeout: Option<Duration>,
    /// The most the new run and its children may cost, in millionths of a dollar [default: as it
    /// was]
    #[arg(long, value_name = "N")]
    budget_micro: Option<u64>,
    /// Print the new run's id and leave it running
    #[arg(long)]
    detach: bool,
    /// Print nothing on standard error during the run
    #[arg(long, short)]
    quiet: bool,
}

/// Repeats the run and, unless told otherwise, follows the new one to its end.
pub(crate) async fn run(args: RunsRetryArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let found = find(&client, &args.run, args.world.as_deref()).await?;
    let world = found.world.as_deref();
    let before = client.runs().get(&found.run_id).world(world).await?;
    let changes = RunAgain {
        inputs: changed(&args, &before, &client).await?,
        world: run::optional("world", args.target.as_deref())?,
        mode: args.mode,
        // An id of our own lets the request be made again when the answer got lost.
        run_id: run::optional("run_id", Some(&uuid::Uuid::now_v7().to_string()))?,
        idempotency_key: None,
        timeout_ms: args.timeout.map(amount::ms),
        budget_micro: args.budget_micro,
    };
    let lost = |error: &wharf_client::Error| run::lost_answer(error, output);
    let accepted = client.runs().again_surely(&found.run_id, world, &changes, lost).await?;
    let way = Following { detach: args.detach, quiet: args.quiet };
    if !args.quiet && !output.is_json() {
        output.note(&repeats(&before, &accepted.run_id, output));
    }
    let target = args.target.as_deref().or(world);
    way.follow(client, &accepted, target, output).await
}

/// Which run is repeated, and as which.
fn repeats(before: &Run, run: &str, output: Output) -> String {
    let when = moment::relative_to_now(before.created_at);
    let old = named(&before.run_id, &before.world);
    output.err_paint().faint(&format!(
        "repeating {old} ({}, {}, {when}) as {}",
        plain::line(&before.tool),
        before.status,
        plain::line(run)
    ))
}

/// The inputs that differ, each typed by the tool's schema; null for one that is left out.
async fn changed(args: &RunsRetryArgs, before: &Run, client: &Client) -> Result<Value> {
    if args.set.is_empty() && args.unset.is_empty() {
        return Ok(Value::Null);
    }
    let schema = run::schema_of(&before.tool, client).await?;
    let mut object = inputs::object(&args.set, schema.as_ref(), Code::ToolInvalidInput)?;
    object.extend(args.unset.iter().map(|key| (key.clone(), Value::Null)));
    Ok(Value::Object(object))
}
