//! Worlds.

use async_graphql::{ComplexObject, Context, SimpleObject};
use wharf_domain::Rule;
use wharf_engine::WorldView;
use wharf_vocab::{Fault, Verb, WorldId};

use super::{Publish, UnknownCost, Usage};
use crate::access::Session;
use crate::scalars::{DateTime, Int64};

/// A world and its account.
#[derive(Debug, SimpleObject)]
#[graphql(complex)]
pub(crate) struct World {
    /// Its id.
    world: String,
    /// When it was made.
    created_at: DateTime,
    /// The most its runs may cost, in micro-dollars; null for no limit.
    limit_micro: Option<Int64>,
    /// What is set aside for runs under way.
    held_micro: Int64,
    /// What its runs have cost.
    spent_micro: Int64,
    /// By how much more was spent and set aside than the limit allows.
    over_micro: Int64,
    /// The least that is set aside for an attempt, unless its tool is free.
    default_hold_micro: Int64,
    /// What is booked when nobody knows what an attempt cost.
    unknown_cost: UnknownCost,
    /// When outputs of its runs can be seen.
    publish: Publish,
    /// Days after which a file that nobody has used goes; null for never.
    retention_days: Option<u32>,
    /// Rules about approvals that come before those for all worlds.
    #[graphql(complexity = "5 * child_complexity")]
    policy: Vec<PolicyRule>,
    #[graphql(skip)]
    id: WorldId,
}

/// A rule about approvals.
#[derive(Debug, SimpleObject)]
pub(crate) struct PolicyRule {
    /// The tools it speaks of, such as `acme/*`.
    tool: String,
    /// `always`, `first-use` or `cost>N` with N in micro-dollars.
    when: String,
    /// Whether an approval is needed then.
    approve: bool,
    /// Who may give it: `person`, `any` or a seat.
    audience: String,
    /// How long a seat is waited for before a person is asked; five minutes when absent.
    patience_ms: Option<Int64>,
}

#[ComplexObject]
impl World {
    /// How much it holds.
    #[graphql(complexity = "10 + child_complexity")]
    async fn usage(&self, ctx: &Context<'_>) -> Result<Usage, Fault> {
        let session = Session::of(ctx)?;
        session.world(Verb::Read, &self.id)?;
        Ok(session.handle.usage(&session.caller, &self.id).await?.into())
    }
}

impl From<&WorldView> for World {
    fn from(view: &WorldView) -> Self {
        let settings = &view.world.settings;
        Self {
            world: view.world.id.to_string(),
            created_at: DateTime(view.world.created_at),
            limit_micro: settings.limit_micro.map(Int64),
            held_micro: Int64(view.account.held),
            spent_micro: Int64(view.account.spent),
            over_micro: Int64(view.account.over()),
            unknown_cost: settings.unknown_cost.into(),
            default_hold_micro: Int64(settings.default_hold_micro),
            publish: settings.publish.into(),
            retention_days: settings.retention_days,
            policy: settings.policy.iter().map(PolicyRule::from).collect(),
            id: view.world.id.clone(),
        }
    }
}

impl From<&Rule> for PolicyRule {
    fn from(rule: &Rule) -> Self {
        Self {
            tool: rule.tool.to_string(),
            when: rule.when.to_string(),
            approve: rule.approve,
            audience: rule.audience.to_string(),
            patience_ms: rule.patience_ms.map(Int64),
        }
    }
}
