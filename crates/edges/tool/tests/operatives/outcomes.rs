//! What operatives answer, and what becomes of the run.

use serde_json::{Value, json};

use crate::stage::{Stage, acting};

#[tokio::test]
async fn k032_a_page_offers_a_tool_and_a_run_calls_it() {
    let stage = Stage::start().await;
    let tools = json!([{
        "name": "get-location", "description": "Locates the user",
        "input": {"type": "object", "properties": {"accuracy": {"type": "string"}},
                  "required": ["accuracy"]},
        "output": {"type": "object", "properties": {"lat": {"type": "number"}},
                   "required": ["lat"]},
        "progress": {"type": "object"},
    }]);
    let mut page = stage.operative("browser", tools).await;
    let wrong = json!({"tool": "browser/get-location", "inputs": {"accuracy": 5}});
    let refused = stage.call("POST /v1/runs", &wrong).await;
    assert_eq!(refused.refused(), (422, "tool.invalid_input"));
    let run = stage.run("browser/get-location", json!({"accuracy": "high"})).await;
    let (id, request) = page.request().await;
    let expected = json!({
        "id": id, "kind": "elicit", "type": "get-location", "payload": {"accuracy": "high"},
    });
    assert_eq!(request, expected);
    page.say(json!({"type": "progress", "id": id, "data": {"status": "locating"}})).await;
    page.accept(&id, json!({"lat": 52.5})).await;
    let ended = stage.until(&run, "succeeded").await;
    assert_eq!(ended["outputs"], json!({"lat": 52.5}));
    let events = stage.call(&format!("GET /v1/runs/{run}/events"), &Value::Null).await;
    assert_eq!(events.status, 200);
    let run = stage.run("browser/get-location", json!({"accuracy": "low"})).await;
    let (id, _) = page.request().await;
    page.accept(&id, json!({"lat": "north"})).await;
    let failed = stage.until(&run, "failed").await;
    assert_eq!(failed["error"]["code"], "tool.invalid_output");
}

#[tokio::test]
async fn k032_each_answer_has_its_outcome() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let fault = json!({"code": "acme.no_stock", "message": "Sold out.", "retryable": false,
                       "details": {"sku": "x1"}});
    for (response, status, code, message) in [
        (json!({"status": "accepted", "content": {"b": 1}}), "succeeded", "", ""),
        (json!({"status": "accepted"}), "succeeded", "", ""),
        (json!({"ok": true}), "succeeded", "", ""),
        (json!({"status": "declined"}), "refused", "tool.declined", "declined"),
        (json!({"status": "denied"}), "refused", "permission.denied", "allow"),
        (json!({"status": "cancelled"}), "canceled", "tool.canceled", "called it off"),
        (json!({"status": "other", "content": "No GPS here"}), "failed", "tool.failed", "No GPS"),
        (json!({"status": "other", "content": ""}), "failed", "tool.failed", "The tool failed."),
        (json!({"status": "other", "content": {"why": 1}}), "failed", "tool.failed", "why"),
        (
            json!({"status": "other", "content": "Sold out.", "fault": fault}),
            "failed",
            "acme.no_stock",
            "Sold out.",
        ),
        (json!({"status": "invented"}), "failed", "tool.protocol_violation", "cannot be read"),
    ] {
        let run = stage.run("browser/a", json!({})).await;
        let (id, _) = page.request().await;
        page.answer(&id, response.clone()).await;
        let ended = stage.until(&run, status).await;
        if status != "succeeded" {
            assert_eq!(ended["error"]["code"], code, "{response}");
            let told = ended["error"]["message"].as_str().expect("text");
            assert!(told.contains(message), "{response}: {told}");
        }
    }
}

