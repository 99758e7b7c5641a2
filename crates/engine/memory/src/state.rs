//! What the store holds, and the rules by which a batch becomes part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wharf_domain::{Entry, Ledger, LedgerOp, Progress, RunSummary};
use wharf_journal::audit::{AuditKey, GENESIS, Sealer, SignedHead};
use wharf_vocab::{CommitNo, Epoch, HoldId, NodeId, RunKey, Seq, ShardId, StreamId, Timestamp};

use super::files::FileTable;
use wharf_ports::{
    Append, Batch, Body, Claim, CommitError, CoreLease, CostSum, Lease, LeaseView, PurgedCosts,
    Refusal, SealedRecord, ShardOwner, StoreError, StoreErrorKind,
};

/// Everything a store holds, as a value. Its parts are shared between copies until they change.
#[derive(Debug, Clone)]
pub struct MemoryState {
    sealer: Sealer,
    shards: BTreeMap<ShardId, ShardLease>,
    /// Until when the leases of each core last that prolonged them.
    cores: BTreeMap<NodeId, Timestamp>,
    pub(super) streams: BTreeMap<StreamId, Arc<MemoryStream>>,
    /// Streams in the order they were made.
    pub(super) order: BTreeMap<u64, StreamId>,
    last_position: u64,
    claims: BTreeMap<(String, String), ClaimRecord>,
    pub(super) ledger: Ledger,
    pub(super) hold_shards: BTreeMap<HoldId, ShardId>,
    pub(super) audit: Vec<Arc<SealedRecord>>,
    pub(super) files: FileTable,
    /// What removed runs have cost.
    pub(super) purged: BTreeMap<PurgedCosts, CostSum>,
}

/// Who steps a shard, how far its commits are, and the end of its audit chain.
#[derive(Debug, Clone)]
struct ShardLease {
    node: NodeId,
    epoch: Epoch,
    expires_at: Timestamp,
    last: CommitNo,
    audit_n: u64,
    audit_mac: [u8; 32],
}

#[derive(Debug, Clone)]
pub(super) struct MemoryStream {
    pub(super) position: u64,
    pub(super) shard: ShardId,
    pub(super) seq: Seq,
    pub(super) open: bool,
    pub(super) run: Option<RunSummary>,
    pub(super) rows: Vec<Arc<StoredRow>>,
    /// The run with whose end its values go.
    sealed_with: Option<RunKey>,
}

/// What one append brought.
#[derive(Debug)]
pub(super) struct StoredRow {
    pub(super) first: Seq,
    pub(super) at: Timestamp,
    pub(super) no: CommitNo,
    pub(super) body: Body,
}

/// A name that is taken; it goes when the stream goes that was made along with it.
#[derive(Debug, Clone)]
struct ClaimRecord {
    value: String,
    stream: Option<StreamId>,
}

impl MemoryState {
    /// An empty store that seals its audit with this key.
    pub fn new(key: &AuditKey) -> Self {
        Self {
            sealer: Sealer::new(key),
            shards: BTreeMap::new(),
            cores: BTreeMap::new(),
            streams: BTreeMap::new(),
            order: BTreeMap::new(),
            last_position: 0,
            claims: BTreeMap::new(),
            ledger: Ledger::default(),
            hold_shards: BTreeMap::new(),
            audit: Vec::new(),
            files: FileTable::default(),
            purged: BTreeMap::new(),
        }
    }

    /// Makes one batch true, or says why not and changes nothing.
    pub fn commit_one(&mut self, batch: &Batch) -> Result<(), CommitError> {
        self.check(batch).map_err(CommitError::Refused)?;
        let mut ledger = self.ledger.clone();
        ledger.apply(&batch.ledger).map_err(|funds| CommitError::Refused(Refusal::Funds(funds)))?;
        self.seal(batch)?;
        self.ledger = ledger;
        self.note_holds(batch);
        self.files.use_all(&batch.requires);
        self.files.index(batch.at, &batch.artifacts);
        for append in &batch.appends {
            self.append(batch, append);
        }
        self.withhold(batch);
        for run in ended(batch) {
            self.files.leave(run);
        }
        let stream = made_by(batch);
        for Claim { scope, key, value } in &batch.claims {
            let claimed = ClaimRecord { value: value.clone(), stream: stream.cloned() };
            self.claims.insert((scope.clone(), key.clone()), claimed);
        }
        Ok(())
    }

