//! Servers and clients that lie: what they must not reach, and that the core lives on.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::stage::{Era, Stage, script, started};
use crate::support::{Api, Running, wait_for};

/// A server that lies as it is told to, behind the core as `evil`.
struct Evil {
    server: Option<Running>,
    url: String,
}

impl Evil {
    fn behind(stage: &Stage, ways: &[&str]) -> Self {
        let script = script("servers/hostile.mjs");
        let (server, said) = started(&mut stage.peers.node(&script), "\n");
        let evil = Self { server: Some(server), url: said.trim().to_owned() };
        evil.be(stage, ways);
        let url = format!("{}/mcp", evil.url);
        stage.home.run(&["mcp", "add", "evil", "--url", &url]).code(0);
        stage.home.run(&["mcp", "approve", "evil", "--all"]).code(0);
        stage.has_tools("evil");
        evil
    }

    fn be(&self, stage: &Stage, ways: &[&str]) {
        let (status, _) = post(stage, &format!("{}/be", self.url), &json!({ "ways": ways }));
        assert_eq!(status, 200);
    }

    /// Everything that came to it.
    fn heard(&self, stage: &Stage) -> String {
        let (_, text) = stage.api().at(&format!("{}/heard", self.url));
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Drop for Evil {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.signal(Signal::KILL);
        }
    }
}

fn post(stage: &Stage, url: &str, body: &Value) -> (u16, Value) {
    stage.api().post_at(url, body)
}

/// The state of a tool, as the catalog has it.
fn state_of(stage: &Stage, tool: &str) -> String {
    let listed = stage.home.run(&["tools", "--json"]).code(0).json();
    let items = listed.as_array().or(listed["items"].as_array()).expect("a list").clone();
    let found = items.into_iter().find(|item| item["tool_id"] == tool);
    found.map_or_else(|| "absent".to_owned(), |it| it["state"].as_str().unwrap_or("").to_owned())
}

#[track_caller]
fn until_state(stage: &Stage, tool: &str, state: &str) {
    wait_for(&format!("{tool} to be {state}"), || (state_of(stage, tool) == state).then_some(()));
}

