//! `wharf tools enable`, `disable` and `restart`.

use serde_json::Value;
use wharf_client::{Call, Tools};
use wharf_vocab::ToolId;
use wharf_wire::rest_v1::Tool;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::spinner::Spinner;
use crate::{plain, table};

use super::{find, words};

/// What `wharf tools enable` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools enable text/shout@1

Its server starts with the first call.")]
pub(crate) struct EnableArgs {
    /// The tool, or a unique beginning or end of its id
    tool: String,
}

/// What `wharf tools disable` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools disable text/shout@1

Runs in progress are lost. The tool stays listed and approved.")]
pub(crate) struct DisableArgs {
    /// The tool, or a unique beginning or end of its id
    tool: String,
}

/// What `wharf tools restart` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools restart text/shout@1

Runs in progress are lost.")]
pub(crate) struct RestartArgs {
    /// The tool, or a unique beginning or end of its id
    tool: String,
}

/// Lets a tool be called.
pub(super) async fn enable(args: &EnableArgs, context: &Context) -> Result<Exit> {
    steer(context, &args.tool, "enabling", |tools, id| tools.enable(id)).await
}

/// Lets nobody call a tool.
pub(super) async fn disable(args: &DisableArgs, context: &Context) -> Result<Exit> {
    steer(context, &args.tool, "disabling", |tools, id| tools.disable(id)).await
}

/// Stops a tool's server if it runs, and lets it be started anew.
pub(super) async fn restart(args: &RestartArgs, context: &Context) -> Result<Exit> {
    steer(context, &args.tool, "restarting", |tools, id| tools.restart(id)).await
}

async fn steer(
    context: &Context,
    typed: &str,
    doing: &str,
    call: impl FnOnce(Tools<'_>, &ToolId) -> Call<Tool>,
) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let id = find(&client, typed).await?;
    let spinner = Spinner::new(output, &format!("{doing} {id}"));
    let raw: Value = call(client.tools(), &id).raw().await?;
    drop(spinner);
    if output.is_json() {
        output.json(&raw)?;
    } else {
        let tool: Tool = table::typed(raw)?;
        output.line(&format!("{} is {}", plain::line(&tool.tool_id), words::state(&tool)))?;
    }
    Ok(Exit::Done)
}
