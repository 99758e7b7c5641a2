//! Many runs: which are wanted, how many there are, what they started, canceling them together.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use serde_json::Value;
use wharf_domain::{Caller, PurgeEnd, Rights, Run, RunSummary};
use wharf_engine::{
    AgainChanges, AttemptSpan, Handle, PurgeView, RunLineage, RunPage, RunPlace, RunQuery,
    StatsQuery, StatsRow,
};
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_vocab::{
    DateTime, Fault, GrantId, Object, PurgeState, RunId, RunKey, RunStatus, Timestamp, WorldId,
};
use wharf_wire::rest_v1 as wire;

use crate::{file, summary};

/// Runs are counted so far.
pub const COUNT_MAX: u64 = 10_000;
/// Most runs that one request cancels.
const CANCEL_MAX: u64 = 10_000;
/// Most runs that one request removes, so that it is answered soon.
const PURGE_MAX: u64 = 1_000;
/// Runs that could be removed are counted so far.
const PURGE_COUNT_MAX: u64 = 1_000_000;
/// Runs that are asked to stop at once.
const CANCELS_AT_ONCE: usize = 16;
/// Children that are shown of a run below the one asked for.
const CHILDREN_MAX: usize = 50;
/// Runs of one answer about a tree.
const TREE_RUNS_MAX: usize = 1_000;
/// Most intervals of one answer.
pub const STATS_PIECES_MAX: u64 = 1_500;
/// Most keys that have rows of their own.
const STATS_KEYS_MAX: usize = 50;
/// The key of all others.
const STATS_OTHERS: &str = "…";
/// Longest beginning of an id, and longest id of what runs are part of.
const TEXT_CHARS_MAX: usize = 255;

/// Which runs a request names, as every API reads it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFilter {
    pub world: Option<WorldId>,
    pub tool: Option<wharf_vocab::ToolId>,
    pub statuses: Vec<RunStatus>,
    pub caller: Option<GrantId>,
    /// `world/run_id`
    pub parent: Option<String>,
    pub correlation_id: Option<String>,
    pub id_prefix: Option<String>,
    pub over_hold: bool,
    /// A code, or the beginning of one and `*`.
    pub error: Option<String>,
    pub error_text: Option<String>,
    /// What its ids, its tool or its error say.
    pub text: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl RunFilter {
    /// What the engine is asked for, without saying where a page begins. A parent that is named in
    /// a way no run is named is refused.
    pub fn query(&self) -> Result<RunQuery, Fault> {
        for (field, text) in [
            ("correlation_id", &self.correlation_id),
            ("id_prefix", &self.id_prefix),
            ("error", &self.error),
            ("error_text", &self.error_text),
            ("text", &self.text),
        ] {
            if text.as_ref().is_some_and(|text| text.chars().count() > TEXT_CHARS_MAX) {
                let message =
                    format!("The field `{field}` may have {TEXT_CHARS_MAX} characters at most.");
                return Err(Fault::invalid(field, message));
            }
        }
        Ok(RunQuery {
            world: self.world.clone(),
            tool: self.tool.clone(),
            statuses: self.statuses.clone(),
            caller: self.caller.clone(),
            parent: self.parent.as_deref().map(parent_key).transpose()?,
            correlation_id: self.correlation_id.clone(),
            id_prefix: self.id_prefix.clone(),
            over_hold: self.over_hold,
            error: self.error.clone(),
            error_text: self.error_text.clone(),
            text: self.text.clone(),
            since: self.since,
            until: self.until,
            ..RunQuery::default()
        })
    }
}

fn parent_key(text: &str) -> Result<RunKey, Fault> {
    let named = text.split_once('/');
    let key = named.and_then(|(world, run)| {
        Some(RunKey { world: WorldId::new(world).ok()?, run: RunId::new(run).ok()? })
    });
    key.ok_or_else(|| Fault::invalid("parent", "The field `parent` must be `world/run_id`."))
}

/// A run as lists show it, with what it does and waits for now if it is under way.
#[must_use]
pub fn listed(handle: &Handle, run: &RunSummary) -> wire::Run {
    let mut shown = summary(run);
    if !run.status.is_terminal()
        && let Some(live) = handle.runs().live(&run.key)
    {
        shown.waiting_for = crate::run::waiting_for(&live);
        with_phase(handle, &run.key, &mut shown);
    }
    shown
}

