//! The messages on the socket.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;

/// What the core says. Optional fields are left out, never null.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CoreMessage {
    /// A question; answered by [`OperatorMessage::Answer`].
    Ask {
        /// Names the request; the reply carries it.
        req_id: String,
        /// The request of the same run that is being answered meanwhile.
        parent_req_id: Option<String>,
        /// The attempt's task.
        task_id: String,
        /// What is asked: text, or an object with `title` and `schema`.
        question: Value,
        /// What is added to every request.
        #[serde(flatten)]
        pending: Pending,
    },
    /// A run is about to be handed out; answered by [`OperatorMessage::HookAck`].
    HookBefore {
        /// Names the request; the reply carries it.
        req_id: String,
        /// The request of the same run that is being answered meanwhile.
        parent_req_id: Option<String>,
        /// The attempt's task.
        task_id: String,
        /// The tool.
        agent: String,
        /// Which attempt, from 1.
        attempt: u32,
        /// What is added to every request.
        #[serde(flatten)]
        pending: Pending,
    },
    /// An attempt ended that the seat let pass. Nobody waits for an answer.
    HookAfter {
        /// Names the message.
        req_id: String,
        /// The request of the same run that is being answered meanwhile.
        parent_req_id: Option<String>,
        /// The attempt's task.
        task_id: String,
        /// The tool.
        agent: String,
        /// Which attempt, from 1.
        attempt: u32,
        /// What came of it: outputs, `{"error": …}`, or `{"omitted": …}` if it is too large.
        result: Value,
        /// An addition: the run.
        run_id: Option<String>,
        /// An addition: whether it was sent before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        redelivered: bool,
    },
    /// An attempt that the seat is to execute; answered by [`OperatorMessage::SpawnAck`] or
    /// [`OperatorMessage::SpawnHalt`], or by the worker over HTTP.
    Spawn {
        /// Names the request; the reply carries it.
        req_id: String,
        /// The request of the same run that is being answered meanwhile.
        parent_req_id: Option<String>,
        /// The attempt's task.
        task_id: String,
        /// What is to be executed.
        agent: String,
        /// Which attempt, from 1.
        attempt: u32,
        /// The worker's right to this attempt, in long form.
        capability_token: String,
        /// The same right in short form.
        worker_handle: Option<String>,
        /// What kind of worker is wanted.
        worker: Option<WorkerKind>,
        /// What to do now, for a model that reads it.
        directive: String,
        /// An addition: the place of the attempt in its trace, as W3C Trace Context writes it.
        traceparent: Option<String>,
        /// An addition: what tracing systems add to that for each other.
        tracestate: Option<String>,
        /// What is added to every request.
        #[serde(flatten)]
        pending: Pending,
    },
    /// An addition: a request needs no answer any more; a worker that runs for it is to stop.
    Cancel {
        /// The request.
        req_id: String,
        /// The attempt's task.
        task_id: String,
        /// Why.
        reason: String,
    },
    /// An addition: something the operator sent was not understood or not allowed.
    Error {
        /// The request it was about, as far as that is known.
        req_id: Option<String>,
        /// A stable code.
        code: String,
        /// One sentence.
        message: String,
    },
}

impl CoreMessage {
    /// The request that the message is about.
    #[must_use]
    pub fn req_id(&self) -> Option<&str> {
        match self {
            Self::Ask { req_id, .. }
            | Self::HookBefore { req_id, .. }
            | Self::HookAfter { req_id, .. }
            | Self::Spawn { req_id, .. }
            | Self::Cancel { req_id, .. } => Some(req_id),
            Self::Error { req_id, .. } => req_id.as_deref(),
        }
    }
}

/// What is added to requests that wait for an answer.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// How long an answer is waited for, in milliseconds from now.
    pub deadline_ms: Option<u64>,
    /// The run.
    pub run_id: Option<String>,
    /// The world of the run.
    pub world: Option<String>,
    /// Whether it was sent before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redelivered: bool,
    /// The files that the run is bound to: these and no others are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PendingFile>,
}

/// A file that a run is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingFile {
    /// The input that it is.
    pub name: String,
    /// Its path in the world.
    pub path: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their BLAKE3 hash, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b3: Option<String>,
}

/// What kind of worker a spawn asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerKind {
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Tools it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// What an operator says.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OperatorMessage {
    /// Answers a question.
    Answer {
        /// The request.
        req_id: String,
        /// The answer.
        value: Value,
    },
    /// Lets a run pass, or not.
    HookAck {
        /// The request.
        req_id: String,
        /// Whether it may pass.
        ok: bool,
        /// Why not.
        reason: Option<String>,
    },
    /// Says what came of a spawn. An empty value leaves that to the worker.
    SpawnAck {
        /// The request.
        req_id: String,
        /// The result.
        #[serde(default)]
        value: Value,
        /// Whether it went well.
        #[serde(default = "yes")]
        ok: bool,
        /// What went wrong.
        error: Option<String>,
        /// What the worker used up.
        stats: Option<Value>,
    },
    /// Ends a run for good: it failed and is not tried again.
    SpawnHalt {
        /// The request.
        req_id: String,
        /// What there is of a result.
        value: Option<Value>,
        /// Why.
        reason: Option<String>,
    },
}

fn yes() -> bool {
    true
}

impl OperatorMessage {
    /// The request it answers.
    #[must_use]
    pub fn req_id(&self) -> &str {
        match self {
            Self::Answer { req_id, .. }
            | Self::HookAck { req_id, .. }
            | Self::SpawnAck { req_id, .. }
            | Self::SpawnHalt { req_id, .. } => req_id,
        }
    }
}
