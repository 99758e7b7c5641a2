//! Calls that a server made a task of.
//!
//! The server's name for the task is noted before anything else is done with it, so that a core
//! after this one asks for what became of it and never calls again. Tasks of 2025-11-25 have
//! a request that waits for their result; those of the extension are asked about until they are
//! over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_domain::run::{AttemptError, NoteKey};
use wharf_protocol::mcp::McpAnswer;
use wharf_vocab::{Code, Executed, Fault, Object};
use wharf_wire::mcp_v1::{
    McpMeta, McpMs, McpOpen, McpRequest, McpTask, McpTaskRef, McpTaskStatus, McpTaskUpdate, key,
    read_result,
};

use super::super::upstream::{CallEnd, Upstream};
use super::super::{report, result};
use super::plan::{CallPlan, is_task_of_11};
use super::rounds::{McpInputRequests, REQUESTS_MAX, answers, key_of};
use super::{AttemptWork, Broken, Judged, conversation, failed};

/// How often a task is asked about that says nothing of it.
const POLL_MS: u64 = 1_000;
const POLL_MS_MIN: u64 = 100;
const POLL_MS_MAX: u64 = 60_000;
/// How long a server may take to say how a task stands.
const ASK_TIMEOUT: Duration = Duration::from_secs(30);
/// How often in a row a server elsewhere may fail to say it.
const FAILURES_MAX: u32 = 20;
/// What names questions of a task within their run.
pub(super) const SCOPE: &str = "task";
/// Longest name of a task that is kept.
const ID_BYTES_MAX: usize = 4 * 1024;

/// Which tasks a task belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskKind {
    /// Those of 2025-11-25.
    Core,
    /// Those of the extension.
    Extension,
}

/// A task, as it is noted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NotedTask {
    id: String,
    kind: TaskKind,
    #[serde(skip)]
    poll_ms: Option<u64>,
}

impl NotedTask {
    /// What a note says.
    pub(super) fn read(note: &Value) -> Option<Self> {
        Self::deserialize(note).ok()
    }

    /// The task that a modern server gave instead of a result.
    pub(super) fn of_modern(result: Object) -> Result<Self, Broken> {
        let task = read_result::<McpTask>(result).map_err(|_| violation())?.known;
        let poll_ms = task.poll_interval_ms.map(|McpMs(ms)| ms);
        Self { id: task.task_id, kind: TaskKind::Extension, poll_ms }.checked()
    }

    /// The task that a server of 2025-11-25 gave instead of a result, if it did.
    pub(super) fn of_legacy(plan: &CallPlan, result: &Object) -> Option<Self> {
        if !plan.may_be_task() || !is_task_of_11(result) {
            return None;
        }
        let id = result.get("task")?.get("taskId")?.as_str()?.to_owned();
        Self { id, kind: TaskKind::Core, poll_ms: None }.checked().ok()
    }

    fn checked(self) -> Result<Self, Broken> {
        let fits = !self.id.is_empty() && self.id.len() <= ID_BYTES_MAX;
        if fits { Ok(self) } else { Err(violation()) }
    }

    fn reference(&self) -> Box<McpOpen<McpTaskRef>> {
        McpOpen::boxed(McpTaskRef { task_id: self.id.clone(), meta: None })
    }
}

/// Notes a task and takes it to its end.
pub(super) async fn begin(
    work: &AttemptWork,
    upstream: &Upstream,
    plan: &CallPlan,
    task: NotedTask,
) -> Result<Object, Broken> {
    if work.survives() {
        let noted = work.attempt.note(NoteKey::Task, serde_json::to_value(&task).ok()).await;
        if let Err(fault) = noted {
            tracing::debug!(code = %fault.code, "a task of a server was not noted");
        }
    }
    follow(work, upstream, plan, task).await
}

