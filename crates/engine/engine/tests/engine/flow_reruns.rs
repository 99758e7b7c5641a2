//! Flows that run again from a step: what is taken over, and when that is refused.

use serde_json::{Value, json};
use wharf_domain::grant::Narrowing;
use wharf_domain::{Caller, Outcome, Rights, Run, ToolDef};
use wharf_engine::{NewFlow, NewRerun};
use wharf_vocab::{Code, Fault, RunKey, RunStatus, Verb};

use crate::peer::{Peer, fail, tool};
use crate::support::{Bench, object, outputs_of, owner};

/// Three calls one after another; the last one fails at first.
fn document() -> Value {
    let step = |id: &str, from: &str| {
        json!({"id": id, "call": {"tool": "acme/work", "inputs": {"id": id, "from": from},
            "compensate": {"tool": "acme/undo", "inputs": {}}}})
    };
    json!({ "name": "three", "description": "A flow of a test.",
        "vars": {"seen": "nothing"},
        "steps": [step("a", ""), {"id": "note", "set": {"seen": "steps.a.outputs.was"}},
            step("b", "${steps.a.outputs.was}"),
            {"id": "guarded", "try": {"step": {"id": "t", "fail": {"code": "my.error", "message": "No."}},
                "catch": [{"step": {"id": "caught", "set": {"n": "1"}}}]}},
            step("c", "${steps.b.outputs.was} ${vars.seen} ${vars.n}")],
        "output": {"all": ["${steps.a.outputs.was}", "${steps.b.outputs.was}", "${steps.c.outputs.was}"]} })
}

async fn failed(bench: &Bench, peer: &Peer) -> std::sync::Arc<Run> {
    let new = NewFlow { document: document(), pin: false };
    bench.handle.flows().add(&owner(), new).await.expect("added");
    let run = bench.start("flow/three", json!({})).await.expect("accepted");
    for id in ["a", "b"] {
        let attempt = peer.next().await;
        assert_eq!(attempt.dispatch().spec.inputs["id"], json!(id));
        attempt.succeeded(object(json!({"was": id})), 10).await.expect("told");
    }
    fail(&peer.next().await, Fault::new(Code::ToolFailed, "Not today.")).await;
    for _ in 0..2 {
        let undo = peer.next().await;
        assert_eq!(undo.dispatch().spec.tool.as_str(), "acme/undo");
        undo.succeeded(object(json!({})), 0).await.expect("told");
    }
    let run = bench.end_of(&run.key).await;
    assert_eq!(run.status(), RunStatus::Failed);
    run
}

fn from(step: &str) -> NewRerun {
    NewRerun { from: step.to_owned(), ..NewRerun::default() }
}

fn tools() -> Vec<ToolDef> {
    vec![tool("acme/work"), tool("acme/undo")]
}

#[tokio::test]
async fn f018_a_flow_runs_again_from_a_step_and_takes_over_what_went_before() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", tools()).await;
    let first = failed(&bench, &peer).await;
    let again = bench.handle.flows().rerun(&owner(), &first.key, from("c")).await.expect("taken");
    let attempt = peer.next().await;
    let inputs = &attempt.dispatch().spec.inputs;
    assert_eq!((&inputs["id"], &inputs["from"]), (&json!("c"), &json!("b a 1")));
    let spec = again.run.spec.flow.clone().expect("a flow");
    let cited = spec.cites.as_ref().expect("it cites");
    assert_eq!((&cited.of, cited.from.as_str()), (&first.key.run, "c"));
    let done = cited.results["b"].run.clone().expect("a run did it");
    for run in [first.key.run.clone(), done.clone()] {
        let key = RunKey { world: first.key.world.clone(), run };
        let fault = bench.handle.purges().purge(&owner(), &key).await.expect_err("needed");
        assert!(fault.is(Code::RunStillNeeded), "{fault}");
    }
    attempt.succeeded(object(json!({"was": "c"})), 7).await.expect("told");
    let run = bench.end_of(&again.run.key).await;
    assert_eq!(outputs_of(&run), json!({"all": ["a", "b", "c"]}));
    assert_eq!(run.flow.as_ref().expect("a flow").cost_micro(), 7, "what is cited costs nothing");
    assert!(peer.is_idle().await, "nothing was done once more");
    bench.handle.purges().purge(&owner(), &first.key).await.expect("not needed any more");
}

#[tokio::test]
async fn f018_what_is_taken_over_is_not_undone_and_survives_a_kill() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", tools()).await;
    let first = failed(&bench, &peer).await;
    let again = bench.handle.flows().rerun(&owner(), &first.key, from("b")).await.expect("taken");
    let attempt = peer.next().await;
    assert_eq!(attempt.dispatch().spec.inputs["from"], json!("a"));
    attempt.succeeded(object(json!({"was": "b2"})), 0).await.expect("told");
    let third = peer.next().await;
    assert_eq!(third.dispatch().spec.inputs["from"], json!("b2 a 1"));
    let bench = bench.killed().await;
    let works = tools().into_iter().map(|it| ToolDef { side_effects: Some(false), ..it });
    let peer = Peer::join(&bench.handle, "acme", works.collect()).await;
    let undo = async {
        let undo = peer.next().await;
        assert_eq!(undo.dispatch().spec.tool.as_str(), "acme/undo");
        undo.succeeded(object(json!({})), 0).await.expect("told");
    };
    // The attempt that died may have acted, so it is undone, too; what was cited is not.
    undo.await;
    peer.next().await.succeeded(object(json!({})), 0).await.expect("told");
    let run = bench.end_of(&again.run.key).await;
    assert_eq!(run.status(), RunStatus::Failed);
    assert!(peer.is_idle().await);
}

#[tokio::test]
async fn f018_what_cannot_be_taken_over_is_refused() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", tools()).await;
    let first = failed(&bench, &peer).await;
    for step in ["nobody", "t", "caught"] {
        let fault = bench.handle.flows().rerun(&owner(), &first.key, from(step)).await;
        let fault = fault.expect_err("no step at the top");
        assert!(fault.is(Code::RequestInvalid), "{step}: {fault}");
    }
    let verbs = Some([Verb::Run].into());
    let blind = Rights::all().narrowed(&Narrowing { verbs, ..Narrowing::default() });
    let blind = Caller::token("blind", blind);
    let fault = bench.handle.flows().rerun(&blind, &first.key, from("c")).await;
    assert!(fault.expect_err("it may not read").is(Code::PermissionDenied));

    let changed = ToolDef { description: "Does something else.".to_owned(), ..tool("acme/work") };
    bench.handle.providers().set_tools(&peer.id, vec![changed, tool("acme/undo")]).expect("set");
    let fault = bench.handle.flows().rerun(&owner(), &first.key, from("c")).await;
    let fault = fault.expect_err("it is another tool now");
    assert!(fault.is(Code::FlowToolChanged), "{fault}");
    bench.handle.flows().rerun(&owner(), &first.key, from("a")).await.expect("nothing is cited");
    peer.next().await;
    let forced = NewRerun { force: true, ..from("c") };
    let again = bench.handle.flows().rerun(&owner(), &first.key, forced).await.expect("forced");
    peer.next().await.succeeded(object(json!({"was": "c"})), 0).await.expect("told");
    let run = bench.end_of(&again.run.key).await;
    assert!(matches!(run.outcome, Some(Outcome::Succeeded { .. })));
}
