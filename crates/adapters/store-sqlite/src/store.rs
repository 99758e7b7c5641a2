//! The store behind the port.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use wharf_domain::{Account, Price, Rights};
use wharf_journal::audit::{Anchors, AuditKey, Sealer};
use wharf_ports::plan::Prepared;
use wharf_ports::{
    AuditPage, AuditQuery, Batch, Body, Clock, CommitError, CostQuery, CostRow, FileQuery,
    FileRecord, FolderQuery, FolderSize, History, HistoryRecord, Lease, LeaseView, OpenAsk,
    RunPage, RunQuery, SealedRecord, StatsQuery, StatsRow, Store, StoreError, StoreSize,
    TraceQuery, WorldSize,
};
use wharf_vocab::{AccountId, HoldId, NodeId, RunKey, Seq, ShardId, StreamId, StreamKind, WorldId};

use crate::error::unavailable;
use crate::readers::Readers;
use crate::writer::{Answers, Commit, Job, QUEUE_JOBS_MAX, Writer};
use crate::{connect, read, room};

/// A store in one SQLite file.
///
/// Dropping it leaves everything that was committed on disk; [`close`](Self::close) also tidies
/// up the log.
#[derive(Debug)]
pub struct SqliteStore {
    jobs: mpsc::Sender<Job>,
    thread: Mutex<Option<JoinHandle<()>>>,
    readers: Readers,
    clock: Arc<dyn Clock>,
    audit_growth: Arc<AtomicU64>,
}

impl SqliteStore {
    /// Opens the database at `path`, makes it if it is not there, and brings its schema up to
    /// date. Leases expire by `clock`. Blocks while it works.
    pub fn open(
        path: &Path,
        audit_key: &AuditKey,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let writer = Writer::new(connect::writer(path)?, Sealer::new(audit_key));
        let audit_growth = writer.audit_growth();
        let (jobs, queue) = mpsc::channel(QUEUE_JOBS_MAX);
        let thread = std::thread::Builder::new()
            .name("wharf-store".to_owned())
            .spawn(move || writer.run(queue))
            .map_err(|error| unavailable(format!("cannot start the writer: {error}")))?;
        let readers = Readers::of(path);
        Ok(Self { jobs, thread: Mutex::new(Some(thread)), readers, clock, audit_growth })
    }

    /// Finishes what was begun, moves the log into the file and ends the writer. Whatever is
    /// asked afterwards is refused as unavailable.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.readers.close().await;
        let (answer, closed) = oneshot::channel();
        let asked = self.jobs.send(Job::Close(answer)).await;
        let result = match asked {
            Ok(()) => closed.await.unwrap_or_else(|_| Err(gone())),
            Err(_) => Ok(()),
        };
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                return Err(unavailable("the writer ended with a fault"));
            }
        }
        result
    }

    /// The signed heads of the audit's chains as they are now, to be kept outside the store.
    pub fn anchors(&self) -> BoxFuture<'static, Result<Anchors, StoreError>> {
        self.readers.read(|view| Ok(Anchors { heads: read::heads(view)? }))
    }

    /// How many commits have added to the audit since the store was opened.
    pub fn audit_growth(&self) -> u64 {
        self.audit_growth.load(Ordering::Acquire)
    }

    /// How large the file is, with what is not yet moved into it.
    pub fn file_bytes(&self) -> Option<u64> {
        let path = self.readers.path();
        let size = |path: &Path| std::fs::metadata(path).map(|about| about.len()).ok();
        Some(size(path)? + size(&connect::log_of(path)).unwrap_or(0))
    }

    /// Has the writer do something between two groups.
    pub(crate) fn act<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Writer) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let jobs = self.jobs.clone();
        async move {
            let (answer, done) = oneshot::channel();
            let job = Job::Act(Box::new(move |writer| {
                // Whoever asked may have gone away.
                let _ = answer.send(act(writer));
            }));
            jobs.send(job).await.map_err(|_| gone())?;
            done.await.unwrap_or_else(|_| Err(gone()))
        }
        .boxed()
    }
}

fn gone() -> StoreError {
    unavailable("the store is closed")
}

fn encode(body: &Body) -> Vec<u8> {
    match body {
        Body::Entries(entries) => wharf_journal::encode(entries),
        Body::Progress(pieces) => wharf_journal::encode_progress(pieces),
    }
}

/// Turns batches into bytes, here and not on the writer's thread, and waits for their answers.
async fn commit(jobs: mpsc::Sender<Job>, batches: Vec<Arc<Batch>>) -> Answers {
    let count = batches.len();
    if count == 0 {
        return Answers::new();
    }
    let prepared =
        batches.iter().map(|batch| Prepared::of(batch, encode)).collect::<Result<_, _>>();
    drop(batches);
    let answers = match prepared {
        Ok(batches) => {
            let (answer, answers) = oneshot::channel();
            match jobs.send(Job::Commit(Commit { batches, answer })).await {
                Ok(()) => answers.await.map_err(|_| gone()),
                Err(_) => Err(gone()),
            }
        }
        Err(error) => Err(error),
    };
    answers.unwrap_or_else(|error| vec![Err(CommitError::Failed(error)); count])
}

