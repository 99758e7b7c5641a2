//! Restarts, takeovers and a full disk.

use serde_json::json;
use wharf_domain::Resolution;
use wharf_vocab::limits::LEASE_MS;
use wharf_vocab::{Code, RunStatus};

use super::super::callers::Call;
use super::super::exercised::Thing;
use super::super::faults::CrashPoint;
use super::super::provider::Plan;
use super::super::stage;
use super::super::store::Trouble;
use super::Scene;

#[test]
fn an_approval_stays_open_across_a_restart_and_lets_the_run_go_on() {
    let mut scene = Scene::new(Plan::Succeed);
    let key = scene.start("gated");
    assert_eq!(scene.status(&key), Some(RunStatus::Waiting));
    let ask = scene.run(&key).expect("known").asks[0].ask.spec.ask_id.clone();

    let node = scene.owner(key.shard());
    scene.sim.arm(node, CrashPoint::Idle);
    scene.until(|scene| scene.sim.seen.count(Thing::Restart) > 0);
    scene.until(|scene| scene.sim.unowned().is_empty());
    let run = scene.run(&key).expect("known");
    assert_eq!((run.status(), &run.asks[0].ask.spec.ask_id), (RunStatus::Waiting, &ask));
    assert_eq!(run.attempt, 0);

    scene.decide(&key, Resolution::ALLOW);
    scene.rest();
    let run = scene.run(&key).expect("known");
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
}

#[test]
fn a_panic_ends_an_attempt_at_once_and_only_one_that_never_began_is_made_again() {
    let plans = [
        (Plan::PanicBefore, Thing::PanickedBefore, "no"),
        (Plan::PanicAfter, Thing::PanickedAfter, "maybe"),
    ];
    for (plan, thing, executed) in plans {
        let mut scene = Scene::new(plan);
        let key = scene.start("plain");
        scene.rest();
        let run = scene.run(&key).expect("accepted");
        let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("it failed");
        assert!(error.is(Code::ToolWorkerLost), "{error}");
        assert_eq!(error.details["executed"], executed);
        assert!(scene.sim.seen.count(thing) > 0);
        assert_eq!(run.attempt > 1, plan == Plan::PanicBefore, "{plan:?}");
    }
}

#[test]
fn an_answer_given_just_before_a_crash_reaches_the_asker_after_it() {
    let mut scene = Scene::new(Plan::Ask);
    let key = scene.start("asker");
    scene.until(|scene| scene.status(&key) == Some(RunStatus::Waiting));
    scene.until(|scene| scene.sim.calls.waiting().is_none());
    let attempt = scene.run(&key).and_then(|run| run.active).expect("under way").id;
    let provider = stage::TOOLS.iter().position(|tool| tool.name == "asker").expect("there");

    let node = scene.owner(key.shard());
    scene.sim.arm(node, CrashPoint::BeforeEffects);
    let answer = Resolution::Answered { value: json!("green") };
    scene.decide(&key, answer.clone());
    scene.until(|scene| scene.sim.seen.count(Thing::CrashBeforeEffects) > 0);
    assert_eq!(scene.sim.providers[provider].answers(&attempt), [], "nobody could tell it");

    scene.rest();
    assert_eq!(scene.sim.providers[provider].answers(&attempt), [answer]);
    let run = scene.run(&key).expect("known");
    assert_eq!((run.status(), run.attempt, run.asks.len()), (RunStatus::Succeeded, 1, 1));
}

#[test]
fn an_attempt_that_its_provider_does_not_take_up_again_waits_for_it() {
    let mut scene = Scene::new(Plan::Ask);
    let key = scene.start("asker");
    scene.until(|scene| scene.status(&key) == Some(RunStatus::Waiting));
    scene.until(|scene| scene.sim.calls.waiting().is_none());
    let provider = stage::TOOLS.iter().position(|tool| tool.name == "asker").expect("there");
    let node = scene.owner(key.shard());
    scene.sim.arm(node, CrashPoint::Idle);
    // It is known as up and is not there, as between its end and the word of it.
    for _ in 0..20_000 {
        if scene.sim.seen.count(Thing::Detached) > 0 {
            break;
        }
        scene.sim.be_there(provider, false);
        scene.step();
    }
    assert!(scene.sim.seen.count(Thing::Detached) > 0, "it was offered");
    assert_eq!(scene.status(&key), Some(RunStatus::Waiting), "and goes on waiting");
    scene.sim.be_there(provider, true);
    let before = scene.sim.seen.count(Thing::Reattach);
    scene.until(|scene| scene.sim.seen.count(Thing::Reattach) > before);
    scene.decide(&key, Resolution::Answered { value: json!("green") });
    scene.rest();
    let run = scene.run(&key).expect("known");
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
}

