//! Whoever started a run of a tool server.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use wharf_toolserver::transfer::Source;
use wharf_toolserver::{Call, Failure, Report, Reporter};
use wharf_vocab::{Fault, FaultCode, Micro, Mode, Object, StepName};
use wharf_wire::agent_v1::Chunk;
use wharf_wire::run_v1::{LogLevel, Mode as RunMode, Phase, Written, code};

use crate::builtin::{Level, Notice};
use crate::host::file::{Content, File, Files, Reader};
use crate::host::{CallInfo, CallRequest, Cancel, Host, StepNames, canceled, unavailable};

/// The largest file that is read into memory at once.
const READ_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a tool may go on that ends a canceled run by itself; the server bounds it, too.
const GRACE_MS: u64 = 60 * 60 * 1000;
/// The name under which typed progress is shown.
const PROGRESS: &str = "progress";

/// One run. Over the run protocol durable code has its steps, and nothing else reaches the core:
/// questions, completions and other calls of tools fail.
pub(super) struct RunHost {
    call: Call,
    report: Reporter,
    cancel: Cancel,
    info: Arc<CallInfo>,
    cost: Mutex<Option<Micro>>,
    /// The names of steps that were used, where steps are done.
    steps: Option<StepNames>,
}

impl RunHost {
    pub(super) fn new(call: Call, report: Reporter) -> Self {
        let mode = match call.mode {
            RunMode::Real => Mode::Real,
            RunMode::Mock => Mode::Mock,
        };
        let (call_id, attempt) = (call.run_id.clone(), call.attempt);
        let traceparent = call.traceparent.clone();
        let info = CallInfo { mode, call_id, attempt, traceparent, ..CallInfo::default() };
        let cancel = Cancel::new(call.cancel.clone(), GRACE_MS);
        let steps = call.steps.is_some().then(StepNames::default);
        Self { call, report, cancel, info: Arc::new(info), cost: Mutex::default(), steps }
    }

    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    /// What was said of the cost.
    pub(super) fn cost(&self) -> Option<Micro> {
        *self.cost.lock()
    }

    /// Has a step done, unless the run is canceled meanwhile.
    async fn step<T>(&self, done: impl Future<Output = Result<T, Failure>>) -> Result<T, Fault> {
        let done = self.call.cancel.run_until_cancelled(done).await.ok_or_else(canceled)?;
        done.map_err(|Failure { code, message }| match FaultCode::parse(&code) {
            Some(FaultCode::Known(code)) => Fault::new(code, message),
            _ => Fault::with_code(FaultCode::Provider(code), message, false),
        })
    }

    /// Says what the run is doing and how far it is; only the latest counts.
    async fn status(&self, text: String, progress: Option<f64>) {
        let phase = if text.is_empty() { Phase::Checkpoint } else { Phase::Other(text) };
        self.report.say(Report::Event { phase, progress }).await;
    }

    async fn log(&self, level: LogLevel, text: String, fraction: Option<f64>) {
        if !text.is_empty() {
            self.report.log(level, text).await;
        }
        if fraction.is_some() {
            let event = Report::Event { phase: Phase::Checkpoint, progress: fraction };
            self.report.say(event).await;
        }
    }
}

