//! Parents and children in different shards.

use wharf_domain::Run;
use wharf_domain::run::{AttemptReport, RunInput};
use wharf_engine::shard::Input;
use wharf_vocab::{Object, RunKey, RunStatus, ShardId};

use super::super::event::Parcel;
use super::super::provider::Plan;
use super::super::store::Trouble;
use super::Scene;

/// Lets the core that steps a shard load it anew.
fn reload(scene: &mut Scene, shard: ShardId) {
    let node = scene.owner(shard);
    scene.sim.nodes[node].memory.reload.insert(shard);
    scene.sim.work(node);
}

fn cancel(scene: &mut Scene, key: &RunKey) {
    scene.sim.cancel(key.clone(), crate::sim::stage::owner());
}

/// Whether the run was told to stop; its provider may still have been faster.
fn is_called_off(scene: &Scene, key: &RunKey) -> bool {
    let told = |run: Run| run.cancel.is_some() || run.status() == RunStatus::Canceled;
    scene.run(key).is_some_and(told)
}

#[test]
fn a_parent_that_was_loaded_anew_still_calls_its_children_off() {
    let mut scene = Scene::new(Plan::Hang);
    let parent = scene.start("forker");
    let child = scene.start_child(&parent, "remote");
    reload(&mut scene, parent.shard());
    scene.pass(10_000);
    assert_eq!(scene.status(&parent), Some(RunStatus::Running));
    cancel(&mut scene, &parent);
    scene.until(|scene| is_called_off(scene, &child));
    scene.rest();
}

#[test]
fn a_child_of_a_parent_that_succeeded_although_it_was_called_off_is_called_off() {
    let mut scene = Scene::new(Plan::Hang);
    let parent = scene.start("forker");
    let child = scene.start_child(&parent, "remote");
    // The parent's shard forgets its child, and the child's news reach it after its end.
    let attempt_id = scene.run(&parent).and_then(|run| run.active).expect("under way").id;
    let node = scene.owner(parent.shard());
    let forget = Input::Child { parent: parent.clone(), child: child.clone(), began: false };
    let stop = RunInput::Cancel { by: crate::sim::stage::owner(), reason: "Enough.".to_owned() };
    let report = AttemptReport::new(Ok(Object::new()), 0);
    let end = RunInput::AttemptEnded { attempt_id, report };
    let to_parent = |input| Input::Run { key: parent.clone(), input, ticket: None };
    for input in [forget, to_parent(stop), to_parent(end)] {
        let parcel = Parcel::Input { shard: parent.shard(), input: Box::new(input), call: None };
        scene.sim.deliver(node, parcel);
    }
    scene.until(|scene| scene.status(&parent) == Some(RunStatus::Succeeded));
    assert!(scene.run(&parent).expect("known").cancel.is_some());
    assert_eq!(scene.status(&child), Some(RunStatus::Running));

    reload(&mut scene, child.shard());
    scene.until(|scene| is_called_off(scene, &child));
    scene.rest();
}

#[test]
fn news_of_a_child_are_not_lost_on_a_request_that_repeats_its_canceled_parent() {
    let mut scene = Scene::new(Plan::Hang);
    let (parent, request) = (scene.fresh(), scene.request("forker"));
    scene.ask_for(&parent, &request);
    scene.until(|scene| scene.status(&parent) == Some(RunStatus::Running));
    let child = scene.start_child(&parent, "remote");
    let node = scene.owner(parent.shard());
    let to_parent = |scene: &mut Scene, input| {
        let parcel = Parcel::Input { shard: parent.shard(), input: Box::new(input), call: None };
        scene.sim.deliver(node, parcel);
    };
    let news = |began| Input::Child { parent: parent.clone(), child: child.clone(), began };
    to_parent(&mut scene, news(false));
    cancel(&mut scene, &parent);
    scene.until(|scene| scene.status(&parent).is_some_and(RunStatus::is_terminal));
    scene.pass(10_000);
    assert_eq!(scene.status(&child), Some(RunStatus::Running));

    // The parent is over; while it is asked for once more, its child makes itself known.
    scene.sim.store.trouble = Trouble::Slow;
    scene.ask_for(&parent, &request);
    scene.until(|scene| {
        let shard = scene.sim.nodes[node].memory.shards.get(&parent.shard());
        shard.and_then(|shard| shard.run(&parent)).is_some_and(|view| view.busy)
    });
    to_parent(&mut scene, news(true));
    scene.sim.store.trouble = Trouble::Nothing;
    scene.until(|scene| is_called_off(scene, &child));
    scene.rest();
}
