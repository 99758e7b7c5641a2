//! What is true of every run after every decision, whatever was offered.

use wharf_domain::run::{Decision, Phase, RoomAwaited, RunEffect, Timer};
use wharf_domain::{ArtifactOp, Ask, Audience, Gate, Outcome, Run, RunEntry, Subject};
use wharf_vocab::{Code, Direction, RunStatus};

use crate::stage::{CANARY, Stage};

/// Checks all of it; `before` is `None` for the decision that created the run.
pub(crate) fn check(stage: &Stage, before: Option<&Run>, decision: &Decision) {
    replay_equals_live(stage);
    asks_read_back_from_their_own_streams(stage);
    a_run_ends_once_and_nothing_follows(stage);
    publishing_can_only_succeed(stage);
    files_are_recorded_with_the_entry_that_tells_of_them(stage, decision);
    an_empty_decision_changes_nothing(before, decision);
    attempts_are_counted_one_by_one(before, decision);
    phase_and_status_fit_the_state(&stage.run);
    effects_name_attempts_they_are_about(before, decision);
    money_is_held_exactly_while_an_attempt_is_active(stage);
    the_audit_has_ids_and_facts_only(stage, decision);
    time_alone_makes_progress(stage);
    nothing_that_never_began_fails_for_want_of_room(stage);
}

fn nothing_that_never_began_fails_for_want_of_room(stage: &Stage) {
    let error = stage.run.outcome.as_ref().and_then(Outcome::error);
    let busy = error.filter(|error| error.is(Code::ToolBusy) && stage.run.cancel.is_none());
    let never = busy.filter(|error| error.details.get("executed").is_some_and(|it| it == "no"));
    assert!(never.is_none() || stage.run.cost_micro > 0, "{never:?}");
}

fn replay_equals_live(stage: &Stage) {
    let entries = stage.journal.iter().map(|(at, entry)| (*at, entry));
    let replayed = Run::replay(entries).expect("a stream begins with a creation");
    assert_eq!(replayed, stage.run, "replay = live");
}

fn asks_read_back_from_their_own_streams(stage: &Stage) {
    assert_eq!(stage.ask_journals.len(), stage.run.asks.len(), "one stream for each ask");
    for raised in &stage.run.asks {
        let stream = &stage.ask_journals[&raised.ask.spec.ask_id];
        assert!(stream.len() <= 2, "an ask is raised once and resolved once");
        let replayed = Ask::replay(stream.iter().cloned()).expect("begins with being raised");
        assert_eq!(replayed, raised.ask);
        assert_eq!(raised.ask.spec.ask_id.shard(), crate::stage::SHARD);
    }
}

fn a_run_ends_once_and_nothing_follows(stage: &Stage) {
    let is_end = |(_, entry): &(_, RunEntry)| matches!(entry, RunEntry::Ended(_));
    let last = stage.journal.len() - 1;
    match stage.journal.iter().position(is_end) {
        Some(end) => {
            let after = &stage.journal[end + 1..];
            let corrects = |(_, entry): &(_, RunEntry)| matches!(entry, RunEntry::CostReported(_));
            assert!(end <= last && after.iter().all(corrects), "only what it cost is corrected");
            assert!(stage.run.is_over());
        }
        None => assert!(!stage.run.is_over(), "a run ends by an entry only"),
    }
}

/// The point of no return: what follows is the success that was written down, and nothing else,
/// unless the artifact store has lost what was to be published.
fn publishing_can_only_succeed(stage: &Stage) {
    let mut rest = stage.journal.iter().map(|(_, entry)| entry);
    let begun = rest.find_map(|entry| match entry {
        RunEntry::Publishing(publishing) => Some(publishing),
        _ => None,
    });
    let Some(begun) = begun else { return assert!(stage.run.publishing.is_none()) };
    match rest.find(|entry| !matches!(entry, RunEntry::CostReported(_))) {
        None => assert_eq!(stage.run.publishing.as_ref(), Some(begun)),
        Some(RunEntry::Ended(ended)) => {
            assert!(ended.cost_micro >= begun.cost_micro);
            assert_eq!(ended.metered, begun.metered);
            if ended.outcome.error().is_some_and(|error| error.is(Code::ArtifactLost)) {
                return assert!(ended.artifacts.is_empty(), "nothing of a lost set is published");
            }
            assert_eq!(ended.outcome, Outcome::Succeeded { outputs: begun.outputs.clone() });
            assert_eq!(ended.artifacts, begun.artifacts);
        }
        Some(other) => panic!("{other:?} while files are put in their places"),
    }
}

