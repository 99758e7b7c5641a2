//! Slots, the queue, and how many connections there may be.

use serde_json::json;
use tokio::net::TcpStream;

use super::kit::{Stage, request, wait};

#[tokio::test]
async fn t007_t020_who_waits_is_acknowledged_and_beyond_the_queue_it_is_busy() {
    let stage = Stage::with(wait, |options| {
        options.concurrency = 1;
        options.queue = 1;
    })
    .await;
    let mut running = stage.ask(&request("r1", json!({}))).await;
    running.until("started").await;
    let mut waiting = stage.ask(&request("r2", json!({}))).await;
    assert_eq!(waiting.frame().await["kind"], "Ack");
    let busy = stage.run(&request("r3", json!({}))).await;
    assert_eq!((busy.code(), busy.close), ("ERR_BUSY", Some(1000)));
    assert_eq!(busy.kinds(), ["Ack", "Response"]);
    running.send(&json!({"kind": "Cancel"})).await;
    assert_eq!(running.rest().await.code(), "ERR_CANCELED");
    waiting.until("started").await;
    // Busy is no verdict on the run: once there is room it is taken.
    let mut taken = stage.ask(&request("r3", json!({}))).await;
    assert_eq!(taken.frame().await["kind"], "Ack");
    waiting.send(&json!({"kind": "Cancel"})).await;
    taken.until("started").await;
}

#[tokio::test]
async fn t019_a_run_that_waits_for_its_turn_can_be_canceled() {
    let stage = Stage::with(wait, |options| options.concurrency = 1).await;
    let mut running = stage.ask(&request("r1", json!({}))).await;
    running.until("started").await;
    let mut waiting = stage.ask(&request("r2", json!({}))).await;
    waiting.send(&json!({"kind": "Cancel"})).await;
    let heard = waiting.rest().await;
    assert_eq!(heard.kinds(), ["Ack", "preempted", "Response"]);
    assert_eq!(heard.code(), "ERR_CANCELED");
}

#[tokio::test]
async fn more_connections_than_allowed_are_refused_and_health_is_not() {
    let stage = Stage::with(wait, |options| options.connections_max = 2).await;
    let one = stage.client().await;
    let _two = stage.client().await;
    assert_eq!(stage.client_with(&[]).await.err(), Some(503));
    assert_eq!(stage.http("GET /healthz HTTP/1.1").await.0, 200);
    drop(one);
    while stage.client_with(&[]).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn connections_that_say_nothing_take_nobodys_place() {
    let stage = Stage::with(wait, |options| options.connections_max = 4).await;
    let mut idle = Vec::new();
    for _ in 0..40 {
        idle.push(TcpStream::connect(&stage.address).await.expect("accepted"));
    }
    let mut client = stage.ask(&request("r", json!({}))).await;
    client.until("started").await;
}

#[tokio::test]
async fn t020_requests_are_bounded_by_their_bytes_together() {
    let stage = Stage::with(wait, |options| options.requests_bytes_max = 100_000).await;
    let large = json!({"x": "y".repeat(60_000)});
    let mut running = stage.ask(&request("r1", large.clone())).await;
    running.until("started").await;
    let busy = stage.run(&request("r2", large.clone())).await;
    assert_eq!((busy.code(), busy.close), ("ERR_BUSY", Some(1000)));
    let mut small = stage.ask(&request("r3", json!({}))).await;
    small.until("started").await;
    let mut again = stage.ask(&request("r1", large.clone())).await;
    again.until("started").await;
    running.send(&json!({"kind": "Cancel"})).await;
    assert_eq!(running.rest().await.code(), "ERR_CANCELED");
    let mut taken = stage.ask(&request("r2", large)).await;
    taken.until("started").await;
}

#[tokio::test]
async fn t001_connections_that_never_finish_their_request_do_not_keep_others_out() {
    use tokio::io::AsyncWriteExt as _;
    let stage = Stage::with(wait, |options| options.connections_max = 1).await;
    let mut stuck = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(&stage.address).await.expect("accepted");
        // The server may have given it up already.
        let _ = stream.write_all(b"GET /run HTTP/1.1\r\nHost: loc").await;
        stuck.push(stream);
    }
    // The stuck ones would be given up by themselves after twice this time.
    let patience = std::time::Duration::from_secs(5);
    let health = tokio::time::timeout(patience, stage.http("GET /healthz HTTP/1.1")).await;
    assert_eq!(health.expect("in time").0, 200);
}
