//! Runs: starting, showing, listing, canceling, removing.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use wharf_domain::{Caller, Run};
use wharf_engine::{NewRun, RunPlace, RunQuery};
use wharf_vocab::{Fault, Verb};
use wharf_web::params::SentTrace;
use wharf_wire::rest_v1::{self as wire, CancelRun, CreateRun, RunAccepted};

use super::table::{ApiCall, delete, get, post, routes};
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::{JsonBody, OptionalJsonBody};
use crate::cursor::{self, CursorList, Position};
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

routes! {
    "runs";
    /// Lists runs, newest first. Inputs, outputs and asks are left out, and so are runs of tools that
    /// the token does not cover.
    list_runs => get("/v1/runs", Need::READ, list)
        .of_runs()
        .page::<wire::Run>("A page of runs.");
    /// Starts a run. Repeating a request with the same key returns the same run.
    create_run => post("/v1/runs", Need::RUN, create)
        .starts_a_run()
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
    SentTrace { traceparent: new.traceparent, tracestate: new.tracestate } =
        SentTrace::of(&headers);
    begin(&app, &caller, new, wait).await
}

/// Starts a run, and waits for its end if that is wanted.
pub(super) async fn begin(
    app: &App,
    caller: &Caller,
    new: NewRun,
    wait: Option<Duration>,
) -> Answer {
    let mut run = app.handle.runs().create(caller, new).await?.run;
    if let Some(wait) = wait
        && !run.is_over()
    {
        run = over_or_as_it_is(app, &run, wait).await?;
    }
    Ok(match wait {
        Some(_) if run.is_over() => {
            let run = wharf_views::run_in_full(&app.handle, run).await?;
            answer::json(StatusCode::OK, &run)
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
    answer::ok(&wharf_views::run_in_full(&app.handle, run).await?)
}

async fn cancel(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    params: Params,
    OptionalJsonBody(request): OptionalJsonBody<CancelRun>,
) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    access::run(&app.handle, &caller, Verb::Run, &key).await?;
    let CancelRun { reason, force } = request.unwrap_or_default();
    let reason = reason.unwrap_or_default();
    let run = match force {
        true => app.handle.flows().force(&caller, &key, &reason).await?,
        false => app.handle.runs().cancel(&caller, &key, &reason).await?,
    };
    Ok(answer::json(StatusCode::ACCEPTED, &wharf_views::accepted(&run)))
}

async fn remove(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    access::run(&app.handle, &caller, Verb::Admin, &key).await?;
    app.handle.purges().purge(&caller, &key).await?;
    answer::done()
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let filter = from_wire::run_filter(&params, app.handle.now())?;
    let worlds = access::worlds(&caller, filter.world.as_ref())?;
    let mut query = RunQuery { limit: params.limit()?, ..filter.query()? };
    if let Some(place) = run_place(&params, page::RUNS)? {
        wharf_views::go_on(&mut query, place);
    }
    let within = (worlds.as_deref(), &*caller.rights);
    let (runs, next) = wharf_views::runs_within(&app.handle, query, within).await?;
    let last = next.map(|place| Position::Name(place.to_string()));
    let items = runs.iter().map(|run| wharf_views::listed(&app.handle, run)).collect();
    Ok(page::answer(page::RUNS, items, last))
}

/// Where the page of a list of runs begins.
pub(super) fn run_place(params: &Params, list: CursorList) -> Result<Option<RunPlace>, Fault> {
    Ok(match params.cursor(list)? {
        Some(Position::Name(place)) => {
            Some(RunPlace::parse(&place).ok_or_else(|| cursor::foreign(list))?)
        }
        Some(Position::Number(stored)) => Some(RunPlace { stored, ..RunPlace::FIRST }),
        None => None,
    })
}