/// Files that were written are recorded once, with the success that tells of them.
fn files_are_recorded_with_the_entry_that_tells_of_them(stage: &Stage, decision: &Decision) {
    let written = |ops: &[ArtifactOp]| -> Vec<_> {
        let written = ops.iter().filter_map(|op| match op {
            ArtifactOp::Record(artifact) if artifact.direction == Direction::Out => Some(artifact),
            _ => None,
        });
        written.cloned().collect()
    };
    assert_eq!(written(&stage.artifacts), stage.run.artifacts);
    let succeeds = matches!(stage.run.outcome, Some(Outcome::Succeeded { .. }));
    assert!(succeeds || stage.run.artifacts.is_empty(), "only a success leaves files");
    let others = decision.artifacts.len() - written(&decision.artifacts).len();
    assert_eq!(others, 0, "what is read is told by whoever hands it out");
}

/// An engine may drop a decision without entries, so nothing else may hang on it but effects.
fn an_empty_decision_changes_nothing(before: Option<&Run>, decision: &Decision) {
    if decision.entries.is_empty() {
        assert_eq!(Some(&decision.next), before);
        assert!(decision.ledger.is_empty(), "no money moves without an entry");
        assert!(decision.asks.is_empty());
        assert!(decision.audit.is_empty());
        assert!(decision.artifacts.is_empty());
    }
}

fn attempts_are_counted_one_by_one(before: Option<&Run>, decision: &Decision) {
    let mut count = before.map_or(0, |run| run.attempt);
    let mut last_id = before.and_then(|run| run.active.as_ref()).map(|attempt| &attempt.id);
    for entry in &decision.entries {
        if let RunEntry::AttemptStarted(started) = entry {
            count += 1;
            assert_eq!(started.attempt, count);
            assert_ne!(Some(&started.attempt_id), last_id, "each attempt has its own id");
            last_id = Some(&started.attempt_id);
        }
        // An attempt that was not taken is as if it had not begun.
        if let RunEntry::RoomAwaited(RoomAwaited { attempt_id: Some(_), .. }) = entry {
            count -= 1;
        }
    }
    assert_eq!(decision.next.attempt, count);
}

fn phase_and_status_fit_the_state(run: &Run) {
    let asking = run.open_asks().next().is_some();
    let active = run.active.is_some();
    assert!(!(active && run.pause.is_some()), "a run under way does not pause");
    let fits = match run.phase() {
        Phase::Over => !active && !asking && run.pause.is_none() && run.ended_at.is_some(),
        Phase::Publishing => active && !asking && run.publishing.is_some(),
        Phase::Canceling => active && run.cancel.is_some(),
        Phase::Asking => active && asking && run.cancel.is_none(),
        Phase::Running => active && !asking && run.cancel.is_none(),
        Phase::Gated => {
            let seat = |gate: &Gate| matches!(gate.audience, Audience::Seat(_));
            let again = run.proposals > 0 || run.spec.gate.as_ref().is_some_and(seat);
            !active && asking && run.pause.is_none() && (run.attempt == 0 || again)
        }
        Phase::Queued => !active && run.pause.is_some(),
        Phase::Flowing => !active && run.flow.is_some() && run.cancel.is_none(),
        Phase::Closing => !active && run.flow.is_some() && run.cancel.is_some(),
    };
    assert!(fits, "{:?} does not fit {run:?}", run.phase());
    let expected = match run.phase() {
        Phase::Over => run.outcome.as_ref().expect("over").status(),
        Phase::Canceling | Phase::Closing => RunStatus::Running,
        _ if asking => RunStatus::Waiting,
        Phase::Queued | Phase::Gated => RunStatus::Queued,
        Phase::Running | Phase::Asking | Phase::Publishing => RunStatus::Running,
        Phase::Flowing => RunStatus::Running,
    };
    assert_eq!(run.status(), expected);
    assert_eq!(run.status().is_terminal(), run.is_over());
    let begun = run.attempt > 0 || run.flow.as_ref().is_some_and(|flow| flow.has_begun());
    assert_eq!(run.started_at.is_some(), begun);
    if let Some(attempt) = &run.active {
        assert_eq!(attempt.number, run.attempt);
        let stands = matches!(attempt.timer, Timer::Stands(_));
        let steps = run.steps.as_deref().is_some_and(|log| log.open_runs().next().is_some());
        let waits = asking || steps;
        assert_eq!(stands, waits, "the clock stands exactly while an ask or a step is open");
    }
}

