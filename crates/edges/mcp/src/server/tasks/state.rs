//! Where a task is: a fold of its run.

use wharf_domain::{Outcome, Run};
use wharf_vocab::{AskKind, DateTime, Fault, Object, RunStatus, Timestamp};
use wharf_wire::mcp_v1::{
    McpError, McpMs, McpResultType, McpTask, McpTaskOf11, McpTaskStatus, McpTaskTtl, code,
};

use crate::blocks::result::{call_result, is_error_of_server};
use crate::faults::McpRefusal;
use crate::seal::task_id;
use crate::server::door::McpContext;
use crate::server::questions::{self, InputRequests};
use crate::shown;

/// How often a client may ask, at first and at last.
const POLL_MS: (u64, u64) = (1_000, 5_000);
/// The older a task, the less often: once in so many parts of its age.
const POLL_PARTS: u64 = 10;

/// Where a task is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TaskState {
    id: String,
    pub(super) status: McpTaskStatus,
    message: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// How long it is kept from its beginning on, if not for ever.
    ttl_ms: Option<u64>,
    poll_ms: u64,
    requests: InputRequests,
    ended: Option<Result<Object, McpError>>,
}

impl TaskState {
    /// A task that has just begun; what it asks is told when the client comes back.
    pub(super) fn begun(cx: &McpContext, run: &Run) -> Self {
        let mut state = Self::of(cx, run);
        if !state.status.is_over() {
            state.status = McpTaskStatus::Working;
            state.requests.clear();
        }
        state
    }

    /// Where a task is, without what came of it.
    pub(super) fn of(cx: &McpContext, run: &Run) -> Self {
        let requests = match &run.outcome {
            Some(_) => InputRequests::new(),
            None => questions::input_requests(cx, &run.key),
        };
        let status = status(run, !requests.is_empty());
        let (least, most) = POLL_MS;
        let age = cx.shared.handle.now().ms_since(run.created_at);
        Self {
            id: task_id(&cx.shared.handle, &cx.caller, &run.key),
            status,
            message: message(cx, run, status),
            created_at: run.created_at,
            updated_at: updated_at(run),
            ttl_ms: run.spec.mcp.and_then(|terms| terms.task_ttl_ms),
            poll_ms: (age / POLL_PARTS).clamp(least, most),
            requests,
            ended: None,
        }
    }

    /// Where a task is, with what came of it.
    pub(super) async fn whole(cx: &McpContext, run: &Run) -> Self {
        let mut state = Self::of(cx, run);
        state.ended = match state.status {
            McpTaskStatus::Completed => {
                Some(Ok(call_result(&cx.shared.handle, run, cx.revision).await.to_object()))
            }
            McpTaskStatus::Failed => error(run).and_then(as_error).map(Err),
            _ => None,
        };
        state
    }

    /// Whether a client need not be told, because it was told this.
    pub(super) fn says_same_as(&self, told: &Self) -> bool {
        let keys = |state: &Self| state.requests.keys().cloned().collect::<Vec<_>>();
        self.status == told.status && self.message == told.message && keys(self) == keys(told)
    }

    /// As 2025-11-25 has it.
    pub(super) fn of_11(self) -> McpTaskOf11 {
        McpTaskOf11 {
            task_id: self.id,
            status: self.status,
            status_message: self.message,
            created_at: DateTime::from(self.created_at).to_string(),
            last_updated_at: DateTime::from(self.updated_at).to_string(),
            ttl: McpTaskTtl(self.ttl_ms.map(McpMs)),
            poll_interval: Some(McpMs(self.poll_ms)),
            meta: None,
        }
    }