/// Takes a task to its end, over as many connections as that takes.
pub(super) async fn follow(
    work: &AttemptWork,
    upstream: &Upstream,
    plan: &CallPlan,
    task: NotedTask,
) -> Result<Object, Broken> {
    let followed = match task.kind {
        TaskKind::Core => until_result(work, upstream, &task).await,
        TaskKind::Extension => until_over(work, upstream, &task).await,
    };
    match followed {
        Ok(result) => work.finish(plan, result).await,
        Err(Broken::Stopped(order)) => {
            if !order.is_left {
                cancel(work, upstream, &task);
            }
            Err(Broken::Stopped(order))
        }
        Err(broken) => Err(broken),
    }
}

/// Waits for the result of a task of 2025-11-25. What the server asks meanwhile belongs to it.
async fn until_result(
    work: &AttemptWork,
    upstream: &Upstream,
    task: &NotedTask,
) -> Result<Object, Broken> {
    let mut upstream = upstream.clone();
    let mut failures = 0;
    loop {
        let mut reference = task.reference();
        let related = serde_json::json!({"taskId": task.id});
        reference.meta = Some(McpMeta::default().with(key::RELATED_TASK, related));
        let request = McpRequest::TasksResult(reference);
        let end = conversation::hold(work, &upstream, request, Vec::new()).await?;
        match end {
            CallEnd::Lost | CallEnd::Unsent(_) if work.survives() && failures < FAILURES_MAX => {
                failures += 1;
                pause(work, POLL_MS).await?;
                upstream = work.connected().await?;
            }
            end => {
                let Judged::Result { mut result, .. } = judged(work, end).await?;
                // The server's own name for the task means nothing to whoever called.
                if let Some(Value::Object(meta)) = result.get_mut(key::META) {
                    meta.remove(key::RELATED_TASK);
                }
                return Ok(result);
            }
        }
    }
}

/// Asks about a task of the extension until it is over, and answers what it asks.
async fn until_over(
    work: &AttemptWork,
    upstream: &Upstream,
    task: &NotedTask,
) -> Result<Object, Broken> {
    let mut upstream = upstream.clone();
    let mut failures = 0;
    let mut poll_ms = task.poll_ms;
    let mut questions = Questions::none();
    loop {
        let answered = tokio::select! {
            paused = pause(work, poll_ms.unwrap_or(POLL_MS)) => paused.map(|()| None)?,
            answered = questions.answered() => Some(answered?),
        };
        if let Some(input_responses) = answered {
            questions = Questions::none();
            let update = McpTaskUpdate { task_id: task.id.clone(), input_responses, meta: None };
            let update = McpRequest::TasksUpdate(McpOpen::boxed(update));
            // Whether it arrived the task says; what was answered is answered the same again.
            ask(work, &upstream, update).await?;
            continue;
        }
        let end = ask(work, &upstream, McpRequest::TasksGet(task.reference())).await?;
        let lost = matches!(
            end,
            CallEnd::Lost | CallEnd::Unsent(_) | CallEnd::Answered(McpAnswer::TimedOut)
        );
        if lost && work.survives() && failures < FAILURES_MAX {
            failures += 1;
            upstream = work.connected().await?;
            continue;
        }
        let Judged::Result { result, .. } = judged(work, end).await?;
        failures = 0;
        let state = read_result::<McpTask>(result).map_err(|_| violation())?.known;
        poll_ms = state.poll_interval_ms.map(|McpMs(ms)| ms).or(poll_ms);
        if let Some(piece) = report::task(state.status, state.status_message.as_deref()) {
            // When the engine is gone there is nobody left to tell.
            let _ = work.attempt.progress(vec![piece]).await;
        }
        if let Some(result) = ended(&state)? {
            return Ok(result);
        }
        let requests =
            state.input_requests.filter(|_| state.status == McpTaskStatus::InputRequired);
        questions.ask(work, requests.unwrap_or_default()).await?;
    }
}

