//! A simulated core: what the engine's shell does around its shards, one thing after another.
//!
//! A core dies at named points and takes with it everything but what the store and the
//! providers know.

mod effects;
mod load;
mod turns;
mod work;

pub(super) use effects::not_connected;
pub(super) use load::read_run;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use wharf_domain::Availability;
use wharf_engine::shard::{Input, Providers, Shard, Ticket, UnloadedShard};
use wharf_engine::turns::Turns;
use wharf_ports::Batch;
use wharf_vocab::{AttemptId, Epoch, NodeId, ProviderId, RunKey, Seq, ShardId, Timestamp};

use super::Sim;
use super::event::{Event, Parcel};
use super::exercised::Thing;
use super::faults::CrashPoint;

/// A simulated core.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) up: bool,
    /// How often it was started; what was meant for an earlier life does not arrive.
    pub(super) life: u32,
    pub(super) frozen_until: Timestamp,
    pub(super) cut_until: Timestamp,
    /// How far its clock is ahead.
    pub(super) ahead_ms: u64,
    /// Where it will die next.
    pub(super) doom: Option<CrashPoint>,
    pub(super) memory: Memory,
}

/// What a core knows, all of which is gone when it dies.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) shards: BTreeMap<ShardId, Shard>,
    /// Shards that are about to be loaded.
    pub(super) loading: BTreeSet<ShardId>,
    pub(super) queue: VecDeque<(ShardId, Input)>,
    pub(super) batches: Vec<Arc<Batch>>,
    pub(super) reload: BTreeSet<ShardId>,
    /// What shards that are to be loaded anew have left.
    pub(super) left: BTreeMap<ShardId, UnloadedShard>,
    /// Runs that wait for room at their providers.
    pub(super) turns: Turns,
    /// What all shards know of providers.
    pub(super) providers: Providers,
    /// Providers that shards take for full.
    pub(super) full: BTreeSet<ProviderId>,
    /// Whose call waits under a ticket.
    pub(super) answers: BTreeMap<Ticket, (ShardId, u64)>,
    pub(super) last_ticket: u64,
    pub(super) wake_at: Option<Timestamp>,
    /// When the store will have got what was handed over before.
    pub(super) store_free_at: Timestamp,
    /// What providers can do, as far as this core knows, and how new that is.
    pub(super) catalog: BTreeMap<ProviderId, (u64, Availability)>,
    /// Attempts handed to providers in this life.
    pub(super) dispatched: BTreeSet<AttemptId>,
    /// How far each run was shown to watchers, and under which epoch.
    pub(super) published: BTreeMap<RunKey, (Epoch, Seq)>,
}

impl Node {
    pub(super) fn new(number: usize) -> Self {
        Self {
            id: NodeId::new(format!("node-{number}")).expect("a valid id"),
            up: false,
            life: 0,
            frozen_until: Timestamp(0),
            cut_until: Timestamp(0),
            ahead_ms: 0,
            doom: None,
            memory: Memory::default(),
        }
    }
}

impl Sim {
    /// What a core's clock shows.
    pub(super) fn clock_of(&self, node: usize) -> Timestamp {
        self.agenda.now().plus_ms(self.nodes[node].ahead_ms)
    }

    pub(super) fn is_cut(&self, node: usize) -> bool {
        self.nodes[node].cut_until > self.agenda.now()
    }

    /// Whether the core is to die here.
    pub(super) fn dies_at(&mut self, node: usize, point: CrashPoint) -> bool {
        let doomed = self.nodes[node].doom == Some(point);
        if doomed {
            self.crash(node, point);
        }
        doomed
    }

    /// The core dies. Its child processes die with it; whoever waits for it learns nothing.
    pub(super) fn crash(&mut self, node: usize, point: CrashPoint) {
        let dead = &mut self.nodes[node];
        if !dead.up {
            return;
        }
        dead.up = false;
        dead.doom = None;
        dead.frozen_until = Timestamp(0);
        let memory = std::mem::take(&mut dead.memory);
        self.seen.note(point);
        self.trace(|| format!("node {node} crashes: {point:?}"));
        for (_, call) in memory.answers.into_values() {
            self.call_lost(call);
        }
        self.children_die_with(node);
        let away = match self.chance.between(0, 3) {
            0 => self.chance.between(20_000, 90_000),
            _ => self.chance.between(10, 3_000),
        };
        self.agenda.after(away, Event::Start { node });
    }

    pub(super) fn restart(&mut self, node: usize) {
        if !self.nodes[node].up {
            self.seen.note(Thing::Restart);
            let all = self.shards.clone();
            self.start_with(node, all);
        }
    }

    /// Starts a core that asks for these leases first.
    pub(super) fn start_with(&mut self, node: usize, shards: Vec<ShardId>) {
        let started = &mut self.nodes[node];
        started.up = true;
        started.life += 1;
        let life = started.life;
        self.trace(|| format!("node {node} starts, life {life}"));
        self.agenda.after(0, Event::Load { node, life, shards });
        self.agenda.after(1_000, Event::Leases { node, life });
        self.links_reset(node);
    }

    /// Something was meant for a core that is not there any more.
    pub(super) fn undeliverable(&mut self, event: &Event) {
        if let Event::ToNode { parcel: Parcel::Input { call: Some(call), .. }, .. } = event {
            self.call_lost(*call);
        }
    }

    /// Sends something to a core over the network.
    pub(super) fn send_to(&mut self, node: usize, parcel: Parcel) {
        let life = self.nodes[node].life;
        let latency = self.latency();
        self.agenda.after(latency, Event::ToNode { node, life, parcel });
    }

    /// Lets a core be woken when its shards want it.
    pub(super) fn schedule_wake(&mut self, node: usize) {
        let ahead = self.nodes[node].ahead_ms;
        let memory = &mut self.nodes[node].memory;
        let now = self.agenda.now().plus_ms(ahead);
        let turn = memory.turns.next_at().filter(|at| *at > now);
        let wants = memory.shards.values().filter_map(Shard::next_deadline).chain(turn).min();
        let Some(wants) = wants.map(|at| Timestamp(at.0.saturating_sub(ahead))) else { return };
        if memory.wake_at.is_none_or(|known| wants < known) {
            memory.wake_at = Some(wants);
            let life = self.nodes[node].life;
            self.agenda.at(wants, Event::Wake { node, life });
        }
    }
}
