//! Triggers, and the hooks by which somebody outside starts their runs.

mod proof;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use wharf_domain::Trigger;
use wharf_domain::trace::TraceHeaders;
use wharf_domain::trigger::{HookCall, unknown};
use wharf_engine::CallResult;
use wharf_vocab::{Code, Fault, TriggerId, Verb};
use wharf_wire::rest_v1::{self as wire, CreateTrigger, HookAccepted, TestTrigger};

use super::secrets::vault;
use super::table::{ApiCall, delete, get, post, routes};
use crate::access::{self, Need};
use crate::answer::{self, Answer, FaultResponse};
use crate::app::App;
use crate::body::{HookBody, JsonBody, OptionalJsonBody};
use crate::page;
use crate::params::{Params, Segments, SentTrace};

routes! {
    "triggers";
    /// Lists the triggers within the token's reach, by name.
    list_triggers => get("/v1/triggers", Need::READ, list)
        .query::<String>("world", "Only triggers of this world.")
        .page::<wire::Trigger>("A page of triggers.");
    /// Creates a trigger. Its runs have a part of this token's rights and end with them. A secret
    /// that the core makes is shown only in this response.
    create_trigger => post("/v1/triggers", Need::RUN, create)
        .takes::<CreateTrigger>()
        .gives::<wire::Trigger>(201, "The trigger.")
        .fails(409, "There is a trigger with this name already.");
    /// Shows a trigger.
    show_trigger => get("/v1/triggers/{trigger}", Need::READ, show)
        .gives::<wire::Trigger>(200, "The trigger.")
        .missing("trigger");
    /// Removes a trigger and its secret. Its runs remain.
    remove_trigger => delete("/v1/triggers/{trigger}", Need::RUN, remove)
        .says(204, "The trigger was removed.")
        .missing("trigger");
    /// Pauses a trigger: calls of its hook are refused until it is resumed.
    pause_trigger => post("/v1/triggers/{trigger}/pause", Need::RUN, pause)
        .gives::<wire::Trigger>(200, "The trigger.")
        .missing("trigger");
    /// Resumes a trigger.
    resume_trigger => post("/v1/triggers/{trigger}/resume", Need::RUN, resume)
        .gives::<wire::Trigger>(200, "The trigger.")
        .missing("trigger");
    /// Calls a trigger's hook without a proof, or says what the inputs of its run would be.
    test_trigger => post("/v1/triggers/{trigger}/test", Need::RUN, test)
        .may_take::<TestTrigger>()
        .gives::<wire::TestedTrigger>(202, "The run is accepted; 200 for a dry run.")
        .missing("trigger");
    /// Lists what came of what was to start a trigger's runs, newest first, 1,000 at most.
    trigger_history => get("/v1/triggers/{trigger}/history", Need::READ, history)
        .lists::<wire::TriggerFiring>("What came of it.")
        .missing("trigger");
    /// Starts a trigger's run. Callers prove that they may in the way the trigger says; a delivery
    /// that comes twice gets the same run.
    call_hook => post("/v1/hooks/{hook}", Need::Nothing, call)
        .header::<String>("traceparent",
            "The trace the run belongs to, in the format of W3C Trace Context.")
        .header::<String>("tracestate",
            "What tracing systems add to the traceparent for each other, up to 512 bytes.")
        .takes_bytes()
        .body("What the sender says, 1 MiB at most.")
        .gives::<HookAccepted>(202, "The run is accepted.")
        .fails(401, "The caller proved nothing, or its proof is too old.")
        .missing("hook");
}

/// The trigger that a path names, if a caller may do this in its world.
fn known(call: &ApiCall, verb: Verb, segments: &Segments) -> Result<Trigger, FaultResponse> {
    let id: TriggerId = wharf_views::id("trigger", segments.get("trigger"))?;
    let trigger = call.app.handle.triggers().get(&id)?;
    if !call.caller.rights.in_world(&trigger.spec.world) {
        return Err(unknown(&id).into());
    }
    access::world(&call.caller, verb, &trigger.spec.world)?;
    access::tool(&call.caller, &trigger.spec.tool)?;
    Ok(trigger)
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let world = params.world()?;
    if let Some(world) = &world {
        access::world(&caller, Verb::Read, world)?;
    }
    let mut triggers = app.handle.triggers().list();
    triggers.retain(|trigger| {
        let spec = &trigger.spec;
        caller.rights.in_world(&spec.world)
            && caller.rights.check_tool(&spec.tool).is_ok()
            && world.as_ref().is_none_or(|world| spec.world == *world)
    });
    page::by_name(&params, page::TRIGGERS, triggers, |it| it.id.as_str(), wharf_views::trigger)
}

