//! Calls that leave the process.

use std::any::Any;
use std::borrow::Cow;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
pub use wharf_protocol::tool::Answer;
pub use wharf_wire::tool_v1::Kind;

/// A way to whoever executes tools elsewhere.
///
/// A call without an implementation goes to the transport of the nearest scope.
pub trait Transport: Send + Sync + 'static {
    /// Makes a call. It must not block; whatever goes wrong is said by the answer.
    fn request(&self, request: Outgoing) -> Exchange;
}

/// A call on its way out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// Whether a value is waited for, or only that it arrived.
    pub kind: Kind,
    /// The tool or method.
    pub method: Cow<'static, str>,
    /// The input.
    pub payload: Value,
    /// Whether anybody listens to progress.
    pub heard: bool,
}

/// A call that was made. Dropping it calls it off.
pub struct Exchange {
    /// What comes on the way to the answer.
    pub progress: mpsc::Receiver<Value>,
    /// The answer; a sender that is gone means that the connection was lost.
    pub answer: oneshot::Receiver<Answer>,
    /// What calls the request off when it is dropped before the answer has come.
    pub guard: Box<dyn Any + Send>,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").finish_non_exhaustive()
    }
}

impl Exchange {
    /// An exchange that is over before it began.
    #[must_use]
    pub fn answered(answer: Answer) -> Self {
        let (sender, receiver) = oneshot::channel();
        // The receiver is right here.
        let _ = sender.send(answer);
        Self { progress: mpsc::channel(1).1, answer: receiver, guard: Box::new(()) }
    }
}