fn effects_name_attempts_they_are_about(before: Option<&Run>, decision: &Decision) {
    let was = before.and_then(|run| run.active.as_ref()).map(|attempt| &attempt.id);
    let is = decision.next.active.as_ref().map(|attempt| &attempt.id);
    for effect in &decision.effects {
        match effect {
            RunEffect::Dispatch { attempt_id, reattach } => {
                assert_eq!(Some(attempt_id), is, "only what is under way is dispatched");
                assert_eq!(*reattach, Some(attempt_id) == was, "and what was under way again");
            }
            RunEffect::Queue { .. } => {
                assert!(decision.next.awaits_room().is_some(), "only what waits stands in line");
            }
            RunEffect::LeaveQueue => {
                assert!(before.is_some_and(|run| run.awaits_room().is_some()));
                assert!(decision.next.is_over());
            }
            RunEffect::CancelAttempt { attempt_id, .. } => assert_eq!(Some(attempt_id), was),
            RunEffect::Publish { attempt_id, moves } => {
                assert_eq!((Some(attempt_id), Some(attempt_id)), (was, is));
                let publishing = decision.next.publishing.as_ref().expect("it was written down");
                assert_eq!(*moves, publishing.moves);
                assert!(!moves.is_empty(), "there is something to do");
            }
            RunEffect::Answer { attempt_id, .. } => {
                assert_eq!(Some(attempt_id), is, "nobody is told who is not there any more");
            }
            RunEffect::AllowChildren { parent, .. } => {
                assert_eq!(Some(parent), decision.next.spec.parent.as_ref());
            }
            RunEffect::Flow(_) => {
                assert!(decision.next.flow.is_some(), "only a flow has steps");
            }
            RunEffect::AllowTool { .. } => {
                assert!(decision.next.spec.gate.as_ref().is_some_and(|gate| gate.remember));
            }
        }
    }
}

/// The stage's ledger knows one run only, so its holds and costs are that run's.
fn money_is_held_exactly_while_an_attempt_is_active(stage: &Stage) {
    let run = &stage.run;
    let held = run.active.as_ref().and_then(|attempt| attempt.hold.as_ref());
    let reported = run.active.as_ref().map_or(0, |attempt| attempt.reported_micro);
    let amount = held.map_or(0, |held| held.amount_micro.max(reported));
    let open =
        stage.ledger.holds().map(|(id, open)| (id, &open.account, open.amount, open.reported));
    let wanted: Vec<_> = held.iter().map(|h| (&h.hold, &h.account, amount, reported)).collect();
    assert_eq!(open.collect::<Vec<_>>(), wanted);
    let must = run.active.is_some() && (run.spec.hold_micro > 0 || reported > 0);
    assert!(held.is_some() || !must || !run.spec.is_paid());

    let mut at = Some(run.spec.account.clone());
    while let Some(id) = at {
        let account = stage.ledger.account(&id).expect("the path exists");
        assert_eq!((account.held, account.spent), (amount, run.cost_micro), "{id}");
        at = account.parent.clone();
    }
}

fn the_audit_has_ids_and_facts_only(stage: &Stage, decision: &Decision) {
    for record in &decision.audit {
        let text = serde_json::to_string(record).expect("a record is JSON");
        assert!(!text.contains(CANARY), "a payload stands in {text}");
        assert_eq!(record.subject, Subject::from(&stage.run.key));
        assert!(
            ["grant:", "provider:", "core"]
                .iter()
                .any(|who| record.actor.as_str().starts_with(who)),
            "{}",
            record.actor
        );
    }
}

/// No busy loop and no run that is forgotten: an open run names a moment, and looking at it then
/// changes something or names a later one.
fn time_alone_makes_progress(stage: &Stage) {
    let Some(due) = stage.run.next_deadline() else {
        // What is being published ends when that is done, however long it takes.
        // A flow that waits for a call is looked after by its shard.
        let outside = stage.run.flow.is_some();
        // Nor does an attempt wait for its own time while a step of it is open.
        let steps = stage.run.steps.as_deref().is_some_and(|log| log.open_runs().next().is_some());
        let done = stage.run.is_over() || stage.phase() == Phase::Publishing;
        let rests = done || outside || steps;
        return assert!(rests, "an open run waits for a moment: {:?}", stage.run);
    };
    assert!(!stage.run.is_over());
    let decision = stage.foresee_tick(due.max(stage.now));
    let later = decision.next.next_deadline().is_none_or(|next| next > due);
    assert!(!decision.entries.is_empty() || later, "a tick at {due:?} does nothing");
    if due > stage.now {
        let early = stage.foresee_tick(stage.now);
        assert!(early.entries.is_empty(), "nothing is due before the deadline");
    }
}
