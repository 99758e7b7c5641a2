//! Who is let in, and how a message must come (M5–M11, M14, M73).

use serde_json::{Value, json};

use crate::client::{ALL, Client, OF_06, OF_11, OF_26};
use crate::stage::{OWNER, Stage};

fn ping() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})
}

#[tokio::test]
async fn m005_addresses_say_what_is_wanted_and_never_a_token() {
    let stage = Stage::start().await;
    for token in ["token", "access_token", "api_key", "apikey", "authorization", "bearer"] {
        let client = stage.client().at(&format!("/mcp?{token}={OWNER}"));
        let answer = client.raw(&ping(), &[]).await;
        assert_eq!(answer.status, 400, "{token}");
    }
    for bad in ["patience=soon", "tools=,", "inbox=maybe", "detach=perhaps", "world=no/world"] {
        let answer = stage.client().at(&format!("/mcp?{bad}")).raw(&ping(), &[]).await;
        assert_eq!(answer.status, 400, "{bad}");
    }
    for good in ["patience=50s", "tools=wharf/*", "inbox=off", "detach=true", "world=other"] {
        let answer = stage.client().at(&format!("/mcp?{good}")).raw(&ping(), &[]).await;
        assert_eq!(answer.status, 200, "{good}");
    }
    assert_eq!(stage.client().at("/mcp/nobody").raw(&ping(), &[]).await.status, 404);
}

#[tokio::test]
async fn m073_whoever_shows_no_token_or_lacks_a_right_learns_only_that() {
    let stage = Stage::start().await;
    let client = stage.client();
    let answer = client.anonymous(&ping()).await;
    assert_eq!(answer.status, 401);
    assert!(answer.header("www-authenticate").is_some_and(|it| it.starts_with("Bearer")));
    assert_eq!(client.clone().bearing("wrong").raw(&ping(), &[]).await.status, 401);
    let reader = stage.token(json!({"verbs": ["read"]})).await;
    let other = stage.token(json!({"verbs": ["read", "run"], "worlds": ["other"]})).await;
    for revision in ALL {
        let client = stage.client().bearing(&reader).speaking(revision).await;
        client.request(1, "tools/list", json!({})).await.result().await;
        let answer = client.call(2, "wharf__echo", json!({})).await;
        let scope = answer.header("www-authenticate").map(str::to_owned);
        answer.refused(403, -32600).await;
        let scope = scope.expect("a challenge");
        assert!(scope.contains("insufficient_scope") && scope.contains("run"), "{scope}");
        // Elsewhere the token is good for nothing.
        let elsewhere = stage.client().bearing(&other).at("/mcp?world=default");
        let body = elsewhere.body(3, "tools/list", json!({}));
        assert_eq!(elsewhere.raw(&body, &elsewhere.headers(&body)).await.status, 403);
        let own = stage.client().bearing(&other).speaking(revision).await;
        let result = own.call(4, "wharf__echo", json!({})).await.result().await;
        assert_eq!(result["_meta"]["dev.wharf/run"]["world"], "other");
    }
    assert_eq!(stage.runs().await.len(), 3);
}

#[tokio::test]
async fn m014_the_owners_token_is_no_person_here() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_26).await;
    client.call(1, "wharf__echo", json!({})).await.result().await;
    let run = stage.only_run().await;
    assert!(!run.spec.caller.person);
    let verbs = &run.spec.caller.rights().verbs;
    assert_eq!(verbs.len(), 3, "{verbs:?}");
}

#[tokio::test]
async fn m006_both_eras_are_served_at_one_door() {
    let stage = Stage::start().await;
    let (legacy, modern) =
        (stage.client().speaking(OF_06).await, stage.client().speaking(OF_26).await);
    for _ in 0..2 {
        let old = legacy.call(1, "wharf__echo", json!({})).await.result().await;
        let new = modern.call(1, "wharf__echo", json!({})).await.result().await;
        assert!(old.get("resultType").is_none() && new["resultType"] == "complete");
    }
    // The session of a modern request means nothing.
    let body = modern.body(2, "tools/list", json!({}));
    let mut headers = modern.headers(&body);
    headers.push(("mcp-session-id".to_owned(), "anything".to_owned()));
    headers.push(("last-event-id".to_owned(), "anything".to_owned()));
    modern.raw(&body, &headers).await.result().await;
}

/// A modern call with one header or one part of `_meta` changed.
async fn changed(client: &Client, header: &str, value: Option<&str>) -> crate::client::Answer {
    let body = client.body("x", "tools/call", json!({"name": "wharf__echo", "arguments": {}}));
    let mut headers = client.headers(&body);
    headers.retain(|(name, _)| name != header);
    headers.extend(value.map(|value| (header.to_owned(), value.to_owned())));
    client.raw(&body, &headers).await
}

