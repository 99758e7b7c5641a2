//! Whoever called a tool of an agent process: the core, over the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use wharf_protocol::agent::{CallOutcome, CallReceived, CallReport, InvokeRequest, SendError};
use wharf_vocab::{Code, Fault, Micro, Mode, Object, StepName};
use wharf_wire::agent_v1::{AnswerStatus, Chunk, InvokeId, NoticeLevel, QuestionAsk, QuestionId};

use super::connection::HandlerCommand;
use super::files::CallFiles;
use crate::builtin::{Answer, Level, Notice, Question};
use crate::host::file::Files;
use crate::host::{CallInfo, CallRequest, Cancel, Host, ServedTool, StepNames, canceled};
use crate::schema::compile;

/// Largest piece of text in one message.
const CHUNK_BYTES_MAX: usize = 64 * 1024;

/// Who waits for a call that was made through the core.
#[derive(Debug)]
pub(super) struct InvokeWaiter {
    pub(super) chunks: mpsc::Sender<Chunk>,
    pub(super) end: oneshot::Sender<CallOutcome>,
}

/// One call that the core made.
pub(super) struct CoreCall {
    commands: mpsc::Sender<HandlerCommand>,
    call: CallReceived,
    cancel: Cancel,
    info: Arc<CallInfo>,
    files: CallFiles,
    /// How much was asked of the core so far.
    asked: AtomicU64,
    tally: Mutex<Tally>,
    steps: StepNames,
}

#[derive(Default)]
struct Tally {
    cost_micro: Option<Micro>,
    metrics: Object,
}

impl CoreCall {
    /// A call, without its input but for what refers to files.
    pub(super) fn new(
        commands: mpsc::Sender<HandlerCommand>,
        mut call: CallReceived,
        cancel: Cancel,
    ) -> Self {
        let context = call.context.take().unwrap_or_default();
        let info = Arc::new(CallInfo {
            mode: context.mode.unwrap_or(Mode::Real),
            call_id: call.call_id.as_str().to_owned(),
            request_id: call.echo.request_id.clone(),
            correlation_id: call.echo.correlation_id.clone(),
            causation_id: call.echo.causation_id.clone(),
            traceparent: call.echo.traceparent.clone(),
            idempotency_key: call.idempotency_key.take(),
            approval: context.approval,
            timeout: call.timeout_ms.map(Duration::from_millis),
            actor: call.actor.take(),
            caller: call.caller.take(),
            project_root: context.project_root,
            inputs_dir: context.inputs_dir.map(Into::into),
            outputs_dir: context.outputs_dir.map(Into::into),
            ..CallInfo::default()
        });
        let files = CallFiles {
            inputs: std::mem::take(&mut call.input),
            outputs: context.outputs.unwrap_or_default(),
            folder: info.outputs_dir.clone(),
        };
        let (asked, tally) = (AtomicU64::new(0), Mutex::default());
        Self { commands, call, cancel, info, files, asked, tally, steps: StepNames::default() }
    }

    /// Executes the call to its end: whatever the tool does, one report comes out.
    pub(super) async fn execute(self: Arc<Self>, tool: ServedTool, input: Object) -> CallReport {
        let outcome = match tool.call(input, Arc::clone(&self) as Arc<dyn Host>).await {
            Ok(output) => CallOutcome::Succeeded(output),
            Err(fault) if fault.is(Code::ToolCanceled) && self.cancel.is_cancelled() => {
                CallOutcome::Canceled(fault)
            }
            Err(fault) => CallOutcome::Failed(fault),
        };
        let Tally { cost_micro, metrics } = std::mem::take(&mut *self.tally.lock());
        CallReport { outcome, cost_micro, metrics }
    }

    /// An id for something the call wants of the core.
    fn fresh_id(&self) -> String {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        // A call's id may be as long as an id can be, and this has to be one too.
        let id = self.call.call_id.as_str();
        format!("{}.{number}", &id[..id.floor_char_boundary(200)])
    }

    async fn stream(&self, chunk: Chunk) -> Result<(), Fault> {
        let call_id = self.call.call_id.clone();
        self.send(|taken| HandlerCommand::Stream { call_id, chunk, taken }).await
    }

