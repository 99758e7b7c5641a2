//! `wharf run`: starts a run and follows it; the outcome is one JSON object on standard output, or
//! its outputs in words on a terminal.

pub(crate) mod follow;
mod outcome;

pub(super) use outcome::print as print_outcome;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;
use wharf_client::Client;
use wharf_vocab::{Code, Durability, IdError, Mode, ToolId};
use wharf_wire::rest_v1::{CreateRun, Run, RunAccepted, RunContext, RunOperator};

use crate::commands::{CliError, Context, Exit, Output, Result, word};
use crate::commands::{logs, runs, tools};
use crate::complete::nearest_tool;
use crate::render::Renderer;
use crate::{amount, inputs, plain};

/// What `wharf run` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf run wharf/count n=20
  wharf run wharf/echo --input '{\"text\":\"hello\"}'
  wharf run wharf/echo --input @inputs.json text=hello    pairs override the file
  wharf run wharf/sleep ms=60000 --timeout 90s --detach
  wharf run acme/resize image.world=/in/a.png --out small.world=/out/a.png --world lab
  wharf run acme/chat state.local=/state.json --out state.local=/state.json --continues RUN

An input key.world=/PATH is a file of the run's world, key.local=/PATH one of the run itself or of
the run it continues; --out names where outputs go in the same way. An input whose own
name is key.world is written key..world.

Text and progress go to standard error. When the run is over, a terminal shows its outputs; a pipe,
or --json, gets the finished run as one JSON object, and with --json nothing else is said.
Ctrl-C cancels the run; a second Ctrl-C leaves at once.
Exit codes: 0 succeeded, 1 failed, 2 usage, 3 refused, 4 canceled.")]
pub(crate) struct RunToolArgs {
    /// The tool, such as wharf/count
    tool: String,
    /// Inputs, each typed by the tool's schema; repeat a key to fill a list
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// Inputs as JSON: as text, from a file, or from standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    input: Option<String>,
    /// Where an output goes, such as image.world=/out/a.png or state.local=/state.json
    #[arg(long = "out", value_name = "KEY.world=/PATH")]
    outputs: Vec<String>,
    /// The world the run belongs to [default: default]
    #[arg(long)]
    world: Option<String>,
    /// Whether the run really acts or only mocks it [default: real]
    #[arg(long, value_parser = word::<Mode>())]
    mode: Option<Mode>,
    /// The run whose local files this one may read: its id, or the beginning of it
    #[arg(long, value_name = "RUN")]
    continues: Option<String>,
    /// How long one attempt may run, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = amount::duration)]
    timeout: Option<Duration>,
    /// Whether the run is recorded durably [default: as the tool says]
    #[arg(long, value_parser = word::<Durability>())]
    durability: Option<Durability>,
    /// The folder of your project, passed to providers that ask for it
    #[arg(long, value_name = "DIR")]
    project_root: Option<PathBuf>,
    /// Print the run's id and leave it running
    #[arg(long)]
    detach: bool,
    /// An id of your own for the run
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// A key that makes repeating the request safe: the same key gives the same run
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// The most the run and its children may cost, in millionths of a dollar; it is stopped when
    /// it reports more
    #[arg(long, value_name = "N")]
    budget_micro: Option<u64>,
    /// The operator seat that must approve the run
    #[arg(long, value_name = "SEAT")]
    gate: Option<String>,
    /// The operator seat that decides when a worker fails
    #[arg(long, value_name = "SEAT")]
    senior: Option<String>,
    /// Print nothing on standard error during the run
    #[arg(long, short)]
    quiet: bool,
}

impl RunToolArgs {
    /// The tool, as it was typed.
    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    /// The same for a flow, whose name may stand without the namespace of all flows.
    pub(crate) fn of_flow(mut self) -> Self {
        if !self.tool.contains('/') {
            self.tool = format!("flow/{}", self.tool);
        }
        self
    }
}

