//! Somebody decides an ask.

use wharf_vocab::{AskId, Code, Fault};

use super::Draft;
use crate::run::Phase;
use crate::{Caller, Outcome, Resolution};

pub(super) fn decide(
    draft: &mut Draft<'_, '_>,
    ask_id: &AskId,
    resolution: &Resolution,
    by: &Caller,
) -> Result<(), Fault> {
    let Some(raised) = draft.run.asks.iter().find(|r| r.ask.spec.ask_id == *ask_id) else {
        return Err(Fault::new(Code::AskNotFound, format!("There is no open ask {ask_id}.")));
    };
    raised.ask.may_resolve(by, resolution)?;
    if raised.ask.spec.deadline <= draft.cx.now {
        return Err(Fault::new(Code::AskExpired, "The time to decide this ask is over."));
    }
    let gated = draft.run.phase() == Phase::Gated && raised.gate;
    draft.resolve(ask_id, resolution.clone(), &format!("grant:{}", by.grant));
    if gated {
        after_gate(draft, resolution);
    }
    Ok(())
}

/// Goes on or ends the run, once the approval that guards its dispatch has been decided.
pub(super) fn after_gate(draft: &mut Draft<'_, '_>, resolution: &Resolution) {
    match resolution {
        Resolution::Allow => draft.proceed(),
        Resolution::Deny { reason } => {
            let message = if reason.is_empty() {
                "The run was not approved.".to_owned()
            } else {
                format!("The run was not approved: {reason}")
            };
            draft.end(Outcome::Refused { error: Fault::new(Code::AskDenied, message) }, 0);
        }
        _ => {
            let error = Fault::new(Code::AskExpired, "Nobody approved the run in time.");
            draft.end(Outcome::Refused { error }, 0);
        }
    }
}
