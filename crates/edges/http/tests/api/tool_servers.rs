//! Tool servers: their life over the API, what their tools are shown as, and who is refused.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf_domain::{Availability, ToolDef};
use wharf_engine::{Dispatch, ProviderSink};
use wharf_ports::launcher::{FenceReport, LogSource};
use wharf_ports::providers::ProviderState;
use wharf_vocab::{AttemptId, Digest, Fault, ProviderId, SandboxLevel, ToolId};

use crate::support::Edge;
use crate::support::agents::ScriptedAgents;

const SHOUT: &str = "text/shout@1";
const PATH: &str = "/v1/tools/text/shout@1";

async fn edge_with(servers: &Arc<ScriptedAgents>) -> Edge {
    let servers = Arc::clone(servers);
    Edge::start_with(|options| {
        options.agents = Some(ScriptedAgents::new());
        options.tools = Some(servers);
    })
    .await
}

impl Edge {
    async fn add_tool(&self, body: Value) -> Value {
        let answer = self.post("/v1/tools", body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    /// Posts without a body, and shows the tool that comes back.
    async fn steer(&self, verb: &str) -> Value {
        let answer = self.call("POST", &format!("{PATH}/{verb}")).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// How a tool is shown in the list.
    async fn listed(&self, id: &str) -> Option<Value> {
        let tools = self.get("/v1/tools").await.json();
        tools["items"].as_array()?.iter().find(|tool| tool["tool_id"] == id).cloned()
    }
}

fn folder() -> Value {
    json!({"folder": "/tools/tool.shout"})
}

#[tokio::test]
async fn t043_a_tool_server_is_added_approved_disabled_enabled_and_removed() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    let added = edge.add_tool(folder()).await;
    assert_eq!(added["tool_id"], SHOUT);
    assert_eq!(
        (&added["state"], &added["state_reason"]),
        (&json!("unavailable"), &json!("not approved"))
    );
    let server = &added["server"];
    assert_eq!((&server["kind"], &server["state"]), (&json!("handler"), &json!("added")));
    assert_eq!(
        (&server["folder"], &server["enabled"]),
        (&json!("/tools/tool.shout"), &json!(false))
    );
    assert_eq!(server["permissions_requested"], json!(["secret:use:KEY", "env:read:LANG"]));
    assert_eq!(server["permissions"][0]["meaning"], "Use the secret KEY");
    assert!(server["permissions_approved"].is_null());
    assert_eq!(server["limits"], json!({"calls_max": 4}));
    assert_eq!(edge.get(PATH).await.json(), added);
    let again = edge.post("/v1/tools", folder()).await;
    assert_eq!((again.status, again.json()), (200, added));
    edge.call("POST", &format!("{PATH}/enable")).send().await.refused(403, "agent.not_approved");

    let approved = edge.steer("approve").await;
    let server = &approved["server"];
    assert_eq!(server["permissions_approved"], server["permissions_requested"]);
    assert_eq!((&server["sandbox"], &server["enabled"]), (&json!("standard"), &json!(true)));
    assert_eq!(approved["state"], "starting", "an approval lets it be called");

    let disabled = edge.steer("disable").await;
    assert_eq!(disabled["state"], "disabled");
    assert_eq!(edge.listed(SHOUT).await.expect("listed")["state"], "disabled");
    assert_eq!(edge.steer("approve").await["server"]["enabled"], false, "it stays disabled");
    assert_eq!(edge.steer("enable").await["state"], "starting");
    assert_eq!(edge.steer("restart").await["state"], "starting");
    let refused = edge.call("DELETE", PATH).send().await;
    refused.refused(409, "agent.running");
    assert!(refused.text().contains("disable it first"), "{refused:?}");
    edge.steer("disable").await;
    let removed = edge.call("DELETE", PATH).send().await;
    assert_eq!((removed.status, removed.body.len()), (204, 0));
    edge.get(PATH).await.refused(404, "tool.not_found");
    assert_eq!(edge.listed(SHOUT).await, None);
}

#[tokio::test]
async fn t043_what_was_added_and_not_approved_stands_in_the_list() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    edge.add_tool(folder()).await;
    let listed = edge.listed(SHOUT).await.expect("listed");
    assert_eq!(
        (&listed["state"], &listed["state_reason"]),
        (&json!("unavailable"), &json!("not approved"))
    );
    assert_eq!(listed["input_schema"], json!({"type": "object"}));
    assert!(listed["server"].is_null(), "the list is short");
    assert!(edge.listed("wharf/echo").await.is_some_and(|tool| tool["server"].is_null()));
    // Page by page every tool comes once, and in order.
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = edge.get(&format!("/v1/tools?limit=1{cursor}")).await.json();
        seen.extend(
            page["items"].as_array().expect("items").iter().map(|it| it["tool_id"].clone()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let whole = edge.get("/v1/tools").await.json();
    let whole: Vec<_> =
        whole["items"].as_array().expect("items").iter().map(|it| it["tool_id"].clone()).collect();
    assert_eq!(seen, whole);
    assert!(seen.contains(&json!(SHOUT)) && seen.contains(&json!("wharf/echo")));
}

#[tokio::test]
async fn t043_a_folder_can_be_added_and_approved_in_one_go() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    let body = json!({"folder": "/tools/tool.shout", "approve": true, "sandbox": "strict",
        "permissions": ["env:read:LANG"]});
    let server = edge.add_tool(body).await["server"].clone();
    assert_eq!(server["permissions_approved"], json!(["env:read:LANG"]));
    assert_eq!(server["permissions"][0]["approved"], false);
    assert_eq!((&server["sandbox_wanted"], &server["enabled"]), (&json!("strict"), &json!(true)));
    let all = edge.add_tool(json!({"folder": "/tools/tool.sing", "approve": true})).await;
    assert_eq!(all["server"]["permissions_approved"], json!(["secret:use:KEY", "env:read:LANG"]));
}

#[tokio::test]
async fn t043_a_request_that_makes_no_sense_adds_nothing() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    for (body, field) in [
        (json!({"folder": "tools"}), "folder"),
        (json!({"folder": "/tools/tool.shout", "sandbox": "strict"}), "sandbox"),
        (json!({"folder": "/tools/tool.shout", "permissions": []}), "permissions"),
        (json!({"folder": "/tools/tool.shout", "aprove": true}), "aprove"),
    ] {
        let answer = edge.post("/v1/tools", body).await;
        answer.refused(400, "request.invalid");
        assert_eq!(answer.json()["error"]["details"]["field"], field);
    }
    let more = json!({"folder": "/tools/tool.shout", "approve": true, "permissions": ["a:b"]});
    edge.post("/v1/tools", more).await.refused(400, "request.invalid");
    let listed = edge.listed(SHOUT).await.expect("it was added before it was refused");
    assert_eq!(listed["state_reason"], "not approved");
}

#[tokio::test]
async fn an_approval_can_be_for_less_and_for_what_was_looked_at() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    edge.add_tool(folder()).await;
    let path = format!("{PATH}/approve");
    let other = json!({"all": true, "manifest_hash": Digest::of(&[b"another"]).as_str()});
    edge.post(&path, other).await.refused(409, "agent.drifted");
    let some = json!({"permissions": ["env:read:LANG"], "sandbox": "basic", "isolation": "run",
        "limits": {"memory_bytes": 5}});
    let server = edge.post(&path, some).await.json()["server"].clone();
    assert_eq!(server["permissions_approved"], json!(["env:read:LANG"]));
    assert_eq!((&server["sandbox"], &server["isolation"]), (&json!("basic"), &json!("run")));
    assert_eq!(server["limits"], json!({"calls_max": 4, "memory_bytes": 5}));
}

