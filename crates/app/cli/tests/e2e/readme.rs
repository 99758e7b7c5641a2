//! The first page, command by command, and its tool called by a client of MCP.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use crate::agents::has_python;
use crate::children::command;
use crate::page;
use crate::support::{LONG, Running, TestHome};

#[test]
fn the_first_page_tells_the_truth() {
    if !has_python() || wharf_skips::lacks("jq") {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    let followed = page::follow_with(&home, core, "../README.md");
    let (ran, checked) = (followed.ran, followed.checked);
    assert!(ran > 5 && checked > 10, "{ran} blocks were run, {checked} lines were looked for");
    let said = called_as_written(&followed.folder.path().join(".mcp.json"));
    assert!(said.to_string().contains("AHOY!"), "{said}");
}

/// Calls the page's tool as a client does that reads this file: starts what it names, and speaks.
fn called_as_written(file: &Path) -> Value {
    let written: Value =
        serde_json::from_slice(&std::fs::read(file).expect("written")).expect("JSON");
    let entry = &written["mcpServers"]["wharf"];
    let mut bridge = command(entry["command"].as_str().expect("a program"));
    bridge.args(entry["args"].as_array().expect("arguments").iter().filter_map(Value::as_str));
    bridge.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = bridge.spawn().expect("the bridge starts");
    let (mut stdin, stdout) =
        (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let _bridge = Running::of(child, "wharf mcp");
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "reader", "version": "1"}});
    let call = json!({"name": "acme__shout_v1", "arguments": {"text": "ahoy"}});
    for (id, method, params) in [
        (Some(1), "initialize", hello),
        (None, "notifications/initialized", json!({})),
        (Some(2), "tools/call", call),
    ] {
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if let Some(id) = id {
            message["id"] = id.into();
        }
        writeln!(stdin, "{message}").expect("it reads");
        while id.is_some() {
            let answer = heard.recv_timeout(LONG);
            let answer = answer.unwrap_or_else(|why| panic!("no answer to {method}: {why}"));
            if answer["id"] == json!(id) {
                if method == "tools/call" {
                    return answer;
                }
                break;
            }
        }
    }
    unreachable!("the last message is answered")
}

#[test]
fn the_page_about_the_simulator_tells_the_truth() {
    let (ran, checked) = page::follow(&TestHome::new(), "simulator.md");
    assert!(ran == 1 && checked > 8, "{ran} blocks were run, {checked} lines were looked for");
}
