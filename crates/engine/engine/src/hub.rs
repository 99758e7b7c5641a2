//! What has been committed, as readers see it: live runs, who watches them, who waits for them.
//!
//! Only the shell writes here, and only what is committed, so nothing can be seen too early.
//! What is shown is counted in bytes: what open runs take in memory, and what each of them and
//! all that it started have written.

mod lines;
mod memory;
mod recent;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{broadcast, oneshot};
use wharf_domain::run::flow::CitedResult;
use wharf_domain::scope::{Target, WorldPath};
use wharf_domain::{ArtifactOp, Ask, Entry, Notice, NoticeEntry, Progress, Run, RunEntry, RunSpec};
use wharf_ports::{Batch, Body, HistoryItem, HistoryRecord};
use wharf_vocab::limits::{
    FAMILY_JOURNAL_BYTES_MAX, RUN_DEPTH_MAX, WATCH_BATCH_BYTES_MAX, WATCH_QUEUE_MAX,
};
use wharf_vocab::{
    AskId, Code, Direction, Durability, Fault, ProviderId, Publish, RunKey, RunStatus, Seq,
    ShardId, Timestamp, ToolId, WorldId,
};

use crate::changes::Changes;
use crate::held::{HeldBytes, Holder, MemoryBudget};
use crate::totals::Totals;
use lines::ProviderLines;
use memory::MemoryRuns;
use recent::RecentRuns;

/// What watchers of a run are sent.
#[derive(Debug, Clone)]
pub(crate) enum WatcherMessage {
    /// What was committed, and the run after it.
    Batch(Arc<Batch>, Arc<Run>),
    /// There is more to read than is sent along: it is large, or the run was loaded anew and the
    /// store may hold what was not published.
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
    /// The reader was too slow, and something is not told.
    Missed,
}

/// Something happened to a file of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileNews {
    /// It was written or removed, and that is committed.
    Changed {
        /// The world.
        world: WorldId,
        /// The file.
        path: WorldPath,
    },
    /// The reader was too slow, and something is not told.
    Missed,
}

pub use lines::ProviderRuns;

/// News of asks that may wait for one reader.
const ASK_NEWS_MAX: usize = 4_096;
/// News of files that may wait for one reader.
const FILE_NEWS_MAX: usize = 1_024;
/// How much of a phase lists show.
const PHASE_CHARS_SHOWN: usize = 200;

#[derive(Debug)]
pub(crate) struct Hub {
    inner: Mutex<HubState>,
    /// What open runs take.
    held: MemoryBudget,
    asks: broadcast::Sender<AskNews>,
    files: broadcast::Sender<FileNews>,
    /// What changed, told thinly.
    pub(crate) changes: Arc<Changes>,
    /// What happened since the start.
    pub(crate) totals: Totals,
}

#[derive(Debug, Default)]
struct HubState {
    live: HashMap<RunKey, HubRun>,
    /// How many of them each provider has.
    lines: ProviderLines,
    /// Those of them that have an open ask.
    asking: HashSet<RunKey>,
    /// Live runs by the keys of the world's files that they write at once.
    writers: HashMap<String, Vec<RunKey>>,
    watchers: HashMap<RunKey, broadcast::Sender<WatcherMessage>>,
    waiters: HashMap<RunKey, Vec<oneshot::Sender<Arc<Run>>>>,
    memory: MemoryRuns,
    /// Runs that are over and whose values only memory has.
    recent: RecentRuns,
    /// What runs and all that they started have made the journal keep, by the run it began with.
    written: HashMap<RunKey, u64>,
}

#[derive(Debug)]
struct HubRun {
    run: Arc<Run>,
    /// What it takes; of a run in memory that is counted with its history.
    held: Option<HeldBytes>,
    /// What it does now, as it last said, and how much of that is done.
    phase: Option<(String, Option<f64>)>,
}

