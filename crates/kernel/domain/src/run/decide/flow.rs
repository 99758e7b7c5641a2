//! The rules of a flow: what follows from what happened to its steps.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use wharf_vocab::limits::{
    CANCEL_GRACE_MS, FLOW_ASKS_MAX, FLOW_SIGNALS_MAX, QUESTION_DEADLINE_MS, RUN_ASKS_OPEN_MAX,
    RUN_SIGNALS_WAITING_MAX,
};
use wharf_vocab::{AskId, AskKind, Code, Executed, Fault, Object, RunId, Timestamp, ToolId};

use super::{Draft, RunEffect};
use crate::flow::{Call, Document, StepKind};
use crate::run::flow::{
    AskWant, ChildEnd, ChildWant, Evaluated, Evaluation, FlowBegan, FlowEnd, FlowExpired,
    FlowInput, FlowRunEntry, FlowState, FlowWork, NO_ASK_TURN, NewSignal, OUTPUT, RESTART, Restart,
    Signaled, StepCall, StepEnd, StepFinished, StepStarted, Want, WantKey, Woke, is_undo,
    restart_id, step_id, step_key,
};
use crate::run::{CancelRequested, Run, RunEntry};
use crate::{Actor, AskSpec, Audience, AuditEvent, Outcome, Resolution};

/// Longest pause between two tries of a call.
const BACKOFF_MAX_MS: u64 = 60 * 60 * 1000;

/// What a flow has asked for outside and waits for.
pub(super) fn wanted(run: &Run) -> BTreeSet<WantKey> {
    let keys = |(flow, spec): (&FlowState, _)| {
        flow.wants(spec).iter().filter_map(Want::key).collect::<BTreeSet<_>>()
    };
    parts(run).map(keys).unwrap_or_default()
}

fn parts(run: &Run) -> Option<(&FlowState, &crate::run::flow::FlowSpec)> {
    Some((run.flow.as_deref()?, run.spec.flow.as_deref()?))
}

/// Its first steps begin.
pub(super) fn begin(draft: &mut Draft<'_, '_>) {
    push(draft, FlowRunEntry::Began(FlowBegan {}));
}

fn push(draft: &mut Draft<'_, '_>, entry: FlowRunEntry) {
    draft.push(RunEntry::Flow(Box::new(entry)));
}

/// Something happened to a step. What nobody waits for any more changes nothing.
pub(super) fn happened(draft: &mut Draft<'_, '_>, input: &FlowInput) {
    match input {
        FlowInput::Evaluated { path, turn, result } => {
            let key = WantKey::Evaluate(path.clone(), *turn);
            if wanted(&draft.run).contains(&key) {
                let (value, error) = match result {
                    Ok(value) => (value.clone(), None),
                    Err(fault) => (Value::Null, Some(fault.clone())),
                };
                let (path, turn) = (path.clone(), *turn);
                push(draft, FlowRunEntry::Evaluated(Evaluated { path, turn, value, error }));
            }
        }
        FlowInput::Refused { path, fault, .. } if path == RESTART => not_restarted(draft, fault),
        FlowInput::Restarted { run } => restarted(draft, run),
        FlowInput::Refused { path, number, fault } => {
            if let Some(open) = open_call(&draft.run, path, *number) {
                let budget = fault.is(Code::BudgetExceeded);
                let error = fault.clone().executed(Executed::No);
                let end = StepEnd::Refused { error };
                let retry = !open.canceling && !budget;
                let at = retry.then(|| retry_at(draft, &open, &end, |_| true)).flatten();
                finish(draft, (path, *number), end, (0, false, at));
            }
        }
        FlowInput::Ended(ended) => {
            let ChildEnd { path, number, .. } = &**ended;
            if let Some(open) = open_call(&draft.run, path, *number)
                && open.child == ended.child
            {
                let safe =
                    |at: Timestamp| ended.executed == Executed::No || known(ended, &open, at);
                let canceled = open.canceling || matches!(ended.end, StepEnd::Canceled { .. });
                let at = (!canceled).then(|| retry_at(draft, &open, &ended.end, safe)).flatten();
                let end = ended.end.clone();
                finish(draft, (path, *number), end, (ended.cost_micro, true, at));
            }
        }
        FlowInput::Made { child } => call_off_again(draft, child),
        FlowInput::Recheck => {}
        FlowInput::Force { by, reason } => force(draft, by, reason),
    }
}

