//! What has been committed, as readers see it: live runs, who watches them, who waits for them.
//!
//! Only the shell writes here, and only what is committed, so nothing can be seen too early.
//! Finished runs of durability `memory` are kept for a while, since no store has them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{broadcast, oneshot};
use wharf_domain::scope::Target;
use wharf_domain::{Ask, Entry, Notice, NoticeEntry, Run, RunEntry};
use wharf_ports::{Batch, Body, HistoryItem, HistoryRecord};
use wharf_vocab::limits::{MEMORY_RUNS_KEPT_MAX, WATCH_QUEUE_MAX};
use wharf_vocab::{Durability, Publish, RunKey, RunStatus, Seq, ShardId, WorldId};

/// What watchers of a run are sent.
#[derive(Debug, Clone)]
pub(crate) enum Published {
    /// What was committed, and the run after it.
    Batch(Arc<Batch>, Arc<Run>),
    /// The run was loaded anew: the store may hold what was not published.
    Reloaded,
}

/// Something happened to an ask.
#[derive(Debug, Clone)]
pub enum AskNews {
    /// It was raised.
    Raised(Box<Ask>),
    /// It was decided, expired or is needed no more.
    Over(Box<Ask>),
    /// An attempt ended that a seat had let pass; the run is as it was then.
    Notice(Box<Notice>, Arc<Run>),
}

/// News of asks that may wait for one reader.
const ASK_NEWS_MAX: usize = 4_096;

#[derive(Debug)]
pub(crate) struct Hub {
    inner: Mutex<Inner>,
    asks: broadcast::Sender<AskNews>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { inner: Mutex::default(), asks: broadcast::channel(ASK_NEWS_MAX).0 }
    }
}

#[derive(Debug, Default)]
struct Inner {
    live: HashMap<RunKey, Arc<Run>>,
    /// Live runs by the keys of the world's files that they write at once.
    writers: HashMap<String, Vec<RunKey>>,
    watchers: HashMap<RunKey, broadcast::Sender<Published>>,
    waiters: HashMap<RunKey, Vec<oneshot::Sender<Arc<Run>>>>,
    memory: HashMap<RunKey, MemoryRun>,
    /// How many runs in memory there have been.
    memory_count: u64,
    memory_over: VecDeque<RunKey>,
}

#[derive(Debug)]
struct MemoryRun {
    /// Its number in the order in which such runs were accepted, from 1.
    number: u64,
    run: Arc<Run>,
    batches: Vec<Arc<Batch>>,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows what happens to asks from now on.
    pub(crate) fn ask_news(&self) -> broadcast::Receiver<AskNews> {
        self.asks.subscribe()
    }

    /// Tells of asks that a committed batch raised or ended.
    fn tell_of_asks(&self, batch: &Batch, run: &Arc<Run>) {
        if run.asks.is_empty() || self.asks.receiver_count() == 0 {
            return;
        }
        let entries = batch.appends.iter().flat_map(|append| match &append.body {
            Body::Entries(entries) => &entries[..],
            Body::Progress(_) => &[],
        });
        for entry in entries {
            let id = match entry {
                Entry::Notice(NoticeEntry::Owed(notice)) => {
                    // Readers may all have left meanwhile.
                    let _ = self.asks.send(AskNews::Notice(notice.clone(), Arc::clone(run)));
                    continue;
                }
                Entry::Run(RunEntry::AskRaised(raised)) => &raised.ask.ask_id,
                Entry::Run(RunEntry::AskResolved(resolved)) => &resolved.ask_id,
                _ => continue,
            };
            let Some(raised) = run.asks.iter().find(|it| it.ask.spec.ask_id == *id) else {
                continue;
            };
            let ask = Box::new(raised.ask.clone());
            let news = if ask.is_open() { AskNews::Raised(ask) } else { AskNews::Over(ask) };
            // Readers may all have left meanwhile.
            let _ = self.asks.send(news);
        }
    }

    /// Shows a committed batch of a run.
    pub(crate) fn publish(&self, batch: Arc<Batch>, run: Arc<Run>) {
        self.tell_of_asks(&batch, &run);
        let mut inner = self.lock();
        let over = run.is_over();
        if run.spec.durability == Durability::Memory {
            inner.remember(&batch, &run);
        }
        if over {
            inner.remove(&run.key);
            let waiters = inner.waiters.remove(&run.key).unwrap_or_default();
            let watchers = inner.watchers.remove(&run.key);
            drop(inner);
            for waiter in waiters {
                // A waiter that gave up does not matter.
                let _ = waiter.send(Arc::clone(&run));
            }
            if let Some(watchers) = watchers {
                let _ = watchers.send(Published::Batch(batch, run));
            }
        } else {
            inner.insert(&run);
            if let Some(watchers) = inner.watchers.get(&run.key) {
                let _ = watchers.send(Published::Batch(batch, run));
            }
        }
    }

