//! The thin asynchronous shell around the shards: it feeds them, commits what they decide and
//! performs what follows. It decides nothing itself.

mod chores;
mod fetch;
mod hand_over;
mod leases;
mod load;

pub(crate) use load::read_run;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;
use wharf_domain::run::RunInput;
use wharf_domain::run::flow::FlowWork;
use wharf_domain::{Availability, Run};
use wharf_ports::{
    Batch, Clock, CommitError, ObjectStore, SharedTrouble, Store, StoreError, Trouble, WeakLifeline,
};
use wharf_vocab::limits::{COMMITS_BYTES_MAX, MESSAGES_BYTES_MAX, PROGRESS_BYTES_MAX};
use wharf_vocab::{
    Code, CommitNo, Epoch, Fault, Incarnation, NodeId, Place, ProviderId, RunKey, ShardId,
    StreamId, Timestamp,
};

use crate::book::Book;
use crate::catalog::Catalog;
use crate::flow_work::FlowWorker;
use crate::held::MemoryBudget;
use crate::hub::Hub;
use crate::lease::SafeUntil;
use crate::meter;
use crate::prices::Prices;
use crate::records::Records;
use crate::shard::{
    AnyRecord, Effect, Input, LateCost, Output, Providers, Reply, Shard, Ticket, leaves_nothing,
};
use crate::traces::Traces;
use crate::turns::Turns;
use fetch::{FetchedSpec, WaitingDispatch};
use leases::Renewal;
use load::{LoadedShards, LoadingShard};

/// Groups of batches that may be on their way to the store at once; beyond it, inputs wait.
const GROUPS_ON_THE_WAY_MAX: usize = 64;
/// Inputs that wait while nothing may be done; beyond it, messages wait.
const INPUTS_WAITING_MAX: usize = 4096;
/// Messages taken in one go before what they ask for is committed.
const MESSAGES_AT_ONCE_MAX: usize = 256;
/// How often providers are asked for room while somebody waits for it and nothing else happens.
const ROOM_AGAIN_MS: u64 = 50;

/// What the handle sends to the shell.
#[derive(Debug)]
pub(crate) enum ShellMessage {
    /// An input for a shard, and where its answer goes.
    Input {
        shard: ShardId,
        input: Box<Input>,
        answer: Option<ReplySender>,
        room: Option<MessagePermit>,
    },
    /// Whether a provider can take attempts.
    Provider { provider: ProviderId, availability: Availability },
    /// Commit what is under way, then end.
    Stop(oneshot::Sender<()>),
}

pub(crate) type ReplySender = oneshot::Sender<Result<Reply, Fault>>;

/// What a large message takes of the room for messages that wait, until it is taken.
pub(crate) type MessagePermit = OwnedSemaphorePermit;

/// What a large message takes room in units of; smaller ones are bounded by their number.
pub(crate) const ROOM_BYTES: usize = 4096;

/// What the shell is made of.
pub(crate) struct ShellParts {
    pub(crate) node: NodeId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) objects: Option<Arc<dyn ObjectStore>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hub: Arc<Hub>,
    /// What attempts take that were handed over, with their inputs.
    pub(crate) attempts: MemoryBudget,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) records: Arc<Records>,
    pub(crate) prices: Arc<Prices>,
    pub(crate) seed: u64,
    /// The shell's own door, for what gets lost on the way.
    pub(crate) messages: mpsc::WeakSender<ShellMessage>,
    /// Whether the engine is about to stop, so that nothing counts as lost.
    pub(crate) stopping: Arc<AtomicBool>,
    /// Who is told of runs that are over.
    pub(crate) traces: Traces,
    /// Who does what flows want.
    pub(crate) flows: FlowWorker,
    /// Streams that cannot be read at the moment.
    pub(crate) unread: SharedTrouble,
    /// Files that cannot be put in their places at the moment.
    pub(crate) unpublished: SharedTrouble,
}