/// What the rules look at of a call that is under way.
struct OpenStepCall {
    path: String,
    child: RunId,
    canceling: bool,
    call: Call,
    /// When its first try began.
    since: Timestamp,
}

fn open_call(run: &Run, path: &str, number: u32) -> Option<OpenStepCall> {
    let (flow, spec) = parts(run)?;
    flow.wants(spec).into_iter().find_map(|want| match want {
        Want::Child(it) if it.path == path && it.number == number => Some(OpenStepCall {
            path: it.path,
            child: it.child.clone(),
            canceling: it.canceling,
            call: it.call.clone(),
            since: it.since,
        }),
        _ => None,
    })
}

fn finish(
    draft: &mut Draft<'_, '_>,
    (path, number): (&str, u32),
    end: StepEnd,
    (cost_micro, run, retry_at): (u64, bool, Option<Timestamp>),
) {
    let path = path.to_owned();
    let entry = StepFinished { path, number, end, cost_micro, run, retry_at };
    push(draft, FlowRunEntry::StepFinished(entry));
}

/// When a call is tried again, if it is: only where the last try did nothing, or doing it once
/// more can do no harm, or the document takes the risk.
fn retry_at(
    draft: &mut Draft<'_, '_>,
    open: &OpenStepCall,
    end: &StepEnd,
    safe: impl FnOnce(Timestamp) -> bool,
) -> Option<Timestamp> {
    let (retry, error) = (open.call.retry.as_ref()?, end.error()?);
    let number = current_try(&draft.run, &open.child)?;
    let wanted = retry.on.is_empty() || retry.on.iter().any(|on| on.matches(&error.code));
    if number >= retry.max || !wanted {
        return None;
    }
    let factor = 1_u64 << number.saturating_sub(1).min(20);
    let pause = retry.backoff_ms.saturating_mul(factor).min(BACKOFF_MAX_MS);
    let at = draft.cx.now.plus_ms(pause);
    if safe(at) {
        return Some(at);
    }
    if !retry.is_unsafe {
        return None;
    }
    // What may have acted is done once more, which somebody may want to know later.
    let record = draft
        .record(AuditEvent::FLOW_RETRIED_UNSAFE, Actor::CORE)
        .fact("step", open.path.as_str())
        .fact("try", u64::from(number))
        .fact("error", error.code.as_str());
    draft.audit.push(record);
    Some(at)
}

/// Whether doing it again at a moment can do no harm.
fn known(ended: &ChildEnd, open: &OpenStepCall, at: Timestamp) -> bool {
    let in_time = ended.known_for_ms.is_none_or(|for_ms| at.ms_since(open.since) < for_ms);
    ended.repeatable && in_time
}

/// The run that the flow begins anew as is there: this one is over.
fn restarted(draft: &mut Draft<'_, '_>, run: &RunId) {
    if restart_of(&draft.run).is_none() {
        return;
    }
    if draft.run.cancel.is_some() {
        draft.effects.push(RunEffect::Flow(FlowWork::Cancel(run.clone())));
        return end_run(draft, FlowEnd::Canceled);
    }
    end_run(draft, FlowEnd::Succeeded(Object::new()));
}

/// The flow could not begin anew.
fn not_restarted(draft: &mut Draft<'_, '_>, fault: &Fault) {
    if restart_of(&draft.run).is_none() {
        return;
    }
    let canceled = draft.run.cancel.is_some();
    let end = if canceled { FlowEnd::Canceled } else { FlowEnd::Failed(fault.clone()) };
    end_run(draft, end);
}

fn restart_of(run: &Run) -> Option<&Arc<Object>> {
    run.flow.as_ref()?.restarts_with()
}

