//! The engine's way to a seat that executes attempts.

use std::sync::{Arc, Weak};

use serde_json::Value;
use wharf_domain::Resolution;
use wharf_domain::run::AttemptError;
use wharf_engine::{Dispatch, ProviderSink};
use wharf_vocab::{AttemptId, Code, Fault, SeatId};

use crate::shared::SeatHub;
use crate::task::{SENIOR, Task};

/// The way to one seat. The engine keeps it, so it must not keep the engine.
pub(crate) struct SeatSink {
    shared: Weak<SeatHub>,
    seat: SeatId,
}

impl SeatSink {
    pub(crate) fn new(shared: &Arc<SeatHub>, seat: SeatId) -> Self {
        Self { shared: Arc::downgrade(shared), seat }
    }
}

impl ProviderSink for SeatSink {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        let stopping = || Fault::new(Code::CoreStopping, "The core is stopping.");
        let shared = self.shared.upgrade().ok_or_else(stopping)?;
        let gone = || Fault::new(Code::ToolUnavailable, "The seat was given up.");
        let desk = shared.desk(&self.seat).ok_or_else(gone)?;
        let (seat, tool) = (&desk.seat, &dispatch.spec.tool);
        shared
            .options
            .handle
            .seats()
            .check(seat, &dispatch.run.world, tool)
            .map_err(not_for_seat)?;
        let again = dispatch.reattach;
        let handle = shared.options.handle.clone();
        let task = Arc::new(Task::new(self.seat.clone(), handle, dispatch));
        shared.tasks.open(&shared.options.handle, &task);
        if again && let Some(value) = asked_before(&shared, &task) {
            task.failed_before(value);
            return Ok(());
        }
        shared.offer(&desk, task.request_id(), crate::desk::SeatItem::Spawn(task), again);
        Ok(())
    }

    fn cancel(&self, attempt_id: &AttemptId, reason: &str, _grace_ms: u64) {
        let Some(shared) = self.shared.upgrade() else { return };
        let Some(task) = shared.tasks.of_attempt(attempt_id) else { return };
        shared.withdraw(&task, reason);
        let tasks = shared.background.clone();
        tasks.spawn(async move {
            let fault = Fault::new(Code::ToolCanceled, "The task was canceled.");
            // When the engine is gone there is nobody left to tell.
            let _ = task.fail(AttemptError::Canceled(fault)).await;
            shared.tasks.over(&shared.options.handle, &task);
        });
    }

    fn answer(&self, attempt_id: &AttemptId, key: &str, resolution: &Resolution) {
        let Some(shared) = self.shared.upgrade() else { return };
        let Some(task) = shared.tasks.of_attempt(attempt_id) else { return };
        if key != SENIOR {
            return task.answered(key, resolution);
        }
        let resolution = resolution.clone();
        let tasks = shared.background.clone();
        tasks.spawn(async move {
            let run = shared.options.handle.runs().get(task.run()).await;
            let original = run.ok().and_then(|run| {
                let asks = run.asks.iter().map(|raised| &raised.ask.spec);
                asks.filter(|spec| spec.key == SENIOR).find_map(|spec| spec.detail.clone())
            });
            task.senior_answered(original.unwrap_or_default(), &resolution).await;
            shared.withdraw(&task, "the senior answered");
            shared.tasks.over(&shared.options.handle, &task);
        });
    }
}

/// A seat executes nothing that whoever made it could not use, nor anything once that token is not
/// good any more.
fn not_for_seat(fault: Fault) -> Fault {
    let message = "The seat may not execute this run: the token that made it is not for it.";
    Fault { message: message.to_owned(), ..fault }
}

/// What the worker gave when it failed, if the senior was asked about it before the core was
/// started again.
fn asked_before(shared: &SeatHub, task: &Task) -> Option<Value> {
    let run = shared.options.handle.runs().live(task.run())?;
    let attempt = &task.attempt.dispatch().attempt_id;
    let active = run.active.as_ref().is_some_and(|active| active.id == *attempt);
    let mut asks = run.asks.iter().map(|raised| &raised.ask);
    let ask = asks.find(|ask| active && ask.is_open() && ask.spec.key == SENIOR)?;
    Some(ask.spec.detail.clone().unwrap_or_default())
}
