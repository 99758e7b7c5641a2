//! Outputs that appear all together: once they begin to be put in their places, the run succeeds,
//! once, whatever happens around it; unless the artifact store has lost one of them.

use wharf_domain::run::{AttemptReport, Phase, RunEffect, RunInput};
use wharf_domain::{Delivery, RunEntry};
use wharf_vocab::{Code, Executed, RunStatus};

use crate::stage::{
    Plan, Stage, answered, assert_stands, cancel, down, effects, kinds, object, person, resolve,
    staged,
};

/// A run whose files are being put in their places.
fn publishing() -> Stage {
    let mut stage = Plan::of(|spec| spec.hold_micro = 10).start();
    stage.take(&stage.publishes());
    assert_eq!(stage.phase(), Phase::Publishing);
    stage
}

#[test]
fn t047_a_success_with_staged_files_is_told_only_when_they_are_in_their_places() {
    let mut stage = Plan::default().start();
    let wanted = staged(&stage.attempt_id());
    let decision = stage.take(&stage.publishes());
    assert_eq!(kinds(&decision.entries), ["publishing"]);
    assert_eq!(
        decision.effects,
        [RunEffect::Publish { attempt_id: stage.attempt_id(), moves: wanted.moves.clone() }]
    );
    assert_stands(&stage, RunStatus::Running, None);
    assert!(stage.artifacts.is_empty(), "nobody sees files that are not there");

    let decision = stage.take(&stage.published());
    assert_eq!(kinds(&decision.entries), ["ended"]);
    assert_eq!(effects(&decision.effects), [""; 0]);
    assert_stands(&stage, RunStatus::Succeeded, None);
    assert_eq!(stage.run.artifacts, wanted.artifacts);
    assert_eq!(stage.artifacts.len(), 1);
}

#[test]
fn t047_what_needs_no_publication_ends_at_once() {
    let mut stage = Plan::default().start();
    let delivery = Delivery { moves: Vec::new(), ..staged(&stage.attempt_id()) };
    let artifacts = delivery.artifacts.clone();
    let report = AttemptReport { delivery, ..AttemptReport::new(Ok(object("result")), 0) };
    let decision = stage.take(&RunInput::AttemptEnded { attempt_id: stage.attempt_id(), report });
    assert_eq!(kinds(&decision.entries), ["ended"]);
    assert_eq!(stage.run.artifacts, artifacts);
}

#[test]
fn t047_a_failed_attempt_publishes_nothing() {
    let mut stage = Plan::of(|spec| spec.side_effect_free = true).start();
    let first = stage.attempt_id();
    let RunInput::AttemptEnded { report, .. } = stage.failed(Code::ToolBusy, Executed::Maybe)
    else {
        unreachable!("an attempt that ended")
    };
    let report = AttemptReport { delivery: staged(&first), ..report };
    let decision = stage.take(&RunInput::AttemptEnded { attempt_id: first.clone(), report });
    assert_eq!(kinds(&decision.entries), ["attempt_failed"]);
    assert_eq!(effects(&decision.effects), [""; 0]);
    stage.wake();

    // The second attempt stages files of its own; those of the first are never put anywhere.
    let second = stage.attempt_id();
    let decision = stage.take(&stage.publishes());
    let [RunEffect::Publish { moves, .. }] = decision.effects.as_slice() else {
        panic!("{:?}", decision.effects)
    };
    assert_eq!(*moves, staged(&second).moves);
    assert_ne!(*moves, staged(&first).moves);
}

#[test]
fn t047_nothing_turns_back_what_has_begun() {
    let mut stage = publishing();
    stage.ignore(&cancel());
    stage.ignore(&stage.failed(Code::ToolFailed, Executed::Yes));
    stage.ignore(&stage.publishes());
    stage.ignore(&RunInput::OutputTooLarge { attempt_id: stage.attempt_id() });
    stage.provider = down();
    stage.ignore(&RunInput::Provider);
    assert!(stage.reject(&stage.question("late")).is(Code::ToolCanceled));

    assert_eq!(stage.run.next_deadline(), None);
    stage.wait(1_000_000_000);
    stage.ignore(&RunInput::Tick);
    stage.take(&stage.published());
    assert_stands(&stage, RunStatus::Succeeded, None);
}

