//! How attempts end, and what the caller is told.

use serde_json::json;
use wharf_domain::{Level, Outcome, Progress};
use wharf_vocab::{Code, RunStatus};

use crate::stage::{Plan, Stage};
use crate::troupe::{Actor, Troupe};

async fn begin() -> (Troupe, Stage, wharf_vocab::RunKey, Actor) {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (actor, _) = troupe.take().await;
    (troupe, stage, run, actor)
}

#[tokio::test]
async fn t039_success_ends_the_run_with_its_outputs_and_cost() {
    let (_troupe, stage, run, mut actor) = begin().await;
    actor.succeed(json!({"n": 1, "text": "x"})).await;
    assert_eq!(stage.outputs_of(&run).await, json!({"n": 1, "text": "x"}));
    assert_eq!(stage.end_of(&run).await.cost_micro, 5);
}

#[tokio::test]
async fn t039_a_second_final_response_changes_nothing() {
    let (_troupe, stage, run, mut actor) = begin().await;
    for n in [1, 2] {
        let control = json!({"final": true, "status": "success", "cost_micro": n});
        actor.number(json!({"kind": "Response", "control": control, "outputs": {"n": n}})).await;
    }
    actor.fail("ERR_HANDLER", "late").await;
    assert_eq!(stage.outputs_of(&run).await, json!({"n": 1}));
    assert_eq!(stage.end_of(&run).await.cost_micro, 1);
}

#[tokio::test]
async fn t039_codes_of_the_protocol_become_codes_of_the_core() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    for (said, code, executed) in [
        ("ERR_INPUTS", "tool.invalid_input", "no"),
        ("ERR_HANDLER", "tool.internal", "yes"),
        ("ERR_WORKER", "tool.worker_lost", "maybe"),
        ("ERR_TIMEOUT", "tool.timeout", "maybe"),
        ("ERR_LIMIT", "tool.limit", "maybe"),
        ("ERR_CANCELED", "tool.canceled", "maybe"),
        ("acme.no_stock", "acme.no_stock", "yes"),
        ("ERR_OUTPUT_MISSING", "tool.failed", "yes"),
        ("ERR_STORAGE_DENIED", "tool.failed", "maybe"),
        ("ERR_OWN", "tool.failed", "yes"),
        ("UNKNOWN", "tool.failed", "yes"),
    ] {
        let run = stage.start(json!({})).await;
        let (mut actor, _) = troupe.take().await;
        actor.fail(said, "One sentence.").await;
        let fault = stage.fault_of(&run).await;
        assert_eq!(fault.code.as_str(), code, "{said}");
        assert_eq!(fault.message, "One sentence.", "{said}");
        assert_eq!(fault.details["executed"], executed, "{said}");
        let kept = (code == "tool.failed").then(|| json!(said));
        assert_eq!(fault.details.get("code"), kept.as_ref(), "{said}");
        assert_eq!(stage.end_of(&run).await.cost_micro, 3, "failed runs cost too");
    }
}

#[tokio::test]
async fn t020_a_busy_server_is_asked_again_later_because_nothing_was_done() {
    let (troupe, stage, run, mut actor) = begin().await;
    actor.fail("ERR_BUSY", "Too many runs.").await;
    let (mut actor, request) = troupe.take().await;
    assert_eq!(request["control"]["attempt"], 2);
    actor.succeed(json!({})).await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn t039_a_status_that_nobody_knows_fails_the_run_as_a_breach() {
    let (_troupe, stage, run, mut actor) = begin().await;
    let control = json!({"final": true, "status": "done", "cost_micro": 9});
    actor.number(json!({"kind": "Response", "control": control})).await;
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolFailed), "{fault}");
    assert_eq!(fault.details["code"], "ERR_PROTOCOL");
    assert_eq!(stage.end_of(&run).await.cost_micro, 9, "what was spent is spent");
    assert_eq!(actor.gone().await, Some(1002));
}