    /// Shows a run that was loaded from the store.
    pub(crate) fn restore(&self, run: &Arc<Run>) {
        self.lock().insert(run);
    }

    /// Shards are about to be shown as the store holds them: what was shown of their open runs is
    /// forgotten, except runs that only memory knows. Of shards that are not held any more those
    /// are gone, too.
    pub(crate) fn forget(&self, shards: &[ShardId], held: &[ShardId]) {
        let mut inner = self.lock();
        let stays = |key: &RunKey, run: &Run| {
            !shards.contains(&key.shard())
                || (run.spec.durability == Durability::Memory && held.contains(&key.shard()))
        };
        let wrong = inner.live.iter().filter(|(key, run)| !stays(key, run)).map(|(key, _)| key);
        for key in wrong.cloned().collect::<Vec<_>>() {
            inner.remove(&key);
        }
        inner.memory.retain(|key, memory| memory.run.is_over() || stays(key, &memory.run));
    }

    /// Shards were loaded anew: whoever watches their runs reads on in the store.
    pub(crate) fn reloaded(&self, shards: &[ShardId]) {
        let inner = self.lock();
        for (_, watchers) in inner.watchers.iter().filter(|(key, _)| shards.contains(&key.shard()))
        {
            // Without watchers there is nobody to tell.
            let _ = watchers.send(Published::Reloaded);
        }
    }

    /// A run that is under way, or one that was kept in memory.
    pub(crate) fn run(&self, key: &RunKey) -> Option<Arc<Run>> {
        let inner = self.lock();
        inner.live.get(key).or(inner.memory.get(key).map(|memory| &memory.run)).cloned()
    }

    /// All runs that are kept in memory only with their numbers, newest first.
    pub(crate) fn memory_runs(&self) -> Vec<(u64, Arc<Run>)> {
        let inner = self.lock();
        let numbered = |memory: &MemoryRun| (memory.number, Arc::clone(&memory.run));
        let mut runs: Vec<_> = inner.memory.values().map(numbered).collect();
        drop(inner);
        runs.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        runs
    }

    /// A run that is kept in memory only, and the number of the last thing it wrote.
    pub(crate) fn memory_run(&self, key: &RunKey) -> Option<(Arc<Run>, Seq)> {
        let inner = self.lock();
        let memory = inner.memory.get(key)?;
        let records = memory.batches.iter().rev().flat_map(|batch| records(batch, key, Seq(0)));
        let seq = records.map(|record| record.seq).max().unwrap_or(Seq(0));
        Some((Arc::clone(&memory.run), seq))
    }

    /// What a run in memory has written behind `after`; `None` if it is not one.
    pub(crate) fn memory_history(&self, key: &RunKey, after: Seq) -> Option<Vec<HistoryRecord>> {
        let inner = self.lock();
        let memory = inner.memory.get(key)?;
        Some(memory.batches.iter().flat_map(|batch| records(batch, key, after)).collect())
    }

    pub(crate) fn forget_memory(&self, key: &RunKey) -> bool {
        let mut inner = self.lock();
        // Another run may come to have the same name, and must not be forgotten instead.
        inner.memory_over.retain(|over| over != key);
        inner.memory.remove(key).is_some()
    }

    /// Follows what is published of a run from now on.
    pub(crate) fn subscribe(&self, key: &RunKey) -> broadcast::Receiver<Published> {
        let mut inner = self.lock();
        inner
            .watchers
            .entry(key.clone())
            .or_insert_with(|| broadcast::channel(WATCH_QUEUE_MAX).0)
            .subscribe()
    }

    /// Forgets a channel that nobody listens to.
    pub(crate) fn unsubscribed(&self, key: &RunKey) {
        let mut inner = self.lock();
        if inner.watchers.get(key).is_some_and(|watchers| watchers.receiver_count() == 0) {
            inner.watchers.remove(key);
        }
    }

