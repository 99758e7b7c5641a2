//! Any program as a handler: the lines over descriptor 3, spoken by a few lines of another language.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use wharf_toolserver::Report;
use wharf_toolserver::worker::{ExecHandler, WorkerSettings};
use wharf_wire::run_v1::LogLevel;

use crate::kit::{Tool, kill, until_gone};

/// Speaks the contract with nothing but the standard library.
const SPEAKER: &str = r#"
import json, os, signal, subprocess, sys
lines = os.fdopen(3, "r+b", buffering=0)
def say(**message): lines.write(json.dumps(message).encode() + b"\n")
def hear():
    line = b""
    while not line.endswith(b"\n"): line += lines.read(1)
    return json.loads(line)
start = hear()
payload = start["payload"]
how = payload["inputs"].get("how")
"#;

fn speaker(rest: &str, settings: WorkerSettings) -> Tool {
    Tool::program(&format!("{SPEAKER}{rest}"), settings)
}

#[tokio::test]
async fn t015_a_program_speaks_the_contract() {
    let tool = speaker(
        r#"
print("printed")
say(kind="emit", frame={"kind": "Event", "data": {"phase": "started"}})
say(kind="something-newer", x=1)
say(kind="done", result={"payload": payload, "fds": sorted(os.listdir("/proc/self/fd")), "sid": os.getsid(0) == os.getpid()}, cost=4)
"#,
        WorkerSettings::default(),
    );
    tool.prepare().await.expect("ready");
    let outcome = tool.run(json!({"n": 1})).await;
    let payload =
        json!({"run_id": "run-1", "mode": "real", "inputs": {"n": 1}, "outputs": {}, "attempt": 1});
    let fds = json!(["0", "1", "2", "3", "4"]);
    assert_eq!(outcome.outputs(), json!({"payload": payload, "fds": fds, "sid": true}));
    assert_eq!(outcome.done.cost, Some(json!(4)));
    assert_eq!(outcome.lines(), ["printed"]);
    assert!(tool.handler.digest().starts_with("b3:"));
}

#[tokio::test]
async fn t015_a_program_that_asks_for_much_at_once_gets_every_answer() {
    let tool = speaker(
        r#"
asked = [json.dumps({"kind": "fetch", "id": n, "key": "none"}).encode() + b"\n" for n in range(200)]
lines.write(b"".join(asked))
heard = [hear() for _ in asked]
say(kind="done", result={"ids": sorted(answer["id"] for answer in heard), "kinds": sorted({answer["kind"] for answer in heard})})
"#,
        WorkerSettings::default(),
    );
    let outcome = tool.run(json!({})).await;
    let ids: Vec<u64> = (0..200).collect();
    assert_eq!(outcome.outputs(), json!({"ids": ids, "kinds": ["refused"]}));
}

#[tokio::test]
async fn t010_a_program_may_fail_in_every_way() {
    let tool = speaker(
        r#"
if how == "failed": say(kind="failed", code="ERR_MINE", message="It is mine.", cost=2)
if how == "status": sys.exit(9)
if how == "killed": os.kill(os.getpid(), signal.SIGKILL)
if how == "nonsense": lines.write(b"hello\n"); signal.pause()
if how == "keeper": os.kill(os.getppid(), signal.SIGKILL); signal.pause()
"#,
        WorkerSettings::default(),
    );
    let cases = [
        ("failed", "ERR_MINE: It is mine."),
        ("status", "ERR_WORKER: The worker ended with status 9 and without an answer."),
        ("killed", "ERR_WORKER: The worker was killed by signal 9."),
        ("nonsense", "ERR_WORKER: The worker sent something that is no message of a worker."),
        ("keeper", "ERR_WORKER: The worker was lost."),
    ];
    for (how, expected) in cases {
        assert_eq!(tool.run(json!({"how": how})).await.failure().to_string(), expected);
    }
}

#[tokio::test]
async fn t010_a_program_that_cannot_be_started_is_noticed() {
    let folder = TempDir::new().expect("a folder");
    let handler = ExecHandler::new(["./absent"], folder.path(), WorkerSettings::default())
        .with_keeper(env!("CARGO_BIN_EXE_wharf-toolserver-keeper"));
    let tool = Tool::of(folder, std::sync::Arc::new(handler));
    let failure = tool.run(json!({})).await.failure().clone();
    assert_eq!(failure.to_string(), "ERR_WORKER: The program of the tool cannot be started.");
}

