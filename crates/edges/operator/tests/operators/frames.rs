//! What operators send that cannot be used.

use crate::stage::{Stage, word};
use futures::SinkExt;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use wharf_fuzz::flood_pings;
use wharf_vocab::limits::SOCKET_PINGS_MAX;

#[tokio::test]
async fn o012_what_cannot_be_used_gets_an_error_and_consumes_nothing() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    let req_id = word(&spawn, "req_id").to_owned();
    let wrong_kind = json!({ "type": "answer", "req_id": req_id, "value": 1 }).to_string();
    let large = format!(r#"{{"type":"answer","req_id":"x","value":"{}"}}"#, "x".repeat(1 << 20));
    for (text, code) in [
        ("{oops", "protocol.malformed"),
        ("[]", "protocol.invalid_envelope"),
        (r#"{"type":"dance","req_id":"x"}"#, "protocol.unknown_type"),
        (r#"{"type":"hook_ack","req_id":"x"}"#, "protocol.invalid_envelope"),
        (r#"{"type":"answer","req_id":"x","value":1}"#, "operator.request_unknown"),
        (wrong_kind.as_str(), "operator.reply_mismatch"),
        (large.as_str(), "protocol.frame_too_large"),
    ] {
        seat.stream.send(Message::Text(text.to_owned().into())).await.expect("sends");
        assert_eq!(seat.hear("error").await["code"], code, "{}", &text[..text.len().min(60)]);
    }
    seat.stream.send(Message::Binary(vec![1, 2].into())).await.expect("sends");
    assert_eq!(seat.hear("error").await["code"], "protocol.malformed");
    seat.say(json!({ "type": "spawn_ack", "req_id": req_id, "value": 7, "extra": [] })).await;
    assert_eq!(stage.until(&run, "succeeded").await["outputs"]["value"], 7);
}

#[tokio::test]
async fn o012_too_many_violations_end_the_connection_and_lose_nothing() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    for _ in 0..21 {
        seat.stream.send(Message::Text("oops".into())).await.expect("sends");
    }
    let (code, reason) = seat.closed().await;
    assert_eq!((code, reason.is_empty()), (1008, false));
    let mut seat = stage.open(&key).await;
    assert_eq!(seat.hear("spawn").await["req_id"], spawn["req_id"]);
}

#[tokio::test]
async fn o010_ask_hooks_and_spawn_name_one_task_and_one_agent_for_each_attempt() {
    let stage = Stage::start().await;
    let tools = json!({ "tools": [{ "name": "reader", "side_effects": false }] });
    let key = stage.seat(json!({ "capability_manifest": tools, "person": true })).await;
    let mut seat = stage.open(&key).await;
    let (gate_key, mut gate) = stage.sit().await;
    let hooks = json!({ "spawn_hook_id": gate_key.sid });
    let run = stage.task(&key.sid, json!({ "agent": "reader", "operator": hooks })).await;
    let mut named = std::collections::BTreeSet::new();
    for attempt in 1..=3 {
        let before = gate.hear("hook_before").await;
        gate.say(json!({ "type": "hook_ack", "req_id": before["req_id"], "ok": true })).await;
        let spawn = seat.hear("spawn").await;
        let handle = word(&spawn, "worker_handle");
        let question = json!({ "question": "Which?", "key": format!("k{attempt}"), "wait_ms": 1 });
        let asked = stage.worker(handle, "POST /v1/worker/ask", &question.to_string()).await;
        assert_eq!(asked.status, 202, "{asked:?}");
        let ask = seat.hear("ask").await;
        gate.hear("ask").await;
        seat.say(json!({ "type": "answer", "req_id": ask["req_id"], "value": 1 })).await;
        gate.hear("cancel").await;
        match attempt {
            3 => assert_eq!(stage.submit(&spawn, "done").await.status, 204),
            _ => {
                let error =
                    json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "error": "no" });
                seat.say(error).await;
            }
        }
        let after = gate.hear("hook_after").await;
        let task_id = word(&before, "task_id");
        assert!(task_id.starts_with("ST-"), "{before}");
        for frame in [&before, &ask, &spawn, &after] {
            assert_eq!((&frame["task_id"], &frame["run_id"]), (&json!(task_id), &json!(run)));
        }
        for frame in [&before, &spawn, &after] {
            assert_eq!((&frame["agent"], &frame["attempt"]), (&json!("reader"), &json!(attempt)));
        }
        assert!(named.insert(task_id.to_owned()), "each attempt has a task of its own");
        for frame in [&before, &ask, &spawn, &after] {
            assert!(named.insert(word(frame, "req_id").to_owned()), "{frame}");
        }
    }
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn o010_a_reply_counts_within_its_own_seat_only() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (_, mut other) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    other.say(json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "value": 1 })).await;
    assert_eq!(other.hear("error").await["code"], "operator.request_unknown");
    assert_eq!(stage.run(&run).await["status"], "running");
}

#[tokio::test]
async fn a_flood_of_pings_ends_the_connection_and_loses_nothing() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    let (answered, code) = flood_pings(&mut seat.stream).await;
    assert!(answered <= SOCKET_PINGS_MAX && code == 1008, "{answered} {code}");
    let mut seat = stage.open(&key).await;
    assert_eq!(seat.hear("spawn").await["req_id"], spawn["req_id"]);
}