pub(crate) struct Shell {
    parts: ShellParts,
    shards: Vec<Option<Shard>>,
    queue: VecDeque<(ShardId, Input)>,
    batches: Vec<Arc<Batch>>,
    committing: FuturesUnordered<BoxFuture<'static, Group>>,
    /// What is on its way to the store.
    committing_bytes: u64,
    /// Attempts whose inputs are being read from the store before they are handed over.
    fetching: HashMap<RunKey, WaitingDispatch>,
    fetches: FuturesUnordered<BoxFuture<'static, FetchedSpec>>,
    /// Look-ups in the store whose answer is an input.
    chores: FuturesUnordered<BoxFuture<'static, Option<(ShardId, Input)>>>,
    answers: HashMap<Ticket, (ShardId, ReplySender)>,
    last_ticket: u64,
    timetable: BTreeSet<(Timestamp, ShardId)>,
    scheduled: Vec<Option<Timestamp>>,
    reload: BTreeSet<ShardId>,
    /// Shards that are being read from the store, and what waits for them.
    loading: BTreeMap<ShardId, LoadingShard>,
    loads: FuturesUnordered<BoxFuture<'static, LoadedShards>>,
    /// Runs that wait for room at their providers.
    turns: Turns,
    /// What all shards know of providers.
    providers: Providers,
    /// Providers that shards take for full.
    full: BTreeSet<ProviderId>,
    /// The attempts that this core hands to providers, and what tells whether somebody works on
    /// them.
    book: Book<WeakLifeline>,
    renew_at: Timestamp,
    /// Renewals of the leases on their way; one at a time.
    renewals: FuturesUnordered<BoxFuture<'static, Renewal>>,
    /// Renewals that failed.
    unrenewed: Trouble,
    /// Until when anything may be done under them.
    safe_until: SafeUntil,
    /// What flows wanted before there was anybody to do it.
    flow_works: Vec<(Arc<Run>, FlowWork)>,
}

/// Another one for each start. A seed is drawn for each start of a program, and may be given twice
/// within one.
fn incarnation(seed: u64) -> Incarnation {
    static STARTS: AtomicU64 = AtomicU64::new(0);
    Incarnation(seed.wrapping_add(STARTS.fetch_add(1, Ordering::Relaxed)))
}

/// What became of batches that were committed together.
struct Group {
    settled: Vec<CommitResult>,
    bytes: u64,
    /// Whether receivers outside may be owed something now.
    owes: bool,
    /// Whether triggers may owe runs now.
    fires: bool,
}

/// Whether a batch owes something to receivers outside.
fn owes(batch: &Batch) -> bool {
    let is_owed = |append: &wharf_ports::Append| {
        append.head.open && matches!(append.stream, StreamId::Notification(_))
    };
    batch.appends.iter().any(is_owed)
}

/// Whether a batch owes runs of triggers.
fn fires(batch: &Batch) -> bool {
    let is_owed = |append: &wharf_ports::Append| {
        append.head.open && matches!(append.stream, StreamId::Firing(_))
    };
    batch.appends.iter().any(is_owed)
}

/// What became of a batch.
struct CommitResult {
    shard: ShardId,
    epoch: Epoch,
    no: CommitNo,
    result: Result<(), CommitError>,
}

impl Shell {
    /// Takes the leases and loads all that is open.
    pub(crate) async fn open(parts: ShellParts) -> Result<Self, StoreError> {
        let count = ShardId::all().count();
        let (now, passed_ms) = (parts.clock.now(), parts.clock.passed_ms());
        let place = Place { node: parts.node.clone(), incarnation: incarnation(parts.seed) };
        let outbox = Arc::clone(&parts.records.outbox);
        let mut shell = Self {
            parts,
            shards: (0..count).map(|_| None).collect(),
            queue: VecDeque::new(),
            batches: Vec::new(),
            committing: FuturesUnordered::new(),
            committing_bytes: 0,
            fetching: HashMap::new(),
            fetches: FuturesUnordered::new(),
            chores: FuturesUnordered::new(),
            answers: HashMap::new(),
            last_ticket: 0,
            timetable: BTreeSet::new(),
            scheduled: vec![None; count],
            reload: BTreeSet::new(),
            loading: BTreeMap::new(),
            loads: FuturesUnordered::new(),
            turns: Turns::default(),
            providers: Providers::at(place.clone()).telling(outbox),
            full: BTreeSet::new(),
            book: Book::new(place),
            flow_works: Vec::new(),
            renew_at: now,
            renewals: FuturesUnordered::new(),
            unrenewed: Trouble::default(),
            safe_until: SafeUntil::asked_at(passed_ms),
        };
        shell.parts.prices.load(shell.parts.store.prices().await?);
        let (store, node) = (Arc::clone(&shell.parts.store), shell.parts.node.clone());
        let loaded = load::read(&*store, node, ShardId::all().collect()).await?;
        // It may have taken long.
        let renewal = shell.renewal().await;
        shell.take_over(loaded);
        shell.renewed(renewal);
        Ok(shell)
    }

