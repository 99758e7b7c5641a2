//! What nobody gets by serving or calling.

use std::time::Duration;

use serde_json::{Value, json};

use crate::reader::Events;
use crate::stage::{Stage, acting};

#[tokio::test]
async fn k019_a_handler_calls_only_tools_that_its_own_token_allows_too() {
    let stage = Stage::start().await;
    let rights = json!({"verbs": ["serve"], "tools": ["flight/*", "wharf/echo"]});
    let (token, _) = stage.token(rights).await;
    let mut page = stage.operative_as(&token, "flight", acting("search")).await;
    // The owner may do everything; that does not make it the page's.
    stage.run("flight/search", json!({})).await;
    let (of, _) = page.request().await;
    page.ask_within(&of, "c1", "wharf/echo", json!({"a": 1})).await;
    assert_eq!(page.response("c1").await["content"], json!({"a": 1}));
    page.ask_within(&of, "c2", "wharf/count", json!({"n": 1})).await;
    assert_eq!(page.response("c2").await, json!({"status": "denied"}));
    page.ask_within(&of, "c3", "count", json!({"n": 1})).await;
    assert_eq!(page.response("c3").await["fault"]["code"], "tool.not_found");
    page.ask_within(&of, "c4", "sample", json!({"prompt": "Hi"})).await;
    assert_eq!(page.response("c4").await, json!({"status": "denied"}));
    assert!(stage.runs_of("wharf/count").await.is_empty());
}

#[tokio::test]
async fn k019_a_token_decides_nothing_about_what_was_started_with_it() {
    let stage = Stage::start().await;
    let policy = json!([{"tool": "wharf/echo", "approve": true, "audience": "any"}]);
    let world = json!({"world": "careful", "policy": policy});
    assert_eq!(stage.call("POST /v1/worlds", &world).await.status, 201);
    let verbs = ["serve", "approve", "answer", "read"];
    let rights = json!({"verbs": verbs, "tools": ["flight/*", "wharf/echo"]});
    let (token, _) = stage.token(rights).await;
    let mut page = stage.operative_as(&token, "flight", acting("search")).await;
    let body = json!({"tool": "flight/search", "inputs": {}, "world": "careful"});
    assert_eq!(stage.call("POST /v1/runs", &body).await.status, 202);
    let (of, _) = page.request().await;
    page.ask_within(&of, "c1", "wharf/echo", json!({"a": 1})).await;
    let approval = stage.question().await;
    let line = format!("POST /v1/approvals/{}/decide", approval["ask_id"].as_str().expect("an id"));
    let allow = json!({"decision": "allow"});
    let refused = stage.call_as(&token, &line, &allow).await;
    assert_eq!(refused.refused(), (403, "permission.denied"), "{refused:?}");
    assert!(stage.call(&line, &allow).await.status < 300);
    assert_eq!(page.response("c1").await["content"], json!({"a": 1}));
}

#[tokio::test]
async fn k019_a_tool_that_calls_itself_gets_no_deeper_than_others() {
    let stage = Stage::start().await;
    let mut page = stage.operative("flight", acting("search")).await;
    let run = stage.run("flight/search", json!({})).await;
    let (mut of, _) = page.request().await;
    let first = of.clone();
    let (mut deep, refused) = (0, "c8");
    loop {
        page.ask_within(&of, &format!("c{deep}"), "flight/search", json!({})).await;
        let frame = page.next().await.expect("a frame");
        if frame["type"] == "response" {
            assert_eq!(frame["id"], refused, "{frame}");
            assert_eq!(frame["response"]["status"], "other", "{frame}");
            break;
        }
        of = frame["payload"]["id"].as_str().expect("an id").to_owned();
        deep += 1;
    }
    // The first is answered, and all below it ends.
    page.accept(&first, json!({})).await;
    stage.until(&run, "succeeded").await;
    for run in stage.runs_of("flight/search").await {
        let id = run["run_id"].as_str().expect("an id");
        let status = if run["parent"].is_null() { "succeeded" } else { "canceled" };
        stage.until(id, status).await;
    }
}