impl Host for RunHost {
    fn progress(&self, piece: Value) -> BoxFuture<'_, Result<(), Fault>> {
        let outputs = Object::from_iter([(PROGRESS.to_owned(), piece)]);
        Box::pin(async move {
            self.report.say(Report::Partial(outputs)).await;
            Ok(())
        })
    }

    fn stream(&self, chunk: Chunk) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async move {
            match chunk {
                Chunk::Partial { json } => self.report.say(Report::Partial(json)).await,
                Chunk::Status { text, fraction } => self.status(text, fraction).await,
                Chunk::Text { text, .. } => self.log(LogLevel::Info, text, None).await,
            }
            Ok(())
        })
    }

    fn spend(&self, micro: Micro) {
        let mut cost = self.cost.lock();
        let so_far = cost.unwrap_or(0).saturating_add(micro);
        *cost = Some(so_far);
        self.report.spent(so_far);
    }

    fn cancel(&self) -> Option<&Cancel> {
        Some(&self.cancel)
    }

    fn info(&self) -> Arc<CallInfo> {
        Arc::clone(&self.info)
    }

    fn files(&self) -> Option<&dyn Files> {
        Some(self)
    }

    /// Only steps of durable code are calls that the wire carries.
    fn call(&self, request: CallRequest) -> BoxFuture<'_, Result<Object, Fault>> {
        let CallRequest { tool, input, step, .. } = request;
        Box::pin(async move {
            match (&self.call.steps, step) {
                (Some(steps), Some(step)) => self.step(steps.call(step, tool, input)).await,
                _ => Err(unavailable(&format!("call {tool}"))),
            }
        })
    }

    fn steps(&self) -> Option<&StepNames> {
        self.steps.as_ref()
    }

    fn keep(
        &self,
        step: StepName,
        value: Option<Value>,
    ) -> BoxFuture<'_, Result<Option<Value>, Fault>> {
        Box::pin(async move {
            match &self.call.steps {
                Some(steps) => self.step(steps.keep(step, value)).await,
                None => Err(unavailable("keep a value")),
            }
        })
    }

    fn notify(&self, notice: Notice) -> BoxFuture<'_, Result<(), Fault>> {
        let level = match notice.level {
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warning => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        };
        Box::pin(async move {
            self.log(level, notice.message, notice.progress).await;
            Ok(())
        })
    }
}

impl Files for RunHost {
    fn reference(&self, input: &str) -> Option<String> {
        let value = self.call.inputs.get(input)?;
        self.call.files.is_reference(input, value).then_some(value.as_str()?.to_owned())
    }

    fn open<'a>(&'a self, input: &'a str) -> BoxFuture<'a, Result<Reader, Fault>> {
        Box::pin(async move { self.call.files.open(input).await.map_err(failed) })
    }

    /// One that is no reference is its own text.
    fn read<'a>(&'a self, input: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        Box::pin(async move {
            match self.call.inputs.get(input) {
                Some(Value::String(text)) if self.reference(input).is_none() => {
                    Ok(text.clone().into_bytes())
                }
                _ => {
                    let read = self.call.files.read(input, READ_BYTES_MAX).await;
                    read.map(Vec::from).map_err(failed)
                }
            }
        })
    }

    fn path<'a>(&'a self, input: &'a str) -> BoxFuture<'a, Result<PathBuf, Fault>> {
        Box::pin(async move {
            let fetched = self.call.files.fetch(input).await;
            fetched.map(|fetched| fetched.path).map_err(failed)
        })
    }

    fn is_wanted(&self, output: &str) -> bool {
        self.call.outputs.contains_key(output)
    }

    /// Outputs that are not written so are written from what the tool returns.
    fn write<'a>(
        &'a self,
        output: &'a str,
        content: Content<'a>,
    ) -> BoxFuture<'a, Result<File, Fault>> {
        Box::pin(async move {
            let files = &self.call.files;
            let written = match content {
                Content::Bytes(bytes) => files.put(output, Source::Bytes(Bytes::from(bytes))).await,
                Content::Stream(body, _) => files.put_stream(output, body).await,
                Content::File(path) => {
                    let file = tokio::fs::File::open(path).await.map_err(|_| {
                        let message = format!("The file of {output:?} is not there.");
                        failed(Failure::new(code::HANDLER, message))
                    })?;
                    files.put_stream(output, file).await
                }
            };
            let Written { bytes, b3 } = written.map_err(failed)?;
            Ok(File::written(bytes, Some(b3)))
        })
    }

    fn folder(&self) -> Result<PathBuf, Fault> {
        self.call.files.folder().map_err(failed)
    }
}

/// A failure of the server's own, as a tool passes it on.
fn failed(failure: Failure) -> Fault {
    Fault::with_code(FaultCode::Provider(failure.code), failure.message, false)
}