impl Hub {
    pub(crate) fn new(held: MemoryBudget) -> Self {
        let (asks, files) =
            (broadcast::channel(ASK_NEWS_MAX).0, broadcast::channel(FILE_NEWS_MAX).0);
        let (changes, totals) = (Arc::new(Changes::new()), Totals::default());
        Self { inner: Mutex::default(), held, asks, files, changes, totals }
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.inner.lock()
    }

    /// Follows what happens to asks from now on.
    pub(crate) fn ask_news(&self) -> broadcast::Receiver<AskNews> {
        self.asks.subscribe()
    }

    /// Follows what happens to files from now on.
    pub(crate) fn file_news(&self) -> broadcast::Receiver<FileNews> {
        self.files.subscribe()
    }

    /// Tells of files that were written or removed by what is committed.
    pub(crate) fn tell_of_files(&self, ops: &[ArtifactOp]) {
        if ops.is_empty() || self.files.receiver_count() == 0 {
            return;
        }
        for op in ops {
            let (world, path) = match op {
                ArtifactOp::Record(file) if file.direction == Direction::Out => {
                    (&file.world, &file.path)
                }
                ArtifactOp::Record(_) => continue,
                ArtifactOp::Remove { world, path } => (world, path),
            };
            let (world, path) = (world.clone(), path.clone());
            // Readers may all have left meanwhile.
            let _ = self.files.send(FileNews::Changed { world, path });
        }
    }

    /// Tells of asks that a committed batch raised or ended.
    fn tell_of_asks(&self, batch: &Batch, run: &Arc<Run>) {
        if run.asks.is_empty() {
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
            self.changes.ask(&raised.ask);
            if self.asks.receiver_count() == 0 {
                continue;
            }
            let ask = Box::new(raised.ask.clone());
            let news = if ask.is_open() { AskNews::Raised(ask) } else { AskNews::Over(ask) };
            // Readers may all have left meanwhile.
            let _ = self.asks.send(news);
        }
    }

    /// Shows a committed batch of a run; says whether the run takes or has written too much, it
    /// and all it belongs to together.
    pub(crate) fn publish(&self, batch: &Arc<Batch>, run: &Arc<Run>) -> bool {
        let too_much = self.show(Arc::clone(batch), run);
        // Whoever hears of an ask looks at what is open: that must have it by then.
        self.tell_of_asks(batch, run);
        too_much
    }

    fn show(&self, batch: Arc<Batch>, run: &Arc<Run>) -> bool {
        self.tell_of_files(&batch.artifacts);
        self.changes.run(&batch, run);
        self.totals.count(&batch, run);
        let (bytes, phase) = (batch.weight(), last_phase(&batch));
        let mut inner = self.lock();
        let over = run.is_over();
        let family = inner.family(&run.key, &run.spec);
        let too_much = match run.spec.durability {
            Durability::Memory => {
                let hold = || self.held.take_anyway(Holder::of_run(&run.spec, family), 0);
                inner.memory.remember(&batch, run, hold)
            }
            Durability::Journal => inner.count_written(family, bytes),
        };
        let told = |run: &Arc<Run>| match bytes <= WATCH_BATCH_BYTES_MAX {
            true => WatcherMessage::Batch(batch, Arc::clone(run)),
            false => WatcherMessage::Reloaded,
        };
        if over {
            inner.remove(&run.key);
            if run.is_withheld() {
                inner.recent.remember(run);
            }
            let waiters = inner.waiters.remove(&run.key).unwrap_or_default();
            let watchers = inner.watchers.remove(&run.key);
            drop(inner);
            for waiter in waiters {
                // A waiter that gave up does not matter.
                let _ = waiter.send(Arc::clone(run));
            }
            if let Some(watchers) = watchers {
                let _ = watchers.send(told(run));
            }
        } else {
            inner.insert(run, &self.held);
            if let Some(live) = inner.live.get_mut(&run.key).filter(|_| phase.is_some()) {
                live.phase = phase;
            }
            if let Some(watchers) = inner.watchers.get(&run.key) {
                let _ = watchers.send(told(run));
            }
        }
        too_much
    }