    /// Has the connection do something, and waits until it is done or the call is canceled.
    async fn send<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, SendError>>) -> HandlerCommand,
    ) -> Result<T, Fault> {
        let (sender, receiver) = oneshot::channel();
        let done = self.cancel.token().run_until_cancelled(async {
            // Both fail only when the connection is gone.
            self.commands.send(make(sender)).await.ok()?;
            receiver.await.ok()
        });
        done.await.flatten().ok_or_else(canceled)?.map_err(fault_of)
    }

    async fn question(&self, question: Question) -> Result<Answer, Fault> {
        let deadline_ms = question.deadline_ms();
        // A schema that is none cannot be checked; any answer will do.
        let usable = compile(&question.schema).is_ok();
        let question = Box::new(QuestionAsk {
            ask_id: QuestionId::new(self.fresh_id()).map_err(|_| internal())?,
            call_id: self.call.call_id.clone(),
            title: question.message,
            schema: if usable { question.schema } else { json!({}) },
            deadline_ms,
        });
        let answered = match self.send(|waiter| HandlerCommand::Ask { question, waiter }).await {
            Err(fault) if fault.is(Code::PermissionDenied) => return Ok(Answer::Denied),
            answered => answered?,
        };
        Ok(match answered.status {
            AnswerStatus::Answered => Answer::Accepted(answered.value.unwrap_or_default()),
            AnswerStatus::Declined => Answer::Declined,
            AnswerStatus::Cancelled => Answer::Cancelled,
            AnswerStatus::Denied => Answer::Denied,
            AnswerStatus::OffScript => Answer::OffScript(answered.text.unwrap_or_default()),
            AnswerStatus::Expired => Answer::Expired,
        })
    }

    async fn invoke(&self, request: CallRequest) -> Result<Object, Fault> {
        let invoke_id = InvokeId::new(self.fresh_id()).map_err(|_| internal())?;
        // A step is there for the next attempt, too; the end of the run ends it.
        let taken_back = request.step.is_none().then(|| invoke_id.clone());
        let (end, ended) = oneshot::channel();
        let waiter = InvokeWaiter { chunks: request.chunks, end };
        let request = Box::new(InvokeRequest {
            invoke_id,
            parent_call_id: self.call.call_id.clone(),
            tool_id: request.tool,
            input: request.input,
            timeout_ms: request.timeout.map(whole_ms),
            idempotency_key: request.idempotency_key,
            step: request.step,
        });
        let mut unwanted = InvokeGuard { invoke_id: taken_back, commands: &self.commands };
        self.send(|taken| HandlerCommand::Invoke { request, waiter, taken }).await?;
        let ended = self.cancel.token().run_until_cancelled(ended).await.ok_or_else(canceled)?;
        unwanted.invoke_id = None;
        // Without an end the connection is gone, or the core could not take the call.
        match ended.map_err(|_| canceled())? {
            CallOutcome::Succeeded(output) => Ok(output),
            // This call was not canceled, so it fails if it has nothing else to try.
            CallOutcome::Failed(fault) | CallOutcome::Canceled(fault) => Err(fault),
        }
    }
}

/// Calls off what nobody waits for any more.
struct InvokeGuard<'a> {
    /// Gone once the end is known.
    invoke_id: Option<InvokeId>,
    commands: &'a mpsc::Sender<HandlerCommand>,
}

impl Drop for InvokeGuard<'_> {
    fn drop(&mut self) {
        let Some(invoke_id) = self.invoke_id.take() else { return };
        let command = HandlerCommand::TakeBack { invoke_id };
        if let Err(mpsc::error::TrySendError::Full(command)) = self.commands.try_send(command)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let commands = self.commands.clone();
            // When the connection is gone there is nothing to call off.
            runtime.spawn(async move { drop(commands.send(command).await) });
        }
    }
}

impl Host for CoreCall {
    fn progress(&self, piece: Value) -> BoxFuture<'_, Result<(), Fault>> {
        let json = match piece {
            Value::Object(piece) => piece,
            other => Object::from_iter([("value".to_owned(), other)]),
        };
        Box::pin(self.stream(Chunk::Partial { json }))
    }

    fn stream(&self, chunk: Chunk) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async move {
            let (channel, text) = match chunk {
                Chunk::Text { channel, text } if text.len() > CHUNK_BYTES_MAX => (channel, text),
                chunk => return self.stream(chunk).await,
            };
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES_MAX));
                self.stream(Chunk::Text { channel, text: piece.to_owned() }).await?;
                rest = after;
            }
            Ok(())
        })
    }

    /// The core is told at once, so that a budget can stop the call; where it reads slowly it
    /// learns the sum from the result.
    fn spend(&self, micro: Micro) {
        let so_far_micro = {
            let cost = &mut self.tally.lock().cost_micro;
            *cost.insert(cost.unwrap_or_default().saturating_add(micro))
        };
        let call_id = self.call.call_id.clone();
        // A connection that is full or gone loses nothing: the result has the sum.
        let _ = self.commands.try_send(HandlerCommand::Cost { call_id, so_far_micro });
    }

    fn metric(&self, name: String, value: Value) {
        self.tally.lock().metrics.insert(name, value);
    }

    fn cancel(&self) -> Option<&Cancel> {
        Some(&self.cancel)
    }

    fn info(&self) -> Arc<CallInfo> {
        Arc::clone(&self.info)
    }

    fn files(&self) -> Option<&dyn Files> {
        Some(&self.files)
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Answer, Fault>> {
        Box::pin(self.question(question))
    }

    fn notify(&self, notice: Notice) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async move {
            let level = match notice.level {
                Level::Debug => NoticeLevel::Debug,
                Level::Info => NoticeLevel::Info,
                Level::Warning => NoticeLevel::Warn,
                Level::Error => NoticeLevel::Error,
            };
            let (call_id, text) = (self.call.call_id.clone(), notice.message);
            if let Some(fraction) = notice.progress.filter(|part| part.is_finite()) {
                let fraction = Some(fraction.clamp(0.0, 1.0));
                self.stream(Chunk::Status { text: text.clone(), fraction }).await?;
            }
            self.send(|taken| HandlerCommand::Notify { call_id, level, text, taken }).await
        })
    }

    fn call(&self, request: CallRequest) -> BoxFuture<'_, Result<Object, Fault>> {
        Box::pin(self.invoke(request))
    }

    fn steps(&self) -> Option<&StepNames> {
        Some(&self.steps)
    }

    fn keep(
        &self,
        step: StepName,
        value: Option<Value>,
    ) -> BoxFuture<'_, Result<Option<Value>, Fault>> {
        let call_id = self.call.call_id.clone();
        Box::pin(async move {
            self.send(|waiter| HandlerCommand::Keep { call_id, step, value, waiter }).await?
        })
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

