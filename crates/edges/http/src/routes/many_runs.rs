//! Many runs at once: counting, canceling and exporting them, what a run started, and running it
//! again.

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use futures::{StreamExt as _, stream};
use wharf_engine::{StatsBy, StatsQuery};
use wharf_views::{ExportFormat, RunExport, TreeQuery};
use wharf_vocab::{Timestamp, ToolId, Verb, quantity};
use wharf_web::params::SentTrace;
use wharf_wire::rest_v1::{self as wire, CancelRuns, OrderPurge, PurgeRuns, RunAccepted, RunAgain};

use super::runs::{begin, run_place};
use super::table::{ApiCall, get, post, routes};
use super::to_its_end;
use crate::access::{self, Need};
use crate::answer::{self, Answer};
use crate::body::{JsonBody, OptionalJsonBody};
use crate::cursor::{self, Position};
use crate::params::{Params, Segments};
use crate::{from_wire, page};

routes! {
    "runs";
    /// Counts the runs that the token covers, exactly up to 10,000.
    count_runs => get("/v1/runs/count", Need::READ, count)
        .of_runs()
        .gives::<wire::RunCount>(200, "How many runs there are.");
    /// Sends all runs that fit, newest first, as lines of JSON or as CSV. An export that breaks off
    /// has no last line.
    export_runs => get("/v1/runs/export", Need::READ, export)
        .query::<String>("format", "`jsonl` or `csv`; `jsonl` when absent.")
        .of_runs()
        .sends(200, "text/csv", "The runs.")
        .sends(200, "application/x-ndjson", "The runs.");
    /// Cancels every run in progress that fits and was accepted before a fixed time. With `dry` they
    /// are only counted.
    cancel_runs => post("/v1/runs/cancel", Need::RUN, cancel)
        .takes::<CancelRuns>()
        .gives::<wire::CanceledRuns>(200, "How many runs were asked to stop.");
    /// Removes every run that has ended, fits and was accepted before a fixed time, up to 1,000 at
    /// once. With `dry` they are only counted. What they cost stays in the sums.
    purge_runs => post("/v1/runs/purge", Need::ADMIN, purge)
        .takes::<PurgeRuns>()
        .gives::<wire::PurgedRuns>(200, "How many runs were removed.");
    /// Orders every run to be removed that has ended, fits and was accepted before a fixed time,
    /// however many there are. The order is kept: it is gone on with after a restart of the core.
    order_purge => post("/v1/purges", Need::ADMIN, order_purge)
        .takes::<OrderPurge>()
        .gives::<wire::Purge>(202, "The order was written down.");
    /// Lists orders to remove runs, newest first: those under way, and of each world the last 16
    /// that have ended.
    list_purges => get("/v1/purges", Need::ADMIN, purges)
        .lists::<wire::Purge>("The orders.");
    /// Shows how far an order to remove runs has come.
    show_purge => get("/v1/purges/{purge_id}", Need::ADMIN, show_purge)
        .gives::<wire::Purge>(200, "The order.")
        .missing("order");
    /// Calls an order to remove runs off. What was removed stays removed. An order that has ended
    /// stays as it is.
    cancel_purge => post("/v1/purges/{purge_id}/cancel", Need::ADMIN, cancel_purge)
        .gives::<wire::Purge>(200, "The order as it is now.")
        .missing("order");
    /// Counts runs by the time they were accepted.
    run_stats => get("/v1/stats/runs", Need::READ, stats)
        .of_time()
        .query::<String>("step", "The length of an interval, such as `10s`, `1m` or `1h`; `1m` when absent.")
        .query::<String>("by", "What makes a row: `status`, `tool` or `world`; `status` when absent.")
        .query::<String>("world", "Only runs of this world.")
        .query::<String>("tool", "Only runs of this tool.")
        .gives::<wire::RunStats>(200, "The counts.");
    /// Shows what a run started, directly and further down.
    run_tree => get("/v1/runs/{run_id}/tree", Need::READ, tree)
        .of_run()
        .query::<u32>("depth", "How far down to look, 1 to 5; 3 when absent.")
        .query::<u32>("limit", "Direct children on a page, 1 to 200.")
        .query::<String>("cursor", "`next_cursor` of the previous page.")
        .gives::<wire::RunTree>(200, "The run and the runs below it.")
        .missing("run");
    /// Runs again what a run did, from what was stored of it, with changes if there are some.
    run_again => post("/v1/runs/{run_id}/again", Need::RUN, again)
        .of_run()
        .starts_a_run()
        .may_take::<RunAgain>()
        .gives::<wire::Run>(200, "The run has ended; only with `wait`.")
        .gives::<RunAccepted>(202, "The run was accepted and is in progress.")
        .fails(402, "The budget does not cover the run.")
        .missing("run")
        .fails(422, "The inputs do not fit the tool, or were not kept whole.");
    /// Shows the files that a run read and wrote, and the runs they connect it with.
    run_lineage => get("/v1/runs/{run_id}/lineage", Need::READ, lineage)
        .of_run()
        .gives::<wire::RunLineage>(200, "The files and runs.")
        .missing("run");
}

