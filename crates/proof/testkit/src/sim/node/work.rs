//! Taking what arrives, stepping shards, and handing batches to the store.

use std::sync::Arc;

use wharf_engine::shard::{Effect, Input};
use wharf_ports::{Batch, CommitError, StoreErrorKind};
use wharf_vocab::ShardId;

use super::super::Sim;
use super::super::event::{Event, Parcel, Settled};
use super::super::exercised::Thing;
use super::super::faults::CrashPoint;
use super::super::store::{Fate, failure};
use super::{CallAt, busy};

impl Sim {
    pub(in super::super) fn deliver(&mut self, node: usize, parcel: Parcel) {
        match parcel {
            Parcel::Input { shard, input, call } => {
                self.edge_sees(node, &input);
                self.note_end(node, &input);
                if let Some(call) = call
                    && !self.is_safe(node)
                {
                    self.seen.note(Thing::NotSafe);
                    return self.answered(call, &Err(busy("The core has not heard for long.")));
                }
                let life = self.nodes[node].life;
                let origin = call.map(|call| CallAt { node, life, call });
                self.route(node, shard, *input, origin, 0);
            }
            Parcel::Parked { shard, input, origin, tries } => {
                self.unpark(node, shard, *input, origin, tries);
            }
            Parcel::Provider { provider, version, availability } => {
                self.own_news(node, provider, version, availability);
            }
        }
        self.work(node);
    }

    pub(in super::super) fn wake(&mut self, node: usize) {
        let now = self.clock_of(node);
        let safe = self.is_safe(node);
        let memory = &mut self.nodes[node].memory;
        memory.wake_at = None;
        if !safe {
            // It looks again once it may act.
            return;
        }
        let due = memory
            .shards
            .iter()
            .filter(|(_, shard)| shard.next_deadline().is_some_and(|at| at <= now));
        let due: Vec<_> = due.map(|(id, _)| (*id, Input::Tick)).collect();
        memory.queue.extend(due);
        self.work(node);
    }

    pub(in super::super) fn settled(&mut self, node: usize, group: Vec<Settled>) {
        let memory = &mut self.nodes[node].memory;
        for Settled { shard, epoch, no, result } in group {
            // A batch of an earlier life of the shard says nothing about this one.
            if memory.shards.get(&shard).is_none_or(|found| found.epoch() != epoch) {
                continue;
            }
            let input = match result {
                Ok(()) => Input::Committed(no),
                Err(CommitError::Refused(refusal)) => Input::Refused(no, refusal),
                Err(CommitError::Failed(error)) => Input::Failed(no, error),
            };
            memory.queue.push_back((shard, input));
        }
        self.work(node);
    }

    /// Steps until nothing is left to step, then hands over what is to be committed.
    pub(in super::super) fn work(&mut self, node: usize) {
        if !self.nodes[node].up {
            return;
        }
        if !self.is_safe(node) {
            // What waits is done when the core knows again that nobody else does it.
            if !self.nodes[node].memory.queue.is_empty() {
                self.seen.note(Thing::HeldBack);
            }
            return;
        }
        loop {
            while let Some((shard, input)) = self.nodes[node].memory.queue.pop_front() {
                if !self.step(node, shard, input) {
                    return;
                }
            }
            self.call_turns(node);
            if !self.nodes[node].memory.queue.is_empty() {
                continue;
            }
            if self.nodes[node].memory.reload.is_empty() {
                break;
            }
            self.reload(node);
            if !self.nodes[node].up {
                return;
            }
        }
        self.hand_over(node);
        if self.nodes[node].up {
            self.tell_news(node);
            self.schedule_wake(node);
        }
    }

    /// One step of a shard and what follows; `false` if the core died over it.
    fn step(&mut self, node: usize, id: ShardId, input: Input) -> bool {
        let now = self.clock_of(node);
        if !self.nodes[node].memory.shards.contains_key(&id) {
            self.gone(node, id, input);
            return true;
        }
        self.trace(|| format!("node {node} shard {id} <- {}", super::super::check::brief(&input)));
        self.note_progress(node, id, &input);
        let committed = matches!(input, Input::Committed(_));
        let memory = &mut self.nodes[node].memory;
        let Some(shard) = memory.shards.get_mut(&id) else { return true };
        let out = shard.step(now, input);
        memory.batches.extend(out.batches);
        if !committed {
            return self.perform_all(node, id, out.effects, None);
        }
        if !out.effects.is_empty() && self.dies_at(node, CrashPoint::BeforeEffects) {
            return false;
        }
        let amid = self.nodes[node].doom == Some(CrashPoint::AmidEffects);
        let cut = (amid && out.effects.len() > 1).then(|| {
            let len = out.effects.len() - 1;
            1 + self.chance.index(len)
        });
        self.perform_all(node, id, out.effects, cut)
    }