    pub(crate) async fn run(mut self, mut messages: mpsc::Receiver<ShellMessage>) {
        self.begin_flow_works();
        self.work();
        let mut stop: Option<oneshot::Sender<()>> = None;
        let mut alarm = std::pin::pin!(tokio::time::sleep(self.wake_in()));
        loop {
            // An alarm that rings too early does no harm, and setting it takes as long as a step.
            let wake = Instant::now() + self.wake_in();
            if alarm.is_elapsed() || wake < alarm.deadline() {
                alarm.as_mut().reset(wake);
            }
            let safe = self.is_safe();
            let taking = stop.is_none() && self.has_room();
            tokio::select! {
                biased;
                Some(settled) = self.committing.next(), if !self.committing.is_empty() => {
                    self.settled(settled);
                    while let Some(Some(settled)) = self.committing.next().now_or_never() {
                        self.settled(settled);
                    }
                }
                Some(loaded) = self.loads.next(), if safe && !self.loads.is_empty() => {
                    self.take_over(loaded);
                }
                Some(renewal) = self.renewals.next(), if !self.renewals.is_empty() => {
                    self.renewed(renewal);
                }
                // What it leads to begins at once.
                Some(fetched) = self.fetches.next(), if safe && !self.fetches.is_empty() => {
                    self.fetched(fetched);
                }
                Some(done) = self.chores.next(), if !self.chores.is_empty() => {
                    self.queue.extend(done);
                }
                message = messages.recv(), if taking => {
                    stop = match message {
                        Some(first) => self.take_many(first, &mut messages),
                        None => return,
                    };
                }
                () = alarm.as_mut() => self.tick(),
            }
            self.work();
            if self.committing.is_empty()
                && let Some(stop) = stop.take()
            {
                // Whoever asked may have left; the work is done either way.
                let _ = stop.send(());
                return;
            }
        }
    }

    /// Whether more can be taken. What is on its way to the store, and progress that waits behind
    /// it, is waited for, so that nobody can make the core hold more than the store can take.
    fn has_room(&self) -> bool {
        self.queue.len() < INPUTS_WAITING_MAX
            && self.committing.len() < GROUPS_ON_THE_WAY_MAX
            && self.committing_bytes < COMMITS_BYTES_MAX
            && (self.committing.is_empty() || self.progress_bytes() < PROGRESS_BYTES_MAX)
    }

    fn progress_bytes(&self) -> usize {
        self.shards.iter().flatten().map(Shard::progress_waiting_bytes).sum()
    }

    fn wake_in(&self) -> Duration {
        let now = self.parts.clock.now();
        if !self.is_safe() {
            return self.renew_at.until(now);
        }
        let next = self.timetable.first().map_or(self.renew_at, |(at, _)| (*at).min(self.renew_at));
        // Whoever has room need not say so.
        let room = self.turns.next_at().map(|at| at.max(now.plus_ms(ROOM_AGAIN_MS)));
        room.map_or(next, |room| room.min(next)).until(now)
    }

    fn take_many(
        &mut self,
        first: ShellMessage,
        messages: &mut mpsc::Receiver<ShellMessage>,
    ) -> Option<oneshot::Sender<()>> {
        let (mut next, mut bytes) = (Some(first), 0);
        for _ in 0..MESSAGES_AT_ONCE_MAX {
            let Some(message) = next else { break };
            bytes += match message {
                ShellMessage::Stop(stop) => return Some(stop),
                message => self.take(message),
            };
            // What a message made room for may be taken up by the next one at once.
            next = if bytes < MESSAGES_BYTES_MAX { messages.try_recv().ok() } else { None };
        }
        match next {
            Some(ShellMessage::Stop(stop)) => return Some(stop),
            Some(message) => drop(self.take(message)),
            None => {}
        }
        None
    }

