//! Runs that are called off.

use std::time::Duration;

use serde_json::json;
use wharf_domain::Outcome;
use wharf_vocab::{Code, RunStatus};

use crate::stage::{LONG, Plan};
use crate::troupe::Troupe;

#[tokio::test]
async fn t039_canceled_after_a_cancel_is_canceled() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    stage.cancel(&run).await;
    let cancel = actor.hear().await;
    assert_eq!(cancel, json!({"kind": "Cancel", "control": {"run_id": run.run.as_str()}}));
    actor.fail("ERR_CANCELED", "Stopped.").await;
    let run = stage.end_of(&run).await;
    assert_eq!(run.status(), RunStatus::Canceled);
    assert_eq!(run.cost_micro, 3, "what it cost until then is kept");
}

#[tokio::test]
async fn t039_canceled_without_a_cancel_is_a_failure() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.fail("ERR_CANCELED", "The server is stopping.").await;
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolCanceled), "{fault}");
}

#[tokio::test]
async fn t019_a_cancel_reaches_a_server_that_comes_back() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.log("one").await;
    stage.until_written(&run, |_| true).await;
    let address = troupe.address();
    drop((actor, troupe));
    stage.cancel(&run).await;
    let troupe = Troupe::at(address).await;
    let (mut actor, _) = troupe.take().await;
    assert_eq!(actor.hear().await["kind"], "Cancel");
    actor.fail("ERR_CANCELED", "Stopped.").await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Canceled);
}

#[tokio::test]
async fn t019_a_server_that_goes_away_while_it_is_to_stop_has_stopped() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    stage.cancel(&run).await;
    actor.hear().await;
    drop((actor, troupe));
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Canceled);
}

#[tokio::test]
async fn a_result_that_comes_in_spite_of_a_cancel_counts() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    stage.cancel(&run).await;
    actor.hear().await;
    actor.succeed(json!({"n": 1})).await;
    let run = stage.handle.runs().wait(&run, LONG).await.expect("known");
    assert!(run.is_over());
    assert_eq!(run.cost_micro, 5);
}

#[tokio::test]
async fn t019_a_server_that_does_not_stop_is_left_after_its_grace() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    // Told beside the engine, whose own grace is longer than a test should wait.
    stage.stop_all(Duration::from_millis(50));
    assert_eq!(actor.hear().await["kind"], "Cancel");
    let run = stage.end_of(&run).await;
    let Some(Outcome::Canceled { error }) = &run.outcome else { panic!("{run:?}") };
    assert!(error.message.contains("did not stop in time"), "{error}");
    assert_eq!(error.details["executed"], "maybe");
}
