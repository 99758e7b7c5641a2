//! Sums of what runs have cost.
//!
//! A run counts once, in the world, tool and day it was accepted in, with what its own attempts
//! have been settled for so far; what its children cost is theirs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use wharf_domain::RunSummary;
use wharf_vocab::{GrantId, Micro, ProviderId, RunStatus, Timestamp, ToolId, WorldId};

/// How long a day is, in UTC.
const DAY_MS: u64 = 86_400_000;
/// How long an hour is.
const HOUR_MS: u64 = 3_600_000;

/// Which runs to sum up, and by what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostQuery {
    /// Only runs of these worlds; `None` stands for all.
    pub worlds: Option<Vec<WorldId>>,
    /// Only runs accepted at this moment or later.
    pub since: Option<Timestamp>,
    /// Only runs accepted before this moment.
    pub until: Option<Timestamp>,
    /// What makes a row.
    pub by: CostBy,
}

/// What makes a row of sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CostBy {
    /// A tool.
    #[default]
    Tool,
    /// A world.
    World,
    /// A provider of tools.
    Agent,
    /// A day in UTC.
    Day,
    /// An hour in UTC.
    Hour,
    /// Whoever called for the runs.
    Caller,
}

/// What a row of sums is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CostKey {
    /// A tool.
    Tool(ToolId),
    /// A world.
    World(WorldId),
    /// A provider of tools.
    Agent(ProviderId),
    /// A day in UTC, by its first moment.
    Day(Timestamp),
    /// An hour in UTC, by its first moment.
    Hour(Timestamp),
    /// Whoever called for the runs; of runs of older cores that is not known.
    Caller(Option<GrantId>),
}

impl CostKey {
    /// The row that a run belongs to.
    pub fn of(by: CostBy, run: &RunSummary) -> Self {
        match by {
            CostBy::Tool => Self::Tool(run.tool.clone()),
            CostBy::World => Self::World(run.key.world.clone()),
            CostBy::Agent => Self::Agent(run.tool.provider()),
            CostBy::Day => Self::Day(Timestamp(run.created_at.0 / DAY_MS * DAY_MS)),
            CostBy::Hour => Self::Hour(Timestamp(run.created_at.0 / HOUR_MS * HOUR_MS)),
            CostBy::Caller => Self::Caller(run.caller.clone()),
        }
    }
}

/// A row of sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostRow {
    /// What it is about.
    pub key: CostKey,
    /// The sums.
    pub sum: CostSum,
}

/// What runs have cost together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CostSum {
    /// How many runs there are.
    pub runs: u64,
    /// How many of them failed.
    pub failed: u64,
    /// What they have cost.
    pub cost_micro: Micro,
    /// How long those that are over took from their first attempt on.
    pub wall_ms: u64,
    /// Whether they cost more than the number can say, which then is the largest there is.
    pub saturated: bool,
}

impl CostSum {
    /// What one run counts for.
    pub fn of(run: &RunSummary) -> Self {
        Self {
            runs: 1,
            failed: u64::from(run.status == RunStatus::Failed),
            cost_micro: run.cost_micro,
            wall_ms: wall_ms(run),
            saturated: false,
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cost = self.cost_micro.checked_add(other.cost_micro);
        Self {
            runs: self.runs.saturating_add(other.runs),
            failed: self.failed.saturating_add(other.failed),
            cost_micro: cost.unwrap_or(Micro::MAX),
            wall_ms: self.wall_ms.saturating_add(other.wall_ms),
            saturated: self.saturated || other.saturated || cost.is_none(),
        }
    }
}

/// What the sums of runs that were removed are kept by. Such a run counts as accepted at the
/// beginning of its hour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PurgedCosts {
    /// The hour they were accepted in, by its first moment.
    pub hour: Timestamp,
    /// Their world.
    pub world: WorldId,
    /// Their tool.
    pub tool: ToolId,
    /// Whoever called for them.
    pub caller: Option<GrantId>,
}

impl PurgedCosts {
    /// Where a run goes.
    pub fn of(run: &RunSummary) -> Self {
        Self {
            hour: Timestamp(run.created_at.0 / HOUR_MS * HOUR_MS),
            world: run.key.world.clone(),
            tool: run.tool.clone(),
            caller: run.caller.clone(),
        }
    }

    /// The row of sums they belong to.
    pub fn key(&self, by: CostBy) -> CostKey {
        match by {
            CostBy::Tool => CostKey::Tool(self.tool.clone()),
            CostBy::World => CostKey::World(self.world.clone()),
            CostBy::Agent => CostKey::Agent(self.tool.provider()),
            CostBy::Day => CostKey::Day(Timestamp(self.hour.0 / DAY_MS * DAY_MS)),
            CostBy::Hour => CostKey::Hour(self.hour),
            CostBy::Caller => CostKey::Caller(self.caller.clone()),
        }
    }
}

/// How long a run took from its first attempt to its end; 0 if it has not begun or is not over.
pub fn wall_ms(run: &RunSummary) -> u64 {
    let (Some(started), Some(ended)) = (run.started_at, run.ended_at) else { return 0 };
    ended.ms_since(started)
}

/// Sums while they are made.
#[derive(Debug, Default)]
pub struct CostSums(BTreeMap<CostKey, CostSum>);

impl CostSums {
    /// Counts a run in, if it is one of those asked for.
    pub fn count(&mut self, query: &CostQuery, run: &RunSummary) {
        let wanted = query.worlds.as_ref().is_none_or(|worlds| worlds.contains(&run.key.world))
            && query.since.is_none_or(|since| run.created_at >= since)
            && query.until.is_none_or(|until| run.created_at < until);
        if wanted {
            self.add(CostKey::of(query.by, run), CostSum::of(run));
        }
    }

    /// Counts runs in that were removed, if their hour is one of those asked for.
    pub fn count_purged(&mut self, query: &CostQuery, purged: &PurgedCosts, sum: CostSum) {
        let wanted = query.worlds.as_ref().is_none_or(|worlds| worlds.contains(&purged.world))
            && query.since.is_none_or(|since| purged.hour >= since)
            && query.until.is_none_or(|until| purged.hour < until);
        if wanted {
            self.add(purged.key(query.by), sum);
        }
    }

    /// Counts sums in that were made elsewhere.
    pub fn add(&mut self, key: CostKey, sum: CostSum) {
        match self.0.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(sum);
            }
            Entry::Occupied(mut entry) => {
                let both = entry.get().plus(sum);
                entry.insert(both);
            }
        }
    }

    /// The rows: days and hours in their order, all else by what it cost, the dearest first.
    pub fn into_rows(self) -> Vec<CostRow> {
        let mut rows: Vec<_> = self.0.into_iter().map(|(key, sum)| CostRow { key, sum }).collect();
        // Rows come by key; the sort keeps that order among those that cost the same.
        if !rows.iter().any(|row| matches!(row.key, CostKey::Day(_) | CostKey::Hour(_))) {
            rows.sort_by_key(|row| std::cmp::Reverse(row.sum.cost_micro));
        }
        rows
    }
}
