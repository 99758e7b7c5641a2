//! What a handler can do while it works on a call.

mod address;
mod answer;
mod call;
mod cancel;
mod files;

pub use answer::Answer;
pub use call::{Called, Calling};
pub(crate) use call::{InvokeWaiter, Taken};
pub(crate) use cancel::Cancel;
pub use files::{InputFile, LargeText, Written, cannot_read, cannot_write};

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use wharf_protocol::agent::{CallReceived, Question, SendError};
use wharf_vocab::{Code, Fault, Micro, Mode, Object};
use wharf_wire::agent_v1::{Actor, Caller, Chunk, NoticeLevel, QuestionId, TextChannel};

use crate::process::connection::Command;
use crate::schema;

/// Largest piece of text in one message.
const CHUNK_BYTES_MAX: usize = 64 * 1024;

/// A call that a handler works on: who calls, whether it was canceled, and ways to say how it
/// goes. Cheap to clone.
///
/// Methods that send wait while the core is slow to read. Once the call is canceled they give
/// `tool.canceled`, so a handler that uses `?` on them ends by itself.
///
/// ```
/// use std::time::Duration;
/// use serde::{Deserialize, Serialize};
/// use wharf_sdk::process::AgentCx;
/// use wharf_sdk::{Fault, JsonSchema};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Count { to: u32 }
///
/// async fn count(input: Count, cx: AgentCx) -> Result<(), Fault> {
///     for n in 1..=input.to {
///         cx.text(format!("{n}\n")).await?;
///         cx.status("counting", f64::from(n) / f64::from(input.to)).await?;
///         cx.sleep(Duration::from_millis(100)).await?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct AgentCx {
    inner: Arc<Inner>,
}

struct Inner {
    commands: mpsc::Sender<Command>,
    call: CallReceived,
    cancel: Cancel,
    asked: AtomicU64,
    tally: Mutex<(Option<Micro>, Object)>,
}

impl AgentCx {
    pub(crate) fn new(commands: mpsc::Sender<Command>, call: CallReceived, cancel: Cancel) -> Self {
        let (asked, tally) = (AtomicU64::new(0), Mutex::default());
        Self { inner: Arc::new(Inner { commands, call, cancel, asked, tally }) }
    }

    /// Adds text to the call's standard output. Text beyond what a call may stream is dropped,
    /// and a last status says so.
    pub async fn text(&self, text: impl Into<String>) -> Result<(), Fault> {
        self.write(TextChannel::Stdout, text.into()).await
    }

    /// Adds text to the call's standard error.
    pub async fn stderr(&self, text: impl Into<String>) -> Result<(), Fault> {
        self.write(TextChannel::Stderr, text.into()).await
    }

    /// Adds text to the call's log.
    pub async fn log(&self, text: impl Into<String>) -> Result<(), Fault> {
        self.write(TextChannel::Log, text.into()).await
    }

    /// Says what the tool is doing and, if it is known, how far it is: from 0 to 1.
    pub async fn status(
        &self,
        text: impl Into<String>,
        fraction: impl Into<Option<f64>>,
    ) -> Result<(), Fault> {
        let fraction = fraction.into().filter(|f| f.is_finite()).map(|f| f.clamp(0.0, 1.0));
        self.stream(Chunk::Status { text: text.into(), fraction }).await
    }

    /// Shows a result that is not final; it has to be a JSON object. The final one is complete by
    /// itself.
    pub async fn partial(&self, value: &impl Serialize) -> Result<(), Fault> {
        let Ok(Value::Object(json)) = serde_json::to_value(value) else {
            let message = "A partial result has to be a JSON object.";
            return Err(Fault::new(Code::ToolInternal, message));
        };
        self.stream(Chunk::Partial { json }).await
    }