#[test]
fn t047_a_cancel_that_came_before_does_not_undo_a_result() {
    let mut stage = Plan::default().start();
    stage.take(&cancel());
    stage.take(&stage.publishes());
    assert_eq!(stage.phase(), Phase::Publishing);
    stage.wait(1_000_000_000);
    stage.ignore(&RunInput::Tick);
    stage.take(&stage.published());
    assert_stands(&stage, RunStatus::Succeeded, None);
}

#[test]
fn t047_open_asks_go_with_the_attempt() {
    let mut stage = Plan::default().start();
    stage.take(&stage.question("q"));
    let ask = stage.open_ask();
    let decision = stage.take(&stage.publishes());
    assert_eq!(kinds(&decision.entries), ["ask_resolved", "publishing"]);
    assert_eq!(effects(&decision.effects), ["publish"], "nobody is left to be told");
    assert!(stage.reject(&resolve(ask, answered(), person("p"))).is(Code::AskDecided));
}

#[test]
fn t047_a_restart_goes_on_with_it_as_often_as_needed() {
    for reattach in [false, true] {
        let mut stage = Plan::of(|spec| spec.reattach = reattach).start();
        let first = stage.take(&stage.publishes());
        for _ in 0..2 {
            let again = stage.take(&RunInput::Recovered);
            assert_eq!(kinds(&again.entries), [""; 0]);
            assert_eq!(again.effects, first.effects);
        }
        stage.take(&stage.published());
        assert_stands(&stage, RunStatus::Succeeded, None);
    }
}

#[test]
fn t047_being_told_twice_changes_nothing() {
    let mut stage = publishing();
    let done = stage.published();
    stage.take(&done);
    let ends = |stage: &Stage| {
        stage.journal.iter().filter(|(_, entry)| matches!(entry, RunEntry::Ended(_))).count()
    };
    let before = (stage.artifacts.clone(), stage.audit.len(), stage.ledger.clone());
    stage.ignore(&done);
    assert_eq!(ends(&stage), 1);
    assert_eq!(before, (stage.artifacts.clone(), stage.audit.len(), stage.ledger.clone()));
}

#[test]
fn t047_news_of_another_attempt_do_not_count() {
    let mut stage = publishing();
    let attempt_id = "other".parse().expect("an attempt id");
    stage.ignore(&RunInput::Published { attempt_id, lost: Vec::new() });
    assert_eq!(stage.phase(), Phase::Publishing);
    // Nor does it before anything was to be published.
    let mut running = Plan::default().start();
    running.ignore(&running.published());
}

#[test]
fn t047_money_is_held_until_the_files_are_in_their_places() {
    let mut stage = publishing();
    assert_eq!(stage.world(), (10, 0));
    let RunEntry::Publishing(entry) = &stage.journal.last().expect("written").1 else {
        panic!("publishing")
    };
    assert_eq!(entry.cost_micro, 0);
    stage.take(&stage.published());
    assert_eq!(stage.world(), (0, 0));
}

#[test]
fn t047_a_publication_of_what_is_lost_fails_the_run_and_costs_what_it_cost() {
    let mut stage = Plan::of(|spec| spec.hold_micro = 10).start();
    let RunInput::AttemptEnded { attempt_id, report } = stage.publishes() else {
        unreachable!("an attempt that ended")
    };
    let lost: Vec<_> = report.delivery.moves.iter().map(|one| one.to.clone()).collect();
    let report = AttemptReport { cost_micro: 7, ..report };
    stage.take(&RunInput::AttemptEnded { attempt_id: attempt_id.clone(), report });
    let decision = stage.take(&RunInput::Published { attempt_id, lost: lost.clone() });
    assert_eq!(kinds(&decision.entries), ["ended"]);
    assert_stands(&stage, RunStatus::Failed, Some(Code::ArtifactLost));
    let error = stage.run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("failed");
    assert_eq!(error.details["paths"][0], lost[0].as_str());
    assert_eq!(error.details["executed"], "yes");
    assert!(!error.retryable);
    assert!(stage.artifacts.is_empty() && stage.run.artifacts.is_empty(), "nothing is there");
    assert_eq!(stage.world(), (0, 7));
}
