//! Calling tools of the core by their ids.

use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;
use wharf_vocab::{Code, Fault, Object};
use wharf_wire::agent_v1::Chunk;

use super::Cx;
use crate::host::{CallRequest, unavailable};

/// Pieces of output that wait for whoever reads them; what comes on top is dropped.
const CHUNKS_WAITING_MAX: usize = 256;

/// A call of a tool by its id, before it is made. [`Cx::calling`] begins one.
#[derive(Debug, Clone)]
#[must_use = "nothing is called before `start`"]
pub struct CallBuilder<P> {
    cx: Cx<P>,
    tool: String,
    timeout: Option<Duration>,
    idempotency_key: Option<String>,
}

/// A call of a tool by its id that is under way. Dropping it calls it off.
#[must_use = "the call goes on only while it is awaited"]
pub struct RunningCall {
    chunks: mpsc::Receiver<Chunk>,
    stage: HostCallStage,
}

enum HostCallStage {
    Running(BoxFuture<'static, Result<Object, Fault>>),
    Ended(Result<Object, Fault>),
}

impl<P> Cx<P> {
    /// Calls a tool of the core by its id and waits for its output. An agent process needs the
    /// owner's permission for it: `tool:invoke:` and the tool's id or a pattern. The call belongs
    /// to this one: it ends when this one does, and what it costs counts for both.
    ///
    /// A tool that is known when the program is written is better called by a definition that
    /// says [where it is](crate::Tool::at): that checks its types.
    ///
    /// ```
    /// use serde::Deserialize;
    /// use serde_json::json;
    /// use wharf_sdk::{Cx, Fault};
    ///
    /// #[derive(Deserialize)]
    /// struct Greeting { greeting: String }
    ///
    /// async fn greet(cx: &Cx) -> Result<String, Fault> {
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
        self.calling(tool).start(input)?.output().await
    }

    /// Begins a call of a tool by its id with a time limit, a key, or an eye on its progress.
    ///
    /// ```
    /// use std::time::Duration;
    /// use serde_json::{Value, json};
    /// use wharf_sdk::{Chunk, Cx, Fault};
    ///
    /// async fn count(cx: &Cx) -> Result<Value, Fault> {
    ///     let mut call = cx
    ///         .calling("dev.wharf.hello/stream_counter")
    ///         .timeout(Duration::from_secs(10))
    ///         .start(&json!({"n": 3}))?;
    ///     while let Some(piece) = call.next().await {
    ///         if let Chunk::Text { text, .. } = piece {
    ///             cx.text(text).await?;
    ///         }
    ///     }
    ///     call.output().await
    /// }
    /// ```
    pub fn calling(&self, tool: impl Into<String>) -> CallBuilder<P> {
        CallBuilder { cx: self.clone(), tool: tool.into(), timeout: None, idempotency_key: None }
    }
}

impl<P> CallBuilder<P> {
    /// How long the tool may take; the core's own limit holds besides.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A key under which the tool is called once for this run, however often this is tried.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Prepares the call, which begins when it is awaited or listened to. The input has to be a
    /// JSON object.
    pub fn start(self, input: &impl Serialize) -> Result<RunningCall, Fault> {
        let Ok(Value::Object(input)) = serde_json::to_value(input) else {
            let message = "The input of a tool has to be a JSON object.";
            return Err(Fault::new(Code::ToolInternal, message));
        };
        let host = self.cx.hosted().ok_or_else(|| unavailable("call a tool of the core"))?;
        let (sender, chunks) = mpsc::channel(CHUNKS_WAITING_MAX);
        let request = CallRequest {
            tool: self.tool,
            input,
            timeout: self.timeout,
            idempotency_key: self.idempotency_key,
            step: None,
            chunks: sender,
        };
        let work = Box::pin(async move { host.0.call(request).await });
        Ok(RunningCall { chunks, stage: HostCallStage::Running(work) })
    }
}

impl RunningCall {
    /// The next piece of output; `None` when the tool has ended. Pieces that come faster than
    /// they are taken are dropped.
    pub async fn next(&mut self) -> Option<Chunk> {
        if let HostCallStage::Running(work) = &mut self.stage {
            tokio::select! {
                biased;
                Some(chunk) = self.chunks.recv() => return Some(chunk),
                result = work => self.stage = HostCallStage::Ended(result),
            }
        }
        self.chunks.try_recv().ok()
    }

    /// Waits for the end. A failure of the tool is passed on with its code.
    pub async fn output<O: DeserializeOwned>(mut self) -> Result<O, Fault> {
        // Output that nobody reads need not be kept.
        self.chunks.close();
        let output = match self.stage {
            HostCallStage::Running(work) => work.await?,
            HostCallStage::Ended(result) => result?,
        };
        // The reader's own text can quote the value, so only the place is told.
        serde_path_to_error::deserialize(Value::Object(output)).map_err(|error| {
            let message = format!("The tool gave an output that does not fit at {}.", error.path());
            Fault::new(Code::ToolFailed, message)
        })
    }
}

debug_only!(RunningCall:);