/// Starts the run and, unless told otherwise, follows it to its end.
pub(crate) async fn run(args: RunToolArgs, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let output = context.output;
    let way = Following { detach: args.detach, quiet: args.quiet };
    let tool = args.tool.clone();
    let request = match request(args, &client).await {
        Ok(request) => request,
        Err(failure) => return Err(with_suggestion(failure, &tool, &client).await),
    };
    let submitted = client.runs().submit(&request, |error| lost_answer(error, output)).await;
    let accepted = match submitted {
        Ok(accepted) => accepted,
        Err(error) => return Err(with_suggestion(error.into(), &tool, &client).await),
    };
    let world = request.world.as_deref();
    way.follow(client, &accepted, world, output).await
}

/// Says that an answer got lost and is asked for again.
pub(super) fn lost_answer(error: &wharf_client::Error, output: Output) {
    if !output.is_json() {
        output.note(&format!("{}; asking again for a while", plain::line(error.message())));
    }
}

/// How a run that was started is followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Following {
    /// Not at all: its id is printed.
    pub(super) detach: bool,
    /// Without a word on standard error.
    pub(super) quiet: bool,
}

impl Following {
    /// Follows the run to its end, and prints that.
    pub(super) async fn follow(
        self,
        client: Client,
        accepted: &RunAccepted,
        world: Option<&str>,
        output: Output,
    ) -> Result<Exit> {
        if self.detach {
            output.json(accepted)?;
            return Ok(Exit::Done);
        }
        let mut renderer = (!self.quiet && !output.is_json()).then(|| Renderer::new(output));
        let following = client.clone();
        let end = follow::to_end(following, &accepted.run_id, world, renderer.as_mut()).await;
        if let Some(renderer) = &mut renderer {
            renderer.finish();
        }
        if let Err(failure) = &end
            && failure.is(Code::PermissionDenied)
            && !output.is_json()
        {
            let id = plain::line(&accepted.run_id);
            output.note(&format!("the run {id} continues, but this token may not read it"));
        }
        let Some(end) = end? else { return Ok(Exit::Canceled) };
        if renderer.is_some() {
            tell_why(&end.1, &client, output).await;
        }
        outcome::print(end, renderer.as_ref(), output)
    }
}

/// Says what a run died of inside, to whoever may read its provider's log.
async fn tell_why(run: &Value, client: &Client, output: Output) {
    let Ok(run) = serde_json::from_value::<Run>(run.clone()) else { return };
    if let Some(words) = logs::last_words(client, &run).await {
        output.note(&format!("{}\n{}", plain::line(&words), logs::how_to_see(&run)));
    }
}

/// The same failure; if there is no such tool, with the one that may be meant.
async fn with_suggestion(failure: CliError, typed: &str, client: &Client) -> CliError {
    if !failure.is(Code::ToolNotFound) {
        return failure;
    }
    // Whoever may not look at tools is not told of any.
    let Ok(tools) = client.tools().list().all().await else { return failure };
    let ids: Vec<&str> = tools.iter().map(|tool| tool.tool_id.as_str()).collect();
    match nearest_tool(typed, &ids) {
        Some(id) => failure.with_hint(&format!("Did you mean {}?", plain::line(id))),
        None => failure.with_hint("List the tools with: wharf tools"),
    }
}

