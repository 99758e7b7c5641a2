//! Tasks: another name for runs, as peers of operators know them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use bytes::Bytes;
use wharf_domain::{Caller, Outcome, Run};
use wharf_vocab::{Code, Fault, RunStatus};
use wharf_web::params::SentTrace;
use wharf_wire::operator_v1::{NewTask, TaskStarted};

use super::{Answer, caller, read_any, unprocessable};
use crate::from_wire;
use crate::shared::SeatHub;

/// How long an answer is waited for, at most.
const WAIT_MAX: Duration = Duration::from_secs(30 * 60);

pub(super) async fn create(
    State(shared): State<Arc<SeatHub>>,
    offered: Option<Extension<Caller>>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let caller = caller(offered)?;
    let task: NewTask = match wharf_vocab::json::fit(read_any(&body)?, "The body") {
        Ok(task) => task,
        Err(fault) => return Ok(unprocessable(fault)),
    };
    let mut new = match from_wire::task(&shared, &caller, &task).await {
        Err(fault) if fault.is(Code::RequestInvalid) => return Ok(unprocessable(fault)),
        other => other?,
    };
    SentTrace { traceparent: new.traceparent, tracestate: new.tracestate } =
        SentTrace::of(&headers);
    let handle = &shared.options.handle;
    let detached = task.detach == Some(true);
    let wait = task.timeout_secs.map_or(WAIT_MAX, |secs| Duration::from_secs(secs).min(WAIT_MAX));
    let run = match detached {
        true => handle.runs().create(&caller, new).await?.run,
        false => {
            handle.runs().create_and_wait(&caller, new, wait + Duration::from_secs(10)).await?.run
        }
    };
    answer(&run)
}

fn answer(run: &Run) -> Answer {
    let run_id = run.key.run.to_string();
    let task_id = match run_id.strip_prefix("R-") {
        Some(rest) => format!("T-{rest}"),
        None => format!("T-{run_id}"),
    };
    let (status, result) = match &run.outcome {
        Some(Outcome::Succeeded { outputs }) => (StatusCode::OK, Some(outputs.clone())),
        Some(outcome) => {
            let fault = outcome.error().cloned();
            let unknown = || Fault::new(Code::CoreInternal, "The run has no outcome.");
            let fault = fault.unwrap_or_else(unknown);
            return Err(fault.with("run_id", run_id).with("task_id", task_id).into());
        }
        None => (StatusCode::ACCEPTED, None),
    };
    let shown = match run.status() {
        RunStatus::Succeeded => "succeeded",
        _ => "running",
    };
    let started = TaskStarted { task_id, run_id, status: shown.to_owned(), result };
    Ok((status, Json(started)).into_response())
}