fn current_try(run: &Run, child: &RunId) -> Option<u32> {
    let (flow, spec) = parts(run)?;
    flow.wants(spec).into_iter().find_map(|want| match want {
        Want::Child(it) if it.child == child => Some(it.number),
        _ => None,
    })
}

/// A run was made for a step that does not want it any more.
fn call_off_again(draft: &mut Draft<'_, '_>, child: &RunId) {
    let Some((flow, spec)) = parts(&draft.run) else { return };
    let wants = flow.wants(spec);
    let open = wants.iter().find_map(|want| match want {
        Want::Child(it) if it.child == child => Some(it.canceling),
        _ => None,
    });
    if open != Some(false) {
        draft.effects.push(RunEffect::Flow(FlowWork::Cancel(child.clone())));
    }
}

/// Somebody sends a message. A second one under the same key changes nothing.
pub(super) fn signal(draft: &mut Draft<'_, '_>, new: &NewSignal) -> Result<(), Fault> {
    let Some((flow, spec)) = parts(&draft.run) else { return Ok(()) };
    if new.key.as_ref().is_some_and(|key| flow.knows_signal(key)) {
        return Ok(());
    }
    if !awaits(&spec.document, &new.name) {
        let message = format!("The flow waits for no signal {}.", new.name);
        return Err(Fault::new(Code::FlowSignalUnknown, message));
    }
    if flow.signals_waiting() >= RUN_SIGNALS_WAITING_MAX {
        let message = format!("{RUN_SIGNALS_WAITING_MAX} signals wait for the run already.");
        return Err(Fault::new(Code::FlowSignalLimit, message));
    }
    if flow.signals_come() >= FLOW_SIGNALS_MAX {
        let message = format!("A run of a flow takes {FLOW_SIGNALS_MAX} signals at most.");
        return Err(Fault::new(Code::FlowSignalLimit, message));
    }
    let NewSignal { name, value, key, by } = new.clone();
    push(draft, FlowRunEntry::Signaled(Signaled { name, value, key, by }));
    Ok(())
}

fn awaits(document: &Document, name: &str) -> bool {
    let mut found = false;
    document.visit(&mut |_, step| {
        found |= matches!(&step.kind, StepKind::Signal(signal) if *signal.name == *name);
    });
    found
}

/// Somebody wants the flow to stop: its steps do, what they did is undone, and then it does what
/// it does at last.
pub(super) fn cancel(draft: &mut Draft<'_, '_>, by: &Actor, reason: &str) {
    let record = draft.record(AuditEvent::RUN_CANCEL_REQUESTED, by.clone());
    draft.audit.push(record);
    draft.push(RunEntry::CancelRequested(CancelRequested {
        by: by.clone(),
        reason: reason.to_owned(),
        deadline: draft.cx.now.plus_ms(CANCEL_GRACE_MS),
    }));
}

/// The flow ends at once; its steps are told to stop, and nobody waits for them.
fn force(draft: &mut Draft<'_, '_>, by: &Actor, reason: &str) {
    let record = draft.record(AuditEvent::RUN_CANCEL_REQUESTED, by.clone()).fact("force", true);
    draft.audit.push(record);
    let children: Vec<_> = match parts(&draft.run) {
        Some((flow, spec)) => {
            let child = |want: Want<'_>| match want {
                Want::Child(it) => Some(it.child.clone()),
                _ => None,
            };
            flow.wants(spec).into_iter().filter_map(child).collect()
        }
        None => Vec::new(),
    };
    let effects = children.into_iter().map(|child| RunEffect::Flow(FlowWork::Cancel(child)));
    draft.effects.extend(effects);
    let error = Fault::new(Code::ToolCanceled, reason).with("by", by.as_str());
    draft.end(Outcome::Canceled { error: error.executed(Executed::Maybe) }, 0);
}