    /// Takes a message; says how much room it took.
    fn take(&mut self, message: ShellMessage) -> usize {
        let mut bytes = 0;
        match message {
            ShellMessage::Input { shard, mut input, answer, room } => {
                bytes = room.map_or(0, |room| room.num_permits() * ROOM_BYTES);
                self.bound_progress(&mut input);
                if let Some(answer) = answer {
                    if let Err(fault) = self.admit(&input) {
                        // Whoever asked may have left.
                        let _ = answer.send(Err(fault));
                        return bytes;
                    }
                    self.last_ticket += 1;
                    let ticket = Ticket(self.last_ticket);
                    input.set_ticket(ticket);
                    self.answers.insert(ticket, (shard, answer));
                }
                self.queue.push_back((shard, *input));
            }
            ShellMessage::Provider { provider, availability } => {
                if self.providers.set(&provider, availability) {
                    let concerned = |shard: &&Shard| shard.listens_to(&provider);
                    let shards = self.shards.iter().flatten().filter(concerned).map(Shard::id);
                    let input = |shard| (shard, Input::ProviderChanged(provider.clone()));
                    self.queue.extend(shards.map(input));
                }
            }
            ShellMessage::Stop(_) => {}
        }
        bytes
    }

    /// Whether an input that somebody waits for the answer of is taken at all.
    fn admit(&self, input: &Input) -> Result<(), Fault> {
        if !self.is_safe() {
            return Err(leases::unheard());
        }
        match input {
            Input::Create(create) => self.turns.admit(&create.key, &create.spec),
            _ => Ok(()),
        }
    }

    /// A store that takes nothing must not make the core hold all that is written meanwhile.
    fn bound_progress(&self, input: &mut Input) {
        if let Input::Progress { key, attempt_id, .. } = input
            && self.progress_bytes() > 2 * PROGRESS_BYTES_MAX
        {
            let too_large = RunInput::OutputTooLarge { attempt_id: attempt_id.clone() };
            *input = Input::Run { key: key.clone(), input: too_large, ticket: None };
        }
    }

    fn settled(&mut self, group: Group) {
        self.committing_bytes -= group.bytes;
        self.note_rewound();
        if group.owes {
            self.parts.records.outbox.ring();
        }
        if group.fires {
            self.parts.records.outbox.triggers.ring();
        }
        for CommitResult { shard, epoch, no, result } in group.settled {
            // A batch of an earlier life of the shard says nothing about this one.
            if self.shards[shard.index()].as_ref().is_none_or(|found| found.epoch() != epoch) {
                continue;
            }
            let input = match result {
                Ok(()) => Input::Committed(no),
                Err(CommitError::Refused(refusal)) => Input::Refused(no, refusal),
                Err(CommitError::Failed(error)) => {
                    // The store itself tells of its trouble, and not once for each batch.
                    tracing::debug!(%shard, error = %error, "the store could not take a batch");
                    Input::Failed(no, error)
                }
            };
            self.queue.push_back((shard, input));
        }
    }

