//! Principals: each request is a run under the caller's grant.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{OWNER, Stage, acting, eventually};

#[tokio::test]
async fn k032_a_request_is_a_run_with_its_progress_and_its_outcome() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    peer.ask("1", "wharf/count", json!({"n": 2, "delay_ms": 0})).await;
    let mut said = Vec::new();
    let response = loop {
        let frame = peer.next().await.expect("a frame");
        if frame["type"] == "response" {
            break frame["response"].clone();
        }
        said.push(frame["data"].clone());
    };
    assert_eq!(response, json!({"status": "accepted", "content": {"n": 2, "sum": 3}}));
    assert!(said.contains(&json!({"phase": "counting", "fraction": 1.0})), "{said:?}");
    assert!(said.iter().any(|it| it["channel"] == "stdout"), "{said:?}");
    let runs = stage.runs_of("wharf/count").await;
    assert_eq!((runs.len(), &runs[0]["status"]), (1, &json!("succeeded")));
}

#[tokio::test]
async fn k032_values_of_tools_arrive_as_they_were_said() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let mut peer = stage.principal().await;
    peer.ask("1", "a", json!({})).await;
    let (id, _) = page.request().await;
    let values = [json!("growing"), json!("growing text"), json!({"status": "x"}), json!(null)];
    for value in &values {
        page.say(json!({"type": "progress", "id": id, "data": value})).await;
    }
    page.accept(&id, json!({})).await;
    for value in &values {
        assert_eq!(peer.hear("progress").await["data"], *value);
    }
    peer.response("1").await;
}

#[tokio::test]
async fn k032_each_outcome_has_its_answer() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let mut peer = stage.principal().await;
    for (given, told) in [
        (json!({"status": "declined"}), json!({"status": "denied"})),
        (json!({"status": "denied"}), json!({"status": "denied"})),
        (json!({"status": "cancelled"}), json!({"status": "cancelled"})),
    ] {
        peer.ask("1", "browser/a", json!({})).await;
        let (id, _) = page.request().await;
        page.answer(&id, given).await;
        assert_eq!(peer.response("1").await, told);
    }
    peer.ask("2", "wharf/fail", json!({"code": "acme.no", "message": "No."})).await;
    let failed = peer.response("2").await;
    assert_eq!((&failed["status"], &failed["content"]), (&json!("other"), &json!("No.")));
    assert_eq!(failed["fault"]["code"], "acme.no");
    peer.ask("3", "wharf/count", json!({"n": "x"})).await;
    assert_eq!(peer.response("3").await["fault"]["code"], "tool.invalid_input");
    peer.ask("4", "acme/none", json!({})).await;
    assert_eq!(peer.response("4").await["fault"]["code"], "tool.not_found");
    peer.say(json!({"type": "offer", "tools": []})).await;
    assert_eq!(peer.hear("offered").await["error"]["code"], "request.invalid");
}

#[tokio::test]
async fn k032_a_name_stands_for_the_one_tool_that_has_it() {
    let stage = Stage::start().await;
    let mut browser = stage.operative("browser", acting("get-location")).await;
    let mut peer = stage.principal().await;
    peer.ask("1", "get-location", json!({})).await;
    let (id, _) = browser.request().await;
    browser.accept(&id, json!({"lat": 1})).await;
    assert_eq!(peer.response("1").await["content"], json!({"lat": 1}));
    let _desktop = stage.operative("desktop", acting("get-location")).await;
    peer.ask("2", "get-location", json!({})).await;
    let fault = peer.response("2").await["fault"].clone();
    assert_eq!(fault["code"], "tool.not_found");
    let candidates = json!(["browser/get-location", "desktop/get-location"]);
    assert_eq!(fault["details"]["candidates"], candidates);
    // Whoever may use one of them only means that one.
    let rights = json!({"verbs": ["run", "read"], "tools": ["browser/*"]});
    let (token, _) = stage.token(rights).await;
    let mut narrow = stage.connect("role=principal", &token, "").await.expect("connects");
    narrow.ask("3", "get-location", json!({})).await;
    browser.request().await;
}

#[tokio::test]
async fn k032_a_principal_does_what_its_token_lets_it_do() {
    let stage = Stage::start().await;
    let rights = json!({"verbs": ["run", "read"], "tools": ["wharf/echo"], "worlds": ["other"]});
    let (token, id) = stage.token(rights).await;
    let refused = stage.connect("role=principal", &token, "").await.expect_err("another world");
    assert_eq!(refused.refused(), (403, "permission.denied"));
    let query = "role=principal&world=other";
    let mut peer = stage.connect(query, &token, "").await.expect("connects");
    peer.ask("1", "wharf/echo", json!({"a": 1})).await;
    assert_eq!(peer.response("1").await["content"], json!({"a": 1}));
    peer.ask("2", "wharf/count", json!({"n": 1})).await;
    assert_eq!(peer.response("2").await, json!({"status": "denied"}));
    stage.call(&format!("DELETE /v1/tokens/{id}"), &Value::Null).await;
    assert_eq!(peer.closed().await.0, 1008);
}

#[tokio::test]
async fn k026_a_cancel_calls_the_run_off_and_is_harmless_when_it_comes_late() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    peer.ask("1", "wharf/sleep", json!({"ms": 60_000})).await;
    let run = only(&stage, "wharf/sleep").await;
    peer.say(json!({"type": "cancel", "id": "1"})).await;
    stage.until(&run, "canceled").await;
    peer.say(json!({"type": "cancel", "id": "1"})).await;
    peer.ask("2", "wharf/echo", json!({})).await;
    peer.response("2").await;
    peer.say(json!({"type": "cancel", "id": "2"})).await;
    // A request that is called off at once leaves nothing running either.
    for n in 0..20 {
        peer.ask(&format!("x{n}"), "wharf/sleep", json!({"ms": 60_000})).await;
        peer.say(json!({"type": "cancel", "id": format!("x{n}")})).await;
    }
    eventually(async || {
        let runs = stage.runs_of("wharf/sleep").await;
        let over = runs.iter().all(|run| run["status"] == "canceled");
        (runs.len() == 21 && over).then_some(())
    })
    .await;
}

