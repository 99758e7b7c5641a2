//! How launches end, and that nothing is left of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{
    Bench, LONG, SHORT, ended, eventually, exists, mark_of, marked, output, parent_of, read_until,
    signal, stat,
};
use rustix::process::Signal;
use wharf_ports::launcher::{ExitHow, LaunchSpec, Launched};

/// Launches the probe with its family: itself, a child in its group, and two orphans in sessions
/// of their own.
async fn launch_family(bench: &Bench, args: &[&str]) -> (Arc<dyn Launched>, String, i32) {
    let spec = bench.spec(args);
    let mark = mark_of(&spec);
    let launched = bench.launch(spec).await;
    let shim = parent_of(launched.pid());
    read_until(&*launched, |line| line == "family complete").await;
    // A process that has just begun does not show its environment at once.
    eventually("all of it can be seen", || marked(&mark).len() == 4).await;
    (launched, mark, shim)
}

fn assert_nothing_left(mark: &str, shim: i32) {
    assert_eq!(marked(mark), [] as [i32; 0]);
    assert!(!exists(shim), "the shim is gone and leaves no zombie");
}

#[tokio::test]
async fn exit_codes_are_reported() {
    let bench = Bench::new();
    for code in [0, 1, 3, 255] {
        let (exit, _) = bench.run(&["exit", &code.to_string()]).await;
        assert_eq!(exit.how, ExitHow::Code(code));
        assert_eq!(exit.is_success(), code == 0);
        assert_eq!(exit.survivors, 0);
    }
}

#[tokio::test]
async fn r067_a_program_that_is_killed_or_crashes_is_reported_and_the_core_goes_on() {
    let bench = Bench::new();
    for number in [9, 11, 6, 15] {
        let (exit, _) = bench.run(&["die", &number.to_string()]).await;
        assert_eq!(exit.how, ExitHow::Signal(number));
    }
    assert_eq!(bench.run(&["exit", "0"]).await.0.how, ExitHow::Code(0));
}

#[tokio::test]
async fn the_end_can_be_asked_for_often_and_late() {
    let bench = Bench::new();
    let launched = bench.launch(bench.spec(&["exit", "3"])).await;
    let (a, b) = tokio::join!(ended(launched.exited()), ended(launched.exited()));
    assert_eq!(a, b);
    assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(3));
    assert_eq!(ended(launched.stop(LONG)).await.how, ExitHow::Code(3), "stop comes too late");
    assert_eq!(ended(launched.kill()).await.how, ExitHow::Code(3), "and so does kill");
}

#[tokio::test]
async fn stop_asks_first_and_a_polite_program_ends_by_itself() {
    let bench = Bench::new();
    let launched = bench.launch(bench.spec(&["polite"])).await;
    read_until(&*launched, |line| line == "ready").await;
    assert_eq!(ended(launched.stop(LONG)).await.how, ExitHow::Code(7));
    assert_eq!(output(&*launched).await, ["ready", "heard TERM"]);
}

#[tokio::test]
async fn a_program_that_ignores_term_is_killed_after_the_grace() {
    let bench = Bench::new();
    let launched = bench.launch(bench.spec(&["stubborn"])).await;
    read_until(&*launched, |line| line == "ready").await;
    let asked_at = Instant::now();
    assert_eq!(ended(launched.stop(SHORT)).await.how, ExitHow::Signal(9));
    assert!(asked_at.elapsed() >= SHORT, "{:?}", asked_at.elapsed());
    assert_eq!(output(&*launched).await, ["ready", "heard TERM"]);
}

#[tokio::test]
async fn stopping_acts_even_if_nobody_waits_for_the_end() {
    let bench = Bench::new();
    let launched = bench.launch(bench.spec(&["polite"])).await;
    read_until(&*launched, |line| line == "ready").await;
    drop(launched.stop(LONG));
    assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(7));
}

#[tokio::test]
async fn an_impatient_stop_overtakes_a_patient_one_and_kill_overtakes_both() {
    let bench = Bench::new();
    for kill in [false, true] {
        let launched = bench.launch(bench.spec(&["stubborn"])).await;
        read_until(&*launched, |line| line == "ready").await;
        let patient = launched.stop(LONG);
        let impatient = if kill { launched.kill() } else { launched.stop(SHORT) };
        assert_eq!(ended(impatient).await.how, ExitHow::Signal(9));
        assert_eq!(ended(patient).await.how, ExitHow::Signal(9));
    }
}

