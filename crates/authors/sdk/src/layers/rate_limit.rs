//! So many calls in a time.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use wharf_vocab::{Code, Executed, Fault};

use super::concurrency::{WAITING_MAX, line};
use crate::{AnyLayer, Around};

/// Lets so many calls begin in a time; the others wait in the order in which they came, or are
/// refused with `tool.rate_limited`.
///
/// After a rest, that many calls may begin at once; further ones are spread evenly. Clones share
/// the limit.
///
/// ```
/// use std::time::Duration;
/// use wharf_sdk::Scope;
/// use wharf_sdk::layers::RateLimit;
///
/// let scope = Scope::root();
/// scope.around_all(RateLimit::per(100, Duration::from_secs(1)));
/// ```
#[derive(Debug, Clone)]
pub struct RateLimit {
    bucket: Arc<Mutex<Bucket>>,
    /// Whose turn it is to wait for the bucket; the others wait for their turn.
    turn: Arc<Semaphore>,
    line: Arc<Semaphore>,
}

/// Calls that may begin at once, and when there will be more.
#[derive(Debug)]
struct Bucket {
    /// How long the bucket takes to fill with one more call.
    every: Duration,
    calls: u32,
    /// When the bucket will be full, or was.
    full_at: Instant,
}

impl Bucket {
    /// Takes a call out, or says how long there is none.
    fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let full_at = self.full_at.max(now) + self.every;
        // A bucket that lacks more than all of its calls has none to give.
        let room = self.every * self.calls;
        if let Some(wait) = full_at.checked_duration_since(now + room)
            && !wait.is_zero()
        {
            return Err(wait);
        }
        self.full_at = full_at;
        Ok(())
    }
}

impl RateLimit {
    /// So many calls in this time, at least one; 1,024 may wait.
    #[must_use]
    pub fn per(calls: u32, time: Duration) -> Self {
        let calls = calls.max(1);
        let bucket = Bucket { every: time / calls, calls, full_at: Instant::now() };
        Self {
            bucket: Arc::new(Mutex::new(bucket)),
            turn: Arc::new(Semaphore::new(1)),
            line: line(WAITING_MAX),
        }
    }

    /// So many may wait; with 0 nobody does, so calls beyond the limit are refused at once.
    #[must_use]
    pub fn waiting(mut self, calls: usize) -> Self {
        self.line = line(calls);
        self
    }
}

impl AnyLayer for RateLimit {
    fn around<T: Send + 'static>(
        &self,
        call: Around,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> impl Future<Output = Result<T, Fault>> + Send + 'static {
        let limit = self.clone();
        async move {
            limit.pass(call.tool()).await?;
            work.await
        }
    }
}

impl RateLimit {
    /// Waits until a call may begin.
    async fn pass(&self, tool: &str) -> Result<(), Fault> {
        // Nobody is before this one: no need to wait.
        if let Ok(_turn) = self.turn.try_acquire()
            && self.bucket.lock().take(Instant::now()).is_ok()
        {
            return Ok(());
        }
        let _waiting = self.line.try_acquire().map_err(|_| refused(tool))?;
        // The semaphore is never closed.
        let _turn = self.turn.acquire().await.map_err(|_| refused(tool))?;
        loop {
            let taken = self.bucket.lock().take(Instant::now());
            let Err(wait) = taken else { return Ok(()) };
            tokio::time::sleep(wait).await;
        }
    }
}

fn refused(tool: &str) -> Fault {
    let message = format!("The tool {tool:?} is called more often than its limit allows.");
    Fault::new(Code::ToolRateLimited, message).executed(Executed::No)
}