/// The only run of a tool, once there is one.
async fn only(stage: &Stage, tool: &str) -> String {
    eventually(async || {
        let runs = stage.runs_of(tool).await;
        let run = runs.iter().find(|run| run["status"] == "running")?;
        run["run_id"].as_str().map(str::to_owned)
    })
    .await
}

#[tokio::test]
async fn k032_a_connection_that_ends_calls_off_what_it_started_unless_it_detached() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    peer.ask("1", "wharf/sleep", json!({"ms": 60_000})).await;
    let run = only(&stage, "wharf/sleep").await;
    drop(peer);
    stage.until(&run, "canceled").await;
    let query = "role=principal&detach=true";
    let mut peer = stage.connect(query, OWNER, "").await.expect("connects");
    let mut page = stage.operative("browser", acting("a")).await;
    peer.ask("1", "browser/a", json!({})).await;
    let (id, _) = page.request().await;
    drop(peer);
    page.say(json!({"type": "progress", "id": id, "data": 1})).await;
    page.accept(&id, json!({"n": 1})).await;
    let run = stage.runs_of("browser/a").await[0]["run_id"].as_str().expect("an id").to_owned();
    assert_eq!(stage.until(&run, "succeeded").await["outputs"], json!({"n": 1}));
}

#[tokio::test]
async fn k032_a_core_that_stops_calls_off_what_principals_wait_for() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    peer.ask("1", "wharf/sleep", json!({"ms": 60_000})).await;
    let run = only(&stage, "wharf/sleep").await;
    stage.edge.drain().await;
    stage.until(&run, "canceled").await;
}

#[tokio::test]
async fn k025_more_requests_than_may_be_open_are_told_so() {
    let stage = Stage::with(|options| options.limits.served_max = 4).await;
    let mut peer = stage.principal().await;
    for n in 0..4 {
        peer.ask(&n.to_string(), "wharf/sleep", json!({"ms": 60_000})).await;
    }
    peer.ask("more", "wharf/echo", json!({})).await;
    assert_eq!(peer.response("more").await["fault"]["code"], "tool.busy");
    peer.say(json!({"type": "cancel", "id": "0"})).await;
    peer.ask("again", "wharf/echo", json!({})).await;
    assert_eq!(peer.response("again").await["status"], "accepted");
}

#[tokio::test]
async fn k032_a_slow_reader_slows_no_run_and_still_gets_its_answers() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let mut slow = stage.principal().await;
    slow.ask("1", "browser/a", json!({})).await;
    let (id, _) = page.request().await;
    let text = "x".repeat(16 * 1024);
    for n in 0..400 {
        let data = json!({"n": n, "text": text});
        page.say(json!({"type": "progress", "id": id, "data": data})).await;
    }
    page.accept(&id, json!({"done": true})).await;
    let run = stage.runs_of("browser/a").await[0]["run_id"].as_str().expect("an id").to_owned();
    // The run is over although nobody has read anything.
    stage.until(&run, "succeeded").await;
    let mut last = -1;
    loop {
        let frame = slow.next().await.expect("a frame");
        if frame["type"] == "response" {
            assert_eq!(frame["response"]["content"], json!({"done": true}));
            break;
        }
        let n = frame["data"]["n"].as_i64().expect("a number");
        assert!(n > last, "in order");
        last = n;
    }
}

#[tokio::test]
async fn k032_a_reader_that_reads_nothing_at_all_is_let_go() {
    let stage = Stage::with(|options| options.write_max = Duration::from_secs(1)).await;
    let mut page = stage.operative("browser", acting("a")).await;
    let mut deaf = stage.principal().await;
    deaf.ask("sleep", "wharf/sleep", json!({"ms": 60_000})).await;
    let sleeping = only(&stage, "wharf/sleep").await;
    let mut open = Vec::new();
    for n in 0..8 {
        deaf.ask(&n.to_string(), "browser/a", json!({})).await;
        open.push(page.request().await.0);
    }
    let text = "x".repeat(3 * 1024 * 1024);
    for id in open {
        page.accept(&id, json!({"text": text})).await;
    }
    // Its connection has ended, and with it what it still waited for.
    stage.until(&sleeping, "canceled").await;
    let mut read = 0;
    while deaf.next().await.is_ok() {
        read += 1;
    }
    assert!(read < 8, "what it did not read was not kept for it");
}

#[tokio::test]
async fn r034_what_one_connection_calls_is_part_of_one_session() {
    let stage = Stage::start().await;
    let (mut one, mut other) = (stage.principal().await, stage.principal().await);
    for (number, peer) in [("1", &mut one), ("2", &mut other)] {
        peer.ask(number, "wharf/echo", json!({"peer": number})).await;
        peer.response(number).await;
    }
    one.ask("3", "wharf/echo", json!({"peer": "1"})).await;
    one.response("3").await;
    let runs = stage.runs_of("wharf/echo").await;
    let sessions: Vec<&str> =
        runs.iter().map(|run| run["correlation_id"].as_str().expect("always there")).collect();
    assert_eq!(sessions.len(), 3);
    assert!(sessions.iter().all(|session| session.starts_with("session:")), "{sessions:?}");
    let distinct: std::collections::BTreeSet<_> = sessions.iter().collect();
    assert_eq!(distinct.len(), 2, "{sessions:?}");
}