#[tokio::test]
async fn m007_headers_of_modern_requests_repeat_the_body() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_26).await;
    for (header, value) in [
        ("mcp-method", None),
        ("mcp-method", Some("tools/list")),
        ("mcp-name", None),
        ("mcp-name", Some("wharf__sleep")),
        ("mcp-name", Some("=?base64?!!!?=")),
        ("mcp-protocol-version", None),
        ("mcp-protocol-version", Some(OF_11)),
        ("mcp-protocol-version", Some("2027-01-01")),
    ] {
        let error = changed(&client, header, value).await.refused(400, -32020).await;
        assert_eq!(error["id"], "x", "{header} {value:?}");
    }
    let body = client.body("x", "tools/call", json!({"name": "wharf__echo", "arguments": {}}));
    for header in ["mcp-method", "mcp-name", "mcp-protocol-version"] {
        let mut headers = client.headers(&body);
        let twice = headers.iter().find(|(name, _)| name == header).expect("there").clone();
        headers.push(twice);
        client.raw(&body, &headers).await.refused(400, -32020).await;
    }
    assert!(stage.runs().await.is_empty());
    // In Base64 it means the same.
    let encoded = "=?base64?d2hhcmZfX2VjaG8=?=";
    changed(&client, "mcp-name", Some(encoded)).await.result().await;
}

#[tokio::test]
async fn m007_what_a_tool_wants_repeated_is_compared() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_26).await;
    let arguments = json!({"region": "eu north", "count": 42});
    let params = json!({"name": "test__mirrored", "arguments": arguments});
    let body = client.body(1, "tools/call", params);
    let plain = client.headers(&body);
    let with = |region: Option<&str>, count: Option<&str>| {
        let own = [("mcp-param-region", region), ("mcp-param-count", count)];
        let own =
            own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        plain.iter().cloned().chain(own).collect::<Vec<_>>()
    };
    for (region, count) in [
        (None, None),
        (Some("eu north"), None),
        (Some("us"), Some("42")),
        (Some("eu north"), Some("43")),
        (Some("eu north"), Some("x")),
    ] {
        client.raw(&body, &with(region, count)).await.refused(400, -32020).await;
    }
    assert!(stage.runs().await.is_empty());
    for count in ["42", "42.0"] {
        let answer = client.raw(&body, &with(Some("eu north"), Some(count))).await;
        assert_eq!(answer.result().await["structuredContent"]["count"], 42);
    }
}

#[tokio::test]
async fn m007_what_every_modern_request_must_say() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_26).await;
    let version = "io.modelcontextprotocol/protocolVersion";
    let able = "io.modelcontextprotocol/clientCapabilities";
    for (meta, code) in [
        (Value::Null, -32602),
        (json!({}), -32602),
        (json!({ version: OF_26 }), -32602),
        (json!({ able: {} }), -32602),
        (json!({ version: OF_26, able: "all" }), -32602),
        (json!({ version: 26, able: {} }), -32602),
    ] {
        let mut body = json!({"jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": {}});
        if !meta.is_null() {
            body["params"]["_meta"] = meta.clone();
        }
        let error = client.raw(&body, &client.headers(&body)).await.refused(400, code).await;
        assert_eq!(error["id"], "x", "{meta}");
    }
    let mut body = client.body("x", "tools/list", json!({}));
    body["params"]["_meta"][version] = "2027-01-01".into();
    let mut headers = client.headers(&body);
    headers.retain(|(name, _)| name != "mcp-protocol-version");
    headers.push(("mcp-protocol-version".to_owned(), "2027-01-01".to_owned()));
    let error = client.raw(&body, &headers).await.refused(400, -32022).await;
    // What `server/discover` lists: the others begin with a handshake.
    let told = json!({"supported": [OF_26], "requested": "2027-01-01"});
    assert_eq!(error["error"]["data"], told);
}

#[tokio::test]
async fn m008_modern_clients_post_requests_and_nothing_else() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_26).await;
    let modern = [("mcp-protocol-version".to_owned(), OF_26.to_owned())];
    for method in ["GET", "DELETE"] {
        let answer = client.bare(method, &modern).await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{method}");
    }
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    assert_eq!(client.raw(&response, &modern).await.status, 400);
    let told = client.notify("notifications/cancelled", json!({"requestId": 1})).await;
    assert_eq!(told.status, 202);
    for gone in
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list", "no/such"]
    {
        let params = match gone {
            "initialize" => json!({
                "protocolVersion": OF_26, "capabilities": {},
                "clientInfo": {"name": "x", "version": "1"},
            }),
            "logging/setLevel" => json!({"level": "info"}),
            "resources/subscribe" => json!({"uri": "a:b"}),
            _ => json!({}),
        };
        client.request(1, gone, params).await.refused(404, -32601).await;
    }
}

