//! Runs as tasks, of both kinds.
//!
//! A task is a run under an id that is good for the grant that made it, in any session and after
//! any restart. All that is said of a task is read off its run, so nothing is stored for it.
//!
//! | file | what it is |
//! |---|---|
//! | `state.rs` | where a task is |
//! | `news.rs` | notices of tasks that change |

mod news;
mod state;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use serde_json::json;
use wharf_domain::Run;
use wharf_engine::RunPlace;
use wharf_ports::RunQuery;
use wharf_vocab::{Code, Object, RunStatus, Verb};
use wharf_web::cursor::{self, CursorList};
use wharf_wire::mcp_v1::{
    McpCursor, McpEra, McpError, McpNotification, McpOpen, McpResultType, McpTaskBegun, McpTaskRef,
    McpTaskUpdate, McpTasksPage, TASKS_EXTENSION, code,
};

pub(crate) use self::news::NewTasks;
use self::state::{TaskState, expired};
use super::door::{McpContext, McpReply};
use super::{questions, stream};
use crate::faults::McpRefusal;
use crate::seal::{RequestRef, StreamOf, read_task_id};

/// The list of tasks.
const TASKS: CursorList = CursorList { letter: b'K', field: Some("cursor") };
/// Tasks on one page.
const PAGE_TASKS: usize = 50;
/// Runs that are looked at for one page.
const PAGE_RUNS_MAX: usize = 500;
/// How long a run may take to end that is canceled: its provider's time for that, and some more.
const CANCEL_MAX: Duration = Duration::from_secs(30);

/// What a call is answered with whose run is a task from now on: of 2025-11-25 or of the extension,
/// by what the client speaks.
pub(crate) fn created(cx: &McpContext, run: &Run) -> Object {
    let state = TaskState::begun(cx, run);
    match cx.revision.era() {
        McpEra::Modern => {
            let mut task = state.of_extension();
            task.result_type = Some(McpResultType::Task);
            McpOpen::from(task).to_object()
        }
        McpEra::Legacy => {
            cx.shared.new_tasks.add(&cx.caller.grant, &run.key);
            let begun = McpTaskBegun { task: state.of_11().into(), meta: None };
            McpOpen::from(begun).to_object()
        }
    }
}

/// How a task is.
pub(crate) async fn get(cx: McpContext, params: McpOpen<McpTaskRef>) -> McpReply {
    match find(&cx, &params.task_id).await {
        Ok(run) => {
            questions::settle(&cx, &run.key).await;
            McpReply::result(shown(&cx, &run).await)
        }
        Err(refusal) => McpReply::refused(refusal),
    }
}

/// A task as the client gets it when it asks how it is.
async fn shown(cx: &McpContext, run: &Run) -> Object {
    match cx.revision.era() {
        McpEra::Modern => {
            let mut task = TaskState::whole(cx, run).await.of_extension();
            task.result_type = Some(McpResultType::Complete);
            McpOpen::from(task).to_object()
        }
        McpEra::Legacy => McpOpen::from(TaskState::of(cx, run).of_11()).to_object(),
    }
}

/// What a task of 2025-11-25 ends with, when it does.
pub(crate) async fn result(
    cx: McpContext,
    at: RequestRef,
    params: McpOpen<McpTaskRef>,
) -> McpReply {
    match find(&cx, &params.task_id).await {
        Ok(run) => stream::follow(cx, at, run.key.clone(), 0, StreamOf::TaskResult).await,
        Err(refusal) => McpReply::refused(refusal),
    }
}

/// The tasks of this grant.
pub(crate) async fn list(cx: McpContext, params: McpOpen<McpCursor>) -> McpReply {
    match Box::pin(page(&cx, params.cursor.as_deref())).await {
        Ok(page) => McpReply::result(McpOpen::from(page).to_object()),
        Err(refusal) => McpReply::refused(refusal),
    }
}

async fn page(cx: &McpContext, cursor: Option<&str>) -> Result<McpTasksPage, McpRefusal> {
    let grant = cx.caller.grant.as_str().as_bytes();
    let from = cursor.map(|cursor| {
        let name = cursor::read_asked(TASKS, &[grant], cursor)?;
        read_place(&name).ok_or_else(|| cursor::foreign(TASKS))
    });
    let from = from.transpose()?;
    let query = RunQuery {
        grant: Some(cx.caller.grant.clone()),
        before: from.map(|place| place.stored),
        memory_before: from.map(|place| place.memory),
        limit: PAGE_RUNS_MAX,
        ..RunQuery::default()
    };
    let runs = &cx.shared.handle.runs();
    let found = cx.shared.handle.run_lists().list(query).await?;
    let mut more = found.next.is_some();
    let (mut tasks, mut last) = (Vec::new(), None);
    for (summary, place) in found.runs.iter().zip(&found.places) {
        if tasks.len() >= PAGE_TASKS {
            more = true;
            break;
        }
        last = Some(*place);
        if cx.caller.rights.check(Verb::Read, &summary.key.world).is_err() {
            continue;
        }
        // One that was removed meanwhile is no task any more.
        let Ok(run) = runs.get(&summary.key).await else { continue };
        if is_of_11(&run) && !expired(cx, &run) {
            tasks.push(TaskState::of(cx, &run).of_11().into());
        }
    }
    let last = last.filter(|_| more);
    let next_cursor = last.map(|place| cursor::write_asked(TASKS, &[grant], &write_place(place)));
    Ok(McpTasksPage { tasks, next_cursor, meta: None })
}

