//! Taking leases, loading shards, and giving them up.

use std::collections::{BTreeMap, BTreeSet};

use wharf_domain::{Entry, Run};
use wharf_engine::shard::{AnyRecord, Shard, StoredShard};
use wharf_ports::{History, Lease};
use wharf_vocab::limits::LEASE_MS;
use wharf_vocab::{ShardId, StreamKind};

use super::super::Sim;
use super::super::bus::Message;
use super::super::event::Event;
use super::super::exercised::Thing;
use super::super::faults::CrashPoint;
use super::busy;

/// How long a core waits before it tries again to load.
const LOAD_AGAIN_MS: u64 = 250;

impl Sim {
    /// Whether the core steps the shard under the newest lease.
    pub(in super::super) fn owns(&self, node: usize, shard: ShardId) -> bool {
        let epoch = self.nodes[node].memory.shards.get(&shard).map(Shard::epoch);
        epoch.is_some() && epoch == self.check.epoch_of(shard)
    }

    /// Loads shards anew whose memory turned out to be wrong; whoever waits for them must ask
    /// again.
    pub(super) fn reload(&mut self, node: usize) {
        let memory = &mut self.nodes[node].memory;
        let shards = std::mem::take(&mut memory.reload);
        for id in &shards {
            if let Some(shard) = memory.shards.remove(id) {
                memory.left.insert(*id, shard.unload());
            }
        }
        memory.turns.forget(&shards.iter().copied().collect::<Vec<_>>());
        memory.batches.retain(|batch| !shards.contains(&batch.shard));
        let mut unanswered = Vec::new();
        memory.answers.retain(|_, (shard, origin)| {
            let gone = shards.contains(shard);
            if gone {
                unanswered.push(*origin);
            }
            !gone
        });
        for origin in unanswered {
            self.answer(node, origin, Err(busy("The core had to start over; try again.")));
        }
        self.seen.note(Thing::Reload);
        self.trace(|| format!("node {node} reloads {shards:?}"));
        let shards: Vec<_> = shards.into_iter().collect();
        self.load_now(node, &shards);
    }

    pub(in super::super) fn load(&mut self, node: usize, shards: &[ShardId]) {
        self.load_now(node, shards);
        if self.nodes[node].up {
            self.work(node);
        }
    }

    fn load_now(&mut self, node: usize, shards: &[ShardId]) {
        // Another attempt to load may have come first.
        let held = &self.nodes[node].memory.shards;
        let shards: Vec<_> = shards.iter().copied().filter(|id| !held.contains_key(id)).collect();
        let shards = shards.as_slice();
        self.nodes[node].memory.loading.extend(shards.iter().copied());
        let cut = self.is_cut(node);
        if !self.is_safe(node) || !self.store.readable(&mut self.chance, cut) {
            return self.load_later(node, shards);
        }
        let (id, now) = (self.nodes[node].id.clone(), self.agenda.now());
        let leases = self.store.state.acquire(&id, shards, LEASE_MS, now);
        for lease in &leases {
            self.check.leased(lease);
        }
        if !leases.is_empty() && self.dies_at(node, CrashPoint::DuringLoad) {
            return;
        }
        if !self.store.readable(&mut self.chance, cut) {
            return self.load_later(node, shards);
        }
        let memory = &mut self.nodes[node].memory;
        memory.loading.retain(|shard| !shards.contains(shard));
        self.take_over(node, &leases);
        // What was left in shards that are somebody else's now is theirs to find out.
        self.nodes[node].memory.left.retain(|shard, _| !shards.contains(shard));
    }

    fn load_later(&mut self, node: usize, shards: &[ShardId]) {
        let life = self.nodes[node].life;
        let shards = shards.to_vec();
        self.agenda.after(LOAD_AGAIN_MS, Event::Load { node, life, shards });
    }

    /// Builds the shards of these leases and does what is outstanding in them.
    pub(super) fn take_over(&mut self, node: usize, leases: &[Lease]) {
        let held: Vec<_> = leases.iter().map(|lease| lease.shard).collect();
        let mut restored = self.read(&held);
        let now = self.clock_of(node);
        let mut outs = Vec::new();
        for lease in leases {
            let seed = u64::from(lease.shard.0) ^ (lease.epoch.0 << 32);
            let providers = self.nodes[node].memory.providers.clone();
            let mut shard = Shard::new(*lease, seed, providers);
            shard.restore(restored.remove(&lease.shard).unwrap_or_default());
            let left = self.nodes[node].memory.left.remove(&lease.shard).unwrap_or_default();
            outs.push((lease.shard, shard.take_left(now, left)));
            outs.push((lease.shard, shard.outstanding(now)));
            self.trace(|| format!("node {node} holds shard {} epoch {}", lease.shard, lease.epoch));
            self.nodes[node].memory.shards.insert(lease.shard, shard);
            let id = self.nodes[node].id.clone();
            let memory = &mut self.nodes[node].memory;
            memory.owners.hear(lease.shard, &id, lease.epoch);
            // What an owner before asked for comes too late: what is over is not known any more.
            memory.book.hear(lease.shard, lease.epoch);
            if self.owners.insert(lease.shard, node).is_some_and(|before| before != node) {
                self.seen.note(Thing::Takeover);
            }
        }
        if !leases.is_empty() && self.dies_at(node, CrashPoint::AfterLoad) {
            return;
        }
        let held: Vec<_> = leases.iter().map(|lease| (lease.shard, lease.epoch)).collect();
        for to in (0..self.nodes.len()).filter(|to| *to != node && !held.is_empty()) {
            self.say(node, to, Message::Holds(held.clone()));
        }
        for (shard, out) in outs {
            self.follow(node, shard, out);
        }
    }

    fn read(&self, shards: &[ShardId]) -> BTreeMap<ShardId, StoredShard> {
        let state = &self.store.state;
        let mut restored: BTreeMap<ShardId, StoredShard> = BTreeMap::new();
        for (stream, stored) in state.load_open(StreamKind::World, shards) {
            if let Some(world) = AnyRecord::replay(&stream, &stored.entries) {
                restored.entry(stream.shard()).or_default().records.push((world, stored.seq));
            }
        }
        for (stream, stored) in state.load_open(StreamKind::Run, shards) {
            if let Some(run) = read_run(&stored) {
                restored.entry(stream.shard()).or_default().runs.push((run, stored.seq));
            }
        }
        for (parent, child) in state.open_children(shards) {
            restored.entry(parent.shard()).or_default().children.push((parent, child));
        }
        for (shard, hold) in state.holds(shards) {
            restored.entry(shard).or_default().holds.push(hold);
        }
        restored
    }

    /// Shards that nobody steps under the newest lease.
    pub(in super::super) fn unowned(&self) -> BTreeSet<ShardId> {
        let mut unowned: BTreeSet<_> = self.shards.iter().copied().collect();
        for node in (0..self.nodes.len()).filter(|node| self.nodes[*node].up) {
            unowned.retain(|shard| !self.owns(node, *shard));
        }
        unowned
    }
}

pub(crate) fn read_run(stored: &History) -> Option<Run> {
    Run::replay(stored.entries.iter().filter_map(|(at, entry)| match entry {
        Entry::Run(entry) => Some((*at, entry)),
        _ => None,
    }))
}
