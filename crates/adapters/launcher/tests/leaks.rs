//! Many launches leave the core as they found it. This test is alone in its process, because it
//! counts what the process holds.

#[path = "launches/support/mod.rs"]
#[expect(dead_code, reason = "this test uses a part of it")]
mod support;

use std::fs;

use futures::StreamExt;
use futures::stream;
use support::{Bench, DEADLINE, ended, eventually, pids, stat};
use tokio::time::timeout;

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("a list").count()
}

fn children() -> Vec<i32> {
    let parent = std::process::id().to_string();
    let is_child = |pid: &i32| stat(*pid).is_some_and(|fields| fields[1] == parent);
    pids().into_iter().filter(is_child).collect()
}

/// Every zombie among the children of this process.
fn zombies() -> Vec<i32> {
    let is_one = |pid: &i32| stat(*pid).is_some_and(|fields| fields[0] == "Z");
    children().into_iter().filter(is_one).collect()
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("a list").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_launches_leak_no_descriptor_no_zombie_and_no_thread() {
    let bench = Bench::new();
    let launch = async |number: usize| {
        let mut spec = bench.spec(&["say", "hello"]);
        if number.is_multiple_of(10) {
            spec.program = "/no/such/program".into();
            bench.try_launch(spec).await.expect_err("cannot start");
        } else if number.is_multiple_of(7) {
            spec.args = vec!["stubborn".to_owned()];
            ended(bench.launch(spec).await.kill()).await;
        } else {
            ended(bench.launch(spec).await.exited()).await;
        }
    };
    // The first ones open what stays open, such as the runtime's own descriptors.
    stream::iter(0..20).for_each_concurrent(8, launch).await;
    let (descriptors_before, threads_before) = (descriptors(), threads());
    let many = stream::iter(0..200).for_each_concurrent(8, launch);
    timeout(4 * DEADLINE, many).await.expect("in time");
    eventually("descriptors are as before", || descriptors() <= descriptors_before).await;
    // The runtime keeps some threads for the disk; their number has a limit of its own.
    assert!(threads() <= threads_before + 16, "{} of {threads_before}", threads());
    assert_eq!(zombies(), [] as [i32; 0]);
    // A shim that was made ahead of the next start goes with the launcher.
    drop(bench);
    eventually("no child is left", || children().is_empty()).await;
}
