//! The core was restarted while the run was open.

use wharf_vocab::{Code, Executed, Fault};

use super::{Draft, RunEffect, attempt, room};
use crate::run::{AttemptError, AttemptReport, Pause};

pub(super) fn decide(draft: &mut Draft<'_, '_>) {
    // What a flow wants outside is asked for once more by whoever calls this.
    if draft.run.flow.is_some() {
        return;
    }
    if draft.run.publishing.is_some() {
        return attempt::put_in_place(draft);
    }
    match &draft.run.active {
        Some(active) if draft.run.spec.reattach => {
            let attempt_id = active.id.clone();
            draft.effects.push(RunEffect::Dispatch { attempt_id, reattach: true });
            if let Some(cancel) = draft.run.cancel.clone() {
                draft.cancel_active(&cancel.reason);
            }
        }
        Some(active) => {
            let attempt_id = active.id.clone();
            let error = Fault::new(
                Code::ToolAgentLost,
                "The core was restarted while the attempt was under way.",
            );
            let result = Err(AttemptError::Failed(error, Executed::Maybe));
            let report = AttemptReport::new(result, 0);
            attempt::ended(draft, &attempt_id, &report);
        }
        None => match draft.run.pause {
            Some(Pause::Provider(_)) => draft.proceed(),
            Some(Pause::Room(_)) => room::queue(draft),
            _ => {}
        },
    }
}
