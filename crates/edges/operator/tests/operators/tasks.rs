//! Tasks as peers of operators know them, and what a restart leaves of them.

use crate::stage::{Stage, eventually, word};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_domain::Policy;

#[tokio::test]
async fn o028_a_task_is_answered_with_its_result() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let request = json!({ "agent": "coder", "operator_sid": key.sid, "input": "Do it." });
    let working = async {
        let spawn = seat.hear("spawn").await;
        assert_eq!(stage.submit(&spawn, "done").await.status, 204);
        spawn
    };
    let (answer, spawn) = tokio::join!(stage.call("POST /v1/tasks", &request), working);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["result"], json!({ "value": "done" }));
    assert!(word(&answer.body, "task_id").starts_with("T-"));
    assert!(word(&answer.body, "run_id").starts_with("R-"));
    assert_eq!(spawn["run_id"], answer.body["run_id"]);
}

#[tokio::test]
async fn o028_a_detached_task_is_answered_at_once_and_seen_as_a_run() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let request = json!({
        "blueprint": "coder", "operator_sid": key.sid, "init_ctx": { "prompt": "x", "n": 1 },
        "detach": true, "run_id": "mine", "ttl_secs": 60,
    });
    let answer = stage.call("POST /v1/tasks", &request).await;
    assert_eq!((answer.status, &answer.body["status"]), (202, &json!("running")));
    assert_eq!(answer.body["run_id"], "mine", "ids of the caller stay as they are");
    let spawn = seat.hear("spawn").await;
    assert_eq!(stage.prompt(&spawn).await.body["inputs"]["n"], 1);
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    stage.until("mine", "succeeded").await;
}

#[tokio::test]
async fn o028_a_task_that_goes_wrong_says_so_with_a_code() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let request = json!({ "agent": "coder", "operator_sid": key.sid });
    let failing = async {
        let spawn = seat.hear("spawn").await;
        seat.say(json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "error": "no" })).await;
    };
    let (answer, ()) = tokio::join!(stage.call("POST /v1/tasks", &request), failing);
    assert_eq!(answer.refused(), (502, "operator.failed"));
    assert!(word(&answer.body["error"]["details"], "run_id").starts_with("R-"));
    let late = json!({ "agent": "coder", "operator_sid": key.sid, "timeout_secs": 1 });
    let answer = stage.call("POST /v1/tasks", &late).await;
    assert_eq!(answer.refused(), (504, "tool.timeout"));
    for (request, refused) in [
        (json!({}), (400, "request.invalid")),
        (json!({ "agent": "no/such" }), (404, "tool.not_found")),
        (json!({ "agent": "a b", "operator_sid": key.sid }), (400, "request.invalid")),
        (json!({ "agent": "wharf/sleep", "input": { "ms": "x" } }), (422, "tool.invalid_input")),
    ] {
        let answer = stage.call("POST /v1/tasks", &request).await;
        assert_eq!(answer.refused(), refused, "{request}");
    }
    let reader = stage.token(json!({ "verbs": ["read"] })).await;
    let other = json!({ "agent": "other", "operator_sid": key.sid });
    let denied = stage.call_as(&reader, "POST /v1/tasks", &other).await;
    assert_eq!(denied.refused(), (403, "permission.denied"));
    let tools = stage.call("GET /v1/tools?limit=100", &Value::Null).await;
    assert!(tools.text.contains("/coder") && !tools.text.contains("/other"), "{tools:?}");
}

