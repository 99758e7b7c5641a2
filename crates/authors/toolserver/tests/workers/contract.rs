//! The contract between a server and a handler in Python.

use serde_json::json;
use tempfile::TempDir;
use wharf_toolserver::Report;
use wharf_toolserver::worker::WorkerSettings;
use wharf_wire::run_v1::{LogLevel, Phase};

use crate::kit::{PATIENCE, Tool, write};

#[tokio::test]
async fn t016_a_full_response_is_accepted_and_the_payload_is_whole() {
    let tool = Tool::python(
        r#"
def entry(payload, emit=None, ctrl=None):
    seen = {key: payload[key] for key in ("run_id", "mode", "inputs", "outputs")}
    return {
        "kind": "Response",
        "control": {"run_id": payload["run_id"], "status": "success", "cost_micro": 42, "final": False},
        "outputs": {"seen": seen, "canceled": ctrl.is_set()},
    }
"#,
    );
    let outcome = tool.run(json!({"text": "grüße", "n": 1.5})).await;
    let seen = json!({"run_id": "run-1", "mode": "real", "inputs": {"text": "grüße", "n": 1.5}, "outputs": {}});
    assert_eq!(outcome.outputs(), json!({"seen": seen, "canceled": false}));
    assert_eq!(outcome.done.cost, Some(json!(42)));
}

