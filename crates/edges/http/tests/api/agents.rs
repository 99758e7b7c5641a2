//! Agents: their life over the API, and who is refused.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use wharf_domain::ToolDef;
use wharf_ports::launcher::FenceReport;
use wharf_ports::providers::{ProviderHealth, ProviderState};
use wharf_vocab::{Digest, SandboxLevel, Timestamp, ToolId};

use crate::support::agents::{BROKEN_FOLDER, ScriptedAgents};
use crate::support::{Edge, eventually};

const HELLO: &str = "dev.example.hello";
const PATH: &str = "/v1/agents/dev.example.hello";

pub(crate) async fn edge_with(agents: &Arc<ScriptedAgents>) -> Edge {
    let agents = Arc::clone(agents);
    Edge::start_with(|options| options.agents = Some(agents)).await
}

impl Edge {
    pub(crate) async fn add_agent(&self, id: &str) -> Value {
        let answer = self.post("/v1/agents", json!({"folder": format!("/agents/{id}")})).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    /// Posts without a body, and shows the agent that comes back.
    async fn act(&self, verb: &str) -> Value {
        let answer = self.call("POST", &format!("{PATH}/{verb}")).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }
}

#[tokio::test]
async fn an_agent_is_added_approved_started_stopped_and_removed() {
    let agents = ScriptedAgents::new();
    let edge = edge_with(&agents).await;
    let mut expect = json!({
        "agent_id": HELLO, "state": "added", "sandbox": "none", "tools": [], "name": "Hello",
        "version": "0.1.0", "description": "says hello", "folder": "/agents/dev.example.hello",
        "command": ["./hello", "--fast"], "added_at": "1970-01-01T00:00:00.000Z",
        "permissions_requested": ["network:egress:example.dev", "env:read:LANG"],
        "limits": {"calls_max": 4}, "manifest_hash": Digest::of(&[b"manifest"]).as_str(),
    });
    let added = edge.add_agent(HELLO).await;
    let meanings = added["permissions"].clone();
    assert_eq!(meanings[1]["permission"], "env:read:LANG");
    assert!(meanings[1]["meaning"].as_str().is_some_and(|text| text.contains("LANG")));
    assert_eq!(meanings[1]["approved"], false);
    expect["permissions"] = meanings;
    assert_eq!(added, expect);
    let again = edge.post("/v1/agents", json!({"folder": "/agents/dev.example.hello"})).await;
    assert_eq!((again.status, again.json()), (200, expect.clone()));
    assert_eq!(edge.get(PATH).await.json(), expect);

    let approved = edge.post(&format!("{PATH}/approve"), json!({"all": true})).await;
    expect["permissions_approved"] = expect["permissions_requested"].clone();
    expect["state"] = json!("approved");
    expect["sandbox"] = json!("standard");
    expect["sandbox_wanted"] = json!("standard");
    expect["isolation"] = json!("shared");
    expect["pinned_files"] = json!({"hello": Digest::of(&[b"hello"]).as_str()});
    for permission in expect["permissions"].as_array_mut().expect("a list") {
        permission["approved"] = json!(true);
    }
    assert_eq!((approved.status, approved.json()), (200, expect.clone()));

    expect["state"] = json!("starting");
    expect["launch_id"] = json!("l1");
    expect["instances"] = json!(1);
    assert_eq!(edge.act("start").await, expect);
    edge.call("DELETE", PATH).send().await.refused(409, "agent.running");
    agents.set(HELLO, |view| {
        view.state = ProviderState::Running;
        view.pid = Some(4711);
        view.last_heartbeat = Some(Timestamp(5));
        let details = serde_json::Map::from_iter([("queue".to_owned(), json!(7))]);
        view.health = Some(ProviderHealth {
            status: wharf_vocab::Health::Degraded,
            uptime_ms: 9,
            inflight_calls: 1,
            details,
        });
        let tool = ToolId::new("dev.example.hello/echo").expect("valid");
        view.provider.tools = vec![ToolDef::new(tool, "", json!({}))];
    });
    let shown = edge.get(PATH).await.json();
    assert_eq!((&shown["state"], &shown["pid"]), (&json!("running"), &json!(4711)));
    assert_eq!(shown["last_heartbeat"], "1970-01-01T00:00:00.005Z");
    let said = json!({"status": "degraded", "uptime_ms": 9, "inflight_calls": 1,
        "details": {"queue": 7}});
    assert_eq!(shown["health"], said, "r140");
    assert_eq!(shown["tools"], json!(["dev.example.hello/echo"]));

    assert_eq!(edge.act("restart").await["state"], "starting");
    assert_eq!(edge.act("stop").await["state"], "stopped");
    let removed = edge.call("DELETE", PATH).send().await;
    assert_eq!((removed.status, removed.body.len()), (204, 0));
    edge.get(PATH).await.refused(404, "agent.not_found");
    assert_eq!(edge.get("/v1/agents").await.json(), json!({"items": [], "next_cursor": null}));
}

#[tokio::test]
async fn every_state_is_shown_with_its_reason() {
    let agents = ScriptedAgents::new();
    let edge = edge_with(&agents).await;
    edge.add_agent(HELLO).await;
    for (state, word) in [
        (ProviderState::Unhealthy, "unhealthy"),
        (ProviderState::BackingOff, "backing_off"),
        (ProviderState::Draining, "draining"),
        (ProviderState::Crashed, "crashed"),
        (ProviderState::Drifted, "drifted"),
    ] {
        agents.set(HELLO, |view| {
            view.state = state;
            view.reason = Some("exit code 1".to_owned());
        });
        let listed = edge.get("/v1/agents").await.json()["items"][0].clone();
        assert_eq!((&listed["state"], &listed["reason"]), (&json!(word), &json!("exit code 1")));
    }
}

#[tokio::test]
async fn an_approval_counts_for_what_was_asked_for() {
    let edge = edge_with(&ScriptedAgents::new()).await;
    edge.add_agent(HELLO).await;
    let path = format!("{PATH}/approve");
    let start = edge.call("POST", &format!("{PATH}/start")).send().await;
    start.refused(403, "agent.not_approved");
    let more = json!({"permissions": ["filesystem:write:/**"]});
    edge.post(&path, more).await.refused(400, "request.invalid");
    for neither in [json!({}), json!({"all": true, "permissions": []}), json!({"all": "yes"})] {
        edge.post(&path, neither).await.refused(400, "request.invalid");
    }
    for wrong in [json!("x"), json!("g".repeat(64)), json!(7)] {
        let body = json!({"all": true, "manifest_hash": wrong});
        edge.post(&path, body).await.refused(400, "request.invalid");
    }
    let another = json!({"all": true, "manifest_hash": "0".repeat(64)});
    let error = edge.post(&path, another).await.refused(409, "agent.drifted");
    assert!(error["message"].as_str().is_some_and(|it| it.contains("added again")), "{error}");
    let hash = edge.get(PATH).await.json()["manifest_hash"].clone();
    let seen = json!({"all": true, "manifest_hash": hash});
    assert_eq!(edge.post(&path, seen).await.status, 200);
    let some = json!({"permissions": ["env:read:LANG", "env:read:LANG"]});
    let approved = edge.post(&path, some).await.json();
    assert_eq!(approved["permissions_approved"], json!(["env:read:LANG"]));
    assert_eq!(approved["permissions_requested"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn an_approval_may_be_narrower_and_sets_terms() {
    let agents = ScriptedAgents::new();
    let edge = edge_with(&agents).await;
    edge.add_agent(HELLO).await;
    let path = format!("{PATH}/approve");
    let narrow = json!({"permissions": ["network:egress:example.dev:443"], "sandbox": "strict",
        "isolation": "run", "limits": {"calls_max": 9, "memory_bytes": 1024}});
    let approved = edge.post(&path, narrow).await.json();
    assert_eq!(approved["permissions"][0]["approved"], false);
    let narrowed = &approved["permissions"][0]["narrowed_to"];
    assert_eq!(*narrowed, json!(["network:egress:example.dev:443"]));
    assert_eq!(approved["permissions"][1].get("narrowed_to"), None);
    assert_eq!((&approved["sandbox"], &approved["isolation"]), (&json!("strict"), &json!("run")));
    let limits = json!({"calls_max": 4, "memory_bytes": 1024});
    assert_eq!(approved["limits"], limits, "the stricter of the manifest's and the owner's");

    // What was achieved is told while it runs, with what is missing.
    agents.set(HELLO, |view| {
        view.fence = Some(FenceReport {
            notes: vec!["No.".to_owned()],
            limits: [("memory_bytes", wharf_vocab::Keeping::Kernel)].into(),
            ..FenceReport::at(SandboxLevel::Basic)
        });
        view.provider.drift = vec!["hello has changed".to_owned()];
    });
    let shown = edge.get(PATH).await.json();
    assert_eq!((&shown["sandbox"], &shown["sandbox_wanted"]), (&json!("basic"), &json!("strict")));
    assert_eq!(
        (&shown["sandbox_notes"], &shown["drift"][0]),
        (&json!(["No."]), &json!("hello has changed"))
    );
    assert_eq!(shown["limits_kept"], json!({"memory_bytes": "kernel"}));

    for bad in [
        json!({"all": true, "sandbox": "loose"}),
        json!({"all": true, "isolation": "none"}),
        json!({"all": true, "limits": {"processes": 0}}),
        json!({"all": true, "limits": {"memory": 1}}),
    ] {
        edge.post(&path, bad).await.refused(400, "request.invalid");
    }
    let revoked = edge.act("revoke").await;
    assert_eq!((&revoked["state"], revoked.get("permissions_approved")), (&json!("added"), None));
}

#[tokio::test]
async fn a_scan_shows_what_lies_below_a_folder_and_adds_nothing() {
    let edge = edge_with(&ScriptedAgents::new()).await;
    let scan =
        async || edge.post("/v1/agents/scan", json!({"folder": "/agents/dev.x"})).await.json();
    let found = scan().await;
    assert_eq!(found["items"][0]["agent_id"], "dev.x");
    assert_eq!(found["items"][0]["permissions"].as_array().map(Vec::len), Some(2));
    assert_eq!(found["items"][1]["error"]["code"], "agent.manifest_invalid");
    assert_eq!(found["cut_short"], "It looked at 2 folders.");
    assert_eq!(edge.get("/v1/agents").await.json()["items"], json!([]));
    edge.add_agent("dev.x").await;
    assert_eq!(scan().await["items"][0]["state"], "added");
    edge.post("/v1/agents/scan", json!({"folder": "x"})).await.refused(400, "request.invalid");
}

#[tokio::test]
async fn r080_a_changed_tool_is_shown_beside_what_was_taken_on_and_can_be_approved() {
    let agents = ScriptedAgents::new();
    let edge = edge_with(&agents).await;
    edge.add_agent(HELLO).await;
    let id = ToolId::new("dev.example.hello/echo").expect("valid");
    let old = ToolDef::new(id.clone(), "echoes", json!({"type": "object"}));
    let new = ToolDef { side_effects: Some(true), description: "sends".into(), ..old.clone() };
    agents.set(HELLO, |view| {
        view.provider.pinned.insert(id.clone(), old.clone());
        view.provider.tools = vec![new.clone()];
    });
    assert_eq!(edge.get(PATH).await.json()["quarantined"], json!(["dev.example.hello/echo"]));
    let diff = edge.get("/v1/tools/dev.example.hello/echo/diff").await.json();
    assert_eq!(
        (&diff["changed"], &diff["changes"]),
        (&json!(true), &json!(["description", "side_effects"]))
    );
    assert_eq!(diff["pinned"]["description"], "echoes");
    assert_eq!(diff["offered"]["description"], "sends");
    assert_eq!(diff["offered"]["hash"], new.hash().as_str());

    let path = "/v1/tools/dev.example.hello/echo/approve";
    // The tool stands in no catalog here, but it is taken on all the same.
    edge.call("POST", path).send().await.refused(404, "tool.not_found");
    let diff = edge.get("/v1/tools/dev.example.hello/echo/diff").await.json();
    assert_eq!((&diff["changed"], &diff["pinned"]), (&json!(false), &diff["offered"]));

    // Tools of the core do not change, and others are not there.
    assert_eq!(edge.get("/v1/tools/wharf/echo/diff").await.json()["changed"], false);
    for path in ["/v1/tools/dev.example.hello/none/diff", "/v1/tools/wharf/none/diff"] {
        edge.get(path).await.refused(404, "tool.not_found");
    }
    let none = edge.call("POST", "/v1/tools/dev.example.hello/none/approve").send().await;
    none.refused(404, "tool.not_found");
}

#[tokio::test]
async fn agents_are_listed_by_id_on_pages_of_any_size() {
    let edge = edge_with(&ScriptedAgents::new()).await;
    let mut expect = Vec::new();
    for letter in ["c", "a", "e", "b", "d"] {
        let id = format!("dev.example.{letter}");
        edge.add_agent(&id).await;
        expect.push(id);
    }
    expect.sort();
    for limit in [1, 2, 4, 5, 200] {
        let found = edge.pages("/v1/agents", limit).await;
        let ids: Vec<_> = found.iter().map(|item| item["agent_id"].clone()).collect();
        assert_eq!(ids, expect, "{limit}");
    }
    let tools = edge.get("/v1/tools?limit=1").await.json();
    let foreign = tools["next_cursor"].as_str().expect("more tools");
    let wrong = edge.get(&format!("/v1/agents?cursor={foreign}")).await;
    wrong.refused(400, "request.cursor_invalid");
}

#[tokio::test]
async fn what_does_not_fit_is_refused() {
    let edge = edge_with(&ScriptedAgents::new()).await;
    let fault = edge.post("/v1/agents", json!({"folder": "agents/hello"})).await;
    let fault = fault.refused(400, "request.invalid");
    assert_eq!(fault["details"]["field"], "folder");
    let invalid = edge.post("/v1/agents", json!({"folder": "/agents/empty"})).await;
    invalid.refused(422, "agent.manifest_invalid");
    edge.post("/v1/agents", json!({"dir": "/x"})).await.refused(400, "request.invalid");
    edge.call("POST", "/v1/agents").send().await.refused(400, "request.invalid");
    edge.get("/v1/agents/a%20b").await.refused(400, "request.invalid");
    for verb in ["start", "stop", "restart"] {
        let answer = edge.call("POST", &format!("/v1/agents/dev.nobody/{verb}")).send().await;
        answer.refused(404, "agent.not_found");
    }
    edge.get("/v1/agents/dev.nobody/logs").await.refused(404, "agent.not_found");
    edge.get("/v1/agents/dev.nobody/logs?follow=true").await.refused(404, "agent.not_found");
}

#[tokio::test]
async fn nobody_steers_agents_without_a_token() {
    let edge = edge_with(&ScriptedAgents::new()).await;
    edge.add_agent(HELLO).await;
    for (method, rest) in [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/approve"),
        ("POST", "/start"),
        ("POST", "/stop"),
        ("POST", "/restart"),
        ("GET", "/logs"),
        ("GET", "/logs?follow=true"),
    ] {
        let call = || edge.call(method, &format!("{PATH}{rest}"));
        call().header("authorization", "").send().await.refused(401, "auth.required");
        call().header("authorization", "Bearer x").send().await.refused(401, "auth.invalid");
    }
    for method in ["GET", "POST"] {
        let call = edge.call(method, "/v1/agents").header("authorization", "");
        call.send().await.refused(401, "auth.required");
    }
    assert_eq!(edge.get(PATH).await.json()["state"], "added");
}

#[tokio::test]
async fn a_core_without_agents_says_so() {
    let edge = Edge::start().await;
    assert_eq!(edge.get("/v1/agents").await.json(), json!({"items": [], "next_cursor": null}));
    edge.get(PATH).await.refused(404, "agent.not_found");
    let add = edge.post("/v1/agents", json!({"folder": "/agents/dev.example.hello"})).await;
    add.refused(404, "agent.not_found");
}

#[tokio::test]
async fn a_fault_inside_is_answered_without_detail() {
    let edge = edge_with(&ScriptedAgents::new()).await;
    let answer = edge.post("/v1/agents", json!({"folder": BROKEN_FOLDER})).await;
    answer.refused(500, "core.internal");
    assert!(!answer.text().contains("c4nary"), "{}", answer.text());
    assert_eq!(edge.add_agent(HELLO).await["state"], "added", "the others go on");
}

#[tokio::test]
async fn what_was_asked_for_is_done_although_the_asker_hung_up() {
    let agents = ScriptedAgents::closed();
    let scripted = Arc::clone(&agents);
    let edge = Edge::start_with(|options| {
        options.agents = Some(scripted);
        options.limits.connections_max = 1;
    })
    .await;
    edge.add_agent(HELLO).await;
    edge.post(&format!("{PATH}/approve"), json!({"all": true})).await;
    edge.act("start").await;

    let head = edge.call("POST", &format!("{PATH}/stop")).head();
    let mut stream = TcpStream::connect(edge.server.addr()).await.expect("connects");
    stream.write_all(head.as_bytes()).await.expect("sends");
    eventually(async || (agents.at_gate.load(Ordering::SeqCst) == 1).then_some(())).await;
    drop(stream);
    // There is room for one connection, so whoever is answered now knows that the other is gone.
    assert_eq!(edge.get(PATH).await.json()["state"], "starting");
    agents.open();
    eventually(async || (edge.get(PATH).await.json()["state"] == "stopped").then_some(())).await;
}