#[tokio::test]
async fn o005_a_restart_between_spawn_and_submit_loses_nothing() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    let stage = stage.killed().await;
    let early = async || (stage.prompt(&spawn).await.status == 200).then_some(());
    eventually(early).await;
    let mut seat = stage.open(&key).await;
    let again = seat.hear("spawn").await;
    assert_eq!(again["redelivered"], true, "{again}");
    for same in ["req_id", "task_id", "worker_handle", "attempt", "run_id"] {
        assert_eq!(again[same], spawn[same], "{same}");
    }
    let line = format!("GET /v1/worker/prompt?task_id={}", word(&spawn, "task_id"));
    let token = word(&spawn, "capability_token");
    assert_eq!(stage.worker(token, &line, "").await.body["prompt"], "Do it.");
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    let stage = stage.killed().await;
    let ended = stage.run(&run).await;
    assert_eq!(
        (&ended["status"], &ended["outputs"]["value"]),
        (&json!("succeeded"), &json!("done"))
    );
    let mut seat = stage.open(&key).await;
    seat.is_quiet().await;
}

#[tokio::test]
async fn o005_asks_and_gates_are_sent_again_after_a_restart() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let gate = json!({ "operator": { "spawn_hook_id": key.sid } });
    let run = stage.task(&key.sid, gate).await;
    let hook = seat.hear("hook_before").await;
    let stage = stage.killed().await;
    let mut seat = stage.open(&key).await;
    let again = seat.hear("hook_before").await;
    assert_eq!((&again["req_id"], &again["redelivered"]), (&hook["req_id"], &json!(true)));
    seat.say(json!({ "type": "hook_ack", "req_id": hook["req_id"], "ok": true })).await;
    let spawn = seat.hear("spawn").await;
    assert_eq!(spawn.get("redelivered"), None::<&Value>, "{spawn}");
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn o015_a_senior_who_was_asked_before_a_restart_still_decides() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (senior_key, mut senior) = stage.sit().await;
    let run =
        stage.task(&key.sid, json!({ "operator": { "senior_bridge_id": senior_key.sid } })).await;
    let spawn = seat.hear("spawn").await;
    let line = format!("POST /v1/worker/submit?ok=false&task_id={}", word(&spawn, "task_id"));
    let handle = word(&spawn, "worker_handle");
    assert_eq!(stage.worker(handle, &line, "stuck").await.status, 204);
    let ask = senior.hear("ask").await;
    let stage = stage.killed().await;
    let (mut seat, mut senior) = (stage.open(&key).await, stage.open(&senior_key).await);
    let again = senior.hear("ask").await;
    assert_eq!(again["req_id"], ask["req_id"]);
    assert_eq!(stage.worker(handle, &line, "stuck").await.status, 204, "an equal repeat");
    assert_eq!(stage.submit(&spawn, "other").await.refused(), (409, "worker.already_final"));
    senior.say(json!({ "type": "answer", "req_id": ask["req_id"], "value": 42 })).await;
    let ended = stage.until(&run, "succeeded").await;
    assert_eq!(ended["outputs"], json!({ "original": "stuck", "senior_answer": 42 }));
    seat.is_quiet().await;
}

#[tokio::test]
async fn o020_a_worker_of_before_a_restart_learns_that_its_run_is_over() {
    for (settle, refused) in [(0, (410, "worker.run_over")), (60, (503, "core.busy"))] {
        let adjust = match settle {
            0 => |options: &mut wharf_operator::Options| options.settle = Duration::ZERO,
            _ => |_: &mut wharf_operator::Options| {},
        };
        let stage = Stage::with(Policy::default(), adjust).await;
        let (key, mut seat) = stage.sit().await;
        let run = stage.task(&key.sid, json!({})).await;
        let spawn = seat.hear("spawn").await;
        assert_eq!(stage.submit(&spawn, "done").await.status, 204);
        stage.until(&run, "succeeded").await;
        let stage = stage.killed().await;
        let line = format!("GET /v1/worker/prompt?task_id={}", word(&spawn, "task_id"));
        for credential in ["worker_handle", "capability_token"] {
            let answer = stage.worker(word(&spawn, credential), &line, "").await;
            assert_eq!(answer.refused(), refused, "{credential}");
        }
        let other = "GET /v1/worker/prompt?task_id=ST-other";
        let answer = stage.worker(word(&spawn, "worker_handle"), other, "").await;
        assert_eq!(answer.refused(), (401, "auth.invalid"));
    }
}
