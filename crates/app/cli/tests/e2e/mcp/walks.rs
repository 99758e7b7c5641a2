//! The walks of `docs/mcp.md`, as far as packages of others can be started here.

use serde_json::{Value, json};

use super::player::Player::V2;
use super::servers::answer;
use super::stage::Stage;
use crate::support::wait_for;

/// The command of the entry `wharf` that was written for a client.
fn entry(client: &str, text: &str) -> Value {
    let (all, servers): (Value, &str) = match client {
        "codex" => {
            let table: toml::Table = toml::from_str(text).expect("TOML");
            (serde_json::to_value(table).expect("JSON"), "mcp_servers")
        }
        "vscode" => (serde_json::from_str(text).expect("JSON"), "servers"),
        _ => (serde_json::from_str(text).expect("JSON"), "mcpServers"),
    };
    let entry = &all[servers]["wharf"];
    let mut command = vec![entry["command"].clone()];
    command.extend(entry["args"].as_array().expect("arguments").iter().cloned());
    Value::Array(command)
}

#[test]
fn m079_what_is_written_for_a_client_starts_and_serves() {
    let Some(stage) = Stage::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    std::thread::scope(|scope| {
        for client in ["claude", "cursor", "vscode", "codex"] {
            let (stage, folder) = (&stage, folder.path());
            scope.spawn(move || {
                let file = folder.join(client);
                let name = file.display().to_string();
                stage.home.run(&["mcp", "export", client, "--write", "--file", &name]).code(0);
                let text = std::fs::read_to_string(&file).expect("written");
                assert!(!text.contains(&stage.core().token()), "no token is in the file");
                let call = json!({"name": "wharf__echo", "arguments": {"text": "hello"}});
                let spec = json!({"mode": "auto", "stdio": entry(client, &text),
                    "steps": [["about"], ["call", call]]});
                let steps = V2.plays(stage, "/mcp", &spec);
                assert!(steps[1]["result"].to_string().contains("hello"), "{client}: {steps:?}");
            });
        }
    });
}

#[test]
fn m033_a_strangers_tool_waits_for_a_yes_that_the_client_cannot_give() {
    let Some(stage) = Stage::new() else { return };
    let node = stage.peers.node_path().display().to_string();
    let program = stage.peers.bin("mcp-server-everything").display().to_string();
    stage.add("every", &[], &[&*node, &*program, "stdio"]);
    let rules = json!([{"tool": "every/*", "approve": true}]).to_string();
    let words = ["worlds", "create", "lab", "--limit-micro", "2000000", "--policy", &rules];
    stage.home.run(&words).code(0);
    let bridge = json!([env!("CARGO_BIN_EXE_wharf"), "mcp", "--world", "lab"]);
    let call = json!({"name": "every__get-sum", "arguments": {"a": 2, "b": 3}});
    let spec = json!({"mode": "legacy", "stdio": bridge, "steps": [["call", call]],
        "answer": {"action": "accept", "content": {"approve": true}}});
    let mut client = V2.start(&stage, "/mcp", &spec);
    let ask = wait_for("the approval", || {
        let inbox = stage.home.run(&["inbox", "--json"]).code(0).json();
        let asks = inbox.as_array().or(inbox["items"].as_array()).expect("a list");
        asks.first().cloned()
    });
    assert_eq!(ask["kind"], "approval", "{ask}");
    stage.home.run(&["approve", ask["ask_id"].as_str().expect("an id")]).code(0);
    let ended = client.step("call");
    assert!(ended["result"]["content"].to_string().contains('5'), "{ended}");
}

#[test]
fn m028_a_client_that_hangs_up_is_given_the_runs_name() {
    let Some(stage) = Stage::new() else { return };
    let bridge = json!([env!("CARGO_BIN_EXE_wharf"), "mcp", "--patience", "1s"]);
    let call = json!({"name": "wharf__ask", "arguments": {"question": "Which color?",
        "schema": {"type": "string"}}});
    let spec = json!({"mode": "legacy", "stdio": bridge, "steps": [["tools"], ["call", call]]});
    let steps = V2.plays(&stage, "/mcp", &spec);
    assert!(steps[0].to_string().contains("wharf_wait"), "{}", steps[0]);
    assert_eq!(steps[1]["result"]["isError"], true, "{}", steps[1]);
    let run = steps[1]["result"]["_meta"]["dev.wharf/run"]["run_id"].clone();
    assert!(run.is_string(), "{}", steps[1]);
    answer(&stage, "Which color?", &json!("blue"));
    let spec = json!({"mode": "legacy", "stdio": bridge,
        "steps": [["call", {"name": "wharf_wait", "arguments": {"run_id": run}}]]});
    let steps = V2.plays(&stage, "/mcp", &spec);
    assert!(steps[0]["result"].to_string().contains("blue"), "{}", steps[0]);
}
