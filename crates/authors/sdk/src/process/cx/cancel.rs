//! How a call is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

/// How a call is told to stop, and within which time.
#[derive(Debug, Clone)]
pub(crate) struct Cancel {
    token: CancellationToken,
    grace_ms: Arc<AtomicU64>,
}

impl Cancel {
    pub(crate) fn new(token: CancellationToken, grace_ms: u64) -> Self {
        Self { token, grace_ms: Arc::new(AtomicU64::new(grace_ms)) }
    }

    /// Tells the call to stop within this time, so that its result is still wanted.
    pub(crate) fn cancel(&self, within_ms: u64) {
        // A quarter is left for the way back.
        self.grace_ms.fetch_min(within_ms - within_ms / 4, Ordering::Relaxed);
        self.token.cancel();
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(crate) fn grace_ms(&self) -> u64 {
        self.grace_ms.load(Ordering::Relaxed)
    }
}
