//! The store: the only place where anything becomes true.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use wharf_domain::{Account, Ask, AuditRecord, Entry, Price, Progress, Rights, RunSummary};
use wharf_vocab::{
    AccountId, Code, CommitNo, Epoch, Fault, GrantId, HoldId, NodeId, RunKey, RunStatus, Seq,
    ShardId, StreamId, StreamKind, Timestamp, ToolId, WorldId,
};

use crate::{
    AuditPage, AuditQuery, Batch, CommitError, CostQuery, CostRow, FileQuery, FileRecord,
    FolderQuery, FolderSize, StatsQuery, StatsRow, TraceQuery, WorldSize,
};

/// What the engine needs of a store.
///
/// A batch that was reported as committed survives everything but the loss of the medium. Many
/// batches may share one transaction, yet each succeeds or is refused alone, in the order given.
pub trait Store: Send + Sync + std::fmt::Debug + 'static {
    /// Commits each batch, or says why not; one answer per batch, in order.
    fn commit(&self, batches: Vec<Arc<Batch>>) -> BoxFuture<'static, Vec<Result<(), CommitError>>>;

    /// Takes the leases on these shards that are free, expired or already held by `node`; each
    /// gets a new epoch, and writes with an older one are refused from then on.
    fn acquire(
        &self,
        node: NodeId,
        shards: Vec<ShardId>,
        ttl_ms: u64,
    ) -> BoxFuture<'static, Result<Vec<Lease>, StoreError>>;

    /// Prolongs all leases that `node` holds, and tells who holds which.
    fn renew(&self, node: NodeId, ttl_ms: u64)
    -> BoxFuture<'static, Result<LeaseView, StoreError>>;

    /// Shards that turned out to have lost something which this store had reported as committed,
    /// as they may when a standby takes over; each is told once. What is remembered of them is
    /// wrong.
    fn take_rewound(&self) -> Vec<RewoundShard> {
        Vec::new()
    }

    /// The entries of one stream, without progress.
    fn load(&self, stream: StreamId) -> BoxFuture<'static, Result<Option<History>, StoreError>>;

    /// All open streams of a kind in these shards, without progress and without what
    /// [`Entry::lean`] leaves out, and of a flow without what happened to its steps before it was
    /// folded last ([`Entry::is_folded`]): however much all open runs were given, no more than one run's
    /// inputs are in memory at once.
    fn load_open(
        &self,
        kind: StreamKind,
        shards: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(StreamId, History)>, StoreError>>;

    /// Some streams of a kind that are not open, up to so many.
    fn closed(
        &self,
        kind: StreamKind,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<StreamId>, StoreError>>;

    /// The open runs whose parents belong to these shards, in whatever shards they are themselves:
    /// the parent of each and the run, in no particular order.
    fn open_children(
        &self,
        parents: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(RunKey, RunKey)>, StoreError>>;

    /// Entries and progress of one stream behind `after`, in order; at most about `limit` of
    /// them, and never a part of what was committed together.
    fn history(
        &self,
        stream: StreamId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<HistoryRecord>, StoreError>>;

    /// Runs, newest first.
    fn runs(&self, query: RunQuery) -> BoxFuture<'static, Result<RunPage, StoreError>>;

    /// How many runs the query wants that lie within these rights, counted up to a number. Where
    /// a page begins and how long it is does not matter.
    fn count_runs(
        &self,
        query: RunQuery,
        within: Arc<Rights>,
        up_to: u64,
    ) -> BoxFuture<'static, Result<u64, StoreError>>;

    /// How many runs were accepted in each piece of a time, by the piece and then by key.
    fn run_stats(&self, query: StatsQuery)
    -> BoxFuture<'static, Result<Vec<StatsRow>, StoreError>>;

    /// What runs have cost; days in their order, all else with the dearest first.
    fn costs(&self, query: CostQuery) -> BoxFuture<'static, Result<Vec<CostRow>, StoreError>>;

    /// Files that are there now, in the order of their paths.
    fn files(&self, query: FileQuery) -> BoxFuture<'static, Result<Vec<FileRecord>, StoreError>>;

    /// Who wrote and read files, oldest first.
    fn trace(&self, query: TraceQuery) -> BoxFuture<'static, Result<Vec<FileRecord>, StoreError>>;

    /// How much a world holds.
    fn usage(&self, world: WorldId) -> BoxFuture<'static, Result<WorldSize, StoreError>>;

    /// How much some folders hold, in the order in which they are named. No more than so many files
    /// of each are looked at, the first by path.
    fn folder_sizes(
        &self,
        query: FolderQuery,
    ) -> BoxFuture<'static, Result<Vec<FolderSize>, StoreError>>;

    /// Open asks, oldest first, behind `after` (a [`OpenAsk::position`]).
    fn open_asks(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<OpenAsk>, StoreError>>;

    /// Asks that were decided, newest first, before a [`OpenAsk::position`].
    fn decided_asks(
        &self,
        before: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<OpenAsk>, StoreError>>;

    /// One account.
    fn account(&self, id: AccountId) -> BoxFuture<'static, Result<Option<Account>, StoreError>>;

    /// The open holds that were taken by batches of these shards.
    fn holds(
        &self,
        shards: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(ShardId, HoldId)>, StoreError>>;

    /// The most that definitions of tools have cost, by tool, the oldest definition first.
    fn prices(&self) -> BoxFuture<'static, Result<Vec<Price>, StoreError>>;

    /// Records of the audit behind `after` (a [`SealedRecord::id`]), in the order of commit.
    fn audit(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<SealedRecord>, StoreError>>;

    /// Records of the audit that a query wants. It looks at a bounded number of records, and says
    /// how far it came.
    fn find_audit(&self, query: AuditQuery) -> BoxFuture<'static, Result<AuditPage, StoreError>>;

    /// Removes those of these streams that are there and not open, with all they hold and the
    /// names that were claimed when they were made: all at once or none; says how many. What a run
    /// has cost stays in the sums, by the hour it was accepted in. Files that it wrote stay, and
    /// so do the records of what it wrote and read, so that what was made of them can still be
    /// traced.
    fn purge(&self, streams: Vec<StreamId>) -> BoxFuture<'static, Result<u64, StoreError>>;

    /// Gives up to so many bytes that nothing uses back to the file system; says how many more
    /// could be given. A store that cannot give any says none.
    fn shrink(&self, bytes_max: u64) -> BoxFuture<'static, Result<u64, StoreError>>;

    /// Makes what was taken out of streams unreadable for good, as far as the store can; `false`
    /// if it must be asked again for that.
    fn shred(&self) -> BoxFuture<'static, Result<bool, StoreError>> {
        async { Ok(true) }.boxed()
    }

    /// How much room the store takes.
    fn size(&self) -> BoxFuture<'static, Result<StoreSize, StoreError>>;
}

/// How much room a store takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreSize {
    /// All that its file has.
    pub bytes: u64,
    /// How much of that nothing uses.
    pub free_bytes: u64,
    /// What was committed and not yet moved into the file.
    pub log_bytes: u64,
}

/// A shard of which less is stored than was reported as committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewoundShard {
    /// The shard.
    pub shard: ShardId,
    /// The last commit that was reported.
    pub reported: CommitNo,
    /// The last that is there.
    pub found: CommitNo,
    /// Records of the audit that are gone with it.
    pub records_lost: u64,
}

/// A lease on a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The shard.
    pub shard: ShardId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The number of the last batch committed in the shard.
    pub last: CommitNo,
}

/// Who may write which shard, as a renewal found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseView {
    /// The shards that anybody ever held, each with the core that held it last, in their order.
    pub owners: Vec<ShardOwner>,
    /// The cores that ever prolonged their leases, as far as the store is shared.
    pub cores: Vec<CoreLease>,
    /// When the store did it, by its own clock.
    pub at: Timestamp,
    /// Whether nobody else can reach the store for as long as it is open, so that no lease passes
    /// on meanwhile, however late it is prolonged.
    pub alone: bool,
}

/// Until when a core's leases last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreLease {
    /// The core.
    pub node: NodeId,
    /// Until when, by the store's clock.
    pub until: Timestamp,
}

/// The core that held a shard last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardOwner {
    /// The shard.
    pub shard: ShardId,
    /// The core.
    pub node: NodeId,
    /// The epoch in which it holds it.
    pub epoch: Epoch,
    /// Until when, by the store's clock.
    pub until: Timestamp,
}

