//! A provider says what an attempt has cost, while it is under way or after it is over.

use wharf_vocab::{AttemptId, Micro};

use super::Draft;
use crate::LedgerOp;
use crate::run::{CostReported, Run, RunEntry, RunInput};

/// The cost that comes with an end that can no longer be one: the attempt is over, or has said
/// before how it ended. What it cost counts all the same.
pub(super) fn too_late_to_end<'a>(
    run: &Run,
    input: &'a RunInput,
) -> Option<(&'a AttemptId, Micro)> {
    let RunInput::AttemptEnded { attempt_id, report } = input else { return None };
    let active = run.active.as_ref().is_some_and(|attempt| attempt.id == *attempt_id);
    (!active || run.publishing.is_some()).then_some((attempt_id, report.cost_micro))
}

/// Reports are cumulative: one that says no more than another before it changes nothing.
pub(super) fn reported(draft: &mut Draft<'_, '_>, attempt_id: &AttemptId, said: Micro) {
    let entry = CostReported {
        attempt_id: attempt_id.clone(),
        cost_micro: said,
        said_micro: None,
        last: false,
    };
    if let Some(active) = draft.run.active.as_ref().filter(|it| it.id == *attempt_id) {
        if said > active.reported_micro {
            draft.push(RunEntry::CostReported(entry));
        }
        return;
    }
    let booked = draft.run.booked.iter().find(|booked| booked.attempt_id == *attempt_id);
    let Some(booked) = booked.filter(|booked| booked.cost_micro < said) else { return };
    let added = said - booked.cost_micro;
    let record = draft
        .record("run.cost_corrected", format!("provider:{}", draft.run.spec.provider()))
        .fact("attempt_id", attempt_id.as_str())
        .fact("cost_micro", said)
        .fact("added_micro", added);
    draft.audit.push(record);
    let account = draft.run.spec.account.clone();
    draft.ledger.push(LedgerOp::Charge { account, spent: added });
    draft.push(RunEntry::CostReported(entry));
}
