//! Commits of which nobody knows whether they were made, and answers that must wait for them.

use wharf_domain::run::RunInput;
use wharf_domain::{Progress, Resolution};
use wharf_engine::shard::{Input, Reply};
use wharf_ports::{HistoryItem, StoreErrorKind};
use wharf_vocab::{Code, Durability, RunKey, RunStatus, Seq};

use super::super::callers::Call;
use super::super::event::Parcel;
use super::super::exercised::Thing;
use super::super::provider::Plan;
use super::super::store::{Fate, Trouble};
use super::Scene;

impl Scene {
    /// The next group of batches meets this fate.
    fn next_commit(&mut self, fate: Fate) {
        self.sim.store.next = Some(fate);
    }
}

fn creates(key: &RunKey) -> impl Fn(&Call) -> bool {
    move |call| matches!(call, Call::Create { key: asked, .. } if asked == key)
}

#[test]
fn a_repeated_request_is_answered_when_the_first_is_committed_and_not_before() {
    let mut scene = Scene::new(Plan::Hang);
    let (key, request) = (scene.fresh(), scene.request("plain"));
    scene.sim.store.trouble = Trouble::Slow;
    for _ in 0..3 {
        scene.ask_for(&key, &request);
    }
    // The rule that nothing is observable before it is committed watches every answer.
    scene.until(|scene| scene.sim.calls.waiting().is_none());
    let answers = &scene.sim.calls.answers;
    let repeated = answers.iter().filter(|(_, r)| matches!(r, Ok(Reply::Repeated(_)))).count();
    assert_eq!(repeated, 2);

    let (key, request) = (scene.fresh(), scene.request("plain"));
    scene.sim.store.trouble = Trouble::Full;
    scene.ask_for(&key, &request);
    scene.ask_for(&key, &request);
    scene.until(|scene| scene.sim.calls.waiting().is_none());
    let mut codes: Vec<_> = scene.sim.calls.answers.iter().rev().take(2).collect();
    codes.sort_by_key(|(_, result)| result.as_ref().is_err_and(|f| f.is(Code::StoreFull)));
    for (_, result) in codes {
        let fault = result.as_ref().expect_err("nothing was made");
        assert!(fault.retryable, "{fault}");
    }
    scene.rest();
    assert!(scene.run(&key).is_none());
}

#[test]
fn a_run_whose_creation_was_made_and_denied_is_found_and_ends() {
    let mut scene = Scene::new(Plan::Succeed);
    let (key, request) = (scene.fresh(), scene.request("paid"));
    scene.next_commit(Fate::Hidden);
    scene.ask_for(&key, &request);
    scene.until(|scene| scene.answer(creates(&key)).is_some());
    let fault = scene.answer(creates(&key)).expect("answered").as_ref().expect_err("denied");
    assert!(fault.is(Code::StoreUnavailable), "{fault}");
    scene.until(|scene| scene.sim.seen.count(Thing::Found) > 0);
    scene.until(|scene| scene.status(&key).is_some_and(RunStatus::is_terminal));
    assert_eq!(scene.sim.seen.count(Thing::Reload), 0, "nothing else is disturbed");
    scene.rest();
}

#[test]
fn a_decision_that_was_made_and_denied_is_learned_of() {
    let mut scene = Scene::new(Plan::Succeed);
    let key = scene.start("gated");
    scene.next_commit(Fate::Hidden);
    scene.decide(&key, Resolution::Deny { reason: "No.".to_owned() });
    scene.until(|scene| scene.status(&key) == Some(RunStatus::Refused));
    scene.until(|scene| {
        let node = scene.owner(key.shard());
        let shard = scene.sim.nodes[node].memory.shards.get(&key.shard());
        shard.is_some_and(|shard| shard.run(&key).is_none())
    });
    scene.rest();
}

