//! Traces of runs, exported by OTLP over HTTP.
//!
//! A span is made when its run is over, from what is on record of the run by then; so a run that
//! outlives its core is told whole, and nothing is kept of runs that go on. The engine is never
//! waited for and never made to wait: what cannot be taken at once, or cannot be brought to the
//! collector, is lost and counted. No payload is in a span: ids, names, codes, times and numbers.
//!
//! | file | what it is |
//! |---|---|
//! | `options.rs` | where to export, and as whom |
//! | `recorder.rs` | what the engine tells runs to |
//! | `record.rs` | what is kept of a run until it is exported |
//! | `history.rs` | attempts and waits, as the journal has them |
//! | `model.rs` | what is known of the call of a model |
//! | `spans.rs` | spans of a run, and the request that carries them |
//! | `export.rs` | the queue, the batches and their way to the collector |
//! | `collector.rs` | one request to the collector |

mod collector;
mod export;
mod history;
mod model;
mod options;
mod record;
mod recorder;
mod spans;

pub use collector::probe;
pub use export::{ExportTask, Exporter};
pub use options::{CollectorEndpoint, TelemetryOptions, UnfitEndpoint};
pub use recorder::Recorder;
