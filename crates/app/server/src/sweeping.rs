//! Clears away, from time to time, what worlds keep no longer and what runs left behind; keeps the
//! time of schedules, and starts what triggers owe.

use std::time::Duration;

use tokio::task::JoinHandle;
use wharf_domain::Caller;
use wharf_engine::{Handle, PurgedRuns};

/// When it goes on with what a core that ended had begun.
const BEGUN: Duration = Duration::from_secs(5);
/// The first time: a core that has just started has better things to do.
const FIRST: Duration = Duration::from_secs(10 * 60);
const EVERY: Duration = Duration::from_secs(60 * 60);

/// How often it is seen to that values that are not kept are nowhere any more.
const SHRED_EVERY: Duration = Duration::from_secs(10);
/// The pause before another try, while readers hold on to what is to go.
const SHRED_AGAIN: Duration = Duration::from_millis(50);
/// The pause before another try to remove runs as ordered.
const PURGE_AGAIN: Duration = Duration::from_secs(30);
/// Tries in a row; then others come first again.
const SHRED_TRIES: usize = 20;

#[derive(Debug)]
pub(crate) struct SweepTask {
    sweep: JoinHandle<()>,
    shred: JoinHandle<()>,
    purge: JoinHandle<()>,
    schedules: JoinHandle<()>,
    triggers: JoinHandle<()>,
}

impl SweepTask {
    pub(crate) fn begin(handle: Handle) -> Self {
        let (shredded, purged) = (handle.clone(), handle.clone());
        let (clock, inside) = (handle.clone(), handle.clone());
        let triggers = tokio::spawn(async move { inside.triggers().start_owed().await });
        let schedules = tokio::spawn(async move { clock.schedules().keep_time().await });
        let shred = tokio::spawn(async move {
            loop {
                shred(&shredded).await;
                tokio::time::sleep(SHRED_EVERY).await;
            }
        });
        let sweep = tokio::spawn(async move {
            tokio::time::sleep(BEGUN).await;
            purge_removed(&handle).await;
            tokio::time::sleep(FIRST).await;
            loop {
                sweep(&handle).await;
                tokio::time::sleep(EVERY).await;
            }
        });
        let purge = tokio::spawn(async move {
            loop {
                work_off(&purged).await;
                // What failed is tried again after a while.
                let _ = tokio::time::timeout(PURGE_AGAIN, purged.purges().purge_ordered()).await;
            }
        });
        Self { sweep, shred, purge, schedules, triggers }
    }

    /// What is half done is done again the next time.
    pub(crate) fn end(&self) {
        self.sweep.abort();
        self.shred.abort();
        self.purge.abort();
        self.schedules.abort();
        self.triggers.abort();
    }
}

/// Orders to remove runs, also those of a core that ended.
async fn work_off(handle: &Handle) {
    match handle.purges().work_off_purges().await {
        Ok(PurgedRuns { purged: 0, .. }) => {}
        Ok(PurgedRuns { purged, kept }) => {
            tracing::info!(purged, kept, "runs went as ordered");
            if let Err(fault) = handle.purges().shrink_store().await {
                tracing::warn!(code = %fault.code, "the database was not made smaller");
            }
        }
        Err(fault) => tracing::warn!(code = %fault.code, "runs were not removed as ordered"),
    }
}

/// Values of runs that ended with hashes in their place.
async fn shred(handle: &Handle) {
    for _ in 0..SHRED_TRIES {
        match handle.purges().shred_values().await {
            Ok(true) => return,
            Ok(false) => tokio::time::sleep(SHRED_AGAIN).await,
            Err(fault) => return tracing::warn!(code = %fault.code, "values were not shredded"),
        }
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
        match handle.purges().retain(&Caller::owner(), &view.world).await {
            Ok(PurgedRuns { purged: 0, .. }) => {}
            Ok(PurgedRuns { purged, kept }) => {
                tracing::info!(%world, purged, kept, "runs went that are kept no longer");
            }
            Err(fault) => tracing::warn!(%world, code = %fault.code, "old runs were not removed"),
        }
    }
    match handle.purges().purge_told().await {
        Ok(0) => {}
        Ok(gone) => tracing::info!(gone, "notifications went that are owed no more"),
        Err(fault) => tracing::warn!(code = %fault.code, "old notifications were not removed"),
    }
    purge_removed(handle).await;
    match handle.flows().forget_inline().await {
        Ok(0) => {}
        Ok(flows) => tracing::info!(flows, "flows that came with requests went with their runs"),
        Err(fault) => tracing::warn!(code = %fault.code, "flows of requests were not removed"),
    }
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
    match handle.purges().purge_removed().await {
        Ok(PurgedRuns { purged: 0, .. }) => {}
        Ok(PurgedRuns { purged, kept }) => {
            tracing::info!(purged, kept, "runs of removed worlds went");
        }
        Err(fault) => tracing::warn!(code = %fault.code, "runs of removed worlds were left"),
    }
    if let Err(fault) = handle.purges().shrink_store().await {
        tracing::warn!(code = %fault.code, "the database was not made smaller");
    }
}
