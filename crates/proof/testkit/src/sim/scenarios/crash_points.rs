//! The table of crash points: each is driven before a run is accepted and while it is under way.

use wharf_domain::Resolution;
use wharf_vocab::RunStatus;

use super::super::exercised::Thing;
use super::super::faults::CrashPoint;
use super::super::provider::Plan;
use super::Scene;

/// What the store knows of a run whose core died at a point while the run was asked for.
const TABLE: [(CrashPoint, bool); 8] = [
    (CrashPoint::BeforeCommit, false),
    (CrashPoint::InCommit, false),
    (CrashPoint::BeforeCommitted, true),
    (CrashPoint::BeforeEffects, true),
    (CrashPoint::AmidEffects, true),
    // The core was not there to be asked.
    (CrashPoint::DuringLoad, false),
    (CrashPoint::AfterLoad, false),
    (CrashPoint::Idle, false),
];

const TOOLS: [&str; 5] = ["plain", "pure", "remote", "gated", "paid"];

#[test]
fn the_table_has_every_point() {
    assert_eq!(TABLE.map(|(point, _)| point), CrashPoint::ALL);
}

#[test]
fn a_core_that_dies_while_a_run_is_asked_for_has_made_it_or_not_and_never_half() {
    for (point, made) in TABLE {
        for tool in TOOLS {
            let mut scene = Scene::new(Plan::Succeed);
            let (key, request) = (scene.fresh(), scene.request(tool));
            let node = scene.owner(key.shard());
            scene.ask_for(&key, &request);
            scene.sim.arm(node, point);
            scene.until(|scene| scene.sim.seen.count(Thing::from(point)) > 0);
            assert_eq!(scene.run(&key).is_some(), made, "{point:?} {tool}");

            // Its caller knows nothing and asks again.
            scene.until(|scene| scene.sim.unowned().is_empty());
            scene.ask_for(&key, &request);
            scene.rest();
            let status = scene.status(&key);
            assert!(status.is_some_and(RunStatus::is_terminal), "{point:?} {tool}: {status:?}");
        }
    }
}

#[test]
fn a_core_that_dies_while_a_run_is_under_way_ends_it_once_and_repeats_only_what_is_safe() {
    for point in CrashPoint::ALL {
        for tool in TOOLS {
            let mut scene = Scene::new(Plan::Succeed);
            let key = scene.start(tool);
            if tool == "gated" {
                scene.decide(&key, Resolution::ALLOW);
                scene.until(|scene| scene.status(&key) == Some(RunStatus::Running));
            }
            let node = scene.owner(key.shard());
            scene.sim.arm(node, point);
            let canceled = point == CrashPoint::AmidEffects;
            if canceled {
                // Only what is told to several has a middle.
                scene.sim.cancel(key.clone(), crate::sim::stage::owner());
            }
            scene.until(|scene| scene.sim.seen.count(Thing::from(point)) > 0);
            scene.rest();
            let run = scene.run(&key).expect("accepted");
            let succeeded = run.status() == RunStatus::Succeeded;
            let over = run.status().is_terminal();
            // What can be taken up again or repeated succeeds; the rest may fail, but only once.
            let safe = !canceled && (run.spec.reattach || run.spec.side_effect_free);
            assert!(if safe { succeeded } else { over }, "{point:?} {tool}: {run:?}");
        }
    }
}
