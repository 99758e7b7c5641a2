//! Clears away, from time to time, what worlds keep no longer and what runs left behind.

use std::time::Duration;

use tokio::task::JoinHandle;
use wharf_domain::Caller;
use wharf_engine::Handle;

/// The first time: a core that has just started has better things to do.
const FIRST: Duration = Duration::from_secs(10 * 60);
const EVERY: Duration = Duration::from_secs(60 * 60);

#[derive(Debug)]
pub(crate) struct SweepTask(JoinHandle<()>);

impl SweepTask {
    pub(crate) fn begin(handle: Handle) -> Self {
        Self(tokio::spawn(async move {
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
    }
    match handle.files().collect_removed().await {
        Ok((0, _)) => {}
        Ok((leftovers, bytes)) => {
            tracing::info!(leftovers, bytes, "cleared away what late writers left");
        }
        Err(fault) => tracing::warn!(code = %fault.code, "removed worlds were not swept"),
    }
}
