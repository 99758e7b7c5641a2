//! Taking leases and loading shards, at the start and when a shard must be loaded anew.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use wharf_domain::{Agent, Entry, Grant, Run, Seat, World};
use wharf_ports::{Store, StoreError, StoreErrorKind, Stored};
use wharf_vocab::limits::LEASE_MS;
use wharf_vocab::{AgentId, GrantId, SeatId, ShardId, StreamId, StreamKind, WorldId};

use super::Shell;
use crate::shard::{Input, Restored, Shard};

/// How long to wait before a store is read again that could not be read.
const READ_AGAIN: Duration = Duration::from_millis(250);

impl Shell {
    /// Takes the leases on these shards and loads what is open in them.
    pub(super) async fn load(&mut self, shards: Vec<ShardId>) -> Result<(), StoreError> {
        let store = Arc::clone(&self.parts.store);
        let leases = store.acquire(self.parts.node.clone(), shards, LEASE_MS).await?;
        let held: Vec<_> = leases.iter().map(|lease| lease.shard).collect();
        let mut restored: BTreeMap<ShardId, Restored> = BTreeMap::new();
        for (stream, stored) in store.load_open(StreamKind::World, held.clone()).await? {
            let shard = stream.shard();
            if let (StreamId::World(id), seq) = (stream, stored.seq) {
                let world = read_world(&id, &stored)?;
                self.parts.worlds.set(world.clone());
                restored.entry(shard).or_default().worlds.push((world, seq));
            }
        }
        for (stream, stored) in store.load_open(StreamKind::Agent, held.clone()).await? {
            let shard = stream.shard();
            if let (StreamId::Agent(id), seq) = (stream, stored.seq) {
                let agent = read_agent(&id, &stored)?;
                self.parts.agents.set(agent.clone());
                restored.entry(shard).or_default().agents.push((agent, seq));
            }
        }
        for (stream, stored) in store.load_open(StreamKind::Grant, held.clone()).await? {
            let shard = stream.shard();
            if let (StreamId::Grant(id), seq) = (stream, stored.seq) {
                let grant = read_grant(&id, &stored)?;
                self.parts.grants.set(grant.clone());
                restored.entry(shard).or_default().grants.push((grant, seq));
            }
        }
        for (stream, stored) in store.load_open(StreamKind::Seat, held.clone()).await? {
            let shard = stream.shard();
            if let (StreamId::Seat(id), seq) = (stream, stored.seq) {
                let seat = read_seat(&id, &stored)?;
                self.parts.seats.set(seat.clone());
                restored.entry(shard).or_default().seats.push((seat, seq));
            }
        }
        for (stream, stored) in store.load_open(StreamKind::Run, held.clone()).await? {
            let run = read_run(&stream, &stored)?;
            self.parts.hub.restore(&Arc::new(run.clone()));
            restored.entry(stream.shard()).or_default().runs.push((run, stored.seq));
        }
        for (shard, hold) in store.holds(held.clone()).await? {
            restored.entry(shard).or_default().holds.push(hold);
        }
        let now = self.parts.clock.now();
        for lease in leases {
            let seed =
                self.parts.seed.wrapping_add(u64::from(lease.shard.0)) ^ (lease.epoch.0 << 32);
            let mut shard = Shard::new(lease, seed);
            for (provider, availability) in self.parts.catalog.availabilities() {
                shard.step(now, Input::Provider { provider, availability });
            }
            shard.restore(restored.remove(&lease.shard).unwrap_or_default());
            let out = shard.outstanding(now);
            self.shards[lease.shard.index()] = Some(shard);
            self.batches.extend(out.batches);
            for effect in out.effects {
                self.perform(lease.shard, effect);
            }
            self.reschedule(lease.shard);
        }
        self.remind_of_children(&held);
        Ok(())
    }

