//! Many runs at once: how many there are, what they started, and canceling them together.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{
    DateTime, Direction, GrantId, Mode, PurgeState, RunId, RunStatus, ToolId, WorldId,
};

use super::{Artifact, ErrorInfo, Run, TraceStep};

/// An attempt of a run.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunAttempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// When it began.
    pub started_at: DateTime,
    /// When it ended.
    pub ended_at: Option<DateTime>,
    /// Why it ended, if it did not succeed.
    pub error: Option<ErrorInfo>,
}

/// A file that the core handed to a run's provider, or took from it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunTransfer {
    /// The name of the run's input or output.
    pub key: String,
    /// `in` what the provider was given, `out` what it wrote.
    pub direction: Direction,
    /// The file's path within the world, where it is known.
    pub path: Option<String>,
    /// How many bytes were handed over.
    pub bytes: u64,
    /// When that began.
    pub at: DateTime,
    /// How long it took.
    pub took_ms: u64,
}

/// `GET /v1/runs/count`: how many runs there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunCount {
    /// The number of runs, 10,000 at most.
    pub count: u64,
    /// Whether there are exactly as many; otherwise there are more.
    pub exact: bool,
}

/// `GET /v1/stats/runs`: how many runs were accepted when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunStats {
    /// The beginning of the first interval.
    pub since: DateTime,
    /// The end of the time that was asked for.
    pub until: DateTime,
    /// The length of an interval.
    pub step_ms: u64,
    /// One row for each interval and key that has runs, oldest first.
    pub items: Vec<RunStatsItem>,
}

/// The runs of one interval and one status, tool or world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunStatsItem {
    /// The beginning of the interval.
    pub at: DateTime,
    /// The status, tool or world; `…` stands for all that have no row of their own.
    pub key: String,
    /// The number of runs accepted in the interval.
    pub runs: u64,
    /// How many of them failed.
    pub failed: u64,
    /// What they have cost.
    pub cost_micro: u64,
}

/// `POST /v1/runs/cancel`: cancels every run in progress that fits.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRuns {
    /// Only runs of this world.
    pub world: Option<WorldId>,
    /// Only runs of this tool.
    pub tool: Option<ToolId>,
    /// Only runs in one of these statuses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<RunStatus>,
    /// Only runs that this token started.
    pub caller: Option<GrantId>,
    /// Only runs that this run started, `world/run_id`.
    pub parent: Option<String>,
    /// Only runs that are part of this.
    pub correlation_id: Option<String>,
    /// Only runs whose id begins so.
    pub id_prefix: Option<String>,
    /// Only runs accepted at or after this time.
    pub since: Option<DateTime>,
    /// Only runs accepted before this time, so that none is canceled that came later.
    pub until: DateTime,
    /// Whether to count only and cancel nothing.
    pub dry: Option<bool>,
    /// Why.
    pub reason: Option<String>,
}

/// What became of a request to cancel many runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CanceledRuns {
    /// Whether this is only a count and nothing was canceled.
    pub dry: bool,
    /// Only runs accepted before this time were looked at.
    pub until: DateTime,
    /// How many runs in progress fit.
    pub matched: u64,
    /// How many of them were asked to stop.
    pub canceled: u64,
    /// How many of them this token may not cancel, or could not be canceled now.
    pub refused: u64,
    /// Whether there may be more than one request takes.
    pub more: bool,
}

/// `POST /v1/runs/purge`: removes every run that has ended and fits.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PurgeRuns {
    /// Only runs of this world.
    pub world: Option<WorldId>,
    /// Only runs of this tool.
    pub tool: Option<ToolId>,
    /// Only runs in one of these statuses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<RunStatus>,
    /// Only runs that this token started.
    pub caller: Option<GrantId>,
    /// Only runs that are part of this.
    pub correlation_id: Option<String>,
    /// Only runs accepted at or after this time.
    pub since: Option<DateTime>,
    /// Only runs accepted before this time.
    pub until: DateTime,
    /// Whether to count only and remove nothing.
    pub dry: Option<bool>,
}

/// `POST /v1/purges`: orders every run to be removed that has ended and fits.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderPurge {
    /// Only runs of this world.
    pub world: Option<WorldId>,
    /// Only runs of this tool.
    pub tool: Option<ToolId>,
    /// Only runs in one of these statuses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<RunStatus>,
    /// Only runs that this token started.
    pub caller: Option<GrantId>,
    /// Only runs that are part of this.
    pub correlation_id: Option<String>,
    /// Only runs accepted at or after this time.
    pub since: Option<DateTime>,
    /// Only runs accepted before this time.
    pub until: DateTime,
}

impl From<OrderPurge> for PurgeRuns {
    fn from(order: OrderPurge) -> Self {
        let OrderPurge { world, tool, status, caller, correlation_id, since, until } = order;
        Self { world, tool, status, caller, correlation_id, since, until, dry: None }
    }
}

/// What became of a request to remove many runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PurgedRuns {
    /// Whether this is only a count and nothing was removed.
    pub dry: bool,
    /// Only runs accepted before this time were looked at.
    pub until: DateTime,
    /// How many runs that have ended fit.
    pub matched: u64,
    /// How many of them were removed.
    pub purged: u64,
    /// How many of them stay because a run in progress needs them.
    pub kept: u64,
    /// Whether there may be more than one request takes; repeat it then.
    pub more: bool,
}

