//! Taking leases and loading shards, at the start and when a shard must be loaded anew.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use wharf_domain::{Actor, AuditEvent, AuditRecord, Entry, Run, Severity, Subject};
use wharf_ports::{
    History, Lease, SharedTrouble, Store, StoreError, StoreErrorKind, Trouble, TroubleOver,
};
use wharf_vocab::limits::LEASE_MS;
use wharf_vocab::{NodeId, ShardId, StreamId, StreamKind};

use super::Shell;
use crate::shard::{AnyRecord, Input, Shard, StoredShard, UnloadedShard};

/// How long to wait before a store is read again that could not be read.
const READ_AGAIN: Duration = Duration::from_millis(250);

/// A shard that is being read from the store.
#[derive(Debug, Default)]
pub(super) struct LoadingShard {
    /// What its earlier life left.
    left: UnloadedShard,
    /// What has come meanwhile, in order.
    waiting: VecDeque<Input>,
}

impl LoadingShard {
    pub(super) fn wait(&mut self, input: Input) {
        self.waiting.push_back(input);
    }
}

/// What the store holds of some shards.
pub(super) struct LoadedShards {
    /// The shards that were asked for.
    asked: Vec<ShardId>,
    /// The leases that were got; others are somebody else's.
    leases: Vec<Lease>,
    restored: BTreeMap<ShardId, StoredShard>,
}

impl Shell {
    /// Begins to load shards anew whose memory turned out to be wrong. Others go on meanwhile;
    /// whoever waits for these must ask again, and what they were told by others is kept.
    pub(super) fn reload_shards(&mut self) {
        if self.reload.is_empty() {
            return;
        }
        let shards: Vec<_> = std::mem::take(&mut self.reload).into_iter().collect();
        tracing::warn!(shards = shards.len(), "shards are loaded anew from the store");
        for shard in &shards {
            let left = self.shards[shard.index()].take().map(Shard::unload).unwrap_or_default();
            self.loading
                .entry(*shard)
                .or_insert_with(|| LoadingShard { left, ..LoadingShard::default() });
            self.reschedule(*shard);
        }
        self.batches.retain(|batch| !shards.contains(&batch.shard));
        self.answers.retain(|_, (shard, _)| !shards.contains(shard));
        self.turns.forget(&shards);
        let (store, node) = (Arc::clone(&self.parts.store), self.parts.node.clone());
        self.loads.push(Box::pin(async move {
            let mut trouble = Trouble::default();
            loop {
                match read(&*store, node.clone(), shards.clone()).await {
                    Ok(loaded) => {
                        if let Some(TroubleOver { failed, seconds }) = trouble.over() {
                            tracing::info!(failed, seconds, "the shards are loaded");
                        }
                        return loaded;
                    }
                    Err(error) => {
                        if let Some(failed) = trouble.failed() {
                            let what = "shards could not be loaded; trying again";
                            tracing::error!(%error, failed, "{what}");
                        }
                        tokio::time::sleep(READ_AGAIN).await;
                    }
                }
            }
        }));
    }

    /// Loads shards anew of which the store has lost what it had reported, and tells the audit.
    pub(super) fn note_rewound(&mut self) {
        let rewound = self.parts.store.take_rewound();
        if rewound.is_empty() {
            return;
        }
        let fresh = rewound.iter().map(|lost| lost.shard);
        let fresh: Vec<_> = fresh.filter(|shard| !self.loading.contains_key(shard)).collect();
        self.reload.extend(fresh);
        self.reload_shards();
        for lost in rewound {
            let subject = Subject::shard(lost.shard);
            let record = AuditRecord::new(AuditEvent::STORE_REWOUND, Actor::CORE, subject)
                .severity(Severity::Error)
                .fact("reported", lost.reported.0)
                .fact("found", lost.found.0)
                .fact("records_lost", lost.records_lost);
            // It waits until the shard is loaded.
            self.step(lost.shard, Input::Audit(vec![record]));
        }
    }

    /// Steps shards from now on that were read from the store.
    pub(super) fn take_over(&mut self, loaded: LoadedShards) {
        let LoadedShards { asked, leases, mut restored } = loaded;
        let held: Vec<_> = leases.iter().map(|lease| lease.shard).collect();
        self.parts.hub.forget(&asked, &held);
        for lease in leases {
            let restored = restored.remove(&lease.shard).unwrap_or_default();
            self.show(&restored);
            self.take_over_one(lease, restored);
        }
        self.parts.hub.reloaded(&asked);
        for shard in asked {
            if let Some(loading) = self.loading.remove(&shard) {
                self.queue.extend(loading.waiting.into_iter().map(|input| (shard, input)));
            }
        }
    }

