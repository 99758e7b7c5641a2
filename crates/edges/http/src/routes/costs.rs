//! What runs have cost.

use wharf_engine::{CostBy, CostRequest};
use wharf_vocab::Verb;
use wharf_wire::rest_v1 as wire;

use super::table::{ApiCall, get, routes};
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::params::Params;
use crate::{access, from_wire};

routes! {
    "worlds";
    /// Sums up what the runs that the token covers have cost.
    ///
    /// A run counts once, on the day it was accepted, with what its own attempts have cost so far. Its
    /// children count separately.
    list_costs => get("/v1/costs", Need::READ, list)
        .query::<String>("by",
            "What to group by: `tool`, `world`, `agent`, `day`, `hour` or `caller`; `tool` when absent.")
        .of_time()
        .query::<String>("world",
            "Only runs in this world; in all worlds the token covers when absent.")
        .gives::<wire::Costs>(200, "The sums.")
        .missing("world");
    /// Lists the accounts of the budget tree: of each world, and of tokens with a budget below it.
    list_accounts => get("/v1/accounts", Need::READ, accounts)
        .query::<String>("world", "Only accounts of this world.")
        .lists::<wire::Account>("The accounts, each before those below it.");
}

async fn accounts(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let world = params.world()?;
    if let Some(world) = &world {
        access::world(&caller, Verb::Read, world)?;
    }
    let items = wharf_views::accounts(&app.handle, &caller, world.as_ref()).await?;
    answer::ok(&wire::Page { items, next_cursor: None })
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let world = params.world()?;
    if let Some(world) = &world {
        access::world(&caller, Verb::Read, world)?;
    }
    let by =
        params.parsed("by", "`tool`, `world`, `agent`, `day`, `hour` or `caller`", |text| {
            match text {
                "tool" => Ok(CostBy::Tool),
                "world" => Ok(CostBy::World),
                "agent" => Ok(CostBy::Agent),
                "day" => Ok(CostBy::Day),
                "hour" => Ok(CostBy::Hour),
                "caller" => Ok(CostBy::Caller),
                _ => Err(()),
            }
        })?;
    let (since, until) = from_wire::span(&params, app.handle.now())?;
    let request = CostRequest { world, since, until, by: by.unwrap_or_default() };
    let costs = app.handle.worlds().costs(&caller, request).await?;
    answer::ok(&wharf_views::costs(&costs))
}
