//! `wharf tools`: the catalog, and the servers of tools that have one of their own.

mod add;
mod approve;
pub(crate) mod diff;
mod logs;
mod remove;
mod show;
mod steer;
#[cfg(test)]
mod tests;
mod words;

use clap::Subcommand;
use wharf_client::Client;
use wharf_vocab::{Code, ToolId};
use wharf_wire::rest_v1::Tool;

use crate::cli::Context;
use crate::commands::providers::{Kind, pick};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::plain;
use crate::table::{self, Table};

const TOOLS: Kind = Kind { word: "tool", command: "wharf tools", unknown: Code::ToolNotFound };

/// What `wharf tools` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools
  wharf tools show wharf/count
  wharf tools add ./shout                          read a manifest; nothing runs yet
  wharf tools add ./shout --approve                also approve what it asks for
  wharf tools disable text/shout@1                 refuse calls until it is enabled again
  wharf tools diff                                 show changes that need your approval
  wharf tools approve dev.example.hello/echo       approve the change

A tool with a version, such as text/shout@1, has its own server. Tools of agents are managed
through their agents: see wharf agents. A unique beginning or end of a tool's id is enough.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List all tools
    #[command(after_help = "Examples:\n  wharf tools\n  wharf tools list --json")]
    List,
    /// Show one tool: its inputs, its outputs and the state of its server
    Show(show::Args),
    /// Add the tool server in a folder, and show what it asks for
    Add(add::Args),
    /// Approve a tool server, or the current definition of an agent's tool
    Approve(approve::Args),
    /// Allow calls of a tool, also after a restart of the core
    Enable(steer::EnableArgs),
    /// Stop a tool's server and refuse all calls of it
    Disable(steer::DisableArgs),
    /// Restart a tool's server
    Restart(steer::RestartArgs),
    /// Print the log of a tool's server, even if it has ended
    Logs(logs::Args),
    /// Remove a tool server; its folder is not touched
    Remove(remove::Args),
    /// Show how definitions differ from the approved ones
    #[command(after_help = "\
Examples:
  wharf tools diff
  wharf tools diff dev.example.hello/echo

A tool whose definition changed cannot be called until it is approved again.")]
    Diff {
        /// The tool [default: all changed tools]
        tool: Option<String>,
    },
}

/// Does what the subcommand says; lists tools when there is none.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(Command::List) {
        Command::List => list(context).await,
        Command::Show(args) => show::run(&args, context).await,
        Command::Add(args) => add::run(args, context).await,
        Command::Approve(args) => approve::run(args, context).await,
        Command::Enable(args) => steer::enable(&args, context).await,
        Command::Disable(args) => steer::disable(&args, context).await,
        Command::Restart(args) => steer::restart(&args, context).await,
        Command::Logs(args) => logs::run(&args, context).await,
        Command::Remove(args) => remove::run(&args, context).await,
        Command::Diff { tool } => diff::run(tool.as_deref(), context).await,
    }
}

async fn list(context: &Context) -> Result<Exit> {
    let output = context.output;
    let items = context.client()?.tools().list().raw().all().await?;
    if output.is_json() {
        output.json(&items)?;
        return Ok(Exit::Done);
    }
    let tools: Vec<Tool> = table::rows(items)?;
    let mut table =
        Table::new(output, &["TOOL", "STATE", "EFFECTS", "DESCRIPTION"]).keep_whole(&[0, 1]);
    for tool in &tools {
        let acts = if tool.side_effects { "yes" } else { "no" };
        table.row_with_state([&*tool.tool_id, tool.state.as_str(), acts, &about(tool)], 1);
    }
    output.text(&table.text())?;
    Ok(Exit::Done)
}

/// What is said of a tool in a line: why it cannot be called, or else what it does.
fn about(tool: &Tool) -> String {
    let description = plain::cut(&tool.description, 100);
    match &tool.state_reason {
        Some(reason) => format!("({}) {description}", plain::cut(reason, 60)),
        None => description,
    }
}

/// The tool that a typed id, or the beginning or the end of one, means.
async fn find(client: &Client, typed: &str) -> Result<ToolId> {
    let tools = client.tools().list().all().await?;
    let ids: Vec<&str> = tools.iter().map(|tool| tool.tool_id.as_str()).collect();
    match pick(&ids, typed, TOOLS) {
        Ok(at) => tool_id(ids[at]),
        // The core may know one that it does not list, and says best what is wrong with it.
        Err(failure) if failure.is(Code::ToolNotFound) => ToolId::new(typed).map_err(|_| failure),
        Err(failure) => Err(failure),
    }
}

/// The tool that was typed.
fn tool_id(id: &str) -> Result<ToolId> {
    ToolId::new(id).map_err(|_| {
        let message = format!(
            "{id:?} is not a tool id such as wharf/count; list the tools with: wharf tools"
        );
        Failure::new(Code::ToolNotFound, message)
    })
}
