//! Nothing is left behind: processes, descriptors, folders.

use std::path::Path;

use serde_json::json;

use crate::kit::{Tool, until, until_gone};

/// A process that leaves its session and its parent, as servers in the background do.
const DAEMON: &str = r#"
import os, sys, time
def daemon():
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, b"%d" % os.getpid())
            os.closerange(0, 64)
            time.sleep(600)
        os._exit(0)
    os.wait()
    return os.read(read, 32).decode()
def entry(p):
    print("daemon", daemon())
    return {"ok": 1, "cost_micro": 0}
"#;

#[tokio::test]
async fn t015_grandchildren_that_left_their_session_end_with_the_run() {
    let tool = Tool::python(DAEMON);
    let mut running = tool.start(&json!({}), &json!({}));
    let pids = running.pids("daemon").await;
    assert_eq!(running.end().await.outputs(), json!({"ok": 1}));
    assert!(!crate::kit::is_alive(pids[0]), "it is gone when the run is over");
}

#[tokio::test]
async fn t020_when_the_handler_is_dropped_its_parent_ends() {
    let tool = Tool::python(
        "import os\nPARENT = os.getpid()\ndef entry(p):\n    return {'pid': PARENT}\n",
    );
    let pid = tool.run(json!({})).await.outputs()["pid"].as_i64().expect("an id");
    drop(tool);
    until_gone(&[i32::try_from(pid).expect("an id")]).await;
}

/// Runs alone in its process, so that nobody else opens descriptors while it counts.
#[test]
fn t021_two_hundred_runs_leave_descriptors_and_processes_flat() {
    const ALONE: &str = "WHARF_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let own = std::env::current_exe().expect("own program");
        let name = "leftovers::t021_two_hundred_runs_leave_descriptors_and_processes_flat";
        let done = std::process::Command::new(own)
            .args([name, "--exact", "--nocapture"])
            .env(ALONE, "1")
            .status()
            .expect("the same test alone");
        assert!(done.success());
        return;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(two_hundred_runs());
}

async fn two_hundred_runs() {
    let tool =
        Tool::python("def entry(p):\n    print('line')\n    return {'ok': 1, 'cost_micro': 0}\n");
    tool.prepare().await.expect("ready");
    tool.run(json!({})).await.outputs();
    let descriptors = || Path::new("/proc/self/fd").read_dir().expect("descriptors").count();
    let parent = children(std::process::id()).first().copied().expect("a parent");
    let before = descriptors();
    for _ in 0..50 {
        let runs = (0..4).map(|_| tool.run(json!({})));
        for outcome in futures::future::join_all(runs).await {
            assert_eq!(outcome.outputs(), json!({"ok": 1}));
        }
    }
    until("descriptors are as before", || descriptors() == before).await;
    assert_eq!(children(std::process::id()), [parent]);
    let keepers = children(parent);
    assert!(keepers.len() <= 8, "keepers are used again: {}", keepers.len());
    until("no worker is left", || keepers.iter().all(|keeper| children(*keeper).is_empty())).await;
    let held = |pid: &u32| Path::new("/proc").join(pid.to_string()).join("fd").read_dir();
    let most = keepers.iter().map(|keeper| held(keeper).expect("descriptors").count()).max();
    assert!(most <= Some(8), "keepers hold little: {most:?}");
    let scratch = tool.folder.path().join("scratch");
    let left = || scratch.read_dir().expect("the scratch folder").count();
    until("folders of runs are removed", || left() == 0).await;
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = Path::new("/proc").join(pid.to_string()).join("task");
    let tasks = tasks.read_dir().expect("threads");
    let lists =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}
