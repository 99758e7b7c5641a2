//! Flows as a user of the handle meets them: every kind of step, and what a crash leaves of them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_domain::{Outcome, Resolution, Run, ToolDef, WorldSettings};
use wharf_engine::{NewFlow, NewFlowSignal, NewRun};
use wharf_vocab::{AskKind, Code, Durability, Fault, RunId, RunStatus};

use crate::peer::{Peer, fail, tool};
use crate::support::{Bench, default_world, new, object, outputs_of, owner};

pub(crate) async fn add(bench: &Bench, document: Value) {
    let new = NewFlow { document, pin: false };
    bench.handle.flows().add(&owner(), new).await.expect("added");
}

pub(crate) fn flow(name: &str, steps: impl Into<Value>, output: impl Into<Value>) -> Value {
    let (steps, output) = (steps.into(), output.into());
    json!({ "name": name, "description": "A flow of a test.", "steps": steps, "output": output })
}

fn error_of(run: &Run) -> &Fault {
    run.outcome.as_ref().and_then(Outcome::error).expect("it did not succeed")
}

/// The document that fixes the form, with a short nap.
fn digest() -> Value {
    json!({ "name": "digest", "description": "Shouts words, asks, waits.",
      "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}, "words": {"type": "array"}}, "required": ["n", "words"]},
      "steps": [
        {"id": "count", "call": {"tool": "wharf/count", "inputs": {"n": "${inputs.n}"}, "timeout": "30s"}},
        {"id": "all", "each": {"over": "${inputs.words}", "as": "word", "concurrency": 4,
            "step": {"id": "one", "call": {"tool": "wharf/echo", "inputs": {"text": "${word}"}}}}},
        {"id": "ok", "approve": {"title": "Send ${size(steps.all.outputs)} words?", "deadline": "1h"}},
        {"id": "nap", "sleep": {"for": "20ms"}},
        {"id": "which", "branch": {"cases": [{"when": "steps.count.outputs.sum > 10",
            "step": {"id": "big", "set": {"size": "'big'"}}}],
            "else": {"id": "small", "set": {"size": "'small'"}}}} ],
      "output": {"size": "${vars.size}", "words": "${steps.all.outputs.map(o, o.text)}"} })
}

#[tokio::test]
async fn f001_a_flow_is_called_like_a_tool_and_does_its_steps_in_order() {
    let bench = Bench::new().await;
    add(&bench, digest()).await;
    let inputs = json!({"n": 3, "words": ["a", "b", "c"]});
    let run = bench.start("flow/digest", inputs).await.expect("accepted");
    assert_eq!(run.spec.tool.as_str(), "flow/digest@1");
    let asking = bench.until(&run.key, |run| run.open_asks().next().is_some()).await;
    assert_eq!(asking.status(), RunStatus::Waiting);
    let ask = asking.open_asks().next().expect("open").ask.spec.clone();
    assert_eq!((ask.kind, ask.title.as_str()), (AskKind::Approval, "Send 3 words?"));
    bench.handle.asks().resolve(&owner(), &ask.ask_id, Resolution::ALLOW).await.expect("decided");
    let run = bench.end_of(&run.key).await;
    assert_eq!(outputs_of(&run), json!({"size": "small", "words": ["a", "b", "c"]}));
    assert_eq!((run.attempt, run.active.is_none()), (0, true), "a flow has no attempt");
    let steps = bench.handle.flows().steps(&run).await.expect("readable");
    let paths: Vec<&str> = steps.iter().map(|step| step.path.as_str()).collect();
    assert_eq!(paths, ["count", "all[0]/one", "all[1]/one", "all[2]/one"]);
    for step in &steps {
        let child =
            wharf_vocab::RunKey { world: default_world(), run: step.run.clone().expect("a run") };
        assert!(child.run.as_str().starts_with("st-"), "{child}");
        assert_eq!(child.shard(), run.key.shard(), "a step lives in its flow's shard");
    }
}