    /// Is told when the run is over.
    pub(crate) fn wait(&self, key: &RunKey) -> oneshot::Receiver<Arc<Run>> {
        let (sender, receiver) = oneshot::channel();
        let mut inner = self.lock();
        let waiters = inner.waiters.entry(key.clone()).or_default();
        waiters.retain(|waiter| !waiter.is_closed());
        waiters.push(sender);
        receiver
    }

    /// Forgets waiters that gave up.
    pub(crate) fn gave_up(&self, key: &RunKey) {
        let mut inner = self.lock();
        if let Some(waiters) = inner.waiters.get_mut(key) {
            waiters.retain(|waiter| !waiter.is_closed());
            if waiters.is_empty() {
                inner.waiters.remove(key);
            }
        }
    }

    /// The runs of a world that are under way.
    pub(crate) fn open_in(&self, world: &WorldId) -> Vec<Arc<Run>> {
        let inner = self.lock();
        inner.live.values().filter(|run| run.key.world == *world).cloned().collect()
    }

    /// The runs under way that write an object of a world at once.
    pub(crate) fn writers(&self, key: &str) -> Vec<Arc<Run>> {
        let inner = self.lock();
        let runs = inner.writers.get(key).into_iter().flatten();
        runs.filter_map(|run| inner.live.get(run)).cloned().collect()
    }

    /// How many runs are under way.
    pub(crate) fn live_runs(&self) -> usize {
        self.lock().live.len()
    }

    /// How many attempts are at work, not counting those that wait for an answer.
    pub(crate) fn active_attempts(&self) -> usize {
        self.lock().live.values().filter(|run| run.status() == RunStatus::Running).count()
    }
}

impl Inner {
    fn insert(&mut self, run: &Arc<Run>) {
        if self.live.insert(run.key.clone(), Arc::clone(run)).is_none() {
            for key in direct_keys(run) {
                self.writers.entry(key).or_default().push(run.key.clone());
            }
        }
    }

    fn remove(&mut self, key: &RunKey) {
        let Some(run) = self.live.remove(key) else { return };
        for object in direct_keys(&run) {
            if let Some(writers) = self.writers.get_mut(&object) {
                writers.retain(|writer| writer != key);
                if writers.is_empty() {
                    self.writers.remove(&object);
                }
            }
        }
    }

    fn remember(&mut self, batch: &Arc<Batch>, run: &Arc<Run>) {
        let count = &mut self.memory_count;
        let memory = self.memory.entry(run.key.clone()).or_insert_with(|| {
            *count += 1;
            MemoryRun { number: *count, run: Arc::clone(run), batches: Vec::new() }
        });
        let was_over = memory.run.is_over() && !memory.batches.is_empty();
        memory.run = Arc::clone(run);
        memory.batches.push(Arc::clone(batch));
        if run.is_over() && !was_over {
            self.memory_over.push_back(run.key.clone());
            while self.memory_over.len() > MEMORY_RUNS_KEPT_MAX {
                if let Some(key) = self.memory_over.pop_front() {
                    self.memory.remove(&key);
                }
            }
        }
    }
}

/// The keys of the objects that a run writes where they belong, without staging them.
fn direct_keys(run: &Run) -> Vec<String> {
    if run.spec.publish != Publish::Direct {
        return Vec::new();
    }
    let key = |target: &Target| match target {
        Target::Object { path } => Some(path.key(&run.key.world)),
        Target::Uri => None,
    };
    run.spec.bindings.writes.values().filter_map(key).collect()
}

/// What a batch wrote to a run's stream behind `after`, one by one.
pub(crate) fn records(batch: &Batch, key: &RunKey, after: Seq) -> Vec<HistoryRecord> {
    let stream = key.stream();
    let mut found = Vec::new();
    for append in batch.appends.iter().filter(|append| append.stream == stream) {
        let items: Vec<HistoryItem> = match &append.body {
            Body::Entries(entries) => entries.iter().cloned().map(HistoryItem::Entry).collect(),
            Body::Progress(pieces) => pieces.iter().cloned().map(HistoryItem::Progress).collect(),
        };
        for (at, item) in items.into_iter().enumerate() {
            let seq = Seq(append.expected.0 + 1 + at as u64);
            if seq > after {
                found.push(HistoryRecord { seq, at: batch.at, item });
            }
        }
    }
    found
}

/// Whether a record is the run's end.
pub(crate) fn is_end(record: &HistoryRecord) -> bool {
    matches!(&record.item, HistoryItem::Entry(wharf_domain::Entry::Run(RunEntry::Ended(_))))
}
