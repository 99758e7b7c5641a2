//! Who may serve which name, and what is said before a connection is opened.

use serde_json::{Value, json};

use crate::stage::{OWNER, Stage, acting, eventually};

#[tokio::test]
async fn k032_what_cannot_be_is_refused_before_the_upgrade() {
    let stage = Stage::start().await;
    for (query, token, refused) in [
        ("role=principal", "", (401, "auth.required")),
        ("role=principal", "nonsense", (401, "auth.invalid")),
        ("", OWNER, (400, "request.invalid")),
        ("role=visitor", OWNER, (400, "request.invalid")),
        ("role=operative", OWNER, (400, "request.invalid")),
        ("role=operative&provider=a/b", OWNER, (400, "request.invalid")),
        ("role=principal&world=nowhere", OWNER, (404, "world.not_found")),
        ("role=operative&provider=core", OWNER, (403, "permission.denied")),
        ("role=operative&provider=wharf", OWNER, (403, "permission.denied")),
    ] {
        let answer = stage.connect(query, token, "").await.expect_err(query);
        assert_eq!(answer.refused(), refused, "{query}");
    }
    let (token, _) = stage.token(json!({"verbs": ["serve"], "tools": ["browser/get-*"]})).await;
    let query = |tools: &str| format!("role=operative&provider=browser&tools={tools}");
    for (tools, refused) in [
        ("get-a,get-a", (409, "tool.conflict")),
        ("form", (400, "request.invalid")),
        ("get%20a", (400, "request.invalid")),
        ("get-a,set-a", (403, "permission.denied")),
    ] {
        let answer = stage.connect(&query(tools), &token, "").await.expect_err(tools);
        assert_eq!(answer.refused(), refused, "{tools}");
    }
    let plain = stage.call("GET /v1/tool/ws?role=principal", &Value::Null).await;
    assert_eq!(plain.refused(), (400, "request.invalid"));
}

#[tokio::test]
async fn k032_only_the_right_subprotocol_is_echoed() {
    let stage = Stage::start().await;
    let bearer = format!("wharf.bearer.{OWNER}");
    for (offers, echoed) in [
        (String::new(), ""),
        ("other".to_owned(), ""),
        ("wharf.v1".to_owned(), "wharf.v1"),
        ("wharf.v1, wharf.tool.v1".to_owned(), "wharf.tool.v1"),
    ] {
        // A client that gets none of what it offered gives up by itself.
        if offers == "other" {
            continue;
        }
        let peer = stage.connect("role=principal", OWNER, &offers).await.expect("connects");
        assert_eq!(peer.protocol, echoed, "{offers}");
        if !offers.is_empty() {
            let offers = format!("{offers}, {bearer}");
            let peer = stage.connect("role=principal", "", &offers).await.expect("connects");
            assert_eq!(peer.protocol, echoed, "{offers}");
        }
    }
}

#[tokio::test]
async fn k032_an_operative_serves_only_names_that_its_token_grants() {
    let stage = Stage::start().await;
    let (reader, _) = stage.token(json!({"verbs": ["run", "read"], "tools": ["*"]})).await;
    let (server, _) = stage.token(json!({"verbs": ["serve"], "tools": ["browser/get-*"]})).await;
    let query = "role=operative&provider=browser";
    let answer = stage.connect(query, &reader, "").await.expect_err("no verb");
    assert_eq!(answer.refused(), (403, "permission.denied"));
    assert_eq!(answer.body["error"]["details"]["verb"], "serve");
    let other = "role=operative&provider=desktop";
    let answer = stage.connect(other, &server, "").await.expect_err("another name");
    assert_eq!(answer.refused(), (403, "permission.denied"));
    assert_eq!(answer.body["error"]["details"]["provider"], "desktop");
    let answer = stage.connect("role=principal", &server, "").await.expect_err("no verb");
    assert_eq!(answer.refused(), (403, "permission.denied"));
    let mut peer = stage.connect(query, &server, "wharf.tool.v1").await.expect("granted");
    peer.say(json!({"type": "offer", "tools": acting("set-location")})).await;
    let offered = peer.hear("offered").await;
    assert_eq!(offered["error"]["code"], "permission.denied", "{offered}");
    peer.say(json!({"type": "offer", "tools": acting("get-location")})).await;
    assert_eq!(peer.hear("offered").await["tools"], json!(["browser/get-location"]));
}

