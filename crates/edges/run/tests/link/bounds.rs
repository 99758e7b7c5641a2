//! What a server can cost the core.

use serde_json::{Map, json};
use wharf_vocab::limits::SOCKET_PINGS_MAX;
use wharf_vocab::{Code, RunStatus};

use crate::stage::Plan;
use crate::troupe::Troupe;

#[tokio::test]
async fn a_message_that_is_too_large_is_not_taken_in() {
    let troupe = Troupe::tcp().await;
    let plan = Plan::new(troupe.endpoint());
    let stage = plan.with(|settings| settings.session.message_bytes_max = 10_000).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.log(&"x".repeat(20_000)).await;
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolOutputTooLarge), "{fault}");
}

#[tokio::test]
async fn too_many_outputs_fail_the_run() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    let many: Map<_, _> = (0..2_000).map(|n| (format!("k{n}"), json!(n))).collect();
    actor.succeed(json!(many)).await;
    assert!(stage.fault_of(&run).await.is(Code::ToolOutputTooLarge));
}

#[tokio::test]
async fn t012_a_binary_message_fails_the_run() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.say_binary().await;
    let fault = stage.fault_of(&run).await;
    assert_eq!(fault.details["code"], "ERR_PROTOCOL");
}

#[tokio::test]
async fn t007_a_server_that_never_acknowledges_is_given_up() {
    let troupe = Troupe::tcp().await;
    let plan = Plan::new(troupe.endpoint());
    let stage = plan.with(|settings| settings.session.ack_ms = 50).open().await;
    let run = stage.start(json!({})).await;
    let mut actor = troupe.accept().await;
    actor.request().await;
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolWorkerLost), "{fault}");
    assert!(fault.message.contains("did not acknowledge"), "{fault}");
}

#[tokio::test]
async fn a_server_that_pings_without_reading_is_given_up() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    let answered = actor.flood().await;
    assert!(answered <= SOCKET_PINGS_MAX, "{answered}");
    let fault = stage.fault_of(&run).await;
    assert!(fault.message.contains("pings"), "{fault}");
}

#[tokio::test]
async fn a_server_that_pings_after_the_end_is_left() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    let control = json!({"final": true, "status": "success", "cost_micro": 0});
    actor.number(json!({"kind": "Response", "control": control, "outputs": {}})).await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
    let answered = actor.flood().await;
    assert!(answered <= SOCKET_PINGS_MAX, "{answered}");
}
