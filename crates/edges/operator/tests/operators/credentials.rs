//! What workers carry, on every route that takes it.

use crate::stage::{OWNER, Seat, SeatKey, Stage, word};
use serde_json::{Value, json};

/// Every route, with a body that it would take.
const ROUTES: [(&str, &str); 9] = [
    ("GET /v1/worker/prompt", ""),
    ("POST /v1/worker/submit", "text"),
    ("POST /v1/worker/result", r#"{"task_id":"ST-x","value":1}"#),
    ("POST /v1/worker/progress", r#"{"text":"half"}"#),
    ("POST /v1/worker/artifact?name=a.txt", "text"),
    ("POST /v1/worker/ask", r#"{"question":"which?"}"#),
    ("POST /v1/worker/invoke", r#"{"tool":"wharf/echo","inputs":{"text":"hi"}}"#),
    ("POST /v1/worker/stats", r#"{"model":"large"}"#),
    ("POST /v1/worker/degradation", r#"{"tool":"a","error":"b","fallback":"c"}"#),
];
/// What may be told of a task that is over.
const LATE: &str = "POST /v1/worker/stats";

fn with_task(line: &str, task_id: &str) -> String {
    let sign = if line.contains('?') { '&' } else { '?' };
    format!("{line}{sign}task_id={task_id}")
}

async fn spawned(stage: &Stage, key: &SeatKey, seat: &mut Seat) -> (String, Value) {
    let input = json!({ "prompt": "p", "tools": ["wharf/echo"] });
    let run = stage.task(&key.sid, json!({ "input": input })).await;
    (run, seat.hear("spawn").await)
}

/// The text with one character changed.
fn changed(text: &str, at: usize) -> String {
    let mut bytes = text.as_bytes().to_vec();
    bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
    String::from_utf8(bytes).expect("text")
}

#[tokio::test]
async fn o020_forged_unknown_and_missing_credentials_all_get_the_same_answer_on_every_route() {
    let mut seen = None;
    // A core turns away an address that is wrong too often within a minute.
    for routes in ROUTES.chunks(5) {
        let stage = Stage::start().await;
        let (key, mut seat) = stage.sit().await;
        let (_, spawn) = spawned(&stage, &key, &mut seat).await;
        let (token, handle) = (word(&spawn, "capability_token"), word(&spawn, "worker_handle"));
        let bad = [
            String::new(),
            OWNER.to_owned(),
            key.token.clone(),
            changed(handle, handle.len() - 1),
            changed(token, token.len() / 2),
            format!("wh-{}", "a".repeat(40)),
            "e30".to_owned(),
            "x".repeat(9_000),
        ];
        for (line, body) in routes {
            for credential in &bad {
                let line = with_task(line, word(&spawn, "task_id"));
                let answer = stage.worker(credential, &line, body).await;
                assert_eq!(answer.refused(), (401, "auth.invalid"), "{line} {credential}");
                assert_eq!(*seen.get_or_insert(answer.text.clone()), answer.text, "{line}");
            }
        }
        assert_eq!(stage.submit(&spawn, "done").await.status, 204, "the good one is still good");
    }
}

#[tokio::test]
async fn o020_a_credential_for_another_task_is_refused_without_naming_its_own() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (_, one) = spawned(&stage, &key, &mut seat).await;
    let (_, other) = spawned(&stage, &key, &mut seat).await;
    for (line, body) in ROUTES {
        let body = body.replace("ST-x", word(&other, "task_id"));
        for credential in ["worker_handle", "capability_token"] {
            let line = with_task(line, word(&other, "task_id"));
            let answer = stage.worker(word(&one, credential), &line, &body).await;
            assert_eq!(answer.refused(), (403, "permission.denied"), "{line}");
            assert!(!answer.text.contains(word(&one, "task_id")), "{answer:?}");
        }
    }
    let body = json!({ "task_id": other["task_id"], "value": 1 }).to_string();
    let handle = word(&one, "worker_handle");
    let answer = stage.worker(handle, "POST /v1/worker/result", &body).await;
    assert_eq!(answer.refused(), (403, "permission.denied"));
    assert_eq!(stage.submit(&other, "done").await.status, 204);
}

#[tokio::test]
async fn o020_credentials_of_a_task_that_is_over_say_why_on_every_route() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (run, spawn) = spawned(&stage, &key, &mut seat).await;
    stage.call(&format!("POST /v1/runs/{run}/cancel"), &json!({})).await;
    stage.until(&run, "canceled").await;
    for (line, body) in ROUTES.into_iter().filter(|(line, _)| *line != LATE) {
        let body = body.replace("ST-x", word(&spawn, "task_id"));
        for credential in ["worker_handle", "capability_token"] {
            let line = with_task(line, word(&spawn, "task_id"));
            let answer = stage.worker(word(&spawn, credential), &line, &body).await;
            assert_eq!(answer.refused(), (410, "worker.run_over"), "{line} {credential}");
            assert_eq!(answer.body["error"]["details"]["canceled"], true, "{line}");
        }
    }
}

#[tokio::test]
async fn o024_a_route_that_workers_do_not_have_is_not_taken_for_a_wrong_credential() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (_, spawn) = spawned(&stage, &key, &mut seat).await;
    for token in [word(&spawn, "worker_handle"), "wh-forged", ""] {
        for line in ["POST /v1/worker/nothing", "GET /v1/worker/prompt/system"] {
            let answer = stage.worker(token, line, "x").await;
            assert_eq!(answer.refused(), (404, "request.route_unknown"), "{line} {token}");
        }
    }
    let wrong = stage.worker(word(&spawn, "worker_handle"), "GET /v1/worker/submit", "").await;
    assert_eq!(wrong.status, 405, "{wrong:?}");
}

#[tokio::test]
async fn o018_a_token_says_what_it_gives_and_any_change_of_it_breaks_the_seal() {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (_, spawn) = spawned(&stage, &key, &mut seat).await;
    let bytes = URL_SAFE_NO_PAD.decode(word(&spawn, "capability_token")).expect("base64");
    let fields: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!((&fields["role"], &fields["attempt"]), (&json!("worker"), &json!(1)));
    assert_eq!((&fields["task_id"], &fields["agent_id"]), (&spawn["task_id"], &json!("coder")));
    let scopes = fields["scopes"].as_array().expect("a list");
    assert!(scopes.contains(&json!("tool:invoke:wharf/echo")) && !scopes.contains(&json!("*")));
    for (name, value) in [
        ("agent_id", json!("other")),
        ("scopes", json!(["prompt:read", "result:write", "tool:invoke:*"])),
        ("task_id", json!("ST-other")),
        ("attempt", json!(2)),
        ("issued_at", json!(1)),
        ("expire_at", json!(99_999_999_999u64)),
        ("nonce", json!("n")),
        ("sig_hex", json!("")),
        ("role", json!("operator")),
        ("extra", json!(1)),
    ] {
        let mut forged = fields.clone();
        forged[name] = value;
        let text = URL_SAFE_NO_PAD.encode(forged.to_string());
        let answer = stage.worker(&text, "GET /v1/worker/prompt", "").await;
        assert_eq!(answer.refused(), (401, "auth.invalid"), "{name}");
    }
    let good = stage.worker(word(&spawn, "capability_token"), "GET /v1/worker/prompt", "").await;
    assert_eq!(good.status, 200, "{good:?}");
}

#[tokio::test]
async fn o024_a_worker_calls_only_the_tools_it_was_given() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    stage.task(&key.sid, json!({})).await;
    let without = seat.hear("spawn").await;
    let line = "POST /v1/worker/invoke";
    let echo = r#"{"tool":"wharf/echo","inputs":{"text":"hi"}}"#;
    let answer = stage.worker(word(&without, "worker_handle"), line, echo).await;
    assert_eq!(answer.refused(), (403, "permission.denied"));
    let (_, with) = spawned(&stage, &key, &mut seat).await;
    let handle = word(&with, "worker_handle");
    let sleep = r#"{"tool":"wharf/sleep","inputs":{"ms":1}}"#;
    assert_eq!(stage.worker(handle, line, sleep).await.refused(), (403, "permission.denied"));
    let answer = stage.worker(handle, line, echo).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["outputs"]["text"], "hi", "{answer:?}");
}

#[tokio::test]
async fn o020_whoever_guesses_too_often_is_turned_away_and_keeps_nobody_else_out() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (_, spawn) = spawned(&stage, &key, &mut seat).await;
    for number in 0..60 {
        let answer = stage.worker(&format!("wh-{number}"), "GET /v1/worker/prompt", "").await;
        assert_eq!(answer.status, 401, "{number}");
    }
    for (line, body) in ROUTES {
        let answer = stage.worker("wh-guess", line, body).await;
        assert_eq!(answer.status, 429, "{line}");
    }
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
}