#[test]
fn two_cores_fight_for_a_shard_and_only_the_newer_lease_writes() {
    let mut scene = Scene::new(Plan::Hang);
    let key = scene.start("plain");
    let (shard, old) = (key.shard(), scene.owner(key.shard()));
    scene.sim.stall(old, 2 * LEASE_MS);
    scene.until(|scene| {
        (0..scene.sim.nodes.len()).any(|node| node != old && scene.sim.owns(node, shard))
    });
    let new = scene.owner(shard);
    // The old owner is asked for something when it comes to itself; the new one goes on.
    let (late, request) = (scene.fresh_where(|other| other == shard), scene.request("plain"));
    scene.sim.create(Some(old), &late, &request);
    assert!(scene.sim.nodes[old].frozen_until > scene.sim.agenda.now(), "it learns of nothing yet");
    assert!(scene.sim.nodes[old].memory.shards.contains_key(&shard), "it believes to hold it");
    let stale = |call: &Call| matches!(call, Call::Create { key, .. } if *key == late);
    scene.until(|scene| scene.answer(stale).is_some());
    let fault = scene.answer(stale).expect("answered").as_ref().expect_err("not heard for long");
    assert!(fault.is(Code::CoreBusy) && fault.retryable, "{fault}");
    scene.until(|scene| scene.sim.seen.count(Thing::Lapsed) > 0);
    scene.rest();
    assert!(scene.run(&late).is_none(), "nothing of it was written");
    assert!(scene.owner(shard) == new && scene.sim.seen.count(Thing::Takeover) > 0);
    let run = scene.run(&key).expect("accepted");
    // What the old owner dispatched may have acted, so it is not done again.
    assert_eq!((run.status(), run.attempt), (RunStatus::Failed, 1));
}

#[test]
fn a_full_disk_refuses_new_runs_and_keeps_the_result_of_one_under_way() {
    let mut scene = Scene::new(Plan::Succeed);
    let key = scene.start("plain");
    scene.sim.store.trouble = Trouble::Full;
    let refused = scene.fresh();
    let request = scene.request("plain");
    scene.ask_for(&refused, &request);
    let full = |call: &Call| matches!(call, Call::Create { key, .. } if *key == refused);
    scene.until(|scene| scene.answer(full).is_some());
    let fault = scene.answer(full).expect("answered").as_ref().expect_err("full").clone();
    assert!(fault.is(Code::StoreFull) && fault.retryable, "{fault}");

    scene.pass(5_000);
    assert_eq!(scene.status(&key), Some(RunStatus::Running), "its end could not be written");
    scene.rest();
    let run = scene.run(&key).expect("accepted");
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
    assert!(scene.run(&refused).is_none(), "nothing of it was written");
}

#[test]
fn an_attempt_that_can_be_taken_up_again_waits_for_its_provider_after_a_restart() {
    let mut scene = Scene::new(Plan::Hang);
    let key = scene.start("remote");
    let provider = stage::TOOLS.iter().position(|tool| tool.name == "remote").expect("there");
    let node = scene.owner(key.shard());
    // No core reaches the provider any more, and all know it.
    for node in 0..scene.sim.nodes.len() {
        scene.sim.unhost(provider, node);
    }
    scene.pass(1_000);
    scene.sim.arm(node, CrashPoint::Idle);
    scene.until(|scene| scene.sim.nodes[node].up);
    scene.until(|scene| scene.sim.unowned().is_empty());
    scene.pass(1_000);
    assert_eq!(scene.status(&key), Some(RunStatus::Running), "it is not given up");
    assert_eq!(scene.sim.seen.count(Thing::Reattach), 0, "nobody is there to take it up");
    scene.sim.host_everywhere(provider);
    scene.sim.heal_providers();
    scene.until(|scene| scene.sim.seen.count(Thing::Reattach) > 0);
    assert_eq!(scene.run(&key).expect("known").attempt, 1);
    scene.rest();
}
