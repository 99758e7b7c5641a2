//! What an attempt notes for whoever takes it up again.

use serde_json::json;
use wharf_domain::run::{NoteKey, RunInput};
use wharf_vocab::limits::ATTEMPT_NOTES_BYTES_MAX;
use wharf_vocab::{Code, Executed};

use crate::names::kinds;
use crate::stage::{Plan, Stage};

fn noted(stage: &Stage) -> Vec<(NoteKey, String)> {
    let notes = stage.run.active.iter().flat_map(|active| &active.notes);
    notes.map(|(key, value)| (*key, value.to_string())).collect()
}

#[test]
fn m062_a_note_stays_with_its_attempt_and_goes_with_it() {
    let mut stage = Plan::of(|spec| {
        spec.side_effect_free = true;
        spec.reattach = true;
    })
    .start();
    let decision = stage.take(&stage.notes(NoteKey::Task, Some(json!("t-1"))));
    assert_eq!(kinds(&decision.entries), ["attempt_noted"]);
    stage.ignore(&stage.notes(NoteKey::Task, Some(json!("t-1"))));
    stage.take(&stage.notes(NoteKey::State, Some(json!({"round": 1}))));
    stage.take(&stage.notes(NoteKey::State, Some(json!({"round": 2}))));
    let expected =
        [(NoteKey::Task, "\"t-1\"".to_owned()), (NoteKey::State, "{\"round\":2}".to_owned())];
    assert_eq!(noted(&stage), expected);
    stage.take(&RunInput::Recovered);
    assert_eq!(noted(&stage), expected, "a restart keeps them");
    stage.take(&stage.notes(NoteKey::State, None));
    stage.ignore(&stage.notes(NoteKey::State, None));
    assert_eq!(noted(&stage), expected[..1]);
    stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe));
    stage.now = stage.run.next_deadline().expect("it waits");
    stage.take(&RunInput::Tick);
    assert_eq!(stage.run.attempt, 2);
    assert_eq!(noted(&stage), [], "another attempt knows nothing of it");
}

#[test]
fn m063_notes_of_another_attempt_change_nothing() {
    let mut stage = Plan::default().start();
    let attempt_id = "another".parse().expect("an id");
    let key = NoteKey::State;
    stage.ignore(&RunInput::Note { attempt_id, key, value: Some(json!(1)) });
}

#[test]
fn the_notes_of_an_attempt_are_bounded() {
    let mut stage = Plan::default().start();
    let half = usize::try_from(ATTEMPT_NOTES_BYTES_MAX / 2).expect("fits");
    stage.take(&stage.notes(NoteKey::Task, Some(json!("x".repeat(half)))));
    let more = stage.notes(NoteKey::State, Some(json!("x".repeat(half))));
    let fault = stage.reject(&more);
    assert!(fault.is(Code::ToolLimit) && !fault.retryable, "{fault}");
    stage.take(&stage.notes(NoteKey::Task, None));
    stage.take(&more);
}