    /// For whom a run is held: one that is open, or one that is about to be made.
    pub(crate) fn holders(&self, key: &RunKey, spec: &RunSpec) -> Vec<Holder> {
        let family = self.lock().family(key, spec);
        Holder::of_run(spec, family)
    }

    /// Whether a run may start another one that makes the journal keep so much more.
    pub(crate) fn check_written(&self, parent: &RunKey, bytes: u64) -> Result<(), Fault> {
        let inner = self.lock();
        let Some(live) = inner.live.get(parent) else { return Ok(()) };
        let family = inner.family(parent, &live.run.spec);
        let written = inner.written.get(&family).copied().unwrap_or(0);
        if written + bytes <= FAMILY_JOURNAL_BYTES_MAX {
            return Ok(());
        }
        let message = format!(
            "A run and all that it starts may write {FAMILY_JOURNAL_BYTES_MAX} bytes, and it has."
        );
        Err(Fault { retryable: false, ..Fault::new(Code::ToolLimit, message) })
    }

    /// Shows a run that was loaded from the store.
    pub(crate) fn restore(&self, run: &Arc<Run>) {
        self.lock().insert(run, &self.held);
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
        let wrong = inner.live.iter().filter(|(key, live)| !stays(key, &live.run));
        for key in wrong.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            inner.remove(&key);
        }
        inner.memory.keep_open(stays);
    }

    /// Shards were loaded anew: whoever watches their runs reads on in the store.
    pub(crate) fn reloaded(&self, shards: &[ShardId]) {
        self.changes.reset();
        let inner = self.lock();
        for (_, watchers) in inner.watchers.iter().filter(|(key, _)| shards.contains(&key.shard()))
        {
            // Without watchers there is nobody to tell.
            let _ = watchers.send(WatcherMessage::Reloaded);
        }
    }

    /// A run that is under way, or one that was kept in memory; without large inputs, if the
    /// store has them.
    pub(crate) fn run(&self, key: &RunKey) -> Option<Arc<Run>> {
        let inner = self.lock();
        let live = inner.live.get(key).map(|live| &live.run);
        live.or_else(|| inner.memory.run(key)).or_else(|| inner.recent.run(key)).cloned()
    }

    /// Forgets what runs gave that ended long enough ago, where it is written down nowhere.
    pub(crate) fn forget_values(&self, now: Timestamp) {
        let mut inner = self.lock();
        let HubState { live, recent, .. } = &mut *inner;
        recent.forget_old(now, |key| live.contains_key(key));
    }

    /// What a run under way does now, as it last said since this core knows it.
    pub(crate) fn phase(&self, key: &RunKey) -> Option<(String, Option<f64>)> {
        self.lock().live.get(key)?.phase.clone()
    }

    /// All runs that are kept in memory only with their numbers, newest first.
    pub(crate) fn memory_runs(&self) -> Vec<(u64, Arc<Run>)> {
        self.lock().memory.all()
    }

    /// A run that is kept in memory only, and the number of the last thing it wrote.
    pub(crate) fn memory_run(&self, key: &RunKey) -> Option<(Arc<Run>, Seq)> {
        self.lock().memory.with_seq(key)
    }

    /// What a run in memory has written behind `after`; `None` if it is not one.
    pub(crate) fn memory_history(&self, key: &RunKey, after: Seq) -> Option<Vec<HistoryRecord>> {
        self.lock().memory.history(key, after)
    }

    /// An ask of a run that is kept in memory only.
    pub(crate) fn memory_ask(&self, id: &AskId) -> Option<Ask> {
        self.lock().memory.ask(id)
    }

    /// Open asks of runs that are kept in memory only.
    pub(crate) fn memory_open_asks(&self) -> Vec<Ask> {
        self.lock().memory.open_asks()
    }

    /// Open asks of a run and of all that it started, at any depth, oldest first.
    pub(crate) fn open_asks_of(&self, root: &RunKey) -> Vec<Ask> {
        let inner = self.lock();
        let asking = inner.asking.iter().filter(|key| inner.is_of(key, root));
        let runs = asking.filter_map(|key| inner.live.get(key));
        let asks = runs.flat_map(|live| live.run.open_asks().map(|raised| raised.ask.clone()));
        let mut asks: Vec<Ask> = asks.collect();
        asks.sort_by(|a, b| {
            a.created_at.cmp(&b.created_at).then_with(|| a.spec.ask_id.cmp(&b.spec.ask_id))
        });
        asks
    }

    /// Whether a run that is under way is another one, or was started by it at any depth.
    pub(crate) fn is_of(&self, key: &RunKey, root: &RunKey) -> bool {
        self.lock().is_of(key, root)
    }

    pub(crate) fn forget_memory(&self, key: &RunKey) -> bool {
        let mut inner = self.lock();
        inner.recent.forget(key);
        inner.memory.forget(key)
    }

    /// Follows what is published of a run from now on.
    pub(crate) fn subscribe(&self, key: &RunKey) -> broadcast::Receiver<WatcherMessage> {
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
    pub(crate) fn wait(self: &Arc<Self>, key: &RunKey) -> RunWaiter {
        let (sender, over) = oneshot::channel();
        let mut inner = self.lock();
        let waiters = inner.waiters.entry(key.clone()).or_default();
        waiters.retain(|waiter| !waiter.is_closed());
        waiters.push(sender);
        RunWaiter { hub: Arc::clone(self), key: key.clone(), over }
    }

    /// Forgets waiters that gave up.
    fn gave_up(&self, key: &RunKey) {
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
        let runs = inner.live.values().map(|live| &live.run);
        runs.filter(|run| run.key.world == *world).cloned().collect()
    }

    /// How many runs of a tool are under way.
    pub(crate) fn open_of(&self, tool: &ToolId) -> usize {
        let inner = self.lock();
        inner.live.values().filter(|live| live.run.spec.tool == *tool).count()
    }

    /// Whether a flow under way takes over what a run gave.
    pub(crate) fn is_cited(&self, key: &RunKey) -> bool {
        let cites = |run: &Run| {
            let cited = run.spec.flow.as_ref().and_then(|flow| flow.cites.as_ref());
            cited.filter(|_| run.key.world == key.world && !run.is_over()).is_some_and(|cited| {
                let by = |it: &CitedResult| it.run.as_ref() == Some(&key.run);
                cited.of == key.run || cited.results.values().any(by)
            })
        };
        self.lock().live.values().any(|live| cites(&live.run))
    }

    /// The runs under way that write an object of a world at once.
    pub(crate) fn writers(&self, key: &str) -> Vec<Arc<Run>> {
        let inner = self.lock();
        let runs = inner.writers.get(key).into_iter().flatten();
        runs.filter_map(|run| inner.live.get(run)).map(|live| Arc::clone(&live.run)).collect()
    }

    /// How many runs are under way.
    pub(crate) fn live_runs(&self) -> usize {
        self.lock().live.len()
    }

    /// How many runs under way each provider has.
    pub(crate) fn lines(&self) -> Vec<(ProviderId, ProviderRuns)> {
        self.lock().lines.all()
    }

    /// How many asks are open.
    pub(crate) fn open_asks(&self) -> usize {
        let inner = self.lock();
        let asking = inner.asking.iter().filter_map(|key| inner.live.get(key));
        asking.map(|live| live.run.open_asks().count()).sum()
    }

    /// How many attempts are at work, not counting those that wait for an answer.
    pub(crate) fn active_attempts(&self) -> usize {
        let running = |live: &&HubRun| live.run.status() == RunStatus::Running;
        self.lock().live.values().filter(running).count()
    }
}

