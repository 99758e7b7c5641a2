//! Runs that are called off, and runs whose future is dropped.

use std::time::Duration;

use serde_json::json;
use wharf_toolserver::worker::WorkerSettings;

use crate::kit::{Tool, until_gone};

fn quick() -> WorkerSettings {
    WorkerSettings { cancel_grace: Duration::from_millis(400), ..WorkerSettings::default() }
}

#[tokio::test]
async fn t019_a_handler_that_watches_ctrl_ends_by_itself_and_keeps_its_cost() {
    let tool = Tool::python(
        r#"
def entry(payload, emit, ctrl):
    assert not ctrl.wait(0.01)
    print("waiting")
    while not ctrl.is_set():
        ctrl.wait(0.5)
    return {"partly": True, "cost_micro": 11}
"#,
    );
    let mut running = tool.start(&json!({}), &json!({}));
    running.line("waiting").await;
    running.cancel.cancel();
    let outcome = running.end().await;
    assert_eq!(outcome.failure().code, "ERR_CANCELED");
    assert_eq!(outcome.done.cost, Some(json!(11)));
}

#[tokio::test]
async fn t019_an_asynchronous_handler_is_canceled_where_it_waits() {
    let tool = Tool::python(
        r#"
import asyncio
async def entry(p):
    print("waiting")
    try:
        await asyncio.sleep(600)
    finally:
        print("cleaned up")
"#,
    );
    let mut running = tool.start(&json!({}), &json!({}));
    running.line("waiting").await;
    running.cancel.cancel();
    let outcome = running.end().await;
    assert_eq!(outcome.failure().code, "ERR_CANCELED");
    assert_eq!(outcome.lines(), ["cleaned up"]);
}

#[tokio::test]
async fn t019_a_generator_is_closed_between_its_steps() {
    let tool = Tool::python(
        "import time\ndef entry(p):\n    try:\n        print('waiting')\n        while True:\n            time.sleep(0.01)\n            yield {'n': 1}\n    finally:\n        print('closed')\n",
    );
    let mut running = tool.start(&json!({}), &json!({}));
    running.line("waiting").await;
    running.cancel.cancel();
    let outcome = running.end().await;
    assert_eq!(outcome.failure().code, "ERR_CANCELED");
    assert_eq!(outcome.lines(), ["closed"]);
}

#[tokio::test]
async fn t019_after_the_grace_a_signal_asks_and_the_handler_may_clean_up() {
    let text = r#"
import signal, sys
def stop(*_):
    print("asked")
    sys.exit(0)
def entry(p):
    signal.signal(signal.SIGTERM, stop)
    print("waiting")
    while True: signal.pause()
"#;
    let tool = Tool::python_with(text, false, quick());
    let mut running = tool.start(&json!({}), &json!({}));
    running.line("waiting").await;
    running.cancel.cancel();
    let outcome = running.end().await;
    assert_eq!(outcome.failure().code, "ERR_CANCELED");
    assert_eq!(outcome.lines(), ["asked"]);
}

#[tokio::test]
async fn t019_who_ignores_the_signal_is_killed_with_all_it_started() {
    let text = r#"
import os, signal, subprocess
def entry(p):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    near = subprocess.Popen(["sleep", "600"])
    far = subprocess.Popen(["sleep", "600"], start_new_session=True)
    print("pids", os.getpid(), near.pid, far.pid)
    while True: signal.pause()
"#;
    let tool = Tool::python_with(text, false, quick());
    let mut running = tool.start(&json!({}), &json!({}));
    let pids = running.pids("pids").await;
    running.cancel.cancel();
    assert_eq!(running.end().await.failure().code, "ERR_CANCELED");
    until_gone(&pids).await;
}

#[tokio::test]
async fn t020_a_run_whose_future_is_dropped_leaves_nothing() {
    let tool = Tool::python(
        r#"
import os, signal, subprocess
def entry(p):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    far = subprocess.Popen(["sleep", "600"], start_new_session=True)
    print("pids", os.getpid(), far.pid)
    while True: pass
"#,
    );
    let mut running = tool.start(&json!({}), &json!({}));
    let pids = running.pids("pids").await;
    running.task.abort();
    until_gone(&pids).await;
}
