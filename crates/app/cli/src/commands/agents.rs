//! `wharf agents`: programs that the core launches and that offer tools.

mod add;
mod approve;
mod scan;
mod show;
mod start;

use clap::Subcommand;
use wharf_client::{Agents, Call, Client};
use wharf_vocab::Code;
use wharf_wire::rest_v1::{Agent, AgentHealth};

use super::providers::drain::DrainArgs;
use super::providers::{self, ProviderNoun, logs, pick, words as shared};
use crate::commands::{Context, Exit, Output, Result, Table};
use crate::{moment, plain};

const AGENTS: ProviderNoun =
    ProviderNoun { word: "agent", command: "wharf agents", unknown: Code::AgentNotFound };

/// What `wharf agents` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents                          list them
  wharf agents scan ~/agents            find agents below a folder
  wharf agents add ./hello              read a manifest; nothing runs yet
  wharf agents approve hello --all      approve what it asks for
  wharf agents start hello              start it, and keep it running
  wharf agents logs hello -f            read its log

A unique beginning or end of an agent's id is enough.")]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// List agents
    #[command(after_help = "Examples:\n  wharf agents\n  wharf agents list --json")]
    List,
    /// Add the agent in a folder, and show what it asks for
    Add(add::AgentsAddArgs),
    /// Show one agent: its state, its permissions and its tools
    #[command(after_help = "\
Examples:
  wharf agents show dev.wharf.hello
  wharf agents show hello --json")]
    Show(AgentSelector),
    /// Find agents below a folder, without running anything
    Scan(scan::AgentsScanArgs),
    /// Approve all or some of what an agent asks for
    Approve(approve::AgentsApproveArgs),
    /// Revoke an approval, and stop the agent if it runs
    #[command(after_help = "\
Examples:
  wharf agents revoke hello

A running agent is stopped. It cannot be started until you approve it again.")]
    Revoke(AgentSelector),
    /// Start an agent and keep it running, also after a restart of the core
    #[command(after_help = "\
Examples:
  wharf agents start hello
  wharf agents start hello --detach     do not wait until it runs

Exit code 1 if it does not start; see its log.")]
    Start(start::AgentsStartArgs),
    /// Stop an agent and everything it started
    #[command(after_help = "\
Examples:
  wharf agents stop hello
  wharf agents stop hello --drain       let it finish its calls first

The agent is asked to end, and is killed with everything it started if it does not. It stays
stopped, also after a restart of the core, until you start it.")]
    Stop {
        #[command(flatten)]
        which: AgentSelector,
        #[command(flatten)]
        how: DrainArgs,
    },
    /// Restart an agent, or start it
    #[command(after_help = "\
Examples:
  wharf agents restart hello
  wharf agents restart hello --timeout 2m

Exit code 1 if it does not start; see its log.")]
    Restart(start::AgentsStartArgs),
    /// Print an agent's log, even if it has ended
    #[command(after_help = "\
Examples:
  wharf agents logs hello
  wharf agents logs hello -n 50 -f     follow until its process ends
  wharf agents logs hello --json

Each line is marked with its source: out and err are the agent's, log is the core's own.")]
    Logs {
        #[command(flatten)]
        which: AgentSelector,
        #[command(flatten)]
        lines: logs::LogArgs,
    },
    /// Remove an agent; its folder is not touched
    #[command(after_help = "\
Examples:
  wharf agents remove hello

Stop the agent first. Its approval and its tools are forgotten; its folder stays as it is.")]
    Remove(AgentSelector),
}

/// Which agent is meant.
#[derive(Debug, clap::Args)]
struct AgentSelector {
    /// The agent's id, or a unique beginning or end of it
    agent: String,
}

impl AgentSelector {
    /// The whole id, and whom to ask about it.
    async fn find(&self, context: &Context) -> Result<(Client, String)> {
        let client = context.client()?;
        let id = find(&client, &self.agent).await?.agent_id.to_string();
        Ok((client, id))
    }
}