#[tokio::test]
async fn a_halted_program_hears_the_stop() {
    let bench = Bench::new();
    let launched = bench.launch(bench.spec(&["polite"])).await;
    read_until(&*launched, |line| line == "ready").await;
    let pid = i32::try_from(launched.pid()).expect("fits");
    signal(pid, Signal::STOP);
    eventually("it is halted", || stat(pid).is_some_and(|fields| fields[0] == "T")).await;
    assert_eq!(ended(launched.stop(LONG)).await.how, ExitHow::Code(7));
}

#[tokio::test]
async fn stop_leaves_nothing_of_a_family_with_orphans_in_other_sessions() {
    let bench = Bench::new();
    let (launched, mark, shim) = launch_family(&bench, &["family"]).await;
    let asked_at = Instant::now();
    assert_eq!(ended(launched.stop(LONG)).await.how, ExitHow::Signal(15));
    assert!(asked_at.elapsed() < LONG, "orphans outside the group are not waited for");
    assert_nothing_left(&mark, shim);
}

#[tokio::test]
async fn kill_leaves_nothing_of_a_family() {
    let bench = Bench::new();
    let (launched, mark, shim) = launch_family(&bench, &["family"]).await;
    assert_eq!(ended(launched.kill()).await.how, ExitHow::Signal(9));
    assert_nothing_left(&mark, shim);
}

#[tokio::test]
async fn the_group_has_the_whole_grace_even_if_the_program_ends_at_once() {
    let bench = Bench::new();
    let launched = bench.launch(bench.spec(&["parent-of-polite"])).await;
    read_until(&*launched, |line| line == "ready").await;
    assert_eq!(ended(launched.stop(LONG)).await.how, ExitHow::Signal(15));
    let lines = output(&*launched).await;
    assert_eq!(lines.last().map(String::as_str), Some("heard TERM"), "{lines:?}");
}

#[tokio::test]
async fn when_the_program_ends_its_orphans_end_with_it() {
    let bench = Bench::new();
    let spec = bench.spec(&["family", "leaving"]);
    let mark = mark_of(&spec);
    let launched = bench.launch(spec).await;
    let exit = ended(launched.exited()).await;
    assert_eq!(exit.how, ExitHow::Code(0));
    assert_eq!(marked(&mark), [] as [i32; 0]);
    let lines = output(&*launched).await;
    let strays = lines.iter().filter_map(|line| line.strip_prefix("stray "));
    let strays: Vec<i32> = strays.map(|pid| pid.parse().expect("a number")).collect();
    assert_eq!(strays.len(), 2, "{lines:?}");
    assert!(!strays.iter().any(|pid| exists(*pid)));
}

#[tokio::test]
async fn a_program_that_runs_away_is_caught() {
    let bench = Bench::new();
    // Longer than anybody waits here, and yet it ends if it is not caught.
    let spec = bench.spec(&["hop", "20000"]);
    let mark = mark_of(&spec);
    let launched = bench.launch(spec).await;
    let exit = ended(launched.exited()).await;
    assert_eq!(exit.how, ExitHow::Code(0), "the first hop ended by itself");
    assert_eq!(exit.survivors, 0);
    // One look might fall between two hops.
    for _ in 0..20 {
        assert_eq!(marked(&mark), [] as [i32; 0]);
    }
}

#[tokio::test]
async fn dropping_the_last_handle_kills_the_launch() {
    let bench = Bench::new();
    let (launched, mark, shim) = launch_family(&bench, &["family"]).await;
    let second = Arc::clone(&launched);
    let exited = launched.exited();
    drop(launched);
    assert_eq!(marked(&mark).len(), 4, "one handle is left");
    drop(second);
    assert_eq!(ended(exited).await.how, ExitHow::Signal(9));
    assert_nothing_left(&mark, shim);
}

