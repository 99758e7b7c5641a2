//! From what waits for a seat to messages.

use serde_json::{Value, json};
use wharf_domain::scope::ReadObject;
use wharf_domain::{Ask, Notice, Outcome, Run};
use wharf_engine::Handle;
use wharf_vocab::{AskKind, Timestamp, ToolId};
use wharf_wire::operator_v1::{CoreMessage, Pending, PendingFile, WorkerKind};

use crate::options::{Facts, OperatorEdgeOptions, fill};
use crate::request::RequestId;
use crate::task::Task;

/// The task of an ask. Asks of older cores do not know theirs.
pub(crate) fn ask_task_id(ask: &Ask) -> String {
    let unknown = || format!("ST-{}", ask.spec.ask_id);
    ask.spec.task.as_ref().map_or_else(unknown, |task| task.task_id.clone())
}

/// What is executed, by the name under which it was asked for: a seat's own tools are known by
/// their names alone.
pub(crate) fn agent(handle: &Handle, tool: &ToolId) -> String {
    match handle.seats().is_seat(&tool.provider()) {
        true => tool.name().to_owned(),
        false => tool.to_string(),
    }
}

/// An ask as a seat is asked it.
pub(crate) fn ask(
    ask: &Ask,
    agent: String,
    parent: Option<String>,
    redelivered: bool,
    now: Timestamp,
) -> CoreMessage {
    let spec = &ask.spec;
    let until = spec.escalates.map_or(spec.deadline, |at| at.min(spec.deadline));
    let pending = Pending {
        deadline_ms: Some(until.ms_since(now)),
        run_id: Some(spec.run.run.to_string()),
        world: Some(spec.run.world.to_string()),
        redelivered,
        files: spec.files.iter().map(file).collect(),
    };
    match spec.kind {
        AskKind::Question => CoreMessage::Ask {
            req_id: RequestId::of_ask(ask).to_string(),
            parent_req_id: parent,
            task_id: ask_task_id(ask),
            question: question(ask),
            pending,
        },
        AskKind::Approval => CoreMessage::HookBefore {
            req_id: RequestId::of_ask(ask).to_string(),
            parent_req_id: parent,
            task_id: ask_task_id(ask),
            agent,
            attempt: spec.attempt(),
            pending,
        },
    }
}

fn file((name, file): (&String, &ReadObject)) -> PendingFile {
    PendingFile {
        name: name.clone(),
        path: file.path.to_string(),
        bytes: file.bytes,
        b3: file.b3.as_ref().map(ToString::to_string),
    }
}

/// A question: text alone, or with what its answer must look like and what it is about.
fn question(ask: &Ask) -> Value {
    let spec = &ask.spec;
    match (&spec.schema, &spec.detail) {
        (None, None) => Value::String(spec.title.clone()),
        (schema, detail) => {
            let mut question = json!({ "title": spec.title, "tool": spec.tool.as_str() });
            if let Some(schema) = schema {
                question["schema"] = schema.clone();
            }
            if let Some(detail) = detail {
                question["detail"] = detail.clone();
            }
            question
        }
    }
}

/// What came of an attempt that a seat let pass. What is too large for a frame is read elsewhere.
pub(crate) fn hook_after(
    notice: &Notice,
    run: &Run,
    agent: String,
    redelivered: bool,
    result_bytes_max: usize,
) -> CoreMessage {
    let result = match (&notice.error, &run.outcome) {
        (Some(fault), _) => json!({ "error": { "code": fault.code, "message": fault.message } }),
        (None, Some(Outcome::Succeeded { outputs })) => Value::Object(outputs.clone()),
        (None, _) => Value::Null,
    };
    let bytes = serde_json::to_vec(&result).map_or(0, |text| text.len());
    let result = match bytes > result_bytes_max {
        true => json!({ "omitted": { "bytes": bytes } }),
        false => result,
    };
    CoreMessage::HookAfter {
        req_id: RequestId::Notice(notice.ask_id.clone()).to_string(),
        parent_req_id: None,
        task_id: notice.task.task_id.clone(),
        agent,
        attempt: notice.task.attempt,
        result,
        run_id: Some(notice.run.run.to_string()),
        redelivered,
    }
}

/// An attempt as a seat is offered it.
pub(crate) fn spawn(
    task: &Task,
    options: &OperatorEdgeOptions,
    credentials: (String, Option<String>),
    parent: Option<String>,
    redelivered: bool,
) -> CoreMessage {
    let (capability_token, worker_handle) = credentials;
    let dispatch = task.attempt.dispatch();
    let now = options.handle.now();
    let directive = fill(
        &options.directive,
        &Facts {
            agent: task.agent(),
            worker_handle: worker_handle.as_deref().unwrap_or(&capability_token),
            base_url: &options.base_url,
            task_id: &task.id,
        },
    );
    CoreMessage::Spawn {
        req_id: task.request_id().to_string(),
        parent_req_id: parent,
        task_id: task.id.clone(),
        agent: task.agent().to_owned(),
        attempt: task.number(),
        capability_token,
        worker_handle,
        worker: worker(task),
        directive,
        traceparent: dispatch.trace.traceparent.clone(),
        tracestate: dispatch.trace.tracestate.clone(),
        pending: Pending {
            deadline_ms: dispatch.deadline.map(|deadline| deadline.ms_since(now)),
            run_id: Some(task.run().run.to_string()),
            world: Some(task.run().world.to_string()),
            redelivered,
            files: Vec::new(),
        },
    }
}

/// What kind of worker the tool asks for, if it does.
fn worker(task: &Task) -> Option<WorkerKind> {
    task.worker().map(|kind| WorkerKind { variant: kind.variant, tools: kind.tools })
}
