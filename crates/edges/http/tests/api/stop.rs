//! An orderly end.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::support::client::Answer;
use crate::support::{Edge, PATIENCE, eventually};

/// Begins a request whose body is still to come, and waits until the core wants to read it.
async fn begin_request(edge: &Edge, length: usize) -> BufReader<TcpStream> {
    let head = edge.call("POST", "/v1/runs").header("content-length", &length.to_string());
    let head = head.header("expect", "100-continue").head();
    let mut stream =
        BufReader::new(TcpStream::connect(edge.server.addr()).await.expect("connects"));
    stream.get_mut().write_all(head.as_bytes()).await.expect("sends");
    assert_eq!(Answer::read(&mut stream).await.expect("an answer").status, 100);
    stream
}

#[tokio::test]
async fn requests_under_way_are_finished() {
    let edge = Edge::start().await;
    let addr = edge.server.addr();
    let body = json!({"tool": "wharf/echo"}).to_string();
    let mut stream = begin_request(&edge, body.len()).await;
    let Edge { server, .. } = edge;
    let stopped = tokio::spawn(server.stop(PATIENCE));
    eventually(async || TcpStream::connect(addr).await.is_err().then_some(())).await;
    stream.get_mut().write_all(body.as_bytes()).await.expect("sends");
    let answer = Answer::read(&mut stream).await.expect("an answer");
    assert_eq!(answer.status, 202, "{answer:?}");
    stopped.await.expect("stopped");
}

#[tokio::test]
async fn waiting_callers_are_answered_and_streams_end_politely() {
    let edge = Edge::start().await;
    let run = edge.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let mut events = edge.events(&run, "").await;
    while events.next().await.expect("an event").event != "started" {}
    let body = json!({"tool": "wharf/sleep", "inputs": {"ms": 60_000}, "run_id": "waited"});
    let waiting = edge.call("POST", "/v1/runs?wait=5m").json(&body);
    let waiting = tokio::spawn(waiting.send());
    edge.until("waited", "running").await;

    edge.server.drain();
    let answer = waiting.await.expect("answered");
    assert_eq!(answer.status, 202);
    assert_eq!(answer.json(), json!({"run_id": "waited", "status": "running"}));

    let Edge { server, .. } = edge;
    let stopped = tokio::spawn(server.stop(PATIENCE));
    let goodbye = events.next().await.expect("a last word");
    assert!(goodbye.comment.expect("a comment").contains("stopping"));
    assert_eq!(events.next().await, None);
    stopped.await.expect("stopped");
}

#[tokio::test]
async fn what_does_not_end_in_time_is_cut_off() {
    let edge = Edge::start().await;
    let mut stream = begin_request(&edge, 1000).await;
    let Edge { server, .. } = edge;
    let stop = server.stop(Duration::from_millis(100));
    tokio::time::timeout(PATIENCE, stop).await.expect("stopped in time");
    assert!(Answer::read(&mut stream).await.is_none(), "cut off without an answer");
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_end() {
    let edge = Edge::start().await;
    let mut stream =
        BufReader::new(TcpStream::connect(edge.server.addr()).await.expect("connects"));
    let head = edge.call("GET", "/v1/tools").head();
    stream.get_mut().write_all(head.as_bytes()).await.expect("sends");
    assert_eq!(Answer::read(&mut stream).await.expect("an answer").status, 200);
    let Edge { server, .. } = edge;
    // Well below the idle time and the deadline.
    let stop = server.stop(Duration::from_secs(60));
    tokio::time::timeout(Duration::from_secs(10), stop).await.expect("stopped at once");
}

#[tokio::test]
async fn readiness_ends_before_the_answers_do() {
    let edge = Edge::start().await;
    let mut stream =
        BufReader::new(TcpStream::connect(edge.server.addr()).await.expect("connects"));
    assert_eq!(edge.get("/readyz").await.status, 200);
    edge.handle.stop(Duration::ZERO).await;
    stream.get_mut().write_all(edge.call("GET", "/readyz").head().as_bytes()).await.expect("sends");
    let answer = Answer::read(&mut stream).await.expect("an answer");
    answer.refused(503, "core.stopping");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(edge.get("/healthz").await.status, 200);
    edge.post("/v1/runs", json!({"tool": "wharf/echo"})).await.refused(503, "core.stopping");
}
