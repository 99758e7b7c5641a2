//! Worlds, providers, grants, seats, schedules, triggers and receivers in a
//! shard: small records that change one entry at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use wharf_domain::flow::{Flow, FlowRecordInput};
use wharf_domain::{
    AuditRecord, CallerRef, Entry, Grant, GrantInput, LedgerOp, Provider, ProviderInput, Receiver,
    ReceiverInput, Schedule, ScheduleInput, Seat, SeatInput, ToolDef, Trigger, TriggerInput, World,
    WorldInput,
};
use wharf_ports::{Append, Batch, Body, StoreError, StoreErrorKind, StreamHead};
use wharf_vocab::{
    Code, Fault, FlowId, GrantId, ProviderId, ReceiverId, ScheduleId, SeatId, Seq, StreamId,
    Timestamp, TriggerId, WorldId,
};

use super::runs::reply;
use super::{CommitOwner, Effect, Output, Reply, Shard, Ticket};

/// A thing whose stream is a plain list of changes.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyRecord {
    World(Box<World>),
    Provider(Box<Provider>),
    Grant(Box<Grant>),
    Seat(Box<Seat>),
    Schedule(Box<Schedule>),
    Receiver(Box<Receiver>),
    Trigger(Box<Trigger>),
    Flow(Box<Flow>),
}

/// Something that happens to a record.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordInput {
    World(WorldId, WorldInput),
    Provider(ProviderId, Box<ProviderInput>),
    Grant(GrantId, GrantInput),
    Seat(SeatId, SeatInput),
    Schedule(ScheduleId, ScheduleInput),
    Receiver(ReceiverId, ReceiverInput),
    Trigger(TriggerId, TriggerInput),
    Flow(FlowId, FlowRecordInput),
}

impl RecordInput {
    pub(super) fn weight(&self) -> u64 {
        match self {
            Self::Provider(_, input) => match &**input {
                ProviderInput::Offer { tools } => tools.iter().map(ToolDef::weight).sum(),
                _ => 0,
            },
            Self::Flow(_, FlowRecordInput::Add { document, .. }) => {
                wharf_vocab::json::json_bytes(&**document) as u64
            }
            _ => 0,
        }
    }
}

impl AnyRecord {
    /// Reads a record back from the entries of its stream.
    pub fn replay<'a>(
        stream: &StreamId,
        entries: impl IntoIterator<Item = &'a (Timestamp, Entry)>,
    ) -> Option<Self> {
        let mut record = None;
        for (at, entry) in entries {
            record = Self::apply(record, stream, *at, entry);
        }
        record
    }

    /// Whether nothing of it matters any more, so that it is not loaded again: a browser that
    /// signed out.
    fn is_gone(&self) -> bool {
        matches!(self, Self::Grant(grant) if grant.console.is_some() && grant.revoked_at.is_some())
    }

    /// The change an input asks for; none if everything is as it should be.
    fn decide(
        current: Option<&Self>,
        input: &RecordInput,
        by: &CallerRef,
    ) -> Result<Option<Change>, Fault> {
        Ok(match input {
            RecordInput::World(id, input) => {
                let current = current.and_then(World::seen);
                World::decide(current, id, input, by)?.map(|(entry, op, record)| {
                    let mut ledger: Vec<LedgerOp> = op.into_iter().collect();
                    // The account of a world that was removed is still there, with what was spent
                    // on it.
                    if let Some(LedgerOp::Open { account, limit, .. }) = ledger.first().cloned() {
                        ledger.extend(current.map(|_| LedgerOp::SetLimit { account, limit }));
                    }
                    Change { entry: Entry::World(entry), ledger, record: Some(record) }
                })
            }
            RecordInput::Provider(id, input) => {
                let decided = Provider::decide(current.and_then(Provider::seen), id, input, by)?;
                decided.map(|(entry, record)| {
                    let entry = Entry::Provider(Box::new(entry));
                    Change { entry, ledger: Vec::new(), record: Some(record) }
                })
            }
            RecordInput::Grant(id, input) => {
                let decided = Grant::decide(current.and_then(Grant::seen), id, input, by)?;
                decided.map(|(entry, ledger, record)| {
                    let entry = Entry::Grant(entry);
                    Change { entry, ledger, record }
                })
            }
            RecordInput::Seat(id, input) => {
                let decided = Seat::decide(current.and_then(Seat::seen), id, input, by)?;
                decided.map(|(entry, record)| {
                    let entry = Entry::Seat(entry);
                    Change { entry, ledger: Vec::new(), record: Some(record) }
                })
            }
            RecordInput::Flow(id, input) => {
                let decided = Flow::decide(current.and_then(Flow::seen), id, input, by)?;
                decided.map(|(entry, record)| {
                    let entry = Entry::Flow(entry);
                    Change { entry, ledger: Vec::new(), record: Some(record) }
                })
            }
            RecordInput::Schedule(id, input) => {
                let decided = Schedule::decide(current.and_then(Schedule::seen), id, input, by)?;
                decided.map(|(entry, record)| {
                    let entry = Entry::Schedule(entry);
                    Change { entry, ledger: Vec::new(), record }
                })
            }
            RecordInput::Trigger(id, input) => {
                let decided = Trigger::decide(current.and_then(Trigger::seen), id, input, by)?;
                decided.map(|(entry, record)| {
                    let entry = Entry::Trigger(entry);
                    Change { entry, ledger: Vec::new(), record }
                })
            }
            RecordInput::Receiver(id, input) => {
                let decided = Receiver::decide(current.and_then(Receiver::seen), id, input, by)?;
                decided.map(|(entry, record)| {
                    let entry = Entry::Receiver(Box::new(entry));
                    Change { entry, ledger: Vec::new(), record }
                })
            }
        })
    }
}

