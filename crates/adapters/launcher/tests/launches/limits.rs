//! A program that takes too much is stopped, and it is told of what; the others go on.
#![cfg(target_os = "linux")]

use std::time::Duration;

use crate::support::{Bench, ended, mark_of, marked};
use wharf_ports::launcher::{ExitHow, FenceReport, LaunchSpec, Launcher};
use wharf_vocab::{Keeping, Resource, SandboxLevel};

const MEGABYTE: u64 = 1024 * 1024;

/// Runs it at each level there is, beside another that must not notice.
async fn stopped_for(resource: Resource, args: &[&str], limit: impl Fn(&mut LaunchSpec)) {
    let bench = Bench::new();
    let achieved = bench.launcher.probe().await;
    let bystander = bench.launch(bench.fenced(SandboxLevel::Basic, &["live"])).await;
    for level in [SandboxLevel::None, SandboxLevel::Basic, SandboxLevel::Standard] {
        if achieved.level < level {
            continue;
        }
        let mut spec = bench.fenced(level, args);
        if let Some(place) = spec.args.iter_mut().find(|arg| *arg == "HOME") {
            *place = spec.private_dirs[0].display().to_string();
        }
        limit(&mut spec);
        let mark = mark_of(&spec);
        let launched = bench.launch(spec).await;
        let exit = ended(launched.exited()).await;
        assert_eq!(exit.how, ExitHow::Limit(resource), "{level} {exit}");
        assert_eq!(exit.survivors, 0);
        assert_eq!(marked(&mark), [] as [i32; 0], "{level}");
        assert!(exit.to_string().contains(resource.as_str()), "{exit}");
    }
    assert!(bystander.owns(bystander.pid()), "it lives");
    ended(bystander.kill()).await;
}

#[tokio::test]
async fn a_program_that_eats_memory_is_stopped_and_named() {
    let limit = |spec: &mut LaunchSpec| spec.fence.usage.memory_bytes = Some(64 * MEGABYTE);
    stopped_for(Resource::Memory, &["eat-memory"], limit).await;
}

#[tokio::test]
async fn a_busy_loop_is_stopped_and_named() {
    let limit = |spec: &mut LaunchSpec| spec.fence.usage.cpu_ms = Some(300);
    stopped_for(Resource::Cpu, &["spin"], limit).await;
}

#[tokio::test]
async fn time_of_many_short_children_counts_too() {
    let limit = |spec: &mut LaunchSpec| spec.fence.usage.cpu_ms = Some(300);
    stopped_for(Resource::Cpu, &["spin-in-children"], limit).await;
}

#[tokio::test]
async fn a_fork_bomb_is_stopped_and_named() {
    let limit = |spec: &mut LaunchSpec| spec.fence.usage.processes = Some(20);
    stopped_for(Resource::Processes, &["fork-bomb"], limit).await;
}

#[tokio::test]
async fn threads_count_like_processes() {
    let limit = |spec: &mut LaunchSpec| spec.fence.usage.processes = Some(20);
    stopped_for(Resource::Processes, &["threads"], limit).await;
}

#[tokio::test]
async fn a_program_that_fills_its_folders_is_stopped_and_named() {
    let limit = |spec: &mut LaunchSpec| spec.fence.usage.disk_bytes = Some(4 * MEGABYTE);
    stopped_for(Resource::Disk, &["fill", "HOME"], limit).await;
}

#[tokio::test]
async fn a_single_file_that_grows_too_large_is_named_too() {
    let bench = Bench::new();
    for level in [SandboxLevel::Basic, SandboxLevel::Standard] {
        let mut spec = bench.fenced(level, &["fill-one", "HOME"]);
        spec.args[1] = spec.private_dirs[0].display().to_string();
        spec.fence.usage.disk_bytes = Some(4 * MEGABYTE);
        let launched = bench.launch(spec).await;
        assert_eq!(ended(launched.exited()).await.how, ExitHow::Limit(Resource::Disk), "{level}");
    }
}

#[tokio::test]
async fn a_flood_of_output_is_stopped_and_named() {
    let bench = Bench::new();
    let launched = bench.launch(bench.fenced(SandboxLevel::Standard, &["flood"])).await;
    let began = std::time::Instant::now();
    assert_eq!(ended(launched.exited()).await.how, ExitHow::Limit(Resource::Log));
    assert!(began.elapsed() > Duration::from_secs(8), "a burst is not a flood");
}

#[tokio::test]
async fn a_program_within_its_limits_is_left_alone() {
    let bench = Bench::new();
    for level in [SandboxLevel::Basic, SandboxLevel::Standard] {
        let mut spec = bench.fenced(level, &["spin-a-little"]);
        let usage = &mut spec.fence.usage;
        usage.memory_bytes = Some(512 * MEGABYTE);
        usage.cpu_ms = Some(60_000);
        usage.processes = Some(50);
        usage.open_files = Some(64);
        usage.disk_bytes = Some(512 * MEGABYTE);
        let launched = bench.launch(spec).await;
        assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(0), "{level}");
    }
}

#[tokio::test]
async fn the_kernel_keeps_open_files_and_file_sizes() {
    let bench = Bench::new();
    for level in [SandboxLevel::Basic, SandboxLevel::Standard] {
        let mut spec = bench.fenced(level, &["attempt", "read:/proc/self/limits"]);
        spec.fence.usage.open_files = Some(64);
        spec.fence.usage.disk_bytes = Some(4 * MEGABYTE);
        let said = bench.said(spec).await;
        let soft_and_hard = |name: &str| {
            let line = said.iter().find_map(|line| line.strip_prefix(name)).expect("is told");
            line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(soft_and_hard("Max open files"), "64 64", "{level}");
        assert_eq!(soft_and_hard("Max file size"), "4194304 4194304", "{level}");
        assert_eq!(soft_and_hard("Max core file size"), "0 0", "{level}");
    }
}

#[tokio::test]
async fn how_limits_are_kept_is_told() {
    let bench = Bench::new();
    let mut spec = bench.fenced(SandboxLevel::Basic, &["exit", "0"]);
    spec.fence.usage.memory_bytes = Some(512 * MEGABYTE);
    spec.fence.usage.disk_bytes = Some(512 * MEGABYTE);
    let launched = bench.launch(spec).await;
    let FenceReport { notes, limits, .. } = launched.fence();
    let names: Vec<&str> = limits.keys().copied().collect();
    assert_eq!(names, ["disk_bytes", "memory_bytes"]);
    assert_eq!(limits["disk_bytes"], Keeping::Measured);
    assert_ne!(limits["memory_bytes"], Keeping::Unkept);
    assert!(notes.iter().any(|note| note.contains("can hide")), "{notes:?}");
    ended(launched.exited()).await;
    let machine = bench.launcher.probe().await;
    assert_eq!(machine.limits.len(), 6, "{machine:?}");
    assert_eq!(machine.limits["open_files"], Keeping::Kernel);
}
