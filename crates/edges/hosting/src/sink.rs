//! The engine's way to one provider: attempts, cancels and answers go to its processes.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};

use futures::FutureExt as _;
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
use crate::tasks::blocking;

/// The way to one provider. The engine keeps it, so it must not keep the engine.
pub(crate) struct HostingSink {
    kind: Weak<dyn HostedKind>,
    live: Arc<Live>,
}

impl HostingSink {
    pub(crate) fn new(kind: &Arc<dyn HostedKind>, live: Arc<Live>) -> Self {
        Self { kind: Arc::downgrade(kind), live }
    }
}

impl ProviderSink for HostingSink {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        if self.kind.strong_count() == 0 {
            return Err(Fault::new(Code::CoreStopping, "The core is stopping."));
        }
        let mut pool = self.live.pool();
        pool.place(dispatch)?;
        if pool.wants_care() {
            self.live.changed.notify_one();
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
            self.live.changed.notify_one();
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

/// Compares files that look different, on behalf of the attempts that had come so far. Attempts
/// that must not be handed over are ended.
pub(crate) async fn compare(
    kind: Arc<dyn HostedKind>,
    id: ProviderId,
    live: Arc<Live>,
    placed: u64,
) {
    let compared = AssertUnwindSafe(recheck(&kind, &id, &live)).catch_unwind().await;
    let lost = || Fault::new(Code::CoreInternal, "The files could not be compared.");
    match compared.unwrap_or_else(|_| Err(lost())) {
        Ok(()) => live.pool().compared(placed),
        Err(fault) => {
            let refused = live.pool().give_up_doubted();
            fail(&kind.host().options().handle, refused, &fault).await;
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
    halt(kind, id, fault.clone());
    Err(fault)
}

/// Stops a provider that must not go on, without waiting for its end.
fn halt(kind: &Arc<dyn HostedKind>, id: &ProviderId, why: Fault) {
    let (kind, id) = (Arc::clone(kind), id.clone());
    let tasks = kind.host().tasks().clone();
    tasks.spawn("stopping a provider", async move {
        let host = kind.host();
        // Somebody may have approved it again meanwhile.
        if host.live(&id).is_none_or(|live| live.pool().blocked.is_none()) {
            return;
        }
        let input = ProviderInput::Stop { reason: None };
        let changed = host.options().handle.providers().change(&Caller::core(), &id, input).await;
        if let Err(fault) = changed {
            tracing::warn!(provider = %id, code = %fault.code, "a stop was not recorded");
        }
        // Somebody may have approved and started it again meanwhile.
        if let Some(entry) = host.entry(&id).filter(|entry| entry.live.pool().blocked.is_some()) {
            let stop = SupervisorOrder::Stop { why, again: false, done: oneshot::channel().0 };
            // A supervisor that has ended has nothing to stop.
            let _ = entry.orders.send(stop).await;
        }
    });
}

/// Ends attempts that were never handed over.
pub(crate) async fn fail(handle: &Handle, waiting: Vec<Dispatch>, fault: &Fault) {
    for dispatch in waiting {
        let attempt = Attempt::new(handle.clone(), dispatch);
        // When the engine is gone there is nobody left to tell.
        let _ = attempt.failed(fault.clone(), Executed::No).await;
    }
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
