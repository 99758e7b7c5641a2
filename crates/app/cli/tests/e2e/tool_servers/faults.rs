//! What goes wrong in a tool server, and what is said of it.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{add, handler, show};
use crate::agents::has_python;
use crate::support::{Core, Ended, TestHome, wait_for};

const TOOL: &str = "test/fault@1";

/// Does what it is told, the first time.
const HANDLER: &str = r#"
import os, time

def entry(payload, emit, ctrl):
    how = payload["inputs"]["how"] if payload["attempt"] == 1 else "well"
    emit({"kind": "Log", "data": {"msg": "it is " + how}})
    if how == "stuck":
        time.sleep(600)
    if how == "flood":
        line = "x" * 1000 + "\n"
        for _ in range(50):
            os.write(1, (line * 1000).encode())
    if how == "nan":
        return {"number": float("nan"), "cost_micro": 1}
    if how == "bytes":
        return {"data": b"\xff", "cost_micro": 1}
    if how == "exit":
        os._exit(3)
    if how == "killed":
        os.kill(os.getpid(), 9)
    if how == "raise":
        raise ValueError("a secret of the tool")
    if how == "none":
        return None
    if how == "cost":
        return {"text": "done", "cost_micro": -5}
    return {"text": "done", "attempt": payload["attempt"], "cost_micro": 5}
"#;

fn ready(side_effects: bool) -> (TestHome, Core, tempfile::TempDir) {
    let home = TestHome::new();
    let core = home.up();
    let more = format!("side_effects = {side_effects}\nmax_cost_micro = 100");
    let folder = handler(TOOL, HANDLER, &more);
    add(&home, folder.path());
    (home, core, folder)
}

/// Kills the server's process while a run is stuck in it, and gives how the run ended.
fn killed(home: &TestHome) -> Ended {
    let mut running = home.spawn(&["run", TOOL, "how=stuck"]);
    running.until_stderr("it is stuck");
    let pid = show(home, TOOL)["server"]["pid"].as_i64().expect("it runs");
    let pid = Pid::from_raw(i32::try_from(pid).expect("a number")).expect("a process");
    kill_process(pid, Signal::KILL).expect("it is there");
    running.wait()
}

#[test]
fn t042_a_run_of_a_server_that_was_killed_is_tried_again_if_it_may_be() {
    if !has_python() {
        return;
    }
    let (home, _core, _folder) = ready(false);
    let ended = killed(&home).code(0);
    let run = ended.json();
    assert_eq!(run["outputs"]["text"], "done");
    assert_eq!((&run["outputs"]["attempt"], &run["attempt"]), (&2.into(), &2.into()));
    assert!(ended.stderr.contains("tool.worker_lost"), "{ended:#?}");
}

#[test]
fn t042_a_run_that_may_have_acted_fails_and_says_how_its_server_ended() {
    if !has_python() {
        return;
    }
    let (home, _core, _folder) = ready(true);
    let ended = killed(&home).code(1);
    let error = ended.json()["error"].clone();
    assert_eq!(error["code"], "tool.worker_lost");
    let message = error["message"].as_str().expect("text");
    assert!(message.contains("signal") && message.contains('9'), "{message}");
    // The next call starts it again.
    let again = home.run(&["run", TOOL, "how=well"]).code(0);
    assert_eq!(again.json()["outputs"]["text"], "done");
}

#[test]
fn t010_t012_each_way_to_fail_has_its_code_and_hurts_one_run() {
    if !has_python() {
        return;
    }
    let (home, _core, _folder) = ready(true);
    for (how, code, message) in [
        ("nan", "tool.internal", "`number`"),
        ("bytes", "tool.internal", "`data`"),
        ("raise", "tool.internal", "ValueError"),
        ("none", "tool.internal", "nothing"),
        ("exit", "tool.worker_lost", "status 3"),
        ("killed", "tool.worker_lost", "signal 9"),
        ("cost", "tool.failed", "cost"),
    ] {
        let ended = home.run(&["run", TOOL, &format!("how={how}")]).code(1);
        let error = ended.json()["error"].clone();
        assert_eq!(error["code"], code, "{how}: {error}");
        assert!(error["message"].as_str().expect("text").contains(message), "{how}: {error}");
        assert!(!ended.stdout.contains("a secret of the tool"), "{how}: {ended:#?}");
    }
    let pid = show(&home, TOOL)["server"]["pid"].clone();
    home.run(&["run", TOOL, "how=well"]).code(0);
    assert_eq!(show(&home, TOOL)["server"]["pid"], pid, "the server never ended");
}

#[test]
fn t018_t020_a_handler_that_floods_its_output_loses_lines_and_not_its_result() {
    if !has_python() {
        return;
    }
    let (home, _core, _folder) = ready(true);
    let flood = home.run(&["run", TOOL, "how=flood", "--run-id", "flood"]).code(0);
    assert_eq!(flood.json()["outputs"]["text"], "done");
    assert!(flood.stderr.len() < 10 << 20, "{} bytes were told", flood.stderr.len());
}

#[test]
fn t019_a_canceled_run_leaves_no_process_behind() {
    if !has_python() {
        return;
    }
    let (home, _core, _folder) = ready(true);
    let mut running = home.spawn(&["run", TOOL, "how=stuck", "--run-id", "stuck"]);
    running.until_stderr("it is stuck");
    let pid = show(&home, TOOL)["server"]["pid"].as_i64().expect("it runs");
    assert_eq!(workers_of(pid).len(), 1);
    home.run(&["runs", "cancel", "stuck"]).code(0);
    running.wait().code(4);
    wait_for("the handler's process to go", || workers_of(pid).is_empty().then_some(()));
    let run: Value = home.run(&["run", TOOL, "how=well"]).code(0).json();
    assert_eq!(run["outputs"]["text"], "done");
}

/// Processes that are in the middle of a run: each is a child of its keeper, which is one of the
/// process that imported the handler, which is one of the server.
fn workers_of(server: i64) -> Vec<i64> {
    let children = |pid: i64| {
        let entries = std::fs::read_dir("/proc").expect("readable").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i64>().ok());
        pids.filter(move |child| parent_of(*child) == Some(pid)).collect::<Vec<_>>()
    };
    let keepers = children(server).into_iter().flat_map(children);
    keepers.flat_map(children).collect()
}

fn parent_of(pid: i64) -> Option<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}
