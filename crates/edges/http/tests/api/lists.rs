//! Lists: pages, cursors, filters.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf_domain::{Availability, Resolution, ToolDef};
use wharf_engine::{Dispatch, ProviderSink};
use wharf_vocab::{AttemptId, Fault, ProviderId, ToolId};

use crate::support::Edge;

impl Edge {
    /// Reads a list page by page; each page but the last must be full.
    pub(crate) async fn pages(&self, path: &str, limit: usize) -> Vec<Value> {
        let joint = if path.contains('?') { '&' } else { '?' };
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = self.get(&format!("{path}{joint}limit={limit}{cursor}")).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let page = answer.json();
            let found = page["items"].as_array().expect("items").clone();
            assert!(found.len() <= limit, "{} items on a page of {limit}", found.len());
            items.extend(found);
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
            assert!(items.len() < 10_000, "the list does not end");
        }
    }
}

fn ids(items: &[Value], key: &str) -> Vec<String> {
    items.iter().map(|item| item[key].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn runs_are_listed_newest_first_on_pages_of_any_size() {
    let edge = Edge::start().await;
    for n in 0..7 {
        let body = json!({"tool": "wharf/echo", "run_id": format!("r{n}")});
        assert_eq!(edge.post("/v1/runs?wait=20s", body).await.status, 200);
    }
    let expect: Vec<_> = (0..7).rev().map(|n| format!("r{n}")).collect();
    for limit in [1, 2, 3, 7, 200] {
        assert_eq!(ids(&edge.pages("/v1/runs", limit).await, "run_id"), expect, "{limit}");
    }
    for item in edge.pages("/v1/runs", 7).await {
        for left_out in ["inputs", "outputs", "artifacts", "receipt", "ask", "hold_micro"] {
            assert!(item.get(left_out).is_none(), "{left_out} stands in {item}");
        }
    }
    let shown = edge.get("/v1/runs/r0").await.json();
    assert!(shown["outputs"].is_object() && shown["artifacts"].is_array(), "{shown}");
}

#[tokio::test]
async fn runs_are_listed_newest_first_over_both_durabilities() {
    let edge = Edge::start().await;
    for n in 0..9 {
        let durability = if n % 3 == 0 { "memory" } else { "journal" };
        let body =
            json!({"tool": "wharf/echo", "run_id": format!("r{n}"), "durability": durability});
        assert_eq!(edge.post("/v1/runs?wait=20s", body).await.status, 200);
    }
    for limit in [1, 2, 3, 4, 9, 50] {
        let items = edge.pages("/v1/runs", limit).await;
        let times = ids(&items, "created_at");
        assert!(times.is_sorted_by(|newer, older| newer >= older), "{limit}: {times:?}");
        let mut found = ids(&items, "run_id");
        found.sort();
        let expect: Vec<_> = (0..9).map(|n| format!("r{n}")).collect();
        assert_eq!(found, expect, "{limit}: each stands there once");
        for item in &items {
            assert!(item.get("outputs").is_none() && item.get("artifacts").is_none(), "{item}");
        }
    }
    let one = edge.get("/v1/runs/r0").await.json();
    assert!(one["outputs"].is_object() && one["artifacts"].is_array(), "{one}");
}

#[tokio::test]
async fn runs_can_be_filtered() {
    let edge = Edge::start().await;
    edge.post("/v1/worlds", json!({"world": "lab"})).await;
    for (id, tool, world) in
        [("a", "wharf/echo", "default"), ("b", "wharf/fail", "default"), ("c", "wharf/echo", "lab")]
    {
        let body = json!({"tool": tool, "run_id": id, "world": world});
        assert_eq!(edge.post("/v1/runs?wait=20s", body).await.status, 200);
    }
    for (query, expect) in [
        ("?tool=wharf/echo", vec!["c", "a"]),
        ("?tool=wharf%2Ffail", vec!["b"]),
        ("?world=lab", vec!["c"]),
        ("?status=failed", vec!["b"]),
        ("?status=succeeded&world=default", vec!["a"]),
        ("?status=running", vec![]),
        ("?zebra=1", vec!["c", "b", "a"]),
        ("?since=1h", vec!["c", "b", "a"]),
        ("?until=1h", vec![]),
        ("?since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z", vec![]),
    ] {
        let found = edge.pages(&format!("/v1/runs{query}"), 1).await;
        assert_eq!(ids(&found, "run_id"), expect, "{query}");
    }
    // Exactly between two of them.
    let created = edge.get("/v1/runs/b").await.json()["created_at"].clone();
    let created = created.as_str().expect("a time");
    let since = edge.pages(&format!("/v1/runs?since={created}"), 1).await;
    let until = edge.pages(&format!("/v1/runs?until={created}"), 1).await;
    assert_eq!(since.len() + until.len(), 3, "each run is on one side");
    assert!(ids(&since, "run_id").contains(&"b".to_owned()), "{since:?}");
    for bad in ["since=yesterday", "until=2020", "since=1h&until=2h"] {
        edge.get(&format!("/v1/runs?{bad}")).await.refused(400, "request.invalid");
    }
}

#[tokio::test]
async fn tools_are_listed_and_shown() {
    let edge = Edge::start().await;
    let all = edge.pages("/v1/tools", 200).await;
    let names = ids(&all, "tool_id");
    for limit in [1, 2, 4] {
        assert_eq!(ids(&edge.pages("/v1/tools", limit).await, "tool_id"), names);
    }
    assert!(names.contains(&"wharf/approve-me".to_owned()), "{names:?}");
    for tool in &all {
        let path = format!("/v1/tools/{}", tool["tool_id"].as_str().expect("an id"));
        assert_eq!(&edge.get(&path).await.json(), tool);
        assert_eq!(tool["state"], "available");
        assert_eq!(tool["provider"], "wharf");
        assert_eq!(tool["input_schema"]["type"], "object", "{tool}");
        assert_eq!(tool["requires_directive"], tool["name"] == "approve-me");
    }
}

/// Takes attempts and does nothing with them.
#[derive(Default)]
struct Idle(std::sync::Mutex<Vec<Dispatch>>);

impl ProviderSink for Idle {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        self.0.lock().expect("whole").push(dispatch);
        Ok(())
    }

    fn cancel(&self, _: &AttemptId, _: &str, _: u64) {}

    fn answer(&self, _: &AttemptId, _: &str, _: &Resolution) {}
}

#[tokio::test]
async fn a_tools_state_is_that_of_its_provider() {
    let edge = Edge::start().await;
    let provider = ProviderId::new("dev.example.hello").expect("valid");
    let tool = ToolId::new("dev.example.hello/echo").expect("valid");
    let mut def = ToolDef::new(tool, "", json!({"type": "object"}));
    (def.tags, def.capabilities) = (vec!["demo".to_owned()], vec!["mock".to_owned()]);
    def.mock = true;
    let tools = vec![def];
    let idle = Arc::new(Idle::default());
    edge.handle.providers().register(provider.clone(), tools, idle).await.expect("registers");
    let unhealthy = "its provider is not healthy";
    for (availability, state, reason) in [
        (Availability::Coming, "starting", json!(null)),
        (Availability::Up, "available", json!(null)),
        (Availability::Unhealthy, "unavailable", json!(unhealthy)),
        (Availability::down("exit code 1"), "unavailable", json!("exit code 1")),
    ] {
        edge.handle
            .providers()
            .set_availability(provider.clone(), availability)
            .await
            .expect("set");
        let shown = edge.get("/v1/tools/dev.example.hello/echo").await.json();
        let said = (&shown["tags"], &shown["capabilities"], &shown["mock"]);
        assert_eq!(said, (&json!(["demo"]), &json!(["mock"]), &json!(true)), "r068");
        assert_eq!((&shown["state"], &shown["state_reason"]), (&json!(state), &reason));
        let listed = edge.pages("/v1/tools", 2).await;
        assert!(listed.contains(&shown), "{listed:?}");
    }
}

#[tokio::test]
async fn worlds_are_listed_by_name() {
    let edge = Edge::start().await;
    for world in ["zoo", "attic", "Lab"] {
        let body = json!({"world": world, "limit_micro": 5});
        let made = edge.post("/v1/worlds", body).await;
        assert_eq!((made.status, &made.json()["limit_micro"]), (201, &json!(5)));
    }
    for limit in [1, 3, 200] {
        let found = edge.pages("/v1/worlds", limit).await;
        assert_eq!(ids(&found, "world"), ["Lab", "attic", "default", "zoo"]);
    }
    assert_eq!(edge.get("/v1/worlds/default").await.json().get("limit_micro"), None);
}

#[tokio::test]
async fn t040_a_cursor_of_files_is_good_for_its_world_and_question_only() {
    let edge = Edge::start().await;
    assert_eq!(edge.post("/v1/worlds", json!({"world": "lab"})).await.status, 201);
    for path in ["/a/1", "/a/2", "/a/3"] {
        assert_eq!(edge.put(path, b"x").await.status, 201);
    }
    let list = |world: &str, query: &str| {
        let path = format!("/v1/worlds/{world}/artifacts?limit=1&{query}");
        async { edge.get(&{ path }).await }
    };
    let page = list("default", "prefix=/a/").await.json();
    let cursor = page["next_cursor"].as_str().expect("there are more").to_owned();
    let next = list("default", &format!("prefix=/a/&cursor={cursor}")).await.json();
    assert_eq!(next["items"][0]["path"], "/a/2");
    for (world, query) in
        [("lab", "prefix=/a/"), ("default", "prefix=/a"), ("default", ""), ("lab", "")]
    {
        let answer = list(world, &format!("{query}&cursor={cursor}")).await;
        answer.refused(400, "request.cursor_invalid");
    }
    let locals = list("default", &format!("prefix=/a/&local=true&cursor={cursor}")).await;
    locals.refused(400, "request.cursor_invalid");
}

#[tokio::test]
async fn the_audit_is_read_in_order() {
    let edge = Edge::start().await;
    for _ in 0..5 {
        edge.run("wharf/echo", json!({"secret": "c4nary"})).await;
    }
    let all = edge.pages("/v1/audit", 200).await;
    let numbers: Vec<_> = all.iter().map(|record| record["id"].as_u64().expect("an id")).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.len() > 10, "{numbers:?}");
    assert_eq!(edge.pages("/v1/audit", 3).await, all);
    let middle = numbers[numbers.len() / 2];
    let behind = edge.get(&format!("/v1/audit?after={middle}&limit=2")).await.json();
    assert!(behind["items"][0]["id"].as_u64() > Some(middle));
    assert_eq!(behind["items"].as_array().map(Vec::len), Some(2));
    let none = edge.get(&format!("/v1/audit?after={}", u64::MAX)).await.json();
    assert_eq!(none, json!({"items": [], "next_cursor": null}));
    let events: Vec<_> = ids(&all, "event");
    assert!(events.iter().any(|event| event == "world.created"), "{events:?}");
    assert!(!json!(all).to_string().contains("c4nary"));
}
