//! What a run may use and give, and what becomes of values that cannot be sent.

use serde_json::json;
use wharf_toolserver::worker::WorkerSettings;

use crate::kit::{Tool, until_gone};

/// Values that JSON has not, by name.
const VALUES: &str = r#"
import decimal, sys
loop = []
loop.append(loop)
deep = 1
for _ in range(5000): deep = [deep]
VALUES = {
    "nan": float("nan"), "infinite": [1, {"x": float("inf")}], "bytes": b"raw", "nested": {"b": b"raw"},
    "object": object(), "decimal": decimal.Decimal(1), "loop": loop, "deep": deep, "set": {1},
    "huge": 2**64, "surrogate": "\ud800", "key": {(1, 2): 3},
}
def entry(payload, emit, ctrl):
    what = payload["inputs"]["what"]
    if payload["inputs"].get("emit"):
        emit({"kind": "Response", "outputs": {"good": 1, "bad-" + what: VALUES[what]}})
    return {"good": 1, "bad-" + what: VALUES[what], "cost_micro": 0}
"#;

#[tokio::test]
async fn t012_values_that_json_lacks_are_errors_that_name_the_key() {
    let tool = Tool::python(VALUES);
    let names = [
        "nan",
        "infinite",
        "bytes",
        "nested",
        "object",
        "decimal",
        "loop",
        "deep",
        "set",
        "huge",
        "surrogate",
        "key",
    ];
    for what in names {
        for emit in [false, true] {
            let failure = tool.run(json!({"what": what, "emit": emit})).await.failure().clone();
            assert_eq!(failure.code, "ERR_HANDLER", "{what}: {failure}");
            assert!(failure.message.contains(&format!("`bad-{what}`")), "{what}: {failure}");
        }
    }
}

#[tokio::test]
async fn t012_a_result_of_a_gibibyte_is_refused_without_eating_memory() {
    let tool =
        Tool::python("def entry(p):\n    return {'text': 'x' * (1 << 30), 'cost_micro': 1}\n");
    let before = peak();
    let outcome = tool.run(json!({})).await;
    assert_eq!(outcome.failure().code, "ERR_LIMIT");
    assert!(outcome.failure().message.contains("`text`"), "{}", outcome.failure());
    let grown = peak().saturating_sub(before);
    assert!(grown < 64 << 10, "the server grew by {grown} KiB");
}

/// The most memory this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("own status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[tokio::test]
async fn t020_a_program_that_floods_the_channel_is_ended_without_eating_memory() {
    let text = r#"
import os
os.read(3, 65536)
piece = b"x" * 65536
try:
    while True: os.write(3, piece)
except OSError:
    pass
"#;
    let settings = WorkerSettings { line_bytes_max: 1 << 20, ..WorkerSettings::default() };
    let outcome = Tool::program(text, settings).run(json!({})).await;
    let expected = "ERR_LIMIT: The worker sent a message of more than 1048576 bytes.";
    assert_eq!(outcome.failure().to_string(), expected);
}

#[tokio::test]
async fn t020_too_much_memory_ends_the_run_also_when_children_use_it() {
    let text = r#"
import os, signal
def entry(p):
    if p["inputs"].get("child") and os.fork() != 0:
        os.wait()
    kept = [bytearray(b"x" * (1 << 20)) for _ in range(2000)]
    signal.pause()
"#;
    let settings =
        WorkerSettings { memory_bytes_max: Some(128 << 20), ..WorkerSettings::default() };
    let tool = Tool::python_with(text, false, settings);
    for inputs in [json!({}), json!({"child": true})] {
        let failure = tool.run(inputs).await.failure().clone();
        assert_eq!(failure.to_string(), "ERR_LIMIT: The run used more than 128 MiB of memory.");
    }
}

#[tokio::test]
async fn t020_memory_that_is_only_mapped_does_not_count() {
    let text = r#"
import mmap, time
def entry(p):
    reserved = mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    time.sleep(0.4)
    return {"ok": len(reserved) >> 30, "cost_micro": 0}
"#;
    let settings =
        WorkerSettings { memory_bytes_max: Some(128 << 20), ..WorkerSettings::default() };
    let outcome = Tool::python_with(text, false, settings).run(json!({})).await;
    assert_eq!(outcome.outputs(), json!({"ok": 4}));
}

