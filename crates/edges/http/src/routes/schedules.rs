//! Schedules: runs that the core starts by the clock.

use axum::http::StatusCode;
use wharf_domain::Schedule;
use wharf_vocab::{ScheduleId, Verb};
use wharf_wire::rest_v1::{self as wire, CreateSchedule};

use super::table::{ApiCall, delete, get, post, routes};
use crate::access::Need;
use crate::answer::{self, Answer, FaultResponse};
use crate::body::JsonBody;
use crate::params::{Params, Segments};
use crate::{access, page};

routes! {
    "schedules";
    /// Lists the schedules within the token's reach, by name, each with its next three times.
    list_schedules => get("/v1/schedules", Need::READ, list)
        .query::<String>("world", "Only schedules of this world.")
        .page::<wire::Schedule>("A page of schedules.");
    /// Creates a schedule. Its runs have a part of this token's rights and end with them.
    create_schedule => post("/v1/schedules", Need::RUN, create)
        .takes::<CreateSchedule>()
        .gives::<wire::Schedule>(201, "The schedule.")
        .fails(409, "There is a schedule with this name already.");
    /// Shows a schedule.
    show_schedule => get("/v1/schedules/{schedule}", Need::READ, show)
        .gives::<wire::Schedule>(200, "The schedule.")
        .missing("schedule");
    /// Removes a schedule. Its runs remain.
    remove_schedule => delete("/v1/schedules/{schedule}", Need::RUN, remove)
        .says(204, "The schedule was removed.")
        .missing("schedule");
    /// Pauses a schedule: it starts nothing until it is resumed.
    pause_schedule => post("/v1/schedules/{schedule}/pause", Need::RUN, pause)
        .gives::<wire::Schedule>(200, "The schedule.")
        .missing("schedule");
    /// Resumes a schedule. Times that passed meanwhile were not missed.
    resume_schedule => post("/v1/schedules/{schedule}/resume", Need::RUN, resume)
        .gives::<wire::Schedule>(200, "The schedule.")
        .missing("schedule");
    /// Starts a run of a schedule now, whatever else is going on.
    trigger_schedule => post("/v1/schedules/{schedule}/trigger", Need::RUN, trigger)
        .gives::<wire::Schedule>(202, "The schedule; `last` is the new firing.")
        .missing("schedule");
    /// Lists what became of a schedule's times, newest first, 1,000 at most.
    schedule_history => get("/v1/schedules/{schedule}/history", Need::READ, history)
        .lists::<wire::Firing>("What became of its times.")
        .missing("schedule");
}

/// The schedule that a path names, if a caller may do this in its world. A token for some worlds
/// is not told of schedules in others.
fn known(call: &ApiCall, verb: Verb, segments: &Segments) -> Result<Schedule, FaultResponse> {
    let id: ScheduleId = wharf_views::id("schedule", segments.get("schedule"))?;
    let schedule = call.app.handle.schedules().get(&id)?;
    if !call.caller.rights.in_world(&schedule.spec.world) {
        return Err(wharf_domain::schedule::unknown(&id).into());
    }
    access::world(&call.caller, verb, &schedule.spec.world)?;
    access::tool(&call.caller, &schedule.spec.tool)?;
    Ok(schedule)
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let world = params.world()?;
    if let Some(world) = &world {
        access::world(&caller, Verb::Read, world)?;
    }
    let mut schedules = app.handle.schedules().list();
    schedules.retain(|schedule| {
        let spec = &schedule.spec;
        caller.rights.in_world(&spec.world)
            && caller.rights.check_tool(&spec.tool).is_ok()
            && world.as_ref().is_none_or(|world| spec.world == *world)
    });
    page::by_name(
        &params,
        page::SCHEDULES,
        schedules,
        |schedule| schedule.id.as_str(),
        wharf_views::schedule,
    )
}

async fn create(
    ApiCall { app, caller }: ApiCall,
    JsonBody(request): JsonBody<CreateSchedule>,
) -> Answer {
    let (id, spec) = wharf_views::new_schedule(request)?;
    access::world(&caller, Verb::Run, &spec.world)?;
    access::tool(&caller, &spec.tool)?;
    let schedule = app.handle.schedules().add(&caller, id, spec).await?;
    Ok(answer::json(StatusCode::CREATED, &wharf_views::schedule(&schedule)))
}

async fn show(call: ApiCall, segments: Segments) -> Answer {
    answer::ok(&wharf_views::schedule(&known(&call, Verb::Read, &segments)?))
}

async fn remove(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, Verb::Run, &segments)?.id;
    call.app.handle.schedules().remove(&call.caller, &id).await?;
    answer::done()
}

async fn pause(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, Verb::Run, &segments)?.id;
    let schedule = call.app.handle.schedules().pause(&call.caller, &id).await?;
    answer::ok(&wharf_views::schedule(&schedule))
}

async fn resume(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, Verb::Run, &segments)?.id;
    let schedule = call.app.handle.schedules().resume(&call.caller, &id).await?;
    answer::ok(&wharf_views::schedule(&schedule))
}

async fn trigger(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, Verb::Run, &segments)?.id;
    let schedule = call.app.handle.schedules().trigger(&call.caller, &id).await?;
    Ok(answer::json(StatusCode::ACCEPTED, &wharf_views::schedule(&schedule)))
}

async fn history(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, Verb::Read, &segments)?.id;
    let firings = call.app.handle.schedules().history(&id).await?;
    let items = firings.iter().map(wharf_views::firing).collect();
    answer::ok(&wire::Page::<wire::Firing> { items, next_cursor: None })
}
