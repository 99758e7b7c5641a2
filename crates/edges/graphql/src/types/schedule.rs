//! What starts runs by itself: schedules and triggers.

use async_graphql::InputObject;
use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_domain::ScheduleSpec;
use wharf_vocab::{Fault, ScheduleId};

use super::run::ErrorInfo;
use super::view::view;
use super::{Durability, Mode};
use crate::error::in_camel_case;
use crate::input::message;
use crate::scalars::{DateTime, Int64};

view! {
    /// A schedule: what the core starts by the clock, and when.
    Schedule of Schedule {
        /// Its name.
        name: String,
        /// Where it stands: `active`, `paused` or `over`.
        state: String,
        /// Why it is paused: `asked`, or `rights_ended` when the rights it was made with have ended.
        pause_cause: Option<String>,
        /// The pattern of its times, if it has one.
        cron: Option<String>,
        /// The milliseconds between its times, if they are evenly spaced.
        every_ms: Option<Int64>,
        /// Its only time, if there is just one.
        at: Option<DateTime>,
        /// The time zone of its times.
        tz: String,
        /// The next three times, as the clocks of its zone show them.
        next: Vec<String>,
        /// The tool it runs.
        tool: String,
        /// The tool's inputs.
        inputs: Value,
        /// Where outputs go.
        outputs: Value,
        /// The world of its runs.
        world: String,
        /// Whether its runs act or pretend.
        mode: Mode,
        /// How long one attempt may run, in milliseconds.
        timeout_ms: Option<Int64>,
        /// The most one run may cost, in micro-dollars.
        budget_micro: Option<Int64>,
        /// Whether its runs are recorded durably.
        durability: Option<Durability>,
        /// What happens to times missed while nothing could be started: `none` or `last`.
        catch_up: String,
        /// What happens if the previous run is still going: `skip`, `parallel` or `cancel_previous`.
        overlap: String,
        /// Further tools that its runs may call.
        allow: Vec<String>,
        /// How many times have come.
        fired: Int64,
        /// What became of the last one.
        last: Option<Firing>,
        /// When it was created.
        created_at: DateTime,
        /// The token it was created with.
        created_by: String,
        /// When the rights of its runs end; null if they do not.
        expires_at: Option<DateTime>,
    }
}

view! {
    /// One time of a schedule, and what became of it.
    Firing of Firing {
        /// Its number, from 1.
        n: Int64,
        /// The planned time, or when somebody asked for a run.
        planned_at: DateTime,
        /// When the core took it up.
        fired_at: DateTime,
        /// Whether somebody asked for it.
        by_hand: bool,
        /// How many earlier times were left out because nothing could be started.
        missed: Int64,
        /// What became of it: `due`, `started`, `skipped`, `missed` or `refused`.
        state: String,
        /// The run that was started.
        run_id: Option<String>,
        /// Why its run was refused.
        error: Option<ErrorInfo>,
    }
}

/// A request for a schedule. Exactly one of `cron`, `everyMs` and `at` says when.
#[skip_serializing_none]
#[derive(Debug, InputObject, Serialize)]
pub(crate) struct CreateScheduleInput {
    /// The schedule's name.
    name: String,
    /// Minute, hour, day of the month, month and day of the week, such as `0 3 * * 1-5`.
    cron: Option<String>,
    /// Again and again after so many milliseconds, 1,000 at least.
    every_ms: Option<Int64>,
    /// Once: a time such as `2026-12-24T18:00`, in `tz` unless it has an offset.
    at: Option<String>,
    /// The time zone of `cron` and `at`, such as `Europe/Berlin`; `UTC` when absent.
    tz: Option<String>,
    /// The tool to run.
    tool: String,
    /// The tool's inputs, an object.
    inputs: Option<Value>,
    /// Where outputs go, an object.
    outputs: Option<Value>,
    /// The world of its runs; `default` when absent.
    world: Option<String>,
    /// Whether its runs act or pretend; `real` when absent.
    mode: Option<Mode>,
    /// How long one attempt may run, in milliseconds.
    timeout_ms: Option<Int64>,
    /// The most one run may cost, in micro-dollars.
    budget_micro: Option<Int64>,
    /// Whether its runs are recorded durably; as the tool says when absent.
    durability: Option<Durability>,
    /// What happens to times missed while nothing could be started: `none` or `last`, which is
    /// meant when absent.
    catch_up: Option<String>,
    /// What happens if the previous run is still going: `parallel`, `cancel_previous` or `skip`,
    /// which is meant when absent.
    overlap: Option<String>,
    /// Further tools that its runs may call, as patterns such as `llm/*`.
    allow: Option<Vec<String>>,
}

impl CreateScheduleInput {
    /// What the engine is asked for.
    pub(crate) fn read(&self) -> Result<(ScheduleId, ScheduleSpec), Fault> {
        wharf_views::new_schedule(message(self)?).map_err(in_camel_case)
    }
}