/// Adds what a run under way does now.
pub(crate) fn with_phase(handle: &Handle, key: &RunKey, shown: &mut wire::Run) {
    if let Some((phase, fraction)) = handle.runs().phase(key) {
        (shown.phase, shown.fraction) = (Some(phase), fraction);
    }
}

/// One run with all there is to see of it, its inputs, its attempts and what it does now.
pub async fn run_in_full(handle: &Handle, run: Arc<Run>) -> Result<wire::Run, Fault> {
    let run = handle.runs().with_inputs(run).await?;
    let mut shown = crate::run(&run);
    let attempts = handle.run_events().attempts(&run).await?;
    shown.attempts = Some(attempts.iter().map(attempt).collect());
    if !run.is_over() {
        with_phase(handle, &run.key, &mut shown);
    }
    Ok(shown)
}

fn attempt(span: &AttemptSpan) -> wire::RunAttempt {
    wire::RunAttempt {
        attempt: span.attempt,
        started_at: DateTime(span.started_at),
        ended_at: span.ended_at.map(DateTime),
        error: span.error.as_ref().map(wire::ErrorInfo::from),
    }
}

/// A page with runs of these worlds and of tools within these rights only. It may be shorter than
/// asked for; it is empty only if there is nothing more.
pub async fn runs_within(
    handle: &Handle,
    mut query: RunQuery,
    (worlds, rights): (Option<&[WorldId]>, &Rights),
) -> Result<(Vec<RunSummary>, Option<RunPlace>), Fault> {
    match worlds {
        Some([]) => return Ok((Vec::new(), None)),
        Some([only]) => query.world = Some(only.clone()),
        _ => {}
    }
    loop {
        let RunPage { mut runs, places, next } = handle.run_lists().list(query.clone()).await?;
        runs.retain(|run| {
            worlds.is_none_or(|worlds| worlds.contains(&run.key.world))
                && rights.check_tool(&run.tool).is_ok()
        });
        let next = next.and(places.last().copied());
        match next {
            Some(place) if runs.is_empty() => go_on(&mut query, place),
            _ => return Ok((runs, next)),
        }
    }
}

/// The query for what comes behind a place.
pub fn go_on(query: &mut RunQuery, place: RunPlace) {
    query.before = Some(place.stored);
    query.memory_before = Some(place.memory);
}

/// How many runs there are that a caller may see.
pub async fn run_count(
    handle: &Handle,
    caller: &Caller,
    query: RunQuery,
) -> Result<wire::RunCount, Fault> {
    let count = handle.run_lists().count(caller, query, COUNT_MAX + 1).await?;
    Ok(wire::RunCount { count: count.min(COUNT_MAX), exact: count <= COUNT_MAX })
}

/// How many runs were accepted when, as far as a caller may see them.
pub async fn run_stats(handle: &Handle, query: StatsQuery) -> Result<wire::RunStats, Fault> {
    if query.since >= query.until {
        return Err(Fault::invalid("until", "The field `until` must lie behind `since`."));
    }
    if query.step_ms == 0 || (query.until.0 - query.since.0) / query.step_ms > STATS_PIECES_MAX {
        let message = format!(
            "The field `step` must be so long that there are {STATS_PIECES_MAX} intervals at most."
        );
        return Err(Fault::invalid("step", message));
    }
    let (since, until, step_ms) = (query.piece_of(query.since), query.until, query.step_ms);
    let query = StatsQuery { since, ..query };
    let items = without_rare_keys(handle.run_lists().stats(query).await?);
    Ok(wire::RunStats { since: DateTime(since), until: DateTime(until), step_ms, items })
}

/// The rows, with those of all but the most frequent keys put together.
fn without_rare_keys(rows: Vec<StatsRow>) -> Vec<wire::RunStatsItem> {
    let mut counts = std::collections::BTreeMap::<&str, u64>::new();
    for row in &rows {
        *counts.entry(&row.key).or_default() += row.sum.runs;
    }
    let mut keys: Vec<(&str, u64)> = counts.into_iter().collect();
    keys.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
    keys.truncate(STATS_KEYS_MAX);
    let kept: std::collections::BTreeSet<String> =
        keys.into_iter().map(|(key, _)| key.to_owned()).collect();
    let mut items: Vec<wire::RunStatsItem> = Vec::new();
    for row in rows {
        let key = if kept.contains(&row.key) { row.key } else { STATS_OTHERS.to_owned() };
        let at = DateTime(row.at);
        let found = items.iter_mut().rev().take_while(|item| item.at == at);
        match found.into_iter().find(|item| item.key == key) {
            Some(item) => {
                item.runs += row.sum.runs;
                item.failed += row.sum.failed;
                item.cost_micro = item.cost_micro.saturating_add(row.sum.cost_micro);
            }
            None => items.push(wire::RunStatsItem {
                at,
                key,
                runs: row.sum.runs,
                failed: row.sum.failed,
                cost_micro: row.sum.cost_micro,
            }),
        }
    }
    items
}

