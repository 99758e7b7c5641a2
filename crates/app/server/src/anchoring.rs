//! Keeping the audit anchored while a core is up.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wharf_store_sqlite::SqliteStore;

use crate::lock::HomeLock;
use crate::{Home, anchors};

/// How often the audit is anchored.
const ANCHOR_EVERY: Duration = Duration::from_secs(60);

/// Writes anchors every minute and once more at the end. It holds the lock on the home, because
/// it lives as long as anything writes there.
#[derive(Debug)]
pub(crate) struct Anchoring {
    ended: CancellationToken,
    task: JoinHandle<HomeLock>,
}

impl Anchoring {
    pub(crate) fn begin(home: Home, store: Arc<SqliteStore>, lock: HomeLock) -> Self {
        let ended = CancellationToken::new();
        let is_ended = ended.clone();
        let task = tokio::spawn(async move {
            loop {
                let last = is_ended.is_cancelled();
                if let Err(fault) = anchors::write(&home, &store).await {
                    tracing::warn!(%fault, "the audit could not be anchored");
                }
                if last {
                    return lock;
                }
                // Woken at the end, it writes once more.
                let _ = tokio::time::timeout(ANCHOR_EVERY, is_ended.cancelled()).await;
            }
        });
        Self { ended, task }
    }

    pub(crate) async fn end(self) -> Option<HomeLock> {
        self.ended.cancel();
        let lock = self.task.await.ok();
        if lock.is_none() {
            tracing::warn!("the audit could not be anchored at the end");
        }
        lock
    }
}
