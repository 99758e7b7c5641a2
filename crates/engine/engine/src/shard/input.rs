//! What goes into a shard and what comes out.

use std::fmt;
use std::sync::Arc;

use wharf_domain::run::RunInput;
use wharf_domain::run::flow::FlowWork;
use wharf_domain::trigger::FiringEntry;
use wharf_domain::{
    Artifact, ArtifactOp, AuditRecord, CallerRef, Move, NoticeEnd, NotificationEntry, Progress,
    Resolution, Run, RunSpec, memory_weight, value_weight,
};
use wharf_ports::{Batch, Claim, Dispatch, Refusal, Require, StoreError};
use wharf_vocab::{
    AskId, AttemptId, CommitNo, Digest, Epoch, Fault, FiringId, NotificationId, Place, ProviderId,
    RunId, RunKey, Seq, ShardId, StreamId,
};

use super::records::{AnyRecord, RecordInput};
use crate::book::Adoption;
use crate::turns::Turn;

/// The number under which whoever sent an input waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// What can happen to a shard.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A run is to be accepted.
    Create(Box<Create>),
    /// Something happens to a run.
    Run {
        /// The run.
        key: RunKey,
        /// What happens.
        input: RunInput,
        /// Who waits for the answer.
        ticket: Option<Ticket>,
    },
    /// An attempt wrote something.
    Progress {
        /// The run.
        key: RunKey,
        /// The attempt.
        attempt_id: AttemptId,
        /// What it wrote, in order.
        pieces: Vec<Progress>,
    },
    /// Something happens to a world, a provider, a grant or a seat.
    Record {
        input: RecordInput,
        /// Who wants it.
        by: CallerRef,
        /// Who waits for the answer.
        ticket: Option<Ticket>,
    },
    /// What [`Providers`](super::Providers) say of a provider has changed.
    ProviderChanged(ProviderId),
    /// A child run began or ended; its parent keeps it in mind, to cancel it when it is canceled.
    Child {
        /// The parent.
        parent: RunKey,
        /// The child.
        child: RunKey,
        /// Whether it began.
        began: bool,
    },
    /// What the store holds of a run that was looked up.
    LookedUp {
        /// The run.
        key: RunKey,
        /// The epoch in which it was asked for; what an earlier owner wanted to know is old.
        epoch: Epoch,
        /// The run as it is stored and the number of its last entry, if it is there.
        found: Option<(Box<Run>, Seq)>,
    },
    /// What the place of an attempt says of it, to a shard that was loaded while it was under way.
    Adopted {
        /// The run.
        key: RunKey,
        /// The attempt.
        attempt_id: AttemptId,
        /// The epoch in which it was asked for.
        epoch: Epoch,
        /// What has become of it.
        found: Adoption,
    },
    /// What is known of a run that is over and was looked up, since its cost came late.
    LateCost {
        /// The run.
        key: RunKey,
        /// What came.
        cost: LateCost,
        /// The run and the number of its last entry, if it is there.
        found: Option<(Box<Run>, Seq)>,
    },
    /// A notice is owed no more.
    Notice {
        /// The approval it is known by.
        id: AskId,
        /// Why.
        how: NoticeEnd,
    },
    /// A notification is owed to a receiver, or is no more.
    Notification {
        /// Its id.
        id: NotificationId,
        /// What is written about it.
        entry: NotificationEntry,
    },
    /// A trigger owes a run no more.
    Firing {
        /// Its id.
        id: FiringId,
        /// What is written about it.
        entry: FiringEntry,
    },
    /// What the store holds of a world, an agent, a grant or a seat that was looked up.
    RecordLookedUp {
        /// Its stream.
        stream: StreamId,
        /// The epoch in which it was asked for.
        epoch: Epoch,
        /// The record as it is stored and the number of its last entry, if it is there.
        found: Option<(AnyRecord, Seq)>,
    },
    /// Something that touches no stream is to be audited.
    Audit(Vec<AuditRecord>),
    /// An attempt that was to be taken up again was not, since its provider has just gone. It waits
    /// for it.
    Detached {
        /// Its run.
        key: RunKey,
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// Somebody put files into a world, took some away or was given some to read.
    Files {
        /// What becomes of the index of files.
        ops: Vec<ArtifactOp>,
        /// What must be so of them before.
        requires: Vec<Require>,
        /// A record for the audit; none for what is told elsewhere.
        record: Option<Box<AuditRecord>>,
        /// Who waits for it to be committed.
        ticket: Option<Ticket>,
    },
    /// A batch was committed.
    Committed(CommitNo),
    /// A batch was refused.
    Refused(CommitNo, Refusal),
    /// The store could not take a batch.
    Failed(CommitNo, StoreError),
    /// Time has passed.
    Tick,
}

