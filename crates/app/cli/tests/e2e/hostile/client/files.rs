//! It changes what was approved.

use serde_json::{Value, json};

use crate::agents::has_python;
use crate::data_faults;
use crate::hostile::peers::{Stage, tool_server};
use crate::security_page::{Peer, tried};
use crate::support::{Api, wait_for};

const APPROVED: &str = "pay 1 to alice";
const OTHER: &str = "pay 1000000 to mallory";

/// Reads its file, and gives away the address it was given in a form that nobody recognises. Its
/// first attempt dies once it was told to.
const PAYS: &str = r#"
import os, time
from libs.runtime_common.hydration import hydrate_inputs

def entry(payload, emit, ctrl):
    inputs = payload["inputs"]
    address = inputs["f"] if inputs["f"].startswith("http") else ""
    text = hydrate_inputs(inputs)["f"].decode()
    died = "/dev/shm/died"
    if inputs.get("dies") and not os.path.exists(died):
        open(died, "w").close()
        print("the first attempt has read", text, flush=True)
        time.sleep(1)
        os._exit(1)
    return {"cost_micro": 0, "text": text, "kept": address.encode().hex()}
"#;

fn put(api: &Api, text: &str) {
    let (status, answer) = api.put_file("default", "/order.txt", text);
    assert!((200..300).contains(&status), "{status}: {answer}");
}

fn storage(stage: &Stage) -> String {
    let port = std::fs::read_to_string(stage.home.path().join("run/storage.port")).expect("kept");
    format!("permissions = [\"network:egress:127.0.0.1:{}\"]", port.trim())
}

/// Starts a run that needs an approval, overwrites its file while that waits, and lets it go on.
fn approved_and_replaced(stage: &Stage, client: &Api, request: &Value) -> Value {
    put(client, APPROVED);
    let run = client.start(request);
    let id = run["run_id"].as_str().expect("an id").to_owned();
    let ask = wait_for("the approval", || {
        let inbox = stage.api.get("/v1/inbox");
        let asks = inbox["items"].as_array().expect("a list").clone();
        asks.into_iter().find(|ask| ask["run_id"] == id.as_str())
    });
    put(client, OTHER);
    let b3 = blake3::hash(APPROVED.as_bytes()).to_hex().to_string();
    assert_eq!((&ask["files"][0]["bytes"], &ask["files"][0]["b3"]), (&json!(14), &json!(b3)));
    let path = format!("/v1/approvals/{}/decide", ask["ask_id"].as_str().expect("an id"));
    let (status, answer) = stage.api.ask("POST", &path, &json!({"decision": "allow"}));
    assert_eq!(status, 204, "{answer}");
    let run = stage.api.end_of("default", &id);
    assert_eq!(run["status"], "succeeded", "{run}");
    run
}

#[test]
fn a_client_replaces_a_file_while_its_approval_waits() {
    if !has_python() {
        return;
    }
    let rules = "[[policy]]\ntool = \"sec/*\"\n[[policy]]\ntool = \"dev.wharf.faulty/*\"\n";
    let stage = Stage::configured(rules);
    let client = stage.caller(&["--verb", "run"]);
    let _folder = tool_server(&stage.home, "sec/folder@1", PAYS, "");
    let _address = tool_server(&stage.home, "sec/address@1", PAYS, &storage(&stage));
    let _agent = data_faults::start_agent(&stage.home, "standard");
    for tool in ["sec/folder@1", "sec/address@1"] {
        let inputs = json!({"f.world": "/order.txt"});
        let request = json!({"tool": tool, "world": "default", "inputs": inputs});
        let run = approved_and_replaced(&stage, &client, &request);
        assert_eq!(run["outputs"]["text"], APPROVED, "{tool}");
        assert_eq!(run["outputs"]["kept"].as_str() != Some(""), tool == "sec/address@1", "{run}");
    }
    let request = json!({
        "tool": "dev.wharf.faulty/work", "world": "default",
        "inputs": {"then": "write", "file.world": "/order.txt"},
        "outputs": {"copy.world": "/copy.txt"},
    });
    approved_and_replaced(&stage, &client, &request);
    let (_, copy) = stage.api.bytes("/v1/worlds/default/files/copy.txt");
    assert_eq!(String::from_utf8_lossy(&copy), APPROVED, "the agent");
    tried(
        Peer::Client,
        "replaces a file while its approval waits",
        "a run is bound to the versions of its files",
        "the tool reads what was approved",
    );
}

