//! So many calls at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, TryAcquireError};
use wharf_vocab::{Code, Executed, Fault};

use crate::{AnyLayer, Around};

/// Lets so many calls through at once; the others wait in the order in which they came. When the
/// line is full, the next call fails with `tool.busy`.
///
/// Clones share the limit.
///
/// ```
/// use wharf_sdk::Scope;
/// use wharf_sdk::layers::Concurrency;
///
/// let scope = Scope::root();
/// // Four at once, a hundred in line.
/// scope.around_all(Concurrency::of(4).waiting(100));
/// ```
#[derive(Debug, Clone)]
pub struct Concurrency {
    permits: Arc<Semaphore>,
    line: Line,
}

impl Concurrency {
    /// So many calls at once, at least one; 1,024 may wait.
    #[must_use]
    pub fn of(calls: usize) -> Self {
        let permits = Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS));
        Self { permits: Arc::new(permits), line: Line::new() }
    }

    /// So many may wait; with 0 nobody does.
    #[must_use]
    pub fn waiting(mut self, calls: usize) -> Self {
        self.line.waiting_max = calls;
        self
    }
}

impl AnyLayer for Concurrency {
    fn around<T: Send + 'static>(
        &self,
        call: Around,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> impl Future<Output = Result<T, Fault>> + Send + 'static {
        let permits = Arc::clone(&self.permits);
        let line = self.line.clone();
        async move {
            let permit = match Arc::clone(&permits).try_acquire_owned() {
                Ok(permit) => Ok(permit),
                Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => {
                    let waiting = line.join().ok_or_else(|| busy(call.tool()))?;
                    let permit = permits.acquire_owned().await;
                    drop(waiting);
                    permit
                }
            };
            // The semaphore is never closed.
            let _permit = permit.map_err(|_| busy(call.tool()))?;
            work.await
        }
    }
}

fn busy(tool: &str) -> Fault {
    let message = format!("The tool {tool:?} has too many calls in line.");
    Fault::new(Code::ToolBusy, message).executed(Executed::No)
}

/// How many may wait in a line when nothing else is said.
pub(super) const WAITING_MAX: usize = 1_024;

/// Counts those who wait, so that a line has an end.
#[derive(Debug, Clone)]
pub(super) struct Line {
    waiting: Arc<AtomicUsize>,
    pub(super) waiting_max: usize,
}

impl Line {
    pub(super) fn new() -> Self {
        Self { waiting: Arc::default(), waiting_max: WAITING_MAX }
    }

    /// A place in the line, unless it is full.
    pub(super) fn join(&self) -> Option<Waiting> {
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let waiting = Waiting(Arc::clone(&self.waiting));
        (before < self.waiting_max).then_some(waiting)
    }
}

/// A place in a line, until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
