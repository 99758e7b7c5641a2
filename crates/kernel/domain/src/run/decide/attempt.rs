//! An attempt ended, noted something, or wrote more than it may. Retries are decided here.

use serde_json::Value;
use wharf_vocab::limits::{
    ATTEMPT_NOTES_BYTES_MAX, ATTEMPTS_MAX, RETRY_BACKOFF_MAX_MS, RETRY_BACKOFF_MS,
};
use wharf_vocab::{AttemptId, Code, Executed, Fault, Micro, Object, RunStatus, Timestamp};

use super::{Draft, RunEffect, cost, is_last_word, propose, room, steps};
use crate::run::{
    AttemptError, AttemptFailed, AttemptNoted, AttemptReport, NoteKey, Publishing, Run, RunEntry,
};
use crate::scope::WorldPath;
use crate::weight::value_weight;
use crate::{Delivery, Outcome};

pub(super) fn ended(draft: &mut Draft<'_, '_>, attempt_id: &AttemptId, report: &AttemptReport) {
    if !is_active(&draft.run, attempt_id) {
        return;
    }
    draft.delivery.clone_from(&report.delivery);
    draft.accounted = is_last_word(report);
    let cost = cost::at_the_end(draft, attempt_id, report.cost_micro);
    match &report.result {
        Ok(outputs) if !report.delivery.moves.is_empty() => publish(draft, outputs, cost),
        Ok(outputs) => draft.succeed(outputs.clone(), cost),
        Err(AttemptError::Refused(error)) => {
            draft.end(Outcome::Refused { error: error.clone() }, cost);
        }
        Err(AttemptError::Canceled(error)) => canceled(draft, error.clone(), cost),
        Err(AttemptError::Failed(error, executed)) => {
            failed(draft, error.clone(), *executed, cost);
        }
    }
}

/// The attempt has done what it should; its files are put in their places before anybody is told.
fn publish(draft: &mut Draft<'_, '_>, outputs: &Object, cost_micro: Micro) {
    draft.withdraw_asks();
    let Delivery { artifacts, moves, metered, given } = std::mem::take(&mut draft.delivery);
    let outputs = outputs.clone();
    let entry = Publishing { outputs, cost_micro, artifacts, moves, metered, given };
    draft.push(RunEntry::Publishing(Box::new(entry)));
    put_in_place(draft);
}

/// Asks for the files of the active attempt to be put in their places; doing it twice is harmless.
pub(super) fn put_in_place(draft: &mut Draft<'_, '_>) {
    if let (Some(active), Some(publishing)) = (&draft.run.active, &draft.run.publishing) {
        let (attempt_id, moves) = (active.id.clone(), publishing.moves.clone());
        draft.effects.push(RunEffect::Publish { attempt_id, moves });
    }
}

/// The files are in their places, or the artifact store has lost some of them.
pub(super) fn published(draft: &mut Draft<'_, '_>, attempt_id: &AttemptId, lost: &[WorldPath]) {
    if !is_active(&draft.run, attempt_id) {
        return;
    }
    let Some(publishing) = draft.run.publishing.clone() else { return };
    let Publishing { outputs, cost_micro, artifacts, metered, given, .. } = *publishing;
    let Some(first) = lost.first() else {
        draft.delivery = Delivery { artifacts, moves: Vec::new(), metered, given };
        draft.accounted = true;
        return draft.succeed(outputs, cost_micro);
    };
    draft.accounted = true;
    draft.delivery = Delivery { metered, given, ..Delivery::default() };
    let message = format!("The artifact store has lost {first} before it was published.");
    let paths: Vec<&str> = lost.iter().map(WorldPath::as_str).collect();
    let error = Fault::new(Code::ArtifactLost, message).with("paths", paths);
    let acted = draft.run.acted_with(Executed::Yes);
    draft.end(Outcome::Failed { error: error.executed(acted) }, cost_micro);
}

pub(super) fn too_large(draft: &mut Draft<'_, '_>, attempt_id: &AttemptId) {
    if is_active(&draft.run, attempt_id) {
        draft.cancel_active("it wrote more than it may");
        let message = "The tool wrote more output than a run may have.";
        draft.fail(Fault::new(Code::ToolOutputTooLarge, message), Executed::Maybe);
    }
}

/// Results of attempts that are no longer active come too late and change nothing.
fn is_active(run: &Run, attempt_id: &AttemptId) -> bool {
    run.active.as_ref().is_some_and(|attempt| attempt.id == *attempt_id)
}

/// A provider may also stop by itself; the error says who called the run off.
fn canceled(draft: &mut Draft<'_, '_>, error: Fault, cost: Micro) {
    let outcome = match &draft.run.cancel {
        Some(cancel) => {
            // Why it was called off matters more than how the provider puts it.
            let error = Fault { message: cancel.reason.clone(), ..error };
            Outcome::Canceled { error: error.with("by", cancel.by.as_str()) }
        }
        None => Outcome::Canceled { error: error.with("by", "provider") },
    };
    draft.end(outcome, cost);
}

