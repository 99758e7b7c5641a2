//! What the engine tells runs to. It is called on the engine's own path, so it does little and
//! waits for nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use metrics::counter;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use wharf_domain::Run;
use wharf_domain::trace::{RunTrace, Sampling};
use wharf_engine::RunObserver;
use wharf_vocab::{AttemptId, LaunchId};

use crate::export::Exporter;
use crate::options::TelemetryOptions;
use crate::record::EndedRun;

/// Runs that may wait to be exported.
const RUNS_MAX: usize = 8_192;
/// Attempts that are remembered; the oldest go first.
const ATTEMPTS_MAX: usize = 16_384;

/// Takes up runs that are over, for an exporter.
#[derive(Debug)]
pub struct Recorder {
    sampling: Sampling,
    launches: Mutex<Launches>,
    runs: mpsc::Sender<EndedRun>,
}

impl Recorder {
    /// A recorder, and what exports what it takes up.
    pub fn new(options: TelemetryOptions) -> (Arc<Self>, Exporter) {
        let (runs, waiting) = mpsc::channel(RUNS_MAX);
        let launches = Mutex::default();
        let recorder = Self { sampling: options.sampling, launches, runs };
        (Arc::new(recorder), Exporter::new(options, waiting))
    }
}

impl RunObserver for Recorder {
    fn ended(&self, run: &Run) {
        let trace = RunTrace::of(&run.key, run.created_at, &run.spec, self.sampling);
        let mut launches = self.launches.lock();
        if !trace.sampled {
            run.booked.iter().for_each(|booked| drop(launches.take(&booked.attempt_id)));
            return;
        }
        let ended = EndedRun::of(run, trace, |attempt| launches.take(attempt));
        drop(launches);
        let Some(ended) = ended else { return };
        let spans = ended.spans();
        if self.runs.try_send(ended).is_err() {
            dropped("queue", spans);
        }
    }

    fn launched(&self, attempt: &AttemptId, launch: &LaunchId) {
        self.launches.lock().note(attempt.clone(), launch.clone());
    }
}

/// Which process each attempt was given to: a bounded memory that a restart of the core empties.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    known: HashMap<AttemptId, LaunchId>,
    order: VecDeque<AttemptId>,
}

impl Launches {
    pub(crate) fn note(&mut self, attempt: AttemptId, launch: LaunchId) {
        while self.order.len() >= ATTEMPTS_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.known.remove(&oldest);
        }
        if self.known.insert(attempt.clone(), launch).is_none() {
            self.order.push_back(attempt);
        }
    }

    /// Forgets an attempt, and says what was known of it.
    pub(crate) fn take(&mut self, attempt: &AttemptId) -> Option<LaunchId> {
        self.known.remove(attempt)
    }
}

/// Counts spans that nobody will see.
pub(crate) fn dropped(reason: &'static str, spans: u64) {
    if spans > 0 {
        counter!("wharf_telemetry_spans_dropped_total", "reason" => reason).increment(spans);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_attempts_are_remembered_and_the_newest_are() {
        let mut launches = Launches::default();
        let attempt = |number: usize| AttemptId::new(format!("a{number}")).expect("an id");
        let launch = LaunchId::new("l1").expect("an id");
        for number in 0..ATTEMPTS_MAX + 10 {
            launches.note(attempt(number), launch.clone());
        }
        assert_eq!(launches.take(&attempt(9)), None);
        assert_eq!(launches.take(&attempt(10)), Some(launch.clone()));
        assert_eq!(launches.take(&attempt(10)), None, "it is taken once");
        assert!(launches.known.len() <= ATTEMPTS_MAX && launches.order.len() <= ATTEMPTS_MAX);
    }
}
