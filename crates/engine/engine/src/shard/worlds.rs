//! Worlds in a shard: one change at a time each.

use std::collections::VecDeque;
use std::sync::Arc;

use wharf_domain::{CallerRef, Entry, World, WorldInput};
use wharf_ports::{Append, Batch, Body, Head, StoreError};
use wharf_vocab::{Code, Fault, Seq, StreamId, Timestamp, WorldId};

use super::runs::reply;
use super::{Effect, Output, Owner, Reply, Shard, Ticket};

/// One world in a shard.
#[derive(Debug, Default)]
pub(super) struct WorldSlot {
    world: Option<World>,
    seq: Seq,
    pending: Option<(World, Option<Ticket>)>,
    waiting: VecDeque<(WorldInput, CallerRef, Option<Ticket>)>,
}

impl WorldSlot {
    pub(super) fn loaded(world: World, seq: Seq) -> Self {
        Self { world: Some(world), seq, ..Self::default() }
    }
}

impl Shard {
    pub(super) fn world(
        &mut self,
        now: Timestamp,
        id: &WorldId,
        request: (WorldInput, CallerRef, Option<Ticket>),
        out: &mut Output,
    ) {
        self.worlds.entry(id.clone()).or_default().waiting.push_back(request);
        self.pump_world(now, id, out);
    }

    fn pump_world(&mut self, now: Timestamp, id: &WorldId, out: &mut Output) {
        while let Some(slot) = self.worlds.get_mut(id)
            && slot.pending.is_none()
            && let Some((input, by, ticket)) = slot.waiting.pop_front()
        {
            let decided = World::decide(slot.world.as_ref(), id, &input, &by);
            let (entry, op, record) = match decided {
                Ok(decision) => decision,
                Err(fault) => {
                    reply(out, ticket, Err(fault));
                    continue;
                }
            };
            let next = World::apply(slot.world.clone(), id, now, &entry);
            let append = Append {
                stream: StreamId::World(id.clone()),
                expected: slot.seq,
                body: Body::Entries(vec![Entry::World(entry)]),
                head: Head { open: true, run: None },
            };
            slot.pending = Some((next, ticket));
            let batch = Batch {
                appends: vec![append],
                ledger: vec![op],
                audit: vec![record],
                ..self.batch(now)
            };
            self.on_the_way.insert(batch.no, Owner::World(id.clone()));
            out.batches.push(Arc::new(batch));
        }
    }

    pub(super) fn world_committed(&mut self, now: Timestamp, id: &WorldId, out: &mut Output) {
        if let Some(slot) = self.worlds.get_mut(id)
            && let Some((world, ticket)) = slot.pending.take()
        {
            slot.seq = slot.seq.next();
            slot.world = Some(world.clone());
            out.effects.push(Effect::WorldChanged(world.clone()));
            reply(out, ticket, Ok(Reply::World(world)));
        }
        self.pump_world(now, id, out);
    }

    pub(super) fn world_refused(&mut self, now: Timestamp, id: &WorldId, out: &mut Output) {
        let fault = Fault::new(Code::CoreBusy, "The world has moved to another core; try again.");
        self.world_dropped(now, id, fault, out);
        out.effects.push(Effect::Reload);
    }

    pub(super) fn world_failed(
        &mut self,
        now: Timestamp,
        id: &WorldId,
        error: &StoreError,
        out: &mut Output,
    ) {
        self.world_dropped(now, id, error.to_fault(), out);
    }

    fn world_dropped(&mut self, now: Timestamp, id: &WorldId, fault: Fault, out: &mut Output) {
        if let Some(slot) = self.worlds.get_mut(id)
            && let Some((_, ticket)) = slot.pending.take()
        {
            reply(out, ticket, Err(fault));
        }
        self.pump_world(now, id, out);
    }
}
