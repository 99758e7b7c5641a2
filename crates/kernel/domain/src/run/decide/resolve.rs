//! Somebody decides an ask, and what was decided holds for others.

use wharf_vocab::{AskId, Code, Fault};

use super::{Draft, RunEffect, gate};
use crate::run::{ChildrenAllowed, Phase, RunEntry};
use crate::{Actor, AuditEvent, Caller, Resolution, Scope, Via};

/// Allowances one run may remember.
const ALLOWED_MAX: usize = 256;

pub(super) fn decide(
    draft: &mut Draft<'_, '_>,
    ask_id: &AskId,
    resolution: &Resolution,
    by: &Caller,
) -> Result<(), Fault> {
    let Some(raised) = draft.run.asks.iter().find(|r| r.ask.spec.ask_id == *ask_id) else {
        return Err(Fault::new(Code::AskNotFound, format!("There is no open ask {ask_id}.")));
    };
    raised.ask.may_resolve(by, resolution, draft.cx.now)?;
    let whole = raised.is_dispatch();
    let resolution = &gate::reach(&draft.run, raised, resolution, by);
    check_scope(draft, whole, resolution)?;
    if raised.ask.spec.deadline <= draft.cx.now {
        return Err(Fault::new(Code::AskExpired, "The time to decide this ask is over."));
    }
    let gated = draft.run.phase() == Phase::Gated && raised.gate;
    draft.resolve(ask_id, resolution.clone(), &Actor::from(&by.grant), Via::of(by));
    if gated {
        if whole && let Resolution::Allow { scope } = resolution {
            remember(draft, ask_id, *scope, by);
        }
        after_gate(draft, resolution);
    }
    Ok(())
}

/// Only the approval of a whole run can hold for others, and only where there is a parent.
fn check_scope(draft: &Draft<'_, '_>, whole: bool, resolution: &Resolution) -> Result<(), Fault> {
    if !matches!(resolution, Resolution::Allow { scope: Scope::Parent }) {
        return Ok(());
    }
    let message = match (whole, &draft.run.spec.parent) {
        (true, Some(_)) => return Ok(()),
        (true, None) => "This run has no parent run it could be allowed for.",
        (false, _) => "This approval is for one thing only; allow it without a scope.",
    };
    Err(Fault::new(Code::AskAnswerInvalid, message))
}

/// Tells those who are to remember the approval. If that is lost, somebody is asked once more.
fn remember(draft: &mut Draft<'_, '_>, ask_id: &AskId, scope: Scope, by: &Caller) {
    let spec = &draft.run.spec;
    if let (Scope::Parent, Some(parent)) = (scope, &spec.parent) {
        let allowed = ChildrenAllowed {
            tool: spec.tool.clone(),
            tool_hash: spec.tool_hash.clone(),
            caller: spec.caller.grant.clone(),
            ask_id: ask_id.clone(),
            by: Actor::from(&by.grant),
        };
        draft.effects.push(RunEffect::AllowChildren { parent: parent.clone(), allowed });
    }
    if spec.gate.as_ref().is_some_and(|gate| gate.remember) {
        draft.effects.push(RunEffect::AllowTool { ask_id: ask_id.clone(), by: by.to_ref() });
    }
}

/// Goes on or ends the run, once the approval that guards its dispatch has been decided.
pub(super) fn after_gate(draft: &mut Draft<'_, '_>, resolution: &Resolution) {
    match resolution {
        Resolution::Allow { .. } => draft.proceed(),
        Resolution::Deny { reason } => {
            let message = if reason.is_empty() {
                "The run was not approved.".to_owned()
            } else {
                format!("The run was not approved: {reason}")
            };
            draft.refuse(Fault::new(Code::AskDenied, message));
        }
        _ => {
            draft.refuse(Fault::new(Code::AskExpired, "Nobody approved the run in time."));
        }
    }
}

/// An approval of one of the run's children holds for others, too.
pub(super) fn allow_children(draft: &mut Draft<'_, '_>, allowed: &ChildrenAllowed) {
    let known = draft.run.allows_child(&allowed.tool_hash, &allowed.caller).is_some();
    if known || draft.run.children_allowed.len() >= ALLOWED_MAX {
        return;
    }
    let record = draft
        .record(AuditEvent::RUN_CHILDREN_ALLOWED, allowed.by.clone())
        .fact("allowed_tool", allowed.tool.as_str())
        .fact("ask_id", allowed.ask_id.as_str());
    draft.audit.push(record);
    draft.push(RunEntry::ChildrenAllowed(allowed.clone()));
}