/// What a task asks and is not answered yet.
struct Questions<'a> {
    names: BTreeSet<String>,
    answers: Option<BoxFuture<'a, Result<BTreeMap<String, Object>, Broken>>>,
}

impl<'a> Questions<'a> {
    fn none() -> Self {
        Self { names: BTreeSet::new(), answers: None }
    }

    /// Asks what the task asks now; what it does not ask any more is taken back. The server's name
    /// for a question means the same question as long as the task lasts.
    async fn ask(
        &mut self,
        work: &'a AttemptWork,
        requests: McpInputRequests,
    ) -> Result<(), Broken> {
        let names: BTreeSet<String> = requests.keys().cloned().collect();
        if names.len() > REQUESTS_MAX {
            return Err(violation());
        }
        if names == self.names {
            return Ok(());
        }
        self.answers = None;
        for unwanted in self.names.difference(&names) {
            work.asking().take_back(&key_of(work, SCOPE, unwanted)).await;
        }
        let answers = async move { answers(work, SCOPE, &requests).await };
        self.answers = (!names.is_empty()).then(|| answers.boxed());
        self.names = names;
        Ok(())
    }

    /// Waits until all is answered, for ever if nothing is asked.
    async fn answered(&mut self) -> Result<BTreeMap<String, Object>, Broken> {
        match &mut self.answers {
            Some(answers) => answers.await,
            None => std::future::pending().await,
        }
    }
}

/// What a task ended with, if it has.
fn ended(state: &McpTask) -> Result<Option<Object>, Broken> {
    match state.status {
        McpTaskStatus::Working | McpTaskStatus::InputRequired => Ok(None),
        McpTaskStatus::Completed => state.result.clone().map(Some).ok_or_else(violation),
        McpTaskStatus::Failed => {
            let error = state.error.clone().ok_or_else(violation)?;
            Err(result::failure(McpAnswer::Error(error)).into())
        }
        McpTaskStatus::Cancelled => {
            let fault = Fault::new(Code::ToolCanceled, "The MCP server called the task off.");
            Err(AttemptError::Canceled(fault.executed(Executed::Maybe)).into())
        }
    }
}

/// What a request about a task came to. That there is no such task says nothing about whether it
/// ran.
async fn judged(work: &AttemptWork, end: CallEnd) -> Result<Judged, Broken> {
    work.judge(end).await.map_err(|broken| match broken {
        Broken::Error(AttemptError::Failed(fault, Executed::No)) => failed(fault, Executed::Maybe),
        other => other,
    })
}

/// Asks something of which only the answer matters, unless the attempt is to stop.
async fn ask(
    work: &AttemptWork,
    upstream: &Upstream,
    request: McpRequest,
) -> Result<CallEnd, Broken> {
    tokio::select! {
        order = work.stop.wanted() => Err(Broken::Stopped(order)),
        end = upstream.ask(request, ASK_TIMEOUT) => Ok(end),
    }
}

async fn pause(work: &AttemptWork, ms: u64) -> Result<(), Broken> {
    let pause = Duration::from_millis(ms.clamp(POLL_MS_MIN, POLL_MS_MAX));
    tokio::select! {
        order = work.stop.wanted() => Err(Broken::Stopped(order)),
        () = tokio::time::sleep(pause) => Ok(()),
    }
}

/// Tells the server to call the task off. What it makes of that is not waited for.
fn cancel(work: &AttemptWork, upstream: &Upstream, task: &NotedTask) {
    let upstream = work.upstream.borrow().clone().unwrap_or_else(|| upstream.clone());
    let request = McpRequest::TasksCancel(task.reference());
    work.servers.host.tasks().spawn("calling a task off", async move {
        drop(upstream.ask(request, ASK_TIMEOUT).await);
    });
}

fn violation() -> Broken {
    let message = "The MCP server broke the protocol: its task cannot be read.";
    failed(Fault::new(Code::ToolProtocolViolation, message), Executed::Maybe)
}