#[tokio::test]
async fn m009_before_the_handshake_only_a_ping_is_answered() {
    let stage = Stage::start().await;
    let client = stage.client();
    assert_eq!(client.raw(&ping(), &[]).await.json().await["result"], json!({}));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    client.raw(&list, &[]).await.refused(400, -32600).await;
    for revision in [OF_06, OF_11] {
        let client = stage.client().speaking(revision).await;
        let mut headers = client.headers(&list);
        client.raw(&ping(), &headers).await.result().await;
        for bad in ["1999-01-01", "x"] {
            headers[1].1 = bad.to_owned();
            assert_eq!(client.raw(&list, &headers).await.status, 400, "{bad}");
        }
        headers.remove(1);
        client.raw(&list, &headers).await.result().await;
        let told = client.notify("notifications/initialized", json!({})).await;
        assert_eq!(told.status, 202);
    }
}

#[tokio::test]
async fn m010_a_session_is_good_for_its_grant_at_its_door_until_it_is_deleted() {
    let stage = Stage::start().await;
    let other = stage.token(json!({"verbs": ["read", "run"]})).await;
    for revision in [OF_06, OF_11] {
        let client = stage.client().speaking(revision).await;
        let session = client.session.clone().expect("a session");
        let list = |client: Client| async move {
            let body = client.body(1, "tools/list", json!({}));
            let headers = client.headers(&body);
            client.raw(&body, &headers).await
        };
        assert_eq!(list(client.clone()).await.status, 200);
        // Nobody else's, nowhere else, and not a letter of it changed.
        list(client.clone().bearing(&other)).await.refused(404, -32600).await;
        list(client.clone().at("/mcp/wharf")).await.refused(404, -32600).await;
        let mut forged = session.clone().into_bytes();
        let middle = forged.len() / 2;
        forged[middle] = if forged[middle] == b'A' { b'B' } else { b'A' };
        for text in [String::from_utf8(forged).expect("text"), "x".to_owned(), session.repeat(9)] {
            let mut client = client.clone();
            client.session = Some(text);
            list(client.clone()).await.refused(404, -32600).await;
            let opened = client.get(None).await;
            assert_eq!(opened.status, 404);
        }
        let ended = client.bare("DELETE", &client.headers(&Value::Null)).await;
        assert_eq!(ended.status, 204);
        list(client.clone()).await.refused(404, -32600).await;
        let again = client.bare("DELETE", &client.headers(&Value::Null)).await;
        assert_eq!(again.status, 404);
    }
    assert!(stage.runs().await.is_empty());
}

#[tokio::test]
async fn m010_a_session_is_good_for_the_core_after_a_restart() {
    let stage = Stage::start().await;
    let mut clients = Vec::new();
    for revision in [OF_06, OF_11] {
        clients.push(stage.client().speaking(revision).await);
    }
    let stage = stage.killed().await;
    for client in clients {
        let client = client.moved(stage.addr());
        let result = client.call(1, "wharf__echo", json!({"a": 1})).await.result().await;
        assert_eq!(result["structuredContent"], json!({"a": 1}));
        // Its first stream tells that everything may have changed.
        let mut stream = client.get(None).await;
        let mut told = Vec::new();
        for _ in 0..3 {
            told.push(stream.message().await["method"].as_str().expect("a method").to_owned());
        }
        told.sort();
        let lists = ["prompts", "resources", "tools"];
        assert_eq!(told, lists.map(|list| format!("notifications/{list}/list_changed")));
    }
}

#[tokio::test]
async fn m001_what_is_no_message_is_refused() {
    let stage = Stage::start().await;
    let client = stage.client();
    let json = "application/json";
    client.bytes(json, b"{".to_vec()).await.refused(400, -32700).await;
    client.bytes(json, b"[]".to_vec()).await.refused(400, -32600).await;
    let batch = json!([ping(), ping()]).to_string().into_bytes();
    client.bytes(json, batch).await.refused(400, -32600).await;
    for body in ["7", "{}", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#] {
        assert_eq!(client.bytes(json, body.into()).await.status, 400, "{body}");
    }
    let typed = client.bytes("text/plain", ping().to_string().into()).await;
    assert_eq!(typed.status, 415);
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{deep}}}}}"#);
    assert_eq!(client.bytes(json, deep.into()).await.status, 400);
}
