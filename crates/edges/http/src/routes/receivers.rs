//! Receivers of notifications: who outside is told of what.

use axum::http::StatusCode;
use wharf_domain::Receiver;
use wharf_domain::notify::unknown;
use wharf_vocab::{ReceiverId, Verb, WorldId};
use wharf_wire::rest_v1::{self as wire, CreateReceiver, TestNotification};

use super::table::{ApiCall, delete, get, post, routes};
use crate::access::{self, Need};
use crate::answer::{self, Answer, FaultResponse};
use crate::body::JsonBody;
use crate::page;
use crate::params::{Params, Segments};

routes! {
    "notifications";
    /// Lists receivers of notifications, by name, without their addresses.
    list_receivers => get("/v1/receivers", Need::ADMIN, list)
        .page::<wire::Receiver>("A page of receivers.");
    /// Adds a receiver. Only this response ever shows the key that it checks signatures with.
    create_receiver => post("/v1/receivers", Need::ADMIN, create)
        .takes::<CreateReceiver>()
        .gives::<wire::Receiver>(201, "The receiver.")
        .fails(409, "There is a receiver with this name already.")
        .fails(422, "The address cannot be used.");
    /// Shows a receiver.
    show_receiver => get("/v1/receivers/{receiver}", Need::ADMIN, show)
        .gives::<wire::Receiver>(200, "The receiver.")
        .missing("receiver");
    /// Removes a receiver, its address and its key. What it was owed is dropped.
    remove_receiver => delete("/v1/receivers/{receiver}", Need::ADMIN, remove)
        .says(204, "The receiver was removed.")
        .missing("receiver");
    /// Pauses a receiver. What happens meanwhile is not kept for it.
    pause_receiver => post("/v1/receivers/{receiver}/pause", Need::ADMIN, pause)
        .gives::<wire::Receiver>(200, "The receiver.")
        .missing("receiver");
    /// Resumes a receiver.
    resume_receiver => post("/v1/receivers/{receiver}/resume", Need::ADMIN, resume)
        .gives::<wire::Receiver>(200, "The receiver.")
        .missing("receiver");
    /// Sends a receiver a notification that tells nothing.
    test_receiver => post("/v1/receivers/{receiver}/test", Need::ADMIN, test)
        .gives::<TestNotification>(202, "It is on its way.")
        .missing("receiver");
    /// Lists what became of a receiver's notifications, newest first, 1,000 at most.
    receiver_history => get("/v1/receivers/{receiver}/history", Need::ADMIN, history)
        .lists::<wire::Delivery>("What became of its notifications.")
        .missing("receiver");
}

/// Whether a token reaches all that a receiver is told of.
fn reaches(call: &ApiCall, world: Option<&WorldId>) -> bool {
    let rights = &call.caller.rights;
    match world {
        Some(world) => rights.in_world(world),
        None => rights.worlds.is_none(),
    }
}

/// The receiver that a path names. A token is told only of those that it reaches.
fn known(call: &ApiCall, segments: &Segments) -> Result<Receiver, FaultResponse> {
    let id: ReceiverId = wharf_views::id("receiver", segments.get("receiver"))?;
    let receiver = call.app.handle.receivers().get(&id)?;
    match reaches(call, receiver.spec.world.as_ref()) {
        true => Ok(receiver),
        false => Err(unknown(&id).into()),
    }
}

async fn list(call: ApiCall, params: Params) -> Answer {
    let mut receivers = call.app.handle.receivers().list();
    receivers.retain(|it| reaches(&call, it.spec.world.as_ref()));
    page::by_name(&params, page::RECEIVERS, receivers, |it| it.id.as_str(), wharf_views::receiver)
}

async fn create(
    ApiCall { app, caller }: ApiCall,
    JsonBody(request): JsonBody<CreateReceiver>,
) -> Answer {
    match &request.world {
        Some(world) => access::world(&caller, Verb::Admin, world)?,
        None => Need::ADMIN_EVERYWHERE.check(&caller).map_err(FaultResponse::denied)?,
    }
    let vault = &app.options.vault;
    let made = wharf_views::create_receiver(&app.handle, vault, &caller, request).await?;
    Ok(answer::json(StatusCode::CREATED, &made))
}

async fn show(call: ApiCall, segments: Segments) -> Answer {
    answer::ok(&wharf_views::receiver(&known(&call, &segments)?))
}

async fn remove(call: ApiCall, segments: Segments) -> Answer {
    let receiver = known(&call, &segments)?;
    let ApiCall { app, caller } = call;
    wharf_views::remove_receiver(&app.handle, &app.options.vault, &caller, receiver).await?;
    answer::done()
}

async fn pause(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, &segments)?.id;
    let receiver = call.app.handle.receivers().pause(&call.caller, &id).await?;
    answer::ok(&wharf_views::receiver(&receiver))
}

async fn resume(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, &segments)?.id;
    let receiver = call.app.handle.receivers().resume(&call.caller, &id).await?;
    answer::ok(&wharf_views::receiver(&receiver))
}

async fn test(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, &segments)?.id;
    let notification_id = call.app.handle.receivers().test(&call.caller, &id).await?;
    Ok(answer::json(StatusCode::ACCEPTED, &TestNotification { notification_id }))
}

async fn history(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, &segments)?.id;
    let told = call.app.handle.receivers().history(&id).await?;
    let items = told.iter().map(|(at, told)| wharf_views::delivery(*at, told)).collect();
    answer::ok(&wire::Page::<wire::Delivery> { items, next_cursor: None })
}
