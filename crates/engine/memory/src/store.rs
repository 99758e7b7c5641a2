//! The memory store behind the trait, with switches for trouble.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use wharf_domain::{Account, Price, Rights};
use wharf_journal::audit::AuditKey;
use wharf_vocab::{AccountId, HoldId, NodeId, RunKey, Seq, ShardId, StreamId, StreamKind, WorldId};

use super::MemoryState;
use wharf_ports::{
    AuditPage, AuditQuery, Batch, Clock, CommitError, CostQuery, CostRow, FileQuery, FileRecord,
    FolderQuery, FolderSize, History, HistoryRecord, Lease, LeaseView, OpenAsk, RunPage, RunQuery,
    SealedRecord, StatsQuery, StatsRow, Store, StoreError, StoreErrorKind, StoreSize, TraceQuery,
    WorldSize,
};

/// A store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    inner: Arc<Mutex<StoreState>>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
struct StoreState {
    state: MemoryState,
    /// How many calls of `commit` are still to fail, and how.
    failing: Option<(usize, StoreErrorKind)>,
    /// How many calls of `commit` are to be made and reported as failed.
    denied: usize,
    /// Commits that are held back, in order; `None` when none is to be.
    held: Option<VecDeque<HeldCommit>>,
    /// Whether leases are held back, and how many wait for one.
    leases: watch::Sender<(bool, usize)>,
    /// The stream whose entries are held back, and how many wait for them.
    loads: watch::Sender<(Option<StreamId>, usize)>,
    /// Whether other cores can take leases.
    shared: bool,
    /// Whether leases cannot be prolonged.
    renewals_fail: bool,
    /// How often somebody wanted to prolong leases.
    renewals: watch::Sender<u64>,
}

type Answers = Vec<Result<(), CommitError>>;

#[derive(Debug)]
struct HeldCommit {
    batches: Vec<Arc<Batch>>,
    answer: oneshot::Sender<Answers>,
}

impl MemoryStore {
    /// An empty store that seals its audit with this key and reads this clock.
    pub fn new(key: &AuditKey, clock: Arc<dyn Clock>) -> Self {
        Self::with_state(MemoryState::new(key), clock)
    }

    /// A store that begins with what another one held.
    pub fn with_state(state: MemoryState, clock: Arc<dyn Clock>) -> Self {
        let leases = watch::Sender::new((false, 0));
        let loads = watch::Sender::new((None, 0));
        let inner = StoreState {
            state,
            failing: None,
            denied: 0,
            held: None,
            leases,
            loads,
            shared: false,
            renewals_fail: false,
            renewals: watch::Sender::new(0),
        };
        Self { inner: Arc::new(Mutex::new(inner)), clock }
    }

    /// What the store holds now.
    pub fn state(&self) -> MemoryState {
        self.inner.lock().state.clone()
    }

    /// Lets the next `calls` of `commit` fail as a whole; nothing of them becomes true.
    pub fn fail_commits(&self, calls: usize, kind: StoreErrorKind) {
        self.inner.lock().failing = Some((calls, kind));
    }

    /// Makes the next `calls` of `commit` and says of each that the store could not be reached,
    /// as a store does whose connection breaks at the wrong moment.
    pub fn deny_commits(&self, calls: usize) {
        self.inner.lock().denied = calls;
    }

    /// Holds commits back until [`release_commits`](Self::release_commits).
    pub fn hold_commits(&self) {
        self.inner.lock().held.get_or_insert_default();
    }

    /// How many calls of `commit` are held back.
    pub fn commits_held(&self) -> usize {
        self.inner.lock().held.as_ref().map_or(0, VecDeque::len)
    }

    /// Commits what was held back, in order, and holds nothing back any more.
    pub fn release_commits(&self) {
        let mut inner = self.inner.lock();
        for held in inner.held.take().unwrap_or_default() {
            let answers = inner.commit(&held.batches);
            // Whoever waited may have gone away; the commit is true all the same.
            let _ = held.answer.send(answers);
        }
    }

    /// Says from the next renewal on that other cores can reach the store, so that leases may pass
    /// on.
    pub fn share(&self) {
        self.inner.lock().shared = true;
    }

