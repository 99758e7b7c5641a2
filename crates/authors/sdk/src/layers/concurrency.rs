//! So many calls at once.

use std::sync::Arc;

use tokio::sync::{Semaphore, TryAcquireError};
use wharf_vocab::{Code, Executed, Fault};

use super::line::Line;
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
