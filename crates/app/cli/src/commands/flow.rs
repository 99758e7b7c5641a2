//! `wharf flow`: documents of several steps, and the runs that go by them.

mod file;
mod rerun;
mod watch;

use std::time::SystemTime;

use clap::Subcommand;
use serde_json::{Value, json};
use wharf_vocab::{Code, DateTime, Timestamp, ToolId, quantity};
use wharf_wire::rest_v1::{AddFlow, CheckFlow, Flow, FlowCheck, FlowFinding, SendSignal};

use crate::commands::run::RunToolArgs;
use crate::commands::{CliError, Context, Exit, Output, Result, Table, runs};
use crate::{moment, plain};

/// What `wharf flow` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf flow check digest.yaml
  wharf flow add digest.yaml
  wharf flow run digest n=20 words=a words=b
  wharf flow watch RUN
  wharf flow signal RUN go '{\"really\": true}'

A flow is a tool: wharf run flow/digest works as well.")]
pub(crate) struct FlowArgs {
    #[command(subcommand)]
    command: Option<FlowCommand>,
}

#[derive(Debug, Subcommand)]
enum FlowCommand {
    /// List flows
    #[command(after_help = "Examples:\n  wharf flow list\n  wharf flow list --json")]
    List,
    /// Show a flow and its document
    #[command(after_help = "\
Examples:
  wharf flow show digest
  wharf flow show digest --version 1 --json")]
    Show {
        /// The flow's name
        #[arg(value_name = "FLOW")]
        name: String,
        /// The version [default: the newest]
        #[arg(long, value_name = "N")]
        version: Option<u32>,
    },
    /// Add a flow, or a version of one
    #[command(after_help = "\
Examples:
  wharf flow add digest.yaml
  wharf flow add digest.json --pin

A document equal to the newest version adds nothing. With --pin, runs fail with flow.tool_changed
once the definition of one of its tools has changed.")]
    Add {
        /// The document, in JSON or YAML; `-` for standard input
        file: String,
        /// Refuse runs once the definition of one of its tools has changed
        #[arg(long)]
        pin: bool,
    },
    /// Check a document without storing it
    #[command(after_help = "\
Examples:
  wharf flow check digest.yaml
  wharf flow check - --json

Exit codes: 0 the document is accepted, 1 it has errors.")]
    Check {
        /// The document, in JSON or YAML; `-` for standard input
        file: String,
    },
    /// Remove a version of a flow that no run is using
    #[command(after_help = "\
Examples:
  wharf flow remove digest --version 1
  wharf flow remove digest --version 1 --yes")]
    Remove {
        /// The flow's name
        #[arg(value_name = "FLOW")]
        name: String,
        /// The version
        #[arg(long, value_name = "N")]
        version: u32,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Run a flow and follow it
    #[command(after_help = "\
Examples:
  wharf flow run digest n=20 words=a words=b
  wharf flow run digest --input @inputs.json --detach
  wharf flow run digest@1 n=20

It takes the same arguments as wharf run. A name without a version means the newest one.")]
    Run(Box<RunToolArgs>),
    /// Show the steps of a run and follow them
    #[command(after_help = "\
Examples:
  wharf flow watch RUN
  wharf flow watch RUN --once
  wharf flow watch RUN --json")]
    Watch {
        /// The run's id, or the beginning of it
        #[arg(value_name = "RUN")]
        run: String,
        /// The run's world [default: any]
        #[arg(long)]
        world: Option<String>,
        /// Show the steps as they are now and exit
        #[arg(long)]
        once: bool,
    },
    /// Send a message that a run waits for, now or later
    #[command(after_help = "\
Examples:
  wharf flow signal RUN go
  wharf flow signal RUN paid '{\"amount\": 12}' --key payment-7")]
    Signal {
        /// The run's id, or the beginning of it
        #[arg(value_name = "RUN")]
        run: String,
        /// The message's name, as in the document
        name: String,
        /// The message's value, in JSON; a plain word is a text
        value: Option<String>,
        /// The run's world [default: any]
        #[arg(long)]
        world: Option<String>,
        /// An idempotency key: a message with the same key is taken once
        #[arg(long)]
        key: Option<String>,
    },
    /// Run a flow again from one of its steps
    Rerun(rerun::RerunArgs),
    /// Print the steps as a Mermaid flowchart
    #[command(after_help = "\
Examples:
  wharf flow graph digest
  wharf flow graph digest.yaml")]
    Graph {
        /// A flow's name, or a file that contains a document
        flow: String,
    },
}

/// Does what the subcommand says; lists flows when there is none.
pub(crate) async fn run(args: FlowArgs, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(FlowCommand::List) {
        FlowCommand::List => list(context).await,
        FlowCommand::Show { name, version } => show(&name, version, context).await,
        FlowCommand::Add { file, pin } => add(&file, pin, context).await,
        FlowCommand::Check { file } => check(&file, context).await,
        FlowCommand::Remove { name, version, yes } => remove(&name, version, yes, context).await,
        FlowCommand::Run(args) => {
            let args = args.of_flow();
            warn_of_token(args.tool(), context).await?;
            crate::commands::run::run(args, context).await
        }
        FlowCommand::Watch { run, world, once } => {
            watch::run(&run, world.as_deref(), once, context).await
        }
        FlowCommand::Signal { run, name, value, world, key } => {
            let signal = SendSignal { value: said(value.as_deref()), idempotency_key: key };
            send(&run, world.as_deref(), (&name, &signal), context).await
        }
        FlowCommand::Rerun(args) => rerun::run(args, context).await,
        FlowCommand::Graph { flow } => graph(&flow, context).await,
    }
}

async fn list(context: &Context) -> Result<Exit> {
    let flows = context.client()?.flows().list();
    let empty = "no flows; add one with: wharf flow add FILE";
    super::list(flows, empty, context.output, |flows, output| {
        let mut table = Table::new(output, &["FLOW", "VERSION", "DESCRIPTION", "ADDED"])
            .keep_whole(&[0])
            .spare(&[3, 2]);
        for flow in flows {
            let version = flow.version.to_string();
            let added = moment::shown(flow.added_at);
            table.row([flow.name.as_str(), &version, &flow.description, &added]);
        }
        table
    })
    .await
}

async fn show(name: &str, version: Option<u32>, context: &Context) -> Result<Exit> {
    let shown: Value = context.client()?.flows().get(name, version).raw().await?;
    let output = context.output;
    output.answer(shown, |flow: Flow| {
        let versions: Vec<String> = flow.versions.iter().map(u32::to_string).collect();
        let mut table = Table::bare(output);
        table.facts([
            ("flow", Some(flow.name.to_string())),
            ("version", Some(flow.version.to_string())),
            ("versions", (versions.len() > 1).then(|| versions.join(", "))),
            ("tool", Some(flow.tool_id.to_string())),
            ("description", Some(flow.description).filter(|text| !text.is_empty())),
            ("added", Some(moment::shown(flow.added_at))),
            ("by", Some(flow.added_by.to_string())),
            ("hash", Some(flow.hash)),
        ]);
        let document = serde_json::to_string_pretty(&flow.document).unwrap_or_default();
        format!("{}\n{}\n", table.text(), plain::text(&document))
    })
}

async fn add(file: &str, pin: bool, context: &Context) -> Result<Exit> {
    let document = file::read(file)?;
    let client = context.client()?;
    let added = match client.flows().add(&AddFlow { document, pin }).await {
        Ok(added) => added,
        Err(error) => {
            say(
                &findings_of(error.info().details.as_ref().and_then(|facts| facts.get("findings"))),
                context.output,
            );
            return Err(error.into());
        }
    };
    say(&added.findings, context.output);
    let name = plain::line(&added.name);
    let sentence =
        format!("{name} is at version {}; run it with: wharf flow run {name}", added.version);
    context.output.done(&added, &sentence)
}

async fn check(file: &str, context: &Context) -> Result<Exit> {
    let document = file::read(file)?;
    let found: FlowCheck = context.client()?.flows().check(&CheckFlow { document }).await?;
    let exit = if found.ok { Exit::Done } else { Exit::Failed };
    if context.output.is_json() {
        context.output.json(&found)?;
        return Ok(exit);
    }
    say(&found.findings, context.output);
    match (found.ok, found.findings.len()) {
        (true, 0) => context.output.line("nothing is wrong")?,
        (true, _) => context.output.line("it would be taken")?,
        (false, _) => context.output.line("it would not be taken")?,
    }
    Ok(exit)
}

/// Says when a flow may live longer than the token it is started with: its later steps would be
/// refused. Whoever may not look at flows is told nothing.
async fn warn_of_token(tool: &str, context: &Context) -> Result<()> {
    if context.output.is_json() {
        return Ok(());
    }
    let Some((name, version)) = ToolId::new(tool).ok().and_then(|tool| tool.flow()) else {
        return Ok(());
    };
    let client = context.client()?;
    let (Ok(session), Ok(flow)) =
        (client.session().await, client.flows().get(name.as_str(), version).await)
    else {
        return Ok(());
    };
    let limit = flow.document.as_ref().and_then(|document| {
        quantity::duration_ms(document.get("limits")?.get("deadline")?.as_str()?)
    });
    let end = DateTime(Timestamp(now_ms()).plus_ms(limit.unwrap_or(0)));
    if let Some(expires) = session.expires_at.filter(|expires| expires.0 < end.0) {
        let words = format!(
            "this flow may go on until {}, and its steps are refused once this token ends at {}",
            moment::shown(end),
            moment::shown(expires)
        );
        context.output.note(&words);
    }
    Ok(())
}

/// The moment it is on this machine.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// What an error says of findings.
fn findings_of(details: Option<&Value>) -> Vec<FlowFinding> {
    let findings = details.cloned().map(serde_json::from_value);
    findings.and_then(std::result::Result::ok).unwrap_or_default()
}

/// Says what was found in a document, one line each.
fn say(findings: &[FlowFinding], output: Output) {
    if output.is_json() {
        return;
    }
    for found in findings {
        let place = if found.place.is_empty() { "document" } else { &found.place };
        let line = format!("{} {place}: {}", found.level, found.text);
        output.note(&plain::line(&line));
    }
}

async fn remove(name: &str, version: u32, yes: bool, context: &Context) -> Result<Exit> {
    let (output, shown) = (context.output, plain::line(name));
    let client = context.client()?;
    let question = format!("Remove version {version} of the flow {shown} permanently?");
    let said = |removed: bool| json!({"name": name, "version": version, "removed": removed});
    if !yes && !output.confirm_removal("removing a flow", &question)? {
        return output.done(&said(false), "nothing removed");
    }
    client.flows().remove(name, version).await?;
    output.done(&said(true), &format!("removed version {version} of the flow {shown}"))
}

/// What somebody typed as a value: JSON, or a text.
fn said(value: Option<&str>) -> Value {
    let Some(text) = value else { return Value::Null };
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

async fn send(
    run: &str,
    world: Option<&str>,
    (name, signal): (&str, &SendSignal),
    context: &Context,
) -> Result<Exit> {
    let client = context.client()?;
    let found = runs::find(&client, run, world).await?;
    let world = found.world.as_deref();
    client.runs().signal((&found.run_id, world), name, signal).await?;
    let sentence = format!("sent {} to the run {}", plain::line(name), plain::line(&found.run_id));
    context.output.done(&json!({"run_id": found.run_id, "signal": name}), &sentence)
}

async fn graph(flow: &str, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let graph = if file::is_file(flow) {
        let document = file::read(flow)?;
        let found = client.flows().check(&CheckFlow { document }).await?;
        let Some(graph) = found.graph else {
            say(&found.findings, context.output);
            return Err(CliError::failed(Code::FlowInvalid, "the document cannot be read"));
        };
        graph
    } else {
        client.flows().get(flow, None).await?.graph.unwrap_or_default()
    };
    if context.output.is_json() {
        context.output.json(&json!({ "graph": graph }))?;
    } else {
        context.output.text(&plain::text(&graph))?;
    }
    Ok(Exit::Done)
}