impl Input {
    /// About how many bytes of somebody else's it takes in memory.
    pub fn weight(&self) -> u64 {
        match self {
            Self::Create(create) => create.spec.weight(),
            Self::Progress { pieces, .. } => pieces.iter().map(Progress::weight).sum(),
            Self::Run { input, .. } => match input {
                RunInput::AttemptEnded { report, .. } => {
                    report.result.as_ref().map_or(0, memory_weight)
                }
                RunInput::ResolveAsk { resolution, .. } => resolution.weight(),
                RunInput::RaiseAsk(ask) => ask.weight(),
                RunInput::Note { value: Some(value), .. } => value_weight(value),
                _ => 0,
            },
            Self::Record { input, .. } => input.weight(),
            _ => 0,
        }
    }

    /// Who waits for the answer.
    pub fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::Create(create) => create.ticket,
            Self::Run { ticket, .. } | Self::Record { ticket, .. } | Self::Files { ticket, .. } => {
                *ticket
            }
            Self::LateCost { cost, .. } => cost.ticket,
            _ => None,
        }
    }

    /// Says who waits for the answer; inputs that nobody can wait for are left as they are.
    pub fn set_ticket(&mut self, number: Ticket) {
        match self {
            Self::Create(create) => create.ticket = Some(number),
            Self::Run { ticket, .. } | Self::Record { ticket, .. } | Self::Files { ticket, .. } => {
                *ticket = Some(number)
            }
            _ => {}
        }
    }
}

/// A run that is to be accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Create {
    /// Its world and id.
    pub key: RunKey,
    /// What it is to do.
    pub spec: Arc<RunSpec>,
    /// The idempotency key it claims.
    pub claim: Option<Claim>,
    /// Who waits for the answer.
    pub ticket: Option<Ticket>,
}

/// What the claim on an idempotency key stands for: the digest of the request that came first, and
/// the run that it made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimValue {
    pub digest: Digest,
    pub run: RunId,
}

impl ClaimValue {
    pub fn of(spec: &RunSpec, key: &RunKey) -> Self {
        Self { digest: spec.digest.clone(), run: key.run.clone() }
    }

    /// Reads the text that the store has for it.
    pub fn parse(text: &str) -> Option<Self> {
        let (digest, run) = text.split_once(' ')?;
        Some(Self { digest: Digest::parse(digest)?, run: RunId::new(run).ok()? })
    }
}

impl fmt::Display for ClaimValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.digest, self.run)
    }
}

/// What an attempt of a run has cost that is not in memory any more.
#[derive(Debug, Clone, PartialEq)]
pub struct LateCost {
    /// What says so.
    pub input: RunInput,
    /// Who waits for the answer.
    pub ticket: Option<Ticket>,
}

/// What a step asks for. Batches go to the store; effects may be performed at once, since what
/// they follow from is committed.
#[derive(Debug, Default)]
pub struct Output {
    /// To be committed, in order; each is answered with `Committed`, `Refused` or `Failed`.
    pub batches: Vec<Arc<Batch>>,
    /// To be performed, in order.
    pub effects: Vec<Effect>,
}