/// Waits for the end of a run; whoever drops it does not wait any more.
#[derive(Debug)]
pub(crate) struct RunWaiter {
    hub: Arc<Hub>,
    key: RunKey,
    over: oneshot::Receiver<Arc<Run>>,
}

impl RunWaiter {
    /// The run as it ended; `None` if that is not told here any more.
    pub(crate) async fn over(&mut self) -> Option<Arc<Run>> {
        (&mut self.over).await.ok()
    }
}

impl Drop for RunWaiter {
    fn drop(&mut self) {
        self.over.close();
        self.hub.gave_up(&self.key);
    }
}

impl HubState {
    fn insert(&mut self, run: &Arc<Run>, held: &MemoryBudget) {
        if run.open_asks().next().is_some() {
            self.asking.insert(run.key.clone());
        } else if !self.asking.is_empty() {
            self.asking.remove(&run.key);
        }
        if let Some(live) = self.live.get_mut(&run.key) {
            self.lines.changed(Some(&live.run), Some(run));
            live.run = Arc::clone(run);
            if let Some(held) = &mut live.held {
                held.set(run.weight());
            }
            return;
        }
        let held = (run.spec.durability == Durability::Journal).then(|| {
            let holders = Holder::of_run(&run.spec, self.family(&run.key, &run.spec));
            held.take_anyway(holders, run.weight())
        });
        self.lines.changed(None, Some(run));
        self.live.insert(run.key.clone(), HubRun { run: Arc::clone(run), held, phase: None });
        for key in direct_keys(run) {
            self.writers.entry(key).or_default().push(run.key.clone());
        }
    }

