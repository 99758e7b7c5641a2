//! `wharf tools`: the catalog, and the servers of tools that have one of their own.

pub(super) mod add;
mod approve;
pub(crate) mod diff;
mod show;
#[cfg(test)]
mod tests;
mod words;

use clap::Subcommand;
use wharf_client::{Call, Client, Tools};
use wharf_vocab::{Code, ToolId};
use wharf_wire::rest_v1::Tool;

use crate::commands::providers::drain::DrainArgs;
use crate::commands::providers::{self, ProviderNoun, logs, pick};
use crate::commands::{CliError, Context, Exit, Result, Table};
use crate::complete::nearest_tool;
use crate::plain;

const TOOLS: ProviderNoun =
    ProviderNoun { word: "tool", command: "wharf tools", unknown: Code::ToolNotFound };

/// What `wharf tools` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools
  wharf tools show wharf/count
  wharf tools add ./shout                          see what it is and what it asks for
  wharf tools add ./shout --approve                also approve what it asks for
  wharf tools disable text/shout@1                 refuse calls until it is enabled again
  wharf tools diff                                 show changes that need your approval
  wharf tools approve dev.example.hello/echo       approve the change

A tool with a version, such as text/shout@1, has its own server. Tools of agents are managed
through their agents: see wharf agents. A unique beginning or end of a tool's id is enough.")]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    command: Option<ToolsCommand>,
}