/// Something to do outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Answer whoever waits.
    Reply {
        /// Who waits.
        ticket: Ticket,
        /// The answer.
        result: Result<Reply, Fault>,
    },
    /// Show what was committed to whoever watches the run.
    Publish {
        /// What was committed.
        batch: Arc<Batch>,
        /// The run after it.
        run: Arc<Run>,
    },
    /// Show a record as it is now.
    RecordChanged(AnyRecord),
    /// Hand an attempt to its provider.
    Dispatch {
        /// The attempt.
        dispatch: Box<Dispatch>,
        /// Where, if places are told apart.
        place: Option<Place>,
    },
    /// An attempt is over, which is committed: whoever had it need not speak of it any more.
    AttemptOver {
        /// Where it was handed over, if places are told apart.
        place: Option<Place>,
        /// The run.
        key: RunKey,
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// Let a run wait for room at its provider, and answer with [`RunInput::Turn`].
    Queue(Turn),
    /// A run waits for room no more.
    LeaveQueue {
        /// The provider.
        provider: ProviderId,
        /// The run.
        run: RunKey,
    },
    /// Put an attempt's files in their places, however often it takes, and answer with
    /// [`RunInput::Published`].
    PutInPlace {
        /// The run.
        run: RunKey,
        /// The attempt.
        attempt_id: AttemptId,
        /// What is to be put where.
        moves: Vec<Move>,
        /// What the files are, by their places.
        files: Vec<Artifact>,
    },
    /// Tell a provider to stop an attempt.
    CancelAttempt {
        /// The provider.
        provider: ProviderId,
        /// Where the attempt was handed over, if places are told apart.
        place: Option<Place>,
        /// The attempt.
        attempt_id: AttemptId,
        /// Why.
        reason: String,
        /// How long it may take.
        grace_ms: u64,
    },
    /// Tell a provider how an ask ended.
    Answer {
        /// The provider.
        provider: ProviderId,
        /// Where the attempt was handed over, if places are told apart.
        place: Option<Place>,
        /// The attempt that asked.
        attempt_id: AttemptId,
        /// The asker's own name for the ask.
        key: String,
        /// How it ended.
        resolution: Resolution,
    },
    /// Send an input to the shard of another run.
    Send {
        /// The shard.
        to: ShardId,
        /// The input.
        input: Box<Input>,
    },
    /// A child began whose parent is over: look the parent up, and call the child off if the
    /// parent was called off.
    AskAfterParent {
        /// The parent.
        parent: RunKey,
        /// The child.
        child: RunKey,
    },
    /// Whether the store has taken a run's last batch is not known: look the run up and answer
    /// with [`Input::LookedUp`].
    LookUp {
        /// The run.
        key: RunKey,
        /// The shard's epoch, to be handed back.
        epoch: Epoch,
    },
    /// The shard was loaded while an attempt was under way: ask the place that was to have it, and
    /// answer with [`Input::Adopted`].
    Adopt {
        /// Where the attempt was to be handed over, as far as that is known.
        place: Option<Place>,
        /// The run.
        key: RunKey,
        /// The attempt.
        attempt_id: AttemptId,
        /// The shard's epoch; the place takes nothing from an older one any more.
        epoch: Epoch,
    },
    /// The cost of a run came that is not in memory any more: look the run up and answer with
    /// [`Input::LateCost`].
    FindEnded {
        /// The run.
        key: RunKey,
        /// What came.
        cost: LateCost,
    },
    /// Whether the store has taken the last change of a record is not known: look it up and
    /// answer with [`Input::RecordLookedUp`].
    LookUpRecord {
        /// Its stream.
        stream: StreamId,
        /// The shard's epoch, to be handed back.
        epoch: Epoch,
    },
    /// Do something for a step of a flow, and answer with what came of it.
    Flow {
        /// The run of the flow, as it was last committed.
        run: Arc<Run>,
        /// What is to be done.
        work: FlowWork,
    },
    /// What the shard remembers is not what the store holds: load it anew.
    Reload,
}

impl Effect {
    /// Calls a child off because its parent was.
    pub fn cancel_child(child: &RunKey) -> Self {
        super::runs::cancel_child(child)
    }
}

/// The answer to an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The run as it is now.
    Run {
        /// The run.
        run: Arc<Run>,
        /// Whether this input made it.
        made: bool,
    },
    /// The request was made before; this is the run's key.
    Repeated(RunKey),
    /// The record as it is now.
    Record(AnyRecord),
    /// What was asked for is done.
    Done,
}