    /// Lets a core with this name take the leases that are over or its own.
    pub fn take_leases(&self, node: &NodeId, shards: &[ShardId], ttl_ms: u64) -> Vec<Lease> {
        self.inner.lock().state.acquire(node, shards, ttl_ms, self.clock.now())
    }

    /// Says whether renewals fail from now on.
    pub fn fail_renewals(&self, fail: bool) {
        self.inner.lock().renewals_fail = fail;
    }

    /// Waits until somebody wants to prolong leases once more.
    pub async fn until_renewal(&self) {
        let mut renewals = self.inner.lock().renewals.subscribe();
        // The sender lives as long as the store.
        let _ = renewals.changed().await;
    }

    /// Gives nobody a lease until [`release_leases`](Self::release_leases).
    pub fn hold_leases(&self) {
        self.inner.lock().leases.send_modify(|(held, _)| *held = true);
    }

    /// Waits until somebody waits for a lease.
    pub async fn until_leases_held(&self) {
        let mut leases = self.inner.lock().leases.subscribe();
        // The sender lives as long as the store.
        let _ = leases.wait_for(|(_, waiting)| *waiting > 0).await;
    }

    /// Gives leases again.
    pub fn release_leases(&self) {
        self.inner.lock().leases.send_modify(|(held, _)| *held = false);
    }

    /// Lets nobody load a stream until [`release_loads`](Self::release_loads).
    pub fn hold_loads(&self, stream: StreamId) {
        self.inner.lock().loads.send_modify(|(held, _)| *held = Some(stream));
    }

    /// Waits until somebody waits for a stream.
    pub async fn until_loads_held(&self) {
        let mut loads = self.inner.lock().loads.subscribe();
        // The sender lives as long as the store.
        let _ = loads.wait_for(|(_, waiting)| *waiting > 0).await;
    }

    /// Lets streams be loaded again.
    pub fn release_loads(&self) {
        self.inner.lock().loads.send_modify(|(held, _)| *held = None);
    }

    fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut MemoryState) -> T,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        ready(Ok(act(&mut self.inner.lock().state))).boxed()
    }
}

impl StoreState {
    fn commit(&mut self, batches: &[Arc<Batch>]) -> Answers {
        match &mut self.failing {
            Some((calls, kind)) if *calls > 0 => {
                *calls -= 1;
                let error = StoreError { kind: *kind, message: "told to fail".to_owned() };
                vec![Err(CommitError::Failed(error)); batches.len()]
            }
            _ => {
                let answers = batches.iter().map(|batch| self.state.commit_one(batch)).collect();
                if self.denied == 0 {
                    return answers;
                }
                self.denied -= 1;
                let kind = StoreErrorKind::Unavailable;
                let error = StoreError { kind, message: "told to deny it".to_owned() };
                vec![Err(CommitError::Failed(error)); batches.len()]
            }
        }
    }
}

