//! What a tool can reach while it works on a call.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use wharf_vocab::{Code, Fault};

use crate::progress::Queue;
use crate::scope::{Inner, Place, Scope, Within};

/// A call that a tool works on: where it was made, and ways to say how it goes. Cheap to clone.
///
/// Other tools are called through it: `OTHER.call(&cx, input)`.
pub struct Cx<P = ()> {
    pub(crate) state: Arc<CallState>,
    pub(crate) queue: Option<Arc<Queue<P>>>,
}

/// What all contexts of one call share.
pub(crate) struct CallState {
    tool: &'static str,
    place: Arc<Inner>,
    cleanups: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl CallState {
    pub(crate) fn new(tool: &'static str, place: Arc<Inner>) -> Self {
        Self { tool, place, cleanups: Mutex::default() }
    }

    /// Lets everything run that was to be done at the end of the call.
    pub(crate) fn ended(&self) {
        let mut cleanups = self.cleanups.lock().unwrap_or_else(PoisonError::into_inner);
        let cleanups = std::mem::take(&mut *cleanups);
        if !cleanups.is_empty() {
            self.place.clean_up(cleanups);
        }
    }
}

impl<P> Cx<P> {
    /// The name of the tool that was called.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        self.state.tool
    }

    /// Says something on the way to the result. It waits while whoever listens is behind; when
    /// nobody listens it costs nothing.
    pub async fn progress(&self, piece: P) {
        let Some(queue) = &self.queue else { return };
        let mut piece = Some(piece);
        poll_fn(|cx| queue.poll_push(&mut piece, cx)).await;
    }

    /// Whether anybody listens to progress, for tools that would have to work for it.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.is_heard())
    }

    /// The configuration of the agent that the tool belongs to.
    pub fn config<C: Send + Sync + 'static>(&self) -> Result<Arc<C>, Fault> {
        self.state.place.config().ok_or_else(|| {
            let message = format!(
                "The tool {:?} was called outside an agent with such a configuration.",
                self.state.tool
            );
            Fault::new(Code::ConfigInvalid, message)
        })
    }

    /// A new scope below the one in which the tool was called.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::below(&self.state.place)
    }

    /// Does this when the call is over, however it ends: also when it is called off. Closing the
    /// scope waits for it.
    pub fn at_end(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut cleanups = self.state.cleanups.lock().unwrap_or_else(PoisonError::into_inner);
        cleanups.push(Box::pin(work));
    }
}

impl<P> Clone for Cx<P> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), queue: self.queue.clone() }
    }
}

impl<P> fmt::Debug for Cx<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("tool", &self.state.tool).finish_non_exhaustive()
    }
}

impl<P> Within for Cx<P> {
    fn place(&self) -> Place {
        Place(Arc::clone(&self.state.place))
    }
}
