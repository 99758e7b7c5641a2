//! Requests that are repeated (M20, M26).

use serde_json::json;

use crate::client::{ALL, Client, OF_06, OF_11, OF_26};
use crate::stage::Stage;

#[tokio::test]
async fn m020_a_repeated_request_of_a_session_joins_its_run_while_that_is_open() {
    let stage = Stage::start().await;
    for (at, revision) in [OF_06, OF_11].into_iter().enumerate() {
        let client = stage.client().speaking(revision).await;
        let begun = at * 5;
        let first = client.call(1, "test__steps", json!({"of": 1})).await;
        let again = client.call(1, "test__steps", json!({"of": 1})).await;
        assert_eq!(stage.runs().await.len(), begun + 1, "it is the same call");
        // The same id with other arguments is another call, and so is another id.
        let other = client.call(1, "test__steps", json!({"of": 0})).await;
        let text = client.call("1", "test__steps", json!({"of": 1})).await;
        let elsewhere = stage.client().speaking(revision).await;
        let foreign = elsewhere.call(1, "test__steps", json!({"of": 1})).await;
        assert_eq!(stage.runs().await.len(), begun + 4);
        stage.step(7);
        let mut runs = Vec::new();
        for answer in [first, again, other, text, foreign] {
            let result = answer.result().await;
            runs.push(result["_meta"]["dev.wharf/run"]["run_id"].clone());
        }
        assert_eq!(runs[0], runs[1]);
        // One that is over is not what a client means that counts anew.
        stage.step(2);
        let result = client.call(1, "test__steps", json!({"of": 1})).await.result().await;
        assert_ne!(result["_meta"]["dev.wharf/run"]["run_id"], runs[0]);
        assert_eq!(stage.runs().await.len(), begun + 5);
    }
}

#[tokio::test]
async fn m020_a_repeated_request_joins_after_a_restart_too() {
    let stage = Stage::start().await;
    let mut clients = Vec::new();
    for revision in [OF_06, OF_11] {
        let client = stage.client().speaking(revision).await;
        drop(client.call("again", "test__steps", json!({"of": 1})).await);
        clients.push(client);
    }
    let stage = stage.killed().await;
    let mut answers = Vec::new();
    for client in &clients {
        let client = client.clone().moved(stage.addr());
        answers.push(client.call("again", "test__steps", json!({"of": 1})).await);
    }
    assert_eq!(stage.runs().await.len(), 2);
    stage.step(4);
    for answer in answers {
        assert_eq!(answer.result().await["structuredContent"], json!({"steps": 1}));
    }
    assert_eq!(stage.runs().await.len(), 2);
}

async fn keyed(client: &Client, id: i64, key: &str, a: i64) -> crate::client::Answer {
    let meta = json!({"dev.wharf/run": {"idempotency_key": key}});
    let params = json!({"name": "wharf__echo", "arguments": {"a": a}, "_meta": meta});
    client.request(id, "tools/call", params).await
}

#[tokio::test]
async fn m020_the_same_key_is_the_same_run_and_with_other_arguments_a_conflict() {
    let stage = Stage::start().await;
    for revision in ALL {
        let client = stage.client().speaking(revision).await;
        let first = keyed(&client, 1, revision, 1).await.result().await;
        let again = keyed(&client, 2, revision, 1).await.result().await;
        let run = |result: &serde_json::Value| result["_meta"]["dev.wharf/run"]["run_id"].clone();
        assert_eq!(run(&first), run(&again), "{revision}");
        let error = keyed(&client, 3, revision, 2).await.refused(200, -32602).await;
        assert_eq!(error["error"]["data"]["code"], "run.conflict");
        // Without a key the same is another run, whatever its id.
        let plain = client.call(1, "wharf__echo", json!({"a": 1})).await.result().await;
        assert_ne!(run(&plain), run(&first));
    }
    assert_eq!(stage.runs().await.len(), 6);
}

#[tokio::test]
async fn m026_a_detached_call_goes_on_and_is_joined_by_its_key_or_its_run() {
    let stage = Stage::start().await;
    let client = stage.client().speaking(OF_26).await;
    for (at, wish) in
        [json!({"detach": true, "idempotency_key": "k"}), json!({"detach": true, "run_id": "mine"})]
            .into_iter()
            .enumerate()
    {
        let params = json!({
            "name": "test__steps", "arguments": {"of": 1}, "_meta": {"dev.wharf/run": wish},
        });
        let mut lost = client.request(1, "tools/call", params.clone()).await;
        assert!(lost.is_stream());
        let quiet = tokio::time::timeout(std::time::Duration::from_millis(50), lost.next()).await;
        assert!(quiet.is_err(), "nothing is said yet");
        drop(lost);
        let joined = client.request(2, "tools/call", params).await;
        stage.step(2);
        let result = joined.result().await;
        assert_eq!(result["structuredContent"], json!({"steps": 1}));
        let runs = stage.runs().await;
        assert!(runs.len() == at + 1 && runs.iter().all(|run| run.cancel.is_none()));
    }
    let client = stage.client().at("/mcp?detach=true").speaking(OF_26).await;
    drop(client.call(3, "test__steps", json!({"of": 0})).await);
    stage.step(1);
    let run = stage.until(|run| run.is_over()).await;
    assert_eq!(run.status().as_str(), "succeeded");
}