/// Does what the subcommand says; lists agents when there is none.
pub(crate) async fn run(args: AgentsArgs, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(AgentsCommand::List) {
        AgentsCommand::List => list(context).await,
        AgentsCommand::Add(args) => add::run(&args, context).await,
        AgentsCommand::Show(which) => show::run(&which, context).await,
        AgentsCommand::Scan(args) => scan::run(&args, context).await,
        AgentsCommand::Approve(args) => approve::run(args, context).await,
        AgentsCommand::Revoke(which) => {
            let result = "is no longer approved; it is";
            steer(&which, context, "revoking", result, |agents, id| agents.revoke(id)).await
        }
        AgentsCommand::Start(args) => {
            start::run(&args, "starting", |agents, id| agents.start(id), context).await
        }
        AgentsCommand::Stop { which, how } => {
            let (client, id) = which.find(context).await?;
            how.finish(&client, &id, context.output).await?;
            steer(&which, context, "stopping", "is", |agents, id| agents.stop(id)).await
        }
        AgentsCommand::Restart(args) => {
            start::run(&args, "restarting", |agents, id| agents.restart(id), context).await
        }
        AgentsCommand::Logs { which, lines } => print_log(&which, &lines, context).await,
        AgentsCommand::Remove(which) => {
            let (client, id) = which.find(context).await?;
            client.agents().remove(&id).await?;
            context.output.note(&format!("removed {}", plain::line(&id)));
            Ok(Exit::Done)
        }
    }
}

async fn list(context: &Context) -> Result<Exit> {
    let empty = "no agents; add one with: wharf agents add DIR";
    let list = context.client()?.agents().list();
    super::list(list, empty, context.output, |agents, output| {
        let headings = ["AGENT", "STATE", "VERSION", "TOOLS", "PID", "HEARTBEAT", "ABOUT"];
        let mut table = Table::new(output, &headings)
            .keep_whole(&[0, 1])
            .leave_out(4, "")
            .leave_out(5, "")
            .uncut(&[6])
            .spare(&[5]);
        for agent in agents {
            let heartbeat = agent.last_heartbeat.map(moment::relative_to_now);
            // Why it is not well is never cut.
            let about = match &agent.reason {
                Some(reason) => reason.clone(),
                None => plain::cut(&agent.description, 80),
            };
            let cells = [
                agent.agent_id.as_str(),
                agent.state.as_str(),
                &agent.version,
                &agent.tools.len().to_string(),
                &agent.pid.map(|pid| pid.to_string()).unwrap_or_default(),
                &heartbeat.unwrap_or_default(),
                &about,
            ];
            table.row_with_state(cells, 1);
        }
        table
    })
    .await
}

