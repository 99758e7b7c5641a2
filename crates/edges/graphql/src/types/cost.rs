//! What runs have cost.

use async_graphql::SimpleObject;
use wharf_engine::CostSum;

use super::view::{View, view};
use crate::scalars::Int64;

/// Sums of what runs have cost.
#[derive(Debug, SimpleObject)]
pub(crate) struct Costs {
    /// The rows: days in their order, all else with the dearest first.
    items: Vec<CostItem>,
    /// All of them together.
    total: CostTotal,
}

view! {
    /// A row of sums.
    CostItem of CostItem {
        /// The tool, world, agent or day.
        key: String,
        /// How many runs there are.
        runs: Int64,
        /// How many of them failed.
        failed: Int64,
        /// What they have cost, in micro-dollars.
        cost_micro: Int64,
        /// How long those that ended took from their first attempt, in milliseconds.
        wall_ms: Int64,
        /// Whether they cost more than the number can hold; it is the largest there is then.
        saturated: bool,
    }
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

impl From<&wharf_engine::CostReport> for Costs {
    fn from(costs: &wharf_engine::CostReport) -> Self {
        let items = wharf_views::costs(costs).items;
        Self { items: View::view(items), total: costs.total.into() }
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
