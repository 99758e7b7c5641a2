//! Worlds.

use async_graphql::{ComplexObject, Context, SimpleObject};
use wharf_engine::WorldView;
use wharf_vocab::{Fault, Verb, WorldId};
use wharf_wire::rest_v1 as wire;

use super::view::{View, view};
use super::{Publish, Retain, UnknownCost, Usage};
use crate::access::CallerSession;
use crate::scalars::{DateTime, Int64};

/// A world and its account.
#[derive(Debug, SimpleObject)]
#[graphql(complex)]
pub(crate) struct World {
    /// Its id.
    world: String,
    /// When it was created.
    created_at: DateTime,
    /// The most its runs may cost, in micro-dollars; null for no limit.
    limit_micro: Option<Int64>,
    /// What is set aside for runs under way.
    held_micro: Int64,
    /// What its runs have cost.
    spent_micro: Int64,
    /// How far what was spent and set aside exceeds the limit.
    over_micro: Int64,
    /// The least that is set aside for an attempt, unless its tool is free.
    default_hold_micro: Int64,
    /// What is booked when the cost of an attempt is unknown.
    unknown_cost: UnknownCost,
    /// When the outputs of its runs become visible.
    publish: Publish,
    /// Days after which an unused file is removed; null for never.
    retention_days: Option<u32>,
    /// Days after which a run that has ended is removed; null for never.
    run_retention_days: Option<u32>,
    /// What is kept of the values of its runs once they have ended.
    retain: Retain,
    /// Rules about approvals that come before those for all worlds.
    #[graphql(complexity = "5 * child_complexity")]
    policy: Vec<PolicyRule>,
    #[graphql(skip)]
    id: WorldId,
}

view! {
    /// A rule about approvals.
    PolicyRule of PolicyRule {
        /// The tools it applies to, such as `acme/*`.
        tool: String,
        /// `always`, `first-use`, `destructive` or `cost>N` with N in micro-dollars.
        when: String,
        /// Whether an approval is needed then.
        approve: bool,
        /// Who may give it: `person`, `any` or a seat.
        audience: String,
        /// How long a seat is waited for before a person is asked; five minutes when absent.
        patience_ms: Option<Int64>,
    }
}

#[ComplexObject]
impl World {
    /// How much it holds.
    #[graphql(complexity = "10 + child_complexity")]
    async fn usage(&self, ctx: &Context<'_>) -> Result<Usage, Fault> {
        let session = CallerSession::of(ctx)?;
        session.world(Verb::Read, &self.id)?;
        let usage = session.handle.files().usage(&session.caller, &self.id).await?;
        Ok(Usage::view(wharf_views::usage(&self.id, usage)))
    }
}

impl From<&WorldView> for World {
    fn from(view: &WorldView) -> Self {
        let wire::World {
            world,
            created_at,
            limit_micro,
            held_micro,
            spent_micro,
            over_micro,
            default_hold_micro,
            unknown_cost,
            publish,
            retention_days,
            run_retention_days,
            retain,
            policy,
        } = wharf_views::world(view);
        Self {
            world: world.to_string(),
            created_at: View::view(created_at),
            limit_micro: View::view(limit_micro),
            held_micro: Int64(held_micro),
            spent_micro: Int64(spent_micro),
            over_micro: Int64(over_micro.unwrap_or_default()),
            default_hold_micro: Int64(default_hold_micro),
            unknown_cost: unknown_cost.into(),
            publish: publish.into(),
            retention_days,
            run_retention_days,
            retain: retain.into(),
            policy: View::view(policy),
            id: world,
        }
    }
}
