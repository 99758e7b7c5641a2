//! Connections that are lost, at each point.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::stage::{OWNER, Stage, acting, harmless};

#[tokio::test]
async fn k026_an_operative_that_is_lost_while_it_acts_fails_the_run() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let run = stage.run("browser/a", json!({})).await;
    page.request().await;
    drop(page);
    let failed = stage.until(&run, "failed").await;
    assert_eq!(failed["error"]["code"], "tool.agent_lost");
    assert_eq!(failed["error"]["details"]["executed"], "maybe");
}

#[tokio::test]
async fn k026_a_page_that_was_loaded_again_gets_the_call_again_if_it_only_looks() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", harmless("look")).await;
    let run = stage.run("browser/look", json!({"n": 1})).await;
    let (first, _) = page.request().await;
    page.say(json!({"type": "progress", "id": first, "data": 1})).await;
    drop(page);
    let mut page = stage.operative("browser", harmless("look")).await;
    let (second, request) = page.request().await;
    assert_ne!(first, second);
    assert_eq!(request["payload"], json!({"n": 1}));
    // The answer to the first call is not taken for one to the second.
    page.accept(&first, json!({"from": "the dead"})).await;
    page.accept(&second, json!({"from": "the living"})).await;
    let ended = stage.until(&run, "succeeded").await;
    assert_eq!(ended["outputs"], json!({"from": "the living"}));
    assert_eq!(ended["attempt"], 2);
}

#[tokio::test]
async fn k026_a_page_takes_its_own_place_in_the_middle_of_a_call() {
    let stage = Stage::start().await;
    let mut old = stage.operative("browser", harmless("look")).await;
    let run = stage.run("browser/look", json!({})).await;
    old.request().await;
    // The old connection is still there when the new page comes.
    let mut new = stage.operative("browser", harmless("look")).await;
    let (id, _) = new.request().await;
    new.accept(&id, json!({})).await;
    stage.until(&run, "succeeded").await;
    assert_eq!(old.closed().await.0, 1000);
}

#[tokio::test]
async fn k026_a_run_waits_for_its_operative_and_then_no_more() {
    let stage = Stage::with(|options| options.away = Duration::from_millis(500)).await;
    let page = stage.operative("browser", acting("a")).await;
    drop(page);
    let tool = stage.away("browser/a").await;
    assert_eq!(tool["state_reason"], "nobody is connected as browser; runs wait 500ms for it");
    let known = stage.call("GET /v1/providers/browser", &Value::Null).await.body;
    assert_eq!((&known["state"], &known["reason"]), (&json!("stopped"), &tool["state_reason"]));
    let run = stage.run("browser/a", json!({})).await;
    let mut page = stage.operative("browser", acting("a")).await;
    let (id, _) = page.request().await;
    page.accept(&id, json!({})).await;
    stage.until(&run, "succeeded").await;
    drop(page);
    stage.away("browser/a").await;
    let waiting = stage.run("browser/a", json!({})).await;
    let failed = stage.until(&waiting, "failed").await;
    assert_eq!(failed["error"]["code"], "tool.unavailable");
    let tool = stage.given_up("browser/a").await;
    assert_eq!(tool["state_reason"], "nobody is connected as browser");
    // One who is connected but has nothing to offer helps nobody.
    let silent = stage.connect("role=operative&provider=browser", OWNER, "").await;
    let tool = stage.tool("browser/a", "starting").await;
    assert_eq!(tool["state_reason"], Value::Null);
    stage.tool("browser/a", "unavailable").await;
    drop(silent);
}

#[tokio::test]
async fn k032_a_run_that_waited_goes_on_after_a_restart_of_the_core() {
    let stage = Stage::start().await;
    let page = stage.operative("browser", acting("a")).await;
    drop(page);
    stage.away("browser/a").await;
    let run = stage.run("browser/a", json!({"n": 7})).await;
    let stage = stage.killed().await;
    // The catalog knows the tool although nobody is connected yet.
    stage.away("browser/a").await;
    let mut page = stage.operative("browser", acting("a")).await;
    let (id, request) = page.request().await;
    assert_eq!(request["payload"], json!({"n": 7}));
    page.accept(&id, json!({"m": 8})).await;
    assert_eq!(stage.until(&run, "succeeded").await["outputs"], json!({"m": 8}));
}

