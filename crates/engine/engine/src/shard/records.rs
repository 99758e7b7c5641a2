//! Worlds, agents, grants and seats in a shard: small records that change one entry at a time.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use wharf_domain::{
    AuditRecord, CallerRef, Entry, Grant, GrantInput, LedgerOp, Provider, ProviderInput, Seat,
    SeatInput, World, WorldInput,
};
use wharf_ports::{Append, Batch, Body, Head, StoreError, StoreErrorKind};
use wharf_vocab::{Code, Fault, GrantId, ProviderId, SeatId, Seq, StreamId, Timestamp, WorldId};

use super::runs::reply;
use super::{Effect, Found, Output, Owner, Reply, Shard, Ticket};

/// A thing whose stream is a plain list of changes.
pub(super) trait Record: Clone {
    type Id: Clone + Eq + Hash;
    type Input;

    /// The change an input asks for; none if everything is as it should be.
    fn decide(
        current: Option<&Self>,
        id: &Self::Id,
        input: &Self::Input,
        by: &CallerRef,
        now: Timestamp,
    ) -> Result<Option<Change<Self>>, Fault>;

    fn stream(id: &Self::Id) -> StreamId;
    fn owner(id: &Self::Id) -> Owner;
    fn slots(shard: &mut Shard) -> &mut HashMap<Self::Id, RecordSlot<Self>>;
    fn shown(self) -> Effect;
    fn reply(self) -> Reply;
}

/// A change on its way.
pub(super) struct Change<R> {
    next: R,
    entry: Entry,
    ledger: Vec<LedgerOp>,
    record: AuditRecord,
}

/// One record in a shard.
#[derive(Debug)]
pub(super) struct RecordSlot<R: Record> {
    current: Option<R>,
    seq: Seq,
    pending: Option<(R, Option<Ticket>)>,
    /// Whether the store may hold more than is known here; it is being looked up, and inputs wait.
    doubtful: bool,
    waiting: VecDeque<(R::Input, CallerRef, Option<Ticket>)>,
}

impl<R: Record> Default for RecordSlot<R> {
    fn default() -> Self {
        Self {
            current: None,
            seq: Seq(0),
            pending: None,
            doubtful: false,
            waiting: VecDeque::new(),
        }
    }
}

impl<R: Record> RecordSlot<R> {
    pub(super) fn loaded(record: R, seq: Seq) -> Self {
        Self { current: Some(record), seq, ..Self::default() }
    }
}

impl Shard {
    pub(super) fn record<R: Record>(
        &mut self,
        now: Timestamp,
        id: &R::Id,
        request: (R::Input, CallerRef, Option<Ticket>),
        out: &mut Output,
    ) {
        R::slots(self).entry(id.clone()).or_default().waiting.push_back(request);
        self.pump_record::<R>(now, id, out);
    }

    fn pump_record<R: Record>(&mut self, now: Timestamp, id: &R::Id, out: &mut Output) {
        while let Some(slot) = R::slots(self).get_mut(id)
            && slot.pending.is_none()
            && !slot.doubtful
            && let Some((input, by, ticket)) = slot.waiting.pop_front()
        {
            let change = match R::decide(slot.current.as_ref(), id, &input, &by, now) {
                Ok(Some(change)) => change,
                Ok(None) => {
                    if let Some(current) = slot.current.clone() {
                        reply(out, ticket, Ok(current.reply()));
                    }
                    continue;
                }
                Err(fault) => {
                    reply(out, ticket, Err(fault));
                    continue;
                }
            };
            let append = Append {
                stream: R::stream(id),
                expected: slot.seq,
                body: Body::Entries(vec![change.entry]),
                head: Head { open: true, run: None },
            };
            slot.pending = Some((change.next, ticket));
            let batch = Batch {
                appends: vec![append],
                ledger: change.ledger,
                audit: vec![change.record],
                ..self.batch(now)
            };
            self.on_the_way.insert(batch.no, R::owner(id));
            out.batches.push(Arc::new(batch));
        }
    }

    pub(super) fn record_committed<R: Record>(
        &mut self,
        now: Timestamp,
        id: &R::Id,
        out: &mut Output,
    ) {
        if let Some(slot) = R::slots(self).get_mut(id)
            && let Some((record, ticket)) = slot.pending.take()
        {
            slot.seq = slot.seq.next();
            slot.current = Some(record.clone());
            out.effects.push(record.clone().shown());
            reply(out, ticket, Ok(record.reply()));
        }
        self.pump_record::<R>(now, id, out);
    }

