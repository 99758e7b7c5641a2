//! Traces: what goes along with a call, and who is told of runs that are over.
//!
//! Where nobody records traces, what a caller sent is passed on as it came: then whoever works on
//! the run stands right below whoever asked for it.

use std::sync::Arc;

use wharf_domain::trace::{RunTrace, Sampling, TraceHeaders};
use wharf_domain::{Run, RunSpec};
use wharf_ports::Batch;
use wharf_vocab::{AttemptId, LaunchId, RunKey, Timestamp};

use crate::meter;

/// Is told of runs on the engine's own path, so no call may block or wait: what cannot be taken at
/// once is lost to whoever observes, and to nobody else.
pub trait RunObserver: Send + Sync + 'static {
    /// A run is over, and that is committed. Runs that only memory keeps count, too.
    fn ended(&self, run: &Run);

    /// An attempt was given to this process.
    fn launched(&self, attempt: &AttemptId, launch: &LaunchId);
}

/// Traces that are recorded.
#[derive(Clone)]
pub struct TraceOptions {
    /// Which, of those that begin here.
    pub sampling: Sampling,
    /// Who records them.
    pub observer: Arc<dyn RunObserver>,
}

/// How traces are kept here.
#[derive(Clone, Default)]
pub(crate) struct Traces(Option<TraceOptions>);

impl Traces {
    pub(crate) fn new(options: Option<TraceOptions>) -> Self {
        Self(options)
    }

    /// What goes along with an attempt of a run; with attempt 0, with what the run itself starts.
    pub(crate) fn headers(
        &self,
        key: &RunKey,
        accepted: Timestamp,
        spec: &RunSpec,
        attempt: u32,
    ) -> TraceHeaders {
        match &self.0 {
            Some(traces) => RunTrace::of(key, accepted, spec, traces.sampling).headers(attempt),
            None => TraceHeaders {
                traceparent: spec.traceparent.clone(),
                tracestate: spec.tracestate.clone(),
            },
        }
    }

    /// What goes along with what a run starts now.
    pub(crate) fn headers_of_child(&self, parent: &Run) -> TraceHeaders {
        let attempt = parent.active.as_ref().map_or(0, |active| active.number);
        self.headers(&parent.key, parent.created_at, &parent.spec, attempt)
    }

    /// Tells of a run that a committed batch has ended.
    pub(crate) fn committed(&self, batch: &Batch, run: &Run) {
        if let Some(traces) = &self.0
            && meter::has_ended(batch, run)
        {
            traces.observer.ended(run);
        }
    }

    /// Tells which process an attempt was given to.
    pub(crate) fn launched(&self, attempt: &AttemptId, launch: &LaunchId) {
        if let Some(traces) = &self.0 {
            traces.observer.launched(attempt, launch);
        }
    }
}
