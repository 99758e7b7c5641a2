//! Worlds, their settings and their accounts.

use axum::http::StatusCode;
use wharf_engine::WorldRemoval;
use wharf_vocab::Verb;
use wharf_wire::rest_v1::{self as wire, CorrectWorld, CreateWorld, SetBudget, SetWorld};

use super::table::{ApiCall, delete, get, patch, post, put, routes};
use super::to_its_end;
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::body::JsonBody;
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

routes! {
    "worlds";
    /// Lists the worlds that the token covers, by name.
    list_worlds => get("/v1/worlds", Need::READ, list).page::<wire::World>("A page of worlds.");
    /// Creates a world.
    create_world => post("/v1/worlds", Need::ADMIN, create)
        .takes::<CreateWorld>()
        .gives::<wire::World>(201, "The world was created.")
        .fails(409, "The world exists already.");
    /// Shows a world and its account.
    show_world => get("/v1/worlds/{world}", Need::READ, show)
        .gives::<wire::World>(200, "The world.")
        .missing("world");
    /// Changes the named settings of a world.
    set_world => patch("/v1/worlds/{world}", Need::ADMIN, set)
        .takes::<SetWorld>()
        .gives::<wire::World>(200, "The world with its new settings.")
        .missing("world");
    /// Removes a world. Its runs remain unless they are to go, too.
    remove_world => delete("/v1/worlds/{world}", Need::ADMIN, remove)
        .query::<bool>("force", "Whether to remove its files, too.")
        .query::<bool>("purge_runs", "Whether to remove its runs, too, in the background.")
        .says(204, "The world was removed.")
        .missing("world")
        .fails(409, "It has files, or runs under way.");
    /// Replaces a world's budget.
    set_world_budget => put("/v1/worlds/{world}/budget", Need::ADMIN, set_budget)
        .takes::<SetBudget>()
        .gives::<wire::World>(200, "The world with its new budget.")
        .missing("world");
    /// Corrects the amount a world's account says was spent. The correction is audited.
    correct_world => post("/v1/worlds/{world}/corrections", Need::ADMIN, correct)
        .takes::<CorrectWorld>()
        .gives::<wire::World>(200, "The world with its corrected account.")
        .missing("world");
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let mut worlds = app.handle.worlds().list().await?;
    worlds.retain(|view| caller.rights.in_world(&view.world.id));
    page::by_name(&params, page::WORLDS, worlds, |view| view.world.id.as_str(), wharf_views::world)
}

async fn create(
    ApiCall { app, caller }: ApiCall,
    JsonBody(request): JsonBody<CreateWorld>,
) -> Answer {
    let (id, settings) = from_wire::new_world(request)?;
    access::world(&caller, Verb::Admin, &id)?;
    let view = app.handle.worlds().create(&caller, id, settings).await?;
    Ok(answer::json(StatusCode::CREATED, &wharf_views::world(&view)))
}

async fn show(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = access::world_in(&caller, Verb::Read, &segments)?;
    answer::ok(&wharf_views::world(&app.handle.worlds().get(&id).await?))
}

async fn set(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    JsonBody(request): JsonBody<SetWorld>,
) -> Answer {
    let id = access::world_in(&caller, Verb::Admin, &segments)?;
    let patch = from_wire::changed(request)?;
    let view = app.handle.worlds().patch(&caller, id, patch).await?;
    answer::ok(&wharf_views::world(&view))
}

async fn remove(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let id = access::world_in(&caller, Verb::Admin, &segments)?;
    let removal =
        WorldRemoval { force: params.is_on("force")?, purge_runs: params.is_on("purge_runs")? };
    let handle = app.handle.clone();
    to_its_end(async move { handle.worlds().remove(&caller, &id, removal).await }).await?;
    answer::done()
}

async fn set_budget(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    JsonBody(request): JsonBody<SetBudget>,
) -> Answer {
    let id = access::world_in(&caller, Verb::Admin, &segments)?;
    let view = app.handle.worlds().patch(&caller, id, from_wire::budget(&request)?).await?;
    answer::ok(&wharf_views::world(&view))
}

async fn correct(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    JsonBody(request): JsonBody<CorrectWorld>,
) -> Answer {
    let id = access::world_in(&caller, Verb::Admin, &segments)?;
    let CorrectWorld { by_micro, reason } = request;
    let view = app.handle.worlds().correct(&caller, id, by_micro, reason).await?;
    answer::ok(&wharf_views::world(&view))
}
