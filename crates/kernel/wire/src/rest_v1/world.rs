//! Worlds and their accounts.

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use wharf_vocab::{DateTime, Publish, UnknownCost, WorldId};

/// A world and its account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct World {
    /// The world's id.
    pub world: WorldId,
    /// When it was made.
    pub created_at: DateTime,
    /// The most its runs may cost; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_micro: Option<u64>,
    /// What is set aside for runs under way.
    pub held_micro: u64,
    /// What its runs have cost.
    pub spent_micro: u64,
    /// By how much more was spent and set aside than the limit allows; absent while it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_micro: Option<u64>,
    /// The least that is set aside for an attempt, unless its tool is free.
    pub default_hold_micro: u64,
    /// What is booked for an attempt whose provider never gave a last account of its cost:
    /// `reported` or `held`.
    #[serde(default)]
    pub unknown_cost: UnknownCost,
    /// When outputs of its runs can be seen: `direct` or `staged`.
    pub publish: Publish,
    /// Days after which a file that nobody has used goes; absent means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<u32>,
    /// Rules about approvals that come before those for all worlds.
    #[serde(default)]
    pub policy: Vec<PolicyRule>,
}

/// A rule about approvals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// The tools it speaks of, such as `acme/*`.
    pub tool: String,
    /// `always`, `first-use` or `cost>N` with N in micro-dollars; `always` when absent.
    #[serde(default = "always")]
    pub when: String,
    /// Whether an approval is needed then.
    pub approve: bool,
    /// Who may give it: `person`, `any` or a seat; `person` when absent.
    #[serde(default = "person")]
    pub audience: String,
    /// How long a seat is waited for before a person is asked; five minutes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
}

fn always() -> String {
    "always".to_owned()
}

fn person() -> String {
    "person".to_owned()
}

/// `POST /v1/worlds`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWorld {
    /// The world's id.
    pub world: WorldId,
    /// The most its runs may cost; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_micro: Option<u64>,
    /// The least that is set aside for an attempt, unless its tool is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_hold_micro: Option<u64>,
    /// When outputs of its runs can be seen: `direct` or `staged`; `direct` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish: Option<Publish>,
    /// Days after which a file that nobody has used goes; absent means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<u32>,
    /// Rules about approvals that come before those for all worlds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<PolicyRule>,
    /// What is booked when nobody knows what an attempt cost: `reported` or `held`; `reported`
    /// when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_cost: Option<UnknownCost>,
}

/// `PATCH /v1/worlds/{w}`: changes what is named and leaves the rest. Null takes a limit away.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetWorld {
    /// The most its runs may cost; null for no limit.
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    pub limit_micro: Option<Option<u64>>,
    /// The least that is set aside for an attempt, unless its tool is free.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub default_hold_micro: Option<u64>,
    /// When outputs of its runs can be seen: `direct` or `staged`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub publish: Option<Publish>,
    /// Days after which a file that nobody has used goes; null for never.
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<Option<u32>>,
    /// All rules about approvals, in the place of those there were.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub policy: Option<Vec<PolicyRule>>,
    /// What is booked when nobody knows what an attempt cost: `reported` or `held`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub unknown_cost: Option<UnknownCost>,
}

/// `POST /v1/worlds/{w}/corrections`: corrects what the world's account says was spent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrectWorld {
    /// What is added to what was spent, in micro-dollars; less than 0 to take away.
    pub by_micro: i64,
    /// Why, for whoever reads the audit.
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

/// `PUT /v1/worlds/{w}/budget`: replaces the limit; what is absent means "no limit" and "hold 0".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBudget {
    /// The most the world's runs may cost; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_micro: Option<u64>,
    /// The least that is set aside for an attempt, unless its tool is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_hold_micro: Option<u64>,
}
