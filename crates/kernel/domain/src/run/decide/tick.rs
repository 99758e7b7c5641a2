//! A deadline may have passed: of a cancel, an attempt, an ask, or a pause.

use wharf_vocab::{Code, Executed, Fault};

use super::{Draft, attempt, resolve, room};
use crate::run::{Pause, Timer};
use crate::{Actor, Outcome, Resolution};

pub(super) fn decide(draft: &mut Draft<'_, '_>) {
    if draft.run.cancel.is_some() && draft.run.flow.is_none() {
        return cancel_deadline(draft);
    }
    expire_asks(draft);
    if draft.run.flow.is_some() {
        return super::flow::tick(draft);
    }
    if draft.run.is_over() {
        return;
    }
    let now = draft.cx.now;
    if let Some(attempt) = &draft.run.active {
        if let Timer::Runs(deadline) = attempt.timer
            && deadline <= now
        {
            draft.cancel_active("it ran too long");
            let message = format!("The attempt ran longer than {} ms.", draft.run.spec.timeout_ms);
            let late = Fault::new(Code::ToolTimeout, message);
            if draft.run.spec.durable {
                attempt::failed(draft, late, Executed::Maybe, 0);
            } else {
                draft.fail(late, Executed::Maybe);
            }
        }
        return;
    }
    match draft.run.pause {
        Some(Pause::Provider(until)) if until <= now => {
            let message = "The tool's provider did not come up in time.";
            draft.fail(Fault::new(Code::ToolUnavailable, message), Executed::No);
        }
        Some(Pause::Room(until)) if until <= now => room::give_up(draft),
        Some(Pause::Backoff(at)) if at <= now => {
            draft.run.pause = None;
            draft.proceed();
        }
        _ => {}
    }
}

/// The provider had its time to stop; the run ends, and what it may still say comes too late.
fn cancel_deadline(draft: &mut Draft<'_, '_>) {
    let Some(cancel) = draft.run.cancel.clone() else { return };
    if cancel.deadline <= draft.cx.now {
        let error = Fault::new(Code::ToolCanceled, cancel.reason)
            .with("by", cancel.by.as_str())
            .with("provider", "did not stop in time")
            .executed(draft.run.acted_with(Executed::Maybe));
        draft.end(Outcome::Canceled { error }, 0);
    }
}

fn expire_asks(draft: &mut Draft<'_, '_>) {
    let now = draft.cx.now;
    let expired: Vec<_> = draft
        .run
        .open_asks()
        .filter(|raised| raised.ask.spec.deadline <= now)
        .map(|raised| (raised.ask.spec.ask_id.clone(), raised.gate))
        .collect();
    for (ask_id, gate) in expired {
        if draft.run.is_over() {
            return;
        }
        draft.resolve(&ask_id, Resolution::Expired, &Actor::CORE, None);
        if gate {
            resolve::after_gate(draft, &Resolution::Expired);
        }
    }
}