#[tokio::test]
async fn t019_a_program_is_told_then_asked_then_killed_with_all_it_started() {
    let settings =
        WorkerSettings { cancel_grace: Duration::from_millis(400), ..WorkerSettings::default() };
    let tool = speaker(
        r#"
signal.signal(signal.SIGTERM, lambda *_: print("asked"))
far = subprocess.Popen(["sleep", "600"], start_new_session=True)
print("pids", os.getppid(), os.getpid(), far.pid)
print("told", hear()["kind"])
while True: signal.pause()
"#,
        settings,
    );
    let mut running = tool.start(&json!({}), &json!({}));
    let pids = {
        let line = running.line("pids").await;
        line.split_whitespace().map(|pid| pid.parse().expect("an id")).collect::<Vec<i32>>()
    };
    running.cancel.cancel();
    assert_eq!(running.line("told").await.trim(), "cancel");
    running.line("asked").await;
    assert_eq!(running.end().await.failure().code, "ERR_CANCELED");
    until_gone(&pids).await;
}

#[tokio::test]
async fn t020_a_program_whose_run_is_dropped_leaves_nothing() {
    let tool = speaker(
        r#"
far = subprocess.Popen(["sleep", "600"], start_new_session=True)
print("pids", os.getppid(), os.getpid(), far.pid, flush=True)
while True: signal.pause()
"#,
        WorkerSettings::default(),
    );
    let mut running = tool.start(&json!({}), &json!({}));
    let pids = running.pids("pids").await;
    running.task.abort();
    until_gone(&pids).await;
}

#[tokio::test]
async fn t020_a_program_dies_with_its_keeper() {
    let tool = speaker(
        "print('pids', os.getppid(), os.getpid(), flush=True)\nsignal.pause()\n",
        WorkerSettings::default(),
    );
    let mut running = tool.start(&json!({}), &json!({}));
    let pids = running.pids("pids").await;
    kill(pids[0]);
    assert_eq!(running.end().await.failure().code, "ERR_WORKER");
    until_gone(&pids).await;
}

#[tokio::test]
async fn t015_a_few_lines_of_shell_are_a_handler() {
    let folder = TempDir::new().expect("a folder");
    let script = "read -r start <&3\necho working\n\
                  echo '{\"kind\":\"done\",\"result\":{\"answer\":42},\"cost\":0}' >&3\n";
    std::fs::write(folder.path().join("tool.sh"), script).expect("a script");
    let handler = ExecHandler::new(["sh", "tool.sh"], folder.path(), WorkerSettings::default())
        .with_keeper(env!("CARGO_BIN_EXE_wharf-toolserver-keeper"));
    let outcome = Tool::of(folder, std::sync::Arc::new(handler)).run(json!({})).await;
    assert_eq!(outcome.outputs(), json!({"answer": 42}));
    assert_eq!(outcome.lines(), ["working"]);
}

#[tokio::test]
async fn t011_a_program_says_what_it_has_cost_so_far() {
    let tool = Tool::program(
        r#"
import os, socket
channel = socket.socket(fileno=3)
lines = channel.makefile("rw", encoding="utf-8")
lines.readline()
for line in (
    '{"kind":"cost","cost":250}',
    '{"kind":"cost","cost":-1}',
    '{"kind":"emit","frame":{"kind":"Log","control":{"cost_micro":400},"data":{"msg":"paid"}}}',
):
    lines.write(line + "\n")
lines.flush()
os.kill(os.getpid(), 9)
"#,
        WorkerSettings::default(),
    );
    let running = tool.start(&json!({}), &json!({}));
    let spent = running.spent.clone();
    let outcome = running.end().await;
    assert_eq!(outcome.failure().code, "ERR_WORKER");
    assert_eq!(*spent.borrow(), 400, "what was said before it died");
    let warned = |report: &Report| matches!(report, Report::Log { level: LogLevel::Warn, text, .. } if text.contains("negative"));
    assert!(outcome.reports.iter().any(warned), "{:?}", outcome.reports);
}

#[tokio::test]
async fn t016_a_program_that_reports_an_error_as_its_result_has_failed() {
    let tool = Tool::program(
        r#"
import socket
channel = socket.socket(fileno=3)
lines = channel.makefile("rw", encoding="utf-8")
lines.readline()
result = '{"status":"error","execution_id":"x","meta":{},"error":{"code":"ERR_X","message":"No."}}'
lines.write('{"kind":"done","result":%s,"cost":9}\n' % result)
lines.flush()
"#,
        WorkerSettings::default(),
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(outcome.failure().code, "ERR_X");
    assert_eq!(outcome.done.cost, Some(json!(9)));
}
