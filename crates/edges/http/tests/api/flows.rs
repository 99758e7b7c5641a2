//! Flows over REST: documents, what is wrong with them, messages and steps of runs.

use serde_json::{Value, json};

use crate::support::Edge;

fn document(text: &str) -> Value {
    json!({"name": "shout", "description": "Gives back what it was given.",
        "steps": [{"id": "say", "call": {"tool": "wharf/echo", "inputs": {"text": text}}}],
        "output": {"said": "${steps.say.outputs.text}"}})
}

fn add(document: &Value) -> Value {
    json!({ "document": document })
}

#[tokio::test]
async fn f019_flows_are_added_listed_shown_and_removed() {
    let edge = Edge::start().await;
    let made = edge.post("/v1/flows", add(&document("a"))).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    assert_eq!((&made["version"], &made["tool_id"]), (&json!(1), &json!("flow/shout@1")));
    let again = edge.post("/v1/flows", add(&document("a"))).await.json();
    assert_eq!(again["version"], 1, "the same document is the same version");
    assert_eq!(edge.post("/v1/flows", add(&document("b"))).await.json()["version"], 2);

    let list = edge.get("/v1/flows").await.json();
    assert_eq!(list["items"][0]["versions"], json!([1, 2]));
    assert_eq!(list["items"][0].get("document"), None, "lists leave it out");
    let newest = edge.get("/v1/flows/shout").await.json();
    assert_eq!(newest["document"], document("b"));
    assert!(newest["graph"].as_str().expect("text").starts_with("flowchart"));
    let first = edge.get("/v1/flows/shout/versions/1").await.json();
    assert_eq!(first["document"], document("a"));

    let tool = edge.get("/v1/tools/flow/shout").await.json();
    assert_eq!(tool["tool_id"], "flow/shout@2", "the newest version is the tool");
    let removed = edge.call("DELETE", "/v1/flows/shout/versions/2").send().await;
    assert_eq!(removed.status, 204, "{}", removed.text());
    assert_eq!(edge.get("/v1/flows/shout").await.json()["version"], 1);
    for path in ["/v1/flows/shout/versions/2", "/v1/flows/nobody"] {
        let missing = edge.get(path).await;
        assert_eq!((missing.status, missing.code()), (404, "flow.not_found".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn f005_what_is_wrong_with_a_document_is_told_with_its_places() {
    let edge = Edge::start().await;
    let wrong = document("${steps.nobody.outputs}");
    let checked = edge.post("/v1/flows/check", add(&wrong)).await;
    assert_eq!(checked.status, 200, "{}", checked.text());
    let checked = checked.json();
    assert_eq!(checked["ok"], false);
    assert_eq!(checked["findings"][0]["place"], "steps[0].inputs.text");
    let refused = edge.post("/v1/flows", add(&wrong)).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let error = &refused.json()["error"];
    assert_eq!(
        (&error["code"], &error["details"]["findings"][0]["place"]),
        (&json!("flow.invalid"), &json!("steps[0].inputs.text"))
    );
    assert_eq!(edge.get("/v1/flows").await.json()["items"], json!([]));

    let mut deep = json!({"id": "last", "set": {"a": "1"}});
    for n in 0..31 {
        deep = json!({"id": format!("d{n}"), "seq": [deep]});
    }
    let mut nested = document("a");
    nested["steps"] = json!([deep]);
    nested["output"] = json!({"a": "${vars.a}"});
    let checked = edge.post("/v1/flows/check", add(&nested)).await.json();
    assert_eq!(checked["ok"], true, "32 deep is allowed: {checked}");
}

#[tokio::test]
async fn f017_a_message_is_kept_until_a_step_takes_it() {
    let edge = Edge::start().await;
    let waits = json!({"name": "waits", "steps": [
        {"id": "nap", "sleep": {"for": "200ms"}},
        {"id": "go", "signal": {"name": "go", "schema": {"type": "object"}}}],
        "output": {"came": "${steps.go.outputs}"}});
    assert_eq!(edge.post("/v1/flows", add(&waits)).await.status, 201);
    let run = json!({"tool": "flow/waits", "run_id": "w1"});
    let accepted = edge.post("/v1/runs", run).await;
    assert!(accepted.status == 201 || accepted.status == 202, "{}", accepted.text());
    let sent = edge.post("/v1/runs/w1/signals/go", json!({"value": {"n": 1}})).await;
    assert_eq!(sent.status, 202, "{}", sent.text());
    let unknown = edge.post("/v1/runs/w1/signals/gone", json!({})).await;
    assert_eq!(unknown.status, 404, "{}", unknown.text());
    let wrong = edge.post("/v1/runs/w1/signals/go", json!({"value": 7})).await;
    assert_eq!(wrong.status, 422, "{}", wrong.text());
    let run = edge.until("w1", "succeeded").await;
    assert_eq!(run["outputs"]["came"], json!({"n": 1}), "{run}");
    let over = edge.post("/v1/runs/w1/signals/go", json!({"value": {}})).await;
    assert_eq!(over.status, 409, "{}", over.text());
}

#[tokio::test]
async fn f019_a_token_without_the_verb_adds_nothing() {
    let edge = Edge::start().await;
    let made = edge.post("/v1/tokens", json!({"verbs": ["run", "read"]})).await.json();
    let token = made["token"].as_str().expect("a token").to_owned();
    let call = edge.call_as(&token, "POST", "/v1/flows").json(&add(&document("a")));
    let refused = call.send().await;
    assert_eq!((refused.status, refused.code()), (403, "permission.denied".to_owned()));
    let writer = edge.post("/v1/tokens", json!({"verbs": ["flow:write"]})).await.json();
    let writer = writer["token"].as_str().expect("a token").to_owned();
    let call = edge.call_as(&writer, "POST", "/v1/flows").json(&add(&document("a")));
    assert_eq!(call.send().await.status, 201);
}

#[tokio::test]
async fn f013_f003_what_a_flow_costs_and_says_is_shown_and_force_ends_it() {
    let edge = Edge::start().await;
    let form = json!({"name": "long", "steps": [
        {"id": "pay", "call": {"tool": "wharf/sleep", "inputs": {"ms": 1, "cost_micro": 1500}}},
        {"id": "half", "set": {"status": "'half of it'"}},
        {"id": "nap", "sleep": {"for": "1h"}}],
        "on_cancel": {"id": "last", "sleep": {"for": "4m"}}, "output": {}});
    assert_eq!(edge.post("/v1/flows", add(&form)).await.status, 201);
    let made = edge.post("/v1/runs", json!({"tool": "flow/long", "run_id": "l1"})).await;
    assert!(made.status == 201 || made.status == 202, "{}", made.text());
    let mut run = json!({});
    for _ in 0..500 {
        run = edge.get("/v1/runs/l1").await.json();
        if run["flow"]["status"].is_string() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let shown = json!({"version": 1, "cost_micro": 1500, "steps": 2, "status": "half of it"});
    assert_eq!(run["flow"], shown, "{run}");
    assert_eq!(run["cost_micro"], 0, "what its steps cost is not counted twice");
    let listed = edge.get("/v1/runs?tool=flow/long@1").await.json();
    assert_eq!(listed["items"][0].get("flow"), None, "lists leave it out");

    let canceled = edge.post("/v1/runs/l1/cancel", json!({"reason": "Enough."})).await;
    assert_eq!(canceled.status, 202, "{}", canceled.text());
    assert_eq!(
        edge.get("/v1/runs/l1").await.json()["ended_at"],
        Value::Null,
        "its last step goes on"
    );
    let forced = edge.post("/v1/runs/l1/cancel", json!({"reason": "Now.", "force": true})).await;
    assert_eq!((forced.status, &forced.json()["status"]), (202, &json!("canceled")));
    let run = edge.get("/v1/runs/l1").await.json();
    assert_eq!(run["error"]["message"], "Now.", "{run}");
    assert_eq!((&run["flow"]["cost_micro"], &run["flow"]["status"]), (&json!(1500), &Value::Null));
}