    /// Progress of an attempt under way that the core is free to take.
    fn note_progress(&mut self, node: usize, id: ShardId, input: &Input) {
        let Input::Progress { key, attempt_id, pieces } = input else { return };
        let Some(shard) = self.nodes[node].memory.shards.get(&id) else { return };
        let Some(view) = shard.run(key).filter(|view| !view.busy) else { return };
        let open = view.run.filter(|run| run.publishing.is_none());
        let active = open.and_then(|run| run.active.as_ref());
        if active.is_some_and(|attempt| attempt.id == *attempt_id) {
            self.check.progress_taken(shard.epoch(), attempt_id, pieces);
        }
    }

    /// Performs effects in order; the core dies before the one at `cut`.
    fn perform_all(
        &mut self,
        node: usize,
        shard: ShardId,
        effects: Vec<Effect>,
        cut: Option<usize>,
    ) -> bool {
        for (at, effect) in effects.into_iter().enumerate() {
            if cut == Some(at) && self.dies_at(node, CrashPoint::AmidEffects) {
                return false;
            }
            self.perform(node, shard, effect);
        }
        true
    }

    fn hand_over(&mut self, node: usize) {
        if self.nodes[node].memory.batches.is_empty() {
            return;
        }
        if self.dies_at(node, CrashPoint::BeforeCommit) {
            return;
        }
        let group = std::mem::take(&mut self.nodes[node].memory.batches);
        if self.dies_at(node, CrashPoint::InCommit) {
            return;
        }
        let latency = self.store.latency(&mut self.chance);
        let arrives = self.agenda.now().plus_ms(latency);
        let memory = &mut self.nodes[node].memory;
        // The store takes what one core hands over in order.
        memory.store_free_at = memory.store_free_at.max(arrives);
        let (at, life) = (memory.store_free_at, self.nodes[node].life);
        self.agenda.at(at, Event::AtStore { node, life, group });
    }

    /// Batches arrive at the store, whether or not whoever sent them still lives.
    pub(in super::super) fn at_store(&mut self, node: usize, life: u32, group: Vec<Arc<Batch>>) {
        let cut = self.is_cut(node);
        let fate = self.store.fate(&mut self.chance, cut);
        let mut settled = Vec::with_capacity(group.len());
        let mut committed = false;
        for batch in group {
            let result = self.commit(&batch, fate);
            committed |= result.is_ok();
            self.trace(|| {
                format!("store <- {}: {result:?}", super::super::check::brief_batch(&batch))
            });
            settled.push(Settled { shard: batch.shard, epoch: batch.epoch, no: batch.no, result });
        }
        let alive = self.nodes[node].up && self.nodes[node].life == life;
        if alive && committed && self.dies_at(node, CrashPoint::BeforeCommitted) {
            return;
        }
        let latency = self.store.latency(&mut self.chance);
        self.agenda.after(latency, Event::Settled { node, life, group: settled });
    }

    fn commit(&mut self, batch: &Arc<Batch>, fate: Fate) -> Result<(), CommitError> {
        if let Fate::Failed(kind) = fate {
            let full = kind == StoreErrorKind::Full;
            self.seen.note(if full { Thing::FullStore } else { Thing::StoreDown });
            return Err(CommitError::Failed(failure(kind)));
        }
        let result = self.store.state.commit_one(batch);
        match &result {
            Ok(()) => self.check.committed(batch, &self.store.state, &mut self.seen),
            Err(CommitError::Refused(refusal)) => {
                Thing::refused(refusal).into_iter().for_each(|thing| self.seen.note(thing));
            }
            Err(CommitError::Failed(_)) => {}
        }
        if fate == Fate::Hidden {
            if result.is_ok() {
                self.seen.note(Thing::Ambiguous);
                self.check.unsure(batch);
            }
            return Err(CommitError::Failed(failure(StoreErrorKind::Unavailable)));
        }
        result
    }
}