#[test]
fn a_client_replaces_a_file_between_two_attempts() {
    if !has_python() {
        return;
    }
    let stage = Stage::up();
    let client = stage.caller(&["--verb", "run"]);
    let _folder = tool_server(&stage.home, "sec/retried@1", PAYS, "side_effects = false");
    put(&client, APPROVED);
    let inputs = json!({"f.world": "/order.txt", "dies": true});
    let run = client.start(&json!({"tool": "sec/retried@1", "world": "default", "inputs": inputs}));
    let id = run["run_id"].as_str().expect("an id").to_owned();
    let events = format!("/v1/runs/{id}/events?world=default");
    stage.api.read_until(&events, "the first attempt has read");
    put(&client, OTHER);
    let run = stage.api.end_of("default", &id);
    assert_eq!((&run["outputs"]["text"], &run["attempt"]), (&json!(APPROVED), &json!(2)), "{run}");
    tried(
        Peer::Client,
        "replaces a file between two attempts",
        "a run is bound to the versions of its files",
        "the second attempt reads what the first did",
    );
}

#[test]
fn a_client_keeps_an_address_for_reading_after_the_run() {
    if !has_python() {
        return;
    }
    let stage = Stage::up();
    let _address = tool_server(&stage.home, "sec/address@1", PAYS, &storage(&stage));
    put(&stage.api, APPROVED);
    let inputs = json!({"f.world": "/order.txt"});
    let run = stage.api.start(
        &json!({"tool": "sec/address@1", "world": "default", "run_id": "r1", "inputs": inputs}),
    );
    assert_eq!(run["run_id"], "r1", "{run}");
    let run = stage.api.end_of("default", "r1");
    let kept = run["outputs"]["kept"].as_str().unwrap_or_else(|| panic!("{run}"));
    let byte = |at: usize| u8::from_str_radix(&kept[at..at + 2], 16).expect("hex");
    let kept: Vec<u8> = (0..kept.len()).step_by(2).map(byte).collect();
    let kept = String::from_utf8(kept).expect("text");
    assert!(kept.starts_with("http://127.0.0.1:") && kept.contains("versionId="), "{kept}");
    put(&stage.api, OTHER);
    let (status, body) = stage.api.at(&kept);
    let body = String::from_utf8_lossy(&body).into_owned();
    assert!(status == 403 && !body.contains("pay"), "{status}: {body}");
    tried(
        Peer::Client,
        "keeps an address for reading after the run",
        "an address ends with its attempt",
        "HTTP 403",
    );
}

#[test]
fn a_changed_byte_of_a_file_is_read() {
    if !has_python() {
        return;
    }
    let stage = Stage::up();
    let _folder = tool_server(&stage.home, "sec/folder@1", PAYS, "");
    let _address = tool_server(&stage.home, "sec/address@1", PAYS, &storage(&stage));
    put(&stage.api, APPROVED);
    let objects = stage.home.path().join("objects/worlds/default");
    let is_file =
        |path: &std::path::PathBuf| std::fs::read(path).is_ok_and(|it| it == APPROVED.as_bytes());
    let path = data_faults::all_files(&objects).into_iter().find(is_file).expect("its bytes");
    std::fs::write(path, APPROVED.replace('1', "9")).expect("changed");
    let (status, body) = stage.api.bytes("/v1/worlds/default/files/order.txt");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((status, &body["error"]["code"]), (502, &json!("artifact.damaged")), "{body}");
    for (id, tool) in [("r1", "sec/folder@1"), ("r2", "sec/address@1")] {
        let inputs = json!({"f.world": "/order.txt"});
        stage.api.start(&json!({"tool": tool, "world": "default", "run_id": id, "inputs": inputs}));
        let run = stage.api.end_of("default", id);
        assert_eq!(run["status"], "failed", "{run}");
        assert!(!run.to_string().contains("pay 9"), "{run}");
        if id == "r1" {
            assert_eq!(run["error"]["code"], "artifact.damaged", "{run}");
            assert_eq!(run["error"]["details"]["executed"], "no", "{run}");
        }
    }
    let audit = stage.home.run(&["audit", "export"]).code(0).stdout;
    assert!(audit.contains("artifact.damaged"), "{audit}");
    tried(
        Peer::Client,
        "changes a byte of a stored file past the core",
        "whole reads are compared with the hash that was written",
        "artifact.damaged",
    );
}