/// A kind of record.
pub trait RecordKind: Sized {
    type Id;
    type Input;

    /// Something that happens to a record of this kind.
    fn input(id: Self::Id, input: Self::Input) -> RecordInput;

    /// The record, if it is of this kind.
    fn taken(record: AnyRecord) -> Option<Self>;

    fn seen(record: &AnyRecord) -> Option<&Self>;
}

macro_rules! kinds {
    ($($kind:ident $id:ident $input:ident,)*) => {
        $(impl RecordKind for $kind {
            type Id = $id;
            type Input = $input;

            fn input(id: $id, input: $input) -> RecordInput {
                RecordInput::$kind(id, input.into())
            }

            fn taken(record: AnyRecord) -> Option<Self> {
                if let AnyRecord::$kind(record) = record { Some(*record) } else { None }
            }

            fn seen(record: &AnyRecord) -> Option<&Self> {
                if let AnyRecord::$kind(record) = record { Some(record) } else { None }
            }
        })*

        impl RecordInput {
            /// The stream of the record that it happens to.
            pub fn stream(&self) -> StreamId {
                match self {
                    $(Self::$kind(id, _) => StreamId::$kind(id.clone()),)*
                }
            }
        }

        impl AnyRecord {
            pub fn stream(&self) -> StreamId {
                match self {
                    $(Self::$kind(record) => StreamId::$kind(record.id.clone()),)*
                }
            }

            fn apply(
                current: Option<Self>,
                stream: &StreamId,
                at: Timestamp,
                entry: &Entry,
            ) -> Option<Self> {
                match (stream, entry) {
                    $((StreamId::$kind(id), Entry::$kind(entry)) => {
                        let next = $kind::apply(current.and_then($kind::taken), id, at, entry)?;
                        Some(Self::$kind(Box::new(next)))
                    })*
                    _ => current,
                }
            }
        }
    };
}

kinds! {
    World WorldId WorldInput,
    Provider ProviderId ProviderInput,
    Grant GrantId GrantInput,
    Seat SeatId SeatInput,
    Schedule ScheduleId ScheduleInput,
    Receiver ReceiverId ReceiverInput,
    Trigger TriggerId TriggerInput,
    Flow FlowId FlowRecordInput,
}

/// A change on its way.
struct Change {
    entry: Entry,
    ledger: Vec<LedgerOp>,
    /// What the audit is told; nothing of what happens all the time.
    record: Option<AuditRecord>,
}

/// A change of a record that somebody asks for.
#[derive(Debug)]
pub(super) struct RecordRequest {
    pub(super) input: RecordInput,
    pub(super) by: CallerRef,
    pub(super) ticket: Option<Ticket>,
}

/// One record in a shard.
#[derive(Debug, Default)]
pub(super) struct RecordSlot {
    current: Option<AnyRecord>,
    seq: Seq,
    pending: Option<(AnyRecord, Option<Ticket>)>,
    /// Whether the store may hold more than is known here; it is being looked up, and inputs wait.
    doubtful: bool,
    waiting: VecDeque<RecordRequest>,
}