/// Which runs are to be canceled together: those that are open and were accepted before a moment.
pub fn cancel_filter(request: &wire::CancelRuns) -> Result<RunQuery, Fault> {
    let open = [RunStatus::Queued, RunStatus::Waiting, RunStatus::Running];
    let mut statuses = request.status.clone();
    if statuses.is_empty() {
        statuses.extend(open);
    }
    if let Some(over) = statuses.iter().find(|status| status.is_terminal()) {
        let message = format!("A run that is {over} cannot be canceled.");
        return Err(Fault::invalid("status", message));
    }
    RunFilter {
        world: request.world.clone(),
        tool: request.tool.clone(),
        statuses,
        caller: request.caller.clone(),
        parent: request.parent.clone(),
        correlation_id: request.correlation_id.clone(),
        id_prefix: request.id_prefix.clone(),
        over_hold: false,
        error: None,
        error_text: None,
        text: None,
        since: request.since.map(|at| at.0),
        until: Some(request.until.0),
    }
    .query()
}

/// Cancels all runs that a query wants within a caller's reach, or only counts them.
pub async fn cancel_runs(
    handle: &Handle,
    caller: &Caller,
    (mut query, worlds): (RunQuery, Option<Vec<WorldId>>),
    request: &wire::CancelRuns,
) -> Result<wire::CanceledRuns, Fault> {
    let dry = request.dry.unwrap_or(false);
    let reason = request.reason.clone().unwrap_or_default();
    let mut done = wire::CanceledRuns {
        dry,
        until: request.until,
        matched: 0,
        canceled: 0,
        refused: 0,
        more: false,
    };
    query.limit = PAGE_ITEMS_MAX;
    loop {
        let within = (worlds.as_deref(), &*caller.rights);
        let (runs, next) = runs_within(handle, query.clone(), within).await?;
        done.matched += runs.len() as u64;
        if !dry {
            let asked = runs.iter().map(|run| handle.runs().cancel(caller, &run.key, &reason));
            let asked = stream::iter(asked.collect::<Vec<_>>()).buffer_unordered(CANCELS_AT_ONCE);
            let answers: Vec<bool> = asked.map(|answer| answer.is_ok()).collect().await;
            let canceled = answers.iter().filter(|it| **it).count() as u64;
            done.canceled += canceled;
            done.refused += answers.len() as u64 - canceled;
        }
        match next {
            Some(_) if done.matched >= CANCEL_MAX => {
                done.more = true;
                return Ok(done);
            }
            Some(place) => go_on(&mut query, place),
            None => return Ok(done),
        }
    }
}

/// Which runs are to be removed together: those that are over and were accepted before a moment.
pub fn purge_filter(request: &wire::PurgeRuns) -> Result<RunQuery, Fault> {
    let mut statuses = request.status.clone();
    if statuses.is_empty() {
        statuses.extend(wharf_engine::OVER);
    }
    if let Some(open) = statuses.iter().find(|status| !status.is_terminal()) {
        let message = format!("A run that is {open} cannot be removed; cancel it first.");
        return Err(Fault::invalid("status", message));
    }
    RunFilter {
        world: request.world.clone(),
        tool: request.tool.clone(),
        statuses,
        caller: request.caller.clone(),
        correlation_id: request.correlation_id.clone(),
        since: request.since.map(|at| at.0),
        until: Some(request.until.0),
        ..RunFilter::default()
    }
    .query()
}

