//! Whoever serves tools, as the tools see it.

use serde_json::Value;
use tokio::sync::mpsc;
use wharf_vocab::{Fault, Micro, Object};

use super::Reached;
use crate::builtin::{Notice, Question, Reply};

/// Whoever serves a call: where its progress goes, and what it can reach.
///
/// Faces of one's own implement this and pass it to [`Served::call`](super::Served::call).
pub trait Host: Clone + Send + Sync + 'static {
    /// Shows a piece of progress. An error means that nobody wants more of it.
    fn progress(&self, piece: Value) -> impl Future<Output = Result<(), Fault>> + Send {
        drop(piece);
        std::future::ready(Ok(()))
    }

    /// Counts what the call costs.
    fn spent(&self, micro: Micro) {
        let _ = micro;
    }

    /// Waits until nobody wants the call any more. It is dropped then, and whatever it wanted
    /// done at its end is waited for.
    fn stopped(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Asks a question. Every way in which it can end is a value; only trouble is an error.
    fn ask(self, question: Question) -> impl Future<Output = Result<Reply, Fault>> + Send;

    /// Passes a message on.
    fn tell(self, notice: Notice) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Calls a tool of the core.
    fn call(self, errand: Errand) -> impl Future<Output = Result<Object, Fault>> + Send;

    /// The tool of the core that a name stands for, where that can be found out.
    fn find(&self, name: &str) -> Option<Reached> {
        let _ = name;
        None
    }

    /// The tool of the core that completes prompts.
    fn model(&self) -> String {
        "wharf/sample".to_owned()
    }
}

/// A call of a tool of the core.
#[derive(Debug)]
pub struct Errand {
    /// The tool's id.
    pub tool: String,
    /// Its input.
    pub input: Object,
    /// Where its progress goes.
    pub told: mpsc::Sender<Value>,
}