async fn request(args: RunToolArgs, client: &Client) -> Result<CreateRun> {
    let tool = tools::tool_id(&args.tool)?;
    let inputs = read_inputs(&args, &tool, client).await?;
    let outputs = inputs::outputs(&args.outputs)?;
    let continues = match &args.continues {
        Some(typed) => Some(continued(client, typed, args.world.as_deref()).await?),
        None => None,
    };
    let context = match &args.project_root {
        Some(root) => {
            let project_root = Some(inputs::canonical_path(root)?);
            Some(RunContext { project_root, ..RunContext::default() })
        }
        None => None,
    };
    // An id of our own lets the request be made again when the answer got lost. A key does that
    // already, and an id beside it would make each repetition another request.
    let run_id = match (args.run_id, &args.idempotency_key) {
        (None, None) => Some(uuid::Uuid::now_v7().to_string()),
        (given, _) => given,
    };
    let operator = (args.gate.is_some() || args.senior.is_some()).then_some(RunOperator {
        gate: optional("operator.gate", args.gate.as_deref())?,
        senior: optional("operator.senior", args.senior.as_deref())?,
        deadline_ms: None,
    });
    Ok(CreateRun {
        tool,
        inputs,
        outputs: if outputs.is_empty() { Value::Null } else { Value::Object(outputs) },
        world: optional("world", args.world.as_deref())?,
        mode: args.mode,
        run_id: optional("run_id", run_id.as_deref())?,
        continues: optional("continues", continues.as_deref())?,
        idempotency_key: args.idempotency_key,
        timeout_ms: args.timeout.map(amount::ms),
        correlation_id: None,
        budget_micro: args.budget_micro,
        durability: args.durability,
        context,
        operator,
    })
}

/// The run that is continued, by its id or the beginning of it. It is one of the same world; what is
/// wrong with one that is not there, the core says.
async fn continued(client: &Client, typed: &str, world: Option<&str>) -> Result<String> {
    match runs::find(client, typed, Some(world.unwrap_or(runs::DEFAULT_WORLD))).await {
        Ok(found) => Ok(found.run_id),
        Err(failure) if failure.is(Code::RunNotFound) => Ok(typed.to_owned()),
        Err(failure) => Err(failure),
    }
}

/// The request for a run of a tool with these inputs and nothing out of the ordinary.
pub(crate) fn request_of(tool: ToolId, inputs: wharf_vocab::Object) -> Result<CreateRun> {
    let run_id = uuid::Uuid::now_v7().to_string();
    Ok(CreateRun {
        tool,
        inputs: Value::Object(inputs),
        outputs: Value::Null,
        world: None,
        mode: None,
        run_id: optional("run_id", Some(&run_id))?,
        continues: None,
        idempotency_key: None,
        timeout_ms: None,
        correlation_id: None,
        budget_micro: None,
        durability: None,
        context: None,
        operator: None,
    })
}

/// An id that was typed, in the words with which a core refuses one.
pub(crate) fn optional<T: FromStr<Err = IdError>>(
    name: &str,
    typed: Option<&str>,
) -> Result<Option<T>> {
    typed.map(|typed| id(name, typed)).transpose()
}

/// An id that was typed, in the words with which a core refuses one.
pub(crate) fn id<T: FromStr<Err = IdError>>(name: &str, typed: &str) -> Result<T> {
    let misfit = |error| CliError::usage(format!("The field `{name}` does not fit; {error}."));
    typed.parse().map_err(misfit)
}

async fn read_inputs(args: &RunToolArgs, tool: &ToolId, client: &Client) -> Result<Value> {
    let base = args.input.as_deref().map(inputs::json).transpose()?;
    if args.pairs.is_empty() {
        return Ok(base.unwrap_or_else(|| Value::Object(wharf_vocab::Object::new())));
    }
    let mut object = match base {
        None => wharf_vocab::Object::new(),
        Some(Value::Object(object)) => object,
        Some(_) => {
            return Err(CliError::usage("key=value pairs need an --input that is a JSON object"));
        }
    };
    let schema = schema_of(tool, client).await?;
    object.extend(inputs::object(&args.pairs, schema.as_ref(), Code::ToolInvalidInput)?);
    Ok(Value::Object(object))
}

/// The tool's input schema; none if the token may run the tool but not look at it.
pub(super) async fn schema_of(tool: &ToolId, client: &Client) -> Result<Option<Value>> {
    match client.tools().get(tool).await {
        Ok(tool) => Ok(Some(tool.input_schema)),
        Err(error) if error.is(Code::PermissionDenied) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
