//! Which ask goes to which desk, and what becomes of replies.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::Value;
use wharf_domain::run::AttemptError;
use wharf_domain::{Ask, Audience, AuditEvent, AuditRecord, Resolution};
use wharf_engine::{AskFeed, AskNews};
use wharf_vocab::{AskKind, Code, Executed, Fault, RunKey, SeatId};
use wharf_wire::operator_v1::OperatorMessage;

use crate::credential::{PastTask, TaskMatch};
use crate::desk::{Desk, DeskConnection, SeatItem};
use crate::request::RequestId;
use crate::shared::SeatHub;
use crate::task::{Final, Task, TaskPhase, failed};
use crate::{notices, to_wire, usage};

/// Asks that are read at once.
const PAGE: usize = 200;

/// Follows what is asked and decided. A panic over one ask must not make every seat deaf.
pub(crate) async fn follow(shared: Arc<SeatHub>, mut news: AskFeed) {
    while AssertUnwindSafe(follow_news(&shared, &mut news)).catch_unwind().await.is_err() {
        tracing::error!("an ask could not be told to the seats; the next ones are");
    }
}

async fn follow_news(shared: &Arc<SeatHub>, news: &mut AskFeed) {
    loop {
        let next = tokio::select! {
            () = shared.stop.cancelled() => return,
            next = news.next() => next,
        };
        match next {
            Some(AskNews::Raised(ask)) => route(shared, &Arc::new(*ask), false),
            Some(AskNews::Over(ask)) => over(shared, &ask),
            Some(AskNews::Notice(notice, run)) => notices::owe(shared, *notice, &run).await,
            Some(AskNews::Missed) => {
                look_again(shared).await;
                notices::look_again(shared).await;
            }
            None => return,
        }
    }
}

/// Reads the inbox and lets every open ask wait where it belongs.
pub(crate) async fn look_again(shared: &Arc<SeatHub>) {
    let handle = &shared.options.handle;
    let mut after = None;
    loop {
        let page = match handle.asks().inbox(after, PAGE).await {
            Ok(page) => page,
            Err(fault) => {
                tracing::warn!(code = %fault.code, "the inbox could not be read");
                return;
            }
        };
        after = page.iter().filter_map(|view| view.position).max();
        page.into_iter().for_each(|view| route(shared, &Arc::new(view.ask), true));
        if after.is_none() {
            return;
        }
    }
}

/// Lets an ask wait at every desk that may decide it. `sent` says that it may have been sent by
/// an earlier core.
fn route(shared: &Arc<SeatHub>, ask: &Arc<Ask>, sent: bool) {
    let now = shared.options.handle.now();
    for desk in shared.desks() {
        if concerns(shared, &desk, ask) {
            let waiting = SeatItem::Ask(Arc::clone(ask));
            shared.offer(&desk, RequestId::of_ask(ask), waiting, sent);
        }
    }
    if let Some(at) = ask.spec.escalates.filter(|at| *at > now) {
        escalate(shared, ask, at.until(now));
    }
}

/// Lets others see an ask when its seat's time is over.
fn escalate(shared: &Arc<SeatHub>, ask: &Arc<Ask>, after: Duration) {
    let (shared, id) = (Arc::clone(shared), ask.spec.ask_id.clone());
    let tasks = shared.background.clone();
    tasks.spawn(async move {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(after) => {}
        }
        let Ok(ask) = shared.options.handle.asks().get(&id).await else { return };
        if ask.is_open() {
            route(&shared, &Arc::new(ask), false);
        }
    });
}

/// Whether a seat is asked now. A person may decide what is for another seat, and finds it in the
/// inbox; nobody is asked instead of somebody else who is there.
fn concerns(shared: &SeatHub, desk: &Desk, ask: &Ask) -> bool {
    let handle = &shared.options.handle;
    if let Audience::Seat(seat) = ask.spec.audience_at(handle.now())
        && seat != desk.seat.id
        && handle.seats().get(&seat).is_ok()
    {
        return false;
    }
    let resolution = match ask.spec.kind {
        AskKind::Question => Resolution::Answered { value: Value::Null },
        AskKind::Approval => Resolution::ALLOW,
    };
    handle.asks().may_resolve(&desk.caller, ask, &resolution).is_ok()
}