async fn create(
    ApiCall { app, caller }: ApiCall,
    JsonBody(request): JsonBody<CreateTrigger>,
) -> Answer {
    access::world(&caller, Verb::Run, &wharf_views::world_of(&request)?)?;
    access::tool(&caller, &request.tool)?;
    let vault = &app.options.vault;
    let made = wharf_views::create_trigger(&app.handle, vault, &caller, request).await?;
    Ok(answer::json(StatusCode::CREATED, &made))
}

async fn show(call: ApiCall, segments: Segments) -> Answer {
    answer::ok(&wharf_views::trigger(&known(&call, Verb::Read, &segments)?))
}

async fn remove(call: ApiCall, segments: Segments) -> Answer {
    let trigger = known(&call, Verb::Run, &segments)?;
    let ApiCall { app, caller } = call;
    wharf_views::remove_trigger(&app.handle, &app.options.vault, &caller, trigger).await?;
    answer::done()
}

async fn pause(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, Verb::Run, &segments)?.id;
    let trigger = call.app.handle.triggers().pause(&call.caller, &id).await?;
    answer::ok(&wharf_views::trigger(&trigger))
}

async fn resume(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, Verb::Run, &segments)?.id;
    let trigger = call.app.handle.triggers().resume(&call.caller, &id).await?;
    answer::ok(&wharf_views::trigger(&trigger))
}

async fn test(
    call: ApiCall,
    segments: Segments,
    OptionalJsonBody(request): OptionalJsonBody<TestTrigger>,
) -> Answer {
    let trigger = known(&call, Verb::Run, &segments)?;
    let request = request.unwrap_or_default();
    let ApiCall { app, caller } = call;
    let tested = wharf_views::test_trigger(&app.handle, &caller, &trigger, &request).await?;
    let accepted = tested.run_id.is_some();
    let status = if accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(answer::json(status, &tested))
}

async fn history(call: ApiCall, segments: Segments) -> Answer {
    let id = known(&call, Verb::Read, &segments)?.id;
    let fired = call.app.handle.triggers().history(&id).await?;
    let items = fired.iter().map(|(at, fired)| wharf_views::trigger_firing(*at, fired)).collect();
    answer::ok(&wire::Page::<wire::TriggerFiring> { items, next_cursor: None })
}

async fn call(
    State(app): State<Arc<App>>,
    segments: Segments,
    params: Params,
    headers: HeaderMap,
    HookBody(body): HookBody,
) -> Answer {
    let found = app.handle.triggers().of_hook(segments.get("hook"));
    let missing = || Fault::new(Code::TriggerNotFound, "There is no such hook.");
    let trigger = found.ok_or_else(missing)?;
    let hook = trigger.spec.hook().ok_or_else(missing)?;
    let secret = vault(&app)?.get(hook.secret.clone()).await?;
    let now = app.handle.now();
    let proved = proof::check(hook.proof, secret.expose(), now, &headers, &body);
    let proved = proved.ok_or_else(|| {
        CallResult::Unproved.count();
        let message = "The call does not prove that its sender may start this.";
        FaultResponse::denied(Fault::new(Code::AuthInvalid, message))
    })?;
    let delivery = proved.delivery.map_or_else(wharf_views::random, Ok)?;
    let SentTrace { traceparent, tracestate } = SentTrace::of(&headers);
    let trace = TraceHeaders { traceparent, tracestate };
    let headers = headers.keys().filter_map(|name| {
        // The first of several under one name.
        let value = headers.get(name)?.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    let headers = headers.collect();
    let call = HookCall { body, headers, query: params.first_of_each(), trace };
    let key = app.handle.triggers().start(&trigger, &delivery, call).await?;
    Ok(answer::json(StatusCode::ACCEPTED, &HookAccepted { run_id: key.run }))
}
