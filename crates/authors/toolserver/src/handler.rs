//! The seam between the server and whatever executes a run.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use wharf_vocab::{Micro, Object};
use wharf_wire::run_v1::{LogLevel, Mode, Phase};

use crate::steps::RunSteps;
use crate::transfer::RunFiles;

/// Executes runs. One value serves all runs of a server, side by side.
pub trait Handler: Send + Sync + 'static {
    /// Executes one run to its end. The server bounds its time; when `call.cancel` is set the
    /// handler should end soon, and what it had is then ended by dropping the future. Dropping
    /// it must leave no process behind.
    fn run(&self, call: Call, report: Reporter) -> BoxFuture<'static, Done>;

    /// Gets ready before the first run: imports, starts a parent of workers. An error is why the
    /// server cannot start.
    fn prepare(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// A hash of what is served, shown by the server's health.
    fn digest(&self) -> String;
}

/// One attempt of a run.
#[derive(Debug, Clone)]
pub struct Call {
    /// The run.
    pub run_id: String,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Real or pretended.
    pub mode: Mode,
    /// The attempt's place in its trace, as W3C Trace Context writes it.
    pub traceparent: Option<String>,
    /// What tracing systems on the way have added.
    pub tracestate: Option<String>,
    /// Inputs as they came: values, addresses, paths.
    pub inputs: Object,
    /// Where outputs go, by key: addresses or paths.
    pub outputs: Object,
    /// The files of the run: fetches references, writes outputs.
    pub files: Arc<RunFiles>,
    /// The steps of the run's code, where whoever started the run does them.
    pub steps: Option<RunSteps>,
    /// Set when the run is to stop.
    pub cancel: CancellationToken,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Outputs, with places in the stead of what was written, or what went wrong.
    pub result: Result<Object, Failure>,
    /// The cost as the handler gave it; the server judges it.
    pub cost: Option<Value>,
}

/// What went wrong, for the caller: a code and one safe sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// A code such as `ERR_HANDLER`.
    pub code: String,
    /// One sentence without paths, values or secrets.
    pub message: String,
}

impl Failure {
    /// A failure.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// What a handler says while it works.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// A line for people.
    Log {
        /// How grave it is.
        level: LogLevel,
        /// The line.
        text: String,
        /// Unix seconds; now when absent.
        at: Option<f64>,
    },
    /// How far it is.
    Event {
        /// The phase; another word than the protocol's says what the run is doing.
        phase: Phase,
        /// From 0 to 1; the server clamps it.
        progress: Option<f64>,
    },
    /// Partial outputs, cumulative by key.
    Partial(Object),
    /// A piece of text that follows on those before it.
    Text(String),
    /// A frame of a kind or phase that the protocol does not have, as it came.
    Other(Object),
}

/// Takes what a handler says while it works. It waits when the run's readers and log are behind.
#[derive(Debug, Clone)]
pub struct Reporter {
    reports: mpsc::Sender<Report>,
    spent: watch::Sender<Micro>,
}

impl Reporter {
    /// A reporter into a bounded queue.
    #[must_use]
    pub fn new(reports: mpsc::Sender<Report>) -> Self {
        Self { reports, spent: watch::Sender::new(0) }
    }

    /// Says something. After the run's end nobody listens, which is no error.
    pub async fn say(&self, report: Report) {
        let _ = self.reports.send(report).await;
    }

    /// Says what the run has cost so far, in all. It never waits; less than before is ignored.
    pub fn spent(&self, so_far: Micro) {
        self.spent.send_if_modified(|spent| {
            let is_more = so_far > *spent;
            *spent = so_far.max(*spent);
            is_more
        });
    }

    /// Follows what the run has cost so far.
    #[must_use]
    pub fn follow_spent(&self) -> watch::Receiver<Micro> {
        self.spent.subscribe()
    }

    /// Says a line.
    pub async fn log(&self, level: LogLevel, text: impl Into<String>) {
        self.say(Report::Log { level, text: text.into(), at: None }).await;
    }
}
