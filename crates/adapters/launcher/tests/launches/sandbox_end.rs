//! How launches end that are fenced in by namespaces. What holds without them holds here, and
//! more: not even a shim that is killed leaves anything behind.
#![cfg(target_os = "linux")]

use std::sync::Arc;

use crate::support::{
    Bench, LONG, SHORT, ended, eventually, exists, mark_of, marked, output, parent_of, read_until,
    signal, tell,
};
use rustix::process::Signal;
use wharf_ports::launcher::{ExitHow, Launched, Launcher};
use wharf_vocab::SandboxLevel::{self, Standard, Strict};

/// The firm levels that this machine has.
async fn levels(bench: &Bench) -> Vec<SandboxLevel> {
    let achieved = bench.launcher.probe().await;
    if achieved.level < Standard {
        tell(&format!("{:?}", achieved.notes));
    }
    [Standard, Strict].into_iter().filter(|level| *level <= achieved.level).collect()
}

struct Family {
    launched: Arc<dyn Launched>,
    mark: String,
    init: i32,
    shim: i32,
}

impl Family {
    /// The probe, a child in its group, and two orphans in sessions of their own.
    async fn launch(bench: &Bench, level: SandboxLevel, args: &[&str]) -> Self {
        let spec = bench.fenced(level, args);
        let mark = mark_of(&spec);
        let launched = bench.launch(spec).await;
        read_until(&*launched, |line| line == "family complete").await;
        eventually("all of it can be seen", || marked(&mark).len() == 4).await;
        let init = parent_of(launched.pid());
        Self { launched, mark, init, shim: parent_of(init.unsigned_abs()) }
    }

    fn assert_nothing_left(&self) {
        assert_eq!(marked(&self.mark), [] as [i32; 0]);
        assert!(!exists(self.init) && !exists(self.shim), "and no zombie");
    }
}

#[tokio::test]
async fn ends_are_reported_as_they_were() {
    let bench = Bench::new();
    for level in levels(&bench).await {
        for code in [0, 3, 255] {
            let launched = bench.launch(bench.fenced(level, &["exit", &code.to_string()])).await;
            assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(code));
        }
        for number in [9, 11, 15] {
            let launched = bench.launch(bench.fenced(level, &["die", &number.to_string()])).await;
            assert_eq!(ended(launched.exited()).await.how, ExitHow::Signal(number), "{level}");
        }
    }
}

#[tokio::test]
async fn stop_asks_first_and_kills_who_does_not_hear() {
    let bench = Bench::new();
    for level in levels(&bench).await {
        let launched = bench.launch(bench.fenced(level, &["polite"])).await;
        read_until(&*launched, |line| line == "ready").await;
        assert_eq!(ended(launched.stop(LONG)).await.how, ExitHow::Code(7));
        assert_eq!(output(&*launched).await, ["ready", "heard TERM"]);
        // A plain program has no handler, and ends by the signal all the same.
        let launched = bench.launch(bench.fenced(level, &["live"])).await;
        read_until(&*launched, |line| line.starts_with("pid")).await;
        assert_eq!(ended(launched.stop(LONG)).await.how, ExitHow::Signal(15));
        let launched = bench.launch(bench.fenced(level, &["stubborn"])).await;
        read_until(&*launched, |line| line == "ready").await;
        let asked_at = std::time::Instant::now();
        assert_eq!(ended(launched.stop(SHORT)).await.how, ExitHow::Signal(9));
        assert!(asked_at.elapsed() >= SHORT);
    }
}