    /// Whether everything but the money of a batch can become true.
    fn check(&self, batch: &Batch) -> Result<(), Refusal> {
        let epoch = self.shards.get(&batch.shard).map(|shard| shard.epoch);
        if epoch != Some(batch.epoch) {
            return Err(Refusal::Fenced);
        }
        let mut written: BTreeMap<&StreamId, Seq> = BTreeMap::new();
        for Append { stream, expected, body, .. } in &batch.appends {
            let stored = self.streams.get(stream);
            let seq = written.get(stream).copied().or(stored.map(|stored| stored.seq));
            match (seq, *expected) {
                (Some(_), Seq(0)) => {
                    let run = stored.and_then(|stored| stored.run.clone()).map(Box::new);
                    return Err(Refusal::Exists { stream: stream.clone(), run });
                }
                (None, Seq(0)) if !body.is_empty() => {}
                (Some(seq), expected) if seq == expected => {}
                _ => return Err(Refusal::Stale { stream: stream.clone() }),
            }
            written.insert(stream, after(*expected, body));
        }
        let mut claiming = BTreeSet::new();
        for claim in &batch.claims {
            let name = (claim.scope.clone(), claim.key.clone());
            if let Some(taken) = self.claims.get(&name) {
                return Err(Refusal::Claimed(Claim {
                    value: taken.value.clone(),
                    ..claim.clone()
                }));
            }
            if !claiming.insert(name) {
                return Err(Refusal::Claimed(claim.clone()));
            }
        }
        self.files.check(&batch.requires)
    }

    fn seal(&mut self, batch: &Batch) -> Result<(), CommitError> {
        let Some(shard) = self.shards.get_mut(&batch.shard) else { return Ok(()) };
        let mut sealed = Vec::with_capacity(batch.audit.len());
        let (mut n, mut mac) = (shard.audit_n, shard.audit_mac);
        for record in &batch.audit {
            let json = serde_json::to_vec(record).map_err(|error| {
                let message = format!("failed to write an audit record: {error}");
                CommitError::Failed(StoreError { kind: StoreErrorKind::Unavailable, message })
            })?;
            n += 1;
            mac = self.sealer.seal(&mac, batch.shard, n, batch.at, &json);
            let id = (self.audit.len() + sealed.len()) as u64 + 1;
            let record = record.clone();
            sealed.push(Arc::new(SealedRecord {
                id,
                shard: batch.shard,
                n,
                at: batch.at,
                record,
                mac,
            }));
        }
        self.audit.extend(sealed);
        (shard.audit_n, shard.audit_mac) = (n, mac);
        shard.last = shard.last.max(batch.no);
        Ok(())
    }

    fn note_holds(&mut self, batch: &Batch) {
        for op in &batch.ledger {
            match op {
                LedgerOp::Hold { hold, .. } | LedgerOp::Report { hold, .. } => {
                    self.hold_shards.entry(hold.clone()).or_insert(batch.shard);
                }
                LedgerOp::Settle { hold, .. } | LedgerOp::Release { hold } => {
                    self.hold_shards.remove(hold);
                }
                LedgerOp::Open { .. }
                | LedgerOp::SetLimit { .. }
                | LedgerOp::Admit { .. }
                | LedgerOp::Charge { .. }
                | LedgerOp::Correct { .. }
                | LedgerOp::Learn { .. } => {}
            }
        }
    }

    fn append(&mut self, batch: &Batch, append: &Append) {
        let Append { stream: id, expected, body, head } = append;
        let stream = self.streams.entry(id.clone()).or_insert_with(|| {
            self.last_position += 1;
            self.order.insert(self.last_position, id.clone());
            Arc::new(MemoryStream {
                position: self.last_position,
                shard: batch.shard,
                seq: Seq(0),
                open: head.open,
                run: None,
                rows: Vec::new(),
                sealed_with: head.sealed_with.clone(),
            })
        });
        let stream = Arc::make_mut(stream);
        stream.seq = after(*expected, body);
        stream.open = head.open;
        stream.run.clone_from(&head.run);
        if body.replaces_earlier() {
            replace(&mut stream.rows);
        }
        if !body.is_empty() {
            let row = StoredRow {
                first: expected.next(),
                at: batch.at,
                no: batch.no,
                body: body.clone(),
            };
            stream.rows.push(Arc::new(row));
        }
    }

    /// Keeps no more than what is to be kept of all streams of a run that a batch ends.
    fn withhold(&mut self, batch: &Batch) {
        let ends = |append: &&Append| {
            let run = append.head.sealed_with.as_ref();
            !append.head.open && run.is_some_and(|run| append.stream == run.stream())
        };
        let Some(ended) = batch.appends.iter().rev().find(ends) else { return };
        let sealed = |stream: &MemoryStream| stream.sealed_with == ended.head.sealed_with;
        for stream in self.streams.values_mut().filter(|stream| sealed(stream)) {
            for row in &mut Arc::make_mut(stream).rows {
                let body = match &row.body {
                    Body::Entries(entries) => {
                        Body::Entries(entries.iter().cloned().map(Entry::withheld).collect())
                    }
                    Body::Progress(pieces) => {
                        Body::Progress(vec![Progress::Withheld; pieces.len()])
                    }
                };
                *row = Arc::new(StoredRow { first: row.first, at: row.at, no: row.no, body });
            }
        }
    }

