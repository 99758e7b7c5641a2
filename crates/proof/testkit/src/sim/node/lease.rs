//! Keeping leases: a core acts only while it knows that nobody else does, and one whose leases were
//! over begins anew.

use wharf_ports::LeaseView;
use wharf_vocab::limits::{LEASE_MS, LEASE_RETRY_MS};
use wharf_vocab::{Place, ShardId};

use super::super::Sim;
use super::super::event::Event;
use super::super::exercised::Thing;
use super::super::faults::CrashPoint;

/// How long after the end of a core's leases its processes end at the latest.
const CHILDREN_MS: u64 = 2_000;
/// How long after the end of a core's leases others take it that it is gone.
const GONE_MS: u64 = 5_000;

/// What a renewal found.
#[derive(Debug, Clone)]
pub(in super::super) struct Renewed {
    view: LeaseView,
    /// Whether the core's leases had been over before.
    lapsed: bool,
}

impl Sim {
    /// Whether the core may act.
    pub(in super::super) fn is_safe(&self, node: usize) -> bool {
        self.nodes[node].memory.safe_until.holds(|| self.agenda.now().0)
    }

    /// Asks for the core's leases to be prolonged.
    pub(in super::super) fn ask_for_leases(&mut self, node: usize) {
        let (life, asked) = (self.nodes[node].life, self.agenda.now().0);
        let latency = self.store.latency(&mut self.chance);
        self.agenda.after(latency, Event::Renew { node, life, asked });
    }

    /// The store prolongs a core's leases, whether or not the core still lives.
    pub(in super::super) fn renew_at_store(&mut self, node: usize, life: u32, asked: u64) {
        let cut = self.is_cut(node);
        let mut found = None;
        if self.store.readable(&mut self.chance, cut) {
            let (now, id) = (self.agenda.now(), self.nodes[node].id.clone());
            let before = self.store.state.lease_view(false, now);
            let before = before.cores.into_iter().find(|core| core.node == id);
            self.store.state.renew(&id, LEASE_MS, now);
            let lapsed = before.is_some_and(|core| core.until <= now);
            found =
                Some(Box::new(Renewed { view: self.store.state.lease_view(false, now), lapsed }));
            if self.nodes[node].life == life {
                self.nodes[node].leased_until = now.plus_ms(LEASE_MS);
            }
        }
        let latency = self.store.latency(&mut self.chance);
        self.agenda.after(latency, Event::Renewed { node, life, asked, found });
    }

    /// The core learns what became of its renewal.
    pub(in super::super) fn renewed(
        &mut self,
        node: usize,
        asked: u64,
        found: Option<Box<Renewed>>,
    ) {
        let life = self.nodes[node].life;
        let Some(found) = found else {
            self.agenda.after(LEASE_RETRY_MS, Event::Leases { node, life });
            return;
        };
        self.agenda.after(LEASE_MS / 3, Event::Leases { node, life });
        let Renewed { view, lapsed } = *found;
        let first = std::mem::replace(&mut self.nodes[node].memory.renewed, true);
        // Processes are told with each renewal how long they may live.
        let until = wharf_vocab::Timestamp(asked + LEASE_MS + CHILDREN_MS);
        let ended = self.agenda.now() >= self.nodes[node].children_until;
        if first && (lapsed || ended) {
            self.seen.note(Thing::Lapsed);
            self.trace(|| format!("node {node} was away for too long and begins anew"));
            self.crash(node, CrashPoint::Idle);
            return;
        }
        self.nodes[node].children_until = until;
        let memory = &mut self.nodes[node].memory;
        memory.safe_until = memory.safe_until.renewed(asked, &view);
        memory.owners.learn(&view);
        let lost: Vec<ShardId> = memory
            .shards
            .iter()
            .filter(|(id, shard)| memory.owners.is_past(**id, shard.epoch()))
            .map(|(id, _)| *id)
            .collect();
        memory.reload.extend(lost);
        if first && !lapsed {
            self.miss_others(node, &view);
        }
        if first {
            self.take_free(node, &view);
        }
        self.work(node);
    }

    /// Cores that have not prolonged their leases for long are gone.
    fn miss_others(&mut self, node: usize, view: &LeaseView) {
        for core in &view.cores {
            let Some(other) = self.number_of(&core.node).filter(|other| *other != node) else {
                continue;
            };
            if core.until.plus_ms(GONE_MS) <= view.at {
                self.seen.note(Thing::Missed);
                self.gone_for_all(node, other, None);
            }
        }
    }

    /// A core is gone, or its earlier lives are.
    pub(in super::super) fn gone_for_all(
        &mut self,
        node: usize,
        other: usize,
        now: Option<&Place>,
    ) {
        self.place_gone(node, other, now);
        self.answer_for_gone(node, other, now);
    }

    /// Takes shards that nobody holds, now and then.
    fn take_free(&mut self, node: usize, view: &LeaseView) {
        if self.nodes[node].draining || !(self.healing || self.chance.percent(60)) {
            return;
        }
        let memory = &self.nodes[node].memory;
        let id = &self.nodes[node].id;
        let free = |shard: &ShardId| {
            let known = view.owners.iter().find(|owner| owner.shard == *shard);
            let over = known.is_none_or(|it| it.node == *id || it.until <= view.at);
            over && !memory.shards.contains_key(shard)
                && !memory.loading.contains(shard)
                && !memory.leaving.contains_key(shard)
        };
        let wanted: Vec<_> = self.shards.iter().copied().filter(free).collect();
        if !wanted.is_empty() {
            self.load(node, &wanted);
        }
    }
}
