//! What a caller wants of a run: to have it, and to stop it.

use std::sync::Arc;

use wharf_vocab::limits::CANCEL_GRACE_MS;
use wharf_vocab::{Code, Fault, RunKey};

use super::{Cx, Decision, Draft, budget_exceeded};
use crate::run::{CancelRequested, Created, Phase, Run, RunEntry, RunSpec};
use crate::{Actor, AuditEvent, Funds, LedgerOp, Outcome};

impl Run {
    /// Accepts a run. With an available provider and nobody to ask, its first attempt begins in
    /// the same commit.
    pub fn create(cx: &mut Cx<'_>, key: RunKey, spec: Arc<RunSpec>) -> Decision {
        let created = Created { key, spec };
        let run = Self::created(&created, cx.now);
        let mut draft = Draft::of(run, cx);
        if let Some(parent) = &created.spec.account_parent {
            draft.ledger.push(LedgerOp::Open {
                account: created.spec.account.clone(),
                parent: Some(parent.clone()),
                limit: created.spec.budget_micro,
            });
        }
        draft.push(RunEntry::Created(created));
        draft.proceed();
        super::flow::go_on(&mut draft, Some(&Default::default()));
        draft.done()
    }

    /// The refusal of a run whose first attempt finds too little money; no run is made.
    pub fn refuse_for(funds: &Funds) -> Fault {
        budget_exceeded(funds)
    }
}

/// Somebody wants the run to stop.
pub(super) fn cancel(draft: &mut Draft<'_, '_>, by: &Actor, reason: &str) {
    if draft.run.phase() == Phase::Flowing {
        return super::flow::cancel(draft, by, reason);
    }
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
