//! What workers fetch and post.

use crate::stage::{Seat, SeatKey, Stage, eventually, word};
use serde_json::{Value, json};
use wharf_ports::ObjectStore;

async fn spawned(stage: &Stage, more: Value) -> (SeatKey, Seat, String, Value) {
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, more).await;
    let spawn = seat.hear("spawn").await;
    (key, seat, run, spawn)
}

#[tokio::test]
async fn o022_the_first_final_stands_and_an_equal_repeat_is_no_error() {
    let stage = Stage::start().await;
    let (_key, _seat, run, spawn) = spawned(&stage, json!({})).await;
    let repeats = futures::future::join_all((0..8).map(|_| stage.submit(&spawn, "one"))).await;
    assert!(repeats.iter().all(|answer| answer.status == 204), "{repeats:?}");
    // Whoever was answered finds the run ended.
    assert_eq!(stage.run(&run).await["status"], "succeeded");
    for _ in 0..2 {
        assert_eq!(stage.submit(&spawn, "two").await.refused(), (409, "worker.already_final"));
        assert_eq!(stage.submit(&spawn, "one").await.status, 204);
    }
    let handle = word(&spawn, "worker_handle");
    let same = json!({ "task_id": spawn["task_id"], "value": "one" }).to_string();
    assert_eq!(stage.worker(handle, "POST /v1/worker/result", &same).await.status, 204);
    let failed = json!({ "task_id": spawn["task_id"], "value": "one", "ok": false }).to_string();
    let answer = stage.worker(handle, "POST /v1/worker/result", &failed).await;
    assert_eq!(answer.refused(), (409, "worker.already_final"));
    assert_eq!(stage.run(&run).await["outputs"]["value"], "one");
}

#[tokio::test]
async fn o022_of_two_different_finals_at_once_one_stands() {
    let stage = Stage::start().await;
    let (_key, _seat, run, spawn) = spawned(&stage, json!({})).await;
    let (a, b) = tokio::join!(stage.submit(&spawn, "a"), stage.submit(&spawn, "b"));
    let mut statuses = [a.status, b.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 409]);
    let stands = if a.status == 204 { "a" } else { "b" };
    assert_eq!(stage.until(&run, "succeeded").await["outputs"]["value"], stands);
}