fn internal() -> Fault {
    Fault::new(Code::ToolInternal, "The tool failed in a way its author did not foresee.")
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;
    use wharf_vocab::limits::CANCEL_GRACE_MS;
    use wharf_wire::agent_v1::{CallId, Echo};

    use super::*;
    use crate::host::served_by_name;
    use crate::{Cx, Scope, Tool};

    const TOOL: Tool<(), ()> = Tool::new("t", "Is canceled.");

    async fn never_stops((): (), cx: Cx) -> Result<(), Fault> {
        cx.cancelled().await;
        std::future::pending().await
    }

    async fn never_asks((): (), _cx: Cx) -> Result<(), Fault> {
        std::future::pending().await
    }

    async fn fails_after_cancel((): (), cx: Cx) -> Result<(), Fault> {
        cx.cancelled().await;
        Err(Fault::new(Code::ToolFailed, "The file was left half written."))
    }

    async fn succeeds_after_cancel((): (), cx: Cx) -> Result<(), Fault> {
        cx.cancelled().await;
        Ok(())
    }

    fn call() -> (Arc<CoreCall>, Cancel) {
        let cancel = Cancel::new(CancellationToken::new(), CANCEL_GRACE_MS);
        let call = CallReceived {
            call_id: CallId::new("c").expect("an id"),
            tool_id: "a/t".to_owned(),
            input: Object::new(),
            timeout_ms: None,
            idempotency_key: None,
            caller: None,
            actor: None,
            context: None,
            echo: Echo::default(),
        };
        (Arc::new(CoreCall::new(mpsc::channel(1).0, call, cancel.clone())), cancel)
    }

    async fn canceled_within<Fut>(
        tool: impl Fn((), Cx) -> Fut + Send + Sync + 'static,
        within_ms: u64,
    ) -> CallOutcome
    where
        Fut: Future<Output = Result<(), Fault>> + Send + 'static,
    {
        let (call, cancel) = call();
        let root = Scope::root();
        root.provide(&TOOL, tool).expect("usable");
        let tool = served_by_name(&root, "t").expect("provided");
        let canceled = async {
            // The tool is at work when it is told to stop.
            tokio::task::yield_now().await;
            cancel.cancel(within_ms);
        };
        let (report, ()) = futures::join!(call.execute(tool, Object::new()), canceled);
        report.outcome
    }

    #[tokio::test(start_paused = true)]
    async fn r130_a_handler_that_does_not_stop_is_cut_off_before_the_deadline() {
        let started = Instant::now();
        let outcome = canceled_within(never_stops, 1_000).await;
        assert!(matches!(outcome, CallOutcome::Canceled(fault) if fault.is(Code::ToolCanceled)));
        assert_eq!(started.elapsed(), Duration::from_millis(750));
    }

    #[tokio::test(start_paused = true)]
    async fn r130_a_handler_that_does_not_ask_is_dropped_at_once() {
        let started = Instant::now();
        let outcome = canceled_within(never_asks, 1_000).await;
        assert!(matches!(outcome, CallOutcome::Canceled(fault) if fault.is(Code::ToolCanceled)));
        assert_eq!(started.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn r131_a_canceled_call_ends_as_its_handler_says_and_never_twice() {
        let outcome = canceled_within(fails_after_cancel, 1_000).await;
        assert!(matches!(outcome, CallOutcome::Failed(fault) if fault.is(Code::ToolFailed)));
        let outcome = canceled_within(succeeds_after_cancel, 1_000).await;
        assert!(matches!(outcome, CallOutcome::Succeeded(_)));
    }
}
