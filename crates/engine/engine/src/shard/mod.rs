//! A shard: one slice of all streams, stepped by one core at a time.
//!
//! `step` is synchronous and deterministic: the same seed, clock and inputs give the same batches
//! and effects. A run has at most one batch on its way; what happens meanwhile waits, and progress
//! is joined. A batch that is refused leaves the shard as it was and comes back as an input.

mod commit;
mod flows;
mod input;
mod late;
mod outward;
mod progress;
mod providers;
mod records;
mod recover;
mod runs;
mod slot;
mod steps;
mod unload;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use wharf_domain::run::RunInput;
use wharf_domain::{AuditRecord, Availability, Entry, NoticeEnd, NoticeEntry, NoticeOver};
use wharf_ports::{Append, Batch, Body, Lease, StreamHead};
use wharf_vocab::{
    AskId, CommitNo, Epoch, HoldId, ProviderId, RunKey, Seq, ShardId, StreamId, Timestamp,
};

pub(crate) use commit::file_in_use;
pub use input::{ClaimValue, Create, Effect, Input, LateCost, Output, Reply, Ticket};
pub use providers::{PlaceLoad, Providers};
pub use records::{AnyRecord, RecordInput, RecordKind};
pub use recover::StoredShard;
pub(crate) use runs::conflict;
pub use slot::RunView;
pub(crate) use steps::leaves_nothing;
pub use unload::UnloadedShard;

use crate::fresh::Seeded;
use records::{RecordRequest, RecordSlot};
use slot::Slot;

/// One slice of all streams.
#[derive(Debug)]
pub struct Shard {
    id: ShardId,
    epoch: Epoch,
    last_no: CommitNo,
    fresh: Seeded,
    providers: Providers,
    runs: HashMap<RunKey, Slot>,
    /// The runs of each provider that wait to hear of it.
    listening: BTreeMap<ProviderId, BTreeSet<RunKey>>,
    asks: HashMap<AskId, RunKey>,
    records: HashMap<StreamId, RecordSlot>,
    /// Which run or record a batch on its way belongs to.
    on_the_way: HashMap<CommitNo, CommitOwner>,
    timetable: BTreeSet<(Timestamp, RunKey)>,
    /// Nobody's batches that the store could not take, and when they are offered again.
    again: BTreeMap<(Timestamp, CommitNo), Arc<Batch>>,
    /// Runs that are being looked up.
    in_doubt: BTreeSet<RunKey>,
    /// Runs that are over and are being looked up, and costs that came meanwhile.
    finding: BTreeMap<RunKey, Vec<LateCost>>,
    progress_waiting_bytes: usize,
    /// Holds the store knows of, until it is clear whose they are.
    unchecked_holds: Vec<HoldId>,
    /// Children the store knows of, until their parents have been told, each behind its parent.
    unchecked_children: Vec<(RunKey, RunKey)>,
}

#[derive(Debug, Clone)]
enum CommitOwner {
    Run(RunKey),
    Record(StreamId),
    /// Files that somebody put into a world or took away.
    Files(Option<Ticket>),
    /// A batch that only audits or gives money back.
    Nobody(Arc<Batch>),
}

impl Shard {
    /// An empty shard under a lease, beside others that know the same providers.
    pub fn new(lease: Lease, seed: u64, providers: Providers) -> Self {
        Self {
            id: lease.shard,
            epoch: lease.epoch,
            last_no: lease.last,
            fresh: Seeded::new(seed),
            providers,
            runs: HashMap::new(),
            listening: BTreeMap::new(),
            asks: HashMap::new(),
            records: HashMap::new(),
            on_the_way: HashMap::new(),
            timetable: BTreeSet::new(),
            again: BTreeMap::new(),
            in_doubt: BTreeSet::new(),
            finding: BTreeMap::new(),
            progress_waiting_bytes: 0,
            unchecked_holds: Vec::new(),
            unchecked_children: Vec::new(),
        }
    }

    /// The shard's number.
    pub fn id(&self) -> ShardId {
        self.id
    }

    /// The epoch of the lease the shard writes under.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// How many runs are open.
    pub fn open_runs(&self) -> usize {
        self.runs.len()
    }

    /// How many batches are on their way to the store.
    pub fn batches_on_the_way(&self) -> usize {
        self.on_the_way.len()
    }

    /// How much progress waits for a commit.
    pub fn progress_waiting_bytes(&self) -> usize {
        self.progress_waiting_bytes
    }