/// An ask is over: whoever still has it is told so.
fn over(shared: &Arc<SeatHub>, ask: &Ask) {
    let (id, task_id) = (RequestId::of_ask(ask), to_wire::ask_task_id(ask));
    let how = ask.resolved.as_ref().map_or("over", |(resolution, _)| resolution.as_str());
    for desk in shared.desks() {
        desk.withdraw(&id, &task_id, &decided_elsewhere(how));
    }
}

/// Acts on a reply; an error is told to the operator and leaves the request open.
pub(crate) async fn reply(
    shared: &Arc<SeatHub>,
    sitting: &DeskConnection,
    message: OperatorMessage,
) -> Result<(), Fault> {
    // A token that was revoked a moment ago may not have ended its connections yet.
    let desk = &sitting.desk;
    shared.options.handle.trust().check_current(&desk.caller)?;
    let id = RequestId::read(message.req_id()).ok_or_else(unknown)?;
    let decide = |resolution| decide(shared, sitting, &id, resolution);
    match message {
        OperatorMessage::Answer { value, .. } => decide(Resolution::Answered { value }).await,
        OperatorMessage::HookAck { ok: true, .. } => decide(Resolution::ALLOW).await,
        OperatorMessage::HookAck { reason, .. } => {
            let reason = reason.filter(|reason| !reason.is_empty());
            let reason = reason.unwrap_or_else(|| "rejected by operator".to_owned());
            decide(Resolution::Deny { reason }).await
        }
        OperatorMessage::SpawnAck { value, ok, error, stats, .. } => {
            let contradicts = !ok || error.is_some();
            match task_of(shared, desk, &id).await? {
                (TaskMatch::Task(task), _) => {
                    acknowledge(shared, &task, Ack { value, ok, error, stats }).await
                }
                (TaskMatch::Past(past), task_id) => {
                    if let Some(stats) = stats {
                        usage::note_late(shared, &past, &task_id, &stats).await?;
                    }
                    if contradicts {
                        contradicted(shared, &desk.seat.id, &past, &task_id).await;
                    }
                    Ok(())
                }
            }
        }
        OperatorMessage::SpawnHalt { value, reason, .. } => {
            match task_of(shared, desk, &id).await? {
                (TaskMatch::Task(task), _) => halt(shared, &task, value, reason).await,
                (TaskMatch::Past(past), task_id) => {
                    contradicted(shared, &desk.seat.id, &past, &task_id).await;
                    Ok(())
                }
            }
        }
    }
}

fn unknown() -> Fault {
    Fault::new(Code::OperatorRequestUnknown, "This seat has no such request.")
}

/// The task that a reply is about, which may be over.
async fn task_of(
    shared: &SeatHub,
    desk: &Desk,
    id: &RequestId,
) -> Result<(TaskMatch, String), Fault> {
    if let Some(SeatItem::Spawn(task)) = desk.get(id) {
        let id = task.id.clone();
        return Ok((TaskMatch::Task(task), id));
    }
    let id = id.task_id().ok_or_else(unknown)?;
    if shared.tasks.find(&id).is_none() {
        shared.tasks.recall(&shared.options.handle).await?;
    }
    let found = shared.tasks.find(&id).ok_or_else(unknown)?;
    if found.seat() != Some(&desk.seat.id) {
        return Err(unknown());
    }
    Ok((found, id))
}

/// What an operator says of a task that is over changes nothing. The audit has it if a worker had
/// given a final.
async fn contradicted(shared: &SeatHub, seat: &SeatId, past: &PastTask, task_id: &str) {
    if let (Some(run), Ok(Some(_))) = (&past.run, past.given(&shared.options.handle).await) {
        conflict(shared, seat, run, task_id).await;
    }
}

