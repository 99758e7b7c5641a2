//! What a worker fetches and posts. Every route begins with the same check.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};
use wharf_domain::grant::WorkerScope;
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::{AttemptError, NewAsk};
use wharf_domain::{Audience, Level, Progress, Resolution, Run};
use wharf_engine::NewRun;
use wharf_vocab::limits::FILE_BYTES_MAX;
use wharf_vocab::{AskKind, Code, Executed, Fault, Object, RunStatus, ToolId};
use wharf_web::params::SentTrace;
use wharf_wire::operator_v1::{WorkerDegradation, WorkerProgress, WorkerPrompt, WorkerResult};

use super::call::{WorkerCall, arriving};
use super::{Answer, read, read_any, unprocessable};
use crate::credential::{FinalRecord, PastTask, TaskMatch, another_task};
use crate::shared::SeatHub;
use crate::task::{Final, Task, TaskPhase, already_final};
use crate::{asks, usage};

/// Largest result that a worker posts.
const SUBMIT_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Largest body around such a result.
const RESULT_BYTES_MAX: usize = SUBMIT_BYTES_MAX + 4 * 1024;
/// Largest body of other requests.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// How long a question or a child run is waited for in one request.
const WAIT_MAX_MS: u64 = 60_000;

/// The task, if it is still open; else why not.
async fn open(shared: &SeatHub, found: TaskMatch) -> Result<Arc<Task>, Fault> {
    match found {
        TaskMatch::Task(task) if task.stand() == TaskPhase::Open => Ok(task),
        TaskMatch::Task(task) => Err(gone(shared, &PastTask::of(&task)).await),
        TaskMatch::Past(past) => Err(gone(shared, &past).await),
    }
}

/// Why a task takes nothing any more.
async fn gone(shared: &SeatHub, past: &PastTask) -> Fault {
    let run = match &past.run {
        Some(key) => shared.options.handle.runs().get(key).await.ok(),
        None => None,
    };
    let waits =
        |run: &Arc<Run>| run.active.as_ref().is_some_and(|active| active.number == past.attempt);
    if past.given == FinalRecord::Journaled && run.as_ref().is_some_and(waits) {
        let message = "The core was started a moment ago and takes the task up again; try again.";
        return Fault::new(Code::CoreBusy, message);
    }
    let later = run.as_ref().is_some_and(|run| run.attempt > past.attempt);
    if later {
        let message = "A later attempt has taken this one's place.";
        return Fault::new(Code::WorkerSuperseded, message);
    }
    let canceled = run.is_some_and(|run| {
        run.status() == RunStatus::Canceled || (!run.is_over() && run.cancel.is_some())
    });
    let fault = crate::task::over();
    if canceled { fault.with("canceled", true) } else { fault }
}

pub(super) async fn prompt(State(shared): State<Arc<SeatHub>>, call: WorkerCall) -> Answer {
    let (found, _) = call.check(&shared, &WorkerScope::PromptRead)?;
    let task = open(&shared, found).await?;
    let data = task.attempt.data();
    let mut inputs = match data.inputs_with_addresses().await {
        Ok(inputs) => inputs,
        Err(fault) => {
            // A file that is not what it was when the run was accepted will not be so again. The
            // worker knows nothing of its task yet, so it has done nothing.
            if !fault.retryable {
                task.fail(AttemptError::Failed(fault.clone(), Executed::No)).await?;
            }
            return Err(fault.into());
        }
    };
    let outputs = data.output_addresses()?;
    let text = |inputs: &Object, name: &str| inputs.get(name)?.as_str().map(str::to_owned);
    let prompt = text(&inputs, "prompt")
        .unwrap_or_else(|| serde_json::to_string(&inputs).unwrap_or_default());
    let system = text(&inputs, "system");
    let context = inputs.remove("context");
    let answer = WorkerPrompt {
        task_id: task.id.clone(),
        attempt: task.number(),
        agent: task.agent().to_owned(),
        system,
        prompt,
        context,
        inputs: Some(inputs).filter(|inputs| !inputs.is_empty()),
        outputs: (!outputs.is_empty())
            .then(|| outputs.into_iter().map(|(name, at)| (name, at.into())).collect()),
    };
    Ok(Json(answer).into_response())
}

pub(super) async fn submit(State(shared): State<Arc<SeatHub>>, call: WorkerCall) -> Answer {
    let (found, _) = call.check(&shared, &WorkerScope::ResultWrite)?;
    let ok = call.asked().ok.unwrap_or(true);
    let kind = call.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let is_json = kind.starts_with("application/json") || kind.contains("+json");
    let body = call.bytes(SUBMIT_BYTES_MAX).await?;
    let value = if is_json || wants_json(&found) {
        read_any(&body)?
    } else {
        let text = String::from_utf8(body.into()).map_err(|_| {
            Fault::new(Code::RequestInvalid, "The body is neither JSON nor UTF-8 text.")
        })?;
        Value::String(text)
    };
    conclude(&shared, found, Final { value, ok, cost_micro: 0 }).await
}