    /// Shows readers what the store holds.
    fn show(&self, restored: &StoredShard) {
        for (record, _) in &restored.records {
            if let AnyRecord::Flow(flow) = record {
                self.parts.catalog.set_flow(flow);
            }
            self.parts.records.set(record.clone());
        }
        for (run, _) in &restored.runs {
            self.parts.hub.restore(&Arc::new(run.clone()));
        }
    }

    fn take_over_one(&mut self, lease: Lease, restored: StoredShard) {
        let (id, now) = (lease.shard, self.parts.clock.now());
        // Whoever stepped it before is told nothing of attempts any more.
        self.book.hear(id, lease.epoch);
        let seed = self.parts.seed.wrapping_add(u64::from(id.0)) ^ (lease.epoch.0 << 32);
        let mut shard = Shard::new(lease, seed, self.providers.clone());
        shard.restore(restored);
        let left = self.loading.get_mut(&id).map(|loading| std::mem::take(&mut loading.left));
        let taken = shard.take_left(now, left.unwrap_or_default());
        let outstanding = shard.outstanding(now);
        self.shards[id.index()] = Some(shard);
        self.follow(id, taken);
        self.follow(id, outstanding);
    }
}

/// Takes the leases on shards and reads what is open in them.
pub(super) async fn read(
    store: &dyn Store,
    node: NodeId,
    asked: Vec<ShardId>,
) -> Result<LoadedShards, StoreError> {
    let leases = store.acquire(node, asked.clone(), LEASE_MS).await?;
    let held: Vec<_> = leases.iter().map(|lease| lease.shard).collect();
    let mut restored: BTreeMap<ShardId, StoredShard> = BTreeMap::new();
    let kinds = [
        StreamKind::World,
        StreamKind::Provider,
        StreamKind::Grant,
        StreamKind::Seat,
        StreamKind::Schedule,
        StreamKind::Receiver,
        StreamKind::Trigger,
        StreamKind::Flow,
    ];
    for kind in kinds {
        for (stream, stored) in store.load_open(kind, held.clone()).await? {
            let record = AnyRecord::replay(&stream, &stored.entries);
            let record = record.ok_or_else(|| corrupt(&stream))?;
            restored.entry(stream.shard()).or_default().records.push((record, stored.seq));
        }
    }
    for (stream, stored) in store.load_open(StreamKind::Run, held.clone()).await? {
        let run = read_run(&stream, &stored)?;
        restored.entry(stream.shard()).or_default().runs.push((run, stored.seq));
    }
    for (parent, child) in store.open_children(held.clone()).await? {
        restored.entry(parent.shard()).or_default().children.push((parent, child));
    }
    for (shard, hold) in store.holds(held).await? {
        restored.entry(shard).or_default().holds.push(hold);
    }
    Ok(LoadedShards { asked, leases, restored })
}

/// Reads a stream; a store that cannot be read now is asked again until it can.
pub(super) async fn read_patiently(
    store: &dyn Store,
    stream: &StreamId,
    trouble: &SharedTrouble,
) -> Option<History> {
    loop {
        match store.load(stream.clone()).await {
            Ok(stored) => {
                if let Some(TroubleOver { failed, seconds }) = trouble.calm() {
                    tracing::info!(failed, seconds, "streams can be read again");
                }
                return stored;
            }
            Err(error) => {
                if let Some(failed) = trouble.failed() {
                    tracing::warn!(%error, failed, "a stream could not be read; trying again");
                }
                tokio::time::sleep(READ_AGAIN).await;
            }
        }
    }
}

pub(crate) fn read_run(stream: &StreamId, stored: &History) -> Result<Run, StoreError> {
    let entries = stored.entries.iter().filter_map(|(at, entry)| match entry {
        Entry::Run(entry) => Some((*at, entry)),
        _ => None,
    });
    Run::replay(entries).ok_or_else(|| corrupt(stream))
}

fn corrupt(stream: &StreamId) -> StoreError {
    let message = format!("the stream {} {} cannot be read", stream.kind().as_str(), stream.key());
    StoreError { kind: StoreErrorKind::Corrupt, message }
}