#[tokio::test]
async fn k032_values_that_are_no_objects_travel_as_themselves() {
    let stage = Stage::start().await;
    let tools = json!([{
        "name": "double", "description": "Doubles numbers.",
        "input": {"type": "array", "items": {"type": "number"}}, "output": {"type": "number"},
    }, {
        "name": "where", "description": "Says where.",
        "input": {"type": "null"}, "output": {"type": ["string", "null"]},
    }]);
    let mut page = stage.operative("maths", tools).await;
    let mut principal = stage.principal().await;
    principal.ask("1", "double", json!([1, 2])).await;
    let (id, request) = page.request().await;
    assert_eq!(request["payload"], json!([1, 2]));
    page.accept(&id, json!(6)).await;
    let accepted = json!({"status": "accepted", "content": 6});
    assert_eq!(principal.response("1").await, accepted);
    // The core's own callers see the object around it.
    let run = stage.run("maths/double", json!({"value": [4]})).await;
    let (id, request) = page.request().await;
    assert_eq!(request["payload"], json!([4]));
    page.accept(&id, json!("eight")).await;
    let failed = stage.until(&run, "failed").await;
    assert_eq!(failed["error"]["code"], "tool.invalid_output");
    principal.ask("2", "double", json!("text")).await;
    let answer = principal.response("2").await;
    assert_eq!(answer["fault"]["code"], "tool.invalid_input", "{answer}");
    let run = stage.run("maths/where", json!({})).await;
    let (id, request) = page.request().await;
    assert_eq!(request["payload"], Value::Null, "nothing need not be given");
    page.accept(&id, Value::Null).await;
    assert_eq!(stage.until(&run, "succeeded").await["outputs"], json!({"value": null}));
}

#[tokio::test]
async fn k032_many_requests_are_in_flight_and_answered_in_any_order() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let mut principal = stage.principal().await;
    let many = 100;
    for n in 0..many {
        principal.ask(&n.to_string(), "browser/a", json!({"n": n})).await;
    }
    let mut open = Vec::new();
    for _ in 0..many {
        let (id, request) = page.request().await;
        open.push((id, request["payload"]["n"].clone()));
    }
    for (id, n) in open.into_iter().rev() {
        page.accept(&id, json!({"n": n})).await;
    }
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..many {
        let frame = principal.hear("response").await;
        let n = frame["response"]["content"]["n"].clone();
        assert_eq!(frame["id"], n.to_string(), "{frame}");
        seen.insert(n.to_string());
    }
    assert_eq!(seen.len(), many);
}

#[tokio::test]
async fn k032_a_run_waits_for_an_operative_with_too_much_to_do() {
    let stage = Stage::with(|options| options.limits.calls_max = 1).await;
    let mut page = stage.operative("browser", acting("a")).await;
    let first = stage.run("browser/a", json!({})).await;
    let (id, _) = page.request().await;
    let second = stage.run("browser/a", json!({})).await;
    let run = crate::stage::eventually(async || {
        let run = stage.shown(&second).await;
        (run["waiting_for"]["kind"] == "room").then_some(run)
    });
    let run = run.await;
    assert_eq!((&run["status"], &run["attempt"]), (&json!("queued"), &json!(0)), "{run}");
    page.accept(&id, json!({})).await;
    stage.until(&first, "succeeded").await;
    let (id, _) = page.request().await;
    page.accept(&id, json!({})).await;
    let run = stage.until(&second, "succeeded").await;
    assert_eq!(run["attempt"], 1, "waiting was no try");
}

#[tokio::test]
async fn k026_a_run_that_is_canceled_or_takes_too_long_stops_its_operative() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let run = stage.run("browser/a", json!({})).await;
    let (id, _) = page.request().await;
    let canceled = stage.call(&format!("POST /v1/runs/{run}/cancel"), &Value::Null).await;
    assert_eq!(canceled.status, 202, "{canceled:?}");
    assert_eq!(page.hear("cancel").await["id"], json!(id));
    stage.until(&run, "canceled").await;
    // What it says now comes too late, and does no harm.
    page.accept(&id, json!({})).await;
    let body = json!({"tool": "browser/a", "inputs": {}, "timeout_ms": 1_000});
    let started = stage.call("POST /v1/runs", &body).await;
    let run = started.body["run_id"].as_str().expect("an id").to_owned();
    let (id, _) = page.request().await;
    assert_eq!(page.hear("cancel").await["id"], json!(id));
    assert_eq!(stage.until(&run, "failed").await["error"]["code"], "tool.timeout");
}