    /// Asks a person or whoever looks after the run, and waits for the answer; the call's time
    /// stands still meanwhile. The type says which answers fit.
    ///
    /// ```
    /// use serde::Deserialize;
    /// use wharf_sdk::process::{AgentCx, Answer};
    /// use wharf_sdk::{Fault, JsonSchema};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Confirm { ok: bool }
    ///
    /// async fn may_i(cx: &AgentCx) -> Result<bool, Fault> {
    ///     Ok(match cx.ask::<Confirm>("Shall I go on?", None).await? {
    ///         Answer::Given(confirm) => confirm.ok,
    ///         Answer::OffScript(text) => text == "yes",
    ///         _ => false,
    ///     })
    /// }
    /// ```
    pub async fn ask<T: DeserializeOwned + JsonSchema>(
        &self,
        title: impl Into<String>,
        deadline: impl Into<Option<Duration>>,
    ) -> Result<Answer<T>, Fault> {
        self.ask_for(title.into(), schema::of_input::<T>(), deadline.into()).await
    }

    /// Asks with a schema that is known only now.
    pub(crate) async fn ask_for<T: DeserializeOwned>(
        &self,
        title: String,
        schema: Value,
        deadline: Option<Duration>,
    ) -> Result<Answer<T>, Fault> {
        let ask_id = QuestionId::new(self.fresh_id()).map_err(|_| internal())?;
        let deadline_ms = deadline.map(whole_ms);
        let question = Question {
            ask_id,
            call_id: self.inner.call.call_id.clone(),
            title,
            schema,
            deadline_ms,
        };
        let make = |waiter| Command::Ask { question: Box::new(question), waiter };
        answer::read(self.send(make).await?)
    }

    /// Tells people something, beside the call's output.
    pub async fn notice(&self, level: NoticeLevel, text: impl Into<String>) -> Result<(), Fault> {
        let call_id = self.inner.call.call_id.clone();
        let text = text.into();
        self.send(|taken| Command::Notify { call_id, level, text, taken }).await
    }

    /// Adds to what the call costs, in millionths of a dollar. The core is told at once, so that a
    /// budget can stop the call; where it reads slowly it learns the sum from the result.
    pub fn add_cost(&self, micro: Micro) {
        let so_far_micro = self
            .with_tally(|(cost, _)| *cost.insert(cost.unwrap_or_default().saturating_add(micro)));
        let call_id = self.inner.call.call_id.clone();
        // A connection that is full or gone loses nothing: the result has the sum.
        let _ = self.inner.commands.try_send(Command::Cost { call_id, so_far_micro });
    }

    /// Adds a figure to the call's result, such as a count of tokens. It may hold no secret.
    pub fn metric(&self, name: impl Into<String>, value: impl Into<Value>) {
        self.with_tally(|(_, metrics)| metrics.insert(name.into(), value.into()));
    }

    /// Waits until the call is canceled, or nobody wants its result any more.
    pub async fn cancelled(&self) {
        self.inner.cancel.token().cancelled().await;
    }