#[tokio::test]
async fn f009_flows_are_written_down_and_ids_of_steps_are_the_engines() {
    let bench = Bench::new().await;
    add(&bench, flow("one", json!([{"id": "a", "return": {"v": 1}}]), json!({}))).await;
    let wanted = NewRun { durability: Some(Durability::Memory), ..new("flow/one", json!({})) };
    let fault = bench.handle.runs().create(&owner(), wanted).await.expect_err("refused");
    assert!(fault.is(Code::RequestInvalid), "{fault}");
    let id = RunId::new("st-mine").expect("valid");
    let wanted = NewRun { run_id: Some(id), ..new("wharf/echo", json!({"text": "a"})) };
    let fault = bench.handle.runs().create(&owner(), wanted).await.expect_err("refused");
    assert!(fault.is(Code::RequestInvalid), "{fault}");
    let run = bench.finish("flow/one", json!({})).await;
    assert_eq!(outputs_of(&run), json!({"v": 1}));
}

#[tokio::test]
async fn f003_what_fails_is_caught_or_ends_the_flow() {
    let bench = Bench::new().await;
    let body = json!({"id": "boom", "fail": {"code": "my.error", "message": "No ${inputs.what}."}});
    let caught = json!([{"id": "t", "try": {"step": body,
        "catch": [{"codes": ["other.*"], "step": {"id": "x", "set": {"how": "'wrong'"}}},
                  {"codes": ["my.*"], "step": {"id": "y", "set": {"how": "steps.boom.error.message"}}}],
        "finally": {"id": "z", "set": {"over": "true"}}}}]);
    add(&bench, flow("catches", caught, json!({"how": "${vars.how}", "over": "${vars.over}"})))
        .await;
    let run = bench.finish("flow/catches", json!({"what": "luck"})).await;
    assert_eq!(outputs_of(&run), json!({"how": "No luck.", "over": true}));

    add(&bench, flow("fails", json!([body]), json!({}))).await;
    let run = bench.finish("flow/fails", json!({"what": "luck"})).await;
    assert_eq!(run.status(), RunStatus::Failed);
    assert_eq!(
        (error_of(&run).code.as_str(), error_of(&run).message.as_str()),
        ("my.error", "No luck.")
    );

    let divide = json!([{"id": "d", "set": {"a": "1 / inputs.zero"}}]);
    add(&bench, flow("divides", divide, json!({}))).await;
    let run = bench.finish("flow/divides", json!({"zero": 0})).await;
    assert_eq!(error_of(&run).code.as_str(), "flow.expression");
}

#[tokio::test]
async fn f003_a_loop_goes_round_while_its_condition_holds_and_no_longer_than_it_may() {
    let bench = Bench::new().await;
    let again = |max: u32| {
        let mut form = flow(
            "again",
            json!([{"id": "l", "loop": {"while": "vars.n < 5", "max": max,
            "step": {"id": "more", "set": {"n": "vars.n + 1"}}}}]),
            json!({"n": "${vars.n}"}),
        );
        form["vars"] = json!({"n": 0});
        form
    };
    add(&bench, again(10)).await;
    assert_eq!(outputs_of(&*bench.finish("flow/again", json!({})).await), json!({"n": 5}));
    add(&bench, again(3)).await;
    let run = bench.finish("flow/again", json!({})).await;
    assert_eq!(error_of(&run).code.as_str(), "flow.limit");
}

