//! `wharf schedule`: runs that the core starts by the clock.

mod add;

use clap::Subcommand;
use serde_json::json;
use wharf_vocab::FiringState;
use wharf_wire::rest_v1::{Firing, Schedule};

use crate::commands::{Context, Exit, Output, Result, Table};
use crate::{amount, moment, plain};

/// What `wharf schedule` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf schedule add nightly --cron '0 3 * * 1-5' --tz Europe/Berlin acme/report day=today
  wharf schedule add beat --every 15m wharf/echo text=hello
  wharf schedule list
  wharf schedule history nightly
  wharf schedule trigger nightly
  wharf schedule pause nightly")]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    command: Option<ScheduleCommand>,
}

#[derive(Debug, Subcommand)]
enum ScheduleCommand {
    /// List schedules and their next times
    #[command(after_help = "Examples:\n  wharf schedule\n  wharf schedule list --world lab --json")]
    List {
        /// Only schedules of this world
        #[arg(long)]
        world: Option<String>,
    },
    /// Add a schedule
    Add(Box<add::ScheduleAddArgs>),
    /// Show a schedule
    #[command(after_help = "Examples:\n  wharf schedule show nightly")]
    Show(ScheduleNameArgs),
    /// Pause a schedule until it is resumed
    #[command(after_help = "\
Examples:
  wharf schedule pause nightly

Runs that have started continue.")]
    Pause(ScheduleNameArgs),
    /// Resume a paused schedule
    #[command(after_help = "\
Examples:
  wharf schedule resume nightly

Times that passed while it was paused are not caught up on.")]
    Resume(ScheduleNameArgs),
    /// Start a run of a schedule now
    #[command(after_help = "\
Examples:
  wharf schedule trigger nightly

The run starts even if the previous one is still going or the schedule is paused.")]
    Trigger(ScheduleNameArgs),
    /// Remove a schedule; its runs stay
    #[command(after_help = "Examples:\n  wharf schedule remove nightly")]
    Remove(ScheduleNameArgs),
    /// Show the outcome of a schedule's times, newest first
    #[command(
        after_help = "Examples:\n  wharf schedule history nightly\n  wharf schedule history nightly --json"
    )]
    History(ScheduleNameArgs),
}