/// An order to remove runs, and how far it has come.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Purge {
    /// The order's id.
    pub purge_id: String,
    /// Whether runs are still being removed.
    pub state: PurgeState,
    /// The worlds whose runs go.
    pub worlds: Vec<WorldId>,
    /// Only runs of this tool.
    pub tool: Option<ToolId>,
    /// Only runs in one of these statuses.
    pub status: Vec<RunStatus>,
    /// Only runs that this token started.
    pub caller: Option<GrantId>,
    /// Only runs that are part of this.
    pub correlation_id: Option<String>,
    /// Only runs accepted at or after this time.
    pub since: Option<DateTime>,
    /// Only runs accepted before this time.
    pub until: DateTime,
    /// When it was given.
    pub ordered_at: DateTime,
    /// The token that gave it.
    pub ordered_by: GrantId,
    /// When it ended.
    pub ended_at: Option<DateTime>,
    /// How many runs were removed. After the core was killed, up to 1,000 of them are not counted.
    pub purged: u64,
    /// How many runs stay because a run in progress needs them.
    pub kept: u64,
    /// How many runs are still to be removed; absent once it has ended.
    pub left: Option<u64>,
}

/// `POST /v1/runs/{id}/again`; the body may be empty. What is absent is as it was.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunAgain {
    /// Inputs that replace those of the same name; null leaves one out.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub inputs: Value,
    /// The world of the new run.
    pub world: Option<WorldId>,
    /// Whether to act or to pretend.
    pub mode: Option<Mode>,
    /// An id for the new run, chosen by the caller.
    pub run_id: Option<RunId>,
    /// Repeating a request with the same key returns the same run.
    pub idempotency_key: Option<String>,
    /// How long one attempt may run.
    pub timeout_ms: Option<u64>,
    /// The most the run and its children may cost.
    pub budget_micro: Option<u64>,
}

/// `GET /v1/runs/{id}/tree`: a run and what it started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunTree {
    /// The run.
    pub run: Run,
    /// What it started, directly and further down: each run before its own, siblings newest first.
    pub items: Vec<RunNode>,
    /// The cursor of the next of its direct children; null on the last page.
    pub next_cursor: Option<String>,
}

/// A run below another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunNode {
    /// The run; its `parent` says where it belongs.
    pub run: Run,
    /// How far it lies below the run asked for, from 1.
    pub depth: u32,
    /// Whether it started more runs than are shown.
    pub more: bool,
}

/// `GET /v1/runs/{id}/lineage`: the files of a run, and the runs they connect it with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunLineage {
    /// The world.
    pub world: WorldId,
    /// The run.
    pub run_id: RunId,
    /// The files it read.
    pub read: Vec<Artifact>,
    /// The files it wrote.
    pub wrote: Vec<Artifact>,
    /// For each run that wrote what it read: those files.
    pub made_from: Vec<TraceStep>,
    /// For each run that read what it wrote: those files.
    pub went_into: Vec<TraceStep>,
    /// Whether there is more than is shown.
    pub cut: bool,
}

#[cfg(test)]
mod tests {
    use super::super::tests::survives;
    use super::*;

    #[test]
    fn c044_every_message_survives_its_text_form() {
        let examples = include_str!("../../testdata/rest_v1/overview.ndjson");
        let mut names = std::collections::BTreeSet::new();
        for line in examples.lines() {
            let (name, data) = line.split_once(' ').expect("name and data");
            names.insert(name);
            match name {
                "RunCount" => survives::<RunCount>(data),
                "RunStats" => survives::<RunStats>(data),
                "CancelRuns" => survives::<CancelRuns>(data),
                "CanceledRuns" => survives::<CanceledRuns>(data),
                "PurgeRuns" => survives::<PurgeRuns>(data),
                "PurgedRuns" => survives::<PurgedRuns>(data),
                "Purge" => survives::<Purge>(data),
                "RunAgain" => survives::<RunAgain>(data),
                "RunTree" => survives::<RunTree>(data),
                "RunLineage" => survives::<RunLineage>(data),
                "AskDetail" => survives::<crate::rest_v1::AskDetail>(data),
                "Provider" => survives::<crate::rest_v1::Provider>(data),
                "ProviderLaunch" => survives::<crate::rest_v1::ProviderLaunch>(data),
                "ProviderUsage" => survives::<crate::rest_v1::ProviderUsage>(data),
                "Account" => survives::<crate::rest_v1::Account>(data),
                "ArtifactPage" => survives::<crate::rest_v1::ArtifactPage>(data),
                "Search" => survives::<crate::rest_v1::Search>(data),
                "AuditVerdict" => survives::<crate::rest_v1::AuditVerdict>(data),
                other => panic!("{other} is no message"),
            }
        }
        assert_eq!(names.len(), 18, "each message has an example");
    }

    #[test]
    fn c044_a_misspelt_request_is_noticed() {
        let until = r#""until":"2026-11-18T02:00:00.000Z""#;
        assert!(serde_json::from_str::<CancelRuns>(&format!("{{{until}}}")).is_ok());
        for bad in [&format!(r#"{{{until},"tols":"a/b"}}"#), r#"{"tool":"a/b"}"#] {
            assert!(serde_json::from_str::<CancelRuns>(bad).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<RunAgain>(r#"{"input":{}}"#).is_err());
    }
}
