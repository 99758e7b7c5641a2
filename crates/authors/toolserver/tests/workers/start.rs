//! Getting ready: what a server says when a handler cannot be served.

use serde_json::json;
use std::sync::Arc;
use tempfile::TempDir;
use wharf_toolserver::worker::{ExecHandler, PythonHandler, WorkerSettings};

use crate::kit::Tool;

async fn refusal(text: &str, cold: bool) -> String {
    let tool = Tool::python_with(text, cold, WorkerSettings::default());
    tool.prepare().await.expect_err("not ready").to_string()
}

#[tokio::test]
async fn t015_a_handler_that_cannot_be_imported_is_told_in_one_sentence() {
    let cases = [
        (
            "import json\nimport no_such_module\n",
            "ERR_HANDLER: The handler cannot be imported: ModuleNotFoundError: No module named 'no_such_module' in handler.py, line 2.",
        ),
        (
            "def entry(p):\n    return {\n",
            "ERR_HANDLER: The handler cannot be read: SyntaxError in handler.py, line 2: '{' was never closed.",
        ),
        (
            "x = 1\ndef helper():\n    raise ValueError('/srv/secret')\nhelper()\n",
            "ERR_HANDLER: The handler cannot be imported: ValueError in handler.py, line 3.",
        ),
        (
            "import sys\nsys.exit(3)\n",
            "ERR_HANDLER: The handler cannot be imported: SystemExit in handler.py, line 2.",
        ),
        (
            "value = 1\n",
            "ERR_HANDLER: The handler file handler.py has no function `entry` and no function under `@tool`.",
        ),
        (
            "import os\nos._exit(1)\n",
            "ERR_WORKER: The interpreter ended while it imported the handler.",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(text, false).await, expected);
        assert_eq!(refusal(text, true).await, expected, "cold");
    }
}

#[tokio::test]
async fn t015_a_missing_file_and_a_missing_interpreter_are_told() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("absent.py");
    let tool = Tool::of_file(folder, file.clone(), false, WorkerSettings::default());
    let failure = tool.prepare().await.expect_err("not ready");
    assert_eq!(failure.message, "The handler file absent.py does not exist.");
    let handler = PythonHandler::new(file, "no-such-python", false, WorkerSettings::default());
    let tool = Tool::of(TempDir::new().expect("a folder"), Arc::new(handler.expect("a handler")));
    let failure = tool.prepare().await.expect_err("not ready");
    let expected = "The Python interpreter `no-such-python` cannot be started: entity not found.";
    assert_eq!(failure.message, expected);
}

#[tokio::test]
async fn t015_a_slow_import_is_given_up() {
    let settings = WorkerSettings {
        start_timeout: std::time::Duration::from_millis(300),
        ..WorkerSettings::default()
    };
    let tool = Tool::python_with("import time\ntime.sleep(600)\n", false, settings);
    let failure = tool.prepare().await.expect_err("not ready");
    assert_eq!(failure.message, "The handler was not ready within 0 seconds.");
}

#[tokio::test]
async fn t015_cold_runs_import_in_each_process() {
    let text = "import os, threading\nIMPORTED = os.getpid()\nthreading.Thread(target=lambda: None).start()\ndef entry(p):\n    return {'own': IMPORTED == os.getpid(), 'cost_micro': 0}\n";
    let tool = Tool::python_with(text, true, WorkerSettings::default());
    tool.prepare().await.expect("ready");
    assert_eq!(tool.run(json!({})).await.outputs(), json!({"own": true}));
    assert_eq!(tool.run(json!({})).await.outputs(), json!({"own": true}));
    let warm = Tool::python_with(text, false, WorkerSettings::default());
    assert_eq!(warm.run(json!({})).await.outputs(), json!({"own": false}));
}

#[tokio::test]
async fn one_of_several_tools_of_a_file_is_named_by_the_environment() {
    let text = "from wharf_sdk import tool\n@tool\ndef one(n: int): return {'one': n}\n\
                @tool\ndef two(n: int): return {'two': n}\n";
    let tool = |name: Option<&str>, cold| {
        let environment = name.map(|name| ("WHARF_FUNCTION".into(), name.into()));
        let environment = environment.into_iter().collect();
        Tool::python_with(text, cold, WorkerSettings { environment, ..WorkerSettings::default() })
    };
    for cold in [false, true] {
        let two = tool(Some("two"), cold);
        assert_eq!(two.run(json!({"n": 2})).await.outputs(), json!({"two": 2}));
        let failure = tool(Some("three"), cold).prepare().await.expect_err("no such function");
        let expected = "The handler file handler.py has no function `three` under `@tool`. It has \
                        `one`, `two`.";
        assert_eq!(failure.message, expected);
        let failure = tool(None, cold).prepare().await.expect_err("none is named");
        let expected = "The handler file handler.py has several tools; name the one to serve. It \
                        has `one`, `two`.";
        assert_eq!(failure.message, expected);
    }
}

#[tokio::test]
async fn t015_a_program_that_is_missing_is_told() {
    let folder = TempDir::new().expect("a folder");
    let handler = ExecHandler::new(["./absent"], folder.path(), WorkerSettings::default());
    let failure = Tool::of(folder, Arc::new(handler)).prepare().await.expect_err("not ready");
    let expected = "The program `./absent` of the tool is not there, or cannot be run.";
    assert_eq!(failure.message, expected);
}