#[tokio::test]
async fn k032_a_restart_of_the_core_in_the_middle_of_a_call_follows_the_rules_of_retries() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", json!([acting("act")[0], harmless("look")[0]])).await;
    let act = stage.run("browser/act", json!({})).await;
    page.request().await;
    let look = stage.run("browser/look", json!({})).await;
    page.request().await;
    let stage = stage.killed().await;
    let failed = stage.until(&act, "failed").await;
    assert_eq!(failed["error"]["code"], "tool.agent_lost");
    let tools = json!([acting("act")[0], harmless("look")[0]]);
    let mut page = stage.operative("browser", tools).await;
    let (id, request) = page.request().await;
    assert_eq!(request["type"], "look");
    page.accept(&id, json!({})).await;
    stage.until(&look, "succeeded").await;
}

#[tokio::test]
async fn k026_calls_that_were_never_sent_are_tried_again() {
    let stage = Stage::with(|options| options.limits.calls_max = 1).await;
    let mut page = stage.operative("browser", acting("a")).await;
    let first = stage.run("browser/a", json!({"n": 1})).await;
    page.request().await;
    let second = stage.run("browser/a", json!({"n": 2})).await;
    drop(page);
    stage.until(&first, "failed").await;
    let mut page = stage.operative("browser", acting("a")).await;
    let (id, request) = page.request().await;
    assert_eq!(request["payload"]["n"], 2, "the second never started");
    page.accept(&id, json!({})).await;
    stage.until(&second, "succeeded").await;
}

#[tokio::test]
async fn k026_a_silent_peer_is_let_go() {
    let stage = Stage::with(|options| {
        options.ping = Duration::from_millis(20);
        options.silence_max = Duration::from_secs(1);
    })
    .await;
    // A peer that reads answers pings by itself; this one does not read.
    let deaf = stage.operative("browser", acting("a")).await;
    stage.away("browser/a").await;
    drop(deaf);
}

#[tokio::test]
async fn k026_a_page_that_is_loaded_again_and_again_is_up_in_the_end() {
    let stage = Stage::start().await;
    for _ in 0..30 {
        let page = stage.operative("browser", harmless("look")).await;
        drop(page);
    }
    let mut page = stage.operative("browser", harmless("look")).await;
    let run = stage.run("browser/look", json!({})).await;
    let (id, _) = page.request().await;
    page.accept(&id, json!({})).await;
    stage.until(&run, "succeeded").await;
    stage.tool("browser/look", "available").await;
}

#[tokio::test]
async fn k026_an_operative_that_is_lost_while_it_asks_leaves_no_question_behind() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let run = stage.run("browser/a", json!({})).await;
    let (of, _) = page.request().await;
    page.ask_within(&of, "q", "form", json!({"message": "Still there?"})).await;
    stage.until(&run, "waiting").await;
    drop(page);
    assert_eq!(stage.until(&run, "failed").await["error"]["code"], "tool.agent_lost");
    let inbox = stage.call("GET /v1/inbox", &Value::Null).await.body;
    assert_eq!(inbox["items"], json!([]));
}

#[tokio::test]
async fn k026_an_operative_that_is_lost_after_it_answered_has_answered() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let run = stage.run("browser/a", json!({})).await;
    let (id, _) = page.request().await;
    page.accept(&id, json!({"n": 1})).await;
    page.stream.get_mut().shutdown().await.expect("shuts down");
    drop(page);
    assert_eq!(stage.until(&run, "succeeded").await["outputs"], json!({"n": 1}));
}

#[tokio::test]
async fn k027_a_frame_that_breaks_off_is_no_frame() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let run = stage.run("browser/a", json!({})).await;
    page.request().await;
    // The head of a text of 100 bytes, and some of them.
    let socket = page.stream.get_mut();
    socket.write_all(&[0x81, 0x80 | 100, 0, 0, 0, 0, b'{', b'"']).await.expect("sends");
    socket.shutdown().await.expect("shuts down");
    drop(page);
    assert_eq!(stage.until(&run, "failed").await["error"]["code"], "tool.agent_lost");
}