/// Time has passed.
pub(super) fn tick(draft: &mut Draft<'_, '_>) {
    let now = draft.cx.now;
    let doomed = draft.run.flow.as_ref().is_none_or(|flow| flow.is_doomed());
    let late = draft.run.flow_deadline().is_some_and(|deadline| deadline <= now);
    if late && !doomed && draft.run.cancel.is_none() && !draft.run.is_over() {
        push(draft, FlowRunEntry::Expired(FlowExpired { error: None }));
    }
    let mut last = None;
    loop {
        let Some((flow, spec)) = parts(&draft.run).filter(|_| !draft.run.is_over()) else { return };
        let due = flow.wants(spec).into_iter().find_map(|want| match want {
            Want::Wake { path, at } if at <= now => Some(path),
            _ => None,
        });
        // A step whose time has come goes on; one that does not would be woken for ever.
        let Some(path) = due.filter(|path| last.as_ref() != Some(path)) else { return };
        let limit = draft.run.flow.as_ref().and_then(|flow| flow.at_limit());
        last = limit.is_none().then(|| path.clone());
        push(draft, limit.unwrap_or(FlowRunEntry::Woke(Woke { path })));
    }
}

/// Goes on as far as the flow can: writes down what begins, and asks outside for what it waits for
/// and has not asked for `before`.
pub(super) fn go_on(draft: &mut Draft<'_, '_>, before: Option<&BTreeSet<WantKey>>) {
    if draft.run.flow.is_none() || draft.run.is_over() {
        return;
    }
    while write_down(draft) {}
    withdraw(draft);
    if let Some(end) = draft.run.flow.as_ref().and_then(|flow| flow.end()) {
        return end_run(draft, end);
    }
    let began_at = draft.run.started_at.unwrap_or(draft.cx.now);
    if let Some(folded) = draft.run.flow.as_ref().and_then(|flow| flow.fold_due(began_at)) {
        push(draft, folded);
    }
    let works = works(draft, before);
    draft.effects.extend(works.into_iter().map(RunEffect::Flow));
}

/// Something that is to be written down before anything is done.
enum NextEntry {
    Start(String, u32, ToolId),
    Limit(FlowRunEntry),
    NoAsk(String),
    Raise(Box<AskWant>),
}

/// Writes down what begins; `false` if nothing does.
fn write_down(draft: &mut Draft<'_, '_>) -> bool {
    let Some((flow, spec)) = parts(&draft.run) else { return false };
    let (open, all) = (draft.run.open_asks().count(), draft.run.asks.len());
    let limit = flow.at_limit();
    let next = flow.wants(spec).into_iter().find_map(|want| match want {
        Want::Start { path, .. } if !is_undo(&path) && limit.is_some() => {
            limit.clone().map(NextEntry::Limit)
        }
        Want::Evaluate { path, .. } if path != OUTPUT => limit.clone().map(NextEntry::Limit),
        Want::Start { path, number, call } => {
            Some(NextEntry::Start(path, number, call.tool.clone()))
        }
        Want::Raise(ask) if all >= FLOW_ASKS_MAX => Some(NextEntry::NoAsk(ask.path)),
        // Further ones wait until others are over.
        Want::Raise(ask) if open < RUN_ASKS_OPEN_MAX => Some(NextEntry::Raise(ask)),
        _ => None,
    });
    match next {
        None => return false,
        Some(NextEntry::Start(path, number, tool)) => {
            let child = step_id(&draft.run.key, &path, number);
            push(draft, FlowRunEntry::StepStarted(StepStarted { path, number, child, tool }));
        }
        Some(NextEntry::Limit(entry)) => push(draft, entry),
        Some(NextEntry::NoAsk(path)) => {
            let message = format!("A run of a flow asks {FLOW_ASKS_MAX} times at most.");
            let error = Some(Fault::new(Code::FlowLimit, message).with("limit", "asks"));
            let (turn, value) = (NO_ASK_TURN, Value::Null);
            push(draft, FlowRunEntry::Evaluated(Evaluated { path, turn, value, error }));
        }
        Some(NextEntry::Raise(ask)) => raise(draft, *ask),
    }
    true
}

