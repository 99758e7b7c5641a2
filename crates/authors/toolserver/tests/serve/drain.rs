//! How a server stops.

use std::time::Duration;

use serde_json::{Value, json};
use wharf_toolserver::{Call, Reporter};

use super::kit::{Stage, done, request, wait};

#[tokio::test]
async fn t001_t021_a_server_that_stops_takes_no_further_runs_and_ends_those_it_has() {
    let stage = Stage::with(wait, |options| options.drain = Duration::from_secs(600)).await;
    let mut running = stage.ask(&request("r", json!({}))).await;
    running.until("started").await;
    stage.stop();
    while stage.http("GET /healthz HTTP/1.1").await.0 != 503 {}
    let (_, body) = stage.http("GET /healthz HTTP/1.1").await;
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body, json!({"ok": false, "digest": "b3:test"}));
    let late = stage.run(&request("late", json!({}))).await;
    assert_eq!((late.code(), late.close), ("ERR_BUSY", Some(1000)));
    // Who watches a run that is there may still come back to it.
    let mut again = stage.ask(&request("r", json!({}))).await;
    again.until("started").await;
    again.send(&json!({"kind": "Cancel"})).await;
    assert_eq!(again.rest().await.code(), "ERR_CANCELED");
    assert_eq!(running.rest().await.code(), "ERR_CANCELED");
    stage.serving.await.expect("the server ends");
}

#[tokio::test]
async fn t010_t021_runs_that_take_longer_are_canceled_and_everybody_hears_the_end() {
    let stage = Stage::with(wait, |options| options.drain = Duration::from_millis(50)).await;
    let mut clients = Vec::new();
    for n in 0..5 {
        let mut client = stage.ask(&request(&format!("r{n}"), json!({}))).await;
        client.until("started").await;
        clients.push(client);
    }
    stage.stop();
    for client in clients {
        let heard = client.rest().await;
        assert_eq!((heard.code(), heard.close), ("ERR_CANCELED", Some(1000)));
        assert_eq!(heard.end()["error"]["message"], "The server is shutting down.");
    }
    stage.serving.await.expect("the server ends");
}

#[tokio::test]
async fn t021_a_server_without_runs_stops_at_once() {
    let stage = Stage::new(|_: Call, _: Reporter| async { done(json!({})) }).await;
    stage.run(&request("r", json!({}))).await;
    let idle = stage.client().await;
    stage.stop();
    let stopped = tokio::time::timeout(Duration::from_secs(20), stage.serving).await;
    stopped.expect("soon").expect("the server ends");
    drop(idle);
}
