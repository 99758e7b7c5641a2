//! Worlds, their settings and their accounts.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use wharf_domain::Caller;
use wharf_vocab::Verb;
use wharf_wire::rest_v1::{
    self as wire, CorrectWorld, CreateWorld, ErrorBody, Page, SetBudget, SetWorld,
};

use super::to_its_end;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::page::List;
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

/// Lists the worlds that the token covers, by name.
#[utoipa::path(
    get, path = "/v1/worlds", tag = "worlds",
    operation_id = "list_worlds",
    params(
        ("limit" = Option<u32>, Query, description = "Items on a page, 1 to 200."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the previous page."),
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
    let mut worlds = app.handle.worlds().list().await?;
    worlds.retain(|view| caller.rights.in_world(&view.world.id));
    page::by_name(&params, List::Worlds, worlds, |view| view.world.id.as_str(), wharf_views::world)
}

/// Creates a world.
#[utoipa::path(
    post, path = "/v1/worlds", tag = "worlds",
    operation_id = "create_world",
    request_body = CreateWorld,
    responses(
        (status = 201, description = "The world was created.", body = wire::World),
        (status = 409, description = "The world exists already.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<CreateWorld>,
) -> Answer {
    let (id, settings) = from_wire::new_world(request)?;
    access::world(&caller, Verb::Admin, &id)?;
    let view = app.handle.worlds().create(&caller, id, settings).await?;
    Ok(answer::json(StatusCode::CREATED, &wharf_views::world(&view)))
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
    Ok(answer::json(StatusCode::OK, &wharf_views::world(&app.handle.worlds().get(&id).await?)))
}

/// Changes the named settings of a world.
#[utoipa::path(
    patch, path = "/v1/worlds/{world}", tag = "worlds",
    operation_id = "set_world",
    params(("world" = String, Path, description = "The world's id.")),
    request_body = SetWorld,
    responses(
        (status = 200, description = "The world with its new settings.", body = wire::World),
        (status = 404, description = "There is no such world.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn set(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    JsonBody(request): JsonBody<SetWorld>,
) -> Answer {
    let id = from_wire::world_id(segments.get("world"))?;
    access::world(&caller, Verb::Admin, &id)?;
    let patch = from_wire::changed(request)?;
    let view = app.handle.worlds().patch(&caller, id, patch).await?;
    Ok(answer::json(StatusCode::OK, &wharf_views::world(&view)))
}

/// Removes a world. The records of its runs remain.
#[utoipa::path(
    delete, path = "/v1/worlds/{world}", tag = "worlds",
    operation_id = "remove_world",
    params(
        ("world" = String, Path, description = "The world's id."),
        ("force" = Option<bool>, Query, description = "Whether to remove its files, too."),
    ),
    responses(
        (status = 204, description = "The world was removed."),
        (status = 404, description = "There is no such world.", body = ErrorBody),
        (status = 409, description = "It has files, or runs under way.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    params: Params,
) -> Answer {
    let id = from_wire::world_id(segments.get("world"))?;
    access::world(&caller, Verb::Admin, &id)?;
    let force = params.is_on("force")?;
    let handle = app.handle.clone();
    to_its_end(async move { handle.worlds().remove(&caller, &id, force).await }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
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
    let view = app.handle.worlds().patch(&caller, id, from_wire::budget(&request)?).await?;
    Ok(answer::json(StatusCode::OK, &wharf_views::world(&view)))
}

/// Corrects the amount a world's account says was spent. The correction is audited.
#[utoipa::path(
    post, path = "/v1/worlds/{world}/corrections", tag = "worlds",
    operation_id = "correct_world",
    params(("world" = String, Path, description = "The world's id.")),
    request_body = CorrectWorld,
    responses(
        (status = 200, description = "The world with its corrected account.", body = wire::World),
        (status = 404, description = "There is no such world.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn correct(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    JsonBody(request): JsonBody<CorrectWorld>,
) -> Answer {
    let id = from_wire::world_id(segments.get("world"))?;
    access::world(&caller, Verb::Admin, &id)?;
    let CorrectWorld { by_micro, reason } = request;
    let view = app.handle.worlds().correct(&caller, id, by_micro, reason).await?;
    Ok(answer::json(StatusCode::OK, &wharf_views::world(&view)))
}
