//! `wharf trigger`: runs that start when a hook is called, a file is written or another run ends.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Subcommand;
use serde_json::{Value, json};
use wharf_vocab::{Code, HookProof};
use wharf_wire::rest_v1::{CreateTrigger, TestTrigger, TestedTrigger, Trigger, TriggerFiring};

use crate::commands::run::{id, optional, schema_of};
use crate::commands::{CliError, Context, Exit, Output, Result, Table, tools, word};
use crate::{amount, inputs, moment, output, plain};

/// What `wharf trigger` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf trigger add pushes --webhook acme/build --proof github --secret-file s --body event
  wharf trigger add reads --on-file lab '/inbox/**' acme/read 'file.world=${file.path}'
  wharf trigger test pushes --body '{\"ref\": \"main\"}'
  wharf trigger history pushes
  wharf trigger list
  wharf trigger remove pushes")]
pub(crate) struct TriggerArgs {
    #[command(subcommand)]
    command: Option<TriggerCommand>,
}

#[derive(Debug, Subcommand)]
enum TriggerCommand {
    /// List triggers
    #[command(after_help = "Examples:\n  wharf trigger\n  wharf trigger list --world lab --json")]
    List {
        /// Only triggers of this world
        #[arg(long)]
        world: Option<String>,
    },
    /// Add a trigger and print the address to call
    Add(Box<TriggerAddArgs>),
    /// Show a trigger
    #[command(after_help = "Examples:\n  wharf trigger show pushes")]
    Show(TriggerNameArgs),
    /// Call a trigger's hook without a proof, or show what the inputs of its run would be
    Test(TriggerTestArgs),
    /// Show what came of what was to start a trigger's runs, newest first
    #[command(
        after_help = "Examples:\n  wharf trigger history pushes\n  wharf trigger history pushes --json"
    )]
    History(TriggerNameArgs),
    /// Pause a trigger: it starts nothing until it is resumed
    #[command(after_help = "Examples:\n  wharf trigger pause pushes")]
    Pause(TriggerNameArgs),
    /// Resume a paused trigger
    #[command(after_help = "Examples:\n  wharf trigger resume pushes")]
    Resume(TriggerNameArgs),
    /// Remove a trigger and its secret; its runs stay
    #[command(after_help = "Examples:\n  wharf trigger remove pushes")]
    Remove(TriggerNameArgs),
}

#[derive(Debug, clap::Args)]
struct TriggerNameArgs {
    /// The trigger's name
    #[arg(value_name = "TRIGGER")]
    name: String,
}

/// What `wharf trigger test` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf trigger test pushes --body '{\"ref\": \"main\"}' --header x-github-event=push --dry-run
  wharf trigger test mine --query text=hello")]
struct TriggerTestArgs {
    /// The trigger's name
    name: String,
    /// The body of the call as JSON: as text, from a file, or from standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    body: Option<String>,
    /// A header of the call; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    header: Vec<String>,
    /// A parameter of the address; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    query: Vec<String>,
    /// Start nothing; only show the inputs
    #[arg(long)]
    dry_run: bool,
}

/// What `wharf trigger add` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf trigger add pushes --webhook acme/build --proof github --secret-file s --body event
  wharf trigger add paid --webhook acme/receipt --proof stripe --secret-file s --body event
  wharf trigger add mine --webhook wharf/echo --proof token --query text=message
  wharf trigger add tags --webhook acme/build 'tag=${body.ref}' 'kind=${headers[\"x-github-event\"]}'
  wharf trigger add reads --on-file lab '/inbox/**' acme/read 'file.world=${file.path}'
  wharf trigger add alarms --on-run 'run.status == \"failed\"' acme/alarm 'run=${run.id}'

An input may hold expressions within ${…}: over body, headers and query of a call, over the file
(path, bytes, b3, media_type, run), or over the run that ended (id, tool, status, code, cost_micro,
parent, correlation_id, inputs, outputs).

Callers must prove that they are allowed to call: github and stripe sign with the secret that they
gave you, standard signs according to Standard Webhooks, token sends the secret as a bearer token.
Without --secret-file the core makes a secret and prints it once. A repeated delivery starts no second
run.")]
#[command(group = clap::ArgGroup::new("on").required(true))]
struct TriggerAddArgs {
    /// The trigger's name
    name: String,
    /// The tool, unless --webhook names it, and inputs
    #[arg(value_name = "TOOL|KEY=VALUE")]
    pairs: Vec<String>,
    /// The tool that a call of the hook runs
    #[arg(long, value_name = "TOOL", group = "on")]
    webhook: Option<String>,
    /// Start when a file of this world is written whose path fits, once for each version
    #[arg(long, num_args = 2, value_names = ["WORLD", "PATHS"], group = "on")]
    on_file: Option<Vec<String>>,
    /// Start when a run ends of which this expression over run holds
    #[arg(long, value_name = "EXPR", group = "on")]
    on_run: Option<String>,
    /// How callers prove that they are allowed to call [default: standard]
    #[arg(long, value_parser = word::<HookProof>())]
    proof: Option<HookProof>,
    /// The file with the secret that the sender gave you [default: the core makes one]
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// The world of its runs [default: default]
    #[arg(long)]
    world: Option<String>,
    /// Pass the body, parsed as JSON, as this input
    #[arg(long, value_name = "KEY")]
    body: Option<String>,
    /// Pass a header as an input; may be repeated
    #[arg(long, value_name = "KEY=HEADER")]
    header: Vec<String>,
    /// Pass a query parameter as an input; may be repeated
    #[arg(long, value_name = "KEY=NAME")]
    query: Vec<String>,
    /// The most one run may cost, in millionths of a dollar
    #[arg(long, value_name = "N")]
    budget_micro: Option<u64>,
    /// Further tools that its runs may call, such as llm/*; may be repeated
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    allow: Vec<String>,
}

