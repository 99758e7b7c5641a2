//! From what waits for a seat to messages.

use serde_json::{Value, json};
use wharf_domain::{Ask, Outcome, Run};
use wharf_vocab::{AskKind, Timestamp};
use wharf_wire::operator_v1::{CoreMessage, Pending};

use crate::directive::{self, Facts};
use crate::options::Options;
use crate::task::{TASK_PREFIX, Task};

/// What names an ask on the wire. It stays the same for as long as the ask.
pub(crate) fn ask_req_id(ask: &Ask) -> String {
    match ask.spec.kind {
        AskKind::Question => format!("q-{}", ask.spec.ask_id),
        AskKind::Approval => format!("h-{}", ask.spec.ask_id),
    }
}

/// The task of an ask.
pub(crate) fn ask_task_id(ask: &Ask) -> String {
    format!("{TASK_PREFIX}{}", ask.spec.ask_id)
}

/// An ask as a seat is asked it.
pub(crate) fn ask(
    ask: &Ask,
    run: Option<&Run>,
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
    };
    let active = run.and_then(|run| run.active.as_ref());
    match spec.kind {
        AskKind::Question => CoreMessage::Ask {
            req_id: ask_req_id(ask),
            parent_req_id: parent,
            task_id: active
                .map_or_else(|| ask_task_id(ask), |active| format!("{TASK_PREFIX}{}", active.id)),
            question: question(ask),
            pending,
        },
        AskKind::Approval => CoreMessage::HookBefore {
            req_id: ask_req_id(ask),
            parent_req_id: parent,
            task_id: ask_task_id(ask),
            agent: spec.tool.to_string(),
            attempt: run.map_or(1, |run| run.attempt.max(1)),
            pending,
        },
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

/// What came of a run that a seat let pass.
pub(crate) fn hook_after(ask: &Ask, run: &Run) -> CoreMessage {
    let result = match &run.outcome {
        Some(Outcome::Succeeded { outputs }) => Value::Object(outputs.clone()),
        Some(outcome) => outcome.error().map_or(
            Value::Null,
            |fault| json!({ "error": { "code": fault.code, "message": fault.message } }),
        ),
        None => Value::Null,
    };
    CoreMessage::HookAfter {
        req_id: format!("n-{}", ask.spec.ask_id),
        parent_req_id: None,
        task_id: ask_task_id(ask),
        agent: ask.spec.tool.to_string(),
        attempt: run.attempt.max(1),
        result,
        run_id: Some(run.key.run.to_string()),
    }
}

/// An attempt as a seat is offered it.
pub(crate) fn spawn(
    task: &Task,
    options: &Options,
    credentials: (String, Option<String>),
    parent: Option<String>,
    redelivered: bool,
) -> CoreMessage {
    let (capability_token, worker_handle) = credentials;
    let dispatch = task.attempt.dispatch();
    let now = options.handle.now();
    let directive = directive::fill(
        &options.directive,
        &Facts {
            agent: task.agent(),
            worker_handle: worker_handle.as_deref().unwrap_or(&capability_token),
            base_url: &options.base_url,
            task_id: &task.id,
        },
    );
    CoreMessage::Spawn {
        req_id: task.req_id(),
        parent_req_id: parent,
        task_id: task.id.clone(),
        agent: task.agent().to_owned(),
        attempt: task.number(),
        capability_token,
        worker_handle,
        worker: None,
        directive,
        pending: Pending {
            deadline_ms: dispatch.deadline.map(|deadline| deadline.ms_since(now)),
            run_id: Some(task.run().run.to_string()),
            world: Some(task.run().world.to_string()),
            redelivered,
        },
    }
}
