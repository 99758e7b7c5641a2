//! The queue of runs, the batches that are made of them, and their way to the collector.

use std::time::Duration;

use metrics::{counter, gauge};
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use wharf_engine::Handle;
use wharf_ports::Trouble;
use wharf_vocab::Backoff;

use crate::collector::{Collector, Failure};
use crate::history::History;
use crate::options::TelemetryOptions;
use crate::record::EndedRun;
use crate::recorder::dropped;
use crate::spans;

/// How long spans wait for others to go with them.
const GATHER: Duration = Duration::from_secs(1);
/// Spans that make a batch full.
const BATCH_SPANS: usize = 512;
/// Between two tries to bring a batch.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long a batch is tried. Meanwhile runs queue up, and then get lost.
const TRIED_MAX: Duration = Duration::from_secs(60);

/// Brings runs that are over to a collector; it begins when it is given an engine.
#[derive(Debug)]
pub struct Exporter {
    options: TelemetryOptions,
    runs: mpsc::Receiver<EndedRun>,
}

impl Exporter {
    pub(crate) fn new(options: TelemetryOptions, runs: mpsc::Receiver<EndedRun>) -> Self {
        Self { options, runs }
    }

    /// Begins; what is not known of a run is looked up in this engine.
    #[must_use]
    pub fn start(self, handle: Handle) -> ExportTask {
        let (stop, stopping) = watch::channel(None);
        let shown = self.options.endpoint.shown();
        let task = tokio::spawn(async move {
            let collector = match Collector::new(self.options) {
                Ok(collector) => collector,
                Err(Failure { why, .. }) => {
                    return tracing::error!(why, "traces are not exported");
                }
            };
            tracing::info!(endpoint = shown, "traces are exported");
            let (unreachable, unwanted) = (Trouble::default(), Trouble::default());
            let runs = self.runs;
            let state = ExportState { handle, collector, runs, stopping, unreachable, unwanted };
            state.run().await;
        });
        ExportTask { stop, task }
    }
}

/// An exporter at work.
#[derive(Debug)]
pub struct ExportTask {
    stop: watch::Sender<Option<Instant>>,
    task: JoinHandle<()>,
}

impl ExportTask {
    /// Exports what there is, for so long at most, and ends. The engine tells of no more runs then.
    pub async fn stop(self, patience: Duration) {
        let until = Instant::now() + patience;
        self.stop.send_replace(Some(until));
        let mut task = self.task;
        if timeout_at(until + Duration::from_millis(100), &mut task).await.is_err() {
            task.abort();
        }
    }
}

struct ExportState {
    handle: Handle,
    collector: Collector,
    runs: mpsc::Receiver<EndedRun>,
    /// Until when all that is left must be exported, once the core stops.
    stopping: watch::Receiver<Option<Instant>>,
    unreachable: Trouble,
    unwanted: Trouble,
}

impl ExportState {
    async fn run(mut self) {
        while let Some(batch) = self.batch().await {
            self.bring(batch).await;
            self.show_queue();
        }
    }

    /// The next spans that go together; `None` when there will be no more.
    async fn batch(&mut self) -> Option<Vec<Span>> {
        let first = tokio::select! {
            biased;
            run = self.runs.recv() => run?,
            () = stop_said(&mut self.stopping) => self.runs.try_recv().ok()?,
        };
        let until = Instant::now() + GATHER;
        let mut spans = self.spans(&first).await;
        while spans.len() < BATCH_SPANS {
            let next = tokio::select! {
                biased;
                run = self.runs.recv() => run,
                () = tokio::time::sleep_until(until) => None,
                () = stop_said(&mut self.stopping) => None,
            };
            let Some(run) = next else { break };
            spans.extend(self.spans(&run).await);
        }
        self.show_queue();
        Some(spans)
    }

    /// The spans of a run. What the journal cannot tell now is left out; the run itself is told.
    async fn spans(&self, run: &EndedRun) -> Vec<Span> {
        if let Some(only) = &run.only_attempt {
            return spans::of_run(run, std::slice::from_ref(only), &[]);
        }
        let entries = self.handle.run_events().entries(&run.key).await.unwrap_or_else(|fault| {
            tracing::debug!(run = %run.key, code = %fault.code, "a run's attempts are not exported");
            Vec::new()
        });
        let history = History::of(entries.iter().map(|(at, entry)| (*at, entry)));
        spans::of_run(run, &history.attempts, &history.waits)
    }

    /// Brings spans to the collector, or gives up.
    async fn bring(&mut self, batch: Vec<Span>) {
        let spans = batch.len() as u64;
        let request = spans::request(self.collector.options(), batch);
        let mut pauses = Backoff::new(PAUSE_MIN, PAUSE_MAX);
        let begun = Instant::now();
        loop {
            let posted = within(&mut self.stopping, self.collector.post(&request)).await;
            let failure = match posted {
                Some(Ok(rejected)) => return self.taken(spans, rejected),
                Some(Err(failure)) => failure,
                None => return dropped("stop", spans),
            };
            self.failed(&failure);
            let pause = failure.pause.unwrap_or_default().max(pauses.pause()).min(TRIED_MAX);
            let stop = *self.stopping.borrow();
            if !failure.passing || Instant::now() + pause >= stop.unwrap_or(begun + TRIED_MAX) {
                return dropped(if stop.is_some() { "stop" } else { "failed" }, spans);
            }
            self.show_queue();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop_said(&mut self.stopping), if stop.is_none() => {}
            }
        }
    }

    fn taken(&mut self, spans: u64, rejected: u64) {
        let rejected = rejected.min(spans);
        counter!("wharf_telemetry_spans_exported_total").increment(spans - rejected);
        dropped("rejected", rejected);
        if let Some(over) = self.unreachable.over() {
            let (failed, seconds) = (over.failed, over.seconds);
            tracing::info!(failed, seconds, "the collector takes traces again");
        }
        match rejected {
            0 => {
                if let Some(over) = self.unwanted.over() {
                    let (times, seconds) = (over.failed, over.seconds);
                    tracing::info!(times, seconds, "the collector takes all spans again");
                }
            }
            _ => {
                if let Some(times) = self.unwanted.failed() {
                    tracing::warn!(times, rejected, "the collector did not want some spans");
                }
            }
        }
    }

    fn failed(&mut self, failure: &Failure) {
        if let Some(failed) = self.unreachable.failed() {
            let endpoint = self.collector.options().endpoint.shown();
            let waiting = self.runs.len();
            let why = &failure.why;
            tracing::warn!(endpoint, why, failed, waiting, "the collector takes no traces");
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "the queue is bounded")]
    fn show_queue(&self) {
        gauge!("wharf_telemetry_queue_runs").set(self.runs.len() as f64);
    }
}

/// Returns once the core stops.
async fn stop_said(stopping: &mut watch::Receiver<Option<Instant>>) {
    if stopping.wait_for(Option::is_some).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What comes of some work, if it is done before a core that stops has no time left for it.
async fn within<T>(
    stopping: &mut watch::Receiver<Option<Instant>>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return Some(done),
        () = stop_said(stopping) => {}
    }
    let until = stopping.borrow().unwrap_or_else(Instant::now);
    timeout_at(until, work).await.ok()
}