    /// As the extension has it.
    pub(super) fn of_extension(self) -> McpTask {
        let (result, error) = match self.ended {
            Some(Ok(mut result)) => {
                // A result says of which kind it is, also inside of a task.
                let complete = || McpResultType::Complete.as_str().into();
                result.entry(McpResultType::FIELD).or_insert_with(complete);
                (Some(result), None)
            }
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        McpTask {
            result_type: None,
            task_id: self.id,
            status: self.status,
            status_message: self.message,
            created_at: DateTime::from(self.created_at).to_string(),
            last_updated_at: DateTime::from(self.updated_at).to_string(),
            ttl_ms: McpTaskTtl(self.ttl_ms.map(McpMs)),
            poll_interval_ms: Some(McpMs(self.poll_ms)),
            input_requests: Some(self.requests).filter(|requests| !requests.is_empty()),
            result,
            error,
            meta: None,
        }
    }
}

/// Whether a task is over and was kept as long as its client wanted.
pub(super) fn expired(cx: &McpContext, run: &Run) -> bool {
    let ttl = run.spec.mcp.and_then(|terms| terms.task_ttl_ms);
    let until = ttl.map(|ttl| run.created_at.plus_ms(ttl));
    run.is_over() && until.is_some_and(|until| until <= cx.shared.handle.now())
}

fn status(run: &Run, asks: bool) -> McpTaskStatus {
    match run.status() {
        RunStatus::Waiting if asks => McpTaskStatus::InputRequired,
        // What it started may ask while it goes on itself.
        RunStatus::Running | RunStatus::Queued if asks => McpTaskStatus::InputRequired,
        RunStatus::Queued | RunStatus::Running | RunStatus::Waiting => McpTaskStatus::Working,
        RunStatus::Canceled => McpTaskStatus::Cancelled,
        RunStatus::Succeeded | RunStatus::Failed | RunStatus::Refused => match error(run) {
            Some(fault) if as_error(fault).is_some() => McpTaskStatus::Failed,
            _ => McpTaskStatus::Completed,
        },
    }
}

fn error(run: &Run) -> Option<&Fault> {
    run.outcome.as_ref().and_then(Outcome::error)
}

/// The error that a task ended with, where it was not the tool that failed: the core, or a server
/// that broke off with an error of the protocol.
fn as_error(fault: &Fault) -> Option<McpError> {
    if ["core.", "store."].iter().any(|begin| fault.code.as_str().starts_with(begin)) {
        return Some(McpRefusal::from(fault.clone()).error);
    }
    let own = is_error_of_server(fault)?;
    // Others mean something else between this core and its client.
    let plain = (code::INTERNAL..=code::INVALID_REQUEST).contains(&own);
    let number = if plain { own } else { code::INTERNAL };
    Some(McpError::new(number, fault.message.clone()))
}

/// More about where a task is, for people.
fn message(cx: &McpContext, run: &Run, status: McpTaskStatus) -> Option<String> {
    if let Some(fault) = error(run) {
        return Some(fault.to_string());
    }
    if run.is_over() {
        return None;
    }
    if run.cancel.is_some() {
        return Some("It is being canceled.".to_owned());
    }
    let open = cx.shared.handle.asks().open_of(&run.key);
    let approval = open.iter().find(|ask| ask.spec.kind == AskKind::Approval);
    let waits = match (approval, open.first()) {
        (Some(ask), _) => Some(("an approval", ask)),
        (None, Some(ask)) => Some(("an answer", ask)),
        (None, None) => None,
    };
    match waits {
        Some((what, ask)) => {
            let title = shown::words(&ask.spec.title);
            Some(match status {
                McpTaskStatus::InputRequired => format!("Waits for {what}: {title}"),
                _ => format!("Waits for {what} in the inbox: {title}"),
            })
        }
        None => run.waits_for().map(|wait| wait.message),
    }
}

/// When a task last changed, as far as its run tells.
fn updated_at(run: &Run) -> Timestamp {
    let asked = run.asks.iter().map(|raised| raised.ask.created_at);
    let times = [Some(run.created_at), run.started_at, run.ended_at].into_iter().flatten();
    times.chain(asked).max().unwrap_or(run.created_at)
}
