//! So many calls at once.

use std::sync::Arc;

use tokio::sync::Semaphore;
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
    line: Arc<Semaphore>,
}

impl Concurrency {
    /// So many calls at once, at least one; 1,024 may wait.
    #[must_use]
    pub fn of(calls: usize) -> Self {
        let permits = Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS));
        Self { permits: Arc::new(permits), line: line(WAITING_MAX) }
    }

    /// So many may wait; with 0 nobody does.
    #[must_use]
    pub fn waiting(mut self, calls: usize) -> Self {
        self.line = line(calls);
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
        let line = Arc::clone(&self.line);
        async move {
            let permit = match Arc::clone(&permits).try_acquire_owned() {
                Ok(permit) => Ok(permit),
                Err(_) => {
                    let _waiting = line.try_acquire().map_err(|_| busy(call.tool()))?;
                    permits.acquire_owned().await
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

/// Places for those who wait, so that a line has an end.
pub(super) fn line(waiting_max: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(waiting_max.min(Semaphore::MAX_PERMITS)))
}
