//! What workers used up: numbers for whoever looks at the run, and what of them is money.
//!
//! Reports are cumulative, and the largest cost counts; when it comes does not matter. What comes
//! before the end of an attempt is one of its events. An attempt that is over has no more of them,
//! so the numbers of one late report are kept in the audit.

use serde_json::Value;
use wharf_domain::{Actor, AuditEvent, AuditRecord, Progress};
use wharf_vocab::{Fault, Micro};

use crate::credential::{PastTask, TaskMatch};
use crate::shared::SeatHub;
use crate::task::Task;

/// The name under which what was used up stands among a run's events.
const STATS: &str = "stats";
/// Numbers of a late report that are kept.
const NUMBERS_MAX: usize = 16;
/// Longest name of such a number.
const NAME_BYTES_MAX: usize = 48;

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
pub(crate) async fn note_late(
    shared: &SeatHub,
    past: &PastTask,
    task_id: &str,
    stats: &Value,
) -> Result<(), Fault> {
    if let Some(cost) = cost_of(stats) {
        late_cost(shared, past, cost).await?;
    }
    let Some(run) = past.run.as_ref().filter(|_| shared.tasks.is_first_report(task_id)) else {
        return Ok(());
    };
    let actor = past.seat.as_ref().map_or(Actor::CORE, Actor::from);
    let record = AuditRecord::new(AuditEvent::OPERATOR_LATE_USAGE, actor, run)
        .fact("task_id", task_id)
        .fact("attempt", past.attempt);
    let record = numbers(stats).fold(record, |record, (name, number)| record.fact(&name, number));
    shared.options.handle.audit().record(&run.stream(), record).await
}

/// The numbers of a report, those of `usage` among them. Texts are not the audit's business.
fn numbers(stats: &Value) -> impl Iterator<Item = (String, Value)> {
    let parts = [Some(stats), stats.get("usage")].into_iter().flatten();
    let fields = parts.filter_map(Value::as_object).flatten();
    let named = |name: &str| {
        name.len() <= NAME_BYTES_MAX
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let numbers = fields.filter(move |(name, value)| value.is_number() && named(name));
    numbers.take(NUMBERS_MAX).map(|(name, value)| (name.clone(), value.clone()))
}

/// What a task has cost so far, whether it is over or not.
pub(crate) async fn cost(shared: &SeatHub, found: &TaskMatch, so_far: Micro) -> Result<(), Fault> {
    match found {
        TaskMatch::Task(task) => task.attempt.report_cost(so_far).await,
        TaskMatch::Past(past) => late_cost(shared, past, so_far).await,
    }
}

async fn late_cost(shared: &SeatHub, past: &PastTask, so_far: Micro) -> Result<(), Fault> {
    let handle = &shared.options.handle;
    let Some(key) = &past.run else { return Ok(()) };
    let run = handle.runs().get(key).await?;
    match run.attempt_id(past.attempt).cloned() {
        Some(attempt) => handle.runs().report_cost(key, &attempt, so_far).await,
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn o030_of_a_late_report_its_numbers_are_kept_and_no_text() {
        let stats = json!({
            "model": "large", "cost_micro": 7, "num_turns": 3, "a b": 1, "adapter_data": { "x": 1 },
            "usage": { "input_tokens": 1200, "note": "secret" },
        });
        let kept: Vec<_> = numbers(&stats).map(|(name, _)| name).collect();
        assert_eq!(kept, ["cost_micro", "num_turns", "input_tokens"]);
        let many: serde_json::Map<String, Value> =
            (0..100).map(|n| (format!("n{n}"), json!(n))).collect();
        assert_eq!(numbers(&Value::Object(many)).count(), NUMBERS_MAX);
    }
}