    /// Runs in the other shards make themselves known again to their parents in these.
    fn remind_of_children(&mut self, loaded: &[ShardId]) {
        let others: Vec<_> =
            self.shards.iter().flatten().filter(|shard| !loaded.contains(&shard.id())).collect();
        let pairs = loaded.iter().flat_map(|id| others.iter().map(|other| (*id, *other)));
        let news: Vec<_> = pairs
            .flat_map(|(id, other)| other.children_of(id).into_iter().map(move |news| (id, news)))
            .collect();
        for (shard, effect) in news {
            self.perform(shard, effect);
        }
    }

    /// Loads shards anew whose memory turned out to be wrong; whoever waits for them must ask
    /// again.
    pub(super) async fn reload_shards(&mut self) {
        let shards: Vec<_> = std::mem::take(&mut self.reload).into_iter().collect();
        tracing::warn!(shards = shards.len(), "shards are loaded anew from the store");
        for shard in &shards {
            self.shards[shard.index()] = None;
        }
        self.batches.retain(|batch| !shards.contains(&batch.shard));
        self.answers.retain(|_, (shard, _)| !shards.contains(shard));
        self.parts.hub.forget(&shards);
        match self.load(shards.clone()).await {
            Ok(()) => self.parts.hub.reloaded(&shards),
            Err(error) => {
                tracing::error!(%error, "shards could not be loaded; trying again");
                tokio::time::sleep(READ_AGAIN).await;
                self.reload.extend(shards);
            }
        }
    }
}

/// Reads a stream; a store that cannot be read now is asked again until it can.
pub(super) async fn read_patiently(store: &dyn Store, stream: &StreamId) -> Option<Stored> {
    loop {
        match store.load(stream.clone()).await {
            Ok(stored) => return stored,
            Err(error) => {
                tracing::warn!(%error, "a stream could not be read; trying again");
                tokio::time::sleep(READ_AGAIN).await;
            }
        }
    }
}

pub(crate) fn read_run(stream: &StreamId, stored: &Stored) -> Result<Run, StoreError> {
    let entries = stored.entries.iter().filter_map(|(at, entry)| match entry {
        Entry::Run(entry) => Some((*at, entry)),
        _ => None,
    });
    Run::replay(entries).ok_or_else(|| corrupt(stream))
}

fn read_world(id: &WorldId, stored: &Stored) -> Result<World, StoreError> {
    let mut world = None;
    for (at, entry) in &stored.entries {
        if let Entry::World(entry) = entry {
            world = World::apply(world, id, *at, entry);
        }
    }
    world.ok_or_else(|| corrupt(&StreamId::World(id.clone())))
}

fn read_agent(id: &AgentId, stored: &Stored) -> Result<Agent, StoreError> {
    let mut agent = None;
    for (at, entry) in &stored.entries {
        if let Entry::Agent(entry) = entry {
            agent = Agent::apply(agent, id, *at, entry);
        }
    }
    agent.ok_or_else(|| corrupt(&StreamId::Agent(id.clone())))
}

fn read_grant(id: &GrantId, stored: &Stored) -> Result<Grant, StoreError> {
    let mut grant = None;
    for (at, entry) in &stored.entries {
        if let Entry::Grant(entry) = entry {
            grant = Grant::apply(grant, id, *at, entry);
        }
    }
    grant.ok_or_else(|| corrupt(&StreamId::Grant(id.clone())))
}

fn read_seat(id: &SeatId, stored: &Stored) -> Result<Seat, StoreError> {
    let mut seat = None;
    for (at, entry) in &stored.entries {
        if let Entry::Seat(entry) = entry {
            seat = Seat::apply(seat, id, *at, entry);
        }
    }
    seat.ok_or_else(|| corrupt(&StreamId::Seat(id.clone())))
}

fn corrupt(stream: &StreamId) -> StoreError {
    let message = format!("the stream {} {} cannot be read", stream.kind().as_str(), stream.key());
    StoreError { kind: StoreErrorKind::Corrupt, message }
}
