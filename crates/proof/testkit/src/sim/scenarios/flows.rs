//! Flows whose words are lost and whose cores die.

use wharf_domain::run::flow::step_id;
use wharf_vocab::{RunKey, RunStatus};

use super::super::exercised::Thing;
use super::super::faults::CrashPoint;
use super::super::provider::Plan;
use super::Scene;

/// The flow with branches, a step that is caught, and one that is done at last.
const BRANCHES: usize = 2;

fn start(scene: &mut Scene, which: usize) -> RunKey {
    let (key, mut request) = (scene.fresh(), scene.request("plain"));
    request.flow = Some(which);
    scene.ask_for(&key, &request);
    key
}

fn is_over(scene: &Scene, key: &RunKey) -> bool {
    scene.status(key).is_some_and(RunStatus::is_terminal)
}

/// The run of a step that was tried once.
fn step(scene: &Scene, flow: &RunKey, path: &str) -> Option<RunStatus> {
    let run = step_id(flow, path, 1);
    scene.status(&RunKey { world: flow.world.clone(), run })
}

#[test]
fn f040_a_flow_ends_although_every_word_of_its_steps_is_lost() {
    let mut scene = Scene::new(Plan::Succeed);
    scene.sim.deaf = true;
    let key = start(&mut scene, BRANCHES);
    scene.until(|scene| is_over(scene, &key));
    assert_eq!(scene.status(&key), Some(RunStatus::Succeeded));
    for path in ["x", "y", "caught", "at_last"] {
        assert_eq!(step(&scene, &key, path), Some(RunStatus::Succeeded), "{path}");
    }
    scene.rest();
}

#[test]
fn f040_a_flow_goes_on_wherever_its_core_dies_and_does_each_step_once() {
    for point in CrashPoint::ALL {
        for after in 0..6 {
            let mut scene = Scene::new(Plan::Succeed);
            let key = start(&mut scene, BRANCHES);
            scene.until(|scene| scene.run(&key).is_some());
            scene.until(|scene| scene.sim.seen.count(Thing::Step) >= after || is_over(scene, &key));
            if !is_over(&scene, &key) {
                let node = scene.owner(key.shard());
                scene.sim.arm(node, point);
            }
            scene.until(|scene| is_over(scene, &key));
            assert!(scene.run(&key).is_some_and(|run| run.flow.is_some()), "{point:?} {after}");
            scene.rest();
        }
    }
}
