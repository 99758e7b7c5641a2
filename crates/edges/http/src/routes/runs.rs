//! Runs: starting, showing, listing, canceling, removing.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use wharf_domain::{Rights, Run, RunSummary};
use wharf_engine::{RunPage, RunPlace, RunQuery};
use wharf_vocab::{Fault, RunStatus, ToolId, Verb, WorldId};
use wharf_wire::rest_v1::{self as wire, CancelRun, CreateRun, RunAccepted};

use super::table::{ApiCall, delete, get, post, routes};
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::{JsonBody, OptionalJsonBody};
use crate::cursor::{self, Position};
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

routes! {
    "runs";
    /// Lists runs, newest first. Inputs, outputs and asks are left out, and so are runs of tools that
    /// the token does not cover.
    list_runs => get("/v1/runs", Need::READ, list)
        .query::<String>("world", "Only runs of this world.")
        .query::<String>("tool", "Only runs of this tool.")
        .query::<String>("status", "Only runs in this status.")
        .of_time()
        .page::<wire::Run>("A page of runs.");
    /// Starts a run. Repeating a request with the same key returns the same run.
    create_run => post("/v1/runs", Need::RUN, create)
        .query::<String>("wait",
            "How long to wait for the run to end, such as `500ms`, `30s` or `2m`.")
        .header::<String>("traceparent",
            "The trace the run belongs to, in the format of W3C Trace Context.")
        .takes::<CreateRun>()
        .gives::<wire::Run>(200, "The run has ended; only with `wait`.")
        .gives::<RunAccepted>(202, "The run was accepted and is in progress.")
        .fails(402, "The budget does not cover the run.")
        .fails(403, "This token does not have the right.")
        .missing("tool or world")
        .fails(409, "The id or key was used for a different request.")
        .fails(413, "The body is too large.")
        .fails(422, "The inputs do not fit the tool.");
    /// Shows a run.
    show_run => get("/v1/runs/{run_id}", Need::READ, show)
        .of_run()
        .gives::<wire::Run>(200, "The run.")
        .missing("run");
    /// Removes a run that has ended, with its inputs, outputs and progress.
    remove_run => delete("/v1/runs/{run_id}", Need::ADMIN, remove)
        .of_run()
        .says(204, "The run was removed. Its audit records remain.")
        .missing("run")
        .fails(409, "The run has not ended.");
    /// Cancels a run. A run that has ended does not change.
    cancel_run => post("/v1/runs/{run_id}/cancel", Need::RUN, cancel)
        .of_run()
        .may_take::<CancelRun>()
        .gives::<RunAccepted>(202, "The run is stopping or has ended.")
        .missing("run");
}

async fn create(
    ApiCall { app, caller }: ApiCall,
    params: Params,
    headers: HeaderMap,
    JsonBody(request): JsonBody<CreateRun>,
) -> Answer {
    let wait = params.wait(app.options.limits.wait_max)?;
    let mut new = wharf_views::new_run(request)?;
    let trace = headers.get("traceparent").and_then(|value| value.to_str().ok());
    new.traceparent = trace.map(str::to_owned);
    let mut run = app.handle.runs().create(&caller, new).await?.run;
    if let Some(wait) = wait
        && !run.is_over()
    {
        run = over_or_as_it_is(&app, &run, wait).await?;
    }
    Ok(match wait {
        Some(_) if run.is_over() => {
            let run = app.handle.runs().with_inputs(run).await?;
            answer::json(StatusCode::OK, &wharf_views::run(&run))
        }
        _ => answer::json(StatusCode::ACCEPTED, &wharf_views::accepted(&run)),
    })
}

/// Waits for a run's end, but not longer than the core goes on.
async fn over_or_as_it_is(app: &App, run: &Run, wait: Duration) -> Result<Arc<Run>, Fault> {
    tokio::select! {
        waited = app.handle.runs().wait(&run.key, wait) => waited,
        () = app.stops.draining.cancelled() => app.handle.runs().get(&run.key).await,
    }
}

async fn show(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    let run = access::run(&app.handle, &caller, Verb::Read, &key).await?;
    let run = app.handle.runs().with_inputs(run).await?;
    answer::ok(&wharf_views::run(&run))
}

async fn cancel(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    params: Params,
    OptionalJsonBody(request): OptionalJsonBody<CancelRun>,
) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    access::run(&app.handle, &caller, Verb::Run, &key).await?;
    let reason = request.and_then(|request| request.reason).unwrap_or_default();
    let run = app.handle.runs().cancel(&caller, &key, &reason).await?;
    Ok(answer::json(StatusCode::ACCEPTED, &wharf_views::accepted(&run)))
}

async fn remove(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    access::run(&app.handle, &caller, Verb::Admin, &key).await?;
    app.handle.runs().purge(&caller, &key).await?;
    answer::done()
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let worlds = access::worlds(&caller, params.world()?.as_ref())?;
    let (since, until) = from_wire::span(&params, app.handle.now())?;
    let after = match params.cursor(page::RUNS)? {
        Some(Position::Name(place)) => {
            Some(RunPlace::parse(&place).ok_or_else(|| cursor::foreign(page::RUNS))?)
        }
        Some(Position::Number(stored)) => Some(RunPlace { stored, ..RunPlace::FIRST }),
        None => None,
    };
    let query = RunQuery {
        // Several worlds are sorted out below.
        world: worlds.as_ref().filter(|worlds| worlds.len() == 1).map(|worlds| worlds[0].clone()),
        tool: params.parsed("tool", "a tool id of the form provider/name", |t| ToolId::new(t))?,
        status: params
            .parsed("status", "the status of a run", |text| RunStatus::parse(text).ok_or(()))?,
        before: after.map(|place| place.stored),
        memory_before: after.map(|place| place.memory),
        since,
        until,
        grant: None,
        limit: params.limit()?,
    };
    let (runs, next) = page_within(&app, query, (worlds.as_deref(), &caller.rights)).await?;
    let last = next.map(|place| Position::Name(place.to_string()));
    Ok(page::answer(page::RUNS, runs.iter().map(wharf_views::summary).collect(), last))
}

/// A page with runs of these worlds and of tools within these rights only. It may be shorter than
/// asked for; it is empty only if there is nothing more.
async fn page_within(
    app: &App,
    mut query: RunQuery,
    (worlds, rights): (Option<&[WorldId]>, &Rights),
) -> Result<(Vec<RunSummary>, Option<RunPlace>), Fault> {
    if worlds.is_some_and(<[WorldId]>::is_empty) {
        return Ok((Vec::new(), None));
    }
    loop {
        let RunPage { mut runs, places, next } = app.handle.runs().list(query.clone()).await?;
        runs.retain(|run| {
            worlds.is_none_or(|worlds| worlds.contains(&run.key.world))
                && rights.check_tool(&run.tool).is_ok()
        });
        let next = next.and(places.last().copied());
        match next {
            Some(place) if runs.is_empty() => {
                query.before = Some(place.stored);
                query.memory_before = Some(place.memory);
            }
            _ => return Ok((runs, next)),
        }
    }
}