fn write_place(RunPlace { stored, memory }: RunPlace) -> String {
    format!("{stored}.{memory}")
}

fn read_place(text: &str) -> Option<RunPlace> {
    let (stored, memory) = text.split_once('.')?;
    Some(RunPlace { stored: stored.parse().ok()?, memory: memory.parse().ok()? })
}

/// Whether a client of 2025-11-25 wanted the run as a task.
fn is_of_11(run: &Run) -> bool {
    run.spec.mcp.is_some_and(|terms| terms.task_ttl_ms.is_some())
}

/// Calls a task off. One of the extension is told at once that it was heard; one of 2025-11-25 when
/// the run is over.
pub(crate) async fn cancel(cx: McpContext, params: McpOpen<McpTaskRef>) -> McpReply {
    match Box::pin(canceled(&cx, &params.task_id)).await {
        Ok(result) => McpReply::result(result),
        Err(refusal) => McpReply::refused(refusal),
    }
}

async fn canceled(cx: &McpContext, id: &str) -> Result<Object, McpRefusal> {
    let run = find(cx, id).await?;
    let is_modern = cx.revision.era() == McpEra::Modern;
    if run.is_over() {
        return if is_modern { Ok(Object::new()) } else { Err(over()) };
    }
    let runs = cx.shared.handle.runs();
    runs.cancel(&cx.caller, &run.key, "The client called the task off.").await?;
    if is_modern {
        return Ok(Object::new());
    }
    let run = runs.wait(&run.key, CANCEL_MAX).await?;
    match run.status() {
        RunStatus::Canceled => Ok(shown(cx, &run).await),
        _ if run.is_over() => Err(over()),
        _ => {
            let message = "The task is being canceled and not over yet.";
            Err(McpError::new(code::INTERNAL, message).into())
        }
    }
}

fn over() -> McpRefusal {
    McpError::params("The task is over, so it cannot be canceled.").into()
}

/// Answers what a task asks.
pub(crate) async fn update(cx: McpContext, params: McpOpen<McpTaskUpdate>) -> McpReply {
    let updated = async {
        let run = find(&cx, &params.task_id).await?;
        questions::update(&cx, &run.key, &params.input_responses).await?;
        Ok(Object::new())
    };
    McpReply::Now(Box::pin(updated).await)
}

/// The run of a task of this client.
async fn find(cx: &McpContext, id: &str) -> Result<Arc<Run>, McpRefusal> {
    declared(cx)?;
    let missing = || McpRefusal::from(McpError::params("There is no such task."));
    let key = read_task_id(&cx.shared.handle, &cx.caller, id).ok_or_else(missing)?;
    if cx.caller.rights.check(Verb::Read, &key.world).is_err() {
        return Err(missing());
    }
    let run = match Box::pin(cx.shared.handle.runs().get(&key)).await {
        Ok(run) => run,
        Err(fault) if fault.is(Code::RunNotFound) => return Err(missing()),
        Err(fault) => return Err(fault.into()),
    };
    if expired(cx, &run) { Err(missing()) } else { Ok(run) }
}

/// Whether the client knows what a task of the extension is. What tasks of 2025-11-25 are is part of
/// what was agreed.
pub(crate) fn declared(cx: &McpContext) -> Result<(), McpRefusal> {
    if cx.revision.era() == McpEra::Legacy || cx.capabilities.has_tasks_extension() {
        return Ok(());
    }
    let needed = json!({"extensions": {TASKS_EXTENSION: {}}});
    Err(McpError::missing_capability(&needed).into())
}

/// Notices of a task of the extension, one whenever it changes, beginning with how it is; none if it
/// is not this client's.
pub(crate) async fn changes(
    cx: &McpContext,
    id: &str,
) -> Option<BoxStream<'static, McpNotification>> {
    let run = find(cx, id).await.ok()?;
    news::of_task(cx, &run).await
}

/// Notices of the tasks of this grant, for the own stream of a session of 2025-11-25.
pub(crate) async fn statuses(cx: &McpContext) -> BoxStream<'static, McpNotification> {
    Box::pin(news::of_grant(cx)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m036_places_in_the_list_are_read_back() {
        let place = RunPlace { stored: u64::MAX, memory: 7 };
        assert_eq!(read_place(&write_place(place)), Some(place));
        for bad in ["", "1", "1.", ".1", "a.b", "1.2.3"] {
            assert_eq!(read_place(bad), None, "{bad}");
        }
    }
}
