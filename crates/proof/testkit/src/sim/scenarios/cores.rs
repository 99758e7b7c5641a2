//! Several cores: shards that are handed over, cores that leave, and cores that nobody hears.

use wharf_domain::Resolution;
use wharf_engine::book::Adoption;
use wharf_vocab::limits::{LEASE_MS, LEASE_SAFE_MS};
use wharf_vocab::{Code, Durability, RunKey, RunStatus, ShardId};

use super::super::bus::Split;
use super::super::callers::Call;
use super::super::exercised::Thing;
use super::super::faults::CrashPoint;
use super::super::provider::Plan;
use super::super::stage;
use super::Scene;

impl Scene {
    /// Another core than this.
    fn other(&self, node: usize) -> usize {
        (node + 1) % self.sim.nodes.len()
    }

    /// Hands a shard over to another core and waits until that steps it.
    fn hand_over(&mut self, shard: ShardId) -> (usize, usize) {
        let from = self.owner(shard);
        let to = self.other(from);
        self.sim.move_shard(from, shard, to);
        self.until(|scene| scene.sim.owns(to, shard));
        (from, to)
    }

    fn cancel(&mut self, node: usize, key: &RunKey) {
        self.sim.cancel_at(Some(node), key.clone(), stage::owner());
    }
}

#[test]
fn s051_an_attempt_goes_on_where_it_is_when_its_shard_is_handed_over() {
    let mut scene = Scene::new(Plan::Hang);
    let key = scene.start("plain");
    let attempt = scene.run(&key).and_then(|run| run.active).expect("under way").id;
    let (from, to) = scene.hand_over(key.shard());
    scene.until(|scene| scene.sim.seen.count(Thing::from(Adoption::Working)) > 0);
    assert!(scene.sim.nodes[from].memory.book.knows(&key, &attempt), "it stays where it is");
    assert!(!scene.sim.nodes[to].memory.book.knows(&key, &attempt));
    scene.pass(1_000);
    assert_eq!(scene.status(&key), Some(RunStatus::Running));

    // What is said to it goes there, and what it says comes back.
    scene.cancel(from, &key);
    scene.until(|scene| scene.status(&key).is_some_and(RunStatus::is_terminal));
    let run = scene.run(&key).expect("known");
    assert_eq!((run.status(), run.attempt), (RunStatus::Canceled, 1));
    scene.until(|scene| !scene.sim.nodes[from].memory.book.knows(&key, &attempt));
    scene.rest();
}

#[test]
fn s051_an_answer_reaches_an_attempt_at_another_core() {
    let mut scene = Scene::new(Plan::Ask);
    let key = scene.start("asker");
    scene.until(|scene| scene.status(&key) == Some(RunStatus::Waiting));
    scene.hand_over(key.shard());
    scene.decide(&key, Resolution::Answered { value: "green".into() });
    scene.until(|scene| scene.status(&key).is_some_and(RunStatus::is_terminal));
    let run = scene.run(&key).expect("known");
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
    scene.rest();
}

#[test]
fn s051_a_run_that_only_memory_knows_goes_along_with_its_shard() {
    let mut scene = Scene::new(Plan::Hang);
    let (key, mut request) = (scene.fresh(), scene.request("pure"));
    request.durability = Durability::Memory;
    scene.ask_for(&key, &request);
    let made = |call: &Call| matches!(call, Call::Create { .. });
    scene.until(|scene| scene.answer(made).is_some());
    let (_, to) = scene.hand_over(key.shard());
    let known = |scene: &Scene| {
        let shard = scene.sim.nodes[to].memory.shards.get(&key.shard());
        shard.is_some_and(|shard| shard.run(&key).is_some())
    };
    scene.until(known);
    scene.cancel(to, &key);
    scene.until(|scene| !known(scene));
    scene.rest();
}

#[test]
fn s051_a_run_in_memory_is_not_made_again_when_nobody_heard_that_it_was_made() {
    let mut scene = Scene::new(Plan::Succeed);
    let (key, mut request) = (scene.fresh(), scene.request("plain"));
    request.durability = Durability::Memory;
    let owner = scene.owner(key.shard());
    let asker = scene.other(owner);
    // The owner hears, and nobody hears it.
    let until = scene.sim.agenda.now().plus_ms(60_000);
    scene.sim.bus.split = Some(Split { side: [owner].into(), until, one_way: true });
    scene.sim.create(Some(asker), &key, &request);
    let stepped = |scene: &Scene| {
        let shard = scene.sim.nodes[owner].memory.shards.get(&key.shard());
        shard.is_some_and(|shard| shard.run(&key).is_some())
    };
    scene.until(stepped);
    scene.until(|scene| !stepped(scene));

    // Its next life knows nothing of the run, and the request comes back to whoever sent it.
    scene.sim.crash(owner, CrashPoint::Idle);
    scene.sim.bus.split = None;
    let asked = |call: &Call| matches!(call, Call::Create { key: of, .. } if *of == key);
    scene.until(|scene| scene.answer(asked).is_some());
    let fault = scene.answer(asked).expect("answered").as_ref().expect_err("nobody knows");
    assert!(fault.is(Code::CoreBusy), "{fault}");
    scene.rest();
}