#[tokio::test]
async fn k032_a_name_belongs_to_one_provider() {
    let stage = Stage::start().await;
    let other = wharf_engine::in_process::InProcess::new("desktop").expect("valid");
    other.register(&stage.handle).await.expect("registers");
    let query = "role=operative&provider=desktop";
    let answer = stage.connect(query, OWNER, "").await.expect_err("taken");
    assert_eq!(answer.refused(), (409, "tool.conflict"));
    let _first = stage.operative("browser", acting("a")).await;
    let (second, _) = stage.token(json!({"verbs": ["serve"], "tools": ["browser/*"]})).await;
    let query = "role=operative&provider=browser";
    let answer = stage.connect(query, &second, "").await.expect_err("held");
    assert_eq!(answer.refused(), (409, "tool.conflict"));
}

#[tokio::test]
async fn k032_a_second_connection_with_the_same_grant_takes_the_place_of_the_first() {
    let stage = Stage::start().await;
    let mut first = stage.operative("browser", acting("a")).await;
    let mut second = stage.operative("browser", acting("b")).await;
    assert_eq!(first.closed().await.0, 1000);
    let run = stage.run("browser/b", json!({})).await;
    let (id, _) = second.request().await;
    second.accept(&id, json!({})).await;
    stage.until(&run, "succeeded").await;
    let gone = stage.call("POST /v1/runs", &json!({"tool": "browser/a", "inputs": {}})).await;
    assert_eq!(gone.refused(), (404, "tool.not_found"), "a later offer replaces the earlier one");
}

#[tokio::test]
async fn k032_what_is_wrong_with_an_offer_is_said_and_the_connection_goes_on() {
    let stage = Stage::start().await;
    let query = "role=operative&provider=browser";
    let mut peer = stage.connect(query, OWNER, "").await.expect("connects");
    let two = json!([{"name": "a", "input": {}}, {"name": "a", "input": {}}]);
    let wrong = [
        (two, "tool.conflict"),
        (acting("sample"), "request.invalid"),
        (acting("a b"), "request.invalid"),
        (json!([{"name": "a", "input": {"type": "strin"}}]), "tool.schema_invalid"),
        (json!([{"name": "a", "input": {"$ref": "https://x.example/s"}}]), "tool.schema_invalid"),
    ];
    for (tools, code) in wrong {
        peer.say(json!({"type": "offer", "tools": tools})).await;
        let offered = peer.hear("offered").await;
        assert_eq!(offered["error"]["code"], code, "{offered}");
    }
    peer.say(json!({"type": "offer", "tools": acting("a")})).await;
    assert_eq!(peer.hear("offered").await["tools"], json!(["browser/a"]));
    stage.tool("browser/a", "available").await;
}

#[tokio::test]
async fn k032_tools_can_be_declared_by_their_names_alone() {
    let stage = Stage::start().await;
    let query = "role=operative&provider=browser&tools=look,point";
    let mut peer = stage.connect(query, OWNER, "").await.expect("connects");
    assert_eq!(peer.hear("offered").await["tools"], json!(["browser/look", "browser/point"]));
    let run = stage.run("browser/point", json!({"x": 1})).await;
    let (id, request) = peer.request().await;
    assert_eq!((&request["type"], &request["payload"]), (&json!("point"), &json!({"x": 1})));
    peer.accept(&id, json!([1, 2])).await;
    assert_eq!(stage.until(&run, "succeeded").await["outputs"], json!({"value": [1, 2]}));
}

