//! Telling an attempt to stop.

use std::time::Duration;

use tokio::sync::watch;

/// Tells one attempt to stop, from anywhere.
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Sender<Option<Duration>>);

impl Default for StopSignal {
    fn default() -> Self {
        Self::new()
    }
}

impl StopSignal {
    /// Nobody wants the attempt to stop yet.
    #[must_use]
    pub fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// The attempt is to stop, and may take so long. Saying it again changes nothing.
    pub fn now(&self, grace: Duration) {
        self.0.send_if_modified(|wanted| {
            let first = wanted.is_none();
            wanted.get_or_insert(grace);
            first
        });
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the attempt is to stop; how long it may take.
    pub(super) async fn wanted(&self) -> Duration {
        let mut receiver = self.0.subscribe();
        match receiver.wait_for(Option::is_some).await.map(|wanted| *wanted) {
            Ok(Some(grace)) => grace,
            // This value holds a sender, so it never comes to this.
            _ => std::future::pending().await,
        }
    }
}
