//! Files of a run: what handlers fetch and write through their server.

use serde_json::{Value, json};

use crate::kit::{Running, Tool, write};

/// A place below the folder of artifacts, for the run of these tests.
fn place(name: &str) -> String {
    format!("/artifacts/run-1/{name}")
}

fn written(tool: &Tool, name: &str) -> Vec<u8> {
    std::fs::read(tool.folder.path().join("artifacts/run-1").join(name)).expect("a written file")
}

/// Runs, and brings the outputs to their end as a server does.
async fn settled(running: Running) -> Value {
    let files = std::sync::Arc::clone(&running.files);
    let outcome = running.end().await;
    let outputs = outcome.outputs().as_object().expect("an object").clone();
    let (outputs, _) = files.settle(outputs).await.expect("settled");
    Value::Object(outputs)
}

#[tokio::test]
async fn t016_inputs_are_hydrated_as_bytes_and_twice_changes_nothing() {
    let tool = Tool::python(
        r#"
from libs.runtime_common.hydration import hydrate_inputs
def entry(payload, emit, ctrl):
    raw = payload["inputs"]["doc"]
    once = hydrate_inputs(payload["inputs"])
    twice = hydrate_inputs(once)
    assert once == twice
    return {"raw": raw, "kind": type(once["doc"]).__name__, "text": once["doc"].decode(), "n": once["n"], "cost_micro": 0}
"#,
    );
    write(tool.folder.path(), "artifacts/run-1/in.txt", "bytes of it");
    let outcome = tool.run(json!({"doc": place("in.txt"), "n": [1]})).await;
    let expected =
        json!({"raw": place("in.txt"), "kind": "bytes", "text": "bytes of it", "n": [1]});
    assert_eq!(outcome.outputs(), expected);
}

#[tokio::test]
async fn t016_a_missing_input_is_told_by_its_code() {
    let tool = Tool::python(
        "from libs.runtime_common.hydration import hydrate_inputs\ndef entry(p):\n    return hydrate_inputs(p['inputs'])\n",
    );
    let failure = tool.run(json!({"doc": place("absent")})).await.failure().clone();
    assert_eq!(failure.code, "ERR_NOT_FOUND", "{failure}");
    assert!(!failure.message.contains("/artifacts"), "{failure}");
}

#[tokio::test]
async fn t016_outputs_are_written_by_the_handler_once() {
    let tool = Tool::python(
        r#"
from libs.runtime_common.hydration import write_outputs
def entry(payload, emit, ctrl):
    places = payload["outputs"]
    results = {"text": "grüße", "raw": b"\x00\xff", "object": {"a": [1]}, "big": "y" * 3_000_000, "unasked": 1}
    write_outputs(places, results)
    return {"text": places["text"], "raw": places["raw"], "object": {"not": "this"}, "big": "nor this", "cost_micro": 0}
"#,
    );
    let places =
        json!({"text": place("t"), "raw": place("r"), "object": place("o"), "big": place("b/c")});
    let outputs = settled(tool.start(&json!({}), &places)).await;
    assert_eq!(outputs, places);
    assert_eq!(written(&tool, "t"), "grüße".as_bytes());
    assert_eq!(written(&tool, "r"), b"\x00\xff");
    assert_eq!(written(&tool, "b/c").len(), 3_000_000);
    let object: Value = serde_json::from_slice(&written(&tool, "o")).expect("JSON");
    assert_eq!(object, json!({"a": [1]}));
}

#[tokio::test]
async fn t012_returned_bytes_and_large_text_with_a_place_are_written() {
    let tool = Tool::python(
        "def entry(p):\n    return {'raw': b'\\x00\\x01', 'view': memoryview(b'v'), 'big': 'é' * 20_000_000, 'n': 5, 'cost_micro': 0}\n",
    );
    let places = json!({"raw": place("r"), "view": place("v"), "big": place("big")});
    let outputs = settled(tool.start(&json!({}), &places)).await;
    let expected = json!({"raw": place("r"), "view": place("v"), "big": place("big"), "n": 5});
    assert_eq!(outputs, expected);
    assert_eq!(written(&tool, "r"), b"\x00\x01");
    assert_eq!(written(&tool, "v"), b"v");
    assert_eq!(written(&tool, "big").len(), 40_000_000);
}

#[tokio::test]
async fn t016_a_tool_of_the_package_gets_files_and_writes_them() {
    let tool = Tool::python(
        r#"
from pathlib import Path
from wharf_sdk import tool, Context
@tool
def copy(doc: Path, note: str, context: Context) -> dict:
    context.write("copy", doc)
    return {"size": len(doc.read_bytes()), "note": note.upper()}
"#,
    );
    write(tool.folder.path(), "artifacts/run-1/in.bin", "12345");
    let inputs = json!({"doc": place("in.bin"), "note": "x"});
    let places = json!({"copy": place("copy.bin"), "note": place("note.txt")});
    let outputs = settled(tool.start(&inputs, &places)).await;
    assert_eq!(outputs, json!({"copy": place("copy.bin"), "note": place("note.txt"), "size": 5}));
    assert_eq!(written(&tool, "copy.bin"), b"12345");
    assert_eq!(written(&tool, "note.txt"), b"X");
}

#[tokio::test]
async fn t016_threads_fetch_side_by_side() {
    let tool = Tool::python(
        r#"
from concurrent.futures import ThreadPoolExecutor
from libs.runtime_common.hydration import hydrate_inputs
def entry(payload, emit, ctrl):
    inputs = payload["inputs"]
    with ThreadPoolExecutor(40) as pool:
        got = list(pool.map(lambda key: hydrate_inputs({key: inputs[key]})[key].decode(), inputs))
    return {"got": got, "cost_micro": 0}
"#,
    );
    let mut inputs = serde_json::Map::new();
    for n in 10..50 {
        write(tool.folder.path(), &format!("artifacts/run-1/{n}"), &n.to_string());
        inputs.insert(format!("k{n}"), json!(place(&n.to_string())));
    }
    let outcome = tool.run(Value::Object(inputs)).await;
    let expected: Vec<String> = (10..50).map(|n| n.to_string()).collect();
    assert_eq!(outcome.outputs()["got"], json!(expected));
}