async fn decide(
    shared: &Arc<SeatHub>,
    DeskConnection { desk, epoch }: &DeskConnection,
    id: &RequestId,
    resolution: Resolution,
) -> Result<(), Fault> {
    // It stays where it is until it is decided, so that a connection that takes the seat meanwhile
    // is sent it.
    let Some(SeatItem::Ask(ask)) = desk.decides(id, Some(*epoch)) else {
        return Err(Fault::new(Code::AskDecided, "This ask has been decided already."));
    };
    let how = resolution.as_str();
    let handle = &shared.options.handle;
    let decided = handle.asks().resolve(&desk.caller, &ask.spec.ask_id, resolution).await.map(drop);
    match &decided {
        Err(fault) if fault.is(Code::AskDecided) => drop(desk.remove(id)),
        Err(_) => drop(desk.decides(id, None)),
        Ok(()) => desk.withdraw(id, &to_wire::ask_task_id(&ask), &decided_elsewhere(how)),
    }
    decided
}

fn decided_elsewhere(how: &str) -> String {
    format!("decided elsewhere: {how}")
}

struct Ack {
    value: Value,
    ok: bool,
    error: Option<String>,
    stats: Option<Value>,
}

async fn acknowledge(shared: &Arc<SeatHub>, task: &Arc<Task>, ack: Ack) -> Result<(), Fault> {
    let Ack { value, ok, error, stats } = ack;
    let cost_micro = stats.as_ref().and_then(usage::cost_of).unwrap_or(0);
    if let Some(stats) = stats {
        usage::note(task, stats).await?;
    }
    if matches!(task.stand(), TaskPhase::Final(_) | TaskPhase::Over) {
        if !ok || error.is_some() {
            conflict(shared, &task.seat, task.run(), &task.id).await;
        }
        return Ok(());
    }
    let empty = match &value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    if let Some(error) = error {
        let fault = failed(&error);
        task.fail(AttemptError::Failed(fault, Executed::Maybe)).await?;
    } else if !ok && empty {
        task.fail(AttemptError::Failed(failed(""), Executed::Maybe)).await?;
    } else if empty {
        // The worker has the word; its final is waited for until the deadline.
        if let Some(desk) = shared.desk(&task.seat) {
            desk.taken(&task.request_id());
        }
        return Ok(());
    } else {
        task.conclude(Final { value, ok, cost_micro }).await?;
    }
    ended(shared, task);
    Ok(())
}

async fn halt(
    shared: &Arc<SeatHub>,
    task: &Arc<Task>,
    value: Option<Value>,
    reason: Option<String>,
) -> Result<(), Fault> {
    if task.stand() != TaskPhase::Open {
        conflict(shared, &task.seat, task.run(), &task.id).await;
        return Ok(());
    }
    let text = failed(reason.as_deref().unwrap_or("The operator ended the run.")).message;
    let mut fault = Fault::new(Code::OperatorHalted, text);
    if let Some(value) = value {
        fault = fault.with("value", value);
    }
    task.fail(AttemptError::Failed(fault, Executed::Maybe)).await?;
    ended(shared, task);
    Ok(())
}

/// A task is over, whoever ended it.
pub(crate) fn ended(shared: &SeatHub, task: &Arc<Task>) {
    let waits_for_senior = task.waits_for_senior();
    if let Some(desk) = shared.desk(&task.seat) {
        desk.remove(&task.request_id());
    }
    if !waits_for_senior {
        shared.tasks.over(&shared.options.handle, task);
    }
}

/// The operator says something else than its worker. The final stands, and the audit says so.
async fn conflict(shared: &SeatHub, seat: &SeatId, run: &RunKey, task_id: &str) {
    let record = AuditRecord::new(AuditEvent::OPERATOR_ACK_CONFLICT, seat, run)
        .fact("task_id", task_id)
        .fact("run_id", run.run.as_str());
    // When the engine is gone nothing can be written any more.
    let _ = shared.options.handle.audit().record(&run.stream(), record).await;
}
