//! Patience that ends: how long since a byte moved.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Notices when nothing has moved for too long.
#[derive(Debug, Clone)]
pub(super) struct StallWatch {
    last: Arc<Mutex<Instant>>,
    patience: Duration,
}

impl StallWatch {
    /// Patience that begins now.
    pub(super) fn new(patience: Duration) -> Self {
        Self { last: Arc::new(Mutex::new(Instant::now())), patience }
    }

    /// Something has moved, and the next may take this much longer than usual.
    pub(super) fn beat(&self, extra: Duration) {
        *self.last.lock() = Instant::now() + extra;
    }

    /// Does some work as long as something moves; `None` when nothing did for too long.
    pub(super) async fn watch<F: Future>(&self, work: F) -> Option<F::Output> {
        let mut work = std::pin::pin!(work);
        loop {
            let due = self.due();
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = sleep_until(due) => if self.due() <= due { return None },
            }
        }
    }

    fn due(&self) -> Instant {
        *self.last.lock() + self.patience
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn t032_work_goes_on_while_something_moves() {
        let pulse = StallWatch::new(Duration::from_secs(30));
        let moving = async {
            for _ in 0..10 {
                sleep(Duration::from_secs(29)).await;
                pulse.beat(Duration::ZERO);
            }
        };
        assert_eq!(pulse.watch(moving).await, Some(()));
        pulse.beat(Duration::from_secs(10));
        let started = Instant::now();
        assert_eq!(pulse.watch(std::future::pending::<()>()).await, None);
        assert_eq!(started.elapsed(), Duration::from_secs(40));
    }
}
