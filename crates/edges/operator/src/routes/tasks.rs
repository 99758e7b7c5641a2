//! Tasks: another name for runs, as peers of operators know them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use serde_json::Value;
use wharf_domain::{Caller, Outcome, Run};
use wharf_engine::{NewRun, RunSeats};
use wharf_vocab::{
    Code, Durability, Fault, Object, RunId, RunStatus, SeatId, ToolId, Verb, WorldId,
};
use wharf_wire::operator_v1::{NewTask, TaskStarted};

use super::{Answer, Refused, caller, read_any, seats};
use crate::edge::{Shared, random_hex};

/// How long an answer is waited for, at most.
const WAIT_MAX: Duration = Duration::from_secs(30 * 60);

pub(super) async fn create(
    State(shared): State<Arc<Shared>>,
    offered: Option<Extension<Caller>>,
    body: Bytes,
) -> Answer {
    let caller = caller(offered)?;
    let task: NewTask = match wharf_vocab::json::fit(read_any(&body)?, "The body") {
        Ok(task) => task,
        Err(fault) => return Ok(unprocessable(fault)),
    };
    let new = match request(&shared, &caller, &task).await {
        Err(fault) if fault.is(Code::RequestInvalid) => return Ok(unprocessable(fault)),
        other => other?,
    };
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

/// What can be read and makes no sense.
fn unprocessable(fault: Fault) -> Response {
    let mut response = Refused::from(fault).into_response();
    *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    response
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

async fn request(shared: &Shared, caller: &Caller, task: &NewTask) -> Result<NewRun, Fault> {
    let wrong = |field: &str, why: &str| {
        let message = format!("`{field}` cannot be used: {why}.");
        Fault::new(Code::RequestInvalid, message).with("field", field)
    };
    let agent = match (&task.agent, &task.blueprint) {
        (Some(agent), _) => agent.as_str(),
        (None, Some(blueprint)) => blueprint.name().ok_or_else(|| {
            wrong("blueprint", "it is neither a name nor {\"kind\": \"id\", \"id\": …}")
        })?,
        (None, None) => return Err(wrong("agent", "it is missing")),
    };
    let seat = |field: &str, text: &Option<String>| {
        let parse = |text: &String| SeatId::new(text).map_err(|_| wrong(field, "it is no seat"));
        text.as_ref().map(parse).transpose()
    };
    let world = task.world.as_deref().unwrap_or("default");
    let world = WorldId::new(world).map_err(|error| wrong("world", &error.to_string()))?;
    let tool = match seat("operator_sid", &task.operator_sid)? {
        Some(seat) => {
            let def = seats::agent(&seat, agent)?;
            let tool = def.tool.clone();
            // Nobody adds to what a seat executes who may not run it.
            caller.rights.check(Verb::Run, &world)?;
            caller.rights.check_tool(&tool)?;
            shared.add_tool(&seat, def).await?;
            tool
        }
        None => ToolId::new(agent).map_err(|error| wrong("agent", &error.to_string()))?,
    };
    let inputs = match task.input.clone().or_else(|| task.init_ctx.clone()) {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(inputs)) => inputs,
        Some(text @ Value::String(_)) => Object::from_iter([("prompt".to_owned(), text)]),
        Some(other) => Object::from_iter([("value".to_owned(), other)]),
    };
    let run_id = match &task.run_id {
        Some(id) => RunId::new(id).map_err(|error| wrong("run_id", &error.to_string()))?,
        None => RunId::new(format!("R-{}", random_hex(16)?))
            .map_err(|_| Fault::new(Code::CoreInternal, "The run could not be named."))?,
    };
    let durability = match task.durability.as_deref() {
        None => None,
        Some(word) => {
            Some(Durability::parse(word).ok_or_else(|| wrong("durability", "it is unknown"))?)
        }
    };
    let hooks = task.operator.clone().unwrap_or_default();
    Ok(NewRun {
        run_id: Some(run_id),
        timeout_ms: task.timeout_secs.or(task.ttl_secs).map(|secs| secs.saturating_mul(1_000)),
        durability,
        seats: RunSeats {
            gate: seat("operator.spawn_hook_id", &hooks.spawn_hook_id)?,
            senior: seat("operator.senior_bridge_id", &hooks.senior_bridge_id)?,
            deadline_ms: hooks.deadline_ms,
        },
        ..NewRun::new(tool, inputs, world)
    })
}