/// A panic elsewhere cannot leave the state half-changed in a way that matters to tests.
impl Store for MemoryStore {
    fn commit(&self, batches: Vec<Arc<Batch>>) -> BoxFuture<'static, Answers> {
        let inner = Arc::clone(&self.inner);
        let count = batches.len();
        let commit = async move {
            let waiting = {
                let mut inner = inner.lock();
                match &mut inner.held {
                    None => return inner.commit(&batches),
                    Some(held) => {
                        let (answer, waiting) = oneshot::channel();
                        held.push_back(HeldCommit { batches, answer });
                        waiting
                    }
                }
            };
            drop(inner);
            waiting.await.unwrap_or_else(|_| {
                let kind = StoreErrorKind::Unavailable;
                let error = StoreError { kind, message: "the store is gone".to_owned() };
                vec![Err(CommitError::Failed(error)); count]
            })
        };
        commit.boxed()
    }

    fn acquire(
        &self,
        node: NodeId,
        shards: Vec<ShardId>,
        ttl_ms: u64,
    ) -> BoxFuture<'static, Result<Vec<Lease>, StoreError>> {
        let (inner, clock) = (Arc::clone(&self.inner), Arc::clone(&self.clock));
        let acquire = async move {
            let mut leases = inner.lock().leases.subscribe();
            if leases.borrow().0 {
                inner.lock().leases.send_modify(|(_, waiting)| *waiting += 1);
                // The sender lives as long as the store.
                let _ = leases.wait_for(|(held, _)| !held).await;
            }
            Ok(inner.lock().state.acquire(&node, &shards, ttl_ms, clock.now()))
        };
        acquire.boxed()
    }

    fn renew(
        &self,
        node: NodeId,
        ttl_ms: u64,
    ) -> BoxFuture<'static, Result<LeaseView, StoreError>> {
        let (mut inner, now) = (self.inner.lock(), self.clock.now());
        inner.renewals.send_modify(|asked| *asked += 1);
        if inner.renewals_fail {
            let kind = StoreErrorKind::Unavailable;
            let error = StoreError { kind, message: "told to fail".to_owned() };
            return ready(Err(error)).boxed();
        }
        inner.state.renew(&node, ttl_ms, now);
        ready(Ok(inner.state.lease_view(!inner.shared, now))).boxed()
    }

    fn load(&self, stream: StreamId) -> BoxFuture<'static, Result<Option<History>, StoreError>> {
        let inner = Arc::clone(&self.inner);
        let load = async move {
            let mut loads = inner.lock().loads.subscribe();
            if loads.borrow().0.as_ref() == Some(&stream) {
                inner.lock().loads.send_modify(|(_, waiting)| *waiting += 1);
                // The sender lives as long as the store.
                let _ = loads.wait_for(|(held, _)| held.as_ref() != Some(&stream)).await;
            }
            Ok(inner.lock().state.load(&stream))
        };
        load.boxed()
    }

    fn load_open(
        &self,
        kind: StreamKind,
        shards: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(StreamId, History)>, StoreError>> {
        self.with(|state| state.load_open(kind, &shards))
    }

    fn closed(
        &self,
        kind: StreamKind,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<StreamId>, StoreError>> {
        self.with(move |state| state.closed(kind, limit))
    }

    fn open_children(
        &self,
        parents: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(RunKey, RunKey)>, StoreError>> {
        self.with(|state| state.open_children(&parents))
    }

    fn history(
        &self,
        stream: StreamId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<HistoryRecord>, StoreError>> {
        self.with(|state| state.history(&stream, after, limit))
    }

    fn runs(&self, query: RunQuery) -> BoxFuture<'static, Result<RunPage, StoreError>> {
        self.with(|state| state.runs(&query))
    }

    fn count_runs(
        &self,
        query: RunQuery,
        within: Arc<Rights>,
        up_to: u64,
    ) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.with(|state| state.count_runs(&query, &within, up_to))
    }

    fn run_stats(
        &self,
        query: StatsQuery,
    ) -> BoxFuture<'static, Result<Vec<StatsRow>, StoreError>> {
        self.with(|state| state.run_stats(&query))
    }

    fn costs(&self, query: CostQuery) -> BoxFuture<'static, Result<Vec<CostRow>, StoreError>> {
        self.with(|state| state.costs(&query))
    }

    fn files(&self, query: FileQuery) -> BoxFuture<'static, Result<Vec<FileRecord>, StoreError>> {
        self.with(|state| state.files(&query))
    }

    fn trace(&self, query: TraceQuery) -> BoxFuture<'static, Result<Vec<FileRecord>, StoreError>> {
        self.with(|state| state.trace(&query))
    }

    fn usage(&self, world: WorldId) -> BoxFuture<'static, Result<WorldSize, StoreError>> {
        self.with(|state| state.usage(&world))
    }

    fn folder_sizes(
        &self,
        query: FolderQuery,
    ) -> BoxFuture<'static, Result<Vec<FolderSize>, StoreError>> {
        self.with(|state| state.folder_sizes(&query))
    }

    fn open_asks(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<OpenAsk>, StoreError>> {
        self.with(|state| state.open_asks(after, limit))
    }

    fn decided_asks(
        &self,
        before: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<OpenAsk>, StoreError>> {
        self.with(|state| state.decided_asks(before, limit))
    }

    fn account(&self, id: AccountId) -> BoxFuture<'static, Result<Option<Account>, StoreError>> {
        self.with(|state| state.account(&id))
    }

    fn holds(
        &self,
        shards: Vec<ShardId>,
    ) -> BoxFuture<'static, Result<Vec<(ShardId, HoldId)>, StoreError>> {
        self.with(|state| state.holds(&shards))
    }

    fn prices(&self) -> BoxFuture<'static, Result<Vec<Price>, StoreError>> {
        self.with(|state| state.prices())
    }

    fn audit(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<SealedRecord>, StoreError>> {
        self.with(|state| state.audit(after, limit))
    }

    fn find_audit(&self, query: AuditQuery) -> BoxFuture<'static, Result<AuditPage, StoreError>> {
        self.with(|state| state.find_audit(&query))
    }

    fn purge(&self, streams: Vec<StreamId>) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.with(|state| state.purge(&streams))
    }

    fn shrink(&self, _: u64) -> BoxFuture<'static, Result<u64, StoreError>> {
        self.with(|_| 0)
    }

    fn size(&self) -> BoxFuture<'static, Result<StoreSize, StoreError>> {
        self.with(|_| StoreSize::default())
    }
}

