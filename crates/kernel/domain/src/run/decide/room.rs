//! There is no room at the provider, or nobody there: the run waits for its turn. That is no try
//! that went wrong, so it uses up no attempt, and nothing was executed.

use wharf_vocab::{Code, Executed, Fault, Micro, RunStatus};

use super::{Draft, RunEffect, attempt};
use crate::Availability;
use crate::run::{Pause, RoomAwaited, Run, RunEntry};

/// Others wait already, so the run waits behind them; no attempt begins.
pub(super) fn wait(draft: &mut Draft<'_, '_>) {
    let reason = format!("Other runs wait for {} already.", draft.run.spec.provider());
    let (now, until) = (draft.cx.now, until(draft));
    draft.push(RunEntry::RoomAwaited(RoomAwaited { until, from: now, attempt_id: None, reason }));
    queue(draft);
}

/// Whether the provider did not take the active attempt. One that cost something did begin.
pub(super) fn never_began(run: &Run, error: &Fault, executed: Executed, cost: Micro) -> bool {
    let reported = run.active.as_ref().map_or(0, |attempt| attempt.reported_micro);
    error.is(Code::ToolBusy) && executed == Executed::No && cost == 0 && reported == 0
}

/// The provider did not take the active attempt, which never began.
pub(super) fn not_taken(draft: &mut Draft<'_, '_>, error: Fault) {
    let error = error.executed(Executed::No);
    let bill = draft.settle(0);
    let record = draft.completed(RunStatus::Failed, Some(&error), &bill);
    draft.audit.push(record);
    // A provider that says so again and again is asked less and less often.
    let refusals = draft.run.room.as_ref().map_or(0, |room| room.refusals);
    let pause = match refusals {
        0 => 0,
        more => attempt::backoff(more, draft.cx.fresh.random()),
    };
    let (from, until) = (draft.cx.now.plus_ms(pause), until(draft));
    let attempt_id = draft.run.active.as_ref().map(|attempt| attempt.id.clone());
    let reason = error.message;
    draft.push(RunEntry::RoomAwaited(RoomAwaited { until, from, attempt_id, reason }));
    queue(draft);
}

/// It is the run's turn.
pub(super) fn turn(draft: &mut Draft<'_, '_>) {
    if draft.run.awaits_room().is_none() {
        return;
    }
    match draft.cx.provider {
        Availability::Up => draft.start_attempt(),
        Availability::Coming | Availability::Away { .. } | Availability::Unhealthy => queue(draft),
        Availability::Down { .. } => draft.proceed(),
    }
}

/// The provider's availability changed while the run waits for it.
pub(super) fn available(draft: &mut Draft<'_, '_>) {
    let gone = matches!(draft.cx.provider, Availability::Down { .. });
    match draft.run.pause {
        Some(Pause::Provider(_)) => draft.proceed(),
        // There will be no room where nobody is.
        Some(Pause::Room(_)) if gone => draft.proceed(),
        _ => {}
    }
}

/// Lets the run stand in line, with what its journal says.
pub(super) fn queue(draft: &mut Draft<'_, '_>) {
    if let Some(room) = draft.run.awaits_room() {
        let (from, again) = (room.from, room.times > 1);
        draft.effects.push(RunEffect::Queue { from, again });
    }
}

/// It has waited as long as it may.
pub(super) fn give_up(draft: &mut Draft<'_, '_>) {
    let waited = draft.run.spec.timeout_ms;
    let message = format!("There was no room for the run within {waited} ms; it never began.");
    let fault = Fault::new(Code::ToolTimeout, message).with("waited_for", "room");
    draft.fail(fault, Executed::No);
}

/// One limit for all of its waiting, however often it is turned away.
fn until(draft: &Draft<'_, '_>) -> wharf_vocab::Timestamp {
    let limit = draft.cx.now.plus_ms(draft.run.spec.timeout_ms);
    draft.run.room.as_ref().map_or(limit, |room| room.until)
}
