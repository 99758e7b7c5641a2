//! Against servers on loopback that do as a script says.

mod stage;

use std::time::Duration;

use serde_json::{Value, json};
use wharf_vocab::Code;
use wharf_wire::mcp_v1::headers::McpMirror;
use wharf_wire::mcp_v1::{McpId, McpMessage, McpRevision};

use super::super::{LinkNews, LinkOrder, LinkSend};
use stage::{Reply, Seen, Stage, events, json_reply, status};

fn request(id: i64, method: &str, params: Value) -> McpMessage {
    let Value::Object(params) = params else { panic!("parameters") };
    let params = Some(params);
    McpMessage::Request { id: id.into(), method: method.into(), params }
}

fn notification(method: &str) -> McpMessage {
    McpMessage::Notification { method: method.into(), params: None }
}

fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn initialize() -> McpMessage {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "w", "version": "1"}});
    request(0, "initialize", params)
}

/// Answers a handshake with a session of this name.
fn handshake(seen: &Seen, session: &str) -> Option<Reply> {
    match seen.method()? {
        "initialize" => {
            let agreed = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
            Some(json_reply(&result(&seen.body["id"], &agreed)).header("mcp-session-id", session))
        }
        "notifications/initialized" => Some(status(202)),
        _ => None,
    }
}

fn modern(method: &str, mut params: Value) -> McpMessage {
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    request(7, method, params)
}

#[tokio::test]
async fn m052_one_session_is_begun_used_and_ended() {
    let stage = Stage::new(|seen| match seen.method() {
        None => status(405),
        Some("tools/list") => json_reply(&result(&seen.body["id"], &json!({"tools": []}))),
        _ => handshake(seen, "s-1").expect("a handshake"),
    });
    let mut link = stage.open().await;
    link.send(initialize()).await;
    link.message().await;
    link.orders(LinkOrder::Agreed(McpRevision::V2025_11_25)).await;
    link.send(notification("notifications/initialized")).await;
    link.send(request(1, "tools/list", json!({}))).await;
    assert_eq!(link.message().await["id"], 1);
    drop(link);
    let seen = stage.seen_when(|seen| seen.iter().any(|it| it.verb == "DELETE")).await;
    assert_eq!(seen[0].header("mcp-session-id"), None);
    assert_eq!(seen[0].header("mcp-protocol-version"), None);
    assert_eq!(seen[0].header("accept"), Some("application/json, text/event-stream"));
    for later in &seen[1..] {
        assert_eq!(later.header("mcp-session-id"), Some("s-1"), "{later:?}");
        assert_eq!(later.header("mcp-protocol-version"), Some("2025-11-25"), "{later:?}");
    }
    let verbs: Vec<_> = seen.iter().map(|it| it.verb.as_str()).collect();
    // There is no stream of its own: it is asked for once.
    assert_eq!(verbs.iter().filter(|verb| **verb == "GET").count(), 1, "{verbs:?}");
}

#[tokio::test]
async fn m052_a_forgotten_session_is_begun_anew_once_and_the_request_sent_again() {
    for (gone_status, gone_body) in [
        (404, Value::Null),
        (
            400,
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}}),
        ),
    ] {
        let stage = Stage::new(move |seen| match (seen.method(), seen.header("mcp-session-id")) {
            (None, _) => status(405),
            (Some("initialize"), None) => {
                let name = if seen.body["id"] == 0 { "old" } else { "new" };
                handshake(seen, name).expect("a handshake")
            }
            (Some("notifications/initialized"), _) => status(202),
            (Some(_), Some("new")) => json_reply(&result(&seen.body["id"], &json!({"ok": true}))),
            _ => Reply { status: gone_status, ..json_reply(&gone_body) },
        });
        let mut link = stage.open().await;
        link.begin().await;
        // Two requests at once make one new session.
        link.send(request(1, "tools/call", json!({"name": "a"}))).await;
        link.send(request(2, "tools/call", json!({"name": "b"}))).await;
        let mut told = Vec::new();
        let mut answers = Vec::new();
        while answers.len() < 2 {
            let message = link.message().await;
            match message["method"].as_str() {
                Some(method) => told.push(method.to_owned()),
                None => answers.push(message["id"].as_i64().expect("an id")),
            }
        }
        answers.sort_unstable();
        assert_eq!(answers, [1, 2]);
        assert!(told.contains(&"notifications/tools/list_changed".to_owned()), "{told:?}");
        let handshakes = stage.seen();
        let handshakes = handshakes.iter().filter(|it| it.method() == Some("initialize")).count();
        assert_eq!(handshakes, 2);
    }
}

