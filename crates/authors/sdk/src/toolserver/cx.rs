//! What a handler can do beside computing.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncRead;
use wharf_toolserver::transfer::Source;
use wharf_toolserver::{Call, Failure, Report, Reporter};
use wharf_wire::run_v1::{LogLevel, Mode, Phase, Written, code};

use super::{Reading, Stored};
use crate::{Fault, FaultCode, Micro, Object};

/// The largest file that is read into memory at once.
const READ_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One run, as its handler sees it. Cheap to clone.
#[derive(Clone)]
pub struct ToolCx {
    inner: Arc<Inner>,
}

struct Inner {
    call: Call,
    report: Reporter,
    cost: Mutex<Option<Micro>>,
}

impl ToolCx {
    pub(super) fn new(call: Call, report: Reporter) -> Self {
        Self { inner: Arc::new(Inner { call, report, cost: Mutex::default() }) }
    }

    /// The run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.call().run_id
    }

    /// Which attempt of the run this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.call().attempt
    }

    /// Whether the run is real or only pretends. What pretends acts on nothing and costs nothing.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.call().mode
    }

    /// Writes a line for people.
    pub async fn log(&self, text: impl Into<String>) {
        self.log_at(LogLevel::Info, text).await;
    }

    /// Writes a line for people, with how grave it is.
    pub async fn log_at(&self, level: LogLevel, text: impl Into<String>) {
        self.inner.report.log(level, text).await;
    }

    /// Says how much is done, from 0 to 1.
    pub async fn progress(&self, fraction: f64) {
        let event = Report::Event { phase: Phase::Checkpoint, progress: Some(fraction) };
        self.inner.report.say(event).await;
    }

    /// Shows an output as far as it is there. Each time all of it is given: "Hello", then
    /// "Hello world".
    pub async fn partial(
        &self,
        key: impl Into<String>,
        value: impl Serialize,
    ) -> Result<(), Fault> {
        let value = serde_json::to_value(value).map_err(|_| {
            failed(Failure::new(code::HANDLER, "A partial output cannot be written as JSON."))
        })?;
        let outputs = Object::from_iter([(key.into(), value)]);
        self.inner.report.say(Report::Partial(outputs)).await;
        Ok(())
    }

    /// Opens an input as a stream of bytes, by its key or its [`ToolFile`](super::ToolFile).
    pub async fn open(&self, input: impl AsRef<str>) -> Result<Reading, Fault> {
        self.call().files.open(input.as_ref()).await.map_err(failed)
    }

    /// Reads an input into memory, up to 64 MiB. One that is no reference is its own text.
    pub async fn read(&self, input: impl AsRef<str>) -> Result<Bytes, Fault> {
        let key = input.as_ref();
        match self.call().inputs.get(key) {
            Some(Value::String(text)) if !self.is_reference(key) => Ok(Bytes::from(text.clone())),
            _ => self.call().files.read(key, READ_BYTES_MAX).await.map_err(failed),
        }
    }

    /// Fetches an input into a file that belongs to the run and goes with it.
    pub async fn path(&self, input: impl AsRef<str>) -> Result<PathBuf, Fault> {
        let fetched = self.call().files.fetch(input.as_ref()).await;
        fetched.map(|fetched| fetched.path).map_err(failed)
    }

    /// Whether an input is a reference to a file.
    #[must_use]
    pub fn is_reference(&self, key: &str) -> bool {
        let value = self.call().inputs.get(key);
        value.is_some_and(|value| self.call().files.is_reference(key, value))
    }

    /// Whether the caller wants this output as a file.
    #[must_use]
    pub fn is_wanted(&self, output: &str) -> bool {
        self.call().outputs.contains_key(output)
    }

    /// Writes an output to where the caller wants it. Outputs that are not written so are written
    /// from what the handler returns.
    pub async fn write(&self, output: &str, bytes: impl Into<Bytes>) -> Result<Stored, Fault> {
        let source = Source::Bytes(bytes.into());
        stored(self.call().files.put(output, source).await)
    }

    /// Writes an output from a file, such as one in [`folder`](Self::folder).
    pub async fn write_file(&self, output: &str, path: impl AsRef<Path>) -> Result<Stored, Fault> {
        let file = tokio::fs::File::open(path).await;
        let file = file.map_err(|_| {
            failed(Failure::new(code::HANDLER, format!("The file of {output:?} is not there.")))
        })?;
        self.write_stream(output, file).await
    }

    /// Writes an output from a stream.
    pub async fn write_stream(
        &self,
        output: &str,
        reader: impl AsyncRead + Send + Unpin,
    ) -> Result<Stored, Fault> {
        stored(self.call().files.put_stream(output, reader).await)
    }

    /// A folder that belongs to the run and goes with it.
    pub fn folder(&self) -> Result<PathBuf, Fault> {
        self.call().files.folder().map_err(failed)
    }

    /// Adds to what the run costs, in micro-dollars; the core hears of it at once. See
    /// [`cost`](super::cost) for help.
    pub fn cost(&self, micro: Micro) {
        let mut cost = self.inner.cost.lock().unwrap_or_else(PoisonError::into_inner);
        let so_far = cost.unwrap_or(0).saturating_add(micro);
        *cost = Some(so_far);
        self.inner.report.spent(so_far);
    }

    /// Waits until the run is to stop.
    pub async fn canceled(&self) {
        self.call().cancel.cancelled().await;
    }

    /// Whether the run is to stop.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.call().cancel.is_cancelled()
    }

    /// What was said of the cost.
    pub(super) fn cost_said(&self) -> Option<Micro> {
        *self.inner.cost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn call(&self) -> &Call {
        &self.inner.call
    }
}

impl fmt::Debug for ToolCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Inputs and outputs hold addresses that are nobody else's business.
        f.debug_struct("ToolCx").field("run_id", &self.run_id()).finish_non_exhaustive()
    }
}

fn stored(written: Result<Written, Failure>) -> Result<Stored, Fault> {
    written.map(|Written { bytes, b3 }| Stored { bytes, b3 }).map_err(failed)
}

/// A failure of the server's own, as a handler passes it on.
fn failed(failure: Failure) -> Fault {
    Fault::with_code(FaultCode::Provider(failure.code), failure.message, false)
}