    /// One open run, as the shard remembers it.
    pub fn run(&self, key: &RunKey) -> Option<RunView<'_>> {
        self.runs.get(key).map(Slot::view)
    }

    /// All open runs, as the shard remembers them, in no particular order.
    pub fn runs(&self) -> impl Iterator<Item = RunView<'_>> {
        self.runs.values().map(Slot::view)
    }

    /// When the shard wants to be woken by a [`Input::Tick`].
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let runs = self.timetable.first().map(|(at, _)| *at);
        let again = self.again.keys().next().map(|(at, _)| *at);
        runs.into_iter().chain(again).min()
    }

    /// Takes one input and says what follows from it.
    pub fn step(&mut self, now: Timestamp, input: Input) -> Output {
        self.fresh.set_now(now);
        let mut out = Output::default();
        match input {
            Input::Create(create) => self.create(now, *create, &mut out),
            Input::Run { key, input, ticket } => self.offer(now, &key, input, ticket, &mut out),
            Input::Progress { key, attempt_id, pieces } => {
                self.progress(now, &key, &attempt_id, pieces, &mut out);
            }
            Input::Record { input, by, ticket } => {
                self.record(now, RecordRequest { input, by, ticket }, &mut out);
            }
            Input::ProviderChanged(provider) => self.provider_changed(now, &provider, &mut out),
            Input::Child { parent, child, began } => {
                self.child(now, &parent, (child, began), &mut out);
            }
            Input::LookedUp { key, epoch, found } => {
                if epoch == self.epoch {
                    self.looked_up(now, &key, found, &mut out);
                }
            }
            Input::Adopted { key, attempt_id, epoch, found } => {
                if epoch == self.epoch {
                    self.adopted(now, &key, attempt_id, found, &mut out);
                }
            }
            Input::Detached { key, attempt_id } => self.detached(now, &key, &attempt_id),
            Input::LateCost { key, cost, found } => {
                self.late_cost(now, &key, cost, found, &mut out);
            }
            Input::Notice { id, how } => self.end_notice(now, id, how, &mut out),
            Input::RecordLookedUp { stream, epoch, found } => {
                if epoch == self.epoch {
                    self.record_looked_up(now, &stream, found, &mut out);
                }
            }
            Input::Notification { id, entry } => self.notification(now, id, entry, &mut out),
            Input::Firing { id, entry } => self.firing(now, id, entry, &mut out),
            Input::Audit(records) => self.audit(now, records, &mut out),
            Input::Files { ops, requires, record, ticket } => {
                let audit = record.map(|record| *record).into_iter().collect();
                let mut batch = Batch { artifacts: ops, requires, audit, ..self.batch(now) };
                self.owe_of_files(&mut batch, now, 0);
                self.on_the_way.insert(batch.no, CommitOwner::Files(ticket));
                out.batches.push(Arc::new(batch));
            }
            Input::Committed(no) => self.committed(now, no, &mut out),
            Input::Refused(no, refusal) => self.refused(now, no, refusal, &mut out),
            Input::Failed(no, error) => self.failed(now, no, &error, &mut out),
            Input::Tick => self.tick(now, &mut out),
        }
        out
    }

    fn next_no(&mut self) -> CommitNo {
        self.last_no = self.last_no.next();
        self.last_no
    }

    /// An empty batch with the next number.
    fn batch(&mut self, now: Timestamp) -> Batch {
        Batch {
            shard: self.id,
            epoch: self.epoch,
            no: self.next_no(),
            at: now,
            appends: Vec::new(),
            claims: Vec::new(),
            requires: Vec::new(),
            ledger: Vec::new(),
            audit: Vec::new(),
            artifacts: Vec::new(),
        }
    }

    fn audit(&mut self, now: Timestamp, records: Vec<AuditRecord>, out: &mut Output) {
        let mut batch = Batch { audit: records, ..self.batch(now) };
        self.owe_of_audit(&mut batch);
        self.send_nobodys(batch, out);
    }

    /// Writes down that a notice is owed no more. One that was over before stays as it is.
    fn end_notice(&mut self, now: Timestamp, id: AskId, how: NoticeEnd, out: &mut Output) {
        let over = Entry::Notice(NoticeEntry::Over(NoticeOver { how }));
        let append = Append {
            stream: StreamId::Notice(id),
            expected: Seq(1),
            body: Body::Entries(vec![over]),
            head: StreamHead::new(false, None),
        };
        let batch = Batch { appends: vec![append], ..self.batch(now) };
        self.send_nobodys(batch, out);
    }

    /// Puts a batch on its way that no run, world, agent or grant waits for.
    fn send_nobodys(&mut self, batch: Batch, out: &mut Output) {
        let batch = Arc::new(batch);
        self.on_the_way.insert(batch.no, CommitOwner::Nobody(Arc::clone(&batch)));
        out.batches.push(batch);
    }

    fn provider_changed(&mut self, now: Timestamp, provider: &ProviderId, out: &mut Output) {
        let listening: Vec<_> =
            self.listening.get(provider).into_iter().flatten().cloned().collect();
        // Attempts that wait to be taken up again are, once it is there.
        let up = self.providers.availability(provider) == Availability::Up;
        for key in listening {
            let Some(slot) = self.runs.get(&key) else { continue };
            match slot.latest().is_some_and(|run| run.active.is_none()) {
                true => self.offer(now, &key, RunInput::Provider, None, out),
                false if up && slot.detached => {
                    self.offer(now, &key, RunInput::Recovered, None, out);
                }
                false => {}
            }
        }
    }

    fn tick(&mut self, now: Timestamp, out: &mut Output) {
        while let Some(entry) = self.again.first_entry()
            && entry.key().0 <= now
        {
            out.batches.push(entry.remove());
        }
        while let Some((at, key)) = self.timetable.first().cloned() {
            if at > now {
                return;
            }
            self.timetable.pop_first();
            if let Some(slot) = self.runs.get_mut(&key) {
                slot.deadline = None;
                match &mut slot.pending {
                    Some(pending) => {
                        pending.again_at = None;
                        out.batches.push(Arc::clone(&pending.stored));
                    }
                    None => {
                        self.recheck(now, &key, out);
                        self.offer(now, &key, RunInput::Tick, None, out);
                    }
                }
            }
            self.reschedule(&key);
        }
    }

    /// Keys of runs in a fixed order, so that a step does not depend on how a map is laid out.
    fn runs_where(&self, wanted: impl Fn(&Slot) -> bool) -> Vec<RunKey> {
        let mut keys: Vec<_> =
            self.runs.iter().filter(|(_, slot)| wanted(slot)).map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }

    /// Whether any run waits to hear of this provider.
    pub fn listens_to(&self, provider: &ProviderId) -> bool {
        self.listening.contains_key(provider)
    }

    fn insert(&mut self, key: RunKey, slot: Slot) {
        let before = self.runs.insert(key, slot);
        debug_assert!(before.is_none(), "a run has one slot");
    }

    /// Brings the index of runs that wait to hear of their providers up to date.
    fn note_listening(&mut self, key: &RunKey) {
        let Some(slot) = self.runs.get_mut(key) else { return };
        let wants = slot.wants_news();
        if wants != std::mem::replace(&mut slot.listens, wants) {
            if wants {
                self.listening.entry(slot.provider.clone()).or_default().insert(key.clone());
            } else {
                stop_listening(&mut self.listening, &slot.provider, key);
            }
        }
    }

    fn reschedule(&mut self, key: &RunKey) {
        self.note_listening(key);
        let Some(slot) = self.runs.get_mut(key) else { return };
        let wants = slot.wants();
        if wants == slot.deadline {
            return;
        }
        if let Some(old) = slot.deadline.take() {
            self.timetable.remove(&(old, key.clone()));
        }
        if let Some(at) = wants {
            slot.deadline = Some(at);
            self.timetable.insert((at, key.clone()));
        }
    }

    fn forget(&mut self, key: &RunKey) -> Option<Slot> {
        let mut slot = self.runs.remove(key)?;
        if slot.listens {
            stop_listening(&mut self.listening, &slot.provider, key);
        }
        if let Some(at) = slot.deadline.take() {
            let known = self.timetable.remove(&(at, key.clone()));
            debug_assert!(known, "a deadline is in the timetable");
        }
        debug_assert!(self.progress_waiting_bytes >= slot.progress.waiting_bytes());
        self.progress_waiting_bytes -= slot.progress.waiting_bytes();
        if let Some(run) = &slot.run {
            for raised in &run.asks {
                self.asks.remove(&raised.ask.spec.ask_id);
            }
        }
        Some(slot)
    }
}

fn stop_listening(
    listening: &mut BTreeMap<ProviderId, BTreeSet<RunKey>>,
    provider: &ProviderId,
    key: &RunKey,
) {
    if let Some(keys) = listening.get_mut(provider) {
        keys.remove(key);
        if keys.is_empty() {
            listening.remove(provider);
        }
    }
}