#[tokio::test]
async fn t008_another_runs_id_fails_the_run_as_a_breach() {
    let (_troupe, stage, run, mut actor) = begin().await;
    actor.say(json!({"kind": "Log", "control": {"run_id": "other"}, "data": {"msg": "x"}})).await;
    let fault = stage.fault_of(&run).await;
    assert_eq!(fault.details["code"], "ERR_PROTOCOL");
    assert!(fault.message.contains("another run"), "{fault}");
}

#[tokio::test]
async fn t011_a_whole_number_with_a_point_is_a_cost() {
    let (_troupe, stage, run, mut actor) = begin().await;
    let control = json!({"final": true, "status": "success", "cost_micro": 75.0});
    actor.end(json!({"kind": "Response", "control": control})).await;
    assert_eq!(stage.end_of(&run).await.cost_micro, 75);
}

#[tokio::test]
async fn t011_a_missing_cost_is_0_with_a_warning() {
    let (_troupe, stage, run, mut actor) = begin().await;
    let control = json!({"final": true, "status": "success"});
    actor.end(json!({"kind": "Response", "control": control})).await;
    assert_eq!(stage.end_of(&run).await.cost_micro, 0);
    let pieces = stage.progress_of(&run).await;
    assert!(
        matches!(&pieces[..], [Progress::Log { level: Level::Warn, text }] if text.contains("cost"))
    );
}

#[tokio::test]
async fn t011_a_cost_that_is_none_fails_the_run_and_is_never_stored() {
    for cost in [json!(-1), json!(0.5), json!("NaN"), json!(1e300)] {
        let (_troupe, stage, run, mut actor) = begin().await;
        let control = json!({"final": true, "status": "success", "cost_micro": cost});
        actor.end(json!({"kind": "Response", "control": control})).await;
        let fault = stage.fault_of(&run).await;
        assert_eq!(fault.details["code"], "ERR_COST", "{cost}");
        assert_eq!(stage.end_of(&run).await.cost_micro, 0, "{cost}");
    }
}

#[tokio::test]
async fn t017_a_conflict_is_told_with_the_servers_words() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let mut actor = troupe.accept().await;
    actor.request().await;
    actor.close(1008, "run_id conflict").await;
    let fault = stage.fault_of(&run).await;
    assert!(fault.message.contains("run_id conflict"), "{fault}");
    assert_eq!((&fault.details["close"], &fault.details["executed"]), (&json!(1008), &json!("no")));
}

#[tokio::test]
async fn t005_a_request_that_is_too_large_for_the_server_is_told() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let mut actor = troupe.accept().await;
    actor.request().await;
    actor.close(1009, "").await;
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolInputTooLarge), "{fault}");
}

#[tokio::test]
async fn t017_a_server_that_has_forgotten_the_run_is_told_as_lost() {
    let (troupe, stage, run, mut actor) = begin().await;
    actor.log("one").await;
    stage.until_written(&run, |_| true).await;
    drop(actor);
    let mut actor = troupe.accept().await;
    actor.request().await;
    actor.close(1008, "run unknown").await;
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolWorkerLost), "{fault}");
    assert!(fault.message.contains("run unknown"), "{fault}");
    assert_eq!(fault.details["executed"], "maybe");
}

#[tokio::test]
async fn t010_the_server_may_say_completed_after_the_end_and_close() {
    let (_troupe, stage, run, mut actor) = begin().await;
    let control = json!({"final": true, "status": "success", "cost_micro": 0});
    actor.number(json!({"kind": "Response", "control": control, "outputs": {}})).await;
    actor.number(json!({"kind": "Event", "control": {}, "data": {"phase": "completed"}})).await;
    actor.close(1000, "").await;
    assert_eq!(actor.gone().await, Some(1000), "the close is answered, not cut off");
    let run = stage.end_of(&run).await;
    assert!(matches!(run.outcome, Some(Outcome::Succeeded { .. })));
}
