//! A thousand lives of the simulated world. Each seed is a different one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use wharf_testkit::sim::{Exercised, SimOptions, SimReport, Thing, run};

const SEEDS: u64 = 1_000;
const STEPS: u32 = 400;

/// Runs the seeds on every processor; all that is exercised, and the first reports of failure.
fn run_all(seeds: u64, steps: u32) -> (Exercised, Vec<SimReport>) {
    let next = AtomicU64::new(0);
    let found = Mutex::new((Exercised::default(), Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds {
                        return;
                    }
                    let report = run(SimOptions { seed, steps });
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.0.add(&report.exercised);
                    if !report.ok {
                        found.1.push(report);
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn every_rule_holds_in_a_thousand_lives_and_they_lead_through_everything() {
    let (exercised, mut failures) = run_all(SEEDS, STEPS);
    failures.sort_by_key(|report| report.seed);
    if let Some(first) = failures.first() {
        let seeds: Vec<_> = failures.iter().map(|report| report.seed).collect();
        panic!("{} of {SEEDS} seeds fail: {seeds:?}\n{first}", failures.len());
    }
    let missing: Vec<_> = exercised.missing().into_iter().map(Thing::as_str).collect();
    assert!(missing.is_empty(), "no seed led through: {missing:?}");
}

#[test]
fn the_same_seed_gives_the_same_life() {
    for seed in [3, 77, 4_711] {
        let options = SimOptions { seed, steps: 600 };
        assert_eq!(run(options), run(options));
    }
}