#[tokio::test]
async fn m052_a_session_that_is_forgotten_twice_is_given_up() {
    let stage = Stage::new(|seen| match seen.verb.as_str() {
        "POST" => handshake(seen, "s").unwrap_or_else(|| status(404)),
        _ => status(405),
    });
    let mut link = stage.open().await;
    link.begin().await;
    link.send(request(1, "tools/list", json!({}))).await;
    let news = link.news_until(|news| !matches!(news, LinkNews::Message { .. })).await;
    assert!(matches!(&news, LinkNews::SessionGone { id } if *id == 1.into()), "{news:?}");
    let posts = stage.seen();
    assert_eq!(posts.iter().filter(|it| it.method() == Some("tools/list")).count(), 2);
}

#[tokio::test]
async fn m052_a_broken_stream_is_taken_up_where_it_was() {
    let stage = Stage::new(|seen| {
        match (seen.verb.as_str(), seen.header("last-event-id")) {
        ("POST", _) => handshake(seen, "s").unwrap_or_else(|| {
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
            events(&format!("id: e1\nretry: 100\ndata: \n\nid: e2\ndata: {progress}\n\n"))
        }),
        // The first try brings nothing, the second the rest.
        ("GET", Some("e2")) if seen.nth_of_its_kind == 0 => events(""),
        ("GET", Some("e2")) => {
            events(&format!("id: e3\ndata: {}\n\n", result(&json!(5), &json!({"ok": 1}))))
        }
        _ => status(405),
    }
    });
    let mut link = stage.open().await;
    link.begin().await;
    link.send(request(5, "tools/call", json!({"name": "a"}))).await;
    assert_eq!(link.message().await["method"], "notifications/message");
    assert_eq!(link.message().await["id"], 5);
    let resumed = stage.seen();
    let resumed = resumed.iter().filter(|it| it.header("last-event-id") == Some("e2"));
    assert_eq!(resumed.count(), 2);
}

#[tokio::test]
async fn m052_a_stream_that_cannot_be_taken_up_is_lost() {
    // Without an id, with one that the server does not know any more, and a modern one.
    let stage = Stage::new(|seen| match (seen.verb.as_str(), seen.body["id"].as_i64()) {
        ("POST", Some(1)) => events(": only a comment\n\n"),
        ("POST", Some(2)) => events("id: x\nretry: 100\ndata: \n\n"),
        ("POST", Some(7)) => events("id: y\nretry: 100\ndata: \n\n"),
        ("POST", _) => handshake(seen, "s").expect("a handshake"),
        _ => status(400),
    });
    let mut link = stage.open().await;
    link.begin().await;
    for (message, id) in [
        (request(1, "tools/call", json!({"name": "a"})), 1),
        (request(2, "tools/call", json!({"name": "a"})), 2),
        (modern("tools/call", json!({"name": "a"})), 7),
    ] {
        link.send(message).await;
        let news = link.news().await;
        assert!(matches!(&news, LinkNews::Lost { id: it } if *it == id.into()), "{news:?}");
    }
}

#[tokio::test]
async fn m052_the_own_stream_is_kept_open_and_goes_on_where_it_was() {
    let told = |n: i64| json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": n}});
    let stage = Stage::new(move |seen| match (seen.verb.as_str(), seen.header("last-event-id")) {
        ("POST", _) => handshake(seen, "s").expect("a handshake"),
        ("GET", None) => events(&format!("retry: 100\nid: 1\ndata: {}\n\n", told(1))),
        ("GET", Some("1")) => events(&format!("id: 2\ndata: {}\n\n", told(2))),
        _ => status(405),
    });
    let mut link = stage.open().await;
    link.begin().await;
    assert_eq!(link.message().await["params"]["data"], 1);
    assert_eq!(link.message().await["params"]["data"], 2);
}

