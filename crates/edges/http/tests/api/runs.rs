//! Starting, waiting, showing, canceling and removing runs.

use serde_json::json;
use wharf_vocab::{RunId, RunKey, WorldId};

use crate::support::Edge;

#[tokio::test]
async fn a_run_that_is_waited_for_comes_back_finished() {
    let edge = Edge::start().await;
    let answer = edge.run("wharf/echo", json!({"text": "hi"})).await;
    assert_eq!(answer.status, 200);
    let run = answer.json();
    assert_eq!(run["status"], "succeeded");
    assert_eq!(run["outputs"], json!({"text": "hi"}));
    assert_eq!((&run["world"], &run["mode"]), (&json!("default"), &json!("real")));
    assert_eq!((&run["attempt"], &run["cost_micro"]), (&json!(1), &json!(0)));
    assert_eq!(run["artifacts"], json!([]));
    for time in ["created_at", "started_at", "ended_at"] {
        let text = run[time].as_str().expect("a time");
        assert!(text.len() == 24 && text.ends_with('Z'), "{text}");
    }
    let shown = edge.get(&format!("/v1/runs/{}", run["run_id"].as_str().expect("an id"))).await;
    assert_eq!((shown.status, shown.json()), (200, run));
}

#[tokio::test]
async fn a_run_that_is_not_waited_for_is_accepted_at_once() {
    let edge = Edge::start().await;
    let answer = edge.post("/v1/runs", json!({"tool": "wharf/sleep", "inputs": {"ms": 60_000}}));
    let answer = answer.await;
    assert_eq!(answer.status, 202);
    let body = answer.json();
    assert_eq!(body.as_object().expect("an object").len(), 2, "{body}");
    assert!(["queued", "running"].contains(&body["status"].as_str().expect("a status")));
}

#[tokio::test]
async fn a_wait_that_is_too_short_leaves_the_run_going() {
    let edge = Edge::start().await;
    let body = json!({"tool": "wharf/sleep", "inputs": {"ms": 60_000}});
    let answer = edge.post("/v1/runs?wait=50ms", body).await;
    assert_eq!(answer.status, 202);
    assert_eq!(answer.json()["status"], "running");
}

#[tokio::test]
async fn a_failed_run_is_still_a_finished_run() {
    let edge = Edge::start().await;
    let inputs = json!({"code": "acme.no_stock", "message": "Sold out."});
    let answer = edge.run("wharf/fail", inputs).await;
    assert_eq!(answer.status, 200);
    let run = answer.json();
    assert_eq!(run["status"], "failed");
    assert_eq!(run["error"]["code"], "acme.no_stock");
    assert_eq!(run["error"]["message"], "Sold out.");
    assert_eq!(run["error"]["details"]["executed"], "yes");
}

#[tokio::test]
async fn one_key_stands_for_one_request() {
    let edge = Edge::start().await;
    let body =
        |n: u32| json!({"tool": "wharf/echo", "inputs": {"n": n}, "idempotency_key": "first"});
    let first = edge.post("/v1/runs?wait=20s", body(1)).await.json();
    let again = edge.post("/v1/runs?wait=20s", body(1)).await;
    assert_eq!((again.status, again.json()), (200, first.clone()));
    let again = edge.post("/v1/runs", body(1)).await;
    assert_eq!(again.status, 202);
    assert_eq!(again.json(), json!({"run_id": first["run_id"], "status": "succeeded"}));
    edge.post("/v1/runs", body(2)).await.refused(409, "run.conflict");

    // The same for an id of the caller's own.
    let own = |n: u32| json!({"tool": "wharf/echo", "inputs": {"n": n}, "run_id": "mine"});
    assert_eq!(edge.post("/v1/runs?wait=20s", own(1)).await.json()["run_id"], "mine");
    assert_eq!(edge.post("/v1/runs", own(1)).await.status, 202);
    edge.post("/v1/runs", own(2)).await.refused(409, "run.conflict");
}

#[tokio::test]
async fn a_run_can_be_canceled_with_and_without_a_reason() {
    let edge = Edge::start().await;
    for body in [None, Some(json!({})), Some(json!({"reason": "Changed my mind."}))] {
        let run = edge.begin("wharf/sleep", json!({"ms": 60_000})).await;
        let call = edge.call("POST", &format!("/v1/runs/{run}/cancel"));
        let answer = match &body {
            Some(body) => call.json(body).send().await,
            None => call.send().await,
        };
        assert_eq!(answer.status, 202, "{answer:?}");
        let shown = edge.until(&run, "canceled").await;
        assert_eq!(shown["error"]["code"], "tool.canceled");
        // It is over, and asking again changes nothing.
        let again = edge.call("POST", &format!("/v1/runs/{run}/cancel")).send().await;
        assert_eq!(again.json(), json!({"run_id": run, "status": "canceled"}));
    }
}

#[tokio::test]
async fn only_a_run_that_is_over_can_be_removed() {
    let edge = Edge::start().await;
    let run = edge.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let path = format!("/v1/runs/{run}");
    edge.call("DELETE", &path).send().await.refused(409, "run.still_open");
    edge.call("POST", &format!("{path}/cancel")).send().await;
    edge.until(&run, "canceled").await;
    let answer = edge.call("DELETE", &path).send().await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    edge.get(&path).await.refused(404, "run.not_found");
    edge.call("DELETE", &path).send().await.refused(404, "run.not_found");
}