pub(super) fn failed(draft: &mut Draft<'_, '_>, error: Fault, executed: Executed, cost: Micro) {
    let acted = draft.run.acted_with(executed);
    if let Some(cancel) = draft.run.cancel.clone() {
        // Losing the provider while it was told to stop is what was wanted.
        let lost = error.is(Code::ToolAgentLost) || error.is(Code::ToolCanceled);
        let outcome = if lost {
            let error = Fault::new(Code::ToolCanceled, cancel.reason)
                .with("by", cancel.by.as_str())
                .executed(acted);
            Outcome::Canceled { error }
        } else {
            Outcome::Failed { error: error.executed(acted) }
        };
        return draft.end(outcome, cost);
    }
    if error.is(Code::ToolDirectiveRequired) {
        if let Err(error) = propose::decide(draft, &error, cost) {
            draft.end(Outcome::Failed { error: error.executed(acted) }, cost);
        }
        return;
    }
    if room::never_began(&draft.run, &error, executed, cost) {
        return room::not_taken(draft, error);
    }
    let tries = steps::failures(&draft.run).unwrap_or(draft.run.attempt);
    let retry_at = draft.cx.now.plus_ms(backoff(tries, draft.cx.fresh.random()));
    if !may_retry(&draft.run, &error, executed, retry_at) {
        return draft.end(Outcome::Failed { error: error.executed(acted) }, cost);
    }
    let error = error.executed(executed);
    draft.owe_notice(Some(&error));
    let bill = draft.settle(cost);
    let record = draft.completed(RunStatus::Failed, Some(&error), &bill);
    draft.audit.push(record);
    draft.push(RunEntry::AttemptFailed(AttemptFailed {
        error,
        executed,
        cost_micro: bill.cost_micro,
        retry_at,
        approval: None,
        metered: draft.delivery.metered.clone(),
        given: draft.delivery.given.clone(),
        incomplete: bill.incomplete,
    }));
}

/// Another attempt is safe if the tool does not act, or the provider still knows the key then, or
/// the attempt provably never started. One of a durable tool is what its author has declared it for.
fn may_retry(run: &Run, error: &Fault, executed: Executed, retry_at: Timestamp) -> bool {
    let spec = &run.spec;
    if let Some(failures) = steps::failures(run) {
        return steps::may_go_on(error, failures);
    }
    let keyed = spec.idempotency_key.is_some() && knows_key(run, error, retry_at);
    // Waiting for an approval is no try that went wrong.
    error.retryable
        && run.attempt.saturating_sub(run.proposals) < ATTEMPTS_MAX
        && (executed == Executed::No || spec.side_effect_free || keyed)
}

/// Whether the provider will still know the run's key at that moment. What the key was kept in
/// may be gone with the provider, and a promise that ends is counted from the first attempt.
fn knows_key(run: &Run, error: &Fault, at: Timestamp) -> bool {
    let Some(kept) = &run.spec.keys_kept else { return run.spec.idempotent };
    let lost = error.is(Code::ToolAgentLost) && !kept.beyond_process;
    let began = run.started_at.unwrap_or(run.created_at);
    let in_time = kept.for_ms.is_none_or(|for_ms| at.ms_since(began) < for_ms);
    run.spec.idempotent && !lost && in_time
}

/// The pause doubles with each attempt; chance spreads the retries of many runs.
pub(super) fn backoff(attempt: u32, random: u64) -> u64 {
    let full = RETRY_BACKOFF_MS
        .saturating_mul(1 << attempt.saturating_sub(1).min(20))
        .min(RETRY_BACKOFF_MAX_MS);
    full / 2 + random % (full / 2 + 1)
}

/// The attempt under way notes what it must know if it is taken up again. The same again changes
/// nothing, nor does the note of an attempt that is over.
pub(super) fn note(
    draft: &mut Draft<'_, '_>,
    attempt_id: &AttemptId,
    key: NoteKey,
    value: Option<&Value>,
) -> Result<(), Fault> {
    let Some(active) = draft.run.active.as_ref().filter(|active| active.id == *attempt_id) else {
        return Ok(());
    };
    if active.notes.get(&key) == value {
        return Ok(());
    }
    let others = active.notes.iter().filter(|(other, _)| **other != key);
    let bytes = others.map(|(_, value)| value_weight(value)).sum::<u64>();
    if bytes + value.map_or(0, value_weight) > ATTEMPT_NOTES_BYTES_MAX {
        let message = format!("What a call notes takes {ATTEMPT_NOTES_BYTES_MAX} bytes at most.");
        return Err(Fault { retryable: false, ..Fault::new(Code::ToolLimit, message) });
    }
    let (attempt_id, value) = (attempt_id.clone(), value.cloned());
    draft.push(RunEntry::AttemptNoted(AttemptNoted { attempt_id, key, value }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_never_fall_below_half() {
        for attempt in 1..40 {
            let full = (RETRY_BACKOFF_MS << (attempt - 1).min(20)).min(RETRY_BACKOFF_MAX_MS);
            for random in [0, 1, u64::MAX] {
                let pause = backoff(attempt, random);
                assert!((full / 2..=full).contains(&pause), "{attempt} {random} {pause}");
            }
        }
    }
}
