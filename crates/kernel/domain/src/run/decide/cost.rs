//! A provider says what an attempt has cost, while it is under way or after it is over.

use wharf_vocab::limits::{COST_REPORT_MICRO_MIN, COST_REPORT_MULTIPLE_MAX};
use wharf_vocab::{AttemptId, Code, Executed, Fault, Micro};

use super::{Draft, is_last_word};
use crate::run::{CostReported, Phase, Run, RunEntry, RunInput};
use crate::{AuditEvent, Funds, LedgerOp, Severity};

/// What a provider says.
pub(super) struct Report<'a> {
    /// The attempt.
    pub(super) attempt_id: &'a AttemptId,
    /// What it has cost in all.
    pub(super) said: Micro,
    /// Whether it comes with the provider's own word on how the attempt ended.
    pub(super) last: bool,
}

/// The cost that comes with an end that can no longer be one: the attempt is over, or has said
/// before how it ended. What it cost counts all the same.
pub(super) fn too_late_to_end<'a>(run: &Run, input: &'a RunInput) -> Option<Report<'a>> {
    let RunInput::AttemptEnded { attempt_id, report } = input else { return None };
    let active = run.active.as_ref().is_some_and(|attempt| attempt.id == *attempt_id);
    let (said, last) = (report.cost_micro, is_last_word(report));
    (!active || run.publishing.is_some()).then_some(Report { attempt_id, said, last })
}

/// Reports are cumulative: one that says no more than another before it changes nothing.
pub(super) fn reported(draft: &mut Draft<'_, '_>, report: &Report<'_>) {
    let believed = believable(&draft.run, report.said);
    let entry = CostReported {
        attempt_id: report.attempt_id.clone(),
        cost_micro: believed,
        said_micro: (believed < report.said).then_some(report.said),
        last: false,
    };
    let active = draft.run.active.as_ref().filter(|active| active.id == *report.attempt_id);
    let told = draft.run.publishing.as_ref().map_or(0, |publishing| publishing.cost_micro);
    match active.map(|active| active.reported_micro.max(told)) {
        Some(before) if before < believed => {
            let stops = matches!(draft.run.phase(), Phase::Running | Phase::Asking);
            so_far(draft, entry, stops);
        }
        Some(_) => {}
        None => late(draft, entry, report.last),
    }
}

/// The most that is taken from one report. Whoever says more has most likely said it in another
/// unit, and must not use up at once what others live on.
fn believable(run: &Run, said: Micro) -> Micro {
    let most = run.spec.hold_micro.saturating_mul(COST_REPORT_MULTIPLE_MAX);
    said.min(most.max(COST_REPORT_MICRO_MIN))
}

/// What comes with an attempt's end and is not to be believed is written down before the end.
pub(super) fn at_the_end(draft: &mut Draft<'_, '_>, attempt_id: &AttemptId, said: Micro) -> Micro {
    let cost_micro = believable(&draft.run, said);
    let before = draft.run.active.as_ref().map_or(0, |active| active.reported_micro);
    if before < cost_micro && cost_micro < said {
        let (attempt_id, said_micro) = (attempt_id.clone(), Some(said));
        so_far(draft, CostReported { attempt_id, cost_micro, said_micro, last: false }, false);
    }
    cost_micro
}

/// What the attempt under way reports is set aside as well. When that passes what there is, the
/// attempt is stopped and the run ends; one that is about to end anyway is let be.
fn so_far(draft: &mut Draft<'_, '_>, entry: CostReported, stops: bool) {
    note_cap(draft, &entry);
    let cost = entry.cost_micro;
    draft.push(RunEntry::CostReported(entry));
    if !draft.run.spec.is_paid() {
        return;
    }
    let passed = draft.cx.refused.filter(|_| stops);
    let held = draft.run.active.as_ref().and_then(|active| active.hold.clone());
    if let Some(held) = held {
        let (hold, account) = (held.hold, held.account);
        let beyond = !stops || passed.is_some();
        draft.ledger.push(LedgerOp::Report { hold, account, cost, beyond });
    }
    if let Some(funds) = passed {
        stop(draft, funds, cost);
    }
}

/// The attempt has cost more than there is.
fn stop(draft: &mut Draft<'_, '_>, funds: &Funds, cost: Micro) {
    draft.cancel_active("it has cost more than its budget");
    let message = format!(
        "The attempt has cost {cost} micro-dollars so far, {} more than {} had left.",
        funds.missing, funds.account
    );
    let error = Fault::new(Code::BudgetExceeded, message)
        .with("account", funds.account.as_str())
        .with("missing_micro", funds.missing)
        .with("cost_micro", cost);
    draft.fail(error, Executed::Maybe);
}

/// A correction of what was booked for an attempt that is over; how the run stands stays.
fn late(draft: &mut Draft<'_, '_>, entry: CostReported, last: bool) {
    let booked = draft.run.booked.iter().find(|booked| booked.attempt_id == entry.attempt_id);
    let Some(booked) = booked.filter(|booked| booked.cost_micro <= entry.cost_micro) else {
        return;
    };
    let added = entry.cost_micro - booked.cost_micro;
    // That a cost is the last word is worth an entry of its own, that there is none is not.
    let entry = CostReported { last: last && booked.incomplete, ..entry };
    if added == 0 && (!entry.last || entry.cost_micro == 0) {
        return;
    }
    note_cap(draft, &entry);
    if added > 0 && draft.run.spec.is_paid() {
        let record = draft
            .record(AuditEvent::RUN_COST_CORRECTED, draft.provider())
            .fact("attempt_id", entry.attempt_id.as_str())
            .fact("cost_micro", entry.cost_micro)
            .fact("added_micro", added);
        draft.audit.push(record);
        let account = draft.run.spec.account.clone();
        draft.ledger.push(LedgerOp::Charge { account, spent: added });
        draft.learn(entry.cost_micro);
    }
    draft.push(RunEntry::CostReported(entry));
}

fn note_cap(draft: &mut Draft<'_, '_>, entry: &CostReported) {
    if let Some(said) = entry.said_micro {
        let record = draft
            .record(AuditEvent::RUN_COST_CAPPED, draft.provider())
            .severity(Severity::Warn)
            .fact("attempt_id", entry.attempt_id.as_str())
            .fact("said_micro", said)
            .fact("cost_micro", entry.cost_micro);
        draft.audit.push(record);
    }
}
