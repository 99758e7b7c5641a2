//! What workers used up: numbers for whoever looks at the run, and what of them is money.
//!
//! Reports are cumulative, and the largest cost counts; when it comes does not matter.

use serde_json::Value;
use wharf_domain::Progress;
use wharf_vocab::{Fault, Micro};

use crate::credential::{Found, Past};
use crate::edge::Shared;
use crate::task::Task;

/// The name under which what was used up stands among a run's events.
const STATS: &str = "stats";

/// The cost in what an operator or a worker reports.
pub(crate) fn cost_of(stats: &Value) -> Option<Micro> {
    stats.get("cost_micro")?.as_u64()
}

/// Writes down what the worker of a task used up.
pub(crate) async fn note(task: &Task, stats: Value) -> Result<(), Fault> {
    if let Some(cost) = cost_of(&stats) {
        task.attempt.report_cost(cost).await?;
    }
    let piece = Progress::Partial { key: Some(STATS.to_owned()), value: stats };
    task.attempt.progress(vec![piece]).await
}

/// The same for a task that is over.
pub(crate) async fn note_late(shared: &Shared, past: &Past, stats: Value) -> Result<(), Fault> {
    match cost_of(&stats) {
        Some(cost) => late_cost(shared, past, cost).await,
        None => Ok(()),
    }
}

/// What a task has cost so far, whether it is over or not.
pub(crate) async fn cost(shared: &Shared, found: &Found, so_far: Micro) -> Result<(), Fault> {
    match found {
        Found::Task(task) => task.attempt.report_cost(so_far).await,
        Found::Past(past) => late_cost(shared, past, so_far).await,
    }
}

async fn late_cost(shared: &Shared, past: &Past, so_far: Micro) -> Result<(), Fault> {
    let handle = &shared.options.handle;
    let Some(key) = &past.run else { return Ok(()) };
    let run = handle.run(key).await?;
    match run.attempt_id(past.attempt).cloned() {
        Some(attempt) => handle.report_cost(key, &attempt, so_far).await,
        None => Ok(()),
    }
}
