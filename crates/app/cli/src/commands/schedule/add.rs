//! `wharf schedule add`.

use std::time::Duration;

use serde_json::Value;
use wharf_vocab::{CatchUp, Code, Durability, Mode, Overlap};
use wharf_wire::rest_v1::{CreateSchedule, Schedule};

use super::text_of;
use crate::commands::run::{id, optional, schema_of};
use crate::commands::{CliError, Context, Exit, Result, tools, word};
use crate::{amount, inputs};

/// What `wharf schedule add` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf schedule add nightly --cron '0 3 * * 1-5' --tz Europe/Berlin acme/report day=today
  wharf schedule add beat --every 15m wharf/echo text=hello
  wharf schedule add once --at 2026-12-24T18:00 --tz Europe/Berlin wharf/echo text=cheers
  wharf schedule add sweep --cron '@daily' --overlap cancel_previous --catch-up none acme/sweep
  wharf schedule add digest --every 1h --allow 'llm/*' acme/digest --world lab
  wharf schedule add daily --cron '@daily' acme/report 'day=${planned_at.substring(0, 10)}'

A pattern has five fields: minute, hour, day of the month, month, day of the week. When clocks change,
a pattern with a fixed hour follows local time: it fires once if the hour occurs twice, and at the next
existing time if its own is skipped. A pattern whose hour begins with * follows elapsed time.

An input may hold expressions over planned_at, such as 2026-12-24T03:00:00.000Z, within ${…}.

Its runs get part of the rights of whoever adds it: this tool in this world, and the tools that --allow
names. When those rights end, the schedule is paused.")]
#[command(group = clap::ArgGroup::new("when").required(true))]
pub(super) struct ScheduleAddArgs {
    /// The schedule's name
    name: String,
    /// The tool to run
    tool: String,
    /// Inputs, each typed by the tool's schema; repeat a key to fill a list
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// Minute, hour, day of the month, month and day of the week, such as '0 3 * * 1-5'
    #[arg(long, value_name = "PATTERN", group = "when")]
    cron: Option<String>,
    /// At even intervals, such as 15m
    #[arg(long, value_name = "DURATION", value_parser = amount::duration, group = "when")]
    every: Option<Duration>,
    /// Once, such as 2026-12-24T18:00
    #[arg(long, value_name = "TIME", group = "when")]
    at: Option<String>,
    /// The time zone of --cron and --at, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Inputs as JSON: as text, from a file, or from standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    input: Option<String>,
    /// Where an output goes, such as image.world=/out/a.png
    #[arg(long = "out", value_name = "KEY.world=/PATH")]
    outputs: Vec<String>,
    /// The world of its runs [default: default]
    #[arg(long)]
    world: Option<String>,
    /// Whether its runs really act or only mock it [default: real]
    #[arg(long, value_parser = word::<Mode>())]
    mode: Option<Mode>,
    /// How long one attempt may run, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = amount::duration)]
    timeout: Option<Duration>,
    /// Whether its runs are recorded durably [default: as the tool says]
    #[arg(long, value_parser = word::<Durability>())]
    durability: Option<Durability>,
    /// The most one run may cost, in millionths of a dollar
    #[arg(long, value_name = "N")]
    budget_micro: Option<u64>,
    /// What happens to times missed while nothing could be started [default: last]
    #[arg(long, value_parser = word::<CatchUp>())]
    catch_up: Option<CatchUp>,
    /// What happens if the previous run is still going [default: skip]
    #[arg(long, value_parser = word::<Overlap>())]
    overlap: Option<Overlap>,
    /// Further tools that its runs may call, such as llm/*; may be repeated
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    allow: Vec<String>,
}

/// Adds the schedule.
pub(super) async fn run(args: ScheduleAddArgs, context: &Context) -> Result<Exit> {
    let (client, output) = (context.client()?, context.output);
    let tool = tools::tool_id(&args.tool)?;
    let mut given = match args.input.as_deref().map(inputs::json).transpose()? {
        None => wharf_vocab::Object::new(),
        Some(Value::Object(object)) => object,
        Some(_) => return Err(CliError::usage("--input must be a JSON object")),
    };
    if !args.pairs.is_empty() {
        let schema = schema_of(&tool, &client).await?;
        given.extend(inputs::templates(&args.pairs, schema.as_ref(), Code::ToolInvalidInput)?);
    }
    let request = CreateSchedule {
        name: id("name", &args.name)?,
        cron: args.cron,
        every_ms: args.every.map(amount::ms),
        at: args.at,
        tz: args.tz,
        tool,
        inputs: Value::Object(given),
        outputs: Value::Object(inputs::outputs(&args.outputs)?),
        world: optional("world", args.world.as_deref())?,
        mode: args.mode,
        timeout_ms: args.timeout.map(amount::ms),
        budget_micro: args.budget_micro,
        durability: args.durability,
        catch_up: args.catch_up,
        overlap: args.overlap,
        allow: (!args.allow.is_empty()).then_some(args.allow),
    };
    let raw = client.schedules().create(&request).raw().await?;
    output.answer(raw, |schedule: Schedule| text_of(&schedule, output))
}