/// What a stream holds, without progress.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The number of its last entry or piece of progress.
    pub seq: Seq,
    /// Its entries, each with the moment of its batch.
    pub entries: Vec<(Timestamp, Entry)>,
}

/// One thing of a stream's history.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryRecord {
    /// Its place.
    pub seq: Seq,
    /// The moment of its batch.
    pub at: Timestamp,
    /// What it is.
    pub item: HistoryItem,
}

/// An entry or a piece of progress.
#[derive(Debug, Clone, PartialEq)]
pub enum HistoryItem {
    /// An entry.
    Entry(Entry),
    /// A piece of progress.
    Progress(Progress),
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Only of this world.
    pub world: Option<WorldId>,
    /// Only of this tool.
    pub tool: Option<ToolId>,
    /// Only in one of these; in any when empty.
    pub statuses: Vec<RunStatus>,
    /// Only those that a client of MCP called for with this grant.
    pub grant: Option<GrantId>,
    /// Only those that were called for with this grant.
    pub caller: Option<GrantId>,
    /// Only those that this run started.
    pub parent: Option<RunKey>,
    /// Only those that are part of this.
    pub correlation_id: Option<String>,
    /// Only those whose id begins so: of very many, those with the greatest ids.
    pub id_prefix: Option<String>,
    /// Only those that have cost more than was held for them.
    pub over_hold: bool,
    /// Only those that have cost something.
    pub paid: bool,
    /// Only those that did not succeed with this code; `*` at its end stands for whatever follows.
    pub error: Option<String>,
    /// Only those whose error says this, whatever the case of its letters.
    pub error_text: Option<String>,
    /// Only those whose world, id, tool, correlation id, or the code or message of whose error say
    /// this, whatever the case of its letters. Inputs and outputs are not searched.
    pub text: Option<String>,
    /// Only runs accepted at this moment or later.
    pub since: Option<Timestamp>,
    /// Only runs accepted before this moment.
    pub until: Option<Timestamp>,
    /// Only stored runs accepted before the one at this position.
    pub before: Option<u64>,
    /// Only runs in memory accepted before the one with this number; a store has none.
    pub memory_before: Option<u64>,
    /// How many at most.
    pub limit: usize,
}

