//! Everything that is refused, and how: a code, a status, one sentence.

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use wharf_vocab::limits::BODY_BYTES_MAX;

use crate::support::client::{Answer, Call};
use crate::support::{Edge, TOKEN, bearer, eventually};

#[tokio::test]
async fn every_route_but_two_needs_the_token() {
    let edge = Edge::start().await;
    let routes = [
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("GET", "/v1/runs"),
        ("POST", "/v1/runs"),
        ("GET", "/v1/runs/r1/events"),
        ("GET", "/v1/audit"),
        ("GET", "/nowhere"),
        ("DELETE", "/v1/runs"),
    ];
    for (method, path) in routes {
        let call = || Call::new(edge.server.addr(), method, path);
        let answer = call().send().await;
        answer.refused(401, "auth.required");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        for wrong in [&format!("Bearer {TOKEN}x"), "Bearer x", &format!("Bearer {}", &TOKEN[1..])] {
            let answer = call().header("authorization", wrong).send().await;
            answer.refused(401, "auth.invalid");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
        let answer = call().header("authorization", &format!("Basic {TOKEN}")).send().await;
        answer.refused(401, "auth.required");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(Call::new(edge.server.addr(), "GET", path).send().await.status, 200);
    }
}

#[tokio::test]
async fn refusals_are_audited_without_the_token() {
    let edge = Edge::start().await;
    let call = Call::new(edge.server.addr(), "GET", "/v1/runs/secret-run");
    call.clone().header("authorization", "Bearer n0t-the-token").send().await;
    call.clone().header("host", "evil.example").send().await;
    let records = eventually(async || {
        let page = edge.get("/v1/audit").await.json();
        let of_route = |record: &Value| record["subject"] == "route:/v1/runs/{run_id}";
        let found: Vec<_> =
            page["items"].as_array()?.iter().filter(|r| of_route(r)).cloned().collect();
        (found.len() == 2).then_some(found)
    })
    .await;
    for (record, code) in records.iter().zip(["auth.invalid", "request.host_unknown"]) {
        assert_eq!(record["event"], "security.denied");
        assert_eq!(record["severity"], "security");
        assert_eq!(record["facts"]["error_code"], code);
        assert_eq!(record["facts"]["peer"], "127.0.0.1");
        let text = record.to_string();
        assert!(!text.contains("n0t-the-token") && !text.contains("secret-run"), "{text}");
    }
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let edge = Edge::start_with(|options| options.hosts = vec!["wharf.example".to_owned()]).await;
    let port = edge.server.addr().port();
    let tools = || edge.call("GET", "/v1/tools");
    for host in ["evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example"] {
        let answer = tools().header("host", host).send().await;
        answer.refused(421, "request.host_unknown");
    }
    for host in [format!("localhost:{port}"), format!("[::1]:{port}"), "wharf.example".to_owned()] {
        assert_eq!(tools().header("host", &host).send().await.status, 200, "{host}");
    }
    for origin in ["http://evil.example", "null", "https://evil.example:1"] {
        let answer = tools().header("origin", origin).send().await;
        answer.refused(403, "request.origin_forbidden");
    }
    let own = format!("http://127.0.0.1:{port}");
    assert_eq!(tools().header("origin", &own).send().await.status, 200);
    // Without a token the host is checked all the same.
    let call = Call::new(edge.server.addr(), "GET", "/healthz").header("host", "evil.example");
    call.send().await.refused(421, "request.host_unknown");
}

#[tokio::test]
async fn unknown_routes_and_methods_are_told_apart() {
    let edge = Edge::start().await;
    for path in ["/", "/v1", "/v1/run", "/v1/runs/", "/v1/runs/a/b", "/v1/seats", "/healthz/x"] {
        edge.get(path).await.refused(404, "request.route_unknown");
    }
    let answer = edge.call("DELETE", "/v1/runs").send().await;
    let error = answer.refused(405, "request.method_unknown");
    assert_eq!(error["message"], "/v1/runs does not take DELETE.");
    assert_eq!(answer.header("allow"), Some("GET,HEAD,POST"));
    let answer = edge.call("BREW", "/v1/runs/r1").send().await;
    answer.refused(405, "request.method_unknown");
    assert_eq!(answer.header("allow"), Some("GET,HEAD,DELETE"));
}

#[tokio::test]
async fn an_unknown_tool_makes_no_run() {
    let edge = Edge::start().await;
    edge.post("/v1/runs", json!({"tool": "wharf/nope"})).await.refused(404, "tool.not_found");
    edge.get("/v1/tools/wharf/nope").await.refused(404, "tool.not_found");
    assert_eq!(edge.get("/v1/runs").await.json()["items"], json!([]));
}

#[tokio::test]
async fn inputs_that_do_not_fit_are_named_by_their_path() {
    let edge = Edge::start().await;
    let run =
        |inputs: Value| edge.post("/v1/runs", json!({"tool": "wharf/count", "inputs": inputs}));
    let error = run(json!({"n": "c4nary"})).await.refused(422, "tool.invalid_input");
    assert_eq!(error["details"]["path"], "/n");
    assert!(!error.to_string().contains("c4nary"), "{error}");
    let error = run(json!({"n": 1, "c4nary": 1})).await.refused(422, "tool.invalid_input");
    assert_eq!(error["details"]["path"], "/");
    for inputs in [json!([1]), json!("x"), json!(7), json!(false)] {
        let error = run(inputs).await.refused(422, "tool.invalid_input");
        assert_eq!(error["details"]["path"], "/inputs");
    }
    assert_eq!(edge.get("/v1/runs").await.json()["items"], json!([]));
}

#[tokio::test]
async fn malformed_bodies_are_refused_by_place() {
    let edge = Edge::start().await;
    let send = |body: &str| edge.call("POST", "/v1/runs").bytes(body.as_bytes().to_vec()).send();
    let error = send("{\"tool\": \"wharf/echo\",\n oops").await.refused(400, "request.invalid");
    assert_eq!((&error["details"]["line"], &error["details"]["column"]), (&json!(2), &json!(2)));
    let error =
        send(r#"{"tool": "wharf/echo", "input": {}}"#).await.refused(400, "request.invalid");
    let expect = "The body has an unknown field `input`; did you mean `inputs`?";
    assert_eq!(error["message"], expect);
    for body in ["", "null", "[]", "\"x\"", "{}", "{\"tool\": 7}", "\u{0}", "{\"tool\": \"x\"}"] {
        send(body).await.refused(400, "request.invalid");
    }
    let not_utf8 = edge.call("POST", "/v1/runs").bytes(b"{\"tool\": \"\xff\"}".to_vec());
    not_utf8.send().await.refused(400, "request.invalid");
    let deep = format!(r#"{{"tool": "wharf/echo", "inputs": {{"a": {}"#, "[".repeat(100_000));
    send(&deep).await.refused(400, "request.too_deep");
}

#[tokio::test]
async fn parameters_and_ids_that_do_not_fit_are_named() {
    let edge = Edge::start().await;
    for (path, field) in [
        ("/v1/runs?limit=0", "limit"),
        ("/v1/runs?limit=201", "limit"),
        ("/v1/runs?status=done", "status"),
        ("/v1/runs?tool=echo", "tool"),
        ("/v1/runs?world=a%20b", "world"),
        ("/v1/runs/a%20b", "run_id"),
        ("/v1/runs/r1?world=..", "world"),
        ("/v1/runs/r1/events?after=x", "after"),
        ("/v1/tools/a%20b/c", "tool"),
        ("/v1/worlds/.hidden", "world"),
        ("/v1/inbox?kind=wish", "kind"),
        ("/v1/audit?after=-1", "after"),
    ] {
        let error = edge.get(path).await.refused(400, "request.invalid");
        assert_eq!(error["details"]["field"], field, "{path}");
    }
    let error = edge.post("/v1/runs?wait=soon", json!({"tool": "wharf/echo"})).await;
    assert_eq!(error.refused(400, "request.invalid")["details"]["field"], "wait");
    edge.get("/v1/runs/%ff").await.refused(400, "request.invalid");
    let error = edge.post("/v1/questions/a%20b/answer", json!({"value": 1})).await;
    assert_eq!(error.refused(400, "request.invalid")["details"]["field"], "ask_id");
    for none in ["zz", "nope", "00nope"] {
        let path = format!("/v1/questions/{none}/answer");
        edge.post(&path, json!({"value": 1})).await.refused(404, "ask.not_found");
    }
}

#[tokio::test]
async fn malformed_cursors_are_refused() {
    let edge = Edge::start().await;
    for list in ["runs", "tools", "worlds", "inbox", "audit"] {
        for bad in ["abc", "%00", "AQ", "....", "eyJhIjoxfQ"] {
            let answer = edge.get(&format!("/v1/{list}?cursor={bad}")).await;
            answer.refused(400, "request.cursor_invalid");
        }
    }
}

#[tokio::test]
async fn a_body_of_a_hundred_megabytes_is_refused_cleanly() {
    let edge = Edge::start().await;
    let body = vec![b' '; 100 * 1024 * 1024];
    let answer = edge.call("POST", "/v1/runs").bytes(body).send().await;
    let error = answer.refused(413, "request.too_large");
    let message = error["message"].as_str().expect("a message");
    assert!(message.starts_with(&format!("The body is larger than {BODY_BYTES_MAX} bytes.")));
    assert!(message.contains("text.world="), "it says what to do: {message}");
    assert_eq!(edge.get("/v1/tools").await.status, 200);
}

#[tokio::test]
async fn a_large_body_without_a_length_is_refused_cleanly() {
    let edge = Edge::start().await;
    let call = edge.call("POST", "/v1/runs").header("transfer-encoding", "chunked");
    let mut stream = TcpStream::connect(edge.server.addr()).await.expect("connects");
    stream.write_all(call.head().as_bytes()).await.expect("sends");
    let chunk = [b"100000\r\n".to_vec(), vec![b' '; 0x10_0000], b"\r\n".to_vec()].concat();
    for _ in 0..20 {
        stream.write_all(&chunk).await.expect("the core reads on");
    }
    let answer = Answer::read(&mut BufReader::new(stream)).await.expect("an answer");
    answer.refused(413, "request.too_large");
}

#[tokio::test]
async fn a_large_body_with_a_wrong_token_is_refused_cleanly() {
    let edge = Edge::start().await;
    let call = edge.call("POST", "/v1/runs").header("authorization", "Bearer wrong");
    let answer = call.bytes(vec![b' '; 20 * 1024 * 1024]).send().await;
    answer.refused(401, "auth.invalid");
}

#[tokio::test]
async fn a_body_at_the_limit_is_read() {
    let edge = Edge::start().await;
    let start = r#"{"tool": "wharf/nope", "inputs": {"x": ""#;
    let padding = BODY_BYTES_MAX - start.len() - 3;
    let body = format!("{start}{}\"}}}}", "x".repeat(padding));
    assert_eq!(body.len(), BODY_BYTES_MAX);
    let send = |body: String| edge.call("POST", "/v1/runs").bytes(body.into_bytes()).send();
    send(body.clone()).await.refused(404, "tool.not_found");
    send(body + " ").await.refused(413, "request.too_large");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let edge = Edge::start().await;
    let answer =
        edge.call("GET", "/v1/tools").header("x-padding", &"x".repeat(20_000)).send().await;
    answer.refused(431, "request.too_large");
    let answer = edge.get(&format!("/v1/tools?x={}", "y".repeat(20_000))).await;
    answer.refused(431, "request.too_large");
    let many =
        (0..70).fold(edge.call("GET", "/v1/tools"), |call, n| call.header(&format!("x-{n}"), "1"));
    many.send().await.refused(431, "request.too_large");
}

#[tokio::test]
async fn answers_are_not_kept_or_guessed_at_by_browsers() {
    let edge = Edge::start().await;
    let call = Call::new(edge.server.addr(), "GET", "/nowhere");
    for answer in
        [edge.get("/v1/tools").await, call.header("authorization", &bearer()).send().await]
    {
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}
