//! What becomes of an open run when the core was restarted.

use wharf_domain::run::RunInput;
use wharf_domain::{Availability, RunSpec};
use wharf_vocab::{Code, RunStatus};

use crate::stage::{Plan, Stage, assert_stands, cancel, effects, executed, gate, kinds};

const REATTACH: fn(&mut RunSpec) = |spec| spec.reattach = true;
const FREE: fn(&mut RunSpec) = |spec| spec.side_effect_free = true;
const ACTS: fn(&mut RunSpec) = |_| {};

#[test]
fn an_attempt_under_way_is_taken_up_again_retried_or_failed() {
    let cases = [
        (REATTACH, &[][..], &["reattach"][..], RunStatus::Running),
        (FREE, &["attempt_failed"], &[], RunStatus::Queued),
        (ACTS, &["ended"], &[], RunStatus::Failed),
    ];
    for (change, entries, wanted, status) in cases {
        let mut stage = Plan::of(change).start();
        let decision = stage.take(&RunInput::Recovered);
        assert_eq!(kinds(&decision.entries), entries);
        assert_eq!(effects(&decision.effects), wanted);
        assert_eq!(stage.status(), status);
    }
}

#[test]
fn a_lost_attempt_says_that_it_may_have_acted() {
    let mut stage = Plan::default().start();
    stage.take(&RunInput::Recovered);
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolAgentLost));
    assert_eq!(executed(stage.error()), Some("maybe"));
}

#[test]
fn an_attempt_that_asks_goes_on_asking() {
    for change in [REATTACH, FREE] {
        let mut stage = Plan::of(change).start();
        stage.take(&stage.question("q"));
        stage.take(&RunInput::Recovered);
        assert_eq!(stage.status(), RunStatus::Waiting);
        assert_eq!(stage.run.open_asks().count(), 1);
    }
}

#[test]
fn a_cancel_is_carried_on() {
    let mut stage = Plan::of(REATTACH).start();
    stage.take(&cancel());
    let decision = stage.take(&RunInput::Recovered);
    assert_eq!(kinds(&decision.entries), [""; 0]);
    assert_eq!(effects(&decision.effects), ["reattach", "cancel"]);
    stage.wake();
    assert_stands(&stage, RunStatus::Canceled, Some(Code::ToolCanceled));

    let mut lost = Plan::of(FREE).start();
    lost.take(&cancel());
    lost.take(&RunInput::Recovered);
    assert_stands(&lost, RunStatus::Canceled, Some(Code::ToolCanceled));
}

#[test]
fn runs_without_an_attempt_go_on_as_they_were() {
    let mut gated = Plan::of(|spec| spec.gate = gate()).start();
    gated.ignore(&RunInput::Recovered);

    let queued = Plan::default().provider(Availability::Coming).start();
    let mut still_away = queued.clone();
    still_away.ignore(&RunInput::Recovered);
    let mut back = queued;
    back.provider = Availability::Up;
    let decision = back.take(&RunInput::Recovered);
    assert_eq!(effects(&decision.effects), ["dispatch"]);

    let mut over = Plan::default().start();
    over.take(&over.succeeded());
    over.ignore(&RunInput::Recovered);
}

#[test]
fn recovering_twice_is_no_worse_than_once() {
    let mut stage = Plan::of(REATTACH).start();
    let first = stage.take(&RunInput::Recovered);
    let second = stage.take(&RunInput::Recovered);
    assert_eq!(first.effects, second.effects);

    let mut lost: Stage = Plan::of(FREE).start();
    lost.take(&RunInput::Recovered);
    lost.ignore(&RunInput::Recovered);
    assert_eq!(lost.run.attempt, 1);
}