#[tokio::test]
async fn f010_results_stand_in_order_and_a_failure_stops_the_others() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let each = |on_error: &str| {
        json!([{"id": "e", "each": {"over": "inputs.of", "as": "it", "on_error": on_error,
            "step": {"id": "w", "call": {"tool": "acme/work", "inputs": {"it": "${it}"}}}}}])
    };
    add(&bench, flow("collects", each("collect"), json!({"all": "${steps.e.outputs}"}))).await;
    add(&bench, flow("stops", each("fail_fast"), json!({}))).await;
    let run = bench.start("flow/collects", json!({"of": [1, 2, 3]})).await.expect("accepted");
    let mut attempts = Vec::new();
    for _ in 0..3 {
        attempts.push(peer.next().await);
    }
    attempts.reverse();
    for attempt in &attempts {
        let it = attempt.dispatch().spec.inputs["it"].clone();
        if it == json!(2) {
            fail(attempt, Fault::new(Code::ToolFailed, "Not this one.")).await;
        } else {
            attempt.succeeded(object(json!({"was": it})), 0).await.expect("told");
        }
    }
    let all = outputs_of(&*bench.end_of(&run.key).await)["all"].clone();
    assert_eq!((&all[0], &all[2]), (&json!({"was": 1}), &json!({"was": 3})));
    assert_eq!(all[1]["error"]["code"], json!("tool.failed"));

    let run = bench.start("flow/stops", json!({"of": [1, 2]})).await.expect("accepted");
    let (first, second) = (peer.next().await, peer.next().await);
    fail(&first, Fault::new(Code::ToolFailed, "Not this one.")).await;
    let other = second.dispatch().run.clone();
    bench.until(&other, |run| run.cancel.is_some()).await;
    let open = bench.handle.runs().get(&run.key).await.expect("known");
    assert!(!open.is_over(), "a flow ends only when no call of it is open");
    second.succeeded(object(json!({})), 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert_eq!(error_of(&run).code.as_str(), "tool.failed");
}

#[tokio::test]
async fn f012_what_was_done_is_undone_in_reverse_when_nobody_catches_the_failure() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/do"), tool("acme/undo")]).await;
    let step = |id: &str| {
        json!({"id": id, "call": {"tool": "acme/do", "inputs": {"id": id},
            "compensate": {"tool": "acme/undo", "inputs": {"token": format!("${{steps.{id}.outputs.token}}")}}}})
    };
    let steps =
        json!([step("a"), step("b"), {"id": "f", "fail": {"code": "my.error", "message": "No."}}]);
    add(&bench, flow("undoes", steps, json!({}))).await;
    let run = bench.start("flow/undoes", json!({})).await.expect("accepted");
    let mut seen = Vec::new();
    for _ in 0..4 {
        let attempt = peer.next().await;
        let spec = &attempt.dispatch().spec;
        let inputs = Value::Object(
            spec.inputs.clone().iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        );
        seen.push((spec.tool.to_string(), inputs.clone()));
        let token = format!("t-{}", inputs["id"].as_str().unwrap_or(""));
        attempt.succeeded(object(json!({"token": token})), 0).await.expect("told");
    }
    let undo = |token: &str| ("acme/undo".to_owned(), json!({"token": token}));
    assert_eq!(seen[2..], [undo("t-b"), undo("t-a")]);
    let run = bench.end_of(&run.key).await;
    assert_eq!(error_of(&run).code.as_str(), "my.error");
}

#[tokio::test]
async fn f015_a_step_is_tried_again_only_where_that_is_safe() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let call = json!({"tool": "acme/work", "inputs": {}, "retry": {"max": 3, "backoff": "1ms"}});
    add(
        &bench,
        flow("tries", json!([{"id": "w", "call": call}]), json!({"n": "${steps.w.outputs.n}"})),
    )
    .await;
    let run = bench.start("flow/tries", json!({})).await.expect("accepted");
    let first = peer.next().await;
    let key = first.dispatch().idempotency_key().map(str::to_owned);
    let fault = Fault { retryable: false, ..Fault::new(Code::ToolFailed, "Not yet.") };
    fail(&first, fault).await;
    let second = peer.next().await;
    assert_ne!(first.dispatch().run, second.dispatch().run, "a try is a run of its own");
    assert_eq!(second.dispatch().idempotency_key().map(str::to_owned), key);
    second.succeeded(object(json!({"n": 2})), 0).await.expect("told");
    assert_eq!(outputs_of(&*bench.end_of(&run.key).await), json!({"n": 2}));

    let run = bench.start("flow/tries", json!({})).await.expect("accepted");
    let attempt = peer.next().await;
    let fault = Fault { retryable: false, ..Fault::new(Code::ToolFailed, "Who knows.") };
    let result = Err(wharf_domain::run::AttemptError::Failed(fault, wharf_vocab::Executed::Maybe));
    attempt.ended(wharf_engine::AttemptEnd::new(result, 0)).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert_eq!(error_of(&run).code.as_str(), "tool.failed");
}