#[derive(Debug, clap::Args)]
struct ScheduleNameArgs {
    /// The schedule's name
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

/// Does what the subcommand says; lists schedules when there is none.
pub(crate) async fn run(args: ScheduleArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let command = args.command.unwrap_or(ScheduleCommand::List { world: None });
    let client = context.client()?;
    let schedules = client.schedules();
    match command {
        ScheduleCommand::List { world } => {
            let empty = "no schedules; make one with: wharf schedule add NAME --every 15m TOOL";
            let list = schedules.list(world.as_deref());
            super::list(list, empty, output, table_of).await
        }
        ScheduleCommand::Add(args) => add::run(*args, context).await,
        ScheduleCommand::Show(ScheduleNameArgs { name }) => {
            let raw = schedules.get(&name).raw().await?;
            output.answer(raw, |schedule: Schedule| text_of(&schedule, output))
        }
        ScheduleCommand::Pause(ScheduleNameArgs { name }) => {
            let paused = schedules.pause(&name).await?;
            said(output, &paused, "is paused")
        }
        ScheduleCommand::Resume(ScheduleNameArgs { name }) => {
            let resumed = schedules.resume(&name).await?;
            let next = resumed.next.first().map_or_else(
                || "goes on, and has no time left".to_owned(),
                |next| format!("goes on at {next}"),
            );
            said(output, &resumed, &next)
        }
        ScheduleCommand::Trigger(ScheduleNameArgs { name }) => {
            let triggered = schedules.trigger(&name).await?;
            said(output, &triggered, "starts a run; see: wharf schedule history")
        }
        ScheduleCommand::Remove(ScheduleNameArgs { name }) => {
            schedules.remove(&name).await?;
            let sentence = format!("removed {}; its runs stay", plain::line(&name));
            output.done(&json!({"name": name, "state": "removed"}), &sentence)
        }
        ScheduleCommand::History(ScheduleNameArgs { name }) => {
            let empty = "none of its times has come yet";
            super::list(schedules.history(&name), empty, output, history_of).await
        }
    }
}

fn said(output: Output, schedule: &Schedule, what: &str) -> Result<Exit> {
    let sentence = plain::line(&format!("{} {what}", schedule.name));
    output.done(schedule, &sentence)
}

/// When a schedule is due, in a few words.
fn when(schedule: &Schedule) -> String {
    let zone = if schedule.tz == "UTC" { String::new() } else { format!(" {}", schedule.tz) };
    match (&schedule.cron, schedule.every_ms, schedule.at) {
        (Some(cron), ..) => format!("{cron}{zone}"),
        (None, Some(ms), _) => format!("every {}", amount::length(ms)),
        (None, None, Some(at)) => format!("at {at}{zone}"),
        (None, None, None) => String::new(),
    }
}

fn state_of(schedule: &Schedule) -> String {
    match schedule.pause_cause.as_deref() {
        Some("rights_ended") => "paused: its rights have ended".to_owned(),
        _ => schedule.state.to_string(),
    }
}

fn table_of(schedules: &[Schedule], output: Output) -> Table {
    let headings = ["SCHEDULE", "STATE", "WHEN", "NEXT", "TOOL", "WORLD", "LAST"];
    let mut table = Table::new(output, &headings).keep_whole(&[0, 1]).leave_out(5, "default");
    for schedule in schedules {
        let mut next = schedule.next.iter();
        let last = schedule.last.as_ref().map(|it| it.state.to_string());
        let cells = [
            schedule.name.as_str(),
            &state_of(schedule),
            &when(schedule),
            next.next().map_or("", String::as_str),
            schedule.tool.as_str(),
            schedule.world.as_str(),
            &last.unwrap_or_default(),
        ];
        table.row_with_state(cells, 1);
        for later in next {
            table.row(["", "", "", later, "", "", ""]);
        }
    }
    table
}

fn text_of(schedule: &Schedule, output: Output) -> String {
    let object = |object: &wharf_vocab::Object| {
        (!object.is_empty())
            .then(|| plain::line(&serde_json::Value::Object(object.clone()).to_string()))
    };
    let mut table = Table::bare(output);
    table.facts([
        ("schedule", Some(schedule.name.to_string())),
        ("state", Some(state_of(schedule))),
        ("when", Some(when(schedule))),
    ]);
    for (number, next) in schedule.next.iter().enumerate() {
        table.row([if number == 0 { "next" } else { "" }, next]);
    }
    let allow = (!schedule.allow.is_empty()).then(|| schedule.allow.join(", "));
    table.facts([
        ("tool", Some(schedule.tool.to_string())),
        ("world", Some(schedule.world.to_string())),
        ("inputs", object(&schedule.inputs)),
        ("outputs", object(&schedule.outputs)),
        ("its runs may also call", allow),
        ("a run costs at most", schedule.budget_micro.map(amount::dollars)),
        ("times that were missed", Some(schedule.catch_up.to_string())),
        ("while a run goes on", Some(schedule.overlap.to_string())),
        ("created", Some(moment::shown(schedule.created_at))),
        ("by", Some(schedule.created_by.to_string())),
        ("its rights end", schedule.expires_at.map(moment::relative_to_now)),
        ("times that came", Some(schedule.fired.to_string())),
        ("the last one", schedule.last.as_ref().map(became)),
    ]);
    table.text()
}

/// What became of a time, in a line.
fn became(firing: &Firing) -> String {
    let words = match (&firing.run_id, &firing.error) {
        (Some(run), _) => format!("{} {run}", firing.state),
        (None, Some(error)) => format!("{} ({}: {})", firing.state, error.code, error.message),
        (None, None) => firing.state.to_string(),
    };
    plain::line(&words)
}

fn history_of(firings: &[Firing], output: Output) -> Table {
    let headings = ["N", "PLANNED", "STATE", "RUN", "MISSED", "WHY"];
    let mut table =
        Table::new(output, &headings).keep_whole(&[0, 1, 2, 3]).leave_out(4, "0").leave_out(5, "");
    for firing in firings {
        let why = match (&firing.error, firing.state, firing.by_hand) {
            (Some(error), ..) => format!("{}: {}", error.code, error.message),
            (None, FiringState::Skipped, _) => "the run before still went on".to_owned(),
            (None, FiringState::Missed, _) => "it was too late".to_owned(),
            (None, _, true) => "by hand".to_owned(),
            (None, ..) => String::new(),
        };
        table.row_with_state(
            [
                &firing.n.to_string(),
                &moment::clock(firing.planned_at),
                firing.state.as_str(),
                firing.run_id.as_ref().map_or("", |run| run.as_str()),
                &firing.missed.to_string(),
                &why,
            ],
            2,
        );
    }
    table
}
