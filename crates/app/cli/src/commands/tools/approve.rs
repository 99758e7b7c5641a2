//! `wharf tools approve`.

use wharf_client::Client;
use wharf_vocab::ToolId;
use wharf_wire::rest_v1::{ApproveAgent, Tool, ToolServer};

use crate::commands::providers::approval::ApprovalArgs;
use crate::commands::{CliError, Context, Exit, Output, Result};
use crate::plain;

use super::{diff, find, words};

/// What `wharf tools approve` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools approve text/shout@1
  wharf tools approve text/shout@1 --permission env:read:LANG --sandbox strict --memory 256Mi
  wharf tools approve dev.example.hello/echo       approve the change of an agent's tool

For a tool with its own server, this approves all permissions it asks for, or only those you name,
for its manifest and files as they are now. For a tool of an agent or an MCP server, it approves
the definition that is offered now.")]
pub(crate) struct ToolsApproveArgs {
    /// The tool, or a unique beginning or end of its id
    tool: String,
    #[command(flatten)]
    approval: ApprovalArgs,
}

impl ToolsApproveArgs {
    /// What the core is asked to approve, if the manifest is still the one with this hash.
    pub(super) fn into_request(self, manifest_hash: Option<String>) -> ApproveAgent {
        let all = !self.approval.names_permissions();
        self.approval.into_request(all, manifest_hash)
    }
}

/// Approves the tool's server, or the tool.
pub(super) async fn run(args: ToolsApproveArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let id = find(&client, &args.tool).await?;
    if !id.is_reference() {
        return take_on(&args, &client, &id, output).await;
    }
    let tool = client.tools().get(&id).await?;
    let body = args.into_request(tool.server.map(|server| server.manifest_hash));
    let raw = client.tools().approve_server(&id, &body).raw().await?;
    output.answer(raw, |tool: Tool| match &tool.server {
        Some(server) => text_of(&tool, server, output),
        None => told(&tool),
    })
}

/// Takes on the tool of an agent or an MCP server.
async fn take_on(
    args: &ToolsApproveArgs,
    client: &Client,
    id: &ToolId,
    output: Output,
) -> Result<Exit> {
    if args.approval.says_something() {
        let message = format!(
            "{id} has no server of its own, so no options apply; they are for approving what \
             offers it: wharf agents approve {0}, or wharf mcp approve {0}",
            id.provider()
        );
        return Err(CliError::usage(message));
    }
    let changes = diff::of(client, std::slice::from_ref(id), output).await?;
    let raw = client.tools().approve(id).raw().await?;
    output.answer(raw, |tool| format!("{}{}", changes.trim_start_matches('\n'), told(&tool)))
}

fn told(tool: &Tool) -> String {
    let (id, state) = (plain::line(&tool.tool_id), tool.state);
    format!("{id} counts as it is offered now; it is {state}\n")
}

pub(super) fn text_of(tool: &Tool, server: &ToolServer, output: Output) -> String {
    let paint = output.out_paint();
    let id = plain::line(&tool.tool_id);
    let mut text = format!("{} {}\n", paint.good("approved"), paint.strong(&id));
    text.push_str(&words::requests(server, output));
    text.push_str(&words::terms(server));
    if server.enabled {
        text.push_str(&format!("it is {}\n", words::state(tool)));
    } else {
        text.push_str(&format!("enable it with\n  wharf tools enable {id}\n"));
    }
    text
}