#[tokio::test]
async fn f013_steps_are_paid_from_the_flows_budget_and_one_without_money_is_refused() {
    let bench = Bench::new().await;
    let settings = WorldSettings::budget(Some(1_000), 10);
    bench.handle.worlds().set(&owner(), default_world(), settings).await.expect("changed");
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let call = |id: &str| json!({"id": id, "call": {"tool": "acme/work", "inputs": {}}});
    let steps = json!([call("a"), {"id": "t", "try": {"step": call("b"),
        "catch": [{"codes": ["budget.exceeded"], "step": {"id": "c", "set": {"poor": "true"}}}]}}]);
    let mut form = flow("poor", steps, json!({"poor": "${vars.poor}"}));
    form["limits"] = json!({"budget_micro": 30});
    add(&bench, form).await;
    let run = bench.start("flow/poor", json!({})).await.expect("accepted");
    peer.next().await.succeeded(object(json!({})), 25).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert_eq!(outputs_of(&run), json!({"poor": true}));
    assert_eq!(run.flow.as_ref().expect("a flow").cost_micro(), 25);
    let world = bench.handle.worlds().get(&default_world()).await.expect("known");
    assert_eq!((world.account.spent, world.account.held), (25, 0));
}

#[tokio::test]
async fn f017_signals_wait_for_their_step_and_are_taken_in_order() {
    let bench = Bench::new().await;
    let wait =
        |id: &str| json!({"id": id, "signal": {"name": "go", "schema": {"type": "integer"}}});
    let steps = json!([wait("a"), wait("b")]);
    add(&bench, flow("waits", steps, json!({"all": ["${steps.a.outputs}", "${steps.b.outputs}"]})))
        .await;
    let run = bench.start("flow/waits", json!({})).await.expect("accepted");
    let send = |name: &str, value: Value, key: Option<&str>| {
        let signal = NewFlowSignal { name: name.to_owned(), value, key: key.map(str::to_owned) };
        let (handle, run) = (bench.handle.clone(), run.key.clone());
        async move { handle.flows().signal(&owner(), &run, signal).await }
    };
    let fault = send("gone", json!(1), None).await.expect_err("nobody waits for it");
    assert!(fault.is(Code::FlowSignalUnknown), "{fault}");
    send("go", json!("text"), None).await.expect_err("not an integer");
    send("go", json!(1), Some("k1")).await.expect("taken");
    send("go", json!(7), Some("k1")).await.expect("the same once more");
    send("go", json!(2), Some("k2")).await.expect("taken");
    assert_eq!(outputs_of(&*bench.end_of(&run.key).await), json!({"all": [1, 2]}));
    let fault = send("go", json!(3), None).await.expect_err("over");
    assert!(fault.is(Code::FlowOver), "{fault}");
}

#[tokio::test]
async fn f011_a_canceled_flow_stops_its_steps_and_does_what_it_does_at_last() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work"), tool("acme/clean")]).await;
    let mut form =
        flow("long", json!([{"id": "w", "call": {"tool": "acme/work", "inputs": {}}}]), json!({}));
    form["on_cancel"] = json!({"id": "z", "call": {"tool": "acme/clean", "inputs": {}}});
    add(&bench, form).await;
    let run = bench.start("flow/long", json!({})).await.expect("accepted");
    let work = peer.next().await;
    bench.handle.runs().cancel(&owner(), &run.key, "Enough.").await.expect("known");
    bench.until(&work.dispatch().run, |run| run.cancel.is_some()).await;
    work.succeeded(object(json!({})), 0).await.expect("told");
    let clean = peer.next().await;
    assert_eq!(clean.dispatch().spec.tool.as_str(), "acme/clean");
    clean.succeeded(object(json!({})), 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.status(), error_of(&run).message.as_str()), (RunStatus::Canceled, "Enough."));
}

