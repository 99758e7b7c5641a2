//! Clients that leave or call off what they asked for (M26, M27).

use serde_json::{Value, json};

use crate::client::{OF_06, OF_11, OF_26};
use crate::stage::{Stage, eventually};

#[tokio::test]
async fn m026_a_modern_call_ends_with_its_client() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_26).await;
    let answer = client.call(1, "test__steps", json!({"of": 1})).await;
    assert!(answer.is_stream());
    assert!(stage.only_run().await.cancel.is_none());
    drop(answer);
    let run = stage.until(|run| run.is_over()).await;
    assert_eq!(run.status().as_str(), "canceled");
    let cancel = run.cancel.clone().expect("canceled");
    assert_eq!(cancel.reason, "The client that called for it is gone.");
}

#[tokio::test]
async fn m026_a_client_that_leaves_before_it_hears_anything_leaves_nothing_running() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_26).await;
    for _ in 0..20 {
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.call(1, "test__steps", json!({"of": 1})).await }
        });
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        call.abort();
    }
    eventually(async || stage.runs().await.iter().all(|run| run.is_over()).then_some(())).await;
}

#[tokio::test]
async fn m026_what_was_answered_is_over() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_26).await;
    stage.step(1);
    let done = client.call(1, "test__steps", json!({"of": 0})).await.result().await;
    assert_eq!(done["structuredContent"], json!({"steps": 0}));
    let run = stage.only_run().await;
    assert!(run.cancel.is_none() && run.is_over());
}

#[tokio::test]
async fn m027_a_legacy_client_calls_off_what_it_asked_for() {
    let stage = Stage::start().await;
    for (at, revision) in [OF_06, OF_11].into_iter().enumerate() {
        let client = stage.client().speaking(revision).await;
        let answer = client.call("c", "test__steps", json!({"of": 1})).await;
        for unknown in [json!({"requestId": "d"}), json!({"requestId": 1}), json!({})] {
            assert_eq!(client.notify("notifications/cancelled", unknown).await.status, 202);
        }
        let elsewhere = stage.client().speaking(revision).await;
        let foreign = json!({"requestId": "c"});
        elsewhere.notify("notifications/cancelled", foreign).await;
        assert!(stage.runs().await[0].cancel.is_none(), "others do not call it off");
        let told = json!({"requestId": "c", "reason": "enough"});
        assert_eq!(client.notify("notifications/cancelled", told).await.status, 202);
        let events = answer.rest().await;
        assert!(events.iter().all(|event| event.data.is_null()), "no response: {events:?}");
        let run = eventually(async || {
            let runs = stage.runs().await;
            (runs.len() == at + 1 && runs[0].is_over()).then(|| runs[0].clone())
        })
        .await;
        assert_eq!(run.status().as_str(), "canceled");
        assert_eq!(run.cancel.clone().expect("canceled").reason, "enough");
    }
}

#[tokio::test]
async fn m027_what_was_asked_for_before_a_restart_is_called_off_too() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_11).await;
    drop(client.call(9, "test__steps", json!({"of": 1})).await);
    let stage = stage.killed().await;
    let client = client.moved(stage.addr());
    let told = client.notify("notifications/cancelled", json!({"requestId": 9})).await;
    assert_eq!(told.status, 202);
    let run = stage.until(|run| run.is_over()).await;
    assert_eq!(run.status().as_str(), "canceled");
}

#[tokio::test]
async fn m027_a_run_that_somebody_else_cancels_is_a_result() {
    let stage = Stage::start().await;
    for revision in crate::client::ALL {
        let client = stage.client().speaking(revision).await;
        let answer = client.call(1, "test__steps", json!({"of": 1})).await;
        let run = stage.runs().await.remove(0);
        let owner = wharf_domain::Caller::owner();
        stage.handle.runs().cancel(&owner, &run.key, "not now").await.expect("canceled");
        let result = answer.result().await;
        assert_eq!(result["isError"], true, "{revision}");
        let meta: &Value = &result["_meta"]["dev.wharf/run"];
        assert_eq!((&meta["status"], &meta["code"]), (&json!("canceled"), &json!("tool.canceled")));
    }
}

#[tokio::test]
async fn m026_a_stop_of_the_core_cancels_nothing() {
    let mut stage = Stage::start().await;
    let client = stage.client().speaking(OF_26).await;
    let mut answer = client.call(1, "test__steps", json!({"of": 0})).await;
    stage.hang_up().await;
    assert_eq!(answer.next().await, None);
    drop(answer);
    stage.step(1);
    let run = stage.until(|run| run.is_over()).await;
    assert_eq!(run.status().as_str(), "succeeded");
    assert!(run.cancel.is_none());
}
