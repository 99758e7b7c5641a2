//! MCP servers: their life over the API, what is shown to whom, and who is refused.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf_domain::ToolDef;
use wharf_ports::launcher::LogSource;
use wharf_vocab::ToolId;

use crate::support::Edge;
use crate::support::agents::ScriptedAgents;

const PATH: &str = "/v1/mcp/every";

async fn edge_with(servers: &Arc<ScriptedAgents>) -> Edge {
    let servers = Arc::clone(servers);
    Edge::start_with(|options| options.mcp = Some(servers)).await
}

fn every() -> Value {
    json!({"name": "every", "command": ["node", "every.js", "stdio"], "cwd": "/srv",
           "env": {"LOG_LEVEL": "debug"}, "env_secrets": {"GITHUB_TOKEN": "github-token"},
           "sampling": "refuse", "idle_s": 9})
}

impl Edge {
    async fn add_every(&self) -> Value {
        let answer = self.post("/v1/mcp", every()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    /// Posts without a body, and shows the server that comes back.
    async fn tell_every(&self, verb: &str) -> Value {
        let answer = self.call("POST", &format!("{PATH}/{verb}")).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }
}

#[tokio::test]
async fn m079_a_server_is_added_approved_started_stopped_and_removed() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    let added = edge.add_every().await;
    for (field, expect) in [
        ("server_id", json!("every")),
        ("state", json!("added")),
        ("enabled", json!(false)),
        ("listed", json!(false)),
        ("tools", json!([])),
        ("command", json!(["node", "every.js", "stdio"])),
        ("env", json!({"LOG_LEVEL": "debug"})),
        ("env_secrets", json!({"GITHUB_TOKEN": "github-token"})),
        ("trust_annotations", json!(true)),
        ("era", json!("auto")),
        ("sampling", json!("refuse")),
        ("roots", json!("approved")),
        ("idle_s", json!(9)),
        ("url", Value::Null),
    ] {
        assert_eq!(added[field], expect, "{field} of {added}");
    }
    assert_eq!(edge.post("/v1/mcp", every()).await.status, 200, "it is known by now");
    let hash = added["manifest_hash"].clone();
    let terms = json!({"all": true, "manifest_hash": hash, "sandbox": "strict"});
    let answer = edge.post(&format!("{PATH}/approve"), terms).await;
    assert_eq!((answer.status, &answer.json()["sandbox_wanted"]), (200, &json!("strict")));
    assert_eq!(edge.tell_every("start").await["enabled"], true);
    assert_eq!(edge.tell_every("restart").await["state"], "starting");
    assert_eq!(edge.tell_every("refresh").await["state"], "starting");
    let refused = edge.call("DELETE", PATH).send().await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "agent.running"));
    assert_eq!(edge.tell_every("stop").await["state"], "stopped");
    assert_eq!(edge.tell_every("revoke").await["permissions_approved"], Value::Null);
    assert_eq!(edge.call("DELETE", PATH).send().await.status, 204);
    let gone = edge.get(PATH).await;
    assert_eq!((gone.status, gone.code().as_str()), (404, "agent.not_found"));
}

#[tokio::test]
async fn m043_a_request_that_cannot_be_meant_is_refused_before_anything_is_added() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    for (body, field) in [
        (json!({"name": "x"}), "command"),
        (json!({"command": ["x"]}), "name"),
        (json!({"name": "x", "command": ["x"], "url": "https://a.example/mcp"}), "url"),
        (json!({"folder": "/srv/x", "accept_new": true}), "folder"),
    ] {
        let answer = edge.post("/v1/mcp", body.clone()).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "request.invalid"), "{body}");
        assert_eq!(answer.json()["error"]["details"]["field"], field, "{body}");
    }
    let odd = edge.post("/v1/mcp", json!({"name": "x", "comand": ["x"]})).await;
    assert_eq!(odd.status, 400, "{odd:?}");
    assert_eq!(edge.get("/v1/mcp").await.json()["items"], json!([]));
}

#[tokio::test]
async fn m079_only_administrators_see_variables_and_may_add() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    edge.add_every().await;
    let token = edge.token(json!({"verbs": ["read"]})).await;
    let token = token["token"].as_str().expect("a token");
    for path in [PATH, "/v1/mcp"] {
        let shown = edge.call_as(token, "GET", path).send().await.json();
        let shown = if path == PATH { shown } else { shown["items"][0].clone() };
        assert_eq!(shown["env"], Value::Null, "{shown}");
        assert_eq!(shown["env_secrets"]["GITHUB_TOKEN"], "github-token");
    }
    for (method, path) in [
        ("POST", "/v1/mcp"),
        ("DELETE", PATH),
        ("POST", "/v1/mcp/every/approve"),
        ("POST", "/v1/mcp/every/start"),
        ("POST", "/v1/mcp/every/refresh"),
        ("GET", "/v1/mcp/every/logs"),
    ] {
        let refused = edge.call_as(token, method, path).json(&every()).send().await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "permission.denied"), "{path}");
    }
}

#[tokio::test]
async fn m055_a_changed_tool_of_a_server_is_compared_and_taken_on_with_the_tools() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    edge.add_every().await;
    edge.post(&format!("{PATH}/approve"), json!({"all": true})).await;
    let id = ToolId::new("every/echo").expect("valid");
    let def = |text: &str| ToolDef::new(id.clone(), text, json!({"type": "object"}));
    servers.set("every", |view| {
        view.provider.tools = vec![def("says it, and sends it elsewhere")];
        view.provider.pinned = [(id.clone(), def("says it"))].into();
    });
    let diff = edge.get("/v1/tools/every/echo/diff").await.json();
    assert_eq!((&diff["changed"], &diff["changes"]), (&json!(true), &json!(["description"])));
    assert_eq!(edge.get(PATH).await.json()["quarantined"], json!(["every/echo"]));
    edge.call("POST", "/v1/tools/every/echo/approve").send().await;
    assert_eq!(edge.get(PATH).await.json()["quarantined"], Value::Null);
    let steered = edge.call("POST", "/v1/tools/every/echo/disable").send().await;
    assert_eq!(steered.json()["error"]["details"]["server_id"], "every", "{steered:?}");
}

#[tokio::test]
async fn m079_the_log_of_a_server_is_shown() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    edge.add_every().await;
    servers.say("every", LogSource::Stderr, "listening");
    let log = edge.get("/v1/mcp/every/logs?lines=5").await.json();
    assert_eq!(log["items"][0]["text"], "listening", "{log}");
    assert_eq!(edge.get("/v1/mcp/nobody/logs").await.status, 404);
}

#[tokio::test]
async fn m079_a_core_without_mcp_servers_has_none_and_takes_none() {
    let edge = Edge::start().await;
    assert_eq!(edge.get("/v1/mcp").await.json()["items"], json!([]));
    let refused = edge.post("/v1/mcp", every()).await;
    assert_eq!((refused.status, refused.code().as_str()), (404, "agent.not_found"));
}
