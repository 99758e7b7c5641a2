//! Calls that leave the process.
//!
//! A [`Link`] is one connection to a peer. It can be made over memory ([`memory`]), a Unix socket
//! ([`unix`]), a WebSocket ([`ws`]) or server-sent events and POST ([`sse`]); all of them carry
//! the same frames. A link is a [`Transport`], so that tools are called over it, and tools can be
//! served on it with [`operative::serve`](crate::operative::serve).

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
pub use wharf_protocol::tool::{Limits, ToolAnswer as Reply};
use wharf_vocab::Micro;
pub use wharf_wire::tool_v1::{Kind, OfferedTool};

#[cfg(any(feature = "ws", feature = "sse"))]
mod address;
#[cfg(any(feature = "ws", feature = "sse"))]
mod dial;
mod lines;
mod link;
pub mod memory;
mod options;
#[cfg(feature = "sse")]
pub mod sse;
pub mod unix;
#[cfg(feature = "ws")]
pub mod ws;

#[cfg(any(feature = "ws", feature = "sse"))]
pub use address::Address;
pub(crate) use link::LinkServer;
pub use link::{Counters, Link, Named};
pub use options::Options;

use crate::calls::reached::CoreTool;
use crate::error::Error;

/// A way to whoever executes tools elsewhere.
///
/// A call without an implementation goes to the transport of the nearest scope. Most are
/// [`Link`]s; anything that can answer a request is one.
///
/// ```
/// use serde_json::json;
/// use wharf_sdk::transport::{Exchange, Outgoing, Reply};
/// use wharf_sdk::{Scope, Tool, Transport};
///
/// const LENGTH: Tool<String, usize> = Tool::new("length", "How long a text is.");
///
/// struct Elsewhere;
///
/// impl Transport for Elsewhere {
///     fn request(&self, request: Outgoing) -> Exchange {
///         let length = request.payload.as_str().map_or(0, str::len);
///         Exchange::answered(Reply::Accepted(json!(length)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let scope = Scope::root().with_transport(Elsewhere);
/// assert_eq!(LENGTH.call(&scope, "four".to_owned()).await, Ok(4));
/// # }
/// ```
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
    /// The tool of the core that is meant, if the definition says so.
    pub at: Option<Arc<CoreTool>>,
}

/// A call that was made. Dropping it calls it off.
#[derive(Debug)]
pub struct Exchange {
    /// What comes on the way to the answer.
    pub progress: mpsc::Receiver<Value>,
    /// The answer; a sender that is gone means that the connection was lost.
    pub answer: oneshot::Receiver<Reply>,
    /// What the call has cost so far.
    pub cost: Spent,
    /// What calls the request off when it is dropped before the answer has come.
    pub guard: Box<dyn Any + Send>,
}

impl Exchange {
    /// An exchange that is over before it began.
    #[must_use]
    pub fn answered(answer: Reply) -> Self {
        let (sender, receiver) = oneshot::channel();
        // The receiver is right here.
        let _ = sender.send(answer);
        let (progress, cost) = (mpsc::channel(1).1, Spent::default());
        Self { progress, answer: receiver, cost, guard: Box::new(()) }
    }
}

/// What a call has cost so far, in millionths of a dollar, as whoever executes it says. Cheap to
/// clone; all clones tell the same.
///
/// ```
/// use wharf_sdk::transport::Spent;
///
/// let spent = Spent::default();
/// spent.raise(500);
/// spent.raise(200); // What was spent stays spent.
/// assert_eq!(spent.micro(), 500);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Spent(Arc<AtomicU64>);

impl Spent {
    /// What it is now.
    #[must_use]
    pub fn micro(&self) -> Micro {
        self.0.load(Ordering::Relaxed)
    }

    /// Says what it is in all; a smaller number than before changes nothing.
    pub fn raise(&self, so_far_micro: Micro) {
        self.0.fetch_max(so_far_micro, Ordering::Relaxed);
    }
}
