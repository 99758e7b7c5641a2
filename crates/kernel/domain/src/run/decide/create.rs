//! A run is accepted.

use std::sync::Arc;

use wharf_vocab::{Direction, Fault, RunKey};

use super::{Cx, Decision, Draft, budget_exceeded};
use crate::run::{Created, Run, RunEntry, RunSpec};
use crate::scope::Bound;
use crate::{Artifact, ArtifactOp, Funds, LedgerOp};

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
        draft.artifacts.extend(read_files(&created));
        draft.push(RunEntry::Created(created));
        draft.proceed();
        draft.done()
    }

    /// The refusal of a run whose first attempt finds too little money; no run is made.
    #[must_use]
    pub fn refuse_for(funds: &Funds) -> Fault {
        budget_exceeded(funds)
    }
}

/// The files that a run reads, for whoever looks for the readers of a file.
fn read_files(created: &Created) -> impl Iterator<Item = ArtifactOp> {
    let reads = &created.spec.bindings.reads;
    reads.iter().filter_map(|(key, bound)| match bound {
        Bound::Object(read) => Some(ArtifactOp::Record(Artifact {
            world: created.key.world.clone(),
            path: read.path.clone(),
            bytes: read.bytes,
            b3: read.b3.clone(),
            media_type: read.media_type.clone(),
            run: Some(created.key.run.clone()),
            key: Some(key.clone()),
            direction: Direction::In,
        })),
        Bound::Uri => None,
    })
}
