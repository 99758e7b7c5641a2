//! Frames: strict to write, lenient to read, and what becomes of bad ones.

use futures::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::stage::{OWNER, Stage, acting};

/// The keys of an object, in order.
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn k024_a_strict_operative_sees_only_keys_it_knows() {
    let stage = Stage::start().await;
    let query = "role=operative&provider=browser&tools=a";
    let mut plain = stage.connect(query, OWNER, "").await.expect("connects");
    // A type that it does not know, and ignores.
    plain.hear("offered").await;
    let run = stage.run("browser/a", json!({})).await;
    let frame = plain.hear("request").await;
    assert_eq!(keys(&frame), ["payload", "type"]);
    assert_eq!(keys(&frame["payload"]), ["id", "kind", "payload", "type"]);
    stage.call(&format!("POST /v1/runs/{run}/cancel"), &Value::Null).await;
    let cancel = plain.hear("cancel").await;
    assert_eq!(keys(&cancel), ["id", "type"]);
}

#[tokio::test]
async fn k024_a_strict_principal_sees_only_keys_it_knows() {
    let stage = Stage::start().await;
    let mut plain = stage.connect("role=principal", OWNER, "wharf.v1").await.expect("connects");
    plain.ask("1", "wharf/count", json!({"n": 1})).await;
    loop {
        let frame = plain.next().await.expect("a frame");
        if frame["type"] == "response" {
            assert_eq!(keys(&frame), ["id", "response", "type"]);
            assert_eq!(keys(&frame["response"]), ["content", "status"]);
            break;
        }
        assert_eq!(keys(&frame), ["data", "id", "type"]);
    }
    plain.ask("2", "wharf/fail", json!({"message": "Sorry."})).await;
    let failed = plain.response("2").await;
    assert_eq!(failed, json!({"status": "other", "content": "Sorry."}));
    plain.ask("3", "nothing", json!({})).await;
    assert_eq!(keys(&plain.response("3").await), ["content", "status"]);
    let mut ours = stage.principal().await;
    ours.ask("2", "wharf/fail", json!({"message": "Sorry.", "code": "acme.sorry"})).await;
    let failed = ours.response("2").await;
    assert_eq!(failed["fault"]["code"], "acme.sorry");
    assert_eq!((&failed["status"], &failed["content"]), (&json!("other"), &json!("Sorry.")));
}

#[tokio::test]
async fn k024_requests_come_bare_or_in_an_envelope_and_may_lack_a_payload() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    let echo = json!({"id": "1", "kind": "elicit", "type": "wharf/echo", "payload": {"a": 1}});
    peer.say(echo).await;
    assert_eq!(peer.response("1").await["content"], json!({"a": 1}));
    let bare = json!({"id": "2", "kind": "elicit", "type": "wharf/echo", "extra": true});
    peer.say(json!({"type": "request", "payload": bare, "trace": "x"})).await;
    assert_eq!(peer.response("2").await["content"], json!({}));
    peer.say(json!({"type": "news", "from": "the future"})).await;
    peer.ask("3", "wharf/echo", json!({})).await;
    peer.response("3").await;
}

#[tokio::test]
async fn k025_answers_that_nobody_waits_for_are_ignored() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    page.accept("never", json!({})).await;
    page.say(json!({"type": "progress", "id": "never", "data": 1})).await;
    page.say(json!({"type": "cancel", "id": "never"})).await;
    let run = stage.run("browser/a", json!({})).await;
    let (id, _) = page.request().await;
    page.accept(&id, json!({"n": 1})).await;
    page.accept(&id, json!({"n": 2})).await;
    assert_eq!(stage.until(&run, "succeeded").await["outputs"], json!({"n": 1}));
}

#[tokio::test]
async fn k025_an_id_that_is_in_use_stands_for_the_first_request() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    let mut page = stage.operative("browser", acting("a")).await;
    peer.ask("1", "browser/a", json!({"n": 1})).await;
    let (id, _) = page.request().await;
    peer.ask("1", "wharf/echo", json!({"n": 2})).await;
    peer.ask("2", "wharf/echo", json!({"n": 3})).await;
    assert_eq!(peer.response("2").await["content"], json!({"n": 3}));
    page.accept(&id, json!({"n": 1})).await;
    assert_eq!(peer.response("1").await["content"], json!({"n": 1}));
    // Once it is answered the id is free again.
    peer.ask("1", "wharf/echo", json!({"n": 4})).await;
    assert_eq!(peer.response("1").await["content"], json!({"n": 4}));
}

#[tokio::test]
async fn k027_what_cannot_be_read_is_answered_if_it_can_be_and_too_much_of_it_ends_the_connection()
{
    let stage = Stage::with(|options| options.unreadable_max = 5).await;
    let mut peer = stage.principal().await;
    peer.say(json!({"type": "request", "payload": {"id": "1", "kind": "sing", "type": "x"}})).await;
    let answer = peer.response("1").await;
    assert_eq!(answer["fault"]["code"], "protocol.malformed", "{answer}");
    for _ in 0..4 {
        peer.stream.send(Message::Text("{\"type\":\"requ".into())).await.expect("sends");
    }
    peer.ask("2", "wharf/echo", json!({})).await;
    peer.response("2").await;
    peer.stream.send(Message::Binary(vec![1, 2].into())).await.expect("sends");
    assert_eq!(peer.closed().await.0, 1008);
}

#[tokio::test]
async fn k027_a_frame_that_is_too_large_ends_the_connection_and_loses_nothing_else() {
    let stage = Stage::with(|options| options.limits.frame_bytes_max = 2_000).await;
    for bytes in [3_000, 200_000] {
        let mut page = stage.operative("browser", acting("a")).await;
        let run = stage.run("browser/a", json!({})).await;
        let (id, _) = page.request().await;
        page.accept(&id, json!({"x": "y".repeat(bytes)})).await;
        let (code, _) = page.closed().await;
        assert_eq!(code, 1009, "{bytes}");
        assert_eq!(stage.until(&run, "failed").await["error"]["code"], "tool.agent_lost");
    }
    // What is too large to be asked is never asked.
    let _page = stage.operative("browser", acting("a")).await;
    let run = stage.run("browser/a", json!({"x": "y".repeat(3_000)})).await;
    let failed = stage.until(&run, "failed").await;
    assert_eq!(failed["error"]["code"], "tool.input_too_large");
}
