//! The export of traces, from before the engine starts until after it has ended.

use std::sync::Arc;
use std::time::Duration;

use wharf_engine::{Handle, TraceOptions};
use wharf_telemetry::{ExportTask, Exporter, Recorder, TelemetryOptions};
use wharf_vocab::NodeId;

/// How long the last traces may take to be exported when the core stops.
const FLUSH: Duration = Duration::from_secs(5);

/// An export that waits for its engine.
pub(crate) struct PreparedTelemetry {
    traces: Option<TraceOptions>,
    exporter: Option<Exporter>,
}

/// The export of a core that is up, if traces are exported at all.
pub(crate) struct Telemetry(Option<ExportTask>);

impl Telemetry {
    /// An export as it is set, of a core of this name.
    pub(crate) fn prepare(options: Option<TelemetryOptions>, node: &NodeId) -> PreparedTelemetry {
        let Some(mut options) = options else {
            return PreparedTelemetry { traces: None, exporter: None };
        };
        let instance = "service.instance.id";
        if options.resource.iter().all(|(key, _)| key != instance) {
            options.resource.push((instance.to_owned(), node.to_string()));
        }
        let sampling = options.sampling;
        let (recorder, exporter) = Recorder::new(options);
        let observer: Arc<Recorder> = recorder;
        let traces = Some(TraceOptions { sampling, observer });
        PreparedTelemetry { traces, exporter: Some(exporter) }
    }

    /// Exports what there is, as far as there is time, and ends.
    pub(crate) async fn end(self) {
        if let Some(task) = self.0 {
            task.stop(FLUSH).await;
        }
    }
}

impl PreparedTelemetry {
    /// What the engine is to do about traces.
    pub(crate) fn options(&self) -> Option<TraceOptions> {
        self.traces.clone()
    }

    /// Begins, with the engine that tells of runs.
    pub(crate) fn begin(self, handle: &Handle) -> Telemetry {
        Telemetry(self.exporter.map(|exporter| exporter.start(handle.clone())))
    }
}