impl RunQuery {
    /// Whether it wants a run, wherever its page begins.
    pub fn wants(&self, run: &RunSummary) -> bool {
        let same = |wanted: Option<&GrantId>, has: Option<&GrantId>| {
            wanted.is_none_or(|wanted| has == Some(wanted))
        };
        self.world.as_ref().is_none_or(|world| run.key.world == *world)
            && self.tool.as_ref().is_none_or(|tool| run.tool == *tool)
            && (self.statuses.is_empty() || self.statuses.contains(&run.status))
            && same(self.grant.as_ref(), run.grant.as_ref())
            && same(self.caller.as_ref(), run.caller.as_ref())
            && self.parent.as_ref().is_none_or(|parent| run.parent.as_ref() == Some(parent))
            && self.correlation_id.as_ref().is_none_or(|id| run.correlation_id.as_ref() == Some(id))
            && self
                .id_prefix
                .as_ref()
                .is_none_or(|it| run.key.run.as_str().starts_with(it.as_str()))
            && (!self.over_hold || run.over_hold)
            && (!self.paid || run.cost_micro > 0)
            && self.wants_error(run.error.as_ref())
            && self.wants_text(run)
            && self.since.is_none_or(|since| run.created_at >= since)
            && self.until.is_none_or(|until| run.created_at < until)
    }