const STEP_DEFAULT_MS: u64 = 60_000;
const DEPTH_DEFAULT: u64 = 3;
const DEPTH_MAX: u64 = 5;
/// How far back counts go when nobody says.
const STATS_BACK_MS: u64 = 3_600_000;

async fn count(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let filter = from_wire::run_filter(&params, app.handle.now())?;
    access::worlds(&caller, filter.world.as_ref())?;
    let count = wharf_views::run_count(&app.handle, &caller, filter.query()?).await?;
    answer::ok(&count)
}

async fn stats(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let now = app.handle.now();
    let (since, until) = from_wire::span(&params, now)?;
    let world = params.world()?;
    access::worlds(&caller, world.as_ref())?;
    let step = |text: &str| quantity::duration_ms(text).filter(|ms| *ms >= 1_000).ok_or(());
    let by = params.parsed("by", "`status`, `tool` or `world`", |text| match text {
        "status" => Ok(StatsBy::Status),
        "tool" => Ok(StatsBy::Tool),
        "world" => Ok(StatsBy::World),
        _ => Err(()),
    })?;
    // What was accepted in this very moment counts, too.
    let until = until.unwrap_or(Timestamp(now.0 + 1));
    let query = StatsQuery {
        within: std::sync::Arc::clone(&caller.rights),
        world,
        tool: params.parsed("tool", "a tool id of the form provider/name", |t| ToolId::new(t))?,
        since: since.unwrap_or(Timestamp(until.0.saturating_sub(STATS_BACK_MS))),
        until,
        step_ms: params
            .parsed("step", "a duration of 1s or more", step)?
            .unwrap_or(STEP_DEFAULT_MS),
        by: by.unwrap_or_default(),
    };
    answer::ok(&wharf_views::run_stats(&app.handle, query).await?)
}

async fn cancel(
    ApiCall { app, caller }: ApiCall,
    JsonBody(request): JsonBody<CancelRuns>,
) -> Answer {
    let query = wharf_views::cancel_filter(&request)?;
    let worlds = access::worlds_for(&caller, Verb::Run, request.world.as_ref())?;
    let handle = app.handle.clone();
    let work =
        async move { wharf_views::cancel_runs(&handle, &caller, (query, worlds), &request).await };
    answer::ok(&to_its_end(work).await?)
}

async fn purge(ApiCall { app, caller }: ApiCall, JsonBody(request): JsonBody<PurgeRuns>) -> Answer {
    let query = wharf_views::purge_filter(&request)?;
    let worlds = access::worlds_for(&caller, Verb::Admin, request.world.as_ref())?;
    let handle = app.handle.clone();
    let work =
        async move { wharf_views::purge_runs(&handle, &caller, (query, worlds), &request).await };
    answer::ok(&to_its_end(work).await?)
}

