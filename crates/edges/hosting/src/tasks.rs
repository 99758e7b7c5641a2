//! Tasks that go on beside connections.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::RuntimeFlavor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_vocab::{Code, Fault};

/// How long the end of an edge waits for what still goes on. What takes longer is left to the end
/// of the process.
const FINISH_PATIENCE: Duration = Duration::from_secs(5);

/// Tasks that go on beside connections. The end of an edge waits for them, and a panic in one is
/// noticed.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    ending: CancellationToken,
}

impl Tasks {
    /// Lets something go on by itself; `what` names it in the log.
    pub fn spawn(&self, what: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                tracing::error!(what, "a task panicked");
            }
        });
    }

    /// Lets something go on that is dropped when the edge ends, such as talking to a stranger.
    pub fn spawn_until_end(
        &self,
        what: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let ending = self.ending.clone();
        self.spawn(what, async move {
            ending.run_until_cancelled_owned(work).await;
        });
    }

    /// Waits until all that goes on has ended, but not for ever.
    pub async fn finish(&self) {
        self.ending.cancel();
        self.tracker.close();
        if tokio::time::timeout(FINISH_PATIENCE, self.tracker.wait()).await.is_err() {
            tracing::warn!(count = self.tracker.len(), "tasks go on although their edge has ended");
        }
    }
}

/// Does what may wait for the disk and hardly ever does. Other tasks go on meanwhile, where there
/// is more than one thread for them.
pub(crate) fn in_place<T>(work: impl FnOnce() -> T) -> T {
    match tokio::runtime::Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Does what waits for the disk on a thread that may wait.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let failed = || Fault::new(Code::CoreInternal, "A file operation failed unexpectedly.");
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(failed()))
}