    fn wants_text(&self, run: &RunSummary) -> bool {
        let Some(text) = &self.text else { return true };
        let text = text.to_ascii_lowercase();
        let says = |said: &str| said.to_ascii_lowercase().contains(&text);
        says(&run.key.to_string())
            || says(run.tool.as_str())
            || run.correlation_id.as_deref().is_some_and(says)
            || run.error.as_ref().is_some_and(|it| says(it.code.as_str()) || says(&it.message))
    }

    fn wants_error(&self, error: Option<&Fault>) -> bool {
        let coded = |error: &Fault| match self.error.as_deref().map(|it| (it, it.strip_suffix('*')))
        {
            Some((_, Some(begin))) => error.code.as_str().starts_with(begin),
            Some((whole, None)) => error.code.as_str() == whole,
            None => true,
        };
        let said = |error: &Fault| {
            let says = |text: &String| {
                error.message.to_ascii_lowercase().contains(&text.to_ascii_lowercase())
            };
            self.error_text.as_ref().is_none_or(says)
        };
        let any = self.error.is_none() && self.error_text.is_none();
        any || error.is_some_and(|error| coded(error) && said(error))
    }
}

/// Most ids that a beginning of an id finds.
pub const ID_PREFIX_RUNS_MAX: usize = 1_000;

/// A page of runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunPage {
    /// The runs, newest first.
    pub runs: Vec<RunSummary>,
    /// Where a page begins that comes behind each of them.
    pub places: Vec<RunPlace>,
    /// Where the stored runs of the next page begin, if there is one.
    pub next: Option<u64>,
}

/// A place in the list of all runs: behind a stored one and behind one in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPlace {
    /// The position of the last stored run before it.
    pub stored: u64,
    /// The number of the last run in memory before it.
    pub memory: u64,
}

impl RunPlace {
    /// Before all runs.
    pub const FIRST: Self = Self { stored: i64::MAX as u64, memory: u64::MAX };

    /// Reads a place as it is written.
    pub fn parse(text: &str) -> Option<Self> {
        let (stored, memory) = text.split_once('.')?;
        Some(Self { stored: stored.parse().ok()?, memory: memory.parse().ok()? })
    }
}

impl std::fmt::Display for RunPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.stored, self.memory)
    }
}

/// An open ask and its place in the order of all asks.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAsk {
    /// Its place.
    pub position: u64,
    /// The ask.
    pub ask: Ask,
}

/// A record of the audit with its seal.
#[derive(Debug, Clone, PartialEq)]
pub struct SealedRecord {
    /// Its place in the whole audit.
    pub id: u64,
    /// The chain it belongs to.
    pub shard: ShardId,
    /// Its place in that chain, from 1.
    pub n: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub record: AuditRecord,
    /// The seal over it and all before it in its chain.
    pub mac: [u8; 32],
}

/// What kind of trouble the store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// No room is left.
    Full,
    /// It cannot be read or written now.
    Unavailable,
    /// It was written by a newer version.
    Newer,
    /// What it holds cannot be understood.
    Corrupt,
}

/// The store could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// What kind of trouble it is.
    pub kind: StoreErrorKind,
    /// For the log; not for peers.
    pub message: String,
}

/// The error as whoever asked may see it.
impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match error.kind {
            StoreErrorKind::Full => Fault::new(
                Code::StoreFull,
                "The store has no room left; free some space and try again.",
            ),
            StoreErrorKind::Unavailable => {
                Fault::new(Code::StoreUnavailable, "The store cannot be reached now; try again.")
            }
            StoreErrorKind::Newer => Fault::new(
                Code::StoreNewer,
                "The database was written by a newer version of Wharf; use that version.",
            ),
            StoreErrorKind::Corrupt => {
                Fault::new(Code::StoreCorrupt, "What the store holds cannot be understood.")
            }
        }
    }
}