    fn tick(&mut self) {
        let now = self.parts.clock.now();
        self.note_rewound();
        if self.renew_at <= now {
            self.keep_leases(now);
        }
        if !self.is_safe() {
            return;
        }
        let due: Vec<_> =
            self.timetable.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| *id).collect();
        self.queue.extend(due.into_iter().map(|shard| (shard, Input::Tick)));
    }

    /// Steps until nothing is left to step, then hands over what is to be committed.
    fn work(&mut self) {
        loop {
            // Whatever waits is asked for again when the leases are sure.
            while self.is_safe()
                && let Some((id, input)) = self.queue.pop_front()
            {
                self.step(id, input);
            }
            self.reload_shards();
            if !self.is_safe() {
                break;
            }
            self.call_turns();
            if self.queue.is_empty() {
                break;
            }
        }
        self.commit();
    }

    fn step(&mut self, id: ShardId, input: Input) {
        let now = self.parts.clock.now();
        let Some(shard) = &mut self.shards[id.index()] else {
            return match self.loading.get_mut(&id) {
                Some(loading) => loading.wait(input),
                None => self.turn_away(&input),
            };
        };
        let out = shard.step(now, input);
        self.follow(id, out);
    }

    /// Does what a step asks for.
    fn follow(&mut self, id: ShardId, out: Output) {
        self.batches.extend(out.batches);
        for effect in out.effects {
            self.perform(id, effect);
        }
        self.reschedule(id);
    }

    /// A shard that another core holds cannot answer here.
    fn turn_away(&mut self, input: &Input) {
        if let Some((_, answer)) = input.ticket().and_then(|ticket| self.answers.remove(&ticket)) {
            let message = "Another core holds this part of the store; try again in a while.";
            // Whoever asked may have left.
            let _ = answer.send(Err(Fault::new(Code::CoreBusy, message)));
        }
    }

    fn commit(&mut self) {
        if self.batches.is_empty() {
            return;
        }
        let batches = std::mem::take(&mut self.batches);
        let names: Vec<_> =
            batches.iter().map(|batch| (batch.shard, batch.epoch, batch.no)).collect();
        let bytes = batches.iter().map(|batch| batch.weight()).sum();
        let owes = batches.iter().any(|batch| owes(batch));
        let fires = batches.iter().any(|batch| fires(batch));
        self.committing_bytes += bytes;
        let committed = self.parts.store.commit(batches);
        self.committing.push(Box::pin(async move {
            let settled = names.into_iter().zip(committed.await);
            let settled = settled
                .map(|((shard, epoch, no), result)| CommitResult { shard, epoch, no, result })
                .collect();
            Group { settled, bytes, owes, fires }
        }));
    }

    fn perform(&mut self, shard: ShardId, effect: Effect) {
        match effect {
            Effect::Reply { ticket, result } => {
                if let Some((_, answer)) = self.answers.remove(&ticket) {
                    // Whoever asked may have left.
                    let _ = answer.send(result);
                }
            }
            Effect::Publish { batch, run } => {
                if run.is_over() {
                    self.book.forget(&run.key);
                    self.fetching.remove(&run.key);
                }
                meter::count(&batch, &run);
                self.parts.prices.committed(&batch.ledger);
                self.clear_up(&run);
                self.publish(&batch, &run);
                // Whoever looks at what was written of it finds all of it.
                self.parts.traces.committed(&batch, &run);
            }
            Effect::RecordChanged(record) => {
                self.parts.hub.changes.record(&record, self.parts.clock.now());
                if let AnyRecord::Flow(flow) = &record {
                    self.parts.catalog.set_flow(flow);
                }
                self.parts.records.set(record);
            }
            // All places are here.
            Effect::Dispatch { dispatch, .. } => self.dispatch(shard, *dispatch),
            Effect::AttemptOver { key, attempt_id, .. } => self.book.over(&key, &attempt_id),
            Effect::Queue(turn) => self.turns.push(turn),
            Effect::LeaveQueue { provider, run } => self.turns.remove(&provider, &run),
            Effect::PutInPlace { run, attempt_id, moves, files } => {
                self.put_in_place(run, attempt_id, moves, files);
            }
            Effect::CancelAttempt { attempt_id, .. } if self.give_up_fetching(&attempt_id) => {}
            Effect::CancelAttempt { provider, attempt_id, reason, grace_ms, .. } => {
                self.tell_sink(&provider, |sink| sink.cancel(&attempt_id, &reason, grace_ms));
            }
            Effect::Answer { provider, attempt_id, key, resolution, .. } => {
                self.tell_sink(&provider, |sink| sink.answer(&attempt_id, &key, &resolution));
            }
            Effect::Send { to, input } => self.queue.push_back((to, *input)),
            Effect::AskAfterParent { parent, child } => self.ask_after(parent, child),
            Effect::LookUp { key, epoch } => self.look_up(key, epoch),
            Effect::Adopt { place, key, attempt_id, epoch } => {
                let asked = (&key, &attempt_id);
                if let Some(found) = self.book.adopt((shard, epoch), place.as_ref(), asked) {
                    let input = Input::Adopted { key, attempt_id, epoch, found };
                    self.queue.push_back((shard, input));
                }
            }
            Effect::FindEnded { key, cost } => self.find_ended(key, cost),
            Effect::LookUpRecord { stream, epoch } => self.look_up_record(stream, epoch),
            Effect::Flow { run, work } => self.work_for_flow(run, work),
            Effect::Reload => {
                self.reload.insert(shard);
            }
        }
    }

    /// Shows what was committed. Whoever writes more than a run and all it belongs to may is
    /// stopped.
    fn publish(&mut self, batch: &Arc<Batch>, run: &Arc<Run>) {
        if self.parts.hub.publish(batch, run)
            && let Some(active) = &run.active
        {
            let (key, attempt_id) = (run.key.clone(), active.id.clone());
            let (shard, input) = (key.shard(), RunInput::OutputTooLarge { attempt_id });
            self.queue.push_back((shard, Input::Run { key, input, ticket: None }));
        }
    }

    /// A parent that is over may have been called off before its child was known to it.
    fn ask_after(&mut self, parent: RunKey, child: RunKey) {
        let (store, unread) = (Arc::clone(&self.parts.store), self.parts.unread.clone());
        self.chores.push(Box::pin(async move {
            let stream = parent.stream();
            let stored = load::read_patiently(&*store, &stream, &unread).await?;
            let canceled = read_run(&stream, &stored).is_ok_and(|run| leaves_nothing(&run));
            match Effect::cancel_child(&child) {
                Effect::Send { to, input } if canceled => Some((to, *input)),
                _ => None,
            }
        }));
    }

    /// The store may have made a commit although it could not say so.
    fn look_up(&mut self, key: RunKey, epoch: Epoch) {
        let (store, unread) = (Arc::clone(&self.parts.store), self.parts.unread.clone());
        self.chores.push(Box::pin(async move {
            let stream = key.stream();
            let stored = load::read_patiently(&*store, &stream, &unread).await;
            let found = stored
                .and_then(|stored| Some((Box::new(read_run(&stream, &stored).ok()?), stored.seq)));
            Some((key.shard(), Input::LookedUp { key, epoch, found }))
        }));
    }

    /// A run that only memory knows is found there, any other in the store.
    fn find_ended(&mut self, key: RunKey, cost: LateCost) {
        let kept = self.parts.hub.memory_run(&key);
        let (store, unread) = (Arc::clone(&self.parts.store), self.parts.unread.clone());
        self.chores.push(Box::pin(async move {
            let found = match kept {
                Some((run, seq)) => Some((Box::new(Run::clone(&run)), seq)),
                None => {
                    let stream = key.stream();
                    let stored = load::read_patiently(&*store, &stream, &unread).await;
                    stored.and_then(|stored| {
                        Some((Box::new(read_run(&stream, &stored).ok()?), stored.seq))
                    })
                }
            };
            Some((key.shard(), Input::LateCost { key, cost, found }))
        }));
    }

    /// The same for a world, an agent, a grant or a seat.
    fn look_up_record(&mut self, stream: StreamId, epoch: Epoch) {
        let (store, unread) = (Arc::clone(&self.parts.store), self.parts.unread.clone());
        self.chores.push(Box::pin(async move {
            let stored = load::read_patiently(&*store, &stream, &unread).await;
            let found = stored.and_then(|stored| {
                Some((AnyRecord::replay(&stream, &stored.entries)?, stored.seq))
            });
            Some((stream.shard(), Input::RecordLookedUp { stream, epoch, found }))
        }));
    }

    fn reschedule(&mut self, id: ShardId) {
        let wants = self.shards[id.index()].as_ref().and_then(Shard::next_deadline);
        let known = &mut self.scheduled[id.index()];
        if *known != wants {
            if let Some(old) = known.take() {
                self.timetable.remove(&(old, id));
            }
            if let Some(at) = wants {
                *known = Some(at);
                self.timetable.insert((at, id));
            }
        }
    }
}