impl Store for SqliteStore {
    fn commit(&self, batches: Vec<Arc<Batch>>) -> BoxFuture<'static, Answers> {
        commit(self.jobs.clone(), batches).boxed()
    }

    fn acquire(
        &self,
        node: NodeId,
        shards: Vec<ShardId>,
        ttl_ms: u64,
    ) -> BoxFuture<'static, Result<Vec<Lease>, StoreError>> {
        let clock = Arc::clone(&self.clock);
        self.act(move |writer| writer.acquire(&node, &shards, ttl_ms, clock.now()))
    }

    fn renew(
        &self,
        node: NodeId,
        ttl_ms: u64,
    ) -> BoxFuture<'static, Result<LeaseView, StoreError>> {
        let clock = Arc::clone(&self.clock);
        self.act(move |writer| writer.renew(&node, ttl_ms, clock.now()))
    }

    fn load(&self, stream: StreamId) -> BoxFuture<'static, Result<Option<History>, StoreError>> {
        self.readers.read(move |view| read::load(view, &stream))
    }

    fn load_open(
        &self,
        kind: StreamKind,
        shards: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(StreamId, History)>, StoreError>> {
        self.readers.read(move |view| read::load_open(view, kind, &shards))
    }

    fn closed(
        &self,
        kind: StreamKind,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<StreamId>, StoreError>> {
        self.readers.read(move |view| read::closed(view, kind, limit))
    }

    fn open_children(
        &self,
        parents: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(RunKey, RunKey)>, StoreError>> {
        self.readers.read(move |view| read::open_children(view, &parents))
    }

    fn history(
        &self,
        stream: StreamId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<HistoryRecord>, StoreError>> {
        self.readers.read(move |view| read::history(view, &stream, after, limit))
    }

    fn runs(&self, query: RunQuery) -> BoxFuture<'static, Result<RunPage, StoreError>> {
        self.readers.read(move |view| read::runs(view, &query))
    }

    fn count_runs(
        &self,
        query: RunQuery,
        within: Arc<Rights>,
        up_to: u64,
    ) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.readers.read(move |view| read::count_runs(view, &query, &within, up_to))
    }

    fn run_stats(
        &self,
        query: StatsQuery,
    ) -> BoxFuture<'static, Result<Vec<StatsRow>, StoreError>> {
        self.readers.read(move |view| read::run_stats(view, &query))
    }

    fn costs(&self, query: CostQuery) -> BoxFuture<'static, Result<Vec<CostRow>, StoreError>> {
        self.readers.read(move |view| read::costs(view, &query))
    }

    fn files(&self, query: FileQuery) -> BoxFuture<'static, Result<Vec<FileRecord>, StoreError>> {
        self.readers.read(move |view| read::files(view, &query))
    }

    fn trace(&self, query: TraceQuery) -> BoxFuture<'static, Result<Vec<FileRecord>, StoreError>> {
        self.readers.read(move |view| read::trace(view, &query))
    }

    fn usage(&self, world: WorldId) -> BoxFuture<'static, Result<WorldSize, StoreError>> {
        self.readers.read(move |view| read::usage(view, &world))
    }

    fn folder_sizes(
        &self,
        query: FolderQuery,
    ) -> BoxFuture<'static, Result<Vec<FolderSize>, StoreError>> {
        self.readers.read(move |view| read::folder_sizes(view, &query))
    }

    fn open_asks(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<OpenAsk>, StoreError>> {
        self.readers.read(move |view| read::open_asks(view, after, limit))
    }

    fn decided_asks(
        &self,
        before: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<OpenAsk>, StoreError>> {
        self.readers.read(move |view| read::decided_asks(view, before, limit))
    }

    fn account(&self, id: AccountId) -> BoxFuture<'static, Result<Option<Account>, StoreError>> {
        self.readers.read(move |view| read::account(view, &id))
    }

    fn holds(
        &self,
        shards: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(ShardId, HoldId)>, StoreError>> {
        self.readers.read(move |view| read::holds(view, &shards))
    }

    fn prices(&self) -> BoxFuture<'static, Result<Vec<Price>, StoreError>> {
        self.readers.read(|view| read::prices(view))
    }

    fn audit(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<SealedRecord>, StoreError>> {
        self.readers.read(move |view| read::audit(view, after, limit))
    }

    fn find_audit(&self, query: AuditQuery) -> BoxFuture<'static, Result<AuditPage, StoreError>> {
        self.readers.read(move |view| read::find_audit(view, &query))
    }

    fn purge(&self, streams: Vec<StreamId>) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.act(move |writer| writer.purge(&streams))
    }

    fn shrink(&self, bytes_max: u64) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.act(move |writer| writer.shrink(bytes_max))
    }

    fn shred(&self) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.act(Writer::shred)
    }

    fn size(&self) -> BoxFuture<'static, Result<StoreSize, StoreError>> {
        let log = connect::log_of(self.readers.path());
        self.readers.read(move |view| room::size(view, &log))
    }
}

#[cfg(test)]
mod full_disk;
