//! Many runs leave nothing behind.

use serde_json::json;

use super::kit::{Stage, done, request};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("there").count()
}

fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("there");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

async fn runs(stage: &Stage, from: u32, to: u32) {
    use futures::StreamExt as _;
    futures::stream::iter(from..to)
        .for_each_concurrent(32, |n| async move {
            let heard = stage.run(&request(&format!("r{n}"), json!({"n": n}))).await;
            assert_eq!(heard.end()["outputs"], json!({"n": n}));
            assert_eq!(heard.close, Some(1000));
        })
        .await;
}

/// Set in the process that has nothing else to do.
const ALONE: &str = "WHARF_TEST_ALONE";

#[test]
fn t021_ten_thousand_runs_leave_descriptors_and_memory_flat() {
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        return runtime.expect("a runtime").block_on(measure());
    }
    // Descriptors and memory belong to a process, which other tests would use as well.
    let name = "load::t021_ten_thousand_runs_leave_descriptors_and_memory_flat";
    let alone = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .expect("started");
    assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stderr));
}

async fn measure() {
    let stage = Stage::with(
        |call, _| async move { done(serde_json::Value::Object(call.inputs)) },
        |options| options.limits.retain_bytes_max = 256 * 1024,
    )
    .await;
    runs(&stage, 0, 1_000).await;
    let (descriptors_before, memory_before) = (descriptors(), memory_kib());
    runs(&stage, 1_000, 11_000).await;
    // Sockets of the last runs may still be closing.
    let mut patience = 1_000;
    while descriptors() > descriptors_before && patience > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        patience -= 1;
    }
    assert!(descriptors() <= descriptors_before + 2, "descriptors: {}", descriptors());
    let grown = memory_kib().saturating_sub(memory_before);
    assert!(grown < 8 * 1024, "memory grew by {grown} KiB");
}
