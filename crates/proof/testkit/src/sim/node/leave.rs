//! Handing shards over to other cores, and leaving for good.

use wharf_engine::shard::{Input, Shard, UnloadedShard};
use wharf_ports::Lease;
use wharf_vocab::limits::LEASE_MS;
use wharf_vocab::{CommitNo, Epoch, ShardId, Timestamp};

use super::super::Sim;
use super::super::bus::Message;
use super::super::event::Event;
use super::super::exercised::Thing;
use super::super::faults::CrashPoint;
use super::route::{Origin, busy};

/// How long a shard that is to be handed over waits for what is on its way to the store.
const LEAVE_MS: u64 = 6_000;
/// How often a core that leaves looks whether it can.
const LOOK_MS: u64 = 500;
/// How long a core that leaves waits for the attempts that it has.
const DRAIN_MS: u64 = 60_000;

/// A shard that is about to be handed over.
#[derive(Debug)]
pub(in super::super) struct Leaving {
    to: usize,
    since: Timestamp,
    pub(in super::super) waiting: Vec<(Input, Origin)>,
}

impl Sim {
    /// Lets a core hand a shard over to another one.
    pub(in super::super) fn move_shard(&mut self, node: usize, shard: ShardId, to: usize) {
        let since = self.agenda.now();
        let memory = &mut self.nodes[node].memory;
        if !memory.shards.contains_key(&shard) || memory.leaving.contains_key(&shard) {
            return;
        }
        memory.leaving.insert(shard, Leaving { to, since, waiting: Vec::new() });
        self.trace(|| format!("node {node} is to hand shard {shard} over to node {to}"));
        self.look_at_leaving(node);
    }

    /// Hands shards over of which nothing is on its way any more.
    pub(in super::super) fn look_at_leaving(&mut self, node: usize) {
        let (now, life) = (self.agenda.now(), self.nodes[node].life);
        let memory = &self.nodes[node].memory;
        let queued = |shard: &ShardId| memory.queue.iter().any(|(id, _)| id == shard);
        let (mut ready, mut stuck) = (Vec::new(), Vec::new());
        for (id, leaving) in &memory.leaving {
            let quiet = memory.shards.get(id).is_none_or(|it| it.batches_on_the_way() == 0);
            let handed = !memory.batches.iter().any(|batch| batch.shard == *id);
            if quiet && handed && !queued(id) && !memory.reload.contains(id) {
                ready.push((*id, leaving.to));
            } else if now.ms_since(leaving.since) > LEAVE_MS {
                stuck.push(*id);
            }
        }
        for id in stuck {
            self.stay(node, id);
        }
        for (id, to) in ready {
            let cut = self.is_cut(node);
            let up = self.nodes[to].up && !self.nodes[to].draining;
            if self.is_safe(node) && up && self.store.readable(&mut self.chance, cut) {
                self.hand_shard_over(node, id, to);
            }
        }
        if !self.nodes[node].memory.leaving.is_empty() {
            self.agenda.after(LOOK_MS, Event::Leave { node, life });
        }
    }

    /// A shard stays where it is; what came meanwhile is taken.
    fn stay(&mut self, node: usize, shard: ShardId) {
        let Some(left) = self.nodes[node].memory.leaving.remove(&shard) else { return };
        for (input, origin) in left.waiting {
            self.route(node, shard, input, origin, 0);
        }
        self.work(node);
    }

    fn hand_shard_over(&mut self, node: usize, shard: ShardId, to: usize) {
        let memory = &mut self.nodes[node].memory;
        let Some(left) = memory.leaving.remove(&shard) else { return };
        let Some(held) = memory.shards.remove(&shard) else {
            // It was lost meanwhile.
            for (input, origin) in left.waiting {
                self.route(node, shard, input, origin, 0);
            }
            return;
        };
        let (id, other, now) =
            (self.nodes[node].id.clone(), self.nodes[to].id.clone(), self.agenda.now());
        let state = &mut self.store.state;
        let lease = state.hand_over(shard, (&id, held.epoch()), &other, LEASE_MS, now);
        let memory = &mut self.nodes[node].memory;
        memory.turns.forget(&[shard]);
        let unloaded = held.unload();
        let mut unanswered = Vec::new();
        memory.answers.retain(|_, (of, origin)| {
            let gone = *of == shard;
            if gone {
                unanswered.push(*origin);
            }
            !gone
        });
        for origin in unanswered {
            self.answer(node, origin, Err(busy("The run has moved to another core.")));
        }
        match lease {
            Some(lease) => {
                self.check.leased(&lease);
                self.seen.note(Thing::HandedOver);
                self.trace(|| format!("node {node} hands shard {shard} over to node {to}"));
                self.nodes[node].memory.owners.hear(shard, &other, lease.epoch);
                let (epoch, waiting) = (lease.epoch, left.waiting);
                for (_, origin) in &waiting {
                    self.wait_for_far(node, *origin);
                }
                self.say(node, to, Message::Moved { shard, epoch, left: unloaded, waiting });
            }
            None => {
                for (input, origin) in left.waiting {
                    self.route(node, shard, input, origin, 0);
                }
            }
        }
    }