#[cfg(test)]
mod tests {
    use wharf_domain::{Actor, AuditEvent, AuditRecord, Subject};
    use wharf_vocab::{CommitNo, Epoch, Timestamp};

    use super::*;
    use wharf_ports::ManualClock;

    async fn store() -> (MemoryStore, Arc<Batch>) {
        let clock = Arc::new(ManualClock::at(Timestamp(1_000)));
        let store = MemoryStore::new(&AuditKey::new([1; 32]), clock);
        let node = NodeId::new("n").expect("valid");
        store.acquire(node, vec![ShardId(3)], 1_000).await.expect("free");
        let batch = Batch {
            shard: ShardId(3),
            epoch: Epoch(1),
            no: CommitNo(1),
            at: Timestamp(1_000),
            appends: Vec::new(),
            claims: Vec::new(),
            requires: Vec::new(),
            ledger: Vec::new(),
            audit: vec![AuditRecord::new(
                AuditEvent::named("core.started"),
                Actor::CORE,
                Subject::CORE,
            )],
            artifacts: Vec::new(),
        };
        (store, Arc::new(batch))
    }

    #[tokio::test]
    async fn told_to_fail_it_fails_so_often_and_commits_nothing() {
        let (store, batch) = store().await;
        store.fail_commits(2, StoreErrorKind::Full);
        for _ in 0..2 {
            let answers = store.commit(vec![Arc::clone(&batch), Arc::clone(&batch)]).await;
            assert_eq!(answers.len(), 2);
            for answer in answers {
                let Err(CommitError::Failed(error)) = answer else { panic!("{answer:?}") };
                assert_eq!(error.kind, StoreErrorKind::Full);
            }
        }
        assert!(store.state().audit(0, 10).is_empty());
        assert_eq!(store.commit(vec![batch]).await, [Ok(())]);
        assert_eq!(store.state().audit(0, 10).len(), 1);
    }

    #[tokio::test]
    async fn held_commits_become_true_in_order_when_they_are_released() {
        let (store, batch) = store().await;
        store.hold_commits();
        let later = Arc::new(Batch { no: CommitNo(2), at: Timestamp(2_000), ..(*batch).clone() });
        let first = tokio::spawn(store.commit(vec![batch]));
        while store.commits_held() < 1 {
            tokio::task::yield_now().await;
        }
        let second = tokio::spawn(store.commit(vec![later]));
        while store.commits_held() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(store.state().audit(0, 10).is_empty());
        let before = store.state();
        store.release_commits();
        assert_eq!(first.await.expect("answers"), [Ok(())]);
        assert_eq!(second.await.expect("answers"), [Ok(())]);
        let moments: Vec<_> = store.state().audit(0, 10).iter().map(|record| record.at).collect();
        assert_eq!(moments, [Timestamp(1_000), Timestamp(2_000)]);
        assert!(before.audit(0, 10).is_empty(), "a copy stays as it was");
    }
}