#[tokio::test]
async fn o022_json_is_read_when_the_content_type_says_so() {
    let stage = Stage::start().await;
    let (_key, _seat, run, spawn) = spawned(&stage, json!({})).await;
    let broken = stage.submit(&spawn, "{oops").await;
    assert_eq!(broken.refused(), (400, "request.invalid"));
    assert_eq!(stage.submit(&spawn, r#"{"n":1}"#).await.status, 204);
    assert_eq!(stage.until(&run, "succeeded").await["outputs"], json!({ "n": 1 }));
}

#[tokio::test]
async fn o024_a_result_that_does_not_fit_the_schema_may_be_mended() {
    let stage = Stage::start().await;
    let schema = json!({
        "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } },
    });
    let tools = json!({ "tools": [{ "name": "counter", "output_schema": schema }] });
    let key = stage.seat(json!({ "capability_manifest": tools })).await;
    let mut seat = stage.open(&key).await;
    let run = stage.task(&key.sid, json!({ "agent": "counter" })).await;
    let spawn = seat.hear("spawn").await;
    let answer = stage.submit(&spawn, r#"{"n":"x"}"#).await;
    assert_eq!(answer.refused(), (422, "tool.invalid_output"));
    assert!(answer.text.contains("/n"), "the path is told: {answer:?}");
    // The schema says that it is JSON, whatever the content type says.
    let line = format!("POST /v1/worker/submit?task_id={}", word(&spawn, "task_id"));
    let handle = word(&spawn, "worker_handle");
    let answer = stage.send(handle, &line, "text/plain", br#"{"n":3}"#).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(stage.until(&run, "succeeded").await["outputs"]["n"], 3);
}

#[tokio::test]
async fn o024_bodies_that_are_too_large_and_queries_that_are_wrong_are_told_as_json() {
    let stage = Stage::start().await;
    let (_key, _seat, run, spawn) = spawned(&stage, json!({})).await;
    let handle = word(&spawn, "worker_handle");
    let large = "x".repeat(2 * 1024 * 1024 + 1);
    for line in ["POST /v1/worker/submit", "POST /v1/worker/progress", "POST /v1/worker/ask"] {
        let answer = stage.worker(handle, line, &large).await;
        assert_eq!(answer.refused(), (413, "request.too_large"), "{line}");
    }
    let larger = json!({ "task_id": spawn["task_id"], "value": format!("{large}{large}") });
    let answer = stage.worker(handle, "POST /v1/worker/result", &larger.to_string()).await;
    assert_eq!(answer.refused(), (413, "request.too_large"));
    let answer = stage.worker(handle, "POST /v1/worker/submit?ok=perhaps", "x").await;
    assert_eq!(answer.refused(), (400, "request.invalid"));
    let answer = stage.worker("wh-x", "POST /v1/worker/submit?ok=perhaps", &large).await;
    assert_eq!(answer.status, 401, "the credential comes first");
    assert_eq!(stage.submit(&spawn, &large[1..]).await.status, 204);
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn o023_progress_is_seen_in_the_run() {
    let stage = Stage::start().await;
    let (_key, _seat, run, spawn) = spawned(&stage, json!({})).await;
    let handle = word(&spawn, "worker_handle");
    let body = r#"{"text":"half done","fraction":0.5}"#;
    let answer = stage.worker(handle, "POST /v1/worker/progress", body).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    let answer = stage.call(&format!("GET /v1/runs/{run}/events"), &Value::Null).await;
    assert!(answer.text.contains("half done") && answer.text.contains("0.5"), "{answer:?}");
}

#[tokio::test]
async fn o023_an_artifact_is_streamed_into_the_runs_world() {
    let stage = Stage::start().await;
    let (_key, _seat, run, spawn) = spawned(&stage, json!({})).await;
    let handle = word(&spawn, "worker_handle");
    let large = "0123456789".repeat(500_000);
    let line = "POST /v1/worker/artifact?name=report";
    assert_eq!(stage.worker(handle, line, &large).await.status, 204);
    let unnamed = stage.worker(handle, "POST /v1/worker/artifact", "x").await;
    assert_eq!(unnamed.refused(), (400, "request.invalid"));
    for name in ["..", "a//b", "../c4nary", "%00"] {
        let line = format!("POST /v1/worker/artifact?name={name}");
        let refused = stage.worker(handle, &line, "x").await;
        assert_eq!(refused.refused(), (400, "request.invalid"), "{name}: {refused:?}");
        assert!(!refused.text.contains("c4nary"), "{refused:?}");
    }
    assert_eq!(stage.submit(&spawn, r#"{"n":1}"#).await.status, 204);
    let ended = stage.until(&run, "succeeded").await;
    assert!(ended["outputs"]["report"].is_string(), "it is among the outputs: {ended}");
    let keys = stage.objects.keys();
    let key = keys.iter().find(|key| key.contains(&run) && key.ends_with("report"));
    let key = key.unwrap_or_else(|| panic!("{keys:?}")).clone();
    let info = stage.objects.head(key).await.expect("readable").expect("there");
    assert_eq!(info.bytes, 5_000_000);
}

#[tokio::test]
async fn o011_a_workers_question_names_the_spawn_and_is_answered_while_it_waits() {
    let stage = Stage::start().await;
    let (_key, mut seat, run, spawn) = spawned(&stage, json!({})).await;
    let handle = word(&spawn, "worker_handle");
    let asking = stage.worker(handle, "POST /v1/worker/ask", r#"{"question":"Which colour?"}"#);
    let answering = async {
        let ask = seat.hear("ask").await;
        assert_eq!(ask["question"], "Which colour?");
        assert_eq!(ask["task_id"], spawn["task_id"]);
        assert_eq!(ask["parent_req_id"], spawn["req_id"], "it is asked within the spawn");
        seat.say(json!({ "type": "answer", "req_id": ask["req_id"], "value": "green" })).await;
    };
    let (answer, ()) = tokio::join!(asking, answering);
    assert_eq!((answer.status, &answer.body["value"]), (200, &json!("green")), "{answer:?}");
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn o023_a_question_that_waits_too_long_is_asked_again_and_not_twice() {
    let stage = Stage::start().await;
    let (_key, mut seat, _run, spawn) = spawned(&stage, json!({})).await;
    let handle = word(&spawn, "worker_handle");
    let body = r#"{"question":"Which?","key":"k","wait_ms":50}"#;
    let answer = stage.worker(handle, "POST /v1/worker/ask", body).await;
    assert_eq!((answer.status, &answer.body["status"]), (202, &json!("pending")));
    let ask = seat.hear("ask").await;
    let again = r#"{"question":"Which?","key":"k"}"#;
    let answering = async {
        seat.say(json!({ "type": "answer", "req_id": ask["req_id"], "value": 7 })).await;
        seat.is_quiet().await;
    };
    let (answer, ()) = tokio::join!(stage.worker(handle, "POST /v1/worker/ask", again), answering);
    assert_eq!((answer.status, &answer.body["value"]), (200, &json!(7)), "{answer:?}");
    let answer = stage.worker(handle, "POST /v1/worker/ask", again).await;
    assert_eq!((answer.status, &answer.body["value"]), (200, &json!(7)), "answered before");
    seat.is_quiet().await;
}

#[tokio::test]
async fn o022_after_a_worker_broke_off_its_result_it_may_give_it_again() {
    use tokio::io::AsyncWriteExt;
    let stage = Stage::start().await;
    let (_key, _seat, run, spawn) = spawned(&stage, json!({})).await;
    let mut stream = tokio::net::TcpStream::connect(stage.addr()).await.expect("connects");
    let head = format!(
        "POST /v1/worker/submit HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-type: text/plain\r\ncontent-length: 4\r\n\r\ndo",
        stage.addr(),
        word(&spawn, "worker_handle"),
    );
    stream.write_all(head.as_bytes()).await.expect("sends");
    drop(stream);
    let submitted = async || (stage.submit(&spawn, "done").await.status == 204).then_some(());
    eventually(submitted).await;
    assert_eq!(stage.until(&run, "succeeded").await["outputs"]["value"], "done");
}
