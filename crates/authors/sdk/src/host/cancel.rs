//! How a call is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wharf_vocab::{Code, Executed, Fault};

/// How a call is told to stop. Cheap to clone.
///
/// A call that is canceled is dropped where it waits. A tool that wants to end by itself asks its
/// [`Cx`](crate::Cx) whether it is canceled; from then on it is given time to do so.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<CancelState>);

#[derive(Debug)]
struct CancelState {
    token: CancellationToken,
    /// How long a tool may go on that ends by itself.
    grace_ms: AtomicU64,
    /// Whether the tool asked for it.
    is_heeded: AtomicBool,
}

impl Cancel {
    /// A call that is told to stop by this token, and that may go on for so long then.
    #[must_use]
    pub fn new(token: CancellationToken, grace_ms: u64) -> Self {
        let is_heeded = AtomicBool::new(false);
        Self(Arc::new(CancelState { token, grace_ms: grace_ms.into(), is_heeded }))
    }

    /// Tells the call to stop within this time, so that its result is still wanted.
    pub(crate) fn cancel(&self, within_ms: u64) {
        // A quarter is left for the way back.
        self.0.grace_ms.fetch_min(within_ms - within_ms / 4, Ordering::Relaxed);
        self.0.token.cancel();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.token.is_cancelled()
    }

    /// The token, for whoever stops waiting but does not end the tool.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.0.token
    }

    /// The token, for a tool that ends by itself.
    pub(crate) fn heed(&self) -> &CancellationToken {
        self.0.is_heeded.store(true, Ordering::Relaxed);
        &self.0.token
    }

    /// Waits until the tool is to be dropped, and says why.
    pub(crate) async fn cut_off(&self) -> Fault {
        self.0.token.cancelled().await;
        let message = if self.0.is_heeded.load(Ordering::Relaxed) {
            let grace_ms = self.0.grace_ms.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(grace_ms)).await;
            "The call was canceled; the tool did not stop by itself and was cut off."
        } else {
            "The call was canceled."
        };
        Fault::new(Code::ToolCanceled, message).executed(Executed::Maybe)
    }
}

/// The fault of a call that is canceled.
pub(crate) fn canceled() -> Fault {
    Fault::new(Code::ToolCanceled, "The call was canceled.")
}
