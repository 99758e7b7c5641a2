//! Whoever serves a call, as its tool sees it.
//!
//! The same tools can be served as an agent process ([`process`](crate::process)), as a tool
//! server (`toolserver`), as an operative ([`operative`](crate::operative)) or by a core in the
//! same program (the crate `wharf-embedded`). Each of them is a [`Host`]: whatever a tool wants
//! while it works goes there through its [`Cx`](crate::Cx), so a tool need not know how it is
//! served. What a way of serving lacks fails with `tool.unavailable` and says so.
//!
//! A way of serving of one's own implements [`Host`] and calls [`ServedTool::call`].
//!
//! ```
//! use serde_json::json;
//! use wharf_sdk::{Cx, Fault, Scope, Tool, host};
//!
//! const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.").side_effects(false);
//!
//! let root = Scope::root();
//! root.provide(&DOUBLE, |n: u32, _cx: Cx| async move { Ok::<_, Fault>(2 * n) }).unwrap();
//! // Values that are no objects have the one key `value`.
//! let tool = &host::served(&root)[0];
//! assert_eq!(tool.name(), "double");
//! assert_eq!(tool.input_schema()["required"], json!(["value"]));
//! ```

mod bridge;
mod cancel;
pub mod file;
mod info;
mod served;
mod steps;

pub use crate::calls::reached::CoreTool;
pub use bridge::Bridge;
pub use cancel::Cancel;
pub(crate) use cancel::canceled;
pub use info::CallInfo;
pub use served::{ServedTool, served, served_by_name};
pub use steps::StepNames;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;
use wharf_vocab::{Code, Executed, Fault, Micro, Object, StepName};
use wharf_wire::agent_v1::Chunk;

use crate::builtin::{Answer, Notice, Question};
use crate::host::file::Files;

/// Whoever serves a call: where its progress goes, and what it can reach.
pub trait Host: Send + Sync + 'static {
    /// Shows a piece of typed progress. An error means that nobody wants more of it.
    fn progress(&self, _piece: Value) -> BoxFuture<'_, Result<(), Fault>> {
        done(Ok(()))
    }

    /// Shows text, a status or a partial output. Without a place for it, it is dropped.
    fn stream(&self, _chunk: Chunk) -> BoxFuture<'_, Result<(), Fault>> {
        done(Ok(()))
    }

    /// Counts what the call costs.
    fn spend(&self, _micro: Micro) {}

    /// Adds a figure to the call's result.
    fn metric(&self, _name: String, _value: Value) {}

    /// How the call is told to stop. Without it, a call is stopped by dropping it.
    fn cancel(&self) -> Option<&Cancel> {
        None
    }

    /// What is known of the call.
    fn info(&self) -> Arc<CallInfo> {
        Arc::default()
    }

    /// The files of the call.
    fn files(&self) -> Option<&dyn Files> {
        None
    }

    /// Asks a question. Every way in which it can end is a value; only trouble is an error.
    fn ask(&self, _question: Question) -> BoxFuture<'_, Result<Answer, Fault>> {
        done(Err(unavailable("ask a question")))
    }

    /// Passes a message on.
    fn notify(&self, _notice: Notice) -> BoxFuture<'_, Result<(), Fault>> {
        done(Err(unavailable("tell something")))
    }

    /// Calls a tool of the core.
    fn call(&self, request: CallRequest) -> BoxFuture<'_, Result<Object, Fault>> {
        done(Err(unavailable(&format!("call {}", request.tool))))
    }

    /// The names of the steps that the call's durable code has used, where steps are kept.
    fn steps(&self) -> Option<&StepNames> {
        None
    }

    /// The value that is kept under the name of a step; if none is, this one is kept.
    fn keep(
        &self,
        _step: StepName,
        _value: Option<Value>,
    ) -> BoxFuture<'_, Result<Option<Value>, Fault>> {
        done(Err(unavailable("keep a value")))
    }

    /// What `cx.now()` tells when the code comes there first.
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// The tool of the core that a definition without an implementation stands for. `at` is what
    /// the definition says itself, by [`Tool::at`](crate::Tool::at).
    fn find(&self, _name: &str, at: Option<&CoreTool>) -> Option<CoreTool> {
        at.cloned()
    }

    /// The tool of the core that completes prompts.
    fn model(&self) -> String {
        "wharf/sample".to_owned()
    }
}

/// A call of a tool of the core.
#[derive(Debug)]
pub struct CallRequest {
    /// The tool's id.
    pub tool: String,
    /// Its input.
    pub input: Object,
    /// How long it may take; the core's own limit holds besides.
    pub timeout: Option<Duration>,
    /// The key under which it is made once for this run.
    pub idempotency_key: Option<String>,
    /// Which step of the call's durable code it is, if it is one.
    pub step: Option<StepName>,
    /// Where its output goes before it ends.
    pub chunks: mpsc::Sender<Chunk>,
}

/// The host of a call, as the scope of the call holds it.
pub(crate) struct HostHandle(pub(crate) Arc<dyn Host>);

fn done<T: Send + 'static>(result: Result<T, Fault>) -> BoxFuture<'static, Result<T, Fault>> {
    Box::pin(std::future::ready(result))
}

/// The fault of a tool that wants something of a core that cannot be reached.
pub(crate) fn unavailable(what: &str) -> Fault {
    let message = format!(
        "The tool cannot {what}, because the way in which it is served has no way back to the core; \
         serve it as an agent process, as an operative or embedded."
    );
    Fault::new(Code::ToolUnavailable, message).executed(Executed::Maybe)
}

/// The fault of a tool that wants files where there are none.
pub(crate) fn no_files() -> Fault {
    let message = "The tool cannot use files the way in which it is served; serve it as an agent \
                   process or as a tool server.";
    Fault::new(Code::ToolUnavailable, message).executed(Executed::Maybe)
}
