//! Cancel, deadlines, and clients that go.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Semaphore;
use wharf_toolserver::{Call, Reporter};

use super::kit::{Stage, done, request, wait};

/// Says when its future is dropped.
struct Told(Arc<Semaphore>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

/// A handler that never ends by itself, and what is told when it is dropped.
fn deaf() -> (
    impl Fn(Call, Reporter) -> futures::future::BoxFuture<'static, wharf_toolserver::Done>,
    Arc<Semaphore>,
) {
    let dropped = Arc::new(Semaphore::new(0));
    let told = Arc::clone(&dropped);
    let handler = move |_: Call, _: Reporter| -> futures::future::BoxFuture<'static, _> {
        let told = Told(Arc::clone(&told));
        Box::pin(async move {
            let _told = told;
            std::future::pending().await
        })
    };
    (handler, dropped)
}

#[tokio::test]
async fn t019_a_cancel_stops_the_run_which_says_so() {
    let stage = Stage::new(wait).await;
    let mut client = stage.ask(&request("r", json!({}))).await;
    client.until("started").await;
    client.send(&json!({"kind": "Cancel", "control": {"run_id": "r"}})).await;
    let heard = client.rest().await;
    assert_eq!(heard.kinds(), ["preempted", "Response"]);
    assert_eq!((heard.code(), heard.close), ("ERR_CANCELED", Some(1000)));
    assert_eq!(heard.end()["control"]["cost_micro"], 1, "what was spent is spent");
}

#[tokio::test]
async fn t019_a_handler_that_does_not_listen_is_dropped_after_the_grace() {
    let (handler, dropped) = deaf();
    let stage = Stage::with(handler, |o| o.cancel_grace = Duration::from_millis(50)).await;
    let mut client = stage.ask(&request("r", json!({}))).await;
    client.until("started").await;
    client.send(&json!({"kind": "Cancel"})).await;
    assert_eq!(client.rest().await.code(), "ERR_CANCELED");
    dropped.acquire().await.expect("dropped").forget();
}

#[tokio::test]
async fn t019_another_runs_cancel_closes_the_connection_and_the_run_goes_on() {
    let stage = Stage::new(wait).await;
    let mut client = stage.ask(&request("r", json!({}))).await;
    client.until("started").await;
    client.send(&json!({"kind": "Cancel", "control": {"run_id": "other"}})).await;
    assert_eq!(client.rest().await.close, Some(1002));
    let mut again = stage.ask(&request("r", json!({}))).await;
    again.until("started").await;
    again.send(&json!({"kind": "Cancel"})).await;
    assert_eq!(again.rest().await.code(), "ERR_CANCELED");
}

#[tokio::test]
async fn t019_a_run_that_nobody_comes_back_to_is_canceled() {
    let (handler, dropped) = deaf();
    let stage = Stage::with(handler, |options| {
        options.limits.grace_ms = 50;
        options.cancel_grace = Duration::from_millis(10);
    })
    .await;
    let mut client = stage.ask(&request("r", json!({}))).await;
    client.until("started").await;
    drop(client);
    dropped.acquire().await.expect("dropped").forget();
    let heard = stage.run(&request("r", json!({}))).await;
    assert_eq!(heard.code(), "ERR_CANCELED");
}

#[tokio::test]
async fn t020_a_run_over_its_time_is_stopped() {
    let (handler, dropped) = deaf();
    let stage = Stage::with(handler, |options| {
        options.timeout = Duration::from_millis(50);
        options.cancel_grace = Duration::from_millis(10);
    })
    .await;
    let heard = stage.run(&request("r", json!({}))).await;
    assert_eq!((heard.code(), heard.close), ("ERR_TIMEOUT", Some(1000)));
    dropped.acquire().await.expect("dropped").forget();
}

#[tokio::test]
async fn t004_a_request_may_ask_for_less_time() {
    let stage = Stage::new(wait).await;
    let mut asked = request("r", json!({}));
    asked["control"]["deadline_ms"] = json!(50);
    assert_eq!(stage.run(&asked).await.code(), "ERR_TIMEOUT");
}

#[tokio::test]
async fn t017_a_newer_attempt_takes_over() {
    let stage = Stage::new(|call: Call, report: Reporter| async move {
        if call.attempt == 1 {
            wait(call, report).await
        } else {
            done(json!({"attempt": call.attempt}))
        }
    })
    .await;
    let mut first = stage.ask(&request("r", json!({}))).await;
    first.until("started").await;
    let mut second = request("r", json!({}));
    second["control"]["attempt"] = json!(2);
    let second = stage.run(&second).await;
    assert_eq!(second.end()["outputs"], json!({"attempt": 2}));
    let first = first.rest().await;
    assert_eq!(first.code(), "ERR_CANCELED");
    assert_eq!(first.end()["error"]["message"], "A newer attempt took over.");
}