    /// Takes the leases that are free, expired or already held by `node`.
    pub fn acquire(
        &mut self,
        node: &NodeId,
        shards: &[ShardId],
        ttl_ms: u64,
        now: Timestamp,
    ) -> Vec<Lease> {
        let shards: BTreeSet<_> = shards.iter().copied().collect();
        let mut leases = Vec::new();
        for id in shards {
            let shard = self.shards.entry(id).or_insert_with(|| ShardLease {
                node: node.clone(),
                epoch: Epoch(0),
                expires_at: now,
                last: CommitNo(0),
                audit_n: 0,
                audit_mac: GENESIS,
            });
            if shard.node == *node || shard.expires_at <= now {
                shard.node = node.clone();
                shard.epoch = shard.epoch.next();
                shard.expires_at = now.plus_ms(ttl_ms);
                leases.push(Lease { shard: id, epoch: shard.epoch, last: shard.last });
            }
        }
        leases
    }

    /// Prolongs all leases that `node` holds.
    pub fn renew(&mut self, node: &NodeId, ttl_ms: u64, now: Timestamp) {
        for shard in self.shards.values_mut().filter(|shard| shard.node == *node) {
            shard.expires_at = now.plus_ms(ttl_ms);
        }
        self.cores.insert(node.clone(), now.plus_ms(ttl_ms));
    }

    /// Who holds which lease; whether others can is for whoever keeps the state to say.
    pub fn lease_view(&self, alone: bool, at: Timestamp) -> LeaseView {
        let owner = |(shard, held): (&ShardId, &ShardLease)| ShardOwner {
            shard: *shard,
            node: held.node.clone(),
            epoch: held.epoch,
            until: held.expires_at,
        };
        let core =
            |(node, until): (&NodeId, &Timestamp)| CoreLease { node: node.clone(), until: *until };
        let cores = self.cores.iter().map(core).collect();
        LeaseView { owners: self.shards.iter().map(owner).collect(), cores, at, alone }
    }

    /// Gives a shard that `node` steps in this epoch to another core, in the next epoch; `None` if
    /// it has passed to somebody already.
    pub fn hand_over(
        &mut self,
        shard: ShardId,
        (node, epoch): (&NodeId, Epoch),
        to: &NodeId,
        ttl_ms: u64,
        now: Timestamp,
    ) -> Option<Lease> {
        let held = self.shards.get_mut(&shard)?;
        if held.node != *node || held.epoch != epoch {
            return None;
        }
        held.node = to.clone();
        held.epoch = held.epoch.next();
        held.expires_at = now.plus_ms(ttl_ms);
        Some(Lease { shard, epoch: held.epoch, last: held.last })
    }

    /// The signed heads of all audit chains that have records.
    pub fn heads(&self) -> Vec<SignedHead> {
        self.shards
            .iter()
            .filter(|(_, shard)| shard.audit_n > 0)
            .map(|(id, shard)| self.sealer.sign(*id, shard.audit_n, shard.audit_mac))
            .collect()
    }

    /// Removes those of these streams that are not open; says how many.
    pub fn purge(&mut self, streams: &[StreamId]) -> u64 {
        streams.iter().map(|id| u64::from(self.purge_one(id))).sum()
    }

    /// Removes a stream that is not open, with the names that were claimed for it. What a run has
    /// cost stays.
    fn purge_one(&mut self, id: &StreamId) -> bool {
        if self.streams.get(id).is_none_or(|stream| stream.open) {
            return false;
        }
        if let Some(stream) = self.streams.remove(id) {
            self.order.remove(&stream.position);
            if let Some(run) = &stream.run {
                let sum = self.purged.entry(PurgedCosts::of(run)).or_default();
                *sum = sum.plus(CostSum::of(run));
            }
        }
        self.claims.retain(|_, claimed| claimed.stream.as_ref() != Some(id));
        true
    }
}

/// Keeps no more of entries than they need whose place a later one takes.
fn replace(rows: &mut [Arc<StoredRow>]) {
    for row in rows {
        let Body::Entries(entries) = &row.body else { continue };
        if entries.iter().any(|entry| entry.replaced().is_some()) {
            let kept = entries.iter().map(|it| it.replaced().unwrap_or_else(|| it.clone()));
            let body = Body::Entries(kept.collect());
            *row = Arc::new(StoredRow { first: row.first, at: row.at, no: row.no, body });
        }
    }
}

/// The stream a batch's claims belong to: the first that it makes, else the first it writes.
fn made_by(batch: &Batch) -> Option<&StreamId> {
    let made = batch.appends.iter().find(|append| append.expected == Seq(0));
    made.or(batch.appends.first()).map(|append| &append.stream)
}

/// The runs whose streams a batch leaves closed.
fn ended(batch: &Batch) -> impl Iterator<Item = &RunKey> {
    let closed: BTreeMap<_, _> =
        batch.appends.iter().map(|append| (&append.stream, append.head.open)).collect();
    closed.into_iter().filter_map(|(stream, open)| match stream {
        StreamId::Run(run) if !open => Some(run),
        _ => None,
    })
}

fn after(expected: Seq, body: &Body) -> Seq {
    Seq(expected.0 + body.len() as u64)
}
