//! Every way in which a worker can end.

use serde_json::json;

use crate::kit::{Tool, kill, until_gone};

#[tokio::test]
async fn t010_an_exception_is_told_by_its_class_only() {
    let tool = Tool::python(
        "class ModelGone(Exception): pass\ndef entry(p):\n    raise ModelGone('/srv/secret token=abc')\n",
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(outcome.failure().to_string(), "ERR_HANDLER: ModelGone");
    assert_eq!(outcome.lines(), Vec::<&str>::new(), "no trace reaches the caller");
}

#[tokio::test]
async fn t014_an_exception_of_a_decorated_tool_leaves_no_trace_either() {
    let tool = Tool::python(
        "from wharf_sdk import tool\n@tool\ndef work():\n    raise ValueError('/srv/secret token=abc')\n",
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(outcome.failure().to_string(), "ERR_HANDLER: ValueError");
    let said = format!("{:?}", outcome.reports);
    assert!(!said.contains("token=abc") && !said.contains("Traceback"), "{said}");
}

#[tokio::test]
async fn t010_a_fault_passes_with_its_words() {
    let tool = Tool::python(
        "from wharf_sdk import Fault\ndef entry(p):\n    raise Fault('ERR_QUOTA', 'The quota is used up.')\n",
    );
    let failure = tool.run(json!({})).await.failure().clone();
    assert_eq!(failure.to_string(), "ERR_QUOTA: The quota is used up.");
}

#[tokio::test]
async fn t010_a_worker_that_leaves_without_an_answer_is_noticed() {
    let tool = Tool::python(
        r#"
import os, signal, sys
def entry(p):
    how = p["inputs"]["how"]
    if how == "exit": sys.exit(3)
    if how == "_exit": os._exit(4)
    if how == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if how == "abort": os.abort()
    if how == "keeper":
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    if how == "channel":
        os.closerange(3, 64)
        sys.exit(0)
"#,
    );
    let expected = [
        ("exit", "ended with status 3 and without an answer"),
        ("_exit", "ended with status 4 and without an answer"),
        ("kill", "was killed by signal 9"),
        ("abort", "was killed by signal 6"),
        ("keeper", "was lost"),
        ("channel", "ended with status 0 and without an answer"),
    ];
    for (how, text) in expected {
        let failure = tool.run(json!({"how": how})).await.failure().clone();
        assert_eq!(failure.to_string(), format!("ERR_WORKER: The worker {text}."));
    }
}

#[tokio::test]
async fn t010_a_worker_killed_from_outside_is_noticed() {
    let tool = Tool::python(
        "import os, signal\ndef entry(p):\n    print('pid', os.getpid())\n    signal.pause()\n",
    );
    let mut running = tool.start(&json!({}), &json!({}));
    kill(running.pids("pid").await[0]);
    let failure = running.end().await.failure().clone();
    assert_eq!(failure.to_string(), "ERR_WORKER: The worker was killed by signal 9.");
}

#[tokio::test]
async fn t015_a_parent_that_is_killed_fails_its_runs_and_the_next_run_works() {
    let tool = Tool::python(
        r#"
import os, signal
PARENT = os.getpid()
def entry(p):
    if p["inputs"].get("wait"):
        print("pids", PARENT, os.getppid(), os.getpid())
        signal.pause()
    return {"parent": PARENT, "cost_micro": 0}
"#,
    );
    let mut running = tool.start(&json!({"wait": true}), &json!({}));
    let pids = running.pids("pids").await;
    kill(pids[0]);
    let failure = running.end().await.failure().clone();
    assert_eq!(failure.to_string(), "ERR_WORKER: The worker was killed by signal 9.");
    until_gone(&pids).await;
    let outcome = tool.run(json!({})).await;
    assert_ne!(outcome.outputs()["parent"], pids[0]);
}

#[tokio::test]
async fn t014_an_exception_in_a_thread_leaves_no_trace() {
    let tool = Tool::python(
        r#"
import threading
def fail():
    raise ValueError("/srv/secret")
def entry(p):
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    return {"ok": 1, "cost_micro": 0}
"#,
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(outcome.outputs(), json!({"ok": 1}));
    assert_eq!(outcome.lines(), ["A thread of the handler ended by ValueError."]);
}
