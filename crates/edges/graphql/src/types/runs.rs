//! Many runs at once.

use serde::Serialize;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::Fault;

use super::view::view;
use super::{Artifact, Mode, RunStatus, RunSummary, TraceStep};
use crate::input::message;
use crate::scalars::{DateTime, Int64};

view! {
    /// How many runs there are.
    RunCount of RunCount {
        /// The number of runs, 10,000 at most.
        count: Int64,
        /// Whether there are exactly as many; otherwise there are more.
        exact: bool,
    }
}

view! {
    /// How many runs were accepted when.
    RunStats of RunStats {
        /// The beginning of the first interval.
        since: DateTime,
        /// The end of the time that was asked for.
        until: DateTime,
        /// The length of an interval in milliseconds.
        step_ms: Int64,
        /// One row for each interval and key that has runs, oldest first.
        items: Vec<RunStatsItem>,
    }
}

view! {
    /// The runs of one interval and one status, tool or world.
    RunStatsItem of RunStatsItem {
        /// The beginning of the interval.
        at: DateTime,
        /// The status, tool or world; `…` stands for all that have no row of their own.
        key: String,
        /// How many runs were accepted in the interval.
        runs: Int64,
        /// How many of them failed.
        failed: Int64,
        /// What they have cost, in micro-dollars.
        cost_micro: Int64,
    }
}

view! {
    /// What became of a request to cancel many runs.
    CanceledRuns of CanceledRuns {
        /// Whether this is only a count and nothing was canceled.
        dry: bool,
        /// Only runs accepted before then were looked at.
        until: DateTime,
        /// How many runs under way fit.
        matched: Int64,
        /// How many of them were asked to stop.
        canceled: Int64,
        /// How many of them the token may not cancel, or could not be canceled now.
        refused: Int64,
        /// Whether there may be more than one request takes.
        more: bool,
    }
}

view! {
    /// What became of a request to remove many runs.
    PurgedRuns of PurgedRuns {
        /// Whether this is only a count and nothing was removed.
        dry: bool,
        /// Only runs accepted before then were looked at.
        until: DateTime,
        /// How many runs that have ended fit.
        matched: Int64,
        /// How many of them were removed.
        purged: Int64,
        /// How many of them stay because a run under way needs them.
        kept: Int64,
        /// Whether there may be more than one request takes; repeat it then.
        more: bool,
    }
}

view! {
    /// A run and what it started.
    RunTree of RunTree {
        /// The run.
        run: RunSummary,
        /// What it started, each run before its own, siblings newest first.
        items: Vec<RunNode>,
        /// `after` for the next of its direct children; null on the last page.
        next_cursor: Option<String>,
    }
}

view! {
    /// A run below another one.
    RunNode of RunNode {
        /// The run; its `parent` says where it belongs.
        run: RunSummary,
        /// How far it lies below the run asked for, from 1.
        depth: u32,
        /// Whether it started more runs than are shown.
        more: bool,
    }
}

view! {
    /// The files of a run, and the runs they connect it with.
    RunLineage of RunLineage {
        /// The world.
        world: String,
        /// The run.
        run_id: String,
        /// The files it read.
        read: Vec<Artifact>,
        /// The files it wrote.
        wrote: Vec<Artifact>,
        /// For each run that wrote what it read: those files.
        made_from: Vec<TraceStep>,
        /// For each run that read what it wrote: those files.
        went_into: Vec<TraceStep>,
        /// Whether there is more than is shown.
        cut: bool,
    }
}

/// Which runs are wanted; all when nothing is named.
#[derive(Debug, Default, async_graphql::InputObject)]
pub(crate) struct RunFilterInput {
    /// Only runs of this world.
    world: Option<String>,
    /// Only runs of this tool.
    tool: Option<String>,
    /// Only runs in one of these.
    status: Option<Vec<RunStatus>>,
    /// Only runs that this token started.
    caller: Option<String>,
    /// Only runs that this run started, as `world/run`.
    parent: Option<String>,
    /// Only runs that are part of this.
    correlation_id: Option<String>,
    /// Only runs whose id begins so; of very many, 1,000 with the greatest ids.
    id_prefix: Option<String>,
    /// Only runs that have cost more than was set aside for them.
    over_hold: Option<bool>,
    /// Only runs that did not succeed with this code; `tool.*` stands for all that begin so.
    error: Option<String>,
    /// Only runs whose error's message contains this text.
    error_text: Option<String>,
    /// Only runs whose world, id, tool, correlation id or error (code and message) contains this
    /// text, whatever the case of its letters. Inputs and outputs are not searched.
    text: Option<String>,
    /// Only runs accepted then or later.
    since: Option<DateTime>,
    /// Only runs accepted before then.
    until: Option<DateTime>,
}

