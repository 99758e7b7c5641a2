//! What a simulation has led the core through. One that leads through nothing proves nothing.

use std::collections::BTreeMap;

use wharf_engine::book::Adoption;
use wharf_ports::Refusal;
use wharf_vocab::RunStatus;

use super::faults::CrashPoint;

macro_rules! things {
    ($($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)?) => {
        /// Something a simulation can lead the core through.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Thing {
            $($(#[$doc])* $variant),+
        }

        impl Thing {
            /// Everything there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// What reports call it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

things! {
    /// A batch was committed.
    Commit = "commits",
    /// A run ended well.
    Succeeded = "runs succeeded",
    /// A run failed.
    Failed = "runs failed",
    /// A run was refused.
    Refused = "runs refused",
    /// A run was canceled.
    Canceled = "runs canceled",
    /// A run was kept in memory only.
    MemoryRun = "runs in memory",
    /// Somebody asked for a flow.
    Flow = "flows",
    /// A step of a flow was over.
    Step = "steps of flows",
    /// The run of a step was found again.
    StepFound = "steps found again",
    /// A word between a flow and its step was lost.
    StepLost = "words of steps lost",
    /// Somebody sent a flow a message.
    Signal = "messages for flows",
    /// Somebody ended a flow at once.
    Forced = "flows ended at once",
    /// A flow was canceled and undid or did something at last.
    Closing = "flows canceled",
    /// A run made another one.
    Child = "child runs",
    /// A child was called off because its parent was.
    ChildCanceled = "children called off with their parent",
    /// A further attempt began.
    Retry = "retries",
    /// An attempt ran too long.
    Timeout = "attempts that ran too long",
    /// An attempt wrote more than it may.
    TooLarge = "attempts that wrote too much",
    /// An attempt was taken up again after a crash or a change of owner.
    Reattach = "attempts taken up again",
    /// An attempt was under way when its shard was loaded, and went on.
    WentOn = "attempts that went on when their shard was loaded",
    /// The start of an attempt was committed and its core never handed it over.
    NeverBegun = "attempts that were committed and never begun",
    /// An attempt was lost with the core that had handed it over.
    PlaceGone = "attempts whose place was gone",
    /// A provider was told how an ask ended.
    Answer = "answers to providers",
    /// An approval was given.
    Allowed = "approvals given",
    /// An approval was given for the other children of a run, too.
    ParentAllowed = "approvals given for a parent",
    /// An approval was given for all later runs of a tool in a world.
    ToolAllowed = "tools allowed in a world",
    /// A provider wanted an approval of what it was about to do.
    Proposed = "proposals",
    /// An approval was not given.
    Denied = "approvals denied",
    /// An ask expired.
    Expired = "asks expired",
    /// An ask was withdrawn with its run.
    Withdrawn = "asks withdrawn",
    /// Somebody decided who may not.
    Forbidden = "decisions by those who may not",
    /// The same request came twice.
    Repeated = "requests repeated",
    /// Another request came under a name that was taken.
    Conflict = "requests in conflict",
    /// A provider cost more than was held.
    OverHold = "attempts that cost more than was held",
    /// An attempt left files that are published when the run can only succeed.
    Publishing = "publications begun",
    /// A core put a file in its place that another one, or it in an earlier life, had put there.
    PublishedAgain = "files published again after a crash",
    /// A provider said what an attempt had cost so far.
    CostReported = "costs reported while a run went on",
    /// An attempt was stopped since it passed a budget.
    BudgetStopped = "runs stopped by a budget",
    /// What a run has cost came when it was over.
    LateCost = "costs that came late",
    /// A run had to wait for room at its provider.
    NoRoom = "runs that waited for room",
    /// A run that waited for room had its turn.
    Turn = "turns of runs that waited for room",
    /// A record was looked up after a commit that failed or did not.
    RecordFound = "records looked up after a doubtful commit",
    /// A dispatch could not be handed over.
    DispatchFailed = "dispatches that failed",
    /// A provider's process died under its attempts.
    ProviderDied = "providers that died",
    /// Whoever worked on an attempt panicked before it acted.
    PanickedBefore = "panics before an attempt began",
    /// Whoever worked on an attempt panicked, and it may have acted.
    PanickedAfter = "panics in the middle of an attempt",
    /// A provider's message came twice.
    Doubled = "messages doubled",
    /// A provider spoke of an attempt nobody knows, or after its end.
    Lie = "lies of providers",
    /// The store was slow.
    SlowStore = "slow stores",
    /// The store was full.
    FullStore = "batches at a full store",
    /// The store could not be reached.
    StoreDown = "batches at an unreachable store",
    /// The store committed a batch and said that it had not.
    Ambiguous = "batches committed but reported as failed",
    /// A run was found after a commit that failed or did not.
    Found = "runs looked up after a doubtful commit",
    /// A lease had passed to somebody else.
    RefusedFenced = "batches refused: fenced",
    /// A stream was there already.
    RefusedExists = "batches refused: exists",
    /// A stream had gone on.
    RefusedStale = "batches refused: stale",
    /// A name was taken.
    RefusedClaimed = "batches refused: claimed",
    /// There was too little money.
    RefusedFunds = "batches refused: funds",
    /// A shard was loaded anew while its core lived.
    Reload = "shards loaded anew",
    /// A shard passed from one core to another.
    Takeover = "shards taken over",
    /// A core stood still for a while.
    Stall = "cores that stood still",
    /// An input went to another core, which steps its shard.
    Forwarded = "inputs sent on to another core",
    /// Nobody was known to step a shard.
    NobodyHome = "inputs that waited for an owner of their shard",
    /// Another core did not answer in time.
    FarTimeout = "calls that another core did not answer in time",
    /// An attempt was handed over at another core.
    Delivered = "attempts handed over at another core",
    /// The place of an attempt was asked over the bus.
    AskedElsewhere = "attempts asked for at another core",
    /// An attempt came from a core that steps its shard no more.
    RefusedOld = "attempts refused since their shard had passed on",
    /// An attempt went on that nobody wanted any more.
    StoppedUnwanted = "attempts stopped since nobody wanted them any more",
    /// A core did nothing since its leases might have passed on.
    HeldBack = "cores that held back what waited",
    /// A call came to a core whose leases might have passed on.
    NotSafe = "calls to cores that had not heard from the store",
    /// A core whose leases had been over began anew.
    Lapsed = "cores that were away for too long",
    /// A core was taken for gone since its leases were over.
    Missed = "cores missed by others",
    /// A process ended since its core had not said for long that it lives.
    EndedByItself = "attempts that ended with the leases of their core",
    /// A shard was handed over.
    HandedOver = "shards handed over",
    /// A core was to leave.
    Drain = "cores to be drained",
    /// A core had nothing left and went.
    Drained = "cores drained",
    /// A frame could not pass between two sides.
    SplitBus = "frames between two sides of a split bus",
    /// A frame could not pass although the way back was open.
    OneWay = "frames that one side said in vain",
    /// A frame was lost.
    FrameLost = "frames lost",
    /// A frame came twice.
    FrameRepeated = "frames repeated",
    /// A core could not reach the store.
    Cut = "cores cut off from the store",
    /// A clock jumped forward.
    ClockJump = "clock jumps",
    /// A core began with its clock behind that of the store.
    ClockBehind = "cores with a clock behind",
    /// An attempt could not be taken up again and waited for its provider.
    Detached = "attempts that wait to be taken up again",
    /// A core was started again.
    Restart = "restarts",
    /// A core died before it handed over what it had decided.
    CrashBeforeCommit = "crashes before a batch is handed over",
    /// A core died while the store had not got its batch.
    CrashInCommit = "crashes while a batch is on its way",
    /// A core died before it learned that its batch was committed.
    CrashBeforeCommitted = "crashes after a commit, before it is known",
    /// A core died before it did what followed from a commit.
    CrashBeforeEffects = "crashes after a commit, before its effects",
    /// A core died while it did what followed from a commit.
    CrashAmidEffects = "crashes amid effects",
    /// A core died when it had leases but had loaded nothing.
    CrashDuringLoad = "crashes during a load",
    /// A core died before it did what was outstanding after a load.
    CrashAfterLoad = "crashes before outstanding work is done",
    /// A core died while it did nothing.
    CrashIdle = "crashes at rest",
}

impl From<CrashPoint> for Thing {
    fn from(point: CrashPoint) -> Self {
        match point {
            CrashPoint::BeforeCommit => Self::CrashBeforeCommit,
            CrashPoint::InCommit => Self::CrashInCommit,
            CrashPoint::BeforeCommitted => Self::CrashBeforeCommitted,
            CrashPoint::BeforeEffects => Self::CrashBeforeEffects,
            CrashPoint::AmidEffects => Self::CrashAmidEffects,
            CrashPoint::DuringLoad => Self::CrashDuringLoad,
            CrashPoint::AfterLoad => Self::CrashAfterLoad,
            CrashPoint::Idle => Self::CrashIdle,
        }
    }
}

impl From<Adoption> for Thing {
    fn from(found: Adoption) -> Self {
        match found {
            Adoption::Working | Adoption::TakenUp => Self::WentOn,
            Adoption::NeverBegun => Self::NeverBegun,
            Adoption::Gone => Self::PlaceGone,
        }
    }
}

impl Thing {
    /// The end of a run, if the status is one.
    pub(super) fn of_status(status: RunStatus) -> Option<Self> {
        match status {
            RunStatus::Succeeded => Some(Self::Succeeded),
            RunStatus::Failed => Some(Self::Failed),
            RunStatus::Refused => Some(Self::Refused),
            RunStatus::Canceled => Some(Self::Canceled),
            RunStatus::Queued | RunStatus::Waiting | RunStatus::Running => None,
        }
    }
}

impl Thing {
    /// That a batch was refused. Simulated runs read no files, so none is refused for those.
    pub(super) fn refused(refusal: &Refusal) -> Option<Self> {
        match refusal {
            Refusal::Fenced => Some(Self::RefusedFenced),
            Refusal::Exists { .. } => Some(Self::RefusedExists),
            Refusal::Stale { .. } => Some(Self::RefusedStale),
            Refusal::Claimed(_) => Some(Self::RefusedClaimed),
            Refusal::Funds(_) => Some(Self::RefusedFunds),
            Refusal::FileGone { .. } | Refusal::FileInUse { .. } => None,
        }
    }
}

/// How often each thing happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exercised(BTreeMap<Thing, u64>);

impl Exercised {
    pub(super) fn note(&mut self, thing: impl Into<Thing>) {
        *self.0.entry(thing.into()).or_default() += 1;
    }

    /// How often something happened.
    pub fn count(&self, thing: Thing) -> u64 {
        self.0.get(&thing).copied().unwrap_or(0)
    }

    /// Adds what another simulation led through.
    pub fn add(&mut self, other: &Self) {
        for (thing, count) in &other.0 {
            *self.0.entry(*thing).or_default() += count;
        }
    }

    /// What never happened, of what lives by chance lead to. A provider that goes in the very moment
    /// in which its attempt is to be taken up again is met in a scenario.
    pub fn missing(&self) -> Vec<Thing> {
        let by_chance = Thing::ALL.iter().copied().filter(|thing| *thing != Thing::Detached);
        by_chance.filter(|thing| self.count(*thing) == 0).collect()
    }
}
