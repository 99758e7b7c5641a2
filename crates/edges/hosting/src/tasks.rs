//! Tasks that go on beside connections.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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

/// Does what may wait for the disk and hardly ever does, where it is. Making way for other tasks
/// costs many times what a look at a file does, so that is done only for work that took long the
/// last time, or beside other such work: at most one thread of several can be held up so.
#[derive(Debug)]
pub(crate) struct InPlace {
    /// Whether it took long the last time.
    slow: AtomicBool,
    /// Whether somebody does such work now without making way.
    at_work: &'static AtomicBool,
}

/// How long such work may take before others must be able to go on meanwhile.
const QUICK: Duration = Duration::from_millis(1);

impl Default for InPlace {
    fn default() -> Self {
        static AT_WORK: AtomicBool = AtomicBool::new(false);
        Self { slow: AtomicBool::new(false), at_work: &AT_WORK }
    }
}

impl InPlace {
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let runtime = tokio::runtime::Handle::current();
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            return work();
        }
        let started = Instant::now();
        let may_stay = runtime.metrics().num_workers() > 1 && !self.slow.load(Ordering::Relaxed);
        let stay = may_stay.then(|| Stay::begin(self.at_work)).flatten();
        let done = match stay {
            Some(_stay) => work(),
            None => tokio::task::block_in_place(work),
        };
        self.slow.store(started.elapsed() > QUICK, Ordering::Relaxed);
        done
    }
}

/// Held by the one who works without making way.
struct Stay(&'static AtomicBool);

impl Stay {
    fn begin(at_work: &'static AtomicBool) -> Option<Self> {
        (!at_work.swap(true, Ordering::Acquire)).then_some(Self(at_work))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Does what waits for the disk on a thread that may wait.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let failed = || Fault::new(Code::CoreInternal, "A file operation failed unexpectedly.");
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(failed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    static AT_WORK: AtomicBool = AtomicBool::new(false);

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_that_took_long_or_is_not_alone_makes_way() {
        let place = InPlace { slow: AtomicBool::new(false), at_work: &AT_WORK };
        place.run(|| std::thread::sleep(2 * QUICK));
        assert!(place.slow.load(Ordering::Relaxed), "it took long");
        place.run(|| assert!(Stay::begin(&AT_WORK).is_some(), "it makes way"));
        let began = Instant::now();
        while place.slow.load(Ordering::Relaxed) {
            assert!(began.elapsed() < Duration::from_secs(20), "nothing is never quick");
            place.run(|| ());
        }
        place.run(|| {
            assert!(Stay::begin(&AT_WORK).is_none(), "it stays");
            // What comes beside it makes way, and ends.
            InPlace { slow: AtomicBool::new(false), at_work: &AT_WORK }.run(|| ());
        });
        assert!(Stay::begin(&AT_WORK).is_some(), "nobody is at work any more");
    }
}
