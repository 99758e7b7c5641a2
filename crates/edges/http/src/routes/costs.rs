//! What runs have cost.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use wharf_domain::Caller;
use wharf_engine::{CostBy, CostRequest};
use wharf_vocab::Verb;
use wharf_wire::rest_v1::{self as wire, ErrorBody};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::params::Params;
use crate::{access, moment};

/// Sums up what the runs that the token covers have cost.
///
/// A run counts once, on the day it was accepted, with what its own attempts have cost so far. Its
/// children count separately.
#[utoipa::path(
    get, path = "/v1/costs", tag = "worlds",
    operation_id = "list_costs",
    params(
        ("by" = Option<String>, Query,
            description = "What to group by: `tool`, `world`, `agent` or `day`; `tool` when absent."),
        ("since" = Option<String>, Query,
            description = "Only runs accepted at or after this time: an RFC 3339 time, or an age such as `7d` or `24h`."),
        ("until" = Option<String>, Query,
            description = "Only runs accepted before this time, written like `since`."),
        ("world" = Option<String>, Query,
            description = "Only runs in this world; in all worlds the token covers when absent."),
    ),
    responses(
        (status = 200, description = "The sums.", body = wire::Costs),
        (status = 404, description = "There is no such world.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    params: Params,
) -> Answer {
    let world = params.world()?;
    if let Some(world) = &world {
        access::world(&caller, Verb::Read, world)?;
    }
    let by = params.parsed("by", "`tool`, `world`, `agent` or `day`", |text| match text {
        "tool" => Ok(CostBy::Tool),
        "world" => Ok(CostBy::World),
        "agent" => Ok(CostBy::Agent),
        "day" => Ok(CostBy::Day),
        _ => Err(()),
    })?;
    let (since, until) = moment::span(&params, app.handle.now())?;
    let request = CostRequest { world, since, until, by: by.unwrap_or_default() };
    let costs = app.handle.worlds().costs(&caller, request).await?;
    Ok(answer::json(StatusCode::OK, &wharf_views::costs(&costs)))
}