    fn remove(&mut self, key: &RunKey) {
        let Some(HubRun { run, .. }) = self.live.remove(key) else { return };
        self.lines.changed(Some(&run), None);
        self.asking.remove(key);
        let family = self.family(key, &run.spec);
        if !self.live.contains_key(&family) {
            self.written.remove(&family);
        }
        for object in direct_keys(&run) {
            if let Some(writers) = self.writers.get_mut(&object) {
                writers.retain(|writer| writer != key);
                if writers.is_empty() {
                    self.writers.remove(&object);
                }
            }
        }
    }

    /// The run that all of this began with, as far as it is open.
    fn family(&self, key: &RunKey, spec: &RunSpec) -> RunKey {
        let (mut first, mut parent) = (key, spec.parent.as_ref());
        for _ in 0..=RUN_DEPTH_MAX {
            let Some(above) = parent else { break };
            first = above;
            parent = self.live.get(above).and_then(|live| live.run.spec.parent.as_ref());
        }
        first.clone()
    }

    /// Whether a run is another one, or was started by it at any depth.
    fn is_of(&self, key: &RunKey, root: &RunKey) -> bool {
        let mut at = key;
        for _ in 0..=RUN_DEPTH_MAX {
            if at == root {
                return true;
            }
            let above = self.live.get(at).and_then(|live| live.run.spec.parent.as_ref());
            let Some(above) = above else { return false };
            at = above;
        }
        false
    }

    /// Counts what was written; says whether that is too much by now.
    fn count_written(&mut self, family: RunKey, bytes: u64) -> bool {
        let written = self.written.entry(family).or_default();
        *written += bytes;
        *written > FAMILY_JOURNAL_BYTES_MAX
    }
}

/// What a run does now, as a batch says.
fn last_phase(batch: &Batch) -> Option<(String, Option<f64>)> {
    let pieces = batch.appends.iter().flat_map(|append| match &append.body {
        Body::Progress(pieces) => &pieces[..],
        Body::Entries(_) => &[],
    });
    let phase = |piece: &Progress| match piece {
        Progress::Phase { phase, fraction } => {
            Some((phase.chars().take(PHASE_CHARS_SHOWN).collect(), *fraction))
        }
        _ => None,
    };
    pieces.filter_map(phase).next_back()
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