    pub(super) fn record_refused<R: Record>(
        &mut self,
        now: Timestamp,
        id: &R::Id,
        out: &mut Output,
    ) {
        let fault = Fault::new(Code::CoreBusy, "This has moved to another core; try again.");
        self.record_dropped::<R>(now, id, fault, out);
        out.effects.push(Effect::Reload);
    }

    pub(super) fn record_failed<R: Record>(
        &mut self,
        now: Timestamp,
        id: &R::Id,
        error: &StoreError,
        out: &mut Output,
    ) {
        if error.kind == StoreErrorKind::Unavailable
            && let Some(slot) = R::slots(self).get_mut(id)
        {
            // The change may have been made all the same.
            slot.doubtful = true;
            let (stream, epoch) = (R::stream(id), self.epoch);
            out.effects.push(Effect::LookUpRecord { stream, epoch });
        }
        self.record_dropped::<R>(now, id, error.to_fault(), out);
    }

    /// What the store holds of a record is known again.
    pub(super) fn record_looked_up(
        &mut self,
        now: Timestamp,
        stream: &StreamId,
        found: Option<(Found, Seq)>,
        out: &mut Output,
    ) {
        let (found, seq) = found.map_or((None, Seq(0)), |(found, seq)| (Some(found), seq));
        match (stream, found) {
            (StreamId::World(id), Some(Found::World(world))) => {
                self.record_found(now, id, Some((world, seq)), out);
            }
            (StreamId::Provider(id), Some(Found::Provider(agent))) => {
                self.record_found(now, id, Some((*agent, seq)), out);
            }
            (StreamId::Grant(id), Some(Found::Grant(grant))) => {
                self.record_found(now, id, Some((*grant, seq)), out);
            }
            (StreamId::Seat(id), Some(Found::Seat(seat))) => {
                self.record_found(now, id, Some((*seat, seq)), out);
            }
            (StreamId::World(id), _) => self.record_found::<World>(now, id, None, out),
            (StreamId::Provider(id), _) => self.record_found::<Provider>(now, id, None, out),
            (StreamId::Grant(id), _) => self.record_found::<Grant>(now, id, None, out),
            (StreamId::Seat(id), _) => self.record_found::<Seat>(now, id, None, out),
            _ => {}
        }
    }

    fn record_found<R: Record>(
        &mut self,
        now: Timestamp,
        id: &R::Id,
        found: Option<(R, Seq)>,
        out: &mut Output,
    ) {
        let Some(slot) = R::slots(self).get_mut(id) else { return };
        slot.doubtful = false;
        if let Some((record, seq)) = found.filter(|(_, seq)| *seq > slot.seq) {
            slot.seq = seq;
            slot.current = Some(record.clone());
            out.effects.push(record.shown());
        }
        self.pump_record::<R>(now, id, out);
    }

    fn record_dropped<R: Record>(
        &mut self,
        now: Timestamp,
        id: &R::Id,
        fault: Fault,
        out: &mut Output,
    ) {
        if let Some(slot) = R::slots(self).get_mut(id)
            && let Some((_, ticket)) = slot.pending.take()
        {
            reply(out, ticket, Err(fault));
        }
        self.pump_record::<R>(now, id, out);
    }
}

impl Record for World {
    type Id = WorldId;
    type Input = WorldInput;

    fn decide(
        current: Option<&Self>,
        id: &WorldId,
        input: &WorldInput,
        by: &CallerRef,
        now: Timestamp,
    ) -> Result<Option<Change<Self>>, Fault> {
        let Some((entry, op, record)) = World::decide(current, id, input, by)? else {
            return Ok(None);
        };
        let next = World::apply(current.cloned(), id, now, &entry)
            .ok_or_else(|| Fault::new(Code::CoreInternal, "The world's record does not fit."))?;
        let mut ledger: Vec<LedgerOp> = op.into_iter().collect();
        // The account of a world that was removed is still there, with what was spent on it.
        if let Some(LedgerOp::Open { account, limit, .. }) = ledger.first().cloned() {
            ledger.extend(current.map(|_| LedgerOp::SetLimit { account, limit }));
        }
        Ok(Some(Change { next, entry: Entry::World(entry), ledger, record }))
    }