#[tokio::test]
async fn the_group_has_the_whole_grace_even_if_the_program_ends_at_once() {
    let bench = Bench::new();
    for level in levels(&bench).await {
        let launched = bench.launch(bench.fenced(level, &["parent-of-polite"])).await;
        read_until(&*launched, |line| line == "ready").await;
        assert_eq!(ended(launched.stop(LONG)).await.how, ExitHow::Signal(15));
        let lines = output(&*launched).await;
        assert_eq!(lines.last().map(String::as_str), Some("heard TERM"), "{lines:?}");
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_family_however_it_ends() {
    let bench = Bench::new();
    for level in levels(&bench).await {
        let family = Family::launch(&bench, level, &["family"]).await;
        assert_eq!(ended(family.launched.stop(LONG)).await.how, ExitHow::Signal(15));
        family.assert_nothing_left();
        let family = Family::launch(&bench, level, &["family"]).await;
        assert_eq!(ended(family.launched.kill()).await.how, ExitHow::Signal(9));
        family.assert_nothing_left();
        let spec = bench.fenced(level, &["family", "leaving"]);
        let mark = mark_of(&spec);
        let launched = bench.launch(spec).await;
        assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(0));
        assert_eq!(marked(&mark), [] as [i32; 0], "orphans in other sessions are gone");
    }
}

#[tokio::test]
async fn a_shim_that_is_killed_leaves_nothing_not_even_orphans_in_other_sessions() {
    let bench = Bench::new();
    for level in levels(&bench).await {
        let family = Family::launch(&bench, level, &["family"]).await;
        signal(family.shim, Signal::KILL);
        assert_eq!(ended(family.launched.exited()).await.how, ExitHow::Lost);
        eventually("the kernel killed all of it", || marked(&family.mark).is_empty()).await;
        eventually("and the first process", || !exists(family.init)).await;
    }
}

#[tokio::test]
async fn a_first_process_that_is_killed_takes_all_along() {
    let bench = Bench::new();
    for level in levels(&bench).await {
        let family = Family::launch(&bench, level, &["family"]).await;
        signal(family.init, Signal::KILL);
        assert_eq!(ended(family.launched.exited()).await.how, ExitHow::Signal(9));
        family.assert_nothing_left();
    }
}

#[tokio::test]
async fn a_dropped_launch_is_killed() {
    let bench = Bench::new();
    for level in levels(&bench).await {
        let Family { launched, mark, shim, .. } = Family::launch(&bench, level, &["family"]).await;
        drop(launched);
        eventually("all of it is gone", || marked(&mark).is_empty() && !exists(shim)).await;
    }
}

#[tokio::test]
async fn a_launch_owns_everything_it_started_and_nothing_else() {
    let bench = Bench::new();
    for level in levels(&bench).await {
        let family = Family::launch(&bench, level, &["family"]).await;
        let other = Family::launch(&bench, level, &["family"]).await;
        for pid in marked(&family.mark) {
            assert!(family.launched.owns(pid.unsigned_abs()), "{pid}");
            assert!(!other.launched.owns(pid.unsigned_abs()), "{pid}");
        }
        assert!(family.launched.owns(family.launched.pid()));
        for stranger in [std::process::id(), family.shim.unsigned_abs(), 1, 0, u32::MAX] {
            assert!(!family.launched.owns(stranger), "{stranger}");
        }
        ended(family.launched.kill()).await;
    }
}

#[tokio::test]
async fn who_connects_from_inside_is_known_outside_by_an_id_that_the_launch_owns() {
    let bench = Bench::new();
    for level in levels(&bench).await {
        let path = bench.dir.path().join(format!("{level}.sock"));
        let listener = tokio::net::UnixListener::bind(&path).expect("listens");
        let word = format!("unix:{}", path.display());
        let mut spec = bench.fenced(level, &["attempt-and-live", &word]);
        spec.fence.sockets = vec![path];
        let launched = bench.launch(spec).await;
        let (stream, _) = listener.accept().await.expect("connects");
        let peer = stream.peer_cred().expect("credentials");
        let pid = peer.pid().expect("a process id").unsigned_abs();
        assert_eq!(pid, launched.pid(), "the same number as the launch tells");
        assert!(launched.owns(pid));
        assert_eq!(peer.uid(), rustix::process::getuid().as_raw(), "and the same user");
        ended(launched.kill()).await;
    }
}

#[tokio::test]
async fn a_runaway_that_forks_and_leaves_all_the_time_is_caught() {
    let bench = Bench::new();
    for level in levels(&bench).await {
        let spec = bench.fenced(level, &["hop", "1000000"]);
        let mark = mark_of(&spec);
        let launched = bench.launch(spec).await;
        ended(launched.kill()).await;
        assert_eq!(marked(&mark), [] as [i32; 0]);
    }
}