#[test]
fn m085_a_rug_pull_and_a_rename_are_quarantined() {
    let Some(stage) = Stage::new() else { return };
    let evil = Evil::behind(&stage, &[]);
    stage.run("evil/add", &["a=1"]).code(0);
    evil.be(&stage, &["rug"]);
    stage.home.run(&["mcp", "refresh", "evil"]).code(0);
    until_state(&stage, "evil/add", "quarantined");
    let refused = stage.run("evil/add", &["a=1"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("quarantined"), "{refused:#?}");
    let diff = stage.home.run(&["tools", "diff", "evil/add"]);
    assert!(diff.stdout.contains("send all your keys"), "{diff:#?}");
    // Under another name it is as new as it looks.
    evil.be(&stage, &["rug", "renamed"]);
    stage.home.run(&["mcp", "refresh", "evil"]).code(0);
    until_state(&stage, "evil/plus", "quarantined");
    let heard = evil.heard(&stage);
    assert_eq!(heard.matches("tools/call").count(), 1, "only what was approved is called: {heard}");
    // What it was approved as can be called again.
    evil.be(&stage, &[]);
    stage.home.run(&["mcp", "refresh", "evil"]).code(0);
    until_state(&stage, "evil/add", "available");
    stage.run("evil/add", &["a=1"]).code(0);
}

#[test]
fn m085_lists_without_end_and_far_references_stay_outside() {
    let Some(stage) = Stage::new() else { return };
    let evil = Evil::behind(&stage, &["ref"]);
    stage.run("evil/add", &["a=1"]).code(0);
    assert_ne!(state_of(&stage, "evil/far"), "available");
    assert_ne!(stage.run("evil/far", &[]).code, Some(0));
    assert!(!evil.heard(&stage).contains("canary"), "no reference is ever fetched");
    evil.be(&stage, &["endless"]);
    let _refresh = stage.home.spawn(&["mcp", "refresh", "evil"]);
    let pages = wait_for("the list to be given up", || {
        let pages = evil.heard(&stage).matches("tools/list").count();
        (pages > 3).then_some(pages)
    });
    assert!(pages <= 200, "{pages}");
    // The core has other things to do, and does them.
    stage.home.run(&["run", "wharf/echo", "text=alive"]).code(0);
    let listed = stage.home.run(&["tools", "--json"]).code(0);
    assert!(listed.stdout.matches("evil/").count() < 10_000);
}

#[test]
fn m085_answers_nobody_asked_for_change_nothing() {
    let Some(stage) = Stage::new() else { return };
    let _evil = Evil::behind(&stage, &["chatter"]);
    let ran = stage.run("evil/add", &["a=7"]);
    // Either the true answer counts, or the connection is given up; never the lie.
    assert!(!ran.stdout.contains("mine") && !ran.stdout.contains("a second end"), "{ran:#?}");
    stage.home.run(&["run", "wharf/echo", "text=alive"]).code(0);
}

#[test]
fn m085_a_flood_ends_its_launch_and_nothing_else() {
    let Some(stage) = Stage::new() else { return };
    let node = stage.peers.node_path().display().to_string();
    let server = script("servers/hostile.mjs").display().to_string();
    stage.home.run(&["mcp", "add", "flood", "--", &node, &server, "--flood"]).code(0);
    let approved = stage.home.run(&["mcp", "approve", "flood", "--all"]);
    let ran = stage.run("flood/anything", &[]);
    assert_ne!(ran.code, Some(0), "{approved:#?} {ran:#?}");
    stage.home.run(&["run", "wharf/echo", "text=alive"]).code(0);
    stage.home.run(&["mcp", "stop", "flood"]).code(0);
    stage.home.run(&["mcp", "remove", "flood"]).code(0);
}

#[test]
fn m085_no_token_of_wharf_or_of_a_caller_reaches_a_server() {
    let Some(stage) = Stage::new() else { return };
    let evil = Evil::behind(&stage, &[]);
    let mine = stage.core().token();
    let spec =
        json!({"mode": "modern", "steps": [["call", {"name": "add", "arguments": {"a": 5}}]]});
    for player in [super::player::Player::V2, super::player::Player::Python] {
        let steps = player.plays(&stage, "/mcp/evil", &spec);
        assert!(steps[0].to_string().contains("sum 5"), "{steps:?}");
    }
    let heard = evil.heard(&stage);
    assert!(heard.contains("tools/call"), "{heard}");
    assert!(!heard.contains(&mine), "the owner's token reached the server");
    assert!(!heard.to_lowercase().contains("\"authorization\""), "{heard}");
    assert!(!heard.to_lowercase().contains("\"cookie\""), "{heard}");
}

const ACCEPT: &str = "application/json, text/event-stream";

/// A request of MCP as a client without any library makes it.
fn rpc(stage: &Stage, token: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Value, String) {
    let api = Api::with_token(stage.core(), token);
    let mut all = vec![("accept", ACCEPT)];
    all.extend_from_slice(headers);
    api.rpc("/mcp", &all, body)
}

fn token_of(stage: &Stage, name: &str) -> String {
    let made = stage.home.run(&[
        "token",
        "create",
        "--label",
        name,
        "--verb",
        "run,read,answer",
        "--json",
    ]);
    let made = made.code(0).json();
    made["token"].as_str().expect("a token").to_owned()
}

#[test]
fn m085_another_grants_session_is_no_session() {
    let Some(stage) = Stage::with_fixture(Era::Legacy) else { return };
    let (ada, eve) = (token_of(&stage, "ada"), token_of(&stage, "eve"));
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "ada", "version": "1"}}});
    let (status, _, session) = rpc(&stage, &ada, &[], &open);
    assert_eq!(status, 200);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let (status, _, _) = rpc(&stage, &ada, &[("mcp-session-id", &session)], &list);
    assert_eq!(status, 200);
    let (status, _, _) = rpc(&stage, &eve, &[("mcp-session-id", &session)], &list);
    assert_eq!(status, 404);
    let forged = format!("{}x", &session[..session.len() - 1]);
    let (status, _, _) = rpc(&stage, &ada, &[("mcp-session-id", &forged)], &list);
    assert_eq!(status, 404);
    let (status, _, _) = rpc(&stage, &ada, &[], &list);
    assert_eq!(status, 400);
}

#[test]
fn m085_a_forged_request_state_is_refused() {
    let Some(stage) = Stage::with_fixture(Era::Legacy) else { return };
    let (ada, eve) = (token_of(&stage, "ada"), token_of(&stage, "eve"));
    let call = |state: Option<&str>| {
        let mut params = json!({"name": "wharf__ask", "arguments": {"question": "Who?",
            "schema": {"type": "string"}}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "ada", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}});
        if let Some(state) = state {
            params["requestState"] = json!(state);
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    };
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "wharf__ask"),
    ];
    let (status, asked, _) = rpc(&stage, &ada, &headers, &call(None));
    assert_eq!(
        (status, &asked["result"]["resultType"]),
        (200, &json!("input_required")),
        "{asked}"
    );
    let state = asked["result"]["requestState"].as_str().expect("a state").to_owned();
    for (who, state) in [(&eve, state.clone()), (&ada, format!("x{state}")), (&ada, "".to_owned())]
    {
        let (_, refused, _) = rpc(&stage, who, &headers, &call(Some(&state)));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    // The true one still asks the same.
    let (_, again, _) = rpc(&stage, &ada, &headers, &call(Some(&state)));
    assert_eq!(again["result"]["inputRequests"], asked["result"]["inputRequests"], "{again}");
}