#[tokio::test]
async fn t020_printed_floods_are_cut_with_one_notice() {
    let text = r#"
import sys
def entry(p):
    for n in range(50_000): print("line", n)
    print("x" * 1_000_000)
    sys.stderr.write("last\n")
    return {"ok": 1, "cost_micro": 0}
"#;
    let settings = WorkerSettings {
        log_lines_burst: 100,
        log_lines_per_second: 0,
        ..WorkerSettings::default()
    };
    let outcome = Tool::python_with(text, false, settings).run(json!({})).await;
    assert_eq!(outcome.outputs(), json!({"ok": 1}));
    let lines = outcome.lines();
    let notices = lines.iter().filter(|line| line.contains("left out")).count();
    assert_eq!((lines.len(), notices), (101, 1));
}

#[tokio::test]
async fn t020_a_printed_line_that_is_too_long_is_cut_and_bad_text_is_mended() {
    let text = "import os\ndef entry(p):\n    os.write(1, b'y' * 100_000 + b'\\n\\xff!\\n')\n    return {'ok': 1, 'cost_micro': 0}\n";
    let outcome = Tool::python(text).run(json!({})).await;
    let lines = outcome.lines();
    assert_eq!(lines[0], format!("{} … (cut)", "y".repeat(8 << 10)));
    assert_eq!(lines[1], "\u{fffd}!");
}

#[tokio::test]
async fn t044_workers_see_only_what_they_are_given_of_the_environment() {
    let text = "import os\ndef entry(p):\n    return {'names': sorted(os.environ), 'said': os.environ['SAID'], 'cost_micro': 0}\n";
    let settings = WorkerSettings {
        environment: vec![("SAID".into(), "yes".into())],
        ..WorkerSettings::default()
    };
    let outputs = Tool::python_with(text, false, settings).run(json!({})).await.outputs();
    assert_eq!(outputs["said"], "yes");
    // Interpreters may set some by themselves, so the test looks for what only the server has.
    let names = outputs["names"].as_array().expect("names");
    let secret = "CARGO_MANIFEST_DIR";
    assert!(std::env::var_os(secret).is_some(), "the server has it");
    assert!(
        !names.iter().any(|name| name.as_str().expect("text").starts_with("CARGO")),
        "{names:?}"
    );
}

#[tokio::test]
async fn t015_a_worker_holds_no_descriptor_that_is_not_its_own() {
    let text = r#"
import os, subprocess
def entry(p):
    own = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    child = subprocess.run(["ls", "/proc/self/fd"], capture_output=True, text=True).stdout.split()
    kinds = [os.readlink("/proc/self/fd/%d" % n).split(":")[0] for n in own if os.path.exists("/proc/self/fd/%d" % n)]
    return {"count": len(own), "child": child, "sockets": kinds.count("socket"), "cost_micro": 0}
"#;
    let tool = Tool::python(text);
    let held = tool.start(&json!({}), &json!({}));
    let outputs = tool.run(json!({})).await.outputs();
    held.end().await.outputs();
    // Input, output, errors, the channel, and the folder that is being listed.
    assert_eq!(outputs["count"], 5, "{outputs}");
    assert_eq!(outputs["child"], json!(["0", "1", "2", "3"]));
}

#[tokio::test]
async fn t015_many_runs_go_side_by_side() {
    let tool = Tool::python(
        "import os, time\ndef entry(p):\n    time.sleep(0.2)\n    return {'pid': os.getpid(), 'cost_micro': 0}\n",
    );
    let runs = (0..32).map(|_| tool.run(json!({})));
    let outcomes = futures::future::join_all(runs).await;
    let mut pids: Vec<i32> = outcomes
        .iter()
        .map(|outcome| {
            i32::try_from(outcome.outputs()["pid"].as_i64().expect("an id")).expect("an id")
        })
        .collect();
    until_gone(&pids).await;
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 32);
}
