//! Taking leases, loading shards, and giving them up.

use std::collections::{BTreeMap, BTreeSet};

use wharf_domain::{Entry, Run};
use wharf_engine::shard::{AnyRecord, Shard, StoredShard};
use wharf_ports::{History, Lease};
use wharf_vocab::limits::LEASE_MS;
use wharf_vocab::{AttemptId, Code, Fault, RunKey, ShardId, StreamKind};

use super::super::Sim;
use super::super::event::{Event, Parcel};
use super::super::exercised::Thing;
use super::super::faults::CrashPoint;

/// How long a core waits before it tries again to load.
const LOAD_AGAIN_MS: u64 = 250;

impl Sim {
    /// Whether the core steps the shard under the newest lease.
    pub(in super::super) fn owns(&self, node: usize, shard: ShardId) -> bool {
        let epoch = self.nodes[node].memory.shards.get(&shard).map(Shard::epoch);
        epoch.is_some() && epoch == self.check.epoch_of(shard)
    }

    /// Prolongs the core's leases and takes what is free.
    pub(in super::super) fn keep_leases(&mut self, node: usize) {
        let cut = self.is_cut(node);
        if self.store.readable(&mut self.chance, cut) {
            let now = self.agenda.now();
            let id = self.nodes[node].id.clone();
            self.store.state.renew(&id, LEASE_MS, now);
        }
        let life = self.nodes[node].life;
        self.agenda.after(LEASE_MS / 3, Event::Leases { node, life });
        if self.healing || self.chance.percent(60) {
            let memory = &self.nodes[node].memory;
            let free = |shard: &ShardId| {
                !memory.shards.contains_key(shard) && !memory.loading.contains(shard)
            };
            let wanted: Vec<_> = self.shards.iter().copied().filter(free).collect();
            if !wanted.is_empty() {
                self.load(node, &wanted);
            }
        }
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
        memory.answers.retain(|_, (shard, call)| {
            let gone = shards.contains(shard);
            if gone {
                unanswered.push(*call);
            }
            !gone
        });
        for call in unanswered {
            let fault = Fault::new(Code::CoreBusy, "The core had to start over; try again.");
            self.answered(call, &Err(fault));
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
        if !self.store.readable(&mut self.chance, cut) {
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
    fn take_over(&mut self, node: usize, leases: &[Lease]) {
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
            let living = |_: &RunKey, attempt: &AttemptId| {
                self.providers.iter().any(|provider| provider.has(node, attempt))
            };
            outs.push((lease.shard, shard.outstanding(now, living)));
            self.trace(|| format!("node {node} holds shard {} epoch {}", lease.shard, lease.epoch));
            self.nodes[node].memory.shards.insert(lease.shard, shard);
            if self.owners.insert(lease.shard, node).is_some_and(|before| before != node) {
                self.seen.note(Thing::Takeover);
            }
        }
        if !leases.is_empty() && self.dies_at(node, CrashPoint::AfterLoad) {
            return;
        }
        for (shard, out) in outs {
            self.nodes[node].memory.batches.extend(out.batches);
            for effect in out.effects {
                self.perform(node, shard, effect);
            }
        }
        for shard in held {
            for other in 0..self.nodes.len() {
                if other == node {
                    self.announce(node, shard);
                } else {
                    self.send_to(other, Parcel::Loaded { shard });
                }
            }
        }
    }

    /// Children in this core whose parents live in a shard that was loaded make themselves known.
    pub(super) fn announce(&mut self, node: usize, loaded: ShardId) {
        let shards = self.nodes[node].memory.shards.values();
        let others = shards.filter(|shard| shard.id() != loaded);
        let news: Vec<_> = others.flat_map(|shard| shard.children_of(loaded)).collect();
        for effect in news {
            self.perform(node, loaded, effect);
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
        for (shard, hold) in state.holds(shards) {
            restored.entry(shard).or_default().holds.push(hold);
        }
        restored
    }

    /// Shards that nobody steps.
    pub(in super::super) fn unowned(&self) -> BTreeSet<ShardId> {
        let mut unowned: BTreeSet<_> = self.shards.iter().copied().collect();
        for node in self.nodes.iter().filter(|node| node.up) {
            unowned.retain(|shard| !node.memory.shards.contains_key(shard));
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