#[test]
fn doubt_lasts_until_a_commit_settles_it() {
    let mut scene = Scene::new(Plan::Ask);
    let key = scene.start("asker");
    scene.until(|scene| scene.status(&key) == Some(RunStatus::Waiting));
    // The first decision is made and denied; the second finds a full store while the first is
    // being looked up.
    let answer = || Resolution::Answered { value: "x".into() };
    scene.next_commit(Fate::Hidden);
    scene.decide(&key, answer());
    let run = scene.run(&key).expect("known");
    let ask = run.asks[0].ask.clone();
    scene.sim.resolve(&ask, wharf_domain::Caller::owner(), answer());
    scene.until(|scene| scene.sim.seen.count(Thing::Ambiguous) > 0);
    scene.sim.store.next = Some(Fate::Failed(StoreErrorKind::Full));
    scene.rest();
    assert_eq!(scene.status(&key), Some(RunStatus::Succeeded));
}

#[test]
fn money_held_and_denied_for_a_run_in_memory_is_given_back_even_by_a_failing_store() {
    let mut scene = Scene::new(Plan::Hang);
    let (key, mut request) = (scene.fresh(), scene.request("paid"));
    request.durability = Durability::Memory;
    scene.next_commit(Fate::Hidden);
    scene.ask_for(&key, &request);
    scene.until(|scene| scene.answer(creates(&key)).is_some());
    scene.sim.store.trouble = Trouble::Down;
    scene.pass(2_000);
    assert!(scene.sim.check.unfinished().is_some(), "the money is still held");
    scene.sim.store.trouble = Trouble::Nothing;
    scene.until(|scene| scene.sim.check.unfinished().is_none());
    scene.rest();
}

#[test]
fn progress_is_not_lost_with_a_callers_input_that_fails() {
    let mut scene = Scene::new(Plan::Hang);
    let key = scene.start("plain");
    let attempt_id = scene.run(&key).and_then(|run| run.active).expect("under way").id;
    scene.pass(2_000);
    let node = scene.owner(key.shard());
    let deliver = |scene: &mut Scene, input: Input, call| {
        let parcel = Parcel::Input { shard: key.shard(), input: Box::new(input), call };
        scene.sim.deliver(node, parcel);
    };
    // One piece is on its way. Behind it wait a second piece and a caller's cancel: they go
    // together, and the store cannot take them.
    for _ in 0..2 {
        let text = format!("{attempt_id};");
        let pieces = vec![Progress::Text { channel: "stderr".to_owned(), text }];
        let (key, attempt_id) = (key.clone(), attempt_id.clone());
        deliver(&mut scene, Input::Progress { key, attempt_id, pieces }, None);
    }
    let stop = RunInput::Cancel { by: crate::sim::stage::owner(), reason: "Enough.".to_owned() };
    let call = scene.sim.calls.open(Call::Cancel);
    let stop = Input::Run { key: key.clone(), input: stop, ticket: None };
    deliver(&mut scene, stop, Some(call));
    let commits = scene.sim.seen.count(Thing::Commit);
    scene.until(|scene| scene.sim.seen.count(Thing::Commit) > commits);
    scene.next_commit(Fate::Failed(StoreErrorKind::Full));
    scene.until(|scene| scene.answer(|call| matches!(call, Call::Cancel)).is_some());
    let fault = scene.answer(|call| matches!(call, Call::Cancel)).expect("answered");
    assert!(fault.as_ref().is_err_and(|fault| fault.is(Code::StoreFull)), "{fault:?}");

    scene.pass(2_000);
    let history = scene.sim.store.state.history(&key.stream(), Seq(0), usize::MAX);
    let written = history.into_iter().filter_map(|record| match record.item {
        HistoryItem::Progress(Progress::Text { channel, text }) if channel == "stderr" => {
            Some(text)
        }
        _ => None,
    });
    assert_eq!(written.collect::<String>(), format!("{attempt_id};").repeat(2));
    scene.rest();
}