/// Does what the subcommand says; lists triggers when there is none.
pub(crate) async fn run(args: TriggerArgs, context: &Context) -> Result<Exit> {
    let (output, client) = (context.output, context.client()?);
    let triggers = client.triggers();
    match args.command.unwrap_or(TriggerCommand::List { world: None }) {
        TriggerCommand::List { world } => {
            let empty = "no triggers; add one with: wharf trigger add NAME --webhook TOOL";
            super::list(triggers.list(world.as_deref()), empty, output, table_of).await
        }
        TriggerCommand::Add(args) => add(*args, context).await,
        TriggerCommand::Show(TriggerNameArgs { name }) => {
            let raw = triggers.get(&name).raw().await?;
            output.answer(raw, |trigger: Trigger| text_of(&trigger, output))
        }
        TriggerCommand::Test(args) => test(args, context).await,
        TriggerCommand::History(TriggerNameArgs { name }) => {
            let empty = "nothing was to start its runs yet";
            super::list(triggers.history(&name), empty, output, history_of).await
        }
        TriggerCommand::Pause(TriggerNameArgs { name }) => {
            let paused = triggers.pause(&name).await?;
            output.done(&paused, &plain::line(&format!("{name} is paused")))
        }
        TriggerCommand::Resume(TriggerNameArgs { name }) => {
            let resumed = triggers.resume(&name).await?;
            output.done(&resumed, &plain::line(&format!("{name} is resumed")))
        }
        TriggerCommand::Remove(TriggerNameArgs { name }) => {
            triggers.remove(&name).await?;
            let sentence = plain::line(&format!("removed {name}; its runs stay"));
            output.done(&json!({"name": name, "state": "removed"}), &sentence)
        }
    }
}

/// Adds the trigger.
async fn add(args: TriggerAddArgs, context: &Context) -> Result<Exit> {
    let (client, output) = (context.client()?, context.output);
    let (tool, pairs_given) = match (&args.webhook, args.pairs.split_first()) {
        (Some(tool), _) => (tool.as_str(), args.pairs.as_slice()),
        (None, Some((tool, pairs))) => (tool.as_str(), pairs),
        (None, None) => return Err(CliError::usage("say which tool to run, after the name")),
    };
    let tool = tools::tool_id(tool)?;
    let mut given = wharf_vocab::Object::new();
    if !pairs_given.is_empty() {
        let schema = schema_of(&tool, &client).await?;
        given = inputs::templates(pairs_given, schema.as_ref(), Code::ToolInvalidInput)?;
    }
    let (file_world, on_file) = match args.on_file.as_deref() {
        Some([world, paths]) => (Some(world.as_str()), Some(paths.clone())),
        _ => (None, None),
    };
    if file_world.is_some() && args.world.as_deref().is_some_and(|it| Some(it) != file_world) {
        return Err(CliError::usage("its runs are in the world of the files; leave out --world"));
    }
    let secret = args.secret_file.as_ref().map(|path| {
        let read = std::fs::read_to_string(path);
        read.map_err(|error| CliError::unreadable(path.display().to_string(), &error))
    });
    let request = CreateTrigger {
        name: id("name", &args.name)?,
        tool,
        proof: args.proof,
        secret: secret.transpose()?.map(|secret| secret.trim().to_owned()),
        on_file,
        on_run: args.on_run,
        world: optional("world", file_world.or(args.world.as_deref()))?,
        inputs: Value::Object(given),
        body: args.body,
        headers: some(pairs(&args.header)?),
        query: some(pairs(&args.query)?),
        budget_micro: args.budget_micro,
        allow: (!args.allow.is_empty()).then_some(args.allow),
    };
    let raw = client.triggers().create(&request).raw().await?;
    if output.is_json() {
        output.json(&raw)?;
        return Ok(Exit::Done);
    }
    let made: Trigger = output::typed(raw)?;
    output.note(&text_of(&made, output));
    if let Some(secret) = &made.secret {
        output.note("The secret that callers need, shown only now:");
        output.line(&plain::line(secret))?;
    }
    Ok(Exit::Done)
}

