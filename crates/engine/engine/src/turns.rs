//! Runs that wait for room at their providers: one line per provider, and within it one lane per
//! world and caller. Lanes take turns, so nobody waits for all that somebody else has asked for.
//!
//! Like a shard it knows no clock and touches nothing: it is told what waits, and asked whose
//! turn it is. What waits here is also written down with its run, so nothing is lost with it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use wharf_domain::RunSpec;
use wharf_vocab::limits::{CALLER_RUNS_IN_LINE_MAX, PROVIDER_RUNS_IN_LINE_MAX};
use wharf_vocab::{Code, Fault, GrantId, ProviderId, RunKey, ShardId, Timestamp, WorldId};

use crate::held::payer;

/// Lanes that are looked at in one go when there is no room for the run in front of them.
const LANES_AT_ONCE_MAX: usize = 64;
/// When somebody who was told that there is no room may ask again.
const RETRY_AFTER_MS: u64 = 1_000;

/// A run that waits for room.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The run.
    pub run: RunKey,
    /// What it is to do, without large inputs.
    pub spec: Arc<RunSpec>,
    /// When it may be its turn at the earliest.
    pub from: Timestamp,
    /// Whether it had its turn already and found no room.
    pub again: bool,
}

/// All that wait for room.
#[derive(Debug, Default)]
pub struct Turns {
    lines: BTreeMap<ProviderId, TurnQueue>,
}

/// Whose runs wait behind each other.
type Lane = (WorldId, GrantId);

#[derive(Debug, Default)]
struct TurnQueue {
    lanes: BTreeMap<Lane, VecDeque<Turn>>,
    /// The lanes in the order of their turns.
    order: VecDeque<Lane>,
    /// Where each run waits.
    waiting: BTreeMap<RunKey, Lane>,
    /// Runs that were told that it is their turn and have not been handed over yet.
    called: BTreeSet<RunKey>,
}

impl Turns {
    /// Lets a run wait. One that waits already keeps its place.
    pub fn push(&mut self, turn: Turn) {
        let line = self.lines.entry(turn.spec.provider()).or_default();
        line.called.remove(&turn.run);
        if line.waiting.contains_key(&turn.run) {
            return;
        }
        let lane = lane_of(&turn.spec, &turn.run);
        line.waiting.insert(turn.run.clone(), lane.clone());
        let waiting = line.lanes.entry(lane.clone()).or_insert_with(|| {
            line.order.push_back(lane);
            VecDeque::new()
        });
        if turn.again { waiting.push_front(turn) } else { waiting.push_back(turn) }
    }

    /// A run waits no more, or its turn is over.
    pub fn remove(&mut self, provider: &ProviderId, run: &RunKey) {
        let Some(line) = self.lines.get_mut(provider) else { return };
        line.called.remove(run);
        if let Some(lane) = line.waiting.remove(run) {
            if let Some(waiting) = line.lanes.get_mut(&lane) {
                waiting.retain(|turn| turn.run != *run);
            }
            line.drop_if_empty(&lane);
        }
        if line.is_empty() {
            self.lines.remove(provider);
        }
    }

    /// Forgets all that waits in these shards; whoever loads them says it again.
    pub fn forget(&mut self, shards: &[ShardId]) {
        for (provider, run) in self.all() {
            if shards.contains(&run.shard()) {
                self.remove(&provider, &run);
            }
        }
    }

    fn all(&self) -> Vec<(ProviderId, RunKey)> {
        let of_line = |(provider, line): (&ProviderId, &TurnQueue)| {
            let runs = line.waiting.keys().chain(&line.called);
            runs.map(|run| (provider.clone(), run.clone())).collect::<Vec<_>>()
        };
        self.lines.iter().flat_map(of_line).collect()
    }

    /// Whether a run may be handed over now: nobody waits before it, or it was told that it is
    /// its turn.
    pub fn may_pass(&self, provider: &ProviderId, run: &RunKey) -> bool {
        self.lines.get(provider).is_none_or(|line| line.called.contains(run))
    }

    /// Whether anybody waits for room at a provider.
    pub fn is_full(&self, provider: &ProviderId) -> bool {
        self.lines.contains_key(provider)
    }

    /// The providers at which anybody waits for room.
    pub fn full(&self) -> impl Iterator<Item = &ProviderId> {
        self.lines.keys()
    }

    /// Whether another run may be accepted that may have to wait.
    pub fn admit(&self, run: &RunKey, spec: &RunSpec) -> Result<(), Fault> {
        let provider = spec.provider();
        let Some(line) = self.lines.get(&provider) else { return Ok(()) };
        let of_caller = line.lanes.get(&lane_of(spec, run)).map_or(0, VecDeque::len);
        if line.waiting.len() < PROVIDER_RUNS_IN_LINE_MAX && of_caller < CALLER_RUNS_IN_LINE_MAX {
            return Ok(());
        }
        let message = format!("Too many runs wait for {provider}; try again later.");
        let fault = Fault::new(Code::ToolBusy, message).with("retry_after_ms", RETRY_AFTER_MS);
        Err(fault.with("waiting", line.waiting.len()))
    }

    /// How many wait for room at a provider.
    pub fn waiting(&self, provider: &ProviderId) -> usize {
        self.lines.get(provider).map_or(0, |line| line.waiting.len())
    }

    /// When somebody's turn may come at the earliest, if anybody waits.
    pub fn next_at(&self) -> Option<Timestamp> {
        let lanes = self.lines.values().flat_map(|line| line.lanes.values());
        lanes.filter_map(|lane| lane.front()).map(|turn| turn.from).min()
    }

    /// Calls those whose turn it is now, as far as there is room: `has_room` is asked with a run
    /// and with how many were called and have not been handed over.
    pub fn call(
        &mut self,
        now: Timestamp,
        mut has_room: impl FnMut(&Turn, usize) -> bool,
    ) -> Vec<RunKey> {
        let mut called = Vec::new();
        for line in self.lines.values_mut() {
            line.call(now, &mut has_room, &mut called);
        }
        called
    }
}

impl TurnQueue {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.called.is_empty()
    }

    fn drop_if_empty(&mut self, lane: &Lane) {
        if self.lanes.get(lane).is_some_and(VecDeque::is_empty) {
            self.lanes.remove(lane);
            self.order.retain(|other| other != lane);
        }
    }

    fn call(
        &mut self,
        now: Timestamp,
        has_room: &mut impl FnMut(&Turn, usize) -> bool,
        called: &mut Vec<RunKey>,
    ) {
        let mut passed_over = 0;
        while passed_over < self.order.len().min(LANES_AT_ONCE_MAX) {
            let Some(lane) = self.order.pop_front() else { return };
            let waiting = self.lanes.get_mut(&lane);
            let open = self.called.len();
            let mut front = waiting.and_then(|waiting| {
                let ready =
                    waiting.front().is_some_and(|turn| turn.from <= now && has_room(turn, open));
                if ready { waiting.pop_front() } else { None }
            });
            self.order.push_back(lane.clone());
            match front.take() {
                Some(turn) => {
                    passed_over = 0;
                    self.waiting.remove(&turn.run);
                    self.called.insert(turn.run.clone());
                    called.push(turn.run);
                    self.drop_if_empty(&lane);
                }
                None => passed_over += 1,
            }
        }
    }
}

/// Whose run it is: what somebody's runs start counts as theirs.
fn lane_of(spec: &RunSpec, run: &RunKey) -> Lane {
    (run.world.clone(), payer(spec).clone())
}

#[cfg(test)]
mod tests;
