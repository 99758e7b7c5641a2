//! Clears away, from time to time, what worlds keep no longer and what runs left behind.

use std::time::Duration;

use tokio::task::JoinHandle;
use wharf_domain::Caller;
use wharf_engine::{Handle, PurgedRuns};

/// When it goes on with what a core that ended had begun.
const BEGUN: Duration = Duration::from_secs(5);
/// The first time: a core that has just started has better things to do.
const FIRST: Duration = Duration::from_secs(10 * 60);
const EVERY: Duration = Duration::from_secs(60 * 60);

#[derive(Debug)]
pub(crate) struct SweepTask(JoinHandle<()>);

impl SweepTask {
    pub(crate) fn begin(handle: Handle) -> Self {
        Self(tokio::spawn(async move {
            tokio::time::sleep(BEGUN).await;
            purge_removed(&handle).await;
            tokio::time::sleep(FIRST).await;
            loop {
                sweep(&handle).await;
                tokio::time::sleep(EVERY).await;
            }
        }))
    }

    /// What is half done is done again the next time.
    pub(crate) fn end(&self) {
        self.0.abort();
    }
}

async fn sweep(handle: &Handle) {
    let worlds = match handle.worlds().list().await {
        Ok(worlds) => worlds,
        Err(fault) => return tracing::warn!(code = %fault.code, "worlds could not be swept"),
    };
    for view in worlds {
        let world = &view.world.id;
        match handle.files().collect(&Caller::owner(), world, false).await {
            Ok(done) if done.files + done.leftovers > 0 => {
                let (files, leftovers, bytes) = (done.files, done.leftovers, done.bytes);
                tracing::info!(%world, files, leftovers, bytes, "cleared away");
            }
            Ok(_) => {}
            Err(fault) => tracing::warn!(%world, code = %fault.code, "a world was not swept"),
        }
        match handle.runs().retain(&Caller::owner(), &view.world).await {
            Ok(PurgedRuns { purged: 0, .. }) => {}
            Ok(PurgedRuns { purged, kept }) => {
                tracing::info!(%world, purged, kept, "runs went that are kept no longer");
            }
            Err(fault) => tracing::warn!(%world, code = %fault.code, "old runs were not removed"),
        }
    }
    purge_removed(handle).await;
    match handle.files().collect_removed().await {
        Ok((0, _)) => {}
        Ok((leftovers, bytes)) => {
            tracing::info!(leftovers, bytes, "cleared away what late writers left");
        }
        Err(fault) => tracing::warn!(code = %fault.code, "removed worlds were not swept"),
    }
}

/// Runs of worlds that were removed with them, and then the room that nothing uses.
async fn purge_removed(handle: &Handle) {
    match handle.runs().purge_removed().await {
        Ok(PurgedRuns { purged: 0, .. }) => {}
        Ok(PurgedRuns { purged, kept }) => {
            tracing::info!(purged, kept, "runs of removed worlds went");
        }
        Err(fault) => tracing::warn!(code = %fault.code, "runs of removed worlds were left"),
    }
    if let Err(fault) = handle.runs().shrink_store().await {
        tracing::warn!(code = %fault.code, "the database was not made smaller");
    }
}
