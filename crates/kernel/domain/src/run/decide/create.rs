//! A run is accepted.

use std::sync::Arc;

use wharf_vocab::{Fault, RunKey};

use super::{Cx, Decision, Draft, budget_exceeded};
use crate::run::{Created, Run, RunEntry, RunSpec};
use crate::{Funds, LedgerOp};

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
        draft.done()
    }

    /// The refusal of a run whose first attempt finds too little money; no run is made.
    pub fn refuse_for(funds: &Funds) -> Fault {
        budget_exceeded(funds)
    }
}