#[tokio::test]
async fn runs_live_in_their_world() {
    let edge = Edge::start().await;
    let made = edge.post("/v1/worlds", json!({"world": "lab"})).await;
    assert_eq!(made.status, 201);
    let body = json!({"tool": "wharf/echo", "world": "lab", "run_id": "r1"});
    assert_eq!(edge.post("/v1/runs?wait=20s", body).await.json()["world"], "lab");
    assert_eq!(edge.get("/v1/runs/r1?world=lab").await.status, 200);
    edge.get("/v1/runs/r1").await.refused(404, "run.not_found");
    edge.post("/v1/runs", json!({"tool": "wharf/echo", "world": "moon"}))
        .await
        .refused(404, "world.not_found");
}

#[tokio::test]
async fn a_run_in_memory_looks_like_any_other() {
    let edge = Edge::start().await;
    let body = json!({"tool": "wharf/echo", "inputs": {"a": 1}, "durability": "memory"});
    let run = edge.post("/v1/runs?wait=20s", body).await.json();
    assert_eq!((&run["status"], &run["durability"]), (&json!("succeeded"), &json!("memory")));
    let path = format!("/v1/runs/{}", run["run_id"].as_str().expect("an id"));
    assert_eq!(edge.get(&path).await.json(), run);
    let events = edge.events(run["run_id"].as_str().expect("an id"), "").await.rest().await;
    assert_eq!(events.last().expect("events").event, "finished");
}

#[tokio::test]
async fn a_budget_that_is_too_small_refuses_the_run() {
    let edge = Edge::start().await;
    let world = json!({"world": "poor", "limit_micro": 10, "default_hold_micro": 11});
    edge.post("/v1/worlds", world).await;
    let body = json!({"tool": "wharf/sleep", "inputs": {"ms": 1}, "world": "poor"});
    edge.post("/v1/runs", body.clone()).await.refused(402, "budget.exceeded");
    let budget = json!({"limit_micro": 100, "default_hold_micro": 11});
    let set = edge.call("PUT", "/v1/worlds/poor/budget").json(&budget).send().await;
    assert_eq!((set.status, &set.json()["limit_micro"]), (200, &json!(100)));
    assert_eq!(edge.post("/v1/runs?wait=20s", body).await.status, 200);
    let priced =
        json!({"tool": "wharf/sleep", "inputs": {"ms": 0, "cost_micro": 7}, "world": "poor"});
    assert_eq!(edge.post("/v1/runs?wait=20s", priced).await.json()["cost_micro"], 7);
    let shown = edge.get("/v1/worlds/poor").await.json();
    assert_eq!((&shown["spent_micro"], &shown["held_micro"]), (&json!(7), &json!(0)));
    edge.get("/v1/worlds/moon").await.refused(404, "world.not_found");
    edge.post("/v1/worlds", json!({"world": "poor"})).await.refused(409, "world.exists");
}

#[tokio::test]
async fn r166_where_a_caller_stands_is_part_of_the_request_and_kept_only_when_allowed() {
    let edge = Edge::start().await;
    let request = |root: &str| {
        json!({"tool": "wharf/echo", "idempotency_key": "k",
            "context": {"project_root": root, "resource_paths": ["/p/a"], "ui": {"theme": "dark"}}})
    };
    let made = edge.post("/v1/runs?wait=20s", request("/p")).await.json();
    let again = edge.post("/v1/runs?wait=20s", request("/p")).await.json();
    assert_eq!(made, again);
    edge.post("/v1/runs", request("/q")).await.refused(409, "run.conflict");
    let error = edge.post("/v1/runs", request("q")).await.refused(400, "request.invalid");
    assert_eq!(error["details"]["field"], "context.project_root");
    // Nobody approved these paths for the provider of this tool, so it is not told of them.
    let key = RunKey {
        world: WorldId::new("default").expect("valid"),
        run: RunId::new(made["run_id"].as_str().expect("an id")).expect("valid"),
    };
    let kept = edge.handle.runs().get(&key).await.expect("there").spec.context.clone();
    assert_eq!(kept.paths().count(), 0);
}

#[tokio::test]
async fn r034_a_run_always_says_what_it_is_part_of() {
    let edge = Edge::start().await;
    let run = edge.run("wharf/echo", json!({})).await.json();
    assert_eq!(run["correlation_id"], run["run_id"], "of itself, when nobody says otherwise");
    let body = json!({"tool": "wharf/echo", "inputs": {}, "correlation_id": "chat:7"});
    let run = edge.post("/v1/runs?wait=20s", body).await.json();
    assert_eq!(run["correlation_id"], "chat:7");
}

#[tokio::test]
async fn r170_the_trace_of_a_request_goes_with_its_run() {
    let edge = Edge::start().await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (header, kept) in [(trace, Some(trace)), ("no trace", None)] {
        let body = json!({"tool": "wharf/echo", "inputs": {}});
        let call = edge.call("POST", "/v1/runs?wait=20s").header("traceparent", header);
        let call = call.header("tracestate", "vendor=a1");
        let run = call.json(&body).send().await.json();
        let run = RunId::new(run["run_id"].as_str().expect("an id")).expect("valid");
        let key = RunKey { world: WorldId::new("default").expect("valid"), run };
        let known = edge.handle.runs().get(&key).await.expect("known");
        assert_eq!(known.spec.traceparent.as_deref(), kept);
        assert_eq!(known.spec.tracestate.as_deref(), kept.map(|_| "vendor=a1"));
    }
}