impl RunFilterInput {
    pub(crate) fn read(self) -> Result<wharf_views::RunFilter, Fault> {
        Ok(wharf_views::RunFilter {
            world: self.world.as_deref().map(crate::input::world).transpose()?,
            tool: self.tool.as_deref().map(crate::input::tool).transpose()?,
            statuses: self.status.into_iter().flatten().map(Into::into).collect(),
            caller: self.caller.map(|id| wharf_views::id("caller", &id)).transpose()?,
            parent: self.parent,
            correlation_id: self.correlation_id,
            id_prefix: self.id_prefix,
            over_hold: self.over_hold.unwrap_or(false),
            error: self.error,
            error_text: self.error_text,
            text: self.text,
            since: self.since.map(|at| at.0),
            until: self.until.map(|at| at.0),
        })
    }
}

/// Which runs are to be canceled: those that are under way and were accepted before a moment.
#[skip_serializing_none]
#[derive(Debug, async_graphql::InputObject, Serialize)]
pub(crate) struct CancelRunsInput {
    /// Only runs of this world.
    world: Option<String>,
    /// Only runs of this tool.
    tool: Option<String>,
    /// Only runs in one of these.
    status: Option<Vec<RunStatus>>,
    /// Only runs that this token started.
    caller: Option<String>,
    /// Only runs that this run started, as `world/run`.
    parent: Option<String>,
    /// Only runs that are part of this.
    correlation_id: Option<String>,
    /// Only runs whose id begins so.
    id_prefix: Option<String>,
    /// Only runs accepted then or later.
    since: Option<DateTime>,
    /// Only runs accepted before then, so that none is canceled that came later.
    until: DateTime,
    /// Whether to count only and cancel nothing.
    dry: Option<bool>,
    /// Why.
    reason: Option<String>,
}

impl CancelRunsInput {
    pub(crate) fn read(&self) -> Result<wharf_wire::rest_v1::CancelRuns, Fault> {
        message(self)
    }
}

/// Which runs are to be removed: those that have ended and were accepted before a moment.
#[skip_serializing_none]
#[derive(Debug, async_graphql::InputObject, Serialize)]
pub(crate) struct PurgeRunsInput {
    /// Only runs of this world.
    world: Option<String>,
    /// Only runs of this tool.
    tool: Option<String>,
    /// Only runs in one of these.
    status: Option<Vec<RunStatus>>,
    /// Only runs that this token started.
    caller: Option<String>,
    /// Only runs that are part of this.
    correlation_id: Option<String>,
    /// Only runs accepted then or later.
    since: Option<DateTime>,
    /// Only runs accepted before then.
    until: DateTime,
    /// Whether to count only and remove nothing.
    dry: Option<bool>,
}

impl PurgeRunsInput {
    pub(crate) fn read(&self) -> Result<wharf_wire::rest_v1::PurgeRuns, Fault> {
        message(self)
    }
}

view! {
    /// An order to remove runs, and how far it has come.
    Purge of Purge {
        /// The order's id.
        purge_id: String,
        /// `running`, `done` or `canceled`.
        state: String,
        /// The worlds whose runs go.
        worlds: Vec<String>,
        /// Only runs of this tool.
        tool: Option<String>,
        /// Only runs in one of these.
        status: Vec<RunStatus>,
        /// Only runs that this token started.
        caller: Option<String>,
        /// Only runs that are part of this.
        correlation_id: Option<String>,
        /// Only runs accepted then or later.
        since: Option<DateTime>,
        /// Only runs accepted before then.
        until: DateTime,
        /// When it was given.
        ordered_at: DateTime,
        /// The token that gave it.
        ordered_by: String,
        /// When it ended.
        ended_at: Option<DateTime>,
        /// How many runs were removed. After the core was killed, up to 1,000 are not counted.
        purged: Int64,
        /// How many runs stay because a run under way needs them.
        kept: Int64,
        /// How many runs are still to be removed; null once it has ended.
        left: Option<Int64>,
    }
}

/// What is to be different when something is run again; what is absent is as it was.
#[skip_serializing_none]
#[derive(Debug, Default, async_graphql::InputObject, Serialize)]
pub(crate) struct RunAgainInput {
    /// Inputs that replace those of the same name; null leaves one out.
    inputs: Option<serde_json::Value>,
    /// The world of the new run.
    world: Option<String>,
    /// Whether to act or to pretend.
    mode: Option<Mode>,
    /// The caller's own id for the new run.
    run_id: Option<String>,
    /// The caller's own key for the request.
    idempotency_key: Option<String>,
    /// How long one attempt may run, in milliseconds.
    timeout_ms: Option<Int64>,
    /// The most the run and its children may cost, in micro-dollars.
    budget_micro: Option<Int64>,
}

impl RunAgainInput {
    pub(crate) fn read(&self) -> Result<wharf_engine::AgainChanges, Fault> {
        wharf_views::again(message(self)?)
    }
}
