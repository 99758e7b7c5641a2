//! Launches in control groups. The kernel's interface to them is a folder of files, so a prepared
//! folder shows what is asked of the kernel and what is made of its answers. Where this user may
//! make real groups, the other tests of limits run in them.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{Bench, ended, eventually, read_until};
use wharf_ports::launcher::{ExitHow, LaunchSpec, Launcher};
use wharf_vocab::{Keeping, Resource, SandboxLevel};

/// A launcher whose groups lie in a folder beside its others.
fn bench() -> (Bench, PathBuf) {
    let Bench { dir, launcher } = Bench::new();
    let groups = dir.path().join("groups");
    fs::create_dir(&groups).expect("makes it");
    fs::write(groups.join("cgroup.subtree_control"), "cpu memory pids\n").expect("writes");
    fs::write(groups.join("cgroup.procs"), "").expect("writes");
    let launcher = launcher.with_groups_in(&groups);
    (Bench { dir, launcher }, groups)
}

fn limited(bench: &Bench) -> LaunchSpec {
    let mut spec = bench.fenced(SandboxLevel::Standard, &["live"]);
    let usage = &mut spec.fence.usage;
    usage.memory_bytes = Some(1 << 30);
    usage.processes = Some(20);
    usage.cpu_millicores = Some(500);
    usage.cpu_ms = Some(60_000);
    spec
}

/// The only group there is.
fn group(groups: &Path) -> PathBuf {
    let mut entries = fs::read_dir(groups).expect("is there").flatten().map(|entry| entry.path());
    entries.find(|path| path.is_dir()).expect("a group")
}

#[tokio::test]
async fn a_launch_is_in_a_group_with_its_limits_and_the_group_ends_with_it() {
    let (bench, groups) = bench();
    let launched = bench.launch(limited(&bench)).await;
    read_until(&*launched, |line| line.starts_with("pid")).await;
    let group = group(&groups);
    let read = |name: &str| fs::read_to_string(group.join(name)).expect("was written");
    let expect = [
        ("memory.max", "1073741824"),
        ("memory.oom.group", "1"),
        ("memory.swap.max", "0"),
        ("cpu.max", "50000 100000"),
        ("cgroup.procs", "0"),
    ];
    for (name, value) in expect {
        assert_eq!(read(name), value, "{name}");
    }
    assert!(read("pids.max").parse::<u64>().expect("a number") > 20, "some are ours");
    let limits = &launched.fence().limits;
    for (name, how) in [
        ("memory_bytes", Keeping::Kernel),
        ("processes", Keeping::Kernel),
        ("cpu_millicores", Keeping::Kernel),
        ("cpu_ms", Keeping::Measured),
    ] {
        assert_eq!(limits[name], how, "{name}");
    }
    ended(launched.kill()).await;
    assert_eq!(read("cgroup.kill"), "1", "nothing is left in it");
    assert_eq!(bench.launcher.probe().await.limits["memory_bytes"], Keeping::Kernel);
}

#[tokio::test]
async fn what_the_kernel_says_of_a_group_ends_the_launch_under_its_name() {
    let told = [
        ("memory.events", "max 4\noom 1\noom_kill 1\n", Resource::Memory),
        ("pids.events", "max 1\n", Resource::Processes),
        ("cpu.stat", "usage_usec 61000000\n", Resource::Cpu),
    ];
    for (file, text, resource) in told {
        let (bench, groups) = bench();
        let launched = bench.launch(limited(&bench)).await;
        read_until(&*launched, |line| line.starts_with("pid")).await;
        fs::write(group(&groups).join(file), text).expect("writes");
        assert_eq!(ended(launched.exited()).await.how, ExitHow::Limit(resource), "{file}");
    }
}

/// The real thing, without counting: the newer kind of group may be there although it counts
/// nothing, and the first user may make one.
#[tokio::test]
async fn all_that_is_in_a_real_group_is_killed_at_once() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("is there");
    let place = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let place = place.and_then(|line| line.split(' ').nth(4));
    let folder = format!("wharf-test-{}", std::process::id());
    let Some(group) = place.map(|place| Path::new(place).join(folder)) else { return };
    if fs::create_dir(&group).is_err() {
        // Nobody let this user make groups, so none is used either.
        return;
    }
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("starts");
    let joined = fs::write(group.join("cgroup.procs"), child.id().to_string());
    let killed = joined.and_then(|()| fs::write(group.join("cgroup.kill"), "1"));
    if killed.is_err() {
        child.kill().expect("ends it");
    }
    child.wait().expect("it is over");
    let is_empty = || fs::remove_dir(&group).is_ok();
    eventually("the group can be removed", is_empty).await;
    tokio::time::sleep(Duration::ZERO).await;
}