#[tokio::test]
async fn giving_up_a_launch_leaves_nothing() {
    let bench = Bench::new();
    let spec = bench.spec(&["family"]);
    let mark = mark_of(&spec);
    // Given up at any moment between asking and having.
    let patience_us = [0, 500, 2_000, 5_000, 10_000, 20_000];
    for patience_us in patience_us {
        let launching = bench.try_launch(spec.clone());
        let _ = tokio::time::timeout(Duration::from_micros(patience_us), launching).await;
    }
    let log = crate::support::log_path(&spec);
    eventually("every launch has written its last line", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.matches("[ended with").count() == patience_us.len()
    })
    .await;
    assert_eq!(marked(&mark), [] as [i32; 0]);
}

#[tokio::test]
async fn a_shim_that_is_killed_takes_the_program_along_and_the_core_clears_up() {
    let bench = Bench::new();
    // A child in another group of the same session, which no signal to the program reaches.
    let spec = bench.spec(&["parent-of-regrouped"]);
    let mark = mark_of(&spec);
    let launched = bench.launch(spec).await;
    let shim = parent_of(launched.pid());
    eventually("both are there", || marked(&mark).len() == 2).await;
    signal(shim, Signal::KILL);
    let exit = ended(launched.exited()).await;
    assert_eq!(exit.how, ExitHow::Lost);
    assert_nothing_left(&mark, shim);
}

#[tokio::test]
async fn a_shim_that_is_told_to_end_stops_its_program_in_order() {
    let bench = Bench::new();
    for told in [Signal::TERM, Signal::INT, Signal::HUP] {
        let spec: LaunchSpec = bench.spec(&["polite"]);
        let mark = mark_of(&spec);
        let launched = bench.launch(spec).await;
        read_until(&*launched, |line| line == "ready").await;
        let shim = parent_of(launched.pid());
        signal(shim, told);
        assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(7));
        assert_nothing_left(&mark, shim);
    }
}

#[tokio::test]
async fn a_shim_that_is_told_of_the_cores_death_does_not_ask_first() {
    let bench = Bench::new();
    let spec = bench.spec(&["polite"]);
    let mark = mark_of(&spec);
    let launched = bench.launch(spec).await;
    read_until(&*launched, |line| line == "ready").await;
    let shim = parent_of(launched.pid());
    signal(shim, Signal::USR2);
    assert_eq!(ended(launched.exited()).await.how, ExitHow::Signal(9));
    assert_nothing_left(&mark, shim);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_outlives_the_thread_that_asked_for_it() {
    let bench = Arc::new(Bench::new());
    let runtime = tokio::runtime::Handle::current();
    let asking = std::thread::spawn({
        let bench = Arc::clone(&bench);
        move || runtime.block_on(bench.launch(bench.spec(&["polite"])))
    });
    let launched = tokio::task::spawn_blocking(|| asking.join()).await.expect("waits");
    let launched = launched.expect("launches");
    read_until(&*launched, |line| line == "ready").await;
    assert_eq!(ended(launched.stop(LONG)).await.how, ExitHow::Code(7));
}

#[tokio::test]
async fn a_shim_that_is_halted_is_killed_when_it_does_not_answer() {
    let bench = Bench::new();
    let spec = bench.spec(&["live"]);
    let mark = mark_of(&spec);
    let launched = bench.launch(spec).await;
    let shim = parent_of(launched.pid());
    signal(shim, Signal::STOP);
    assert_eq!(ended(launched.kill()).await.how, ExitHow::Lost);
    assert_nothing_left(&mark, shim);
}

#[tokio::test]
async fn a_launch_owns_everything_it_started_and_nothing_else() {
    let bench = Bench::new();
    let (launched, mark, shim) = launch_family(&bench, &["family"]).await;
    let (other, ..) = launch_family(&bench, &["family"]).await;
    for pid in marked(&mark) {
        assert!(launched.owns(pid.unsigned_abs()), "{pid}");
        assert!(!other.owns(pid.unsigned_abs()), "{pid}");
    }
    assert!(launched.owns(launched.pid()));
    for stranger in [std::process::id(), shim.unsigned_abs(), 1, 0, u32::MAX] {
        assert!(!launched.owns(stranger), "{stranger}");
    }
    let pid = launched.pid();
    ended(launched.kill()).await;
    assert!(!launched.owns(pid));
}