fn raise(draft: &mut Draft<'_, '_>, want: AskWant) {
    let spec = &draft.run.spec;
    let approval = want.kind == AskKind::Approval;
    let wait = want.deadline_ms.unwrap_or(QUESTION_DEADLINE_MS);
    let ask = AskSpec {
        ask_id: AskId::in_shard(draft.cx.shard, &draft.cx.fresh.unique()),
        kind: want.kind,
        run: draft.run.key.clone(),
        tool: spec.tool.clone(),
        key: want.path,
        title: want.title,
        detail: None,
        schema: want.schema,
        args_digest: approval.then(|| spec.args_digest()),
        tool_hash: approval.then(|| spec.tool_hash.clone()),
        files: std::collections::BTreeMap::new(),
        audience: want.audience.unwrap_or(Audience::Any),
        caller: spec.caller.clone(),
        deadline: draft.cx.now.plus_ms(wait),
        escalates: None,
        then_person: false,
        task: None,
    };
    let actor = draft.provider();
    draft.raise(ask, false, actor);
}

/// Ends asks that no step waits for any more.
fn withdraw(draft: &mut Draft<'_, '_>) {
    let Some((flow, spec)) = parts(&draft.run) else { return };
    let wants = flow.wants(spec);
    let wanted: BTreeSet<&AskId> = wants
        .iter()
        .filter_map(|want| match want {
            Want::Open(ask_id) => Some(ask_id),
            _ => None,
        })
        .collect();
    let open = draft.run.open_asks().filter(|raised| !raised.gate);
    let left: Vec<AskId> = open
        .map(|raised| raised.ask.spec.ask_id.clone())
        .filter(|id| !wanted.contains(id))
        .collect();
    for ask_id in left {
        draft.resolve(&ask_id, Resolution::Withdrawn, &Actor::CORE, None);
    }
}

/// What is to be done outside.
fn works(draft: &Draft<'_, '_>, before: Option<&BTreeSet<WantKey>>) -> Vec<FlowWork> {
    let run = &draft.run;
    let Some((flow, spec)) = parts(run) else { return Vec::new() };
    let is_new = |want: &Want<'_>| {
        want.key().is_some_and(|key| before.is_none_or(|before| !before.contains(&key)))
    };
    let now = draft.cx.now;
    let work = |want: Want<'_>| match want {
        Want::Evaluate { path, turn, what, sight } => {
            let scope = flow.scope(sight, run.key.clone(), now);
            Some(FlowWork::Evaluate(Box::new(Evaluation { path, turn, what, scope })))
        }
        Want::Restart(inputs) => Some(FlowWork::Restart(Box::new(Restart {
            run: restart_id(&run.key),
            inputs: Arc::clone(inputs),
            look_up: before.is_none(),
            canceling: run.cancel.is_some(),
        }))),
        Want::Child(child) if child.canceling && before.is_some() => {
            Some(FlowWork::Cancel(child.child.clone()))
        }
        Want::Child(child) => {
            let ChildWant { path, number, child, canceling, call, sight, .. } = child;
            let key = step_key(&run.key, &path);
            let scope = flow.scope(sight, run.key.clone(), now);
            let files = call.continues.as_ref().and_then(|id| scope.steps.get(id.as_str()));
            let continues = files.and_then(|step| step.run.clone());
            Some(FlowWork::Begin(Box::new(StepCall {
                key,
                continues,
                call: Arc::new(call.clone()),
                scope,
                look_up: before.is_none(),
                child: child.clone(),
                path,
                number,
                canceling,
            })))
        }
        _ => None,
    };
    flow.wants(spec).into_iter().filter(is_new).filter_map(work).collect()
}

fn end_run(draft: &mut Draft<'_, '_>, end: FlowEnd) {
    let outcome = match end {
        FlowEnd::Succeeded(outputs) => Outcome::Succeeded { outputs },
        FlowEnd::Failed(error) => Outcome::Failed { error: error.executed(Executed::Maybe) },
        FlowEnd::Canceled => {
            let (by, reason) = match &draft.run.cancel {
                Some(cancel) => (cancel.by.clone(), cancel.reason.clone()),
                None => (Actor::CORE, "The flow was canceled.".to_owned()),
            };
            let error = Fault::new(Code::ToolCanceled, reason).with("by", by.as_str());
            Outcome::Canceled { error: error.executed(Executed::Maybe) }
        }
    };
    draft.end(outcome, 0);
}