async fn order_purge(
    ApiCall { app, caller }: ApiCall,
    JsonBody(order): JsonBody<OrderPurge>,
) -> Answer {
    let request = PurgeRuns::from(order);
    let query = wharf_views::purge_filter(&request)?;
    let worlds = access::worlds_for(&caller, Verb::Admin, request.world.as_ref())?;
    let handle = app.handle.clone();
    let work =
        async move { wharf_views::order_purge(&handle, &caller, (query, worlds), &request).await };
    Ok(answer::json(StatusCode::ACCEPTED, &to_its_end(work).await?))
}

async fn purges(ApiCall { app, caller }: ApiCall) -> Answer {
    let items = wharf_views::purges(&app.handle, &caller).await?;
    answer::ok(&wire::Page { items, next_cursor: None })
}

async fn show_purge(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let view = app.handle.purges().purge_order(&caller, segments.get("purge_id"))?;
    answer::ok(&wharf_views::purge(&app.handle, &caller, &view).await?)
}

async fn cancel_purge(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let (handle, id) = (app.handle.clone(), segments.get("purge_id").to_owned());
    let work = async move {
        let view = handle.purges().cancel_purge(&caller, &id).await?;
        wharf_views::purge(&handle, &caller, &view).await
    };
    answer::ok(&to_its_end(work).await?)
}

async fn tree(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    let run = access::run(&app.handle, &caller, Verb::Read, &key).await?;
    let depth =
        |text: &str| text.parse().ok().filter(|depth| (1..=DEPTH_MAX).contains(depth)).ok_or(());
    let depth = params.parsed("depth", "a number from 1 to 5", depth)?.unwrap_or(DEPTH_DEFAULT);
    let wanted = TreeQuery {
        depth: u32::try_from(depth).unwrap_or(1),
        limit: params.limit()?,
        after: run_place(&params, page::TREE)?,
    };
    let (items, next) = wharf_views::run_tree(&app.handle, &caller, &key, wanted).await?;
    let next = next.map(|place| cursor::write(page::TREE, &Position::Name(place.to_string())));
    let run = wharf_views::listed(&app.handle, &run.summary());
    answer::ok(&wire::RunTree { run, items, next_cursor: next })
}

async fn again(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    params: Params,
    headers: HeaderMap,
    OptionalJsonBody(request): OptionalJsonBody<RunAgain>,
) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    let wait = params.wait(app.options.limits.wait_max)?;
    let changes = wharf_views::again(request.unwrap_or_default())?;
    let run = access::run(&app.handle, &caller, Verb::Run, &key).await?;
    // Whoever runs it again uses what it was given, so it takes the right to look at it.
    access::world(&caller, Verb::Read, &key.world)?;
    let mut new = app.handle.runs().again(&run, changes).await?;
    SentTrace { traceparent: new.traceparent, tracestate: new.tracestate } =
        SentTrace::of(&headers);
    begin(&app, &caller, new, wait).await
}

async fn lineage(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    access::run(&app.handle, &caller, Verb::Read, &key).await?;
    let lineage = app.handle.files().lineage(&caller, &key).await?;
    answer::ok(&wharf_views::lineage(&key, &lineage))
}

async fn export(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let filter = from_wire::run_filter(&params, app.handle.now())?;
    let worlds = access::worlds(&caller, filter.world.as_ref())?;
    let format = params.parsed("format", "`jsonl` or `csv`", |text| match text {
        "jsonl" => Ok(ExportFormat::Lines),
        "csv" => Ok(ExportFormat::Csv),
        _ => Err(()),
    })?;
    let format = format.unwrap_or_default();
    let export = RunExport::new(app.handle.clone(), caller, worlds, filter.query()?, format);
    let pages = stream::unfold(export, |mut export| async move {
        let page = export.next().await?;
        Some((page, export))
    });
    let mut response = Response::new(Body::from_stream(pages.boxed()));
    let (kind, name) = match format {
        ExportFormat::Lines => ("application/x-ndjson", "attachment; filename=\"runs.jsonl\""),
        ExportFormat::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"runs.csv\""),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static(name));
    Ok(response)
}