/// Asks something of an agent, and says in a line what came of it: the `result` and its state.
async fn steer(
    which: &AgentSelector,
    context: &Context,
    doing: &str,
    result: &str,
    call: impl FnOnce(Agents<'_>, &str) -> Call<Agent>,
) -> Result<Exit> {
    let (client, id) = which.find(context).await?;
    let doing = format!("{doing} {}", plain::line(&id));
    providers::steer(context.output, &doing, call(client.agents(), &id), |agent: Agent| {
        format!("{} {result} {}\n", plain::line(&agent.agent_id), state(&agent))
    })
    .await
}

async fn print_log(
    which: &AgentSelector,
    lines: &logs::LogArgs,
    context: &Context,
) -> Result<Exit> {
    let (client, id) = which.find(context).await?;
    let agents = client.agents();
    if !lines.follow {
        return logs::show(agents.logs(&id, lines.lines), context.output).await;
    }
    logs::follow(agents.follow_logs(&id, lines.lines).await?, context.output).await?;
    let state = state(&agents.get(&id).await?);
    logs::ended(&plain::line(&id), &state, context.output)
}

/// The agent that a typed id, or the beginning or the end of one, means.
async fn find(client: &Client, typed: &str) -> Result<Agent> {
    let mut agents = client.agents().list().all().await?;
    let ids: Vec<&str> = agents.iter().map(|agent| agent.agent_id.as_str()).collect();
    let at = pick(&ids, typed, AGENTS)?;
    Ok(agents.swap_remove(at))
}

/// What an agent asks for, one line each; what was approved is marked once anything was.
fn requests(agent: &Agent, output: Output) -> String {
    let decided = agent.permissions_approved.is_some();
    let permissions = shared::permissions(&agent.permissions, decided, output);
    format!("{permissions}{}", shared::wishes(&agent.wishes, decided, output))
}

/// How to approve it, for someone who has not.
fn how_to_approve(agent: &Agent) -> String {
    let command = format!("wharf agents approve {}", plain::line(&agent.agent_id));
    shared::how_to_approve(&command, " --all", &agent.permissions_requested)
}

/// The state, and why.
fn state(agent: &Agent) -> String {
    shared::state(agent.state.as_str(), agent.reason.as_deref())
}

/// What it says of itself.
fn health(health: &AgentHealth) -> String {
    let mut said =
        vec![health.status.to_string(), format!("{} calls under way", health.inflight_calls)];
    said.extend(health.details.iter().map(|(name, value)| format!("{name} {value}")));
    plain::line(&said.join(", "))
}

#[cfg(test)]
fn asked(permission: &str, meaning: &str) -> wharf_wire::rest_v1::AgentPermission {
    wharf_wire::rest_v1::AgentPermission {
        permission: permission.into(),
        meaning: meaning.into(),
        approved: false,
        narrowed_to: Vec::new(),
    }
}

/// An agent for tests.
#[cfg(test)]
fn example(state: &str) -> Agent {
    Agent {
        agent_id: "dev.wharf.hello".parse().expect("an id"),
        state: wharf_vocab::ProviderState::parse(state).expect("a state"),
        reason: None,
        pid: None,
        launch_id: None,
        last_heartbeat: None,
        health: None,
        sandbox: wharf_vocab::SandboxLevel::None,
        tools: vec!["dev.wharf.hello/hello_world".parse().expect("an id")],
        name: "Hello".into(),
        version: "0.1.0".into(),
        description: "says hello".into(),
        folder: "/agents/hello".into(),
        command: vec!["./hello".into(), "two words".into()],
        added_at: "2026-11-15T09:00:00.000Z".parse().expect("a time"),
        permissions_requested: vec!["network:egress:example.dev".into(), "env:read:LANG".into()],
        permissions_approved: None,
        permissions: vec![
            asked("network:egress:example.dev", "Connect to example.dev"),
            asked("env:read:LANG", "See the variable LANG"),
        ],
        wishes: Vec::new(),
        sandbox_wanted: None,
        sandbox_notes: Vec::new(),
        isolation: None,
        instances: 0,
        limits: wharf_wire::rest_v1::AgentLimits::default(),
        limits_kept: std::collections::BTreeMap::new(),
        manifest_hash: String::new(),
        pinned_files: std::collections::BTreeMap::new(),
        drift: Vec::new(),
        quarantined: Vec::new(),
        source: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(agent: &Agent) -> String {
        shared::terms(agent.sandbox_wanted, agent.isolation, &agent.limits)
    }

    #[test]
    fn what_was_approved_is_marked() {
        let output = Output::new(false);
        let mut agent = example("approved");
        let asked = requests(&agent, output);
        assert!(asked.starts_with("it asks to\n  connect to example.dev"), "{asked}");
        assert!(!asked.contains("approved"), "{asked}");
        agent.permissions_approved = Some(vec!["env:read:LANG".into()]);
        agent.permissions[1].approved = true;
        let marked = requests(&agent, output);
        let verdicts: Vec<bool> =
            marked.lines().skip(1).map(|line| line.ends_with("not approved")).collect();
        assert_eq!(verdicts, [true, false], "{marked}");
        agent.permissions[0].narrowed_to = vec!["network:egress:example.dev:443".into()];
        assert!(requests(&agent, output).contains("only network:egress:example.dev:443"));
        agent.permissions.clear();
        assert_eq!(requests(&agent, output), "it asks for no permissions\n");
    }

    #[test]
    fn terms_are_told_once_there_are_any() {
        let mut agent = example("approved");
        assert_eq!(terms(&agent), "");
        agent.sandbox_wanted = Some(wharf_vocab::SandboxLevel::Strict);
        agent.isolation = Some(wharf_vocab::Isolation::Run);
        agent.limits.calls_max = Some(4);
        let expect = "it runs in the sandbox strict, one process for each run\n\
                      within 4 calls at once\n";
        assert_eq!(terms(&agent), expect);
    }

    #[test]
    fn the_way_to_an_approval_can_be_typed() {
        let mut agent = example("added");
        let text = how_to_approve(&agent);
        assert!(text.contains("wharf agents approve dev.wharf.hello --all\n"));
        assert!(text.contains("--permission 'env:read:LANG'\n"));
        agent.permissions_requested.truncate(1);
        assert!(!how_to_approve(&agent).contains("--permission"));
    }

    #[test]
    fn nothing_of_an_agents_own_words_reaches_the_terminal_raw() {
        let mut agent = example("crashed");
        agent.reason = Some("\u{1b}[31mboom\nagain".into());
        assert_eq!(state(&agent), "crashed: boom again");
        agent.command.push("it's\u{1b}[2J".into());
        assert_eq!(shared::command(&agent.command), "./hello 'two words' 'it'\\''s'");
        agent.permissions = vec![asked("a:\u{1b}[2Jb", "do \u{1b}[2Jit")];
        assert!(!requests(&agent, Output::new(false)).contains('\u{1b}'));
    }
}
