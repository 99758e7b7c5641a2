//! The engine's way to one provider: attempts, cancels and answers go to its processes.

use std::sync::{Arc, Weak};

use tokio::sync::oneshot;
use wharf_domain::run::AttemptError;
use wharf_domain::{Caller, ProviderInput, Resolution};
use wharf_engine::{Attempt, AttemptEnd, Dispatch, Handle, ProviderSink, RoomFor};
use wharf_vocab::{AttemptId, Code, Executed, Fault, ProviderId};

use crate::files::{self, FileWatch};
use crate::host::SupervisorOrder;
use crate::kind::HostedKind;
use crate::launch::record_drift;
use crate::live::{InboxCommand, Live};
use crate::supervisor::fail;
use crate::tasks::blocking;

/// The way to one provider. The engine keeps it, so it must not keep the engine.
pub(crate) struct HostingSink {
    kind: Weak<dyn HostedKind>,
    id: ProviderId,
    live: Arc<Live>,
}

impl HostingSink {
    pub(crate) fn new(kind: &Arc<dyn HostedKind>, id: ProviderId, live: Arc<Live>) -> Self {
        Self { kind: Arc::downgrade(kind), id, live }
    }
}

impl ProviderSink for HostingSink {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        let kind = self.kind.upgrade().ok_or_else(stopping)?;
        let look = self.live.pool().place(dispatch)?;
        self.live.changed.notify_one();
        if look {
            FileLook { kind, id: self.id.clone(), live: Arc::clone(&self.live) }.begin();
        }
        Ok(())
    }

    fn has_room(&self, wanted: &RoomFor<'_>) -> bool {
        self.live.pool().has_room(&wanted.run.world, wanted.called)
    }

    fn cancel(&self, attempt_id: &AttemptId, reason: &str, grace_ms: u64) {
        let mut pool = self.live.pool();
        if let Some(dispatch) = pool.take_queued(attempt_id) {
            let Some(kind) = self.kind.upgrade() else { return };
            let handle = kind.host().options().handle.clone();
            let tasks = kind.host().tasks();
            tasks.spawn("ending a canceled attempt", canceled(handle, dispatch));
            return;
        }
        let (attempt, reason) = (attempt_id.clone(), reason.to_owned());
        pool.tell(attempt_id, InboxCommand::Cancel { attempt_id: attempt, reason, grace_ms });
    }

    fn answer(&self, attempt_id: &AttemptId, key: &str, resolution: &Resolution) {
        let (attempt, key) = (attempt_id.clone(), key.to_owned());
        let command =
            InboxCommand::Answer { attempt_id: attempt, key, resolution: resolution.clone() };
        // Without a connection nobody waits for the answer; it stays recorded with the run.
        self.live.pool().tell(attempt_id, command);
    }
}

/// Looks at a provider's files for all attempts that wait, away from the task that hands them
/// over. Attempts can be taken once the files were looked at after they came.
struct FileLook {
    kind: Arc<dyn HostedKind>,
    id: ProviderId,
    live: Arc<Live>,
}

impl FileLook {
    /// Looks at what the system says about the files, on a thread that may wait for it.
    fn begin(self) {
        let tasks = self.kind.host().tasks().clone();
        tasks.clone().spawn_blocking(move || {
            loop {
                let (attempts, watch) = {
                    let mut pool = self.live.pool();
                    let Some(attempts) = pool.unchecked() else { return };
                    (attempts, pool.watch.clone())
                };
                if watch.is_some_and(|watch| !watch.is_unchanged()) {
                    return tasks.spawn("comparing files", self.compare(attempts));
                }
                self.live.pool().checked(&attempts);
            }
        });
    }

    /// Compares files that look different, and ends attempts that must not be handed over.
    async fn compare(self, attempts: Vec<AttemptId>) {
        match recheck(&self.kind, &self.id, &self.live).await {
            Ok(()) => self.live.pool().checked(&attempts),
            Err(fault) => {
                let refused: Vec<_> = {
                    let mut pool = self.live.pool();
                    attempts.iter().filter_map(|attempt| pool.take_queued(attempt)).collect()
                };
                fail(&self.kind.host().options().handle, refused, &fault).await;
            }
        }
        self.begin();
    }
}

impl Drop for FileLook {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.live.pool().look_lost();
        }
    }
}

/// Compares a provider's files with what was approved. If they differ it is written down, no call
/// is taken any more, and it is stopped.
async fn recheck(kind: &Arc<dyn HostedKind>, id: &ProviderId, live: &Live) -> Result<(), Fault> {
    let _alone = live.rechecking.lock().await;
    if let Some(fault) = live.pool().blocked.clone() {
        return Err(fault);
    }
    let Some(watch) = live.pool().watch.clone() else { return Ok(()) };
    let seen = Arc::clone(&watch);
    if blocking(move || Ok(seen.is_all_unchanged())).await? {
        return Ok(());
    }
    let agent = kind.host().options().handle.providers().get(id)?;
    let file = kind.manifest_file();
    let (seen, difference) =
        blocking(move || Ok((FileWatch::of(file, &agent), files::differences(file, &agent))))
            .await?;
    if difference.is_empty() {
        watch.replace(seen);
        return Ok(());
    }
    let fault = record_drift(kind, id, difference).await;
    live.pool().blocked = Some(fault.clone());
    halt(kind, id, fault.message.clone());
    Err(fault)
}

/// Stops a provider that must not go on, without waiting for its end.
fn halt(kind: &Arc<dyn HostedKind>, id: &ProviderId, reason: String) {
    let (kind, id) = (Arc::clone(kind), id.clone());
    let tasks = kind.host().tasks().clone();
    tasks.spawn("stopping a provider", async move {
        let host = kind.host();
        let input = ProviderInput::Stop { reason: None };
        let changed = host.options().handle.providers().change(&Caller::core(), &id, input).await;
        if let Err(fault) = changed {
            tracing::warn!(agent = %id, code = %fault.code, "a stop was not recorded");
        }
        // Somebody may have approved and started it again meanwhile.
        if let Some(entry) = host.entry(&id).filter(|entry| entry.live.pool().blocked.is_some()) {
            let stop = SupervisorOrder::Stop { reason, again: false, done: oneshot::channel().0 };
            // A supervisor that has ended has nothing to stop.
            let _ = entry.orders.send(stop).await;
        }
    });
}

async fn canceled(handle: Handle, dispatch: Dispatch) {
    let end = AttemptEnd::new(Err(canceled_unsent("call")), 0);
    // When the engine is gone there is nobody left to tell.
    let _ = Attempt::new(handle, dispatch).ended(end).await;
}

/// How an attempt ends that was canceled while nothing of it was sent; `what` is what its provider
/// would have got.
#[must_use]
pub fn canceled_unsent(what: &str) -> AttemptError {
    let message = format!("The {what} was canceled before it was sent.");
    AttemptError::Canceled(Fault::new(Code::ToolCanceled, message).executed(Executed::No))
}

fn stopping() -> Fault {
    Fault::new(Code::CoreStopping, "The core is stopping.")
}