#[tokio::test]
async fn every_state_of_a_server_makes_a_state_of_its_tool() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    edge.add_tool(json!({"folder": "/tools/tool.shout", "approve": true})).await;
    for (state, word, reason) in [
        (ProviderState::Starting, "starting", Value::Null),
        (ProviderState::BackingOff, "starting", Value::Null),
        (ProviderState::Running, "available", Value::Null),
        (ProviderState::Unhealthy, "unavailable", json!("its server is not healthy")),
        (ProviderState::Crashed, "unavailable", json!("it ended too often")),
        (
            ProviderState::Drifted,
            "unavailable",
            json!("its files are not the ones that were approved"),
        ),
    ] {
        servers.set(SHOUT, |view| view.state = state);
        let shown = edge.get(PATH).await.json();
        assert_eq!((&shown["state"], &shown["state_reason"]), (&json!(word), &reason), "{state:?}");
        assert_eq!(shown["server"]["state"], state.as_str());
    }
    servers.set(SHOUT, |view| {
        view.state = ProviderState::Crashed;
        view.reason = Some("exit code 1".to_owned());
        view.pid = Some(4711);
        view.provider.drift = vec!["handler.py was changed".to_owned()];
        view.fence = Some(FenceReport {
            notes: vec!["No.".to_owned()],
            limits: [("disk_bytes", wharf_vocab::Keeping::Measured)].into(),
            ..FenceReport::at(SandboxLevel::Basic)
        });
    });
    let shown = edge.get(PATH).await.json();
    assert_eq!(
        (&shown["state_reason"], &shown["server"]["reason"]),
        (&json!("exit code 1"), &json!("exit code 1"))
    );
    let server = &shown["server"];
    assert_eq!((&server["pid"], &server["sandbox"]), (&json!(4711), &json!("basic")));
    assert_eq!(
        (&server["drift"][0], &server["sandbox_notes"][0]),
        (&json!("handler.py was changed"), &json!("No."))
    );
    assert_eq!(server["limits_kept"], json!({"disk_bytes": "measured"}));
}

