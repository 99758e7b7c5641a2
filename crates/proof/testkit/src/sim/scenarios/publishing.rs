//! Cores that die while files are put in their places: the run succeeds once, with all of them.

use wharf_domain::Run;
use wharf_domain::run::Phase;
use wharf_vocab::{RunKey, RunStatus};

use super::super::exercised::Thing;
use super::super::faults::CrashPoint;
use super::super::provider::Plan;
use super::super::store::Fate;
use super::Scene;

const TOOLS: [&str; 2] = ["paid", "asker"];

fn is_publishing(scene: &Scene, key: &RunKey) -> bool {
    scene.run(key).is_some_and(|run| run.phase() == Phase::Publishing)
}

/// The run succeeded, by the attempt that it began with, and every file is where it belongs.
fn assert_published(scene: &Scene, key: &RunKey, what: &str) {
    let run: Run = scene.run(key).expect("known");
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1), "{what}: {run:?}");
    assert_eq!(run.artifacts.len(), 2, "{what}");
}

#[test]
fn t047_a_core_that_dies_between_two_files_publishes_both_in_the_end() {
    for tool in TOOLS {
        // Dies before the first file, between the two, and when both are there.
        for placed in 0..=2 {
            let mut scene = Scene::new(Plan::Succeed);
            let key = scene.start(tool);
            scene.until(|scene| is_publishing(scene, &key));
            scene.until(|scene| scene.sim.check.placed(&key) >= placed);
            assert!(is_publishing(&scene, &key), "{tool} {placed}: it is not over yet");
            let node = scene.owner(key.shard());
            scene.sim.crash(node, CrashPoint::Idle);
            scene.rest();
            assert_published(&scene, &key, &format!("{tool} {placed}"));
            let again = scene.sim.seen.count(Thing::PublishedAgain);
            assert_eq!(again, placed as u64, "{tool}: what was there is put there again");
        }
    }
}

#[test]
fn t047_a_core_that_dies_anywhere_on_the_way_to_publication_ends_the_run_once() {
    for point in CrashPoint::ALL {
        let mut scene = Scene::new(Plan::Succeed);
        let key = scene.start("asker");
        let node = scene.owner(key.shard());
        scene.sim.arm(node, point);
        if point == CrashPoint::AmidEffects {
            // What has one effect only has no middle, so that point is never reached.
            scene.until(|scene| is_publishing(scene, &key));
        } else {
            scene.until(|scene| scene.sim.seen.count(Thing::from(point)) > 0);
        }
        scene.rest();
        assert_published(&scene, &key, &format!("{point:?}"));
    }
}

#[test]
fn t047_a_publication_that_was_committed_and_denied_is_gone_on_with() {
    for tool in TOOLS {
        let mut scene = Scene::new(Plan::Succeed);
        let key = scene.start(tool);
        scene.until(|scene| is_publishing(scene, &key));
        // The end is committed, and the core is told that it was not.
        scene.sim.store.next = Some(Fate::Hidden);
        scene.rest();
        assert_published(&scene, &key, tool);
    }
}

#[test]
fn t047_a_cancel_comes_too_late_for_what_is_being_published() {
    let mut scene = Scene::new(Plan::Succeed);
    let key = scene.start("paid");
    scene.until(|scene| is_publishing(scene, &key));
    scene.sim.cancel(key.clone(), crate::sim::stage::owner());
    scene.rest();
    assert_published(&scene, &key, "canceled");
}
