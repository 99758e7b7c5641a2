//! `wharf flow rerun`: a flow once more, beginning with one of its steps.

use serde_json::{Value, json};
use wharf_vocab::Object;
use wharf_wire::rest_v1::RerunFlow;

use crate::commands::{CliError, Context, Exit, Result, runs};
use crate::plain;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf flow rerun RUN --from publish
  wharf flow rerun RUN --from publish --inputs '{\"what\": \"report\"}' --version 3

The results of the steps before it are taken over from that run and cost nothing. Approvals are
asked for again.")]
pub(super) struct RerunArgs {
    /// The run's id, or the beginning of it
    #[arg(value_name = "RUN")]
    run: String,
    /// The step to begin with, one at the top of the document
    #[arg(long, value_name = "STEP")]
    from: String,
    /// The inputs, as a JSON object [default: those of the run]
    #[arg(long, value_name = "JSON")]
    inputs: Option<String>,
    /// The version of the flow [default: that of the run]
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    /// Take results over although the definition of a tool has changed since
    #[arg(long)]
    force: bool,
    /// The run's world [default: any]
    #[arg(long)]
    world: Option<String>,
}

/// Starts the new run and says how to follow it.
pub(super) async fn run(args: RerunArgs, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let found = runs::find(&client, &args.run, args.world.as_deref()).await?;
    let inputs = args.inputs.as_deref().map(object).transpose()?;
    let RerunArgs { from, version, force, .. } = args;
    let how = RerunFlow { from, inputs, version, force, run_id: None };
    let accepted = client.runs().rerun((&found.run_id, found.world.as_deref()), &how).await?;
    let id = plain::line(&accepted.run_id);
    let sentence = format!("started {id}; follow it with: wharf flow watch {id}");
    context.output.done(&json!(accepted), &sentence)
}

fn object(text: &str) -> Result<Object> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(CliError::usage("--inputs must be a JSON object")),
    }
}