#[tokio::test]
async fn m053_a_modern_request_repeats_itself_in_headers_and_has_no_session() {
    let stage = Stage::new(|seen| json_reply(&result(&seen.body["id"], &json!({}))));
    let mut link = stage.open().await;
    let mirrors = vec![McpMirror { header: "mcp-param-region".into(), path: vec!["r".into()] }];
    let call = modern("tools/call", json!({"name": "grüße", "arguments": {"r": "eu"}}));
    link.orders(LinkOrder::Send(Box::new(LinkSend { message: call, mirrors }))).await;
    assert_eq!(link.message().await["id"], 7);
    let seen = stage.seen();
    assert_eq!(seen[0].header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(seen[0].header("mcp-method"), Some("tools/call"));
    assert_eq!(seen[0].header("mcp-name"), Some("=?base64?Z3LDvMOfZQ==?="));
    assert_eq!(seen[0].header("mcp-param-region"), Some("eu"));
    assert_eq!(seen[0].header("mcp-session-id"), None);
}

#[tokio::test]
async fn m064_a_modern_call_is_called_off_by_closing_its_stream() {
    let stage = Stage::new(|seen| match seen.method() {
        Some("tools/call") => stage::endless(": begun\n\n"),
        _ => json_reply(&result(&seen.body["id"], &json!({}))),
    });
    let mut link = stage.open().await;
    link.send(modern("tools/call", json!({"name": "a"}))).await;
    stage.open_streams(1).await;
    let params = json!({"requestId": 7}).as_object().cloned();
    let method = "notifications/cancelled".to_owned();
    link.send(McpMessage::Notification { method, params }).await;
    stage.open_streams(0).await;
    // Nothing was sent about it, and other requests go on.
    link.send(request(8, "server/discover", json!({}))).await;
    assert_eq!(link.message().await["id"], 8);
    assert!(stage.seen().iter().all(|it| it.method() != Some("notifications/cancelled")));
}

#[tokio::test]
async fn m052_what_http_says_is_told_as_it_is() {
    let error = json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32022, "message": "no"}});
    let stage = Stage::new(move |seen| match seen.body["params"]["name"].as_str() {
        Some("version") => Reply { status: 400, ..json_reply(&error) },
        Some("broken") => status(502),
        Some("nothing") => status(202),
        Some("other") => json_reply(&result(&json!(99), &json!({}))),
        Some("large") => json_reply(&result(&json!(7), &json!("x".repeat(17 << 20)))),
        Some("stream") => events(&format!("data: {}\n\n", "x".repeat(17 << 20))),
        _ => status(500),
    });
    let mut link = stage.open().await;
    for (name, status, code) in [
        ("version", 400, Some(-32022)),
        ("broken", 502, None),
        ("nothing", 202, None),
        ("large", 200, Some(-32603)),
        ("stream", 200, Some(-32603)),
    ] {
        link.send(modern("tools/call", json!({"name": name}))).await;
        let LinkNews::Refused { id, status: said, error } = link.news().await else {
            panic!("{name} is refused")
        };
        assert_eq!((id, said), (McpId::from(7), status), "{name}");
        assert_eq!(error.map(|error| error.code), code, "{name}");
    }
    // The answer to something else is passed on, and ends the wait for this one.
    link.send(modern("tools/call", json!({"name": "other"}))).await;
    assert_eq!(link.message().await["id"], 99);
    assert!(matches!(link.news().await, LinkNews::Lost { .. }));
}

#[tokio::test]
async fn m070_a_refused_secret_is_read_again_once() {
    let stage = Stage::new(|seen| match seen.header("authorization") {
        Some("Bearer second") if seen.header("x-key") == Some("second") => {
            json_reply(&result(&seen.body["id"], &json!({})))
        }
        _ => status(401),
    });
    // The owner sets another secret while the first is in use.
    let mut link = stage.open_with_secrets(&["first", "second"]).await;
    link.send(modern("tools/call", json!({"name": "a"}))).await;
    assert_eq!(link.message().await["id"], 7);
    let mut link = stage.open_with_secrets(&["first", "first"]).await;
    link.send(modern("tools/call", json!({"name": "a"}))).await;
    let LinkNews::Failed { fault, .. } = link.news().await else { panic!("it is not let in") };
    assert!(fault.is(Code::McpLoginRequired));
    assert_eq!(fault.details["executed"], "no");
    assert!(!fault.message.contains("first"));
}

#[tokio::test]
async fn m061_a_server_that_is_not_there_did_not_run_anything() {
    let stage = Stage::new(|_| status(500));
    let mut link = stage.open_at("http://127.0.0.1:1/").await;
    link.send(modern("tools/call", json!({"name": "a"}))).await;
    let LinkNews::Failed { fault, .. } = link.news().await else { panic!("nobody is there") };
    assert_eq!(fault.details["executed"], "no");
    assert!(fault.is(Code::ToolUnavailable));
}

#[tokio::test]
async fn m050_the_old_way_posts_to_an_address_of_its_own_origin() {
    let answer = format!("data: {}\n\n", result(&json!(1), &json!({"ok": 1})));
    let stage = Stage::new(move |seen| match (seen.verb.as_str(), seen.path.as_str()) {
        ("GET", "/sse") => {
            stage::endless_of(vec!["event: endpoint\ndata: /m?s=1\n\n".into()], &answer)
        }
        ("POST", "/m") => status(202),
        _ => status(404),
    });
    let mut link = stage.open_old("/sse").await;
    link.send(request(1, "initialize", json!({}))).await;
    stage.release_when_seen("POST").await;
    assert_eq!(link.message().await["id"], 1);
    stage.end_streams();
    assert!(matches!(link.news().await, LinkNews::Ended(_)));
}

#[tokio::test]
async fn m050_the_old_way_takes_no_address_of_others() {
    for place in ["https://evil.example/m", "http://localhost:1/m", "file:///etc/passwd"] {
        let stage = Stage::new(move |_| events(&format!("event: endpoint\ndata: {place}\n\n")));
        let mut link = stage.open_old("/sse").await;
        let news = tokio::time::timeout(Duration::from_secs(20), link.news()).await;
        assert!(matches!(news, Ok(LinkNews::Ended(_))), "{place}");
    }
}