#[test]
fn s051_a_core_that_is_drained_loses_no_attempt() {
    let mut scene = Scene::new(Plan::Succeed);
    let key = scene.start("plain");
    let node = scene.owner(key.shard());
    scene.sim.drain(node);
    scene.until(|scene| scene.sim.seen.count(Thing::Drained) > 0);
    scene.until(|scene| scene.status(&key).is_some_and(RunStatus::is_terminal));
    let run = scene.run(&key).expect("known");
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
    scene.rest();
}

#[test]
fn s025_a_core_cut_off_from_the_store_does_nothing_before_others_may() {
    let mut scene = Scene::new(Plan::Hang);
    let key = scene.start("plain");
    let (shard, old) = (key.shard(), scene.owner(key.shard()));
    scene.sim.cut(old, 2 * LEASE_MS);
    scene.pass(LEASE_SAFE_MS + 500);
    assert!(scene.sim.owns(old, shard), "its leases are not over");
    let (late, request) = (scene.fresh_where(|other| other == shard), scene.request("plain"));
    scene.sim.create(Some(old), &late, &request);
    let asked = |call: &Call| matches!(call, Call::Create { key, .. } if *key == late);
    scene.until(|scene| scene.answer(asked).is_some());
    let fault = scene.answer(asked).expect("answered").as_ref().expect_err("not now");
    assert!(fault.is(Code::CoreBusy) && fault.retryable, "{fault}");

    // Others take its shards; what it had is lost, since nobody knows how far it came.
    scene.until(|scene| scene.sim.unowned().is_empty() && !scene.sim.owns(old, shard));
    scene.until(|scene| scene.status(&key).is_some_and(RunStatus::is_terminal));
    let run = scene.run(&key).expect("known");
    assert_eq!((run.status(), run.attempt), (RunStatus::Failed, 1));
    assert!(scene.sim.seen.count(Thing::Missed) > 0);
    scene.rest();
}

#[test]
fn s051_an_attempt_that_never_came_to_its_place_is_made_again_elsewhere() {
    let mut scene = Scene::new(Plan::Succeed);
    // The shard's core has no room, so that the attempt goes to another one, which nobody hears.
    let (key, request) = (scene.fresh(), scene.request("plain"));
    let (shard, provider) = (key.shard(), request.tool);
    let owner = scene.owner(shard);
    let other = scene.other(owner);
    for node in (0..scene.sim.nodes.len()).filter(|node| *node != other) {
        scene.sim.unhost(provider, node);
    }
    scene.pass(1_000);
    let until = scene.sim.agenda.now().plus_ms(20_000);
    scene.sim.bus.split = Some(Split { side: [owner].into(), until, one_way: false });
    scene.ask_for(&key, &request);
    scene.until(|scene| scene.status(&key) == Some(RunStatus::Running));
    // The core goes before its word reaches the place; whoever comes next asks there.
    scene.sim.arm(owner, super::super::faults::CrashPoint::Idle);
    scene.until(|scene| scene.sim.seen.count(Thing::from(Adoption::NeverBegun)) > 0);
    scene.until(|scene| scene.status(&key).is_some_and(RunStatus::is_terminal));
    let run = scene.run(&key).expect("known");
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 2), "and it may act");
    scene.rest();
}

#[test]
fn s051_a_core_that_hears_and_is_not_heard_begins_its_attempts_once() {
    let mut scene = Scene::new(Plan::Succeed);
    let (key, request) = (scene.fresh(), scene.request("plain"));
    let owner = scene.owner(key.shard());
    let other = scene.other(owner);
    for node in (0..scene.sim.nodes.len()).filter(|node| *node != other) {
        scene.sim.unhost(request.tool, node);
    }
    scene.pass(1_000);
    let until = scene.sim.agenda.now().plus_ms(8_000);
    scene.sim.bus.split = Some(Split { side: [owner].into(), until, one_way: true });
    scene.ask_for(&key, &request);
    scene.until(|scene| scene.status(&key) == Some(RunStatus::Running));
    scene.pass(4_000);
    assert!(scene.sim.seen.count(Thing::OneWay) > 0, "it says so again and again");
    assert_eq!(scene.status(&key), Some(RunStatus::Running));
    // Now it is heard.
    scene.until(|scene| scene.status(&key).is_some_and(RunStatus::is_terminal));
    let run = scene.run(&key).expect("known");
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
    scene.rest();
}
