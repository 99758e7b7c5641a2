//! Steps of a durable tool's code: they are done once, whatever becomes of connections, attempts
//! and the core.

use serde_json::{Value, json};
use wharf_vocab::{Code, RunStatus};

use crate::stage::{Plan, Stage};
use crate::troupe::{Actor, Troupe};

fn local(value: Option<Value>) -> Value {
    let mut frame = json!({"kind": "Step", "step": {"name": "dice", "n": 1}});
    if let Some(value) = value {
        frame["value"] = value;
    }
    frame
}

fn call(tool: &str) -> Value {
    json!({"kind": "Step", "step": {"name": "fetch", "n": 1}, "tool": tool, "inputs": {"u": 1}})
}

/// The answer to a step.
async fn answer(actor: &mut Actor, step: Value) -> Value {
    actor.say(step.clone()).await;
    let answer = actor.hear().await;
    assert_eq!(answer["kind"], "Stepped", "{answer}");
    assert_eq!(answer["step"], step["step"], "{answer}");
    assert_eq!(answer["control"]["run_id"], actor.run_id.as_str(), "{answer}");
    answer
}

/// Which attempt a request is for; the first one is not named.
fn attempt_of(request: &Value) -> u64 {
    request["control"]["attempt"].as_u64().unwrap_or(1)
}

async fn durable(troupe: &Troupe) -> Stage {
    let mut plan = Plan::new(troupe.endpoint()).with(|settings| settings.replays = true);
    plan.durable = true;
    plan.open().await
}

#[tokio::test]
async fn t048_f023_f028_what_local_code_gave_comes_back_in_the_next_attempt() {
    let troupe = Troupe::tcp().await;
    let stage = durable(&troupe).await;
    let run = stage.start(json!({})).await;
    let (mut actor, request) = troupe.take().await;
    assert_eq!(request["control"]["steps"], true);
    assert!(request["control"].get("deadline_ms").is_none(), "its time stands still: {request}");
    let unknown = answer(&mut actor, local(None)).await;
    assert!(unknown.get("value").is_none() && unknown.get("error").is_none(), "{unknown}");
    assert_eq!(answer(&mut actor, local(Some(json!(4)))).await["value"], 4);
    actor.fail("ERR_HANDLER", "It broke.").await;

    let (mut actor, request) = troupe.take().await;
    assert_eq!(attempt_of(&request), 2);
    assert_eq!(answer(&mut actor, local(None)).await["value"], 4);
    let first = answer(&mut actor, local(Some(json!(5)))).await;
    assert_eq!(first["value"], 4, "the first one counts");
    actor.succeed(json!({})).await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn t048_f028_an_answer_that_was_lost_with_its_connection_is_given_again() {
    let troupe = Troupe::tcp().await;
    let stage = durable(&troupe).await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.log("one").await;
    assert_eq!(answer(&mut actor, local(Some(json!(4)))).await["value"], 4);
    drop(actor);
    let (mut actor, _) = troupe.take().await;
    assert_eq!(answer(&mut actor, local(Some(json!(5)))).await["value"], 4);
    // The core is gone as well, and the server has not heard.
    let stage = stage.killed().await;
    let (mut actor, request) = troupe.take().await;
    assert_eq!(attempt_of(&request), 1, "{request}");
    assert_eq!(answer(&mut actor, local(None)).await["value"], 4);
    actor.seq = 1;
    actor.succeed(json!({"n": 1})).await;
    assert_eq!(stage.outputs_of(&run).await, json!({"n": 1}));
}

#[tokio::test]
async fn t048_f025_a_step_that_is_another_than_before_ends_the_run() {
    let troupe = Troupe::tcp().await;
    let stage = durable(&troupe).await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    assert_eq!(answer(&mut actor, local(Some(json!(4)))).await["value"], 4);
    let mut other = call("test/other@1");
    other["step"] = json!({"name": "dice", "n": 1});
    actor.say(other).await;
    let heard = [actor.hear().await, actor.hear().await];
    let of = |kind: &str| heard.iter().find(|frame| frame["kind"] == kind);
    assert!(of("Cancel").is_some(), "{heard:?}");
    assert_eq!(of("Stepped").expect("an answer")["error"]["code"], "step.diverged");
    actor.fail("ERR_CANCELED", "It was canceled.").await;
    assert!(stage.fault_of(&run).await.is(Code::StepDiverged));
}

#[tokio::test]
async fn t048_f022_a_tool_that_may_not_be_called_is_not_called_then_or_later() {
    let troupe = Troupe::tcp().await;
    let stage = durable(&troupe).await;
    let run = stage.start(json!({})).await;
    for attempt in 1..=2 {
        let (mut actor, request) = troupe.take().await;
        assert_eq!(attempt_of(&request), attempt);
        let denied = answer(&mut actor, call("test/other@1")).await;
        assert_eq!(denied["error"]["code"], "permission.denied", "{denied}");
        actor.fail("ERR_WORKER", "It broke.").await;
    }
    let (mut actor, _) = troupe.take().await;
    actor.succeed(json!({})).await;
    stage.end_of(&run).await;
}

#[tokio::test]
async fn t048_f026_a_tool_that_is_not_durable_has_no_steps() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, request) = troupe.take().await;
    assert!(request["control"].get("steps").is_none(), "{request}");
    for step in [local(Some(json!(1))), call("test/other@1")] {
        assert_eq!(answer(&mut actor, step).await["error"]["code"], "permission.denied");
    }
    actor.succeed(json!({})).await;
    stage.end_of(&run).await;
}