#[tokio::test]
async fn k032_operatives_are_listed_and_can_be_forgotten() {
    let stage = Stage::start().await;
    let mut peer = stage.operative("browser", acting("a")).await;
    let listed = stage.call("GET /v1/operatives", &Value::Null).await;
    assert_eq!(listed.body["items"][0]["name"], "browser");
    assert_eq!(listed.body["items"][0]["connected"], true);
    assert_eq!(listed.body["items"][0]["tools"], json!(["browser/a"]));
    let (reader, _) = stage.token(json!({"verbs": ["read"], "tools": ["*"]})).await;
    let denied = stage.call_as(&reader, "DELETE /v1/operatives/browser", &Value::Null).await;
    assert_eq!(denied.refused(), (403, "permission.denied"));
    let agents = stage.call("GET /v1/agents", &Value::Null).await;
    assert_eq!(agents.body["items"], json!([]), "an operative is no agent");
    let unknown = stage.call("DELETE /v1/operatives/nobody", &Value::Null).await;
    assert_eq!(unknown.refused(), (404, "agent.not_found"));
    let forgotten = stage.call("DELETE /v1/operatives/browser", &Value::Null).await;
    assert_eq!(forgotten.status, 204);
    assert_eq!(peer.closed().await.0, 1008);
    let gone = stage.call("POST /v1/runs", &json!({"tool": "browser/a", "inputs": {}})).await;
    assert_eq!(gone.refused(), (404, "tool.not_found"));
    let listed = stage.call("GET /v1/operatives", &Value::Null).await;
    assert_eq!(listed.body["items"], json!([]));
    // The name is free again.
    stage.operative("browser", acting("a")).await;
}

#[tokio::test]
async fn k032_a_revoked_token_ends_its_connection_and_serves_no_more() {
    let stage = Stage::with(|options| options.away = std::time::Duration::from_millis(50)).await;
    let (token, id) = stage.token(json!({"verbs": ["serve"], "tools": ["browser/*"]})).await;
    let mut peer = stage.operative_as(&token, "browser", acting("a")).await;
    let revoked = stage.call(&format!("DELETE /v1/tokens/{id}"), &Value::Null).await;
    assert!(revoked.status < 300, "{revoked:?}");
    assert_eq!(peer.closed().await.0, 1008);
    let tool = stage.given_up("browser/a").await;
    assert_eq!(tool["state_reason"], "nobody is connected as browser");
    let answer = stage.connect("role=operative&provider=browser", &token, "").await;
    assert_eq!(answer.expect_err("revoked").refused(), (401, "auth.invalid"));
}

#[tokio::test]
async fn k032_a_token_for_one_world_does_not_see_runs_of_another() {
    let stage = Stage::start().await;
    let rights = json!({"verbs": ["serve"], "tools": ["browser/*"], "worlds": ["other"]});
    let (token, _) = stage.token(rights).await;
    let mut peer = stage.operative_as(&token, "browser", acting("a")).await;
    let run = stage.run("browser/a", json!({"secret": 1})).await;
    let failed = stage.until(&run, "failed").await;
    assert_eq!(failed["error"]["code"], "permission.denied", "{failed}");
    let body = json!({"tool": "browser/a", "inputs": {}, "world": "other"});
    assert_eq!(stage.call("POST /v1/runs", &body).await.status, 202);
    let (_, request) = peer.request().await;
    assert_eq!(request["payload"], json!({}));
}

#[tokio::test]
async fn k032_a_core_that_stops_says_so() {
    let stage = Stage::start().await;
    let mut operative = stage.operative("browser", acting("a")).await;
    let mut principal = stage.principal().await;
    stage.edge.drain().await;
    assert_eq!(principal.closed().await.0, 1012);
    let answer = stage.connect("role=principal", OWNER, "").await.expect_err("stopping");
    assert_eq!(answer.refused(), (503, "core.stopping"));
    stage.edge.stop().await;
    assert_eq!(operative.closed().await.0, 1012);
    let connected = async || {
        let listed = stage.call("GET /v1/operatives", &Value::Null).await;
        (listed.body["items"][0]["connected"] == false).then_some(())
    };
    eventually(connected).await;
}
