//! How many runs were accepted when.
//!
//! A run counts once, in the piece of time it was accepted in, with the status it has now.

use std::collections::BTreeMap;
use std::sync::Arc;

use wharf_domain::{Rights, RunSummary};
use wharf_vocab::{Timestamp, ToolId, WorldId};

use crate::CostSum;

/// Which runs to count, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsQuery {
    /// Only runs within these rights.
    pub within: Arc<Rights>,
    /// Only runs of this world.
    pub world: Option<WorldId>,
    /// Only runs of this tool.
    pub tool: Option<ToolId>,
    /// Only runs accepted at this moment or later.
    pub since: Timestamp,
    /// Only runs accepted before this moment.
    pub until: Timestamp,
    /// How long a piece of time is; they begin at multiples of it. Never 0.
    pub step_ms: u64,
    /// What makes a row of each piece.
    pub by: StatsBy,
}

/// What makes a row of counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StatsBy {
    /// A status.
    #[default]
    Status,
    /// A tool.
    Tool,
    /// A world.
    World,
}

/// A row of counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsRow {
    /// When its piece of time begins.
    pub at: Timestamp,
    /// The status, the tool or the world.
    pub key: String,
    /// The counts.
    pub sum: CostSum,
}

impl StatsQuery {
    /// When the piece of time begins that a moment lies in.
    pub fn piece_of(&self, at: Timestamp) -> Timestamp {
        let step = self.step_ms.max(1);
        Timestamp(at.0 / step * step)
    }

    /// Whether runs of a world and a tool count.
    pub fn wants(&self, world: &WorldId, tool: &ToolId) -> bool {
        self.world.as_ref().is_none_or(|wanted| wanted == world)
            && self.tool.as_ref().is_none_or(|wanted| wanted == tool)
            && self.within.in_world(world)
            && self.within.check_tool(tool).is_ok()
    }
}

/// Counts while they are made.
#[derive(Debug, Default)]
pub struct StatsSums(BTreeMap<(Timestamp, String), CostSum>);

impl StatsSums {
    /// Counts a run in, if it is one of those asked for.
    pub fn count(&mut self, query: &StatsQuery, run: &RunSummary) {
        let at = run.created_at;
        if at < query.since || at >= query.until || !query.wants(&run.key.world, &run.tool) {
            return;
        }
        let key = match query.by {
            StatsBy::Status => run.status.to_string(),
            StatsBy::Tool => run.tool.to_string(),
            StatsBy::World => run.key.world.to_string(),
        };
        self.add(query.piece_of(at), key, CostSum::of(run));
    }

    /// Counts sums in that were made elsewhere.
    pub fn add(&mut self, at: Timestamp, key: String, sum: CostSum) {
        let known = self.0.entry((at, key)).or_default();
        *known = known.plus(sum);
    }

    /// The rows, by the piece of time and then by key.
    pub fn into_rows(self) -> Vec<StatsRow> {
        self.0.into_iter().map(|((at, key), sum)| StatsRow { at, key, sum }).collect()
    }
}
