//! Servers of others behind Wharf, unmodified: on standard streams, by HTTP, by the older HTTP+SSE.

use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::player::Player::V2;
use super::stage::{Stage, script, started};
use crate::support::{Running, wait_for};

/// The server of all features, as a program of the machine or listening on a port.
fn everything(stage: &Stage, how: &str, port: Option<u16>) -> Command {
    let mut command = stage.peers.node(&stage.peers.bin("mcp-server-everything"));
    command.arg(how);
    if let Some(port) = port {
        command.env("PORT", port.to_string());
    }
    command
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("known").port()
}

/// Answers the next question of a tool in the inbox.
#[track_caller]
pub(crate) fn answer(stage: &Stage, tool: &str, value: &Value) -> String {
    let ask = wait_for(&format!("a question of {tool}"), || {
        let inbox = stage.home.run(&["inbox", "--json"]).code(0).json();
        let asks = inbox.as_array().or(inbox["items"].as_array()).expect("a list");
        asks.iter().find(|ask| ask.to_string().contains(tool)).cloned()
    });
    let id = ask["ask_id"].as_str().expect("an id").to_owned();
    stage.home.run(&["answer", &id, "--value", &value.to_string()]).code(0);
    ask.to_string()
}

/// What the server of all features does, whichever way it is reached.
#[track_caller]
fn does_everything(stage: &Stage, name: &str) {
    let tool = |tool: &str| format!("{name}/{tool}");
    let ran = stage.run(&tool("echo"), &["message=hello"]).code(0).json();
    assert!(ran["outputs"]["content"][0]["text"].to_string().contains("hello"), "{ran}");
    let ran = stage.run(&tool("get-sum"), &["a=2", "b=3"]).code(0).json();
    assert!(ran["outputs"]["content"].to_string().contains('5'), "{ran}");
    let ran = stage.run(&tool("get-structured-content"), &["location=New York"]).code(0).json();
    assert!(ran["outputs"]["structured"].is_object(), "{ran}");
    let ran = stage.run(&tool("get-tiny-image"), &[]).code(0).json();
    assert!(ran["outputs"]["content"].to_string().contains("image/png"), "{ran}");
    let slow = tool("trigger-long-running-operation");
    let ran = stage.home.run(&["run", &slow, "duration=1", "steps=2"]).code(0);
    assert!(!ran.stderr.is_empty(), "progress is shown: {ran:#?}");
    let wrong = stage.run(&tool("get-sum"), &["--input", r#"{"a": "two"}"#]);
    assert_ne!(wrong.code, Some(0), "{wrong:#?}");
}

#[test]
fn m081_server_everything_on_standard_streams() {
    let Some(stage) = Stage::new() else { return };
    let node = stage.peers.node_path().display().to_string();
    let program = stage.peers.bin("mcp-server-everything").display().to_string();
    stage.add("every", &[], &[&*node, &*program, "stdio"]);
    does_everything(&stage, "every");
}

#[test]
fn m066_server_everything_asks_and_a_person_answers() {
    let Some(stage) = Stage::new() else { return };
    let node = stage.peers.node_path().display().to_string();
    let program = stage.peers.bin("mcp-server-everything").display().to_string();
    stage.add("every", &[], &[&*node, &*program, "stdio"]);
    let tool = "every/trigger-elicitation-request";
    let running = stage.home.spawn(&["run", tool, "--json"]);
    answer(&stage, tool, &json!({"name": "Ada", "check": true}));
    let ran = running.wait().code(0);
    assert!(ran.stdout.contains("Ada"), "{ran:#?}");
}

#[test]
fn m050_server_everything_by_http_and_by_the_older_sse() {
    for (how, path) in [("streamableHttp", "/mcp"), ("sse", "/sse")] {
        let Some(stage) = Stage::new() else { return };
        let port = free_port();
        let (server, _) = started(&mut everything(&stage, how, Some(port)), "port");
        stage.add_url("web", &format!("http://127.0.0.1:{port}{path}"), &[]);
        does_everything(&stage, "web");
        ends(server);
    }
}

fn ends(server: Running) {
    server.signal(Signal::TERM);
    drop(server);
}

#[test]
fn m045_server_filesystem_sees_what_was_approved_and_nothing_else() {
    let Some(stage) = Stage::new() else { return };
    let shared = tempfile::tempdir().expect("a folder");
    let shared = std::fs::canonicalize(shared.path()).expect("there");
    std::fs::create_dir_all(&shared).expect("makes");
    std::fs::write(shared.join("note.txt"), "read me").expect("writes");
    let node = stage.peers.node_path().display().to_string();
    let program = stage.peers.bin("mcp-server-filesystem").display().to_string();
    let folder = shared.display().to_string();
    let read = format!("filesystem:read:{folder}/**");
    stage.add("files", &["--permission", &read], &[&*node, &*program, &*folder]);
    let path = format!("path={folder}/note.txt");
    let ran = stage.run("files/read_text_file", &[&path]).code(0).json();
    assert!(ran["outputs"].to_string().contains("read me"), "{ran}");
    // What may only be read is not written, and nothing beside it is there at all.
    let write = stage.run("files/write_file", &[&path, "content=mine"]);
    assert_ne!(write.code, Some(0), "{write:#?}");
    assert_eq!(std::fs::read_to_string(shared.join("note.txt")).expect("there"), "read me");
    let beside = stage.run("files/read_text_file", &["path=/etc/hostname"]);
    assert_ne!(beside.code, Some(0), "{beside:#?}");
}

#[test]
fn m063_a_server_of_the_second_typescript_generation_asks_between_rounds() {
    let Some(stage) = Stage::new() else { return };
    let node = stage.peers.node_path().display().to_string();
    let server = script("servers/v2.mjs").display().to_string();
    let modules = stage.peers.package("").display().to_string();
    let read = format!("filesystem:read:{}/**", modules.trim_end_matches('/'));
    stage.add("deployer", &["--permission", &read], &[&*node, &*server, &*modules]);
    let ran = stage.run("deployer/add", &["a=2", "b=3"]).code(0).json();
    assert_eq!(ran["outputs"]["structured"]["sum"], 5, "{ran}");
    let running = stage.home.spawn(&["run", "deployer/deploy", "env=prod", "--json"]);
    answer(&stage, "deployer/deploy", &json!({"confirm": true}));
    let ran = running.wait().code(0);
    assert!(ran.stdout.contains("deployed to prod"), "{ran:#?}");
    // The same question reaches the client whose call it belongs to.
    for mode in ["legacy", "modern"] {
        let spec = json!({"mode": mode, "answer": {"action": "accept", "content": {"confirm": true}},
            "steps": [["call", {"name": "deployer__deploy", "arguments": {"env": mode}}]]});
        let steps = V2.plays(&stage, "/mcp", &spec);
        assert!(steps[0].to_string().contains(&format!("deployed to {mode}")), "{steps:?}");
    }
}

#[test]
fn m081_a_server_of_fastmcp() {
    let Some(stage) = Stage::new() else { return };
    let python = stage.peers.python_path().display().to_string();
    let server = script("servers/fast.py").display().to_string();
    stage.add("fast", &[], &[&*python, &*server]);
    let ran = stage.run("fast/add", &["a=2", "b=3"]).code(0).json();
    assert_eq!(ran["outputs"]["structured"]["result"], 5, "{ran}");
    // Its `ctx.elicit` asks in the older era only.
    stage.add("older", &["--era", "legacy"], &[&*python, &*server]);
    let running = stage.home.spawn(&["run", "older/greet", "--json"]);
    answer(&stage, "older/greet", &json!({"name": "Ada", "age": 36}));
    let ran = running.wait().code(0);
    assert!(ran.stdout.contains("Hello Ada, 36!"), "{ran:#?}");
    let spec = json!({"mode": "auto", "steps": [["read", {"uri": "fast://motto"}]]});
    let steps = V2.plays(&stage, "/mcp/fast", &spec);
    assert!(steps[0].to_string().contains("slow is smooth"), "{steps:?}");
}
