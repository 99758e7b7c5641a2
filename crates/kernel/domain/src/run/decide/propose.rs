//! An attempt ended with a proposal: it acts only once somebody has approved what it wants to do.

use serde_json::Value;
use wharf_vocab::limits::APPROVAL_DEADLINE_MS;
use wharf_vocab::{AskId, AskKind, Code, Digest, Executed, Fault, Micro, Object, RunStatus, shown};

use super::Draft;
use crate::run::{AttemptFailed, RunEntry};
use crate::{AskSpec, Audience, json_weight};

/// Proposals one run may make.
const PROPOSALS_MAX: u32 = 8;
/// Largest proposal, as JSON text.
const PROPOSAL_BYTES_MAX: usize = 16 * 1024;
/// Longest title of a proposal.
const TITLE_CHARS_MAX: usize = 200;

/// Asks for an approval of what the attempt proposes and lets the run wait for it. An error is
/// what the run fails with instead.
pub(super) fn decide(draft: &mut Draft<'_, '_>, error: &Fault, cost: Micro) -> Result<(), Fault> {
    let Some(Value::Object(proposal)) = error.details.get("proposal") else {
        return Err(error.clone());
    };
    let refuse = |message: String| Err(Fault::new(Code::ToolDirectiveRequired, message));
    if json_weight(proposal) > PROPOSAL_BYTES_MAX {
        return refuse(format!("The tool proposed more than {PROPOSAL_BYTES_MAX} bytes."));
    }
    if draft.run.proposals >= PROPOSALS_MAX {
        return refuse(format!("The tool asked for more than {PROPOSALS_MAX} approvals."));
    }
    let key = format!("directive:{}", Digest::of_object(proposal));
    let known = given(draft, &key);
    if known.is_some() && known.as_ref() == draft.run.approval() {
        return refuse("The tool does not take the approval of what it proposed.".to_owned());
    }
    let mut error = error.clone().executed(Executed::No);
    error.details.remove("proposal");
    draft.owe_notice(Some(&error));
    let bill = draft.settle(cost);
    let record = draft.completed(RunStatus::Failed, Some(&error), &bill);
    draft.audit.push(record);
    draft.push(RunEntry::AttemptFailed(AttemptFailed {
        error: error.clone(),
        // Whoever waits for an approval has not acted.
        executed: Executed::No,
        cost_micro: bill.cost_micro,
        retry_at: draft.cx.now,
        approval: known.clone(),
        metered: draft.delivery.metered.clone(),
        given: draft.delivery.given.clone(),
        incomplete: bill.incomplete,
    }));
    if known.is_some() {
        draft.run.pause = None;
        draft.proceed();
    } else {
        raise(draft, key, title(&error, proposal), proposal.clone());
    }
    Ok(())
}

/// The approval of the same proposal, if somebody has given it in this run.
fn given(draft: &Draft<'_, '_>, key: &str) -> Option<AskId> {
    let same = |raised: &&crate::run::RaisedAsk| {
        raised.gate && raised.ask.spec.key == key && raised.is_allowed()
    };
    draft.run.asks.iter().find(same).map(|raised| raised.ask.spec.ask_id.clone())
}

fn title(error: &Fault, proposal: &Object) -> Option<String> {
    let said = error.details.get("title").or(proposal.get("title"))?.as_str()?;
    let shown = shown(said, TITLE_CHARS_MAX);
    let shown = shown.trim();
    (!shown.is_empty()).then(|| shown.to_owned())
}

fn raise(draft: &mut Draft<'_, '_>, key: String, title: Option<String>, proposal: Object) {
    let spec = &draft.run.spec;
    let ask = AskSpec {
        ask_id: AskId::in_shard(draft.cx.shard, &draft.cx.fresh.unique()),
        kind: AskKind::Approval,
        run: draft.run.key.clone(),
        tool: spec.tool.clone(),
        key,
        title: title.unwrap_or_else(|| format!("Allow {} to do what it proposes?", spec.tool)),
        detail: Some(Value::Object(proposal)),
        schema: None,
        args_digest: Some(spec.args_digest()),
        tool_hash: Some(spec.tool_hash.clone()),
        files: spec.files(),
        audience: Audience::Person,
        caller: spec.caller.clone(),
        deadline: draft.cx.now.plus_ms(APPROVAL_DEADLINE_MS),
        escalates: None,
        then_person: false,
        task: Some(draft.run.task(draft.run.attempt)),
    };
    let actor = draft.provider();
    draft.raise(ask, true, actor);
}
