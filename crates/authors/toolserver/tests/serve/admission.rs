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