/// Whether a tool's outputs have a schema, so that they must be JSON.
fn wants_json(found: &TaskMatch) -> bool {
    match found {
        TaskMatch::Task(task) => task.has_output_schema(),
        TaskMatch::Past(_) => false,
    }
}

pub(super) async fn result(State(shared): State<Arc<SeatHub>>, call: WorkerCall) -> Answer {
    // The credential is looked at before the body is believed to be anything.
    let (found, grant) = call.check(&shared, &WorkerScope::ResultWrite)?;
    let given: WorkerResult = read(&call.bytes(RESULT_BYTES_MAX).await?)?;
    if given.task_id != grant.task_id {
        return Err(another_task().into());
    }
    if given.attempt.is_some_and(|attempt| attempt != grant.attempt) {
        let message = "A later attempt has taken this one's place.";
        return Err(Fault::new(Code::WorkerSuperseded, message).into());
    }
    let cost_micro = given.cost_micro.unwrap_or(0);
    if cost_micro > 0 {
        // What it cost counts, whatever becomes of the result.
        usage::cost(&shared, &found, cost_micro).await?;
    }
    conclude(&shared, found, Final { value: given.value, ok: given.ok, cost_micro }).await
}

/// What a worker used up. It may come before the final or after it, as often as it changes.
pub(super) async fn stats(State(shared): State<Arc<SeatHub>>, call: WorkerCall) -> Answer {
    let (found, grant) = call.check(&shared, &WorkerScope::ResultWrite)?;
    let stats = read_any(&call.bytes(BODY_BYTES_MAX).await?)?;
    if !stats.is_object() {
        return Err(Fault::new(Code::RequestInvalid, "The body is an object.").into());
    }
    match &found {
        TaskMatch::Task(task) if task.stand() == TaskPhase::Open => {
            usage::note(task, stats).await?
        }
        TaskMatch::Task(task) => {
            usage::note_late(&shared, &PastTask::of(task), &task.id, &stats).await?;
        }
        TaskMatch::Past(past) => usage::note_late(&shared, past, &grant.task_id, &stats).await?,
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Something did not work as the worker wanted, and it helped itself in another way.
pub(super) async fn degradation(State(shared): State<Arc<SeatHub>>, call: WorkerCall) -> Answer {
    let (found, _) = call.check(&shared, &WorkerScope::ResultWrite)?;
    let task = open(&shared, found).await?;
    let told: WorkerDegradation = read(&call.bytes(BODY_BYTES_MAX).await?)?;
    let WorkerDegradation { tool, error, fallback, note } = told;
    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
    let text = format!("degraded: {tool} failed: {error}; instead: {fallback}{note}");
    task.attempt.progress(vec![Progress::Log { level: Level::Warn, text }]).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Takes a final; the first stands.
async fn conclude(shared: &Arc<SeatHub>, found: TaskMatch, given: Final) -> Answer {
    match found {
        TaskMatch::Task(task) => {
            // Whoever breaks off here must not leave a final that is neither kept nor given up.
            let shared = Arc::clone(shared);
            let kept = tokio::spawn(async move {
                task.conclude(given).await?;
                asks::ended(&shared, &task);
                Ok::<_, Fault>(())
            });
            let broken = |_| Fault::new(Code::CoreInternal, "The result could not be kept.");
            match kept.await.map_err(broken)? {
                Ok(()) => {}
                // A worker may mend what it sent, so it is told as a mistake of its own.
                Err(fault) if fault.is(Code::ToolInvalidOutput) => {
                    return Ok(unprocessable(fault));
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        TaskMatch::Past(past) => match past.given(&shared.options.handle).await? {
            Some(first) if first == given.digest() => {}
            Some(_) => return Err(already_final().into()),
            None => return Err(gone(shared, &past).await.into()),
        },
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn progress(State(shared): State<Arc<SeatHub>>, call: WorkerCall) -> Answer {
    let (found, _) = call.check(&shared, &WorkerScope::ResultWrite)?;
    let task = open(&shared, found).await?;
    let told: WorkerProgress = read(&call.bytes(BODY_BYTES_MAX).await?)?;
    if let Some(cost) = told.cost_micro {
        task.attempt.report_cost(cost).await?;
    }
    let mut pieces = Vec::new();
    if let Some(text) = told.text {
        let channel = told.channel.unwrap_or_else(|| "status".to_owned());
        pieces.push(Progress::Text { channel, text });
    }
    if told.phase.is_some() || told.fraction.is_some() {
        let fraction = told.fraction.filter(|it| it.is_finite()).map(|it| it.clamp(0.0, 1.0));
        let phase = told.phase.unwrap_or_else(|| "checkpoint".to_owned());
        pieces.push(Progress::Phase { phase, fraction });
    }
    if !pieces.is_empty() {
        task.attempt.progress(pieces).await?;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn artifact(State(shared): State<Arc<SeatHub>>, call: WorkerCall) -> Answer {
    let (found, _) = call.check(&shared, &WorkerScope::ArtifactWrite)?;
    let task = open(&shared, found).await?;
    let missing =
        |field: &str, message: &str| Fault::new(Code::RequestInvalid, message).with("field", field);
    let asked = call.asked();
    let name = asked.name.as_deref().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| missing("name", "`name` says which file it is."))?;
    let length =
        call.length().ok_or_else(|| missing("content-length", "The length must be told."))?;
    if length > FILE_BYTES_MAX {
        let message = format!("A file may have {FILE_BYTES_MAX} bytes.");
        return Err(Fault::new(Code::RequestTooLarge, message).into());
    }
    let stream = arriving(call.body);
    let written = task.attempt.data().write(name, length, stream).await;
    written.map_err(|fault| {
        // The name is the worker's own, and so is the mistake.
        let unfit = || missing("name", "`name` cannot be the name of a file here.");
        if fault.is(Code::ToolInvalidOutput) { unfit() } else { fault }
    })?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/worker/ask`
#[derive(Debug, Deserialize)]
struct WorkerQuestion {
    question: String,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    schema: Option<Value>,
    #[serde(default)]
    wait_ms: Option<u64>,
}

pub(super) async fn ask(State(shared): State<Arc<SeatHub>>, call: WorkerCall) -> Answer {
    let (found, _) = call.check(&shared, &WorkerScope::Ask)?;
    let task = open(&shared, found).await?;
    let question: WorkerQuestion = read(&call.bytes(BODY_BYTES_MAX).await?)?;
    let key = question.key.unwrap_or_else(|| question.question.chars().take(100).collect());
    let answer = task.await_answer(&key);
    task.attempt
        .raise(NewAsk {
            attempt_id: task.attempt.dispatch().attempt_id.clone(),
            kind: AskKind::Question,
            key: key.clone(),
            title: question.question,
            schema: question.schema,
            audience: Audience::Any,
            deadline: None,
            escalates: None,
            detail: None,
            by: Vec::new(),
        })
        .await?;
    let wait = Duration::from_millis(question.wait_ms.unwrap_or(WAIT_MAX_MS).min(WAIT_MAX_MS));
    match tokio::time::timeout(wait, answer).await {
        Ok(Ok(resolution)) => Ok(Json(told(&key, &resolution)).into_response()),
        Ok(Err(_)) | Err(_) => {
            let body = json!({ "key": key, "status": "pending" });
            Ok((StatusCode::ACCEPTED, Json(body)).into_response())
        }
    }
}

fn told(key: &str, resolution: &Resolution) -> Value {
    let mut answer = json!({ "key": key, "status": resolution.as_str() });
    match resolution {
        Resolution::Answered { value } => answer["value"] = value.clone(),
        Resolution::OffScript { text } => answer["text"] = text.clone().into(),
        _ => {}
    }
    answer
}

/// `POST /v1/worker/invoke`
#[derive(Debug, Deserialize)]
struct Invocation {
    tool: String,
    #[serde(default)]
    inputs: Object,
    #[serde(default)]
    idempotency_key: Option<String>,
    #[serde(default)]
    wait_ms: Option<u64>,
}

pub(super) async fn invoke(State(shared): State<Arc<SeatHub>>, call: WorkerCall) -> Answer {
    let scope = WorkerScope::Invoke(ToolPattern::any());
    let (found, grant) = call.check(&shared, &scope)?;
    let task = open(&shared, found).await?;
    let SentTrace { traceparent, tracestate } = SentTrace::of(&call.headers);
    let wanted: Invocation = read(&call.bytes(BODY_BYTES_MAX).await?)?;
    let tool = ToolId::new(&wanted.tool)
        .map_err(|error| Fault::new(Code::RequestInvalid, format!("{error}.")))?;
    if !grant.may_invoke(&tool) {
        let message = format!("This credential does not let its worker call {tool}.");
        return Err(Fault::new(Code::PermissionDenied, message).into());
    }
    let caller = task.attempt.caller(grant.tools());
    let world = task.run().world.clone();
    let idempotency_key = wanted.idempotency_key;
    let new = NewRun::new(tool, wanted.inputs, world);
    let new = NewRun { idempotency_key, traceparent, tracestate, ..new };
    let accepted = task.attempt.invoke(&caller, new).await?;
    let wait = Duration::from_millis(wanted.wait_ms.unwrap_or(WAIT_MAX_MS).min(WAIT_MAX_MS));
    let run = shared.options.handle.runs().wait(&accepted.run.key, wait).await?;
    let mut body = json!({ "run_id": run.key.run.as_str(), "status": run.status().as_str() });
    if let Some(outcome) = &run.outcome {
        match outcome {
            wharf_domain::Outcome::Succeeded { outputs } => {
                body["outputs"] = outputs.clone().into()
            }
            other => {
                if let Some(fault) = other.error() {
                    body["error"] = json!({ "code": fault.code, "message": fault.message });
                }
            }
        }
    }
    let status = if run.is_over() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(body)).into_response())
}