#[tokio::test]
async fn f007_no_finished_step_runs_again_whatever_is_killed_and_when() {
    for kill_at in 0..8 {
        let mut bench = Bench::new().await;
        let steps: Vec<Value> = (0..3)
            .map(|n| json!({"id": format!("s{n}"), "call": {"tool": "acme/work", "inputs": {"n": n}}}))
            .chain([json!({"id": "nap", "sleep": {"for": "5ms"}})])
            .chain([json!({"id": "last", "call": {"tool": "acme/work", "inputs": {"n": 3}}})])
            .collect();
        add(&bench, flow("walks", json!(steps), json!({"n": "${steps.last.outputs.n}"}))).await;
        // An attempt that dies with its core is made again, since the tool does not act.
        let works = || ToolDef { side_effects: Some(false), ..tool("acme/work") };
        let mut peer = Peer::join(&bench.handle, "acme", vec![works()]).await;
        let run = bench.start("flow/walks", json!({})).await.expect("accepted").key.clone();
        let mut done = Vec::new();
        for n in 0..4_u64 {
            let attempt = peer.next().await;
            assert_eq!(attempt.dispatch().spec.inputs["n"], json!(n));
            done.push(attempt.dispatch().run.clone());
            attempt.succeeded(object(json!({"n": n})), 0).await.expect("told");
            if kill_at / 2 == n {
                if kill_at % 2 == 1 {
                    // Later: the flow has heard of it.
                    tokio::time::sleep(Duration::from_millis(30)).await;
                } else {
                    bench.end_of(&done[done.len() - 1]).await;
                }
                bench = bench.killed().await;
                peer = Peer::join(&bench.handle, "acme", vec![works()]).await;
            }
        }
        let run = bench.end_of(&run).await;
        assert_eq!(outputs_of(&run), json!({"n": 3}), "killed at {kill_at}");
        assert!(peer.is_idle().await, "nothing runs twice");
        done.dedup();
        assert_eq!(done.len(), 4);
    }
}

#[tokio::test]
async fn f014_steps_have_the_flows_caller_and_end_with_its_rights() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    add(
        &bench,
        flow("one", json!([{"id": "a", "call": {"tool": "acme/work", "inputs": {}}}]), json!({})),
    )
    .await;
    let trace = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    let asked = new("flow/one", json!({}));
    let asked = NewRun { traceparent: trace.clone(), ..asked };
    let run = bench.handle.runs().create(&owner(), asked).await.expect("accepted").run;
    let attempt = peer.next().await;
    let spec = Arc::clone(&attempt.dispatch().spec);
    assert_eq!(spec.caller, run.spec.caller);
    assert_eq!(spec.traceparent, trace, "a step belongs to its flow's trace");
    assert_eq!((spec.parent.as_ref(), spec.depth), (Some(&run.key), 1));
    attempt.succeeded(object(json!({})), 0).await.expect("told");
    bench.end_of(&run.key).await;

    let only = |pattern: &str| {
        let tools =
            Some(vec![wharf_domain::permission::ToolPattern::parse(pattern).expect("valid")]);
        let narrowing = wharf_domain::grant::Narrowing { tools, ..Default::default() };
        wharf_domain::Caller::token("few", wharf_domain::Rights::all().narrowed(&narrowing))
    };
    let wanted = new("flow/one", json!({}));
    let accepted = bench.handle.runs().create(&only("flow/*"), wanted).await.expect("accepted");
    let run = bench.end_of(&accepted.run.key).await;
    assert_eq!(error_of(&run).code.as_str(), "permission.denied");
    let steps = bench.handle.flows().steps(&run).await.expect("readable");
    assert_eq!((steps[0].status, steps[0].run.is_none()), ("refused", true));
}