    fn stream(id: &WorldId) -> StreamId {
        StreamId::World(id.clone())
    }

    fn owner(id: &WorldId) -> Owner {
        Owner::World(id.clone())
    }

    fn slots(shard: &mut Shard) -> &mut HashMap<WorldId, RecordSlot<Self>> {
        &mut shard.worlds
    }

    fn shown(self) -> Effect {
        Effect::WorldChanged(self)
    }

    fn reply(self) -> Reply {
        Reply::World(self)
    }
}

impl Record for Provider {
    type Id = ProviderId;
    type Input = ProviderInput;

    fn decide(
        current: Option<&Self>,
        id: &ProviderId,
        input: &ProviderInput,
        by: &CallerRef,
        now: Timestamp,
    ) -> Result<Option<Change<Self>>, Fault> {
        let Some((entry, record)) = Provider::decide(current, id, input, by)? else {
            return Ok(None);
        };
        let next = Provider::apply(current.cloned(), id, now, &entry)
            .ok_or_else(|| Fault::new(Code::CoreInternal, "The agent's record does not fit."))?;
        Ok(Some(Change {
            next,
            entry: Entry::Provider(Box::new(entry)),
            ledger: Vec::new(),
            record,
        }))
    }

    fn stream(id: &ProviderId) -> StreamId {
        StreamId::Provider(id.clone())
    }

    fn owner(id: &ProviderId) -> Owner {
        Owner::Provider(id.clone())
    }

    fn slots(shard: &mut Shard) -> &mut HashMap<ProviderId, RecordSlot<Self>> {
        &mut shard.agents
    }

    fn shown(self) -> Effect {
        Effect::ProviderChanged(Box::new(self))
    }

    fn reply(self) -> Reply {
        Reply::Provider(Box::new(self))
    }
}

impl Record for Grant {
    type Id = GrantId;
    type Input = GrantInput;

    fn decide(
        current: Option<&Self>,
        id: &GrantId,
        input: &GrantInput,
        by: &CallerRef,
        now: Timestamp,
    ) -> Result<Option<Change<Self>>, Fault> {
        let Some((entry, ledger, record)) = Grant::decide(current, id, input, by)? else {
            return Ok(None);
        };
        let next = Grant::apply(current.cloned(), id, now, &entry)
            .ok_or_else(|| Fault::new(Code::CoreInternal, "The grant's record does not fit."))?;
        Ok(Some(Change { next, entry: Entry::Grant(entry), ledger, record }))
    }

    fn stream(id: &GrantId) -> StreamId {
        StreamId::Grant(id.clone())
    }

    fn owner(id: &GrantId) -> Owner {
        Owner::Grant(id.clone())
    }

    fn slots(shard: &mut Shard) -> &mut HashMap<GrantId, RecordSlot<Self>> {
        &mut shard.grants
    }

    fn shown(self) -> Effect {
        Effect::GrantChanged(Box::new(self))
    }

    fn reply(self) -> Reply {
        Reply::Grant(Box::new(self))
    }
}

impl Record for Seat {
    type Id = SeatId;
    type Input = SeatInput;

    fn decide(
        current: Option<&Self>,
        id: &SeatId,
        input: &SeatInput,
        by: &CallerRef,
        now: Timestamp,
    ) -> Result<Option<Change<Self>>, Fault> {
        let Some((entry, record)) = Seat::decide(current, id, input, by)? else {
            return Ok(None);
        };
        let next = Seat::apply(current.cloned(), id, now, &entry)
            .ok_or_else(|| Fault::new(Code::CoreInternal, "The seat's record does not fit."))?;
        Ok(Some(Change { next, entry: Entry::Seat(entry), ledger: Vec::new(), record }))
    }

    fn stream(id: &SeatId) -> StreamId {
        StreamId::Seat(id.clone())
    }

    fn owner(id: &SeatId) -> Owner {
        Owner::Seat(id.clone())
    }

    fn slots(shard: &mut Shard) -> &mut HashMap<SeatId, RecordSlot<Self>> {
        &mut shard.seats
    }

    fn shown(self) -> Effect {
        Effect::SeatChanged(Box::new(self))
    }

    fn reply(self) -> Reply {
        Reply::Seat(Box::new(self))
    }
}