    /// Whether the call is canceled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancel.token().is_cancelled()
    }

    /// Does something until the call is canceled, then drops it and gives `tool.canceled`.
    ///
    /// ```
    /// # use wharf_sdk::{Fault, process::AgentCx};
    /// async fn slow() -> u32 { 42 }
    ///
    /// async fn work(cx: &AgentCx) -> Result<u32, Fault> {
    ///     cx.until_cancelled(slow()).await
    /// }
    /// ```
    pub async fn until_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Fault> {
        self.inner.cancel.token().run_until_cancelled(work).await.ok_or_else(canceled)
    }

    /// Sleeps, or gives `tool.canceled` as soon as the call is canceled.
    pub async fn sleep(&self, time: Duration) -> Result<(), Fault> {
        self.until_cancelled(tokio::time::sleep(time)).await
    }

    /// Whether the call is real. In mode `mock` a tool makes something up and acts on nothing.
    #[must_use]
    pub fn mode(&self) -> Mode {
        let context = self.inner.call.context.as_ref();
        context.and_then(|context| context.mode).unwrap_or(Mode::Real)
    }

    /// The call's id.
    #[must_use]
    pub fn call_id(&self) -> &str {
        self.inner.call.call_id.as_str()
    }

    /// The logical request that the call belongs to; the same when it is tried again.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.inner.call.echo.request_id.as_deref()
    }

    /// The session, workflow or mission that the call belongs to.
    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        self.inner.call.echo.correlation_id.as_deref()
    }

    /// The approval that the call runs under, if it needed one. A tool that asked for it by
    /// [`directive_required`](super::directive_required) may act now.
    #[must_use]
    pub fn approval(&self) -> Option<&str> {
        self.inner.call.context.as_ref()?.approval.as_deref()
    }

    /// What immediately caused the call: an approval, or the run that made the call.
    #[must_use]
    pub fn causation_id(&self) -> Option<&str> {
        self.inner.call.echo.causation_id.as_deref()
    }

    /// The trace the call belongs to, as W3C Trace Context writes it.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.inner.call.echo.traceparent.as_deref()
    }

    /// The key under which the call is to act once.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&str> {
        self.inner.call.idempotency_key.as_deref()
    }

    /// How long the call may take, counted from its arrival.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.inner.call.timeout_ms.map(Duration::from_millis)
    }

    /// Who is behind the call: for display, never to decide what is allowed.
    #[must_use]
    pub fn actor(&self) -> Option<&Actor> {
        self.inner.call.actor.as_ref()
    }

    /// Who calls: for display, never to decide what is allowed.
    #[must_use]
    pub fn caller(&self) -> Option<&Caller> {
        self.inner.call.caller.as_ref()
    }

    /// The root of the project that the call is about, if the caller named one and it is allowed.
    #[must_use]
    pub fn project_root(&self) -> Option<&str> {
        self.inner.call.context.as_ref()?.project_root.as_deref()
    }

    /// An id for something the call wants of the core.
    fn fresh_id(&self) -> String {
        let number = self.inner.asked.fetch_add(1, Ordering::Relaxed);
        // A call's id may be as long as an id can be, and this has to be one too.
        let short = &self.call_id()[..self.call_id().floor_char_boundary(200)];
        format!("{short}.{number}")
    }

    /// How long the handler may go on once the call is canceled.
    pub(crate) fn grace_ms(&self) -> u64 {
        self.inner.cancel.grace_ms()
    }

    /// What the call cost and its figures, at its end.
    pub(crate) fn take_tally(&self) -> (Option<Micro>, Object) {
        self.with_tally(std::mem::take)
    }

    fn with_tally<T>(&self, change: impl FnOnce(&mut (Option<Micro>, Object)) -> T) -> T {
        change(&mut self.inner.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn write(&self, channel: TextChannel, text: String) -> Result<(), Fault> {
        if text.len() <= CHUNK_BYTES_MAX {
            return self.stream(Chunk::Text { channel, text }).await;
        }
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES_MAX));
            self.stream(Chunk::Text { channel, text: piece.to_owned() }).await?;
            rest = after;
        }
        Ok(())
    }

    async fn stream(&self, chunk: Chunk) -> Result<(), Fault> {
        let call_id = self.inner.call.call_id.clone();
        self.send(|taken| Command::Stream { call_id, chunk, taken }).await
    }

    /// Has the connection do something, and waits until it is done or the call is canceled.
    async fn send<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, SendError>>) -> Command,
    ) -> Result<T, Fault> {
        let (sender, receiver) = oneshot::channel();
        let done = self
            .until_cancelled(async {
                // Both fail only when the connection is gone.
                self.inner.commands.send(make(sender)).await.ok()?;
                receiver.await.ok()
            })
            .await?;
        done.ok_or_else(canceled)?.map_err(fault_of)
    }
}

fn fault_of(error: SendError) -> Fault {
    match error {
        SendError::NotGranted => {
            Fault::new(Code::PermissionDenied, "The core does not allow the agent to do this.")
        }
        SendError::TooLarge => {
            Fault::new(Code::ToolOutputTooLarge, "The message is larger than a frame may be.")
        }
        SendError::NotLive
        | SendError::NotOpen
        | SendError::StreamDone
        | SendError::BudgetSpent
        | SendError::Full => canceled(),
        SendError::InUse => internal(),
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn canceled() -> Fault {
    Fault::new(Code::ToolCanceled, "The call was canceled.")
}

fn internal() -> Fault {
    Fault::new(Code::ToolInternal, "The tool failed in a way its author did not foresee.")
}

impl fmt::Debug for AgentCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentCx").field("call_id", &self.call_id()).finish_non_exhaustive()
    }
}