#[tokio::test]
async fn t016_the_envelope_is_accepted() {
    let tool = Tool::python(
        "def entry(payload, emit, ctrl):\n    return {'status': 'success', 'cost_micro': 3, 'outputs': {'a': [1]}}\n",
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(outcome.outputs(), json!({"a": [1]}));
    assert_eq!(outcome.done.cost, Some(json!(3)));
}

#[tokio::test]
async fn t016_the_short_form_is_accepted() {
    let tool = Tool::python(
        "def entry(payload):\n    return {'text': 'x', 'status': 'open', 'outputs': 7, 'cost_micro': 9}\n",
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(outcome.outputs(), json!({"text": "x", "status": "open", "outputs": 7}));
    assert_eq!(outcome.done.cost, Some(json!(9)));
}

#[tokio::test]
async fn t016_handlers_take_as_many_arguments_as_they_like() {
    for signature in [
        "p",
        "p, emit",
        "p, ctrl",
        "p, *, ctrl",
        "p, *rest",
        "p, **rest",
        "a, b, c",
        "p, /, emit=None",
    ] {
        let text = format!("def entry({signature}):\n    return {{'ok': True, 'cost_micro': 0}}\n");
        let outcome = Tool::python(&text).run(json!({})).await;
        assert_eq!(outcome.outputs(), json!({"ok": true}), "{signature}");
    }
}

#[tokio::test]
async fn t016_nothing_and_anything_else_are_errors_of_the_handler() {
    let tool = Tool::python(
        "def entry(p):\n    return {'none': None, 'list': [1], 'text': 'x', 'seven': 7}[p['inputs']['what']]\n",
    );
    for what in ["none", "list", "text", "seven"] {
        let outcome = tool.run(json!({"what": what})).await;
        assert_eq!(outcome.failure().code, "ERR_HANDLER", "{what}");
    }
    let outcome = tool.run(json!({"what": "none"})).await;
    assert_eq!(outcome.failure().message, "The handler returned nothing instead of outputs.");
}

#[tokio::test]
async fn t010_a_handlers_own_error_passes_with_its_cost() {
    let tool = Tool::python(
        r#"
def entry(p):
    error = {"code": "ERR_MODEL", "message": "The model\n is asleep."}
    if p["inputs"].get("bare"):
        error = {}
    return {"kind": "Response", "control": {"status": "error", "cost_micro": 5}, "error": error}
"#,
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(outcome.failure().to_string(), "ERR_MODEL: The model is asleep.");
    assert_eq!(outcome.done.cost, Some(json!(5)));
    assert_eq!(tool.run(json!({"bare": 1})).await.failure().code, "UNKNOWN");
}

#[tokio::test]
async fn t011_costs_are_passed_on_as_they_came() {
    let tool = Tool::python(
        r#"
COSTS = {"float": 100.0, "half": 0.5, "minus": -1, "nan": float("nan"), "huge": 10**30, "text": "7", "true": True}
def entry(p):
    return {"a": 1, "cost_micro": COSTS[p["inputs"]["cost"]]}
"#,
    );
    for (cost, given) in [("float", json!(100.0)), ("half", json!(0.5)), ("minus", json!(-1))] {
        assert_eq!(tool.run(json!({"cost": cost})).await.done.cost, Some(given));
    }
    for cost in ["nan", "huge", "text", "true"] {
        let given = tool.run(json!({"cost": cost})).await.done.cost.expect("a cost");
        assert!(given.is_string(), "{cost}: {given} is no number that could be stored");
    }
}

#[tokio::test]
async fn t008_emitted_frames_become_reports_in_order() {
    let tool = Tool::python(
        r#"
def entry(payload, emit, ctrl):
    run = {"run_id": payload["run_id"]}
    emit({"kind": "Event", "control": run, "data": {"phase": "started"}})
    emit({"kind": "Log", "control": run, "data": {"msg": "half", "level": "warn", "timestamp": 5}})
    emit({"kind": "Response", "control": dict(run, final=False), "outputs": {"text": "Hello"}})
    emit({"kind": "Event", "control": run, "data": {"phase": "checkpoint", "progress": float("nan")}})
    return {"text": "Hello world", "cost_micro": 0}
"#,
    );
    let outcome = tool.run(json!({})).await;
    let partial = json!({"text": "Hello"}).as_object().expect("an object").clone();
    let log = |level, text: &str, at| Report::Log { level, text: text.to_owned(), at };
    let expected = [
        Report::Event { phase: Phase::Started, progress: None },
        log(LogLevel::Warn, "half", Some(5.0)),
        Report::Partial(partial),
        log(LogLevel::Warn, "The handler's progress is not a finite number.", None),
        Report::Event { phase: Phase::Checkpoint, progress: None },
    ];
    assert_eq!(outcome.reports, expected);
    assert_eq!(outcome.outputs(), json!({"text": "Hello world"}));
}

#[tokio::test]
async fn t016_the_folder_layout_of_the_protocol_works() {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), "tool/helper.py", "WORD = 'root'\n");
    write(folder.path(), "tool/protocol/near.py", "WORD = 'near'\n");
    let text = r"
import helper
import near
from protocol.near import WORD
from libs.runtime_common.hydration import hydrate_inputs, write_outputs
from wharf_sdk import Fault
def entry(payload, emit, ctrl):
    inputs = hydrate_inputs(hydrate_inputs(payload['inputs']))
    write_outputs({}, {})
    return {'words': [helper.WORD, near.WORD, WORD], 'inputs': inputs, 'cost_micro': 1}
";
    let file = write(folder.path(), "tool/protocol/handler.py", text);
    let tool = Tool::of_file(folder, file, false, WorkerSettings::default());
    tool.prepare().await.expect("ready");
    let outcome = tool.run(json!({"n": 1, "prompt": "https"})).await;
    let inputs = json!({"n": 1, "prompt": "https"});
    assert_eq!(outcome.outputs(), json!({"words": ["root", "near", "near"], "inputs": inputs}));
    let left = tool.folder.path().join("tool/protocol/__pycache__");
    assert!(!left.exists(), "compiled files stay out of the tool's folder");
}

#[tokio::test]
async fn t016_a_tool_of_the_package_runs_by_its_decorator() {
    let tool = Tool::python(
        "from wharf_sdk import tool\n@tool\ndef shout(text: str, times: int = 1) -> dict:\n    return {'text': text.upper() * times}\n",
    );
    let outcome = tool.run(json!({"text": "ho", "times": 2})).await;
    assert_eq!(outcome.outputs(), json!({"text": "HOHO"}));
    assert_eq!(tool.run(json!({"times": "x", "text": "a"})).await.failure().code, "ERR_INPUTS");
}

#[tokio::test]
async fn t015_every_run_has_a_process_of_its_own_and_nothing_passes_between_runs() {
    let tool = Tool::python(
        r#"
import os, random, uuid
count = 0
def entry(p):
    global count
    count += 1
    return {"pid": os.getpid(), "count": count, "random": random.random(), "session": os.getsid(0), "cost_micro": 0}
"#,
    );
    let mut seen = Vec::new();
    for _ in 0..3 {
        let outputs = tool.run(json!({})).await.outputs();
        assert_eq!(outputs["count"], 1);
        assert_eq!(outputs["pid"], outputs["session"]);
        assert!(!seen.contains(&outputs["random"]), "randomness differs");
        assert!(!seen.contains(&outputs["pid"]));
        seen.extend([outputs["random"].clone(), outputs["pid"].clone()]);
    }
}

#[tokio::test]
async fn t015_what_the_file_opened_when_it_was_imported_is_open_in_runs() {
    let tool = Tool::python(
        "OPENED = open(__file__)\ndef entry(p):\n    return {'start': OPENED.read(6), 'cost_micro': 0}\n",
    );
    assert_eq!(tool.run(json!({})).await.outputs(), json!({"start": "OPENED"}));
}

#[tokio::test]
async fn t016_a_reported_error_is_never_a_success() {
    let tool = Tool::python(
        r#"
ERROR = {"code": "ERR_PROVIDER", "message": "rate limited"}
FORMS = {
    "docstring": {"status": "error", "run_id": "r", "outputs": {}, "meta": {"m": 1}, "error": ERROR},
    "execution": {"status": "error", "execution_id": "r", "meta": {}, "error": ERROR},
    "text": {"status": "error", "meta": {}, "error": "rate limited"},
    "contradiction": {"status": "success", "outputs": {}, "error": ERROR, "cost_micro": 5},
}

def entry(payload):
    return FORMS[payload["inputs"]["form"]]
"#,
    );
    for form in ["docstring", "execution", "text", "contradiction"] {
        let outcome = tool.run(json!({"form": form})).await;
        assert_eq!(outcome.failure().message, "rate limited", "{form}");
    }
    let outcome = tool.run(json!({"form": "contradiction"})).await;
    assert_eq!(outcome.failure().code, "ERR_PROVIDER");
    assert_eq!(outcome.done.cost, Some(json!(5)));
}

#[tokio::test]
async fn t016_an_envelope_may_hold_more_and_outputs_may_look_like_one() {
    let tool = Tool::python(
        r#"
def entry(payload):
    if payload["inputs"]["whole"]:
        control = {"status": "success", "cost_micro": 1, "final": True}
        outputs = {"status": "error", "error": {"code": "theirs"}}
        return {"kind": "Response", "control": control, "outputs": outputs}
    return {"status": "success", "outputs": {"a": 1}, "meta": {"m": 1}, "execution_id": "x"}
"#,
    );
    let outcome = tool.run(json!({"whole": false})).await;
    assert_eq!(outcome.outputs(), json!({"a": 1}));
    let outcome = tool.run(json!({"whole": true})).await;
    let outputs = json!({"status": "error", "error": {"code": "theirs"}});
    assert_eq!(outcome.outputs(), outputs, "what a tool found out is no failure of the tool");
}

#[tokio::test]
async fn t008_frames_of_the_authors_handlers_are_passed_on() {
    let tool = Tool::python(
        r#"
def entry(payload, emit=None, ctrl=None):
    emit({"kind": "Event", "content": {"phase": "started"}})
    emit({"kind": "Token", "content": {"text": "Mock "}})
    emit({"kind": "Log", "content": {"msg": "hello"}})
    emit({"kind": "Event", "content": {"phase": "paused", "by": "me"}})
    emit({"kind": "Frame", "content": {"n": 1}})
    return {"ok": True, "cost_micro": 0}
"#,
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(outcome.reports[1], Report::Text("Mock ".to_owned()));
    assert!(matches!(&outcome.reports[2], Report::Log { text, .. } if text == "hello"));
    let others = outcome.reports.iter().filter(|report| matches!(report, Report::Other(_)));
    assert_eq!(others.count(), 2, "{:?}", outcome.reports);
}

#[tokio::test]
async fn t011_what_a_handler_says_of_its_cost_is_passed_on_as_it_says_it() {
    let tool = Tool::python(
        r#"
import time
from wharf_sdk import Context, tool

@tool
def spend(context: Context) -> dict:
    context.cost(300)
    context.cost(400)
    context.pause(60)
    return {}
"#,
    );
    let running = tool.start(&json!({}), &json!({}));
    let mut spent = running.spent.clone();
    let told = tokio::time::timeout(PATIENCE, spent.wait_for(|spent| *spent == 700)).await;
    told.expect("in time").expect("told");
    running.cancel.cancel();
    let outcome = running.end().await;
    assert_eq!(outcome.failure().code, "ERR_CANCELED");
    assert_eq!(outcome.done.cost, Some(json!(700)));
}
