//! The attempt under way notes what it must know if it is taken up again.

use serde_json::Value;
use wharf_vocab::limits::ATTEMPT_NOTES_BYTES_MAX;
use wharf_vocab::{AttemptId, Code, Fault};

use super::Draft;
use crate::run::{AttemptNoted, NoteKey, RunEntry};
use crate::weight::value_weight;

/// The same again changes nothing, nor does the note of an attempt that is over.
pub(super) fn decide(
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
