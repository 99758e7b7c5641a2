//! What is counted of runs, by tool and world.
//!
//! Labels are names that owners and callers choose, so each kind is bounded: the first so many get
//! their own, and all that come later count together as `other`. A name that has its own keeps it
//! as long as the process lives.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use wharf_domain::{Entry, Outcome, Run, RunEntry};
use wharf_ports::{Batch, Body};
use wharf_vocab::limits::{METRIC_PROVIDERS_MAX, METRIC_TOOLS_MAX, METRIC_WORLDS_MAX};
use wharf_vocab::{ProviderId, ToolId, WorldId};

const OTHER: &str = "other";

static TOOLS: Labels = Labels::up_to(METRIC_TOOLS_MAX);
static WORLDS: Labels = Labels::up_to(METRIC_WORLDS_MAX);
static PROVIDERS: Labels = Labels::up_to(METRIC_PROVIDERS_MAX);

/// The names of one kind that have a label of their own.
struct Labels {
    named: Mutex<BTreeSet<String>>,
    max: usize,
}

impl Labels {
    const fn up_to(max: usize) -> Self {
        Self { named: Mutex::new(BTreeSet::new()), max }
    }

    fn of(&self, name: &str) -> String {
        let mut named = self.named.lock();
        if named.contains(name) {
            return name.to_owned();
        }
        if named.len() >= self.max {
            return OTHER.to_owned();
        }
        named.insert(name.to_owned());
        name.to_owned()
    }
}

/// The label of a tool.
pub fn tool_label(tool: &ToolId) -> String {
    TOOLS.of(tool.as_str())
}

/// The label of a world.
pub fn world_label(world: &WorldId) -> String {
    WORLDS.of(world.as_str())
}

/// The label of a provider.
pub fn provider_label(provider: &ProviderId) -> String {
    PROVIDERS.of(provider.as_str())
}

/// Counts what a committed batch says of a run.
pub(crate) fn count(batch: &Batch, run: &Run) {
    let created =
        batch.appends.iter().any(|append| append.expected.0 == 0 && append.head.run.is_some());
    let ended = has_ended(batch, run);
    if !created && !ended {
        return;
    }
    let (tool, world) = (tool_label(&run.spec.tool), world_label(&run.key.world));
    if created {
        metrics::counter!("wharf_runs_created_total", "tool" => tool.clone(), "world" => world.clone())
            .increment(1);
    }
    if !ended {
        return;
    }
    let status = run.status().as_str();
    let (key, error) = (&run.key, run.outcome.as_ref().and_then(Outcome::error));
    let code = error.map(|fault| fault.code.as_str());
    tracing::debug!(run = %key.run, world = %key.world, tool = %run.spec.tool, status, code, "a run ended");
    metrics::counter!("wharf_run_cost_micro_total", "tool" => tool.clone(), "world" => world.clone())
        .increment(run.cost_micro);
    let seconds = |ms: u64| std::time::Duration::from_millis(ms).as_secs_f64();
    if let Some(ended) = run.ended_at {
        metrics::histogram!("wharf_run_seconds", "tool" => tool.clone())
            .record(seconds(ended.ms_since(run.created_at)));
    }
    if let Some(started) = run.started_at {
        metrics::histogram!("wharf_run_wait_seconds", "tool" => tool.clone())
            .record(seconds(started.ms_since(run.created_at)));
    }
    let ended = metrics::counter!(
        "wharf_runs_ended_total", "tool" => tool, "world" => world, "status" => status
    );
    ended.increment(1);
}

/// Whether a committed batch has ended a run.
pub(crate) fn has_ended(batch: &Batch, run: &Run) -> bool {
    run.is_over() && batch.appends.iter().any(|append| ends(&append.body))
}

fn ends(body: &Body) -> bool {
    let is_end = |entry: &Entry| matches!(entry, Entry::Run(RunEntry::Ended(_)));
    matches!(body, Body::Entries(entries) if entries.iter().any(is_end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_names_have_a_label_of_their_own_and_keep_it() {
        let labels = Labels::up_to(2);
        assert_eq!(labels.of("a"), "a");
        assert_eq!(labels.of("b"), "b");
        assert_eq!(labels.of("c"), "other");
        assert_eq!((labels.of("a"), labels.of("b")), ("a".to_owned(), "b".to_owned()));
    }
}