/// Calls a trigger's hook.
async fn test(args: TriggerTestArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let request = TestTrigger {
        body: args.body.as_deref().map(inputs::json).transpose()?,
        headers: some(pairs(&args.header)?),
        query: some(pairs(&args.query)?),
        dry_run: args.dry_run.then_some(true),
    };
    let tested: TestedTrigger = context.client()?.triggers().test(&args.name, &request).await?;
    let inputs = Value::Object(tested.inputs.clone()).to_string();
    let sentence = match &tested.run_id {
        Some(run) => format!("started {run} with {inputs}"),
        None => format!("its run would have {inputs}"),
    };
    output.done(&tested, &plain::line(&sentence))
}

fn history_of(fired: &[TriggerFiring], output: Output) -> Table {
    let headings = ["WHEN", "STATE", "RUN", "ABOUT", "WHY"];
    let mut table = Table::new(output, &headings).keep_whole(&[0, 1, 2]).leave_out(4, "");
    for it in fired {
        let why = it.error.as_ref().map(|error| format!("{}: {}", error.code, error.message));
        let cells = [
            &moment::clock(it.at),
            it.state.as_str(),
            &it.run_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            &it.about,
            &why.unwrap_or_default(),
        ];
        table.row_with_state(cells, 1);
    }
    table
}

/// What a trigger starts runs on, in a few words.
fn on(trigger: &Trigger) -> String {
    match (&trigger.proof, &trigger.on_file, &trigger.on_run) {
        (Some(proof), ..) => format!("hook ({proof})"),
        (None, Some(paths), _) => format!("files {paths}"),
        (None, None, Some(when)) => format!("runs if {when}"),
        (None, None, None) => String::new(),
    }
}

fn state_of(trigger: &Trigger) -> String {
    match trigger.pause_cause.as_deref() {
        Some("rights_ended") => "paused: its rights have ended".to_owned(),
        Some("too_fast") => "paused: it started too much within a minute".to_owned(),
        Some("too_much") => "paused: too much waited to be started".to_owned(),
        _ => trigger.state.to_string(),
    }
}

fn pairs(given: &[String]) -> Result<BTreeMap<String, String>> {
    let pair = |text: &String| {
        let (key, name) =
            text.split_once('=').filter(|(key, name)| !key.is_empty() && !name.is_empty())?;
        Some((key.to_owned(), name.to_owned()))
    };
    let wrong = |text: &String| CliError::usage(format!("{text:?} is not of the form KEY=NAME"));
    given.iter().map(|text| pair(text).ok_or_else(|| wrong(text))).collect()
}

fn some(map: BTreeMap<String, String>) -> Option<BTreeMap<String, String>> {
    (!map.is_empty()).then_some(map)
}

fn table_of(triggers: &[Trigger], output: Output) -> Table {
    let headings = ["TRIGGER", "STATE", "ON", "TOOL", "WORLD", "PATH"];
    let mut table = Table::new(output, &headings).keep_whole(&[0, 1, 5]).leave_out(4, "default");
    for trigger in triggers {
        let cells = [
            trigger.name.as_str(),
            &state_of(trigger),
            &on(trigger),
            trigger.tool.as_str(),
            trigger.world.as_str(),
            trigger.path.as_deref().unwrap_or_default(),
        ];
        table.row_with_state(cells, 1);
    }
    table
}

fn inputs_of(trigger: &Trigger) -> Option<String> {
    let text = || plain::line(&Value::Object(trigger.inputs.clone()).to_string());
    (!trigger.inputs.is_empty()).then(text)
}

fn text_of(trigger: &Trigger, output: Output) -> String {
    let map = |map: &BTreeMap<String, String>| {
        let one = |(key, name): (&String, &String)| format!("{key}={name}");
        (!map.is_empty()).then(|| map.iter().map(one).collect::<Vec<_>>().join(", "))
    };
    let allow = (!trigger.allow.is_empty()).then(|| trigger.allow.join(", "));
    let mut table = Table::bare(output);
    table.facts([
        ("trigger", Some(trigger.name.to_string())),
        ("state", Some(state_of(trigger))),
        ("called at", trigger.path.clone()),
        ("proof", trigger.proof.map(|proof| proof.to_string())),
        ("secret kept as", trigger.secret_name.as_ref().map(ToString::to_string)),
        ("files", trigger.on_file.clone()),
        ("runs if", trigger.on_run.clone()),
        ("tool", Some(trigger.tool.to_string())),
        ("world", Some(trigger.world.to_string())),
        ("inputs", inputs_of(trigger)),
        ("body becomes", trigger.body.clone()),
        ("headers become", map(&trigger.headers)),
        ("query becomes", map(&trigger.query)),
        ("its runs may also call", allow),
        ("a run costs at most", trigger.budget_micro.map(amount::dollars)),
        ("created", Some(moment::shown(trigger.created_at))),
        ("was to start", Some(trigger.fired.to_string())),
        ("its rights end", trigger.expires_at.map(moment::relative_to_now)),
    ]);
    table.text()
}
