//! Signs of life.

use serde_json::json;

use super::kit::{Stage, request, wait};

#[tokio::test]
async fn t013_a_silent_run_gives_signs_of_life_also_while_it_waits() {
    let stage = Stage::with(wait, |options| {
        options.concurrency = 1;
        options.limits.keep_alive_ms = 20;
    })
    .await;
    let mut running = stage.ask(&request("r1", json!({}))).await;
    running.until("started").await;
    let mut waiting = stage.ask(&request("r2", json!({}))).await;
    assert_eq!(waiting.frame().await["kind"], "Ack");
    for client in [&mut running, &mut waiting] {
        for _ in 0..3 {
            let frame = client.frame().await;
            assert_eq!(frame["data"], json!({"phase": "checkpoint"}));
            assert!(frame["control"].get("seq").is_none(), "it is not part of what the run said");
        }
    }
    running.send(&json!({"kind": "Cancel"})).await;
    running.rest().await;
    let replay = stage.run(&request("r1", json!({}))).await;
    assert_eq!(replay.kinds(), ["Ack", "started", "preempted", "Response"]);
}
