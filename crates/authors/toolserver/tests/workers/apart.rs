//! What a run sees of another one, where runs are kept apart.

use serde_json::{Value, json};
use wharf_toolserver::Report;

use super::kit::{Running, Tool};

/// The first version of Landlock that knows signals.
const SIGNALS_SINCE: i32 = 6;

/// Keeps something to itself, or looks for what others keep.
const LOOKS: &str = r#"
import json, os, tempfile, time

def attempt(doing, *arguments):
    try:
        return doing(*arguments)
    except OSError as error:
        return type(error).__name__

def read(path):
    with open(path) as file:
        return file.read()

def memory(pid):
    with open("/proc/%d/mem" % pid, "rb") as file:
        return "open"

def write(path):
    with open(path, "w") as file:
        return "written"

def entry(payload, emit, ctrl):
    inputs = payload["inputs"]
    if "pid" not in inputs:
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write("diary")
        told = {"pid": os.getpid(), "parent": os.getppid(), "path": file.name}
        emit({"kind": "Log", "data": {"msg": json.dumps(told)}})
        while not ctrl.is_set():
            time.sleep(0.01)
        return {"cost_micro": 0}
    child = os.fork()
    if child == 0:
        time.sleep(60)
    mine = tempfile.NamedTemporaryFile("w", delete=False)
    mine.write("own")
    mine.close()
    os.rename(mine.name, mine.name + ".2")
    import wharf_sdk
    runtime = os.path.dirname(wharf_sdk.__file__)
    seen = {
        "memory": attempt(memory, inputs["pid"]),
        "parent": attempt(memory, inputs["parent"]),
        "signal": attempt(os.kill, inputs["pid"], 0),
        "file": attempt(read, inputs["path"]),
        "folder": attempt(os.listdir, os.path.dirname(os.path.dirname(inputs["path"]))),
        "runtime": attempt(write, os.path.join(runtime, "note.py")) if "wharf-python-" in runtime else "",
        "own": attempt(read, mine.name + ".2"),
        "child": attempt(memory, child),
        "around": attempt(write, os.path.join(inputs["around"], "note")),
    }
    os.kill(child, 9)
    return dict(seen, cost_micro=0)
"#;

/// The version of Landlock here; none if the test is not made.
fn landlock() -> Option<i32> {
    let probe = "import ctypes, sys; sys.exit(max(0, ctypes.CDLL(None).syscall(444, None, 0, 1)))";
    let probed = std::process::Command::new("python3").args(["-c", probe]).status();
    let version = probed.expect("python runs").code().filter(|version| *version > 0);
    if version.is_none() {
        wharf_skips::skip("this kernel has no Landlock");
    }
    version
}

/// What a run says in its log, as JSON.
async fn told(run: &mut Running) -> Value {
    loop {
        let report = run.reports.recv().await.expect("it says something");
        if let Report::Log { text, .. } = report {
            return serde_json::from_str(&text).expect("JSON");
        }
    }
}

/// What an attacker sees of a victim.
async fn seen(tool: &Tool) -> Value {
    tool.prepare().await.expect("it is ready");
    let mut victim = tool.start(&json!({}), &json!({}));
    let mut inputs = told(&mut victim).await;
    inputs["around"] = json!(tool.folder.path());
    let outcome = tool.run(inputs).await;
    victim.cancel.cancel();
    victim.end().await;
    Value::Object(outcome.done.result.expect("it went well"))
}

fn check(seen: &Value, version: i32) {
    for refused in ["memory", "parent", "file", "folder"] {
        assert_eq!(seen[refused], "PermissionError", "{refused}: {seen}");
    }
    if version >= SIGNALS_SINCE {
        assert_eq!(seen["signal"], "PermissionError", "{seen}");
    }
    // What is its own, and what nobody hides, is as it was.
    assert_eq!(seen["own"], "own", "{seen}");
    assert_eq!(seen["child"], "open", "{seen}");
}

#[tokio::test]
async fn a_run_looks_into_no_other_run_of_its_handler() {
    let Some(version) = landlock() else { return };
    for cold in [false, true] {
        let seen = seen(&Tool::python_apart(LOOKS, cold)).await;
        check(&seen, version);
        assert_eq!(seen["runtime"], "PermissionError", "{seen}");
    }
}

/// The same handler behind the lines that a program speaks.
#[tokio::test]
async fn a_run_looks_into_no_other_run_of_its_program() {
    let Some(version) = landlock() else { return };
    let program = format!(
        "import sys\nsys.path.insert(0, {:?})\n{}",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../sdks/python/src"),
        [
            "import socket",
            "from wharf_sdk._worker import kernel",
            "from wharf_sdk._worker.run import work",
            // Its keeper has walled it off already.
            "kernel.keep_apart = lambda *walls: False",
            &format!("space = {{}}\nexec({LOOKS:?}, space)"),
            "sys.exit(work(socket.socket(fileno=3), lambda: space['entry']))",
        ]
        .join("\n")
    );
    check(&seen(&Tool::program_apart(&program)).await, version);
}

#[tokio::test]
async fn runs_that_are_not_kept_apart_go_on_as_before() {
    let seen = seen(&Tool::python(LOOKS)).await;
    assert_eq!(seen["file"], "diary", "{seen}");
}
