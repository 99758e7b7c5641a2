//! Tickets: what a browser needs where it cannot send a header.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::mounts;
use crate::support::client::{Answer, Call};
use crate::support::{Edge, eventually};

const PAGE: &str = "http://localhost:5173";

async fn edge() -> Edge {
    Edge::start_with(|options| {
        options.mounts = vec![mounts::mount()];
        options.origins = vec![PAGE.to_owned()];
    })
    .await
}

/// A ticket made with a call that is the owner's.
async fn ticket(call: Call) -> String {
    let answer = call.send().await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let made = answer.json();
    assert!(made["expires_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{made}");
    made["ticket"].as_str().expect("a ticket").to_owned()
}

/// What a browser sends for `new WebSocket(address)`, and the status of the answer.
async fn socket(edge: &Edge, target: &str, origin: &str) -> u16 {
    let call = Call::new(edge.server.addr(), "GET", target)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("origin", origin);
    let mut stream = TcpStream::connect(edge.server.addr()).await.expect("connects");
    stream.write_all(call.head().as_bytes()).await.expect("sends");
    let answer = Answer::read_head(&mut tokio::io::BufReader::new(stream)).await;
    answer.expect("an answer").status
}

#[tokio::test]
async fn k032_a_ticket_opens_one_websocket_of_its_page_and_no_other() {
    let edge = edge().await;
    let from_page = || edge.call("POST", "/v1/tickets").header("origin", PAGE);
    let good = ticket(from_page()).await;
    let target = format!("/other?ticket={good}&a=1");
    assert_eq!(socket(&edge, &target, PAGE).await, 101);
    assert_eq!(socket(&edge, &target, PAGE).await, 401, "a ticket is good once");

    let stolen = ticket(from_page()).await;
    let own = format!("http://{}", edge.server.addr());
    assert_eq!(socket(&edge, &format!("/other?ticket={stolen}"), &own).await, 401);
    assert_eq!(socket(&edge, &format!("/other?ticket={stolen}"), PAGE).await, 401, "it is used up");

    let program = ticket(edge.call("POST", "/v1/tickets")).await;
    assert_eq!(socket(&edge, &format!("/other?ticket={program}"), PAGE).await, 401);
    let program = ticket(edge.call("POST", "/v1/tickets")).await;
    assert_eq!(socket(&edge, &format!("/other?ticket={program}"), "").await, 101);
    let named = edge.call("POST", "/v1/tickets").json(&json!({"origin": PAGE}));
    let named = ticket(named).await;
    assert_eq!(socket(&edge, &format!("/other?ticket={named}"), PAGE).await, 101);
}

#[tokio::test]
async fn k032_a_token_in_an_address_stays_refused() {
    let edge = edge().await;
    let made = edge.token(json!({"verbs": ["read"]})).await;
    let long = made["token"].as_str().expect("a token");
    for token in [long, crate::support::TOKEN] {
        for name in ["ticket", "token", "access_token"] {
            assert_eq!(socket(&edge, &format!("/other?{name}={token}"), PAGE).await, 401);
        }
    }
}

#[tokio::test]
async fn a_ticket_opens_streams_of_events_and_nothing_else() {
    let edge = edge().await;
    let run = edge.run("wharf/echo", json!({})).await.json()["run_id"].clone();
    let path = format!("/v1/runs/{}/events", run.as_str().expect("an id"));
    let made = ticket(edge.call("POST", "/v1/tickets").header("origin", PAGE)).await;
    let read = Call::new(edge.server.addr(), "GET", &format!("{path}?ticket={made}"))
        .header("origin", PAGE)
        .send()
        .await;
    assert_eq!(read.status, 200, "{read:?}");
    assert_eq!(read.header("access-control-allow-origin"), Some(PAGE));
    assert!(read.text().contains("event: finished"));

    for (method, target) in [("GET", "/v1/runs"), ("POST", "/v1/runs"), ("GET", "/v1/tokens")] {
        let made = ticket(edge.call("POST", "/v1/tickets")).await;
        let refused = Call::new(edge.server.addr(), method, &format!("{target}?ticket={made}"));
        refused.send().await.refused(401, "auth.required");
    }
}

#[tokio::test]
async fn a_ticket_gives_no_more_than_its_token() {
    let edge = edge().await;
    let run = edge.run("wharf/echo", json!({})).await.json()["run_id"].clone();
    let path = format!("/v1/runs/{}/events", run.as_str().expect("an id"));
    let open = async |token: &str, body: Value| {
        let made = ticket(edge.call_as(token, "POST", "/v1/tickets").json(&body)).await;
        Call::new(edge.server.addr(), "GET", &format!("{path}?ticket={made}")).send().await
    };
    let reader = edge.token(json!({"verbs": ["read", "run"]})).await;
    let id = reader["token_id"].as_str().expect("an id").to_owned();
    let reader = reader["token"].as_str().expect("a token").to_owned();
    assert_eq!(open(&reader, json!({})).await.status, 200);
    assert_eq!(open(&reader, json!({"verbs": ["read", "admin"]})).await.status, 200);
    open(&reader, json!({"verbs": ["run"]})).await.refused(403, "permission.denied");
    open(&reader, json!({"worlds": ["lab"]})).await.refused(403, "permission.denied");
    open(&reader, json!({"tools": ["wharf/count"]})).await.refused(403, "permission.denied");
    let runner = edge.token(json!({"verbs": ["run"]})).await;
    let runner = runner["token"].as_str().expect("a token").to_owned();
    open(&runner, json!({"verbs": ["read"]})).await.refused(403, "permission.denied");

    // A ticket dies with its token.
    let made = ticket(edge.call_as(&reader, "POST", "/v1/tickets")).await;
    edge.call("DELETE", &format!("/v1/tokens/{id}")).send().await;
    let dead = Call::new(edge.server.addr(), "GET", &format!("{path}?ticket={made}"));
    dead.send().await.refused(401, "auth.invalid");
}

#[tokio::test]
async fn tickets_are_for_bearers_of_tokens_and_pages_that_may_call() {
    let edge = edge().await;
    let post = |token: &str| edge.call("POST", "/v1/tickets").header("authorization", token);
    post("").send().await.refused(401, "auth.required");
    post("Bearer wrong").send().await.refused(401, "auth.invalid");
    let seat = post("Bearer wrong").json(&json!({"seat": "S-0123456789abcdef"})).send().await;
    seat.refused(404, "seat.not_found");
    eventually(async || {
        let audit = edge.get("/v1/audit?limit=200").await.json();
        let denied = |record: &&Value| record["subject"] == "route:/v1/tickets";
        let denied = audit["items"].as_array()?.iter().filter(denied).count();
        (denied >= 2).then_some(())
    })
    .await;
    let evil = json!({"origin": "https://evil.example"});
    let evil = edge.call("POST", "/v1/tickets").json(&evil).send().await;
    evil.refused(403, "request.origin_forbidden");
    edge.post("/v1/tickets", json!({"orign": PAGE})).await.refused(400, "request.invalid");
    // A page that was let in may ask, and is told so before.
    let asks = Call::new(edge.server.addr(), "OPTIONS", "/v1/tickets")
        .header("origin", PAGE)
        .header("access-control-request-method", "POST")
        .send()
        .await;
    assert_eq!((asks.status, asks.header("access-control-allow-origin")), (204, Some(PAGE)));
    for _ in 0..64 {
        ticket(edge.call("POST", "/v1/tickets")).await;
    }
    edge.post("/v1/tickets", json!({})).await.refused(503, "core.busy");
}
