//! Flows: their documents, and what is sent to their runs.

use axum::http::StatusCode;
use wharf_domain::flow::Flow;
use wharf_engine::NewFlow;
use wharf_vocab::{Fault, FlowId, Verb};
use wharf_wire::rest_v1::{self as wire, AddFlow, CheckFlow, RerunFlow, SendSignal};

use super::table::{ApiCall, delete, get, post, routes};
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::body::{DeepJsonBody, JsonBody, OptionalJsonBody};
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

routes! {
    "flows";
    /// Lists the flows by name, each with its newest version.
    list_flows => get("/v1/flows", Need::READ, list).page::<wire::Flow>("A page of flows.");
    /// Adds a version of a flow.
    ///
    /// A document that says what the newest version says adds nothing: that version is shown.
    add_flow => post("/v1/flows", Need::Verb(Verb::WriteFlow), add)
        .takes::<AddFlow>()
        .gives::<wire::Flow>(201, "The version, with what may be wrong with it.")
        .fails(422, "The document is not right; `details.findings` says why.");
    /// Checks a document and stores nothing.
    check_flow => post("/v1/flows/check", Need::READ, check)
        .takes::<CheckFlow>()
        .gives::<wire::FlowCheck>(200, "What was found.");
    /// Shows the newest version of a flow.
    show_flow => get("/v1/flows/{flow}", Need::READ, show)
        .gives::<wire::Flow>(200, "The flow.")
        .missing("flow");
    /// Shows a version of a flow.
    show_flow_version => get("/v1/flows/{flow}/versions/{version}", Need::READ, show)
        .gives::<wire::Flow>(200, "The version.")
        .missing("flow");
    /// Removes a version of a flow. Its runs that have ended stay as they are.
    remove_flow_version => delete(
        "/v1/flows/{flow}/versions/{version}",
        Need::Verb(Verb::WriteFlow),
        remove,
    )
        .says(204, "The version was removed.")
        .missing("flow")
        .fails(409, "It has runs under way.");
    /// Sends a message to a run of a flow.
    ///
    /// It is kept until a step takes it, also when it comes before the step. The body may be empty.
    signal_run => post("/v1/runs/{run_id}/signals/{signal}", Need::RUN, signal)
        .of_run()
        .may_take::<SendSignal>()
        .gives::<wire::Run>(202, "The message was kept.")
        .missing("run")
        .fails(409, "The run is over or about to end.")
        .fails(429, "Too many messages wait for the run.");
    /// Runs a flow again from a step.
    ///
    /// What the steps before it gave in this run is taken over and costs nothing.
    rerun_flow => post("/v1/runs/{run_id}/rerun", Need::RUN, rerun)
        .of_run()
        .takes::<RerunFlow>()
        .gives::<wire::RunAccepted>(201, "The new run.")
        .missing("run")
        .fails(409, "The definition of a tool has changed, and `force` is not set.");
    /// Lists the steps of a run of a flow that have begun, oldest first.
    ///
    /// Of steps that are over only calls are listed.
    list_run_steps => get("/v1/runs/{run_id}/steps", Need::READ, steps)
        .of_run()
        .lists::<wire::RunStep>("The steps.")
        .missing("run");
}

async fn signal(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    params: Params,
    OptionalJsonBody(request): OptionalJsonBody<SendSignal>,
) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    access::run(&app.handle, &caller, Verb::Run, &key).await?;
    let signal = wharf_views::new_signal(segments.get("signal"), request.unwrap_or_default());
    let run = app.handle.flows().signal(&caller, &key, signal).await?;
    Ok(answer::json(StatusCode::ACCEPTED, &wharf_views::run_in_full(&app.handle, run).await?))
}

async fn rerun(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    params: Params,
    JsonBody(request): JsonBody<RerunFlow>,
) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    access::run(&app.handle, &caller, Verb::Run, &key).await?;
    let new = wharf_views::new_rerun(request);
    let accepted = app.handle.flows().rerun(&caller, &key, new).await?;
    Ok(answer::json(StatusCode::CREATED, &wharf_views::accepted(&accepted.run)))
}

async fn steps(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    let run = access::run(&app.handle, &caller, Verb::Read, &key).await?;
    let steps = app.handle.flows().steps(&run).await?;
    let items: Vec<_> = steps.iter().map(wharf_views::run_step).collect();
    answer::ok(&wire::Page { items, next_cursor: None })
}

async fn list(ApiCall { app, .. }: ApiCall, params: Params) -> Answer {
    let flows = app.handle.flows().list();
    let shown = |flow: &Flow| flow.newest().map(|newest| wharf_views::flow_listed(flow, newest));
    page::by_name(&params, page::FLOWS, flows, |flow| flow.id.as_str(), shown)
}

async fn add(
    ApiCall { app, caller }: ApiCall,
    DeepJsonBody(AddFlow { document, pin }): DeepJsonBody<AddFlow>,
) -> Answer {
    let new = NewFlow { document, pin };
    let (flow, version, findings) = app.handle.flows().add(&caller, new).await?;
    Ok(answer::json(StatusCode::CREATED, &wharf_views::flow(&flow, &version, &findings)))
}

async fn check(
    ApiCall { app, .. }: ApiCall,
    DeepJsonBody(CheckFlow { document }): DeepJsonBody<CheckFlow>,
) -> Answer {
    answer::ok(&wharf_views::flow_check(&app.handle.flows().check(&document)))
}

async fn show(ApiCall { app, .. }: ApiCall, segments: Segments) -> Answer {
    let (id, number) = named(&segments)?;
    let (flow, version) = app.handle.flows().get(&id, number)?;
    answer::ok(&wharf_views::flow(&flow, &version, &[]))
}

async fn remove(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let (id, number) = named(&segments)?;
    app.handle.flows().remove(&caller, &id, number.unwrap_or_default()).await?;
    answer::done()
}

/// The flow that a path names, and the version if it names one.
fn named(segments: &Segments) -> Result<(FlowId, Option<u32>), Fault> {
    let id = wharf_views::id("flow", segments.get("flow"))?;
    let number = match segments.get("version") {
        "" => None,
        text => Some(text.parse().map_err(|_| {
            Fault::invalid("version", "The field `version` is a whole number from 1.")
        })?),
    };
    Ok((id, number))
}
