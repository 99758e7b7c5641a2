//! `wharf mcp`: MCP on standard streams for any client, and servers of MCP as providers.

mod add;
mod approve;
mod bridge;
mod export;
mod formats;
mod import;
mod login;
mod show;
mod start;
mod words;

use clap::Subcommand;
use wharf_client::{Call, Client, McpServers};
use wharf_vocab::Code;
use wharf_wire::rest_v1::McpServer;

use super::providers::drain::DrainArgs;
use super::providers::{self, ProviderNoun, logs, pick};
use crate::commands::{Context, Exit, Result, Table};
use crate::plain;

const SERVERS: ProviderNoun =
    ProviderNoun { word: "MCP server", command: "wharf mcp list", unknown: Code::AgentNotFound };

/// What `wharf mcp` takes.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  wharf mcp export claude --write       connect Claude Code to Wharf
  wharf mcp                             what the client then starts: MCP on standard streams
  wharf mcp --provider github           offer one provider only, with its own names
  wharf mcp --patience 50s              for clients that give up on long calls

  wharf mcp add notes -- node notes.js  take up a server of MCP; nothing runs yet
  wharf mcp import                      take up the servers that other clients have
  wharf mcp approve notes --all         approve what it asks for, and read its tools
  wharf run notes/search text=hello     call one of them

Without a subcommand this serves a client on standard input and output, through the core of the
home. The token it uses may run tools, read and answer questions, and nothing else. While the core
is away, requests wait for 30 seconds.")]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,
    #[command(flatten)]
    bridge: bridge::McpBridgeArgs,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Add a server: a command, an address, a package or a folder; nothing runs
    Add(Box<add::McpAddArgs>),
    /// Add the servers that another client is configured with; nothing runs
    Import(import::McpImportArgs),
    /// Print or write the entry that connects a client to Wharf
    Export(export::McpExportArgs),
    /// List servers
    #[command(after_help = "Examples:\n  wharf mcp list\n  wharf mcp list --json")]
    List,
    /// Show one server: its state, what it reaches and sees, and its tools
    #[command(after_help = "Examples:\n  wharf mcp show notes\n  wharf mcp show notes --json")]
    Show(McpSelector),
    /// Approve all or some of what a server asks for, and read its tools
    Approve(Box<approve::McpApproveArgs>),
    /// Revoke an approval, and stop the server if it runs
    #[command(after_help = "\
Examples:
  wharf mcp revoke notes

A running server is stopped. It cannot be started until you approve it again.")]
    Revoke(McpSelector),
    /// Let a server be called, also after a restart of the core
    #[command(after_help = "\
Examples:
  wharf mcp start notes

A process is started when the server is called, and ended when it has had nothing to do for a while.
Exit code 1 if it does not start; see its log.")]
    Start(start::McpStartArgs),
    /// Stop a server and everything it started
    #[command(after_help = "\
Examples:
  wharf mcp stop notes
  wharf mcp stop notes --drain          let it finish its calls first

The server is asked to end, and is killed with everything it started if it does not. It stays
stopped, also after a restart of the core, until you start it.")]
    Stop {
        #[command(flatten)]
        which: McpSelector,
        #[command(flatten)]
        how: DrainArgs,
    },
    /// Restart a server, or start it
    #[command(after_help = "\
Examples:
  wharf mcp restart notes

Exit code 1 if it does not start; see its log.")]
    Restart(start::McpStartArgs),
    /// Read again what a server offers
    #[command(after_help = "\
Examples:
  wharf mcp refresh notes

Servers say by themselves when their tools change, and are read again every 10 minutes. What is new
or changed waits for an approval: see it with `wharf tools diff`.")]
    Refresh(start::McpStartArgs),
    /// Log in to a server elsewhere, or out of it
    Login(login::McpLoginArgs),
    /// Print a server's log, even if it has ended
    #[command(after_help = "\
Examples:
  wharf mcp logs notes
  wharf mcp logs notes -n 50 -f        follow until its process ends
  wharf mcp logs notes --json

Each line is marked with its source: out and err are the server's, log is the core's own.")]
    Logs {
        #[command(flatten)]
        which: McpSelector,
        #[command(flatten)]
        lines: logs::LogArgs,
    },
    /// Remove a server, its approval and its tools
    #[command(after_help = "\
Examples:
  wharf mcp remove notes

Stop the server first. A manifest that `wharf mcp add` wrote is removed with it; a folder that you
named stays as it is.")]
    Remove(McpSelector),
}

/// Which server is meant.
#[derive(Debug, clap::Args)]
struct McpSelector {
    /// The server's name, or a unique beginning or end of it
    server: String,
}

impl McpSelector {
    /// The whole id, and whom to ask about it.
    async fn find(&self, context: &Context) -> Result<(Client, String)> {
        let client = context.client()?;
        let id = find(&client, &self.server).await?.server_id.to_string();
        Ok((client, id))
    }
}

