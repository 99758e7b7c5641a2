//! What runs have cost.

use async_graphql::SimpleObject;
use wharf_engine::{CostKey, CostRow, CostSum};

use crate::scalars::{Int64, written};

/// Sums of what runs have cost.
#[derive(Debug, SimpleObject)]
pub(crate) struct Costs {
    /// The rows: days in their order, all else with the dearest first.
    items: Vec<CostItem>,
    /// All of them together.
    total: CostTotal,
}

/// A row of sums.
#[derive(Debug, SimpleObject)]
pub(crate) struct CostItem {
    /// The tool, world, agent or day.
    key: String,
    #[graphql(flatten)]
    sum: CostTotal,
}

/// What runs have cost together.
#[derive(Debug, SimpleObject)]
pub(crate) struct CostTotal {
    /// How many runs there are.
    runs: Int64,
    /// How many of them failed.
    failed: Int64,
    /// What they have cost, in micro-dollars.
    cost_micro: Int64,
    /// How long those that are over took from their first attempt on, in milliseconds.
    wall_ms: Int64,
    /// Whether they cost more than the number can say, which then is the largest there is.
    saturated: bool,
}

impl From<&wharf_engine::Costs> for Costs {
    fn from(costs: &wharf_engine::Costs) -> Self {
        Self { items: costs.rows.iter().map(CostItem::from).collect(), total: costs.total.into() }
    }
}

impl From<&CostRow> for CostItem {
    fn from(row: &CostRow) -> Self {
        let key = match &row.key {
            CostKey::Tool(tool) => tool.to_string(),
            CostKey::World(world) => world.to_string(),
            CostKey::Agent(provider) => provider.to_string(),
            CostKey::Day(at) => written(*at).chars().take(10).collect(),
        };
        Self { key, sum: row.sum.into() }
    }
}

impl From<CostSum> for CostTotal {
    fn from(sum: CostSum) -> Self {
        Self {
            runs: Int64(sum.runs),
            failed: Int64(sum.failed),
            cost_micro: Int64(sum.cost_micro),
            wall_ms: Int64(sum.wall_ms),
            saturated: sum.saturated,
        }
    }
}
