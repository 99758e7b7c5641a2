//! How many runs there were since the start, how long they took and what they cost.
//!
//! Only sums: whoever wants to know what happened in a while looks twice.

use parking_lot::Mutex;
use wharf_domain::Run;
use wharf_ports::{Batch, Body};
use wharf_vocab::RunStatus;

/// Steps of time that are told apart: four for each doubling, up to about two weeks.
const STEPS: usize = 124;

/// What happened since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Runs that were accepted.
    pub created: u64,
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that were refused.
    pub refused: u64,
    /// Runs that were canceled.
    pub canceled: u64,
    /// What runs that ended have cost.
    pub cost_micro: u64,
    /// Runs that ended, by how long they took.
    pub took: Durations,
}

/// How often something took how long, exact to a fifth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durations([u64; STEPS]);

impl Default for Durations {
    fn default() -> Self {
        Self([0; STEPS])
    }
}

impl Durations {
    fn add(&mut self, ms: u64) {
        self.0[step_of(ms)] += 1;
    }

    /// What came after an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut left = self.clone();
        for (now, before) in left.0.iter_mut().zip(earlier.0) {
            *now = now.saturating_sub(before);
        }
        left
    }

    /// The time that so many of 100 took at most; none if there were none.
    #[must_use]
    pub fn percentile(&self, of_100: u64) -> Option<u64> {
        let all: u64 = self.0.iter().sum();
        let wanted = (all * of_100).div_ceil(100).max(1);
        let mut seen = 0;
        let step = self.0.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        step.map(end_of)
    }
}

/// The totals of a core.
#[derive(Debug, Default)]
pub(crate) struct Totals(Mutex<RunTotals>);

impl Totals {
    pub(crate) fn look(&self) -> RunTotals {
        self.0.lock().clone()
    }

    /// Counts what a committed batch of a run says.
    pub(crate) fn count(&self, batch: &Batch, run: &Run) {
        let stream = run.key.stream();
        let begins = |append: &wharf_ports::Append| {
            append.expected.0 == 0
                && append.stream == stream
                && matches!(append.body, Body::Entries(_))
        };
        let created = batch.appends.iter().any(begins);
        let over = run.is_over();
        if !created && !over {
            return;
        }
        let mut totals = self.0.lock();
        totals.created += u64::from(created);
        let place = match run.status() {
            RunStatus::Succeeded => &mut totals.succeeded,
            RunStatus::Failed => &mut totals.failed,
            RunStatus::Refused => &mut totals.refused,
            RunStatus::Canceled => &mut totals.canceled,
            RunStatus::Queued | RunStatus::Waiting | RunStatus::Running => return,
        };
        *place += 1;
        totals.cost_micro = totals.cost_micro.saturating_add(run.cost_micro);
        if let Some(ended) = run.ended_at {
            totals.took.add(ended.ms_since(run.created_at));
        }
    }
}

/// The step of a time: below four each has its own, then four for each doubling.
fn step_of(ms: u64) -> usize {
    if ms < 4 {
        return usize::try_from(ms).unwrap_or(0);
    }
    let doubling = ms.ilog2();
    let quarter = (ms >> (doubling - 2)) & 3;
    let step = 4 + (doubling - 2) * 4 + u32::try_from(quarter).unwrap_or(0);
    usize::try_from(step).unwrap_or(STEPS).min(STEPS - 1)
}

/// The largest time of a step.
fn end_of(step: usize) -> u64 {
    let Some(above) = step.checked_sub(4) else { return step as u64 };
    let (doubling, quarter) = (above / 4, (above % 4) as u64);
    ((4 + quarter + 1) << doubling) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c019_a_time_lies_in_its_step_and_steps_are_close_to_each_other() {
        let mut before = 0;
        for ms in (0..10_000).chain([1 << 20, 1 << 29, (1 << 30) - 1]) {
            let step = step_of(ms);
            assert!(step >= before && end_of(step) >= ms, "{ms}");
            assert!(end_of(step) - ms <= ms / 4, "{ms} lies too far from {}", end_of(step));
            before = step;
        }
        assert_eq!(step_of(u64::MAX), STEPS - 1);
    }

    #[test]
    fn c019_percentiles_are_of_what_came_since() {
        let mut took = Durations::default();
        assert_eq!(took.percentile(50), None);
        took.add(1_000_000);
        let before = took.clone();
        for ms in 1..=100 {
            took.add(ms);
        }
        let lately = took.since(&before);
        assert_eq!(lately.percentile(50), Some(55));
        assert_eq!(lately.percentile(99), Some(111));
        assert_eq!(lately.percentile(1), Some(1));
    }
}
