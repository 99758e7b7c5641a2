//! The messages between server, keeper and worker.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use wharf_vocab::{Object, StepName};
use wharf_wire::run_v1::Mode;

/// What a server tells a worker.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum ToWorker<'a> {
    /// The run; comes first.
    Start {
        payload: Payload<'a>,
        /// Inputs that refer to files.
        refs: Vec<&'a str>,
        /// Where the worker puts files that it wants written.
        #[serde(skip_serializing_if = "Option::is_none")]
        folder: Option<PathBuf>,
        /// The longest line that is read from the worker.
        line_bytes_max: usize,
        /// How it is kept apart from others, if it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        apart: Option<FolderView>,
    },
    /// Stop soon.
    Cancel,
    /// The answer to a fetch.
    Fetched { id: u64, path: PathBuf, bytes: u64 },
    /// The answer to a put.
    Written { id: u64, bytes: u64, b3: String },
    /// The answer to a step: what a tool gave, or the value that is kept if one is.
    Stepped {
        id: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        outputs: Option<Object>,
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// The answer to any of them, if it cannot be done.
    Refused { id: u64, code: String, message: String },
}

/// What a worker sees of folders that runs share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FolderView {
    /// Nothing in these,
    pub(super) hidden: Vec<PathBuf>,
    /// but all of these,
    pub(super) own: Vec<PathBuf>,
    /// and these to read.
    pub(super) readable: Vec<PathBuf>,
}

/// The run as handlers see it.
#[derive(Debug, Serialize)]
pub(super) struct Payload<'a> {
    pub(super) run_id: &'a str,
    pub(super) mode: Mode,
    pub(super) inputs: &'a Object,
    pub(super) outputs: &'a Object,
    pub(super) attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) traceparent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tracestate: Option<&'a str>,
    /// Whether steps of the handler's code are done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) steps: bool,
}

/// What a worker tells its server.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum FromWorker {
    /// A frame of the run protocol: a Log, an Event or a partial Response.
    Emit { frame: Value },
    /// What the run has cost so far, in all.
    Cost { cost: Value },
    /// Bring the file that an input refers to.
    Fetch { id: u64, key: String },
    /// Write an output: a file in the run's folder, or a value.
    Put {
        id: u64,
        key: String,
        #[serde(default)]
        path: Option<PathBuf>,
        #[serde(default, deserialize_with = "present")]
        value: Option<Value>,
    },
    /// Do a step of the handler's code: call a tool, or keep a value and say which is kept.
    Step {
        id: u64,
        step: StepName,
        #[serde(default)]
        tool: Option<String>,
        #[serde(default)]
        inputs: Object,
        #[serde(default, deserialize_with = "present")]
        value: Option<Value>,
    },
    /// The run succeeded.
    Done {
        result: Object,
        #[serde(default)]
        cost: Option<Value>,
    },
    /// The run failed.
    Failed {
        code: String,
        message: String,
        #[serde(default)]
        detail: String,
        #[serde(default)]
        cost: Option<Value>,
    },
    /// Something for the server's log only.
    Trouble { detail: String },
    /// From a newer worker.
    #[serde(other)]
    Unknown,
}

/// A value that is there, be it null.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// What a keeper tells the server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum News {
    /// The run's process exists.
    Started { pid: i32, keeper: i32 },
    /// It ended, and nothing is left of the run.
    Exited(ProcessExit),
    /// It could not be made.
    Lost(String),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProcessExit {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// What the parent of workers tells the server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ParentGreeting {
    /// It has imported the handler and can fork.
    Ready {
        python: String,
        /// Threads that the handler file started.
        #[serde(default)]
        threads: u32,
    },
    /// It cannot serve.
    Failed { message: String, detail: String },
}

/// What a keeper is asked to start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeeperOrder {
    pub(super) argv: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) environment: Vec<(OsString, OsString)>,
    /// How it is kept apart from others, if it is.
    pub(super) apart: Option<FolderView>,
}

/// Tells a keeper to send SIGTERM to the run's processes. Any other byte, and the end of the
/// socket, mean that all of them are to be killed.
pub(super) const STOP: u8 = b'T';
/// Tells a keeper to kill.
pub(super) const KILL: u8 = b'K';
