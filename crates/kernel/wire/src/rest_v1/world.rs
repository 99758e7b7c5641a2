//! Worlds and their accounts.

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{DateTime, Publish, Retain, UnknownCost, WorldId};

/// A world and its account.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct World {
    /// The world's id.
    pub world: WorldId,
    /// When it was created.
    pub created_at: DateTime,
    /// The most its runs may cost; absent means no limit.
    pub limit_micro: Option<u64>,
    /// What is set aside for runs in progress.
    pub held_micro: u64,
    /// What its runs have cost.
    pub spent_micro: u64,
    /// How far the amounts spent and set aside exceed the limit; absent if they do not.
    pub over_micro: Option<u64>,
    /// The least that is set aside for an attempt, unless its tool is free.
    pub default_hold_micro: u64,
    /// What is booked for an attempt whose provider never reported its final cost.
    #[serde(default)]
    pub unknown_cost: UnknownCost,
    /// When the outputs of its runs become visible.
    pub publish: Publish,
    /// Days after which an unused file is removed; absent means never.
    pub retention_days: Option<u32>,
    /// Days after which a run that has ended is removed; absent means never.
    pub run_retention_days: Option<u32>,
    /// What is kept of the values of its runs once they have ended.
    #[serde(default, skip_serializing_if = "super::is_full")]
    pub retain: Retain,
    /// Rules about approvals, applied before those for all worlds.
    #[serde(default)]
    pub policy: Vec<PolicyRule>,
}

/// A rule about approvals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// The tools it applies to, such as `acme/*`.
    pub tool: String,
    /// `always`, `first-use`, `destructive` or `cost>N` with N in micro-dollars; `always` when absent.
    #[serde(default = "always")]
    pub when: String,
    /// Whether an approval is needed then; `true` when absent.
    #[serde(default = "yes")]
    pub approve: bool,
    /// Who may give it: `person`, `any` or a seat; `person` when absent.
    #[serde(default = "person")]
    pub audience: String,
    /// How long to wait for a seat before asking a person; five minutes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
}

fn always() -> String {
    "always".to_owned()
}

fn yes() -> bool {
    true
}

fn person() -> String {
    "person".to_owned()
}

/// `POST /v1/worlds`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWorld {
    /// The world's id.
    pub world: WorldId,
    /// The most its runs may cost; absent means no limit.
    pub limit_micro: Option<u64>,
    /// The least that is set aside for an attempt, unless its tool is free.
    pub default_hold_micro: Option<u64>,
    /// When the outputs of its runs become visible; `direct` when absent.
    pub publish: Option<Publish>,
    /// Days after which an unused file is removed; absent means never.
    pub retention_days: Option<u32>,
    /// Days after which a run that has ended is removed; absent means never.
    pub run_retention_days: Option<u32>,
    /// Rules about approvals, applied before those for all worlds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<PolicyRule>,
    /// What is booked when the cost of an attempt is unknown; `reported` when absent.
    pub unknown_cost: Option<UnknownCost>,
    /// What is kept of the values of its runs once they have ended; `full` when absent.
    pub retain: Option<Retain>,
}

/// `PATCH /v1/worlds/{w}`: changes the named settings. Null removes a limit.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetWorld {
    /// The most its runs may cost; null for no limit.
    #[serde(default, deserialize_with = "named")]
    pub limit_micro: Option<Option<u64>>,
    /// The least that is set aside for an attempt, unless its tool is free.
    #[serde(default, deserialize_with = "given")]
    pub default_hold_micro: Option<u64>,
    /// When the outputs of its runs become visible.
    #[serde(default, deserialize_with = "given")]
    pub publish: Option<Publish>,
    /// Days after which an unused file is removed; null for never.
    #[serde(default, deserialize_with = "named")]
    pub retention_days: Option<Option<u32>>,
    /// Days after which a run that has ended is removed; null for never.
    #[serde(default, deserialize_with = "named")]
    pub run_retention_days: Option<Option<u32>>,
    /// All rules about approvals, replacing the present ones.
    #[serde(default, deserialize_with = "given")]
    pub policy: Option<Vec<PolicyRule>>,
    /// What is booked when the cost of an attempt is unknown.
    #[serde(default, deserialize_with = "given")]
    pub unknown_cost: Option<UnknownCost>,
    /// What is kept of the values of its runs once they have ended.
    #[serde(default, deserialize_with = "given")]
    pub retain: Option<Retain>,
}

/// `POST /v1/worlds/{w}/corrections`: corrects what the world's account says was spent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrectWorld {
    /// The amount to add to what was spent, in micro-dollars; negative to subtract.
    pub by_micro: i64,
    /// Why, for readers of the audit.
    pub reason: String,
}

/// Takes no null for a field that can be left out but not taken away.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    let given = Option::deserialize(value)?;
    let null = || D::Error::invalid_type(Unexpected::Unit, &"a value that is not null");
    given.ok_or_else(null).map(Some)
}

/// Tells a field that is null from one that is absent.
fn named<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(value).map(Some)
}

/// `PUT /v1/worlds/{w}/budget`: replaces the budget. An absent field means no limit, or nothing set
/// aside.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBudget {
    /// The most the world's runs may cost; absent means no limit.
    pub limit_micro: Option<u64>,
    /// The least that is set aside for an attempt, unless its tool is free.
    pub default_hold_micro: Option<u64>,
}
