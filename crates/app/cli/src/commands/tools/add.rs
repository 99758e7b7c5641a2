//! `wharf tools add`.

use std::path::PathBuf;

use wharf_client::Client;
use wharf_vocab::{ProviderState, SandboxLevel, ToolId};
use wharf_wire::rest_v1::{AddTool, Tool, ToolServer};

use crate::commands::providers::words as shared;
use crate::commands::{Context, Exit, Output, Result, word};
use crate::{inputs, output, plain};

use super::words;

/// What `wharf tools add` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools add ./shout
  wharf tools add ./shout --approve
  wharf tools add shout.py --approve               every function under @tool, as local/NAME@1
  wharf tools add shout.ts --approve --namespace acme     every exported tool
  wharf tools add ./shout --approve --permission network:egress:api.example.dev --sandbox strict

The folder holds wharf.tool.toml, or a handler.py, handler.ts or handler.js alone. A handler is imported once, in a sandbox
without network, secrets or permissions, to see which tools it has; --approve also approves what
it asks for. Add it again after a change: what is under way ends on the old process, and new runs
go to the new one.")]
pub(crate) struct ToolsAddArgs {
    /// The folder with the tool server's manifest, or a file of Python, TypeScript or JavaScript, on the core's machine
    #[arg(value_name = "DIR|FILE")]
    folder: PathBuf,
    /// The namespace of tools that have no manifest [default: local]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
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
    let output = context.output;
    let body = AddTool {
        folder: inputs::absolute_path(&args.folder)?,
        namespace: args.namespace,
        approve: args.approve.then_some(true),
        permissions: (!args.permissions.is_empty()).then_some(args.permissions),
        sandbox: args.sandbox,
    };
    let client = context.client()?;
    let raw = match client.tools().add_telling(&body, |line| step(output, line)).await {
        Ok(raw) => raw,
        Err(error) => {
            if !output.is_json() {
                traceback(&error).iter().for_each(|line| output.note(line));
            }
            return Err(error.into());
        }
    };
    let added: Tool = output::typed(raw.clone())?;
    let others = others(&client, &added).await?;
    // What was added does not say how its files differ from what was approved.
    let shown = if args.approve { added } else { client.tools().get(&added.tool_id).await? };
    output.answer(raw, |_: Tool| {
        let mut text = text_of(&shown, args.approve, output);
        for other in &others {
            text.push_str(&format!("\n{}", text_of(other, args.approve, output)));
        }
        text
    })
}

/// What is done while a provider is added, a line each.
pub(crate) fn step(output: Output, line: &str) {
    if !output.is_json() {
        output.note(&output.err_paint().faint(&plain::line(line)));
    }
}

/// The traceback of a handler that cannot be imported, as lines for a terminal.
pub(crate) fn traceback(error: &wharf_client::Error) -> Vec<String> {
    let lines =
        error.info().details.as_ref().and_then(|details| details.get("traceback")?.as_array());
    let lines = lines.into_iter().flatten().filter_map(|line| line.as_str());
    lines.map(plain::line).collect()
}

/// The other tools of the same file.
pub(crate) async fn others(client: &Client, added: &Tool) -> Result<Vec<Tool>> {
    let Some(server) = &added.server else { return Ok(Vec::new()) };
    let of_namespace = |id: &ToolId| {
        let namespace =
            |id: &ToolId| id.as_str().split_once('/').map(|(space, _)| space.to_owned());
        id.is_reference() && *id != added.tool_id && namespace(id) == namespace(&added.tool_id)
    };
    let mut others = Vec::new();
    for tool in client.tools().list().all().await? {
        if !of_namespace(&tool.tool_id) {
            continue;
        }
        let tool = client.tools().get(&tool.tool_id).await?;
        let is_of_file = |other: &ToolServer| {
            other.folder == server.folder && other.command.first() == server.command.first()
        };
        if tool.server.as_deref().is_some_and(is_of_file) {
            others.push(tool);
        }
    }
    Ok(others)
}

pub(super) fn text_of(tool: &Tool, approved: bool, output: Output) -> String {
    let paint = output.out_paint();
    let id = paint.strong(&plain::line(&tool.tool_id));
    let Some(server) = &tool.server else { return format!("{id} is {}\n", words::state(tool)) };
    if !approved && server.state != ProviderState::Added {
        let state = words::state(tool);
        if !server.drift.is_empty() {
            let (lines, how) = (shared::drift(&server.drift), words::how_to_approve(tool, server));
            return format!("{id} is known; it is {state}\n{lines}\n{how}");
        }
        return format!("{id} is known and has not changed; it is {state}\n");
    }
    let done = if approved { "added and approved" } else { "added" };
    let mut text = format!("{} {id}", paint.good(done));
    if !tool.description.is_empty() {
        text.push_str(&format!(", {}", plain::cut(&tool.description, 100)));
    }
    text.push_str(&format!("\nit is served by {}\n", words::kind(server)));
    text.push_str(&words::requests(server, output));
    text.push_str(words::price(tool));
    if approved {
        text.push_str(&words::terms(server));
        text.push_str(&format!("it is {}\n", words::state(tool)));
    } else {
        text.push_str(&words::how_to_approve(tool, server));
    }
    text
}