#[tokio::test]
async fn k032_whoever_may_only_serve_does_nothing_else() {
    let stage = Stage::start().await;
    let (token, _) = stage.token(json!({"verbs": ["serve"], "tools": ["browser/*"]})).await;
    let _page = stage.operative_as(&token, "browser", acting("a")).await;
    let run = stage.run("browser/a", json!({})).await;
    let start = json!({"tool": "browser/a", "inputs": {}});
    for (line, body) in [
        ("POST /v1/runs".to_owned(), start),
        (format!("GET /v1/runs/{run}"), Value::Null),
        (format!("POST /v1/runs/{run}/cancel"), json!({})),
        ("GET /v1/inbox".to_owned(), Value::Null),
        ("GET /v1/operatives".to_owned(), Value::Null),
        ("DELETE /v1/operatives/browser".to_owned(), Value::Null),
        ("POST /v1/questions/a1/answer".to_owned(), json!({"value": 1})),
        ("POST /v1/approvals/a1/decide".to_owned(), json!({"decision": "allow"})),
        ("GET /v1/tool/sse?role=principal".to_owned(), Value::Null),
    ] {
        let answer = stage.call_as(&token, &line, &body).await;
        assert_eq!(answer.refused(), (403, "permission.denied"), "{line}: {answer:?}");
    }
}

#[tokio::test]
async fn k032_no_name_is_taken_by_spelling_it_otherwise() {
    let stage = Stage::start().await;
    let (token, _) = stage.token(json!({"verbs": ["serve"], "tools": ["browser/*"]})).await;
    for name in [
        "..",
        ".",
        "browser/x",
        "browser%2Fx",
        "browser%2F..",
        "browser@1",
        "a/browser@1",
        "browser%00",
        "browser%20",
        "%62rowser%2f",
        "browser,x",
        "*",
        "",
        "browser%E2%80%8B",
    ] {
        let query = format!("role=operative&provider={name}");
        let refused = stage.connect(&query, &token, "").await.expect_err(name);
        assert_eq!(refused.refused(), (400, "request.invalid"), "{name}: {refused:?}");
    }
    for name in ["Browser", "BROWSER", "browser.", "browser-x", "xbrowser", "wharf", "S-1"] {
        let query = format!("role=operative&provider={name}");
        let refused = stage.connect(&query, &token, "").await.expect_err(name);
        assert_eq!(refused.refused(), (403, "permission.denied"), "{name}: {refused:?}");
    }
    // The name in another spelling of the query is the name.
    let query = "role=operative&provider=%62rowser";
    stage.connect(query, &token, "").await.expect("granted");
    assert!(
        stage.call("GET /v1/operatives", &Value::Null).await.body["items"][0]["name"] == "browser"
    );
}

#[tokio::test]
async fn k032_a_token_that_expires_ends_its_connections() {
    let stage = Stage::start().await;
    let rights =
        json!({"verbs": ["serve", "run"], "tools": ["browser/*", "wharf/*"], "ttl_ms": 1_500});
    let (token, _) = stage.token(rights).await;
    let mut page = stage.operative_as(&token, "browser", acting("a")).await;
    let mut principal = stage.connect("role=principal", &token, "").await.expect("let in");
    let mut events = Events::open(stage.addr(), "role=principal", &token, "").await;
    let run = stage.run("browser/a", json!({})).await;
    page.request().await;
    assert_eq!(page.closed().await.0, 1008);
    assert_eq!(principal.closed().await.0, 1008);
    while events.next().await.is_some() {}
    let failed = stage.until(&run, "failed").await;
    assert_eq!(failed["error"]["code"], "tool.agent_lost", "{failed}");
    let refused = stage.connect("role=principal", &token, "").await.expect_err("expired");
    assert_eq!(refused.refused(), (401, "auth.invalid"));
}

#[tokio::test]
async fn k032_nothing_is_taken_from_a_token_that_was_revoked_a_moment_ago() {
    // Nobody looks by themselves for a long time.
    let stage = Stage::with(|options| {
        options.recheck = Duration::from_secs(600);
        options.ping = Duration::from_secs(600);
    })
    .await;
    let (token, id) = stage.token(json!({"verbs": ["serve"], "tools": ["browser/*"]})).await;
    let mut page = stage.operative_as(&token, "browser", acting("a")).await;
    let run = stage.run("browser/a", json!({})).await;
    let (call, _) = page.request().await;
    assert!(stage.call(&format!("DELETE /v1/tokens/{id}"), &Value::Null).await.status < 300);
    page.accept(&call, json!({"forged": true})).await;
    assert_eq!(page.closed().await.0, 1008);
    let failed = stage.until(&run, "failed").await;
    assert_eq!(failed["error"]["code"], "tool.agent_lost", "{failed}");
}