#[derive(Debug, Subcommand)]
enum ToolsCommand {
    /// List all tools
    #[command(after_help = "Examples:\n  wharf tools\n  wharf tools list --json")]
    List,
    /// Show one tool: its inputs, its outputs and the state of its server
    #[command(after_help = "\
Examples:
  wharf tools show wharf/count
  wharf tools show text/shout@1 --json")]
    Show {
        /// The tool, such as wharf/count, or a unique beginning or end of its id
        tool: String,
    },
    /// Add the tool server in a folder, and show what it asks for
    Add(add::ToolsAddArgs),
    /// Approve a tool server, or the current definition of an agent's tool
    Approve(approve::ToolsApproveArgs),
    /// Allow calls of a tool, also after a restart of the core
    #[command(after_help = "\
Examples:
  wharf tools enable text/shout@1

Its server starts with the first call.")]
    Enable(ToolSelector),
    /// Stop a tool's server and refuse all calls of it
    #[command(after_help = "\
Examples:
  wharf tools disable text/shout@1
  wharf tools disable text/shout@1 --drain      let it finish its runs first

Without --drain runs in progress are lost. The tool stays listed and approved.")]
    Disable {
        #[command(flatten)]
        which: ToolSelector,
        #[command(flatten)]
        how: DrainArgs,
    },
    /// Restart a tool's server
    #[command(after_help = "\
Examples:
  wharf tools restart text/shout@1

Runs in progress are lost.")]
    Restart(ToolSelector),
    /// Print the log of a tool's server, even if it has ended
    #[command(after_help = "\
Examples:
  wharf tools logs text/shout@1
  wharf tools logs text/shout@1 -n 50 -f     follow until its process ends
  wharf tools logs text/shout@1 --run 0197a1c2-5d3e-7f00-8000-000000000001
  wharf tools logs text/shout@1 --json

Each line is marked with its source: out and err are the server's, log is the core's own.")]
    Logs {
        #[command(flatten)]
        which: ToolSelector,
        /// Only what was written about this run
        #[arg(long, value_name = "RUN")]
        run: Option<String>,
        #[command(flatten)]
        lines: logs::LogArgs,
    },
    /// Remove a tool server; its folder is not touched
    #[command(after_help = "\
Examples:
  wharf tools remove text/shout@1
  wharf tools remove text/shout@1 --yes      even if it is enabled

An enabled tool is disabled first, after confirmation. Its approval is forgotten; its folder, its
runs and their files are not touched.")]
    Remove(ToolsRemoveArgs),
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

/// Which tool is meant.
#[derive(Debug, clap::Args)]
struct ToolSelector {
    /// The tool, or a unique beginning or end of its id
    tool: String,
}

#[derive(Debug, clap::Args)]
struct ToolsRemoveArgs {
    #[command(flatten)]
    which: ToolSelector,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Does what the subcommand says; lists tools when there is none.
pub(crate) async fn run(args: ToolsArgs, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(ToolsCommand::List) {
        ToolsCommand::List => list(context).await,
        ToolsCommand::Show { tool } => show::run(&tool, context).await,
        ToolsCommand::Add(args) => add::run(args, context).await,
        ToolsCommand::Approve(args) => approve::run(args, context).await,
        ToolsCommand::Enable(which) => {
            steer(&which, context, "enabling", |tools, id| tools.enable(id)).await
        }
        ToolsCommand::Disable { which, how } => {
            let client = context.client()?;
            let id = find(&client, &which.tool).await?;
            how.finish(&client, id.as_str(), context.output).await?;
            steer(&which, context, "disabling", |tools, id| tools.disable(id)).await
        }
        ToolsCommand::Restart(which) => {
            steer(&which, context, "restarting", |tools, id| tools.restart(id)).await
        }
        ToolsCommand::Logs { which, run, lines } => {
            print_log(&which, run.as_deref(), &lines, context).await
        }
        ToolsCommand::Remove(args) => remove(&args, context).await,
        ToolsCommand::Diff { tool } => diff::run(tool.as_deref(), context).await,
    }
}

async fn list(context: &Context) -> Result<Exit> {
    super::list(context.client()?.tools().list(), "", context.output, |tools, output| {
        let mut table = Table::new(output, &["TOOL", "STATE", "EFFECTS", "DESCRIPTION"])
            .keep_whole(&[0, 1])
            .uncut(&[3]);
        for tool in tools {
            let acts = if tool.side_effects { "yes" } else { "no" };
            table.row_with_state([&*tool.tool_id, tool.state.as_str(), acts, &about(tool)], 1);
        }
        table
    })
    .await
}

/// Asks something of a tool's server, and says in a line how the tool fares.
async fn steer(
    which: &ToolSelector,
    context: &Context,
    doing: &str,
    call: impl FnOnce(Tools<'_>, &ToolId) -> Call<Tool>,
) -> Result<Exit> {
    let client = context.client()?;
    let id = find(&client, &which.tool).await?;
    let doing = format!("{doing} {id}");
    providers::steer(context.output, &doing, call(client.tools(), &id), |tool: Tool| {
        format!("{} is {}\n", plain::line(&tool.tool_id), words::state(&tool))
    })
    .await
}

async fn print_log(
    which: &ToolSelector,
    run: Option<&str>,
    lines: &logs::LogArgs,
    context: &Context,
) -> Result<Exit> {
    super::logs::check_filter(run, lines.follow)?;
    let client = context.client()?;
    let id = find(&client, &which.tool).await?;
    let tools = client.tools();
    if let Some(run) = run {
        return logs::show(tools.logs_of_run(&id, run, lines.lines), context.output).await;
    }
    if !lines.follow {
        return logs::show(tools.logs(&id, lines.lines), context.output).await;
    }
    logs::follow(tools.follow_logs(&id, lines.lines).await?, context.output).await?;
    let state = words::state(&tools.get(&id).await?);
    logs::ended(&id, &state, context.output)
}

/// Forgets the tool's server.
async fn remove(args: &ToolsRemoveArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let id = find(&client, &args.which.tool).await?;
    let tool = client.tools().get(&id).await?;
    if tool.server.is_some_and(|server| server.enabled) {
        if !args.yes && !output.can_ask() {
            let message = format!("{id} is enabled; disable it first, or confirm it with --yes");
            return Err(CliError::new(Code::AgentRunning, message));
        }
        if !args.yes && !output.confirm(&format!("{id} is enabled. Disable and remove it?")) {
            return Ok(Exit::Done);
        }
        client.tools().disable(&id).await?;
    }
    client.tools().remove(&id).await?;
    output.note(&format!("removed {id}"));
    Ok(Exit::Done)
}

/// What is said of a tool in a line: why it cannot be called, or else what it does.
fn about(tool: &Tool) -> String {
    let description = plain::cut(&tool.description, 100);
    match &tool.state_reason {
        Some(reason) => format!("({}) {description}", plain::line(reason)),
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
        Err(failure) if failure.is(Code::ToolNotFound) => {
            let id = ToolId::new(typed).map_err(|_| failure)?;
            let Some(near) = nearest_tool(typed, &ids) else { return Ok(id) };
            match client.tools().get(&id).await {
                Err(error) if error.is(Code::ToolNotFound) => {
                    let hint = format!("Did you mean {}?", plain::line(near));
                    Err(CliError::from(error).with_hint(&hint))
                }
                _ => Ok(id),
            }
        }
        Err(failure) => Err(failure),
    }
}

/// The tool that was typed.
pub(super) fn tool_id(id: &str) -> Result<ToolId> {
    ToolId::new(id).map_err(|_| {
        let message = format!(
            "{id:?} is not a tool id such as wharf/count; list the tools with: wharf tools"
        );
        CliError::new(Code::ToolNotFound, message)
    })
}