impl RecordSlot {
    pub(super) fn loaded(record: AnyRecord, seq: Seq) -> Self {
        Self { current: Some(record), seq, ..Self::default() }
    }
}

impl Shard {
    pub(super) fn record(&mut self, now: Timestamp, request: RecordRequest, out: &mut Output) {
        let stream = request.input.stream();
        self.records.entry(stream.clone()).or_default().waiting.push_back(request);
        self.pump_record(now, &stream, out);
    }

    fn pump_record(&mut self, now: Timestamp, stream: &StreamId, out: &mut Output) {
        while let Some(slot) = self.records.get_mut(stream)
            && slot.pending.is_none()
            && !slot.doubtful
            && let Some(RecordRequest { input, by, ticket }) = slot.waiting.pop_front()
        {
            let change = match AnyRecord::decide(slot.current.as_ref(), &input, &by) {
                Ok(Some(change)) => change,
                Ok(None) => {
                    if let Some(current) = slot.current.clone() {
                        reply(out, ticket, Ok(Reply::Record(current)));
                    }
                    continue;
                }
                Err(fault) => {
                    reply(out, ticket, Err(fault));
                    continue;
                }
            };
            let next = AnyRecord::apply(slot.current.clone(), stream, now, &change.entry);
            let Some(next) = next else {
                let fault = Fault::new(Code::CoreInternal, "The record does not fit its change.");
                reply(out, ticket, Err(fault));
                continue;
            };
            let append = Append {
                stream: stream.clone(),
                expected: slot.seq,
                body: Body::Entries(vec![change.entry]),
                head: StreamHead::new(!next.is_gone(), None),
            };
            slot.pending = Some((next, ticket));
            let mut batch = Batch {
                appends: vec![append],
                ledger: change.ledger,
                audit: change.record.into_iter().collect(),
                ..self.batch(now)
            };
            self.owe_of_audit(&mut batch);
            self.on_the_way.insert(batch.no, CommitOwner::Record(stream.clone()));
            out.batches.push(Arc::new(batch));
        }
    }

    pub(super) fn record_committed(&mut self, now: Timestamp, stream: &StreamId, out: &mut Output) {
        if let Some(slot) = self.records.get_mut(stream)
            && let Some((record, ticket)) = slot.pending.take()
        {
            slot.seq = slot.seq.next();
            slot.current = Some(record.clone());
            out.effects.push(Effect::RecordChanged(record.clone()));
            reply(out, ticket, Ok(Reply::Record(record)));
        }
        self.pump_record(now, stream, out);
    }

    pub(super) fn record_refused(&mut self, now: Timestamp, stream: &StreamId, out: &mut Output) {
        let fault = Fault::new(Code::CoreBusy, "This has moved to another core; try again.");
        self.record_dropped(now, stream, fault, out);
        out.effects.push(Effect::Reload);
    }

    pub(super) fn record_failed(
        &mut self,
        now: Timestamp,
        stream: &StreamId,
        error: &StoreError,
        out: &mut Output,
    ) {
        if error.kind == StoreErrorKind::Unavailable
            && let Some(slot) = self.records.get_mut(stream)
        {
            // The change may have been made all the same.
            slot.doubtful = true;
            let (stream, epoch) = (stream.clone(), self.epoch);
            out.effects.push(Effect::LookUpRecord { stream, epoch });
        }
        self.record_dropped(now, stream, error.clone().into(), out);
    }

    /// What the store holds of a record is known again.
    pub(super) fn record_looked_up(
        &mut self,
        now: Timestamp,
        stream: &StreamId,
        found: Option<(AnyRecord, Seq)>,
        out: &mut Output,
    ) {
        let Some(slot) = self.records.get_mut(stream) else { return };
        slot.doubtful = false;
        if let Some((record, seq)) = found.filter(|(_, seq)| *seq > slot.seq) {
            slot.seq = seq;
            slot.current = Some(record.clone());
            out.effects.push(Effect::RecordChanged(record));
        }
        self.pump_record(now, stream, out);
    }

    fn record_dropped(
        &mut self,
        now: Timestamp,
        stream: &StreamId,
        fault: Fault,
        out: &mut Output,
    ) {
        if let Some(slot) = self.records.get_mut(stream)
            && let Some((_, ticket)) = slot.pending.take()
        {
            reply(out, ticket, Err(fault));
        }
        self.pump_record(now, stream, out);
    }
}