#[tokio::test]
async fn k029_a_session_is_of_one_role_and_one_name() {
    let stage = Stage::start().await;
    let session = "session=the-same-for-all-of-them";
    let query = |role: &str| format!("role={role}&{session}");
    let mut page = stage.events(&query("operative&provider=browser&tools=a"), "").await;
    let (_, offered) = page.hear().await;
    assert_eq!(offered["tools"], json!(["browser/a"]));
    for other in ["principal", "operative&provider=desktop", "principal&world=other"] {
        let theirs = stage.events(&query(other), "1").await;
        assert_eq!(theirs.status, 410, "{other}: there is nothing to resume");
    }
    let run = stage.run("browser/a", json!({})).await;
    let (_, request) = page.hear().await;
    let answer = json!({"type": "response", "id": request["id"],
                        "response": {"status": "accepted", "content": {"forged": true}}});
    for other in ["principal", "operative&provider=desktop"] {
        assert_eq!(stage.post(&query(other), answer.clone()).await.status, 202);
    }
    let genuine = json!({"type": "response", "id": request["id"],
                         "response": {"status": "accepted", "content": {"genuine": true}}});
    stage.post(&query("operative&provider=browser"), genuine).await;
    assert_eq!(stage.until(&run, "succeeded").await["outputs"], json!({"genuine": true}));
}

#[tokio::test]
async fn k019_whoever_serves_a_call_does_not_answer_what_it_asks_itself() {
    let stage = Stage::start().await;
    let verbs = ["serve", "approve", "answer", "read"];
    let (token, _) = stage.token(json!({"verbs": verbs, "tools": ["flight/*"]})).await;
    let mut page = stage.operative_as(&token, "flight", acting("search")).await;
    let run = stage.run("flight/search", json!({})).await;
    let (of, _) = page.request().await;
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    let form = json!({"message": "May I?", "schema": schema});
    page.ask_within(&of, "c1", "form", form).await;
    let question = stage.question().await;
    let line = format!("POST /v1/questions/{}/answer", question["ask_id"].as_str().expect("an id"));
    let yes = json!({"value": {"ok": true}});
    let refused = stage.call_as(&token, &line, &yes).await;
    assert_eq!(refused.refused(), (403, "permission.denied"), "{refused:?}");
    let (other, _) = stage.token(json!({"verbs": ["answer"]})).await;
    assert_eq!(stage.call_as(&other, &line, &yes).await.status, 204, "somebody else may");
    page.response("c1").await;
    page.accept(&of, json!({})).await;
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn k032_whoever_serves_a_name_does_not_let_its_runs_pass() {
    let stage = Stage::start().await;
    let policy = json!([{"tool": "flight/search", "approve": true, "audience": "any"}]);
    let world = json!({"world": "careful", "policy": policy});
    assert_eq!(stage.call("POST /v1/worlds", &world).await.status, 201);
    let verbs = ["serve", "approve", "read"];
    let (token, _) = stage.token(json!({"verbs": verbs, "tools": ["flight/*"]})).await;
    let _page = stage.operative_as(&token, "flight", acting("search")).await;
    let body = json!({"tool": "flight/search", "inputs": {}, "world": "careful"});
    assert_eq!(stage.call("POST /v1/runs", &body).await.status, 202);
    let approval = stage.question().await;
    let line = format!("POST /v1/approvals/{}/decide", approval["ask_id"].as_str().expect("an id"));
    let allow = json!({"decision": "allow"});
    let refused = stage.call_as(&token, &line, &allow).await;
    assert_eq!(refused.refused(), (403, "permission.denied"), "{refused:?}");
    let (other, _) = stage.token(json!({"verbs": ["approve"]})).await;
    assert_eq!(stage.call_as(&other, &line, &allow).await.status, 204, "somebody else may");
}
