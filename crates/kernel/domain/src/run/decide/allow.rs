//! An approval of one of the run's children holds for others, too.

use super::Draft;
use crate::AuditEvent;
use crate::run::{ChildrenAllowed, RunEntry};

/// Allowances one run may remember.
const ALLOWED_MAX: usize = 256;

pub(super) fn decide(draft: &mut Draft<'_, '_>, allowed: &ChildrenAllowed) {
    let known = draft.run.allows_child(&allowed.tool_hash, &allowed.caller).is_some();
    if known || draft.run.children_allowed.len() >= ALLOWED_MAX {
        return;
    }
    let record = draft
        .record(AuditEvent::RUN_CHILDREN_ALLOWED, allowed.by.clone())
        .fact("allowed_tool", allowed.tool.as_str())
        .fact("ask_id", allowed.ask_id.as_str());
    draft.audit.push(record);
    draft.push(RunEntry::ChildrenAllowed(allowed.clone()));
}