struct Nobody;

impl ProviderSink for Nobody {
    fn dispatch(&self, _dispatch: Dispatch) -> Result<(), Fault> {
        Ok(())
    }
    fn cancel(&self, _attempt: &AttemptId, _reason: &str, _grace_ms: u64) {}
    fn answer(&self, _attempt: &AttemptId, _key: &str, _resolution: &wharf_domain::Resolution) {}
}

#[tokio::test]
async fn what_the_catalog_knows_of_a_served_tool_counts_while_it_is_enabled() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    edge.add_tool(json!({"folder": "/tools/tool.shout", "approve": true})).await;
    servers.set(SHOUT, |view| view.state = ProviderState::Running);
    let provider = ProviderId::new(SHOUT).expect("valid");
    let def = ToolDef::new(ToolId::new(SHOUT).expect("valid"), "as registered", json!({}));
    edge.handle
        .providers()
        .register(provider.clone(), vec![def], Arc::new(Nobody))
        .await
        .expect("registers");
    let shown = edge.get(PATH).await.json();
    assert_eq!(
        (&shown["state"], &shown["description"]),
        (&json!("starting"), &json!("as registered"))
    );
    edge.handle
        .providers()
        .set_availability(provider.clone(), Availability::Up)
        .await
        .expect("set");
    assert_eq!(edge.listed(SHOUT).await.expect("listed")["state"], "available");
    let down = Availability::down("no route");
    edge.handle.providers().set_availability(provider, down).await.expect("set");
    assert_eq!(edge.get(PATH).await.json()["state_reason"], "no route");
    assert_eq!(edge.steer("disable").await["state"], "disabled");
    let tools = edge.get("/v1/tools").await.json();
    let twice = tools["items"].as_array().expect("items").iter();
    assert_eq!(twice.filter(|tool| tool["tool_id"] == SHOUT).count(), 1);
    let diff = edge.get(&format!("{PATH}/diff")).await.json();
    assert_eq!(diff["offered"]["description"], "shouts", "as its manifest says");
}

#[tokio::test]
async fn tools_without_a_server_of_their_own_cannot_be_steered() {
    let edge = edge_with(&ScriptedAgents::new()).await;
    edge.add_agent("dev.example.hello").await;
    for verb in ["enable", "disable", "restart"] {
        let path = format!("/v1/tools/dev.example.hello/echo/{verb}");
        let answer = edge.call("POST", &path).send().await;
        answer.refused(400, "request.invalid");
        let error = answer.json()["error"].clone();
        let message = "dev.example.hello/echo is a tool of the agent dev.example.hello; steer the \
                       agent instead.";
        assert_eq!(error["message"], message);
        assert_eq!(error["details"]["agent_id"], "dev.example.hello");
        let builtin = edge.call("POST", &format!("/v1/tools/wharf/echo/{verb}")).send().await;
        builtin.refused(400, "request.invalid");
        assert!(builtin.text().contains("nothing to steer"), "{builtin:?}");
        let none = edge.call("POST", &format!("/v1/tools/text/none@1/{verb}")).send().await;
        none.refused(404, "tool.not_found");
    }
    edge.call("DELETE", "/v1/tools/dev.example.hello/echo")
        .send()
        .await
        .refused(400, "request.invalid");
    edge.get("/v1/tools/dev.example.hello/echo/logs").await.refused(400, "request.invalid");
    edge.call("DELETE", "/v1/tools/text/none@1").send().await.refused(404, "tool.not_found");
    let body = edge.post("/v1/tools/dev.example.hello/echo/approve", json!({"all": true})).await;
    body.refused(400, "request.invalid");
}

#[tokio::test]
async fn the_log_of_a_tool_server_is_shown_and_followed() {
    let servers = ScriptedAgents::new();
    let edge = edge_with(&servers).await;
    edge.add_tool(folder()).await;
    servers.say(SHOUT, LogSource::Stdout, "one");
    servers.say(SHOUT, LogSource::Stderr, "two");
    let lines = edge.get(&format!("{PATH}/logs?lines=1")).await.json();
    assert_eq!(lines["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(lines["items"][0]["text"], "two");
    let path = format!("{PATH}/logs?follow=true");
    let mut events = edge.call("GET", &path).open_events().await;
    servers.say(SHOUT, LogSource::Stdout, "three");
    for text in ["one", "two", "three"] {
        let event = events.next().await.expect("a line");
        assert_eq!((event.event.as_str(), &event.data["text"]), ("log", &json!(text)));
    }
}

#[tokio::test]
async fn a_core_without_tool_servers_takes_none() {
    let edge = Edge::start().await;
    edge.post("/v1/tools", folder()).await.refused(404, "tool.not_found");
    edge.get(PATH).await.refused(404, "tool.not_found");
    edge.call("POST", &format!("{PATH}/enable")).send().await.refused(404, "tool.not_found");
}
