//! One run in a shard: what is committed, what is on its way, and what waits behind it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use wharf_domain::run::{AttemptError, RunInput};
use wharf_domain::{Funds, Progress, Run};
use wharf_ports::{Batch, Body, Claim};
use wharf_vocab::{
    AttemptId, Code, CommitNo, Digest, Executed, Place, ProviderId, RunKey, Seq, Timestamp,
};

use super::Effect;
use super::input::Ticket;
use super::progress::ProgressBuffer;

/// One run in a shard.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) provider: ProviderId,
    /// The run as it was last committed; `None` until its creation is.
    pub(super) run: Option<Arc<Run>>,
    /// The number of the last entry or piece of progress committed.
    pub(super) seq: Seq,
    /// The batch on its way to the store. Inputs wait until it is decided.
    pub(super) pending: Option<PendingBatch>,
    /// Inputs that wait.
    pub(super) waiting: VecDeque<WaitingInput>,
    /// Requests for the same run that came while its creation was on its way; what they are told
    /// depends on what becomes of it.
    pub(super) repeats: Vec<(Option<Ticket>, Digest)>,
    /// Progress that waits.
    pub(super) progress: ProgressBuffer,
    /// Child runs that have not ended.
    pub(super) children: BTreeSet<RunKey>,
    /// Whether the store may hold more of the run than is known here; settled by the next commit.
    pub(super) doubtful: bool,
    /// Whether the attempt is to be taken up again when its provider is there.
    pub(super) detached: bool,
    /// Where the latest attempt was handed over, if places are told apart.
    pub(super) at: Option<Place>,
    /// The attempt that was handed over at one place only, as far as this life of the shard can
    /// tell: it began under it, or the place where it began has it.
    pub(super) at_one_place: Option<AttemptId>,
    /// The attempt that this life of the shard has taken up again, because its place was gone.
    pub(super) taken_up: Option<AttemptId>,
    /// Whether the run waits to hear of its provider, as the shard's index has it.
    pub(super) listens: bool,
    /// When whatever a flow waits for outside is looked for, if nothing happens before.
    pub(super) recheck_at: Option<Timestamp>,
    /// When the run wants to be looked at, as the shard's timetable has it.
    pub(super) deadline: Option<Timestamp>,
}

/// A run as its shard remembers it.
#[derive(Debug, Clone, Copy)]
pub struct RunView<'a> {
    /// The run as it was last committed; `None` until its creation is.
    pub run: Option<&'a Arc<Run>>,
    /// The number of the last entry or piece of progress committed.
    pub seq: Seq,
    /// Where its latest attempt was handed over, if places are told apart.
    pub at: Option<&'a Place>,
    /// Whether a batch of the run is on its way to the store.
    pub busy: bool,
}

/// An input that waits.
#[derive(Debug)]
pub(super) struct WaitingInput {
    pub(super) input: RunInput,
    pub(super) ticket: Option<Ticket>,
    /// Set when it comes again because the store found too little money.
    pub(super) refused: Option<Funds>,
}

/// A batch on its way to the store.
#[derive(Debug)]
pub(super) struct PendingBatch {
    pub(super) no: CommitNo,
    /// What becomes true with it, as watchers will see it.
    pub(super) batch: Arc<Batch>,
    /// What is handed to the store: the same, for a run in memory only its money, and for the end
    /// of a run whose values are not kept what there is besides them.
    pub(super) stored: Arc<Batch>,
    pub(super) next: Arc<Run>,
    pub(super) next_seq: Seq,
    pub(super) effects: Vec<Effect>,
    /// Where the latest attempt is handed over then.
    pub(super) at: Option<Place>,
    pub(super) cause: Cause,
    /// When to offer it again, after the store could not take it.
    pub(super) again_at: Option<Timestamp>,
}

impl PendingBatch {
    /// The progress it would have written.
    pub(super) fn progress(&self) -> Vec<Progress> {
        let pieces = self.batch.appends.iter().filter_map(|append| match &append.body {
            Body::Progress(pieces) => Some(pieces.clone()),
            Body::Entries(_) => None,
        });
        pieces.flatten().collect()
    }
}

/// What a batch on its way answers.
#[derive(Debug)]
pub(super) enum Cause {
    /// The run's creation.
    Create { claim: Option<Claim>, ticket: Option<Ticket> },
    /// An input.
    Input(WaitingInput),
    /// Progress alone.
    Progress,
}

impl Slot {
    pub(super) fn new(provider: ProviderId) -> Self {
        Self {
            provider,
            run: None,
            seq: Seq(0),
            pending: None,
            waiting: VecDeque::new(),
            repeats: Vec::new(),
            progress: ProgressBuffer::default(),
            children: BTreeSet::new(),
            doubtful: false,
            detached: false,
            at: None,
            at_one_place: None,
            taken_up: None,
            listens: false,
            recheck_at: None,
            deadline: None,
        }
    }

    pub(super) fn loaded(run: Run, seq: Seq) -> Self {
        let (progress, provider) = (ProgressBuffer::resumed(), run.spec.provider());
        let at = run.active.as_ref().and_then(|active| active.place.clone());
        Self { run: Some(Run::lean(&Arc::new(run))), seq, progress, at, ..Self::new(provider) }
    }

    /// Whether the run goes by a document.
    pub(super) fn is_flow(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.flow.is_some())
    }

    pub(super) fn view(&self) -> RunView<'_> {
        let (run, at) = (self.run.as_ref(), self.at.as_ref());
        RunView { run, seq: self.seq, at, busy: self.pending.is_some() }
    }

    /// Whether the run has something to do when its provider comes or goes: no attempt is under
    /// way, or one waits to be taken up again.
    pub(super) fn wants_news(&self) -> bool {
        self.detached || self.latest().is_some_and(|run| run.active.is_none())
    }

    /// What was taken up again may have begun elsewhere than where it is said not to have: such a
    /// word may have been on its way since before. Only its provider itself proposes something.
    pub(super) fn doubt(&self, run: &Run, input: &mut RunInput) {
        let RunInput::AttemptEnded { attempt_id, report } = input else { return };
        let Err(AttemptError::Failed(fault, executed)) = &mut report.result else { return };
        let known = !run.spec.reattach
            || self.at_one_place.as_ref() == Some(attempt_id)
            || fault.is(Code::ToolDirectiveRequired);
        if *executed == Executed::No && !known {
            *executed = Executed::Maybe;
        }
    }

    /// The run as it will be once what is on its way is committed.
    pub(super) fn latest(&self) -> Option<&Arc<Run>> {
        self.pending.as_ref().map(|pending| &pending.next).or(self.run.as_ref())
    }

    /// When the run wants to be looked at: at its own deadline, or to offer its batch again.
    pub(super) fn wants(&self) -> Option<Timestamp> {
        match &self.pending {
            Some(pending) => pending.again_at,
            None => {
                let own = self.run.as_ref().and_then(|run| run.next_deadline());
                own.into_iter().chain(self.recheck_at).min()
            }
        }
    }
}