/// Removes runs that a query wants within a caller's reach, up to as many as one request takes, or
/// only counts them.
pub async fn purge_runs(
    handle: &Handle,
    caller: &Caller,
    (mut query, worlds): (RunQuery, Option<Vec<WorldId>>),
    request: &wire::PurgeRuns,
) -> Result<wire::PurgedRuns, Fault> {
    let dry = request.dry.unwrap_or(false);
    let (until, more) = (request.until, false);
    let mut done = wire::PurgedRuns { dry, until, matched: 0, purged: 0, kept: 0, more };
    if dry {
        let count = handle.run_lists().count(caller, query, PURGE_COUNT_MAX + 1).await?;
        let (matched, more) = (count.min(PURGE_COUNT_MAX), count > PURGE_COUNT_MAX);
        return Ok(wire::PurgedRuns { matched, more, ..done });
    }
    query.limit = PAGE_ITEMS_MAX;
    loop {
        let within = (worlds.as_deref(), &*caller.rights);
        let (runs, next) = runs_within(handle, query.clone(), within).await?;
        let gone = handle.purges().purge_many(caller, &runs, "request").await?;
        done.matched += runs.len() as u64;
        done.purged += gone.purged;
        done.kept += gone.kept;
        match next {
            // What stays is passed over again by the next request, and does not count.
            Some(_) if done.purged >= PURGE_MAX => {
                done.more = true;
                return Ok(done);
            }
            Some(place) => go_on(&mut query, place),
            None => return Ok(done),
        }
    }
}

/// Orders all runs to be removed that a request names within a caller's reach.
pub async fn order_purge(
    handle: &Handle,
    caller: &Caller,
    (query, worlds): (RunQuery, Option<Vec<WorldId>>),
    request: &wire::PurgeRuns,
) -> Result<wire::Purge, Fault> {
    if request.dry == Some(true) {
        let message = "An order removes runs; to count them, use the immediate removal.";
        return Err(Fault::invalid("dry", message));
    }
    let view = handle.purges().order_purge(caller, &query, worlds).await?;
    purge(handle, caller, &view).await
}

/// An order to remove runs as it is shown, with how many runs are left.
pub async fn purge(
    handle: &Handle,
    caller: &Caller,
    view: &PurgeView,
) -> Result<wire::Purge, Fault> {
    let order = &view.order;
    let (state, ended_at) = match view.end {
        None => (PurgeState::Running, None),
        Some((PurgeEnd::Done, at)) => (PurgeState::Done, Some(at)),
        Some((PurgeEnd::Canceled, at)) => (PurgeState::Canceled, Some(at)),
    };
    let left = match state {
        PurgeState::Running => {
            let query = RunQuery {
                world: Some(view.worlds.as_slice())
                    .and_then(|worlds| if let [only] = worlds { Some(only.clone()) } else { None }),
                tool: order.tool.clone(),
                statuses: order.statuses.clone(),
                caller: order.caller.clone(),
                correlation_id: order.correlation_id.clone(),
                since: order.since,
                until: Some(order.until),
                ..RunQuery::default()
            };
            Some(handle.run_lists().count(caller, query, PURGE_COUNT_MAX).await?)
        }
        PurgeState::Done | PurgeState::Canceled => None,
    };
    Ok(wire::Purge {
        purge_id: order.id.clone(),
        state,
        worlds: view.worlds.clone(),
        tool: order.tool.clone(),
        status: order.statuses.clone(),
        caller: order.caller.clone(),
        correlation_id: order.correlation_id.clone(),
        since: order.since.map(DateTime),
        until: DateTime(order.until),
        ordered_at: DateTime(view.ordered_at),
        ordered_by: order.by.grant.clone(),
        ended_at: ended_at.map(DateTime),
        purged: view.purged,
        kept: view.kept,
        left,
    })
}

/// All orders to remove runs that a caller may see, the newest first.
pub async fn purges(handle: &Handle, caller: &Caller) -> Result<Vec<wire::Purge>, Fault> {
    let mut shown = Vec::new();
    for view in handle.purges().purge_orders(caller) {
        shown.push(purge(handle, caller, &view).await?);
    }
    Ok(shown)
}

/// What is to be different when something is run again.
pub fn again(request: wire::RunAgain) -> Result<AgainChanges, Fault> {
    let inputs = match request.inputs {
        Value::Object(inputs) => inputs,
        Value::Null => Object::new(),
        _ => return Err(Fault::invalid("inputs", "The field `inputs` must be a JSON object.")),
    };
    Ok(AgainChanges {
        inputs,
        world: request.world,
        mode: request.mode,
        run_id: request.run_id,
        idempotency_key: request.idempotency_key,
        timeout_ms: request.timeout_ms,
        budget_micro: request.budget_micro,
    })
}

