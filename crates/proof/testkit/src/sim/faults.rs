//! Faults: where a core can die, and what else goes wrong.

use std::collections::BTreeSet;

use wharf_vocab::limits::{APPROVAL_DEADLINE_MS, LEASE_MS};

use super::Sim;
use super::bus::Split;
use super::event::Event;
use super::exercised::Thing;
use super::node::Node;
use super::store::Trouble;

/// Where a core can die, between deciding something and having done all that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrashPoint {
    /// It has decided something and handed nothing over.
    BeforeCommit,
    /// It has handed a batch over, and the store never got it.
    InCommit,
    /// The store has committed a batch, and the core never learned of it.
    BeforeCommitted,
    /// The core has learned of a commit and has done nothing that follows from it.
    BeforeEffects,
    /// The core has done a part of what follows from a commit.
    AmidEffects,
    /// The core has taken leases and loaded nothing.
    DuringLoad,
    /// The core has loaded shards and has done nothing of what is outstanding.
    AfterLoad,
    /// The core does nothing at the moment.
    Idle,
}

impl CrashPoint {
    /// Every point.
    pub const ALL: [Self; 8] = [
        Self::BeforeCommit,
        Self::InCommit,
        Self::BeforeCommitted,
        Self::BeforeEffects,
        Self::AmidEffects,
        Self::DuringLoad,
        Self::AfterLoad,
        Self::Idle,
    ];
}

impl Sim {
    /// Lets something go wrong, unless so much is wrong already that nothing would be left to go
    /// wrong.
    pub(super) fn some_fault(&mut self) {
        if self.troubles() > 1 && self.chance.percent(90) {
            return;
        }
        let node = self.chance.index(self.nodes.len());
        match self.chance.between(0, 99) {
            0..=7 => self.split_the_bus(),
            8..=15 => self.move_some_shard(node),
            16..=18 => self.drain(node),
            19..=34 => {
                let point = CrashPoint::ALL[self.chance.index(CrashPoint::ALL.len())];
                self.arm(node, point);
            }
            35..=46 => self.trouble_the_store(),
            47..=54 => {
                let ms = self.chance.between(100, 2 * LEASE_MS);
                self.stall(node, ms);
            }
            55..=62 => {
                let ms = self.chance.between(500, 2 * LEASE_MS);
                self.cut(node, ms);
            }
            63..=67 => self.jump_the_clock(node),
            _ => self.trouble_a_provider(node),
        }
    }

    /// Some cores do not hear the others for a while.
    fn split_the_bus(&mut self) {
        let count = self.nodes.len();
        let side: BTreeSet<usize> = (0..count).filter(|_| self.chance.percent(50)).collect();
        let until = self.agenda.now().plus_ms(self.chance.between(200, 60_000));
        let one_way = self.chance.percent(40);
        let how = if one_way { "loses what is said by" } else { "splits:" };
        self.trace(|| format!("the bus {how} {side:?}"));
        self.bus.split = Some(Split { side, until, one_way });
    }

    /// A core is to hand one of its shards over.
    fn move_some_shard(&mut self, node: usize) {
        let held = self.held_by(node);
        let Some(shard) = self.chance.pick(&held).copied() else { return };
        let to = self.chance.index(self.nodes.len());
        if to != node && self.nodes[to].up && !self.nodes[to].draining {
            self.move_shard(node, shard, to);
        }
    }

    /// How much is wrong at the moment.
    fn troubles(&self) -> usize {
        let now = self.agenda.now();
        let troubled = |node: &&Node| {
            !node.up || node.frozen_until > now || node.cut_until > now || node.doom.is_some()
        };
        let nodes = self.nodes.iter().filter(troubled).count();
        nodes + usize::from(self.store.trouble != Trouble::Nothing)
    }

    /// The core dies when it next comes to this point.
    pub(super) fn arm(&mut self, node: usize, point: CrashPoint) {
        if !self.nodes[node].up {
            return;
        }
        self.trace(|| format!("node {node} will crash: {point:?}"));
        match point {
            CrashPoint::Idle => self.crash(node, point),
            CrashPoint::DuringLoad | CrashPoint::AfterLoad => {
                // The core comes to a load only when it starts: it dies once to get there.
                self.crash(node, CrashPoint::Idle);
                self.nodes[node].doom = Some(point);
            }
            _ => self.nodes[node].doom = Some(point),
        }
    }

    /// The core stands still, leases and all, and knows nothing of it afterwards.
    pub(super) fn stall(&mut self, node: usize, ms: u64) {
        let until = self.agenda.now().plus_ms(ms);
        self.nodes[node].frozen_until = until;
        self.seen.note(Thing::Stall);
        self.trace(|| format!("node {node} stands still for {ms} ms"));
    }

    /// The core lives but does not reach the store.
    pub(super) fn cut(&mut self, node: usize, ms: u64) {
        self.nodes[node].cut_until = self.agenda.now().plus_ms(ms);
        self.seen.note(Thing::Cut);
        self.trace(|| format!("node {node} is cut off from the store for {ms} ms"));
    }

    fn trouble_the_store(&mut self) {
        let kinds = [Trouble::Slow, Trouble::Full, Trouble::Down, Trouble::Flaky];
        let trouble = kinds[self.chance.index(kinds.len())];
        let ms = self.chance.between(50, 20_000);
        self.spoil_store(trouble, ms);
    }

    pub(super) fn spoil_store(&mut self, trouble: Trouble, ms: u64) {
        self.store.trouble = trouble;
        self.agenda.after(ms, Event::StoreHeals);
        if trouble == Trouble::Slow {
            self.seen.note(Thing::SlowStore);
        }
        self.trace(|| format!("the store is {trouble:?} for {ms} ms"));
    }

    /// Either one core's clock goes wrong, or everybody slept.
    fn jump_the_clock(&mut self, node: usize) {
        self.seen.note(Thing::ClockJump);
        let ms = match self.chance.between(0, 9) {
            0 => APPROVAL_DEADLINE_MS + self.chance.between(1, 1_000),
            1..=3 => self.chance.between(60_000, 3_600_000),
            _ => self.chance.between(500, 45_000),
        };
        if self.chance.percent(50) {
            self.agenda.jump(ms);
            self.trace(|| format!("the clock jumps by {ms} ms"));
        } else {
            self.nodes[node].ahead_ms += i64::try_from(ms.min(3_600_000)).unwrap_or(0);
            self.trace(|| format!("the clock of node {node} jumps by {ms} ms"));
            self.schedule_wake(node);
        }
    }

    /// Ends all trouble, so that what is under way can come to its end.
    pub(super) fn heal(&mut self) {
        self.healing = true;
        self.store.trouble = Trouble::Nothing;
        self.bus.split = None;
        (self.bus.loses, self.bus.repeats) = (0, 0);
        let now = self.agenda.now();
        for node in 0..self.nodes.len() {
            self.nodes[node].doom = None;
            self.nodes[node].cut_until = now;
            self.nodes[node].frozen_until = self.nodes[node].frozen_until.min(now);
            if !self.nodes[node].up {
                self.agenda.after(1, Event::Start { node });
            }
        }
        self.heal_providers();
        self.agenda.after(1_000, Event::Inbox);
        self.trace(|| "all trouble ends".to_owned());
    }
}
