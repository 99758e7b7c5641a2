//! Runs many seeds of the simulator and says which break a rule:
//! `cargo run --example seeds -- FIRST COUNT STEPS [THREADS]`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use wharf_testkit::sim::{Exercised, SimOptions, SimReport, Thing, run};

fn main() {
    let mut given = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let mut next = |default| given.next().unwrap_or(default);
    let (first, count, steps, threads) = (next(0), next(1_000), next(600), next(1));
    let steps = u32::try_from(steps).unwrap_or(u32::MAX);
    let at = AtomicU64::new(first);
    let found = Mutex::new((Exercised::default(), Vec::<SimReport>::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = at.fetch_add(1, Ordering::SeqCst);
                    if seed >= first + count {
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
    let (exercised, mut failures) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort_by_key(|report| report.seed);
    tell(count, &exercised, &failures);
    if !failures.is_empty() {
        std::process::exit(1);
    }
}

#[expect(clippy::print_stdout, reason = "whoever started it reads it")]
fn tell(count: u64, exercised: &Exercised, failures: &[SimReport]) {
    let mut rules: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for report in failures {
        let rule = report.violation.as_ref().map_or("", |violation| violation.rule);
        rules.entry(rule).or_default().push(report.seed);
    }
    for thing in Thing::ALL {
        println!("{:>9}  {}", exercised.count(*thing), thing.as_str());
    }
    for (rule, seeds) in &rules {
        println!("{} seeds broke: {rule}: {:?}", seeds.len(), &seeds[..seeds.len().min(12)]);
    }
    if count == 1 {
        failures.iter().for_each(|report| println!("{report}"));
    }
    println!("{} of {count} seeds were clean", count - failures.len() as u64);
}