/// Does what the subcommand says; serves a client when there is none.
pub(crate) async fn run(args: McpArgs, context: &Context) -> Result<Exit> {
    let Some(command) = args.command else { return bridge::run(args.bridge, context).await };
    match command {
        McpCommand::Add(args) => add::run(*args, context).await,
        McpCommand::Import(args) => import::run(&args, context).await,
        McpCommand::Export(args) => export::run(&args, context),
        McpCommand::List => list(context).await,
        McpCommand::Show(which) => show::run(&which, context).await,
        McpCommand::Approve(args) => approve::run(*args, context).await,
        McpCommand::Revoke(which) => {
            let result = "is no longer approved; it is";
            steer(&which, context, "revoking", result, |servers, id| servers.revoke(id)).await
        }
        McpCommand::Start(args) => {
            start::run(&args, "starting", |servers, id| servers.start(id), context).await
        }
        McpCommand::Stop { which, how } => {
            let (client, id) = which.find(context).await?;
            how.finish(&client, &id, context.output).await?;
            steer(&which, context, "stopping", "is", |servers, id| servers.stop(id)).await
        }
        McpCommand::Restart(args) => {
            start::run(&args, "restarting", |servers, id| servers.restart(id), context).await
        }
        McpCommand::Refresh(args) => {
            start::run(&args, "reading", |servers, id| servers.refresh(id), context).await
        }
        McpCommand::Login(args) => login::run(&args, context).await,
        McpCommand::Logs { which, lines } => print_log(&which, &lines, context).await,
        McpCommand::Remove(which) => remove(&which, context).await,
    }
}

async fn list(context: &Context) -> Result<Exit> {
    let empty = "no MCP servers; add one with: wharf mcp add NAME -- CMD ARG…";
    let list = context.client()?.mcp_servers().list();
    super::list(list, empty, context.output, |servers, output| {
        let headings = ["SERVER", "STATE", "TOOLS", "PID", "STARTS OR IS AT", "ABOUT"];
        let mut table = Table::new(output, &headings).keep_whole(&[0, 1]).leave_out(3, "");
        for server in servers {
            let server: &McpServer = server;
            let waiting = match server.quarantined.len() {
                0 => None,
                1 => Some("1 tool waits for an approval".to_owned()),
                many => Some(format!("{many} tools wait for an approval")),
            };
            let about = server.reason.clone().or(waiting);
            let cells = [
                server.server_id.as_str(),
                server.state.as_str(),
                &server.tools.len().to_string(),
                &server.pid.map(|pid| pid.to_string()).unwrap_or_default(),
                &plain::cut(&words::how(server), 60),
                &plain::cut(&about.unwrap_or_else(|| server.description.clone()), 80),
            ];
            table.row_with_state(cells, 1);
        }
        table
    })
    .await
}

/// Asks something of a server, and says in a line what came of it: the `result` and its state.
async fn steer(
    which: &McpSelector,
    context: &Context,
    doing: &str,
    result: &str,
    call: impl FnOnce(McpServers<'_>, &str) -> Call<McpServer>,
) -> Result<Exit> {
    let (client, id) = which.find(context).await?;
    let doing = format!("{doing} {}", plain::line(&id));
    let call = call(client.mcp_servers(), &id);
    providers::steer(context.output, &doing, call, |server: McpServer| {
        format!("{} {result} {}\n", plain::line(&server.server_id), words::state(&server))
    })
    .await
}

async fn print_log(which: &McpSelector, lines: &logs::LogArgs, context: &Context) -> Result<Exit> {
    let (client, id) = which.find(context).await?;
    let servers = client.mcp_servers();
    if !lines.follow {
        return logs::show(servers.logs(&id, lines.lines), context.output).await;
    }
    logs::follow(servers.follow_logs(&id, lines.lines).await?, context.output).await?;
    let state = words::state(&servers.get(&id).await?);
    logs::ended(&plain::line(&id), &state, context.output)
}

async fn remove(which: &McpSelector, context: &Context) -> Result<Exit> {
    let (client, id) = which.find(context).await?;
    client.mcp_servers().remove(&id).await?;
    let sentence = format!("removed {}", plain::line(&id));
    context.output.done(&serde_json::json!({"server_id": id, "done": "removed"}), &sentence)
}

/// The server that a typed name, or the beginning or the end of one, means.
async fn find(client: &Client, typed: &str) -> Result<McpServer> {
    let mut servers = client.mcp_servers().list().all().await?;
    let ids: Vec<&str> = servers.iter().map(|server| server.server_id.as_str()).collect();
    let at = pick(&ids, typed, SERVERS)?;
    Ok(servers.swap_remove(at))
}

/// A server for tests.
#[cfg(test)]
fn example(state: &str) -> McpServer {
    let server = serde_json::json!({
        "server_id": "every", "state": state, "enabled": true, "listed": true,
        "tools": ["every/echo"], "command": ["node", "/srv/every.js", "stdio"],
        "description": "tries everything", "folder": "/home/mcp-servers/every",
        "added_at": "2026-11-15T09:00:00.000Z", "trust_annotations": true, "era": "auto",
        "roots": "approved", "sandbox": "none", "permissions_requested": ["filesystem:read:/srv/**"],
        "permissions": [{"permission": "filesystem:read:/srv/**", "meaning": "Read /srv",
                         "approved": false}],
        "manifest_hash": "ab12",
    });
    serde_json::from_value(server).expect("a server")
}