    /// A shard was handed over to this core.
    pub(in super::super) fn moved_here(
        &mut self,
        node: usize,
        (shard, epoch): (ShardId, Epoch),
        left: UnloadedShard,
        waiting: Vec<(Input, Origin)>,
    ) {
        let now = self.clock_of(node);
        let held = self.nodes[node].memory.shards.get_mut(&shard);
        if let Some(held) = held {
            // It was found at the store before this came.
            let out = held.take_left(now, left);
            self.follow(node, shard, out);
        } else if self.check_epoch_at_store(node, shard) == Some(epoch) {
            self.nodes[node].memory.left.insert(shard, left);
            let last = self.check.last_of(shard).unwrap_or(CommitNo(0));
            self.take_over(node, &[Lease { shard, epoch, last }]);
        }
        if !self.nodes[node].up {
            return;
        }
        for (input, origin) in waiting {
            self.route(node, shard, input, origin, 0);
        }
    }

    /// In which epoch this core holds a shard, as the store has it.
    fn check_epoch_at_store(&mut self, node: usize, shard: ShardId) -> Option<Epoch> {
        let view = self.store.state.lease_view(false, self.agenda.now());
        let id = &self.nodes[node].id;
        let held = view.owners.into_iter().find(|owner| owner.shard == shard);
        held.filter(|owner| owner.node == *id).map(|owner| owner.epoch)
    }

    /// A core is to leave: it gives its shards away, lets its attempts end, and stops.
    pub(in super::super) fn drain(&mut self, node: usize) {
        let others = (0..self.nodes.len()).filter(|other| *other != node);
        let up = |other: &usize| self.nodes[*other].up && !self.nodes[*other].draining;
        let others: Vec<usize> = others.filter(up).collect();
        if !self.nodes[node].up || self.nodes[node].draining || others.is_empty() {
            return;
        }
        self.seen.note(Thing::Drain);
        self.trace(|| format!("node {node} is drained"));
        self.nodes[node].draining = true;
        self.nodes[node].memory.drained_from = Some(self.agenda.now());
        let held: Vec<ShardId> = self.nodes[node].memory.shards.keys().copied().collect();
        for shard in held {
            let to = others[self.chance.index(others.len())];
            self.move_shard(node, shard, to);
        }
        let life = self.nodes[node].life;
        self.agenda.after(LOOK_MS, Event::Drain { node, life });
    }

    /// Whether a core that leaves can go.
    pub(in super::super) fn look_at_drain(&mut self, node: usize) {
        let (now, life) = (self.agenda.now(), self.nodes[node].life);
        let memory = &self.nodes[node].memory;
        let since = memory.drained_from.map_or(0, |from| now.ms_since(from));
        let idle = memory.book.attempts().next().is_none()
            && memory.shards.is_empty()
            && memory.links.values().all(|link| link.is_quiet());
        if idle || since > DRAIN_MS {
            if idle {
                self.seen.note(Thing::Drained);
            }
            return self.crash(node, CrashPoint::Idle);
        }
        let held: Vec<ShardId> = memory.shards.keys().copied().collect();
        let up =
            |other: &usize| *other != node && self.nodes[*other].up && !self.nodes[*other].draining;
        let others: Vec<usize> = (0..self.nodes.len()).filter(up).collect();
        if !others.is_empty() {
            for shard in held {
                let to = others[self.chance.index(others.len())];
                self.move_shard(node, shard, to);
            }
        }
        self.agenda.after(LOOK_MS, Event::Drain { node, life });
    }

    /// Does what a step of a shard asks for.
    pub(super) fn follow(&mut self, node: usize, id: ShardId, out: wharf_engine::shard::Output) {
        self.nodes[node].memory.batches.extend(out.batches);
        for effect in out.effects {
            self.perform(node, id, effect);
        }
    }

    /// How many shards a core holds.
    pub(in super::super) fn held_by(&self, node: usize) -> Vec<ShardId> {
        self.nodes[node].memory.shards.values().map(Shard::id).collect()
    }
}
