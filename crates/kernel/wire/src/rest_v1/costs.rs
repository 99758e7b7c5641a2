//! Sums of what runs have cost.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/costs`: sums, and all of them together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Costs {
    /// One row for each tool, world, agent or day. Days come in their order, all else with the
    /// dearest first.
    pub items: Vec<CostItem>,
    /// What all rows cost together.
    pub total_micro: u64,
    /// Whether that is more than the number can say, which then is the largest there is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub saturated: bool,
    /// Always null: all rows come at once.
    pub next_cursor: Option<String>,
}

/// What the runs of one tool, world, agent or day cost together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CostItem {
    /// The tool, world or agent, or the day in UTC as `2026-11-15`.
    pub key: String,
    /// How many runs there are.
    pub runs: u64,
    /// How many of them failed.
    pub failed: u64,
    /// What they have cost, failed ones too.
    pub cost_micro: u64,
    /// How long those that are over took from their first attempt on.
    pub wall_ms: u64,
    /// Whether they cost more than the number can say, which then is the largest there is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub saturated: bool,
}
