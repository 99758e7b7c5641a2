//! Calling other tools through the core.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use wharf_protocol::agent::{CallOutcome, InvokeRequest, SendError};
use wharf_vocab::{Code, Fault, Object};
use wharf_wire::agent_v1::{Chunk, InvokeId};

use super::{AgentCx, canceled, internal, whole_ms};
use crate::process::connection::Command;

/// Pieces of output that wait for whoever reads them; what comes on top is dropped.
const CHUNKS_WAITING_MAX: usize = 256;

/// Who waits for a call that was made through the core.
#[derive(Debug)]
pub(crate) struct InvokeWaiter {
    pub(crate) chunks: mpsc::Sender<Chunk>,
    pub(crate) end: oneshot::Sender<CallOutcome>,
}

/// A call of another tool before it is made. [`AgentCx::calling`] begins one.
#[derive(Debug, Clone)]
#[must_use = "nothing is called before `start`"]
pub struct Calling {
    cx: AgentCx,
    tool: String,
    timeout: Option<Duration>,
    key: Option<String>,
}

/// A call of another tool that is under way. Dropping it calls it off.
#[derive(Debug)]
pub struct Called {
    cx: AgentCx,
    invoke_id: InvokeId,
    chunks: mpsc::Receiver<Chunk>,
    /// Gone once the end is known.
    end: Option<oneshot::Receiver<CallOutcome>>,
}

impl AgentCx {
    /// Calls another tool and waits for its output. The agent needs the owner's permission for
    /// it: `tool:invoke:` and the tool's id or a pattern. The call belongs to this one: it ends
    /// when this one does, and what it costs counts for both.
    ///
    /// ```
    /// use serde::Deserialize;
    /// use serde_json::json;
    /// use wharf_sdk::process::AgentCx;
    /// use wharf_sdk::Fault;
    ///
    /// #[derive(Deserialize)]
    /// struct Greeting { greeting: String }
    ///
    /// async fn greet(cx: &AgentCx) -> Result<String, Fault> {
    ///     let input = json!({"name": "Ada"});
    ///     let said: Greeting = cx.call("dev.wharf.hello/hello_world", &input).await?;
    ///     Ok(said.greeting)
    /// }
    /// ```
    pub async fn call<O: DeserializeOwned>(
        &self,
        tool: impl Into<String>,
        input: &impl Serialize,
    ) -> Result<O, Fault> {
        self.calling(tool).start(input).await?.output().await
    }

    /// Begins a call of another tool with a time limit, a key, or an eye on its progress.
    ///
    /// ```
    /// use std::time::Duration;
    /// use serde_json::{Value, json};
    /// use wharf_sdk::process::{AgentCx, Chunk};
    /// use wharf_sdk::Fault;
    ///
    /// async fn count(cx: &AgentCx) -> Result<Value, Fault> {
    ///     let mut call = cx
    ///         .calling("dev.wharf.hello/stream_counter")
    ///         .timeout(Duration::from_secs(10))
    ///         .start(&json!({"n": 3}))
    ///         .await?;
    ///     while let Some(piece) = call.next().await {
    ///         if let Chunk::Text { text, .. } = piece {
    ///             cx.text(text).await?;
    ///         }
    ///     }
    ///     call.output().await
    /// }
    /// ```
    pub fn calling(&self, tool: impl Into<String>) -> Calling {
        Calling { cx: self.clone(), tool: tool.into(), timeout: None, key: None }
    }
}

impl Calling {
    /// How long the tool may take; the core's own limit holds besides.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A key under which the tool is called once for this run, however often this is tried.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Makes the call. The input has to be a JSON object.
    pub async fn start(self, input: &impl Serialize) -> Result<Called, Fault> {
        let Ok(Value::Object(input)) = serde_json::to_value(input) else {
            let message = "The input of a tool has to be a JSON object.";
            return Err(Fault::new(Code::ToolInternal, message));
        };
        let invoke_id = InvokeId::new(self.cx.fresh_id()).map_err(|_| internal())?;
        let (chunks, receiver) = mpsc::channel(CHUNKS_WAITING_MAX);
        let (end, ended) = oneshot::channel();
        let called = Called {
            cx: self.cx.clone(),
            invoke_id: invoke_id.clone(),
            chunks: receiver,
            end: Some(ended),
        };
        let request = Box::new(InvokeRequest {
            invoke_id,
            parent_call_id: self.cx.inner.call.call_id.clone(),
            tool_id: self.tool,
            input,
            timeout_ms: self.timeout.map(whole_ms),
            idempotency_key: self.key,
        });
        let waiter = InvokeWaiter { chunks, end };
        self.cx.send(|taken| Command::Invoke { request, waiter, taken }).await?;
        Ok(called)
    }
}

impl Called {
    /// The next piece of output; `None` when the tool has ended or this call is canceled. Pieces
    /// that come faster than they are taken are dropped.
    pub async fn next(&mut self) -> Option<Chunk> {
        self.cx.until_cancelled(self.chunks.recv()).await.ok().flatten()
    }

    /// Waits for the end. A failure of the tool is passed on with its code.
    pub async fn output<O: DeserializeOwned>(mut self) -> Result<O, Fault> {
        // Output that nobody reads need not be kept.
        self.chunks.close();
        let output = match self.end().await? {
            CallOutcome::Succeeded(output) => output,
            CallOutcome::Failed(fault) => return Err(fault),
            // This call was not canceled, so it fails if it has nothing else to try.
            CallOutcome::Canceled(fault) => return Err(fault),
        };
        read(output)
    }

    async fn end(&mut self) -> Result<CallOutcome, Fault> {
        let Some(end) = &mut self.end else { return Err(internal()) };
        let ended = self.cx.inner.cancel.token().run_until_cancelled(end).await;
        let ended = ended.ok_or_else(canceled)?;
        self.end = None;
        // The connection is gone, or the core could not take the call.
        ended.map_err(|_| canceled())
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        if self.end.is_none() {
            return;
        }
        let command = Command::TakeBack { invoke_id: self.invoke_id.clone() };
        let commands = self.cx.inner.commands.clone();
        if let Err(mpsc::error::TrySendError::Full(command)) = commands.try_send(command)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // When the connection is gone there is nothing to call off.
            runtime.spawn(async move { drop(commands.send(command).await) });
        }
    }
}

fn read<O: DeserializeOwned>(output: Object) -> Result<O, Fault> {
    // The reader's own text can quote the value, so only the place is told.
    serde_path_to_error::deserialize(Value::Object(output)).map_err(|error| {
        let message = format!("The tool gave an output that does not fit at {}.", error.path());
        Fault::new(Code::ToolFailed, message)
    })
}

/// What a waiter is told of a call that could not be made.
pub(crate) type Taken = oneshot::Sender<Result<(), SendError>>;
