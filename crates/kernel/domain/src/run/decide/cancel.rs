//! Somebody wants the run to stop.

use wharf_vocab::limits::CANCEL_GRACE_MS;
use wharf_vocab::{Code, Fault};

use super::Draft;
use crate::run::{CancelRequested, RunEntry};
use crate::{Actor, AuditEvent, Outcome};

pub(super) fn decide(draft: &mut Draft<'_, '_>, by: &Actor, reason: &str) {
    if draft.run.active.is_none() {
        let error = Fault::new(Code::ToolCanceled, reason)
            .with("by", by.as_str())
            .executed(draft.run.acted);
        return draft.end(Outcome::Canceled { error }, 0);
    }
    let record = draft.record(AuditEvent::RUN_CANCEL_REQUESTED, by.clone());
    draft.audit.push(record);
    draft.cancel_active(reason);
    draft.push(RunEntry::CancelRequested(CancelRequested {
        by: by.clone(),
        reason: reason.to_owned(),
        deadline: draft.cx.now.plus_ms(CANCEL_GRACE_MS),
    }));
}
