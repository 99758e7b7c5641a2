//! Worlds and their accounts.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use wharf_domain::Caller;
use wharf_vocab::Verb;
use wharf_wire::rest_v1::{self as wire, CreateWorld, ErrorBody, Page, SetBudget};

use super::segments::Segments;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::cursor::List;
use crate::params::Params;
use crate::{access, from_wire, page, to_wire};

/// Lists the worlds within the token's reach by name.
#[utoipa::path(
    get, path = "/v1/worlds", tag = "worlds",
    operation_id = "list_worlds",
    params(
        ("limit" = Option<u32>, Query, description = "Items on a page, 1 to 200."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before."),
    ),
    responses(
        (status = 200, description = "A page of worlds.", body = Page<wire::World>),
        (status = "default", description = "Any error.", body = ErrorBody),
    )
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    params: Params,
) -> Answer {
    let mut worlds = app.handle.worlds().await?;
    worlds.retain(|view| caller.rights.in_world(&view.world.id));
    page::by_name(&params, List::Worlds, worlds, |view| view.world.id.as_str(), to_wire::world)
}

/// Makes a world.
#[utoipa::path(
    post, path = "/v1/worlds", tag = "worlds",
    operation_id = "create_world",
    request_body = CreateWorld,
    responses(
        (status = 201, description = "The world was made.", body = wire::World),
        (status = 409, description = "The world exists already.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<CreateWorld>,
) -> Answer {
    let (id, settings) = from_wire::new_world(&request)?;
    access::world(&caller, Verb::Admin, &id)?;
    let view = app.handle.create_world(&caller, id, settings).await?;
    Ok(answer::json(StatusCode::CREATED, &to_wire::world(&view)))
}

/// Shows a world and its account.
#[utoipa::path(
    get, path = "/v1/worlds/{world}", tag = "worlds",
    operation_id = "show_world",
    params(("world" = String, Path, description = "The world's id.")),
    responses(
        (status = 200, description = "The world.", body = wire::World),
        (status = 404, description = "There is no such world.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    let id = from_wire::world_id(segments.get("world"))?;
    access::world(&caller, Verb::Read, &id)?;
    Ok(answer::json(StatusCode::OK, &to_wire::world(&app.handle.world(&id).await?)))
}

/// Replaces a world's budget.
#[utoipa::path(
    put, path = "/v1/worlds/{world}/budget", tag = "worlds",
    operation_id = "set_world_budget",
    params(("world" = String, Path, description = "The world's id.")),
    request_body = SetBudget,
    responses(
        (status = 200, description = "The world with its new budget.", body = wire::World),
        (status = 404, description = "There is no such world.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn set_budget(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    JsonBody(request): JsonBody<SetBudget>,
) -> Answer {
    let id = from_wire::world_id(segments.get("world"))?;
    access::world(&caller, Verb::Admin, &id)?;
    let view = app.handle.set_world(&caller, id, from_wire::budget(&request)).await?;
    Ok(answer::json(StatusCode::OK, &to_wire::world(&view)))
}
