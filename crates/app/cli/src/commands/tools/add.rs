//! `wharf tools add`.

use std::path::PathBuf;

use wharf_vocab::{ProviderState, SandboxLevel};
use wharf_wire::rest_v1::{AddTool, Tool};

use crate::commands::{Context, Exit, Output, Result, word};
use crate::{inputs, plain};

use super::words;

/// What `wharf tools add` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools add ./shout
  wharf tools add ./shout --approve
  wharf tools add ./shout --approve --permission network:egress:api.example.dev --sandbox strict

The folder holds wharf.tool.toml. Adding reads it and runs nothing; --approve also approves
what it asks for. Add it again after a change; it then needs a new approval.")]
pub(crate) struct ToolsAddArgs {
    /// The folder with the tool server's manifest, on the core's machine
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Also approve what it asks for
    #[arg(long)]
    approve: bool,
    /// Approve only this permission; may be repeated
    #[arg(long = "permission", value_name = "P", num_args = 1.., requires = "approve")]
    permissions: Vec<String>,
    /// The sandbox it runs in [default: as the core is configured, else standard; a stricter one
    /// if the manifest asks for it]
    #[arg(long, value_parser = word::<SandboxLevel>(), requires = "approve")]
    sandbox: Option<SandboxLevel>,
}

/// Adds the tool server, and shows what it asks for.
pub(super) async fn run(args: ToolsAddArgs, context: &Context) -> Result<Exit> {
    let body = AddTool {
        folder: inputs::absolute_path(&args.folder)?,
        approve: args.approve.then_some(true),
        permissions: (!args.permissions.is_empty()).then_some(args.permissions),
        sandbox: args.sandbox,
    };
    let raw = context.client()?.tools().add(&body).raw().await?;
    context.output.answer(raw, |tool| text_of(&tool, args.approve, context.output))
}

pub(super) fn text_of(tool: &Tool, approved: bool, output: Output) -> String {
    let paint = output.out_paint();
    let id = paint.strong(&plain::line(&tool.tool_id));
    let Some(server) = &tool.server else { return format!("{id} is {}\n", words::state(tool)) };
    if !approved && server.state != ProviderState::Added {
        return format!("{id} is known and has not changed; it is {}\n", words::state(tool));
    }
    let done = if approved { "added and approved" } else { "added" };
    let mut text = format!("{} {id}", paint.good(done));
    if !tool.description.is_empty() {
        text.push_str(&format!(", {}", plain::cut(&tool.description, 100)));
    }
    text.push_str(&format!("\nit is served by {}\n", words::kind(server)));
    text.push_str(&words::requests(server, output));
    if approved {
        text.push_str(&words::terms(server));
        text.push_str(&format!("it is {}\n", words::state(tool)));
    } else {
        text.push_str(&words::how_to_approve(tool, server));
    }
    text
}
