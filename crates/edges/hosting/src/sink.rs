//! The engine's way to one provider: attempts, cancels and answers go to its processes.

use std::sync::{Arc, Weak};

use wharf_domain::Resolution;
use wharf_domain::run::{AttemptError, AttemptReport};
use wharf_engine::{Attempt, Dispatch, Handle, ProviderSink, RoomFor};
use wharf_vocab::{AttemptId, Code, Executed, Fault, ProviderId};

use crate::command::Command;
use crate::files::{self, Watch};
use crate::host::{blocking, halt};
use crate::kind::Kind;
use crate::launch::record_drift;
use crate::live::Live;

/// The way to one provider. The engine keeps it, so it must not keep the engine.
pub(crate) struct Sink {
    kind: Weak<dyn Kind>,
    id: ProviderId,
    live: Arc<Live>,
}

impl Sink {
    pub(crate) fn new(kind: &Arc<dyn Kind>, id: ProviderId, live: Arc<Live>) -> Self {
        Self { kind: Arc::downgrade(kind), id, live }
    }
}

impl ProviderSink for Sink {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        if let Some(fault) = self.live.blocked() {
            return Err(fault);
        }
        if self.live.watch().is_none_or(|watch| watch.is_unchanged()) {
            return self.live.place(dispatch);
        }
        let kind = self.kind.upgrade().ok_or_else(stopping)?;
        self.live.hold(&dispatch.attempt_id);
        let (id, live) = (self.id.clone(), Arc::clone(&self.live));
        tokio::spawn(async move { look_then_place(&kind, &id, &live, dispatch).await });
        Ok(())
    }

    fn has_room(&self, wanted: &RoomFor<'_>) -> bool {
        self.live.has_room(&wanted.run.world, wanted.called)
    }

    fn cancel(&self, attempt_id: &AttemptId, reason: &str, grace_ms: u64) {
        if self.live.cancel_held(attempt_id) {
            return;
        }
        if let Some(dispatch) = self.live.take_waiting(attempt_id) {
            let Some(kind) = self.kind.upgrade() else { return };
            tokio::spawn(async move { canceled(&kind.host().options().handle, dispatch).await });
            return;
        }
        let (attempt, reason) = (attempt_id.clone(), reason.to_owned());
        let command = Command::Cancel { attempt_id: attempt, reason, grace_ms };
        self.live.pass_on(attempt_id, command);
    }

    fn answer(&self, attempt_id: &AttemptId, key: &str, resolution: &Resolution) {
        let (attempt, key) = (attempt_id.clone(), key.to_owned());
        let command = Command::Answer { attempt_id: attempt, key, resolution: resolution.clone() };
        // Without a connection nobody waits for the answer; it stays recorded with the run.
        self.live.pass_on(attempt_id, command);
    }
}

/// Reads files again that look different, and hands the attempt over if they are the same.
async fn look_then_place(kind: &Arc<dyn Kind>, id: &ProviderId, live: &Live, dispatch: Dispatch) {
    let looked = recheck(kind, id, live).await;
    if live.release(&dispatch.attempt_id) {
        return canceled(&kind.host().options().handle, dispatch).await;
    }
    if let Err(fault) = looked.and_then(|()| live.place(dispatch.clone())) {
        let attempt = Attempt::new(kind.host().options().handle.clone(), dispatch);
        // When the engine is gone there is nobody left to tell.
        let _ = attempt.failed(fault, Executed::No).await;
    }
}

/// Compares a provider's files with what was approved. If they differ it is written down, no call
/// is taken any more, and it is stopped.
async fn recheck(kind: &Arc<dyn Kind>, id: &ProviderId, live: &Live) -> Result<(), Fault> {
    let _alone = live.rechecking.lock().await;
    if let Some(fault) = live.blocked() {
        return Err(fault);
    }
    let Some(watch) = live.watch() else { return Ok(()) };
    if watch.is_unchanged() {
        return Ok(());
    }
    let seen = Arc::clone(&watch);
    if blocking(move || Ok(seen.is_all_unchanged())).await? {
        return Ok(());
    }
    let agent = kind.host().options().handle.agent(id)?;
    let file = kind.manifest_file();
    let (seen, difference) =
        blocking(move || Ok((Watch::of(file, &agent), files::differences(file, &agent)))).await?;
    if difference.is_empty() {
        watch.replace(seen);
        return Ok(());
    }
    let fault = record_drift(kind, id, difference).await;
    live.block(fault.clone());
    halt(kind, id, fault.message.clone());
    Err(fault)
}

async fn canceled(handle: &Handle, dispatch: Dispatch) {
    let fault = Fault::new(Code::ToolCanceled, "The call was canceled before it was sent.")
        .executed(Executed::No);
    let report = AttemptReport::new(Err(AttemptError::Canceled(fault)), 0);
    // When the engine is gone there is nobody left to tell.
    let _ = Attempt::new(handle.clone(), dispatch).ended(report).await;
}

fn stopping() -> Fault {
    Fault::new(Code::CoreStopping, "The core is stopping.")
}
