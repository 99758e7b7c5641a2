//! The attempt under way asks something.

use std::collections::BTreeMap;

use wharf_vocab::limits::{QUESTION_DEADLINE_MS, RUN_ASKS_MAX, RUN_ASKS_OPEN_MAX};
use wharf_vocab::{AskId, AskKind, Code, Fault};

use super::{Draft, RunEffect};
use crate::AskSpec;
use crate::run::NewAsk;

/// The same key in one run is the same ask: an attempt that begins again after a crash raises it
/// again and gets the answer that was recorded, or goes on waiting for it.
pub(super) fn decide(draft: &mut Draft<'_, '_>, new: &NewAsk) -> Result<(), Fault> {
    let active = draft.run.active.as_ref().is_some_and(|attempt| attempt.id == new.attempt_id);
    if !active {
        return Err(Fault::new(Code::ToolCanceled, "The attempt that asks is over."));
    }
    if let Some(raised) = draft.run.asks.iter().find(|r| !r.gate && r.ask.spec.key == new.key) {
        if !is_same(&raised.ask.spec, new) {
            let message = format!("The key {} already stands for another ask.", new.key);
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        if let Some((resolution, _)) = &raised.ask.resolved {
            draft.effects.push(RunEffect::Answer {
                attempt_id: new.attempt_id.clone(),
                key: new.key.clone(),
                resolution: resolution.clone(),
            });
        }
        return Ok(());
    }
    let open = draft.run.open_asks().count();
    if open >= RUN_ASKS_OPEN_MAX || draft.run.asks.len() >= RUN_ASKS_MAX {
        return Err(Fault::new(Code::AskLimit, "The run has raised too many asks."));
    }
    let spec = &draft.run.spec;
    let approval = new.kind == AskKind::Approval;
    let ask = AskSpec {
        ask_id: AskId::in_shard(draft.cx.shard, &draft.cx.fresh.unique()),
        kind: new.kind,
        run: draft.run.key.clone(),
        tool: spec.tool.clone(),
        key: new.key.clone(),
        title: new.title.clone(),
        detail: new.detail.clone(),
        schema: new.schema.clone(),
        args_digest: approval.then(|| spec.args_digest()),
        tool_hash: approval.then(|| spec.tool_hash.clone()),
        files: if approval { spec.files() } else { BTreeMap::new() },
        audience: new.audience.clone(),
        caller: spec.caller.executed_by(&new.by),
        deadline: new.deadline.unwrap_or(draft.cx.now.plus_ms(QUESTION_DEADLINE_MS)),
        escalates: new.escalates,
        then_person: false,
        task: Some(draft.run.task(draft.run.attempt)),
    };
    let actor = draft.provider();
    draft.raise(ask, false, actor);
    Ok(())
}

/// Permission is for what was shown when it was given; a question may be worded anew.
fn is_same(raised: &AskSpec, new: &NewAsk) -> bool {
    raised.kind == new.kind && (new.kind == AskKind::Question || raised.title == new.title)
}
