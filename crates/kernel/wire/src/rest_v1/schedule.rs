//! Schedules: runs that the core starts by the clock.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{
    CatchUp, DateTime, Durability, FiringState, GrantId, Mode, Object, Overlap, RunId, ScheduleId,
    ScheduleState, ToolId, WorldId,
};

use super::ErrorInfo;

/// `POST /v1/schedules`. Exactly one of `cron`, `every_ms` and `at` says when.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSchedule {
    /// The schedule's name.
    pub name: ScheduleId,
    /// Minute, hour, day of the month, month and day of the week, such as `0 3 * * 1-5`.
    pub cron: Option<String>,
    /// Again and again after so many milliseconds, 1,000 at least.
    pub every_ms: Option<u64>,
    /// Once: a time such as `2026-12-24T18:00`, in `tz` unless it has an offset.
    pub at: Option<String>,
    /// The time zone of `cron` and `at`, such as `Europe/Berlin`; `UTC` when absent.
    pub tz: Option<String>,
    /// The tool to run.
    pub tool: ToolId,
    /// The tool's inputs, an object. In texts `${…}` stands for an expression over `planned_at`, a
    /// time such as `2026-12-24T03:00:00.000Z`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Option<Object>)]
    pub inputs: Value,
    /// Where outputs go, an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Option<Object>)]
    pub outputs: Value,
    /// The world of its runs; `default` when absent.
    pub world: Option<WorldId>,
    /// Whether its runs act or pretend; `real` when absent.
    pub mode: Option<Mode>,
    /// How long one attempt may run.
    pub timeout_ms: Option<u64>,
    /// The most one run may cost.
    pub budget_micro: Option<u64>,
    /// Whether its runs are recorded durably; as the tool says when absent.
    pub durability: Option<Durability>,
    /// What happens to times missed while nothing could be started; `last` when absent.
    pub catch_up: Option<CatchUp>,
    /// What happens if the previous run is still going; `skip` when absent.
    pub overlap: Option<Overlap>,
    /// Further tools that its runs may call, as patterns such as `llm/*`.
    pub allow: Option<Vec<String>>,
}

/// A schedule.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Its name.
    pub name: ScheduleId,
    /// Where it stands.
    pub state: ScheduleState,
    /// Why it is paused: `asked`, or `rights_ended` when the rights it was made with have ended.
    pub pause_cause: Option<String>,
    /// The pattern of its times, if it has one.
    pub cron: Option<String>,
    /// The milliseconds between its times, if they are evenly spaced.
    pub every_ms: Option<u64>,
    /// Its only time, if there is just one.
    pub at: Option<DateTime>,
    /// The time zone of its times.
    pub tz: String,
    /// The next three times, as the clocks of its zone show them.
    pub next: Vec<String>,
    /// The tool it runs.
    pub tool: ToolId,
    /// The tool's inputs.
    pub inputs: Object,
    /// Where outputs go.
    pub outputs: Object,
    /// The world of its runs.
    pub world: WorldId,
    /// Whether its runs act or pretend.
    pub mode: Mode,
    /// How long one attempt may run.
    pub timeout_ms: Option<u64>,
    /// The most one run may cost.
    pub budget_micro: Option<u64>,
    /// Whether its runs are recorded durably.
    pub durability: Option<Durability>,
    /// What happens to times missed while nothing could be started.
    pub catch_up: CatchUp,
    /// What happens if the previous run is still going.
    pub overlap: Overlap,
    /// Further tools that its runs may call.
    pub allow: Vec<String>,
    /// How many times have come.
    pub fired: u64,
    /// What became of the last one.
    pub last: Option<Firing>,
    /// When it was created.
    pub created_at: DateTime,
    /// The token it was created with.
    pub created_by: GrantId,
    /// When the rights of its runs end; absent if they do not.
    pub expires_at: Option<DateTime>,
}

/// One time of a schedule, and what became of it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Firing {
    /// Its number, from 1.
    pub n: u64,
    /// The planned time, or when somebody asked for a run.
    pub planned_at: DateTime,
    /// When the core took it up.
    pub fired_at: DateTime,
    /// Whether somebody asked for it.
    pub by_hand: bool,
    /// How many earlier times were left out because nothing could be started.
    pub missed: u64,
    /// What became of it.
    pub state: FiringState,
    /// The run that was started.
    pub run_id: Option<RunId>,
    /// Why its run was refused.
    pub error: Option<ErrorInfo>,
}
