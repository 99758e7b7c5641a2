//! Worlds and their accounts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A world and its account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct World {
    /// The world's id.
    pub world: String,
    /// When it was made.
    pub created_at: String,
    /// The most its runs may cost; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_micro: Option<u64>,
    /// What is set aside for runs under way.
    pub held_micro: u64,
    /// What its runs have cost.
    pub spent_micro: u64,
    /// What is set aside for a run whose tool names no price.
    pub default_hold_micro: u64,
}

/// `POST /v1/worlds`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWorld {
    /// The world's id.
    pub world: String,
    /// The most its runs may cost; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_micro: Option<u64>,
    /// What is set aside for a run whose tool names no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_hold_micro: Option<u64>,
}

/// `PUT /v1/worlds/{w}/budget`: replaces the limit; what is absent means "no limit" and "hold 0".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBudget {
    /// The most the world's runs may cost; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_micro: Option<u64>,
    /// What is set aside for a run whose tool names no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_hold_micro: Option<u64>,
}