/// How far below a run is looked, and which of its children are wanted.
#[derive(Debug, Clone)]
pub struct TreeQuery {
    pub depth: u32,
    pub limit: usize,
    pub after: Option<RunPlace>,
}

/// What a run started that a caller may see: direct children by pages, below them some of each,
/// and where the next page begins.
pub async fn run_tree(
    handle: &Handle,
    caller: &Caller,
    key: &RunKey,
    wanted: TreeQuery,
) -> Result<(Vec<wire::RunNode>, Option<RunPlace>), Fault> {
    let mut query =
        RunQuery { parent: Some(key.clone()), limit: wanted.limit, ..RunQuery::default() };
    if let Some(place) = wanted.after {
        go_on(&mut query, place);
    }
    let own: Option<Vec<WorldId>> =
        caller.rights.worlds.as_ref().map(|worlds| worlds.iter().cloned().collect());
    let within = (own.as_deref(), &*caller.rights);
    let (children, next) = runs_within(handle, query, within).await?;
    let mut nodes = Vec::new();
    // Runs that are still to be shown, the next one last.
    let mut waiting: Vec<(RunSummary, u32)> =
        children.into_iter().rev().map(|run| (run, 1)).collect();
    while let Some((run, depth)) = waiting.pop() {
        let shown = nodes.len() + waiting.len();
        let room = CHILDREN_MAX.min(TREE_RUNS_MAX.saturating_sub(shown));
        let below = if depth < wanted.depth { room } else { 0 };
        let query =
            RunQuery { parent: Some(run.key.clone()), limit: below.max(1), ..RunQuery::default() };
        let (mut children, next) = runs_within(handle, query, within).await?;
        let more = next.is_some() || children.len() > below;
        children.truncate(below);
        nodes.push(wire::RunNode { run: listed(handle, &run), depth, more });
        waiting.extend(children.into_iter().rev().map(|run| (run, depth + 1)));
    }
    Ok((nodes, next))
}

/// The files of a run, and the runs they connect it with.
#[must_use]
pub fn lineage(key: &RunKey, lineage: &RunLineage) -> wire::RunLineage {
    let files = |records: &[wharf_engine::FileRecord]| records.iter().map(file).collect();
    let steps = |steps: &[(RunId, Vec<wharf_engine::FileRecord>)]| {
        let step = |(run, records): &(RunId, Vec<wharf_engine::FileRecord>)| wire::TraceStep {
            run_id: run.clone(),
            files: files(records),
        };
        steps.iter().map(step).collect()
    };
    wire::RunLineage {
        world: key.world.clone(),
        run_id: key.run.clone(),
        read: files(&lineage.read),
        wrote: files(&lineage.wrote),
        made_from: steps(&lineage.made_from),
        went_into: steps(&lineage.went_into),
        cut: lineage.cut,
    }
}

#[cfg(test)]
mod tests {
    use wharf_engine::CostSum;

    use super::*;

    #[test]
    fn c011_a_parent_is_named_by_its_world_and_its_id() {
        let parent =
            |text: &str| RunFilter { parent: Some(text.to_owned()), ..RunFilter::default() };
        let query = parent("lab/r-1").query().expect("fits");
        assert_eq!(query.parent.map(|key| key.to_string()).as_deref(), Some("lab/r-1"));
        for bad in ["r-1", "lab/", "/r", "lab/a/b", ""] {
            let fault = parent(bad).query().expect_err(bad);
            assert_eq!(fault.details["field"], "parent");
        }
        let long = RunFilter { id_prefix: Some("a".repeat(256)), ..RunFilter::default() };
        assert!(long.query().is_err());
    }

    #[test]
    fn c010_rare_keys_share_a_row() {
        let row = |at: u64, key: &str, runs: u64| StatsRow {
            at: Timestamp(at),
            key: key.to_owned(),
            sum: CostSum { runs, ..CostSum::default() },
        };
        let mut rows: Vec<StatsRow> =
            (0..60).map(|n| row(0, &format!("t/{n:02}"), 60 - n)).collect();
        rows.push(row(1, "t/59", 1));
        let items = without_rare_keys(rows);
        let others: Vec<_> = items.iter().filter(|item| item.key == STATS_OTHERS).collect();
        assert_eq!(items.len(), STATS_KEYS_MAX + 2);
        assert_eq!(others.iter().map(|item| item.runs).collect::<Vec<_>>(), [55, 1]);
    }
}
