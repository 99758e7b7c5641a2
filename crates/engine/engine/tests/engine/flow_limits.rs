//! Flows at their bounds: beginning anew, ending at once, what rights, tools and purges do to them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_domain::grant::NewGrant;
use wharf_domain::{Outcome, Rights, Run, ToolDef};
use wharf_engine::{Attempt, NewFlow, NewFlowSignal, NewRun};
use wharf_ports::ManualClock;
use wharf_vocab::limits::{PROVIDER_WAIT_MS, RUN_SIGNALS_WAITING_MAX, SIGNAL_BYTES_MAX};
use wharf_vocab::{Code, Fault, Mode, RunKey, RunStatus, Timestamp, ToolId};

use crate::peer::{Peer, fail, tool};
use crate::support::{Bench, default_world, new, object, outputs_of, owner};

async fn add(bench: &Bench, document: Value, pin: bool) {
    bench.handle.flows().add(&owner(), NewFlow { document, pin }).await.expect("added");
}

fn flow(name: &str, steps: impl Into<Value>, output: impl Into<Value>) -> Value {
    let (steps, output) = (steps.into(), output.into());
    json!({ "name": name, "description": "A flow of a test.", "steps": steps, "output": output })
}

fn call(id: &str) -> Value {
    json!({"id": id, "call": {"tool": "acme/work", "inputs": {"id": id}}})
}

fn code_of(run: &Run) -> String {
    let error = run.outcome.as_ref().and_then(Outcome::error);
    error.map_or_else(|| format!("{:?}", run.outcome), |error| error.code.to_string())
}

async fn well(attempt: &Attempt) {
    attempt.succeeded(object(json!({})), 0).await.expect("told");
}

/// The run that goes on from a flow that began anew.
fn next_of(run: &Run) -> RunKey {
    let next = wharf_domain::run::flow::restart_id(&run.key);
    RunKey { world: run.key.world.clone(), run: next }
}

/// A flow that begins anew as long as it is told to.
fn counts() -> Value {
    let mut form = flow(
        "counts",
        json!([{"id": "say", "call": {"tool": "wharf/echo", "inputs": {"text": "${string(inputs.n)}"}}},
            {"id": "more", "branch": {"cases": [{"when": "inputs.n > 0",
                "step": {"id": "again", "restart": {"inputs": {"n": "${inputs.n - 1}"}}}}]}}]),
        json!({"said": "${steps.say.outputs.text}"}),
    );
    form["input_schema"] = json!({"type": "object", "required": ["n"],
        "properties": {"n": {"type": "integer"}}});
    form
}

#[tokio::test]
async fn f003_a_flow_begins_anew_as_another_run_of_the_same_line() {
    let bench = Bench::new().await;
    add(&bench, counts(), false).await;
    let wanted = NewRun { budget_micro: Some(1_000), ..new("flow/counts", json!({"n": 2})) };
    let first = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let mut runs = vec![bench.end_of(&first.key).await];
    for _ in 0..2 {
        let next = next_of(runs.last().expect("one"));
        runs.push(bench.end_of(&next).await);
    }
    assert_eq!(outputs_of(&runs[2]), json!({"said": "0"}));
    for pair in runs.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        assert_eq!(before.status(), RunStatus::Succeeded);
        let spec = after.spec.flow.as_ref().expect("a flow");
        assert_eq!(spec.restarts.as_ref(), Some(&before.key.run));
        assert_eq!(after.spec.correlation_id, before.spec.correlation_id);
        assert_eq!(after.spec.caller, before.spec.caller);
        assert_eq!(after.spec.account, before.spec.account, "no new money");
    }
    let theirs = NewRun { run_id: Some(next_of(&runs[2]).run), ..new("wharf/echo", json!({})) };
    bench.handle.runs().create(&owner(), theirs).await.expect_err("the engine's to give");
}

#[tokio::test]
async fn f003_a_flow_that_cannot_begin_anew_fails() {
    let bench = Bench::new().await;
    let mut form = counts();
    form["name"] = json!("breaks");
    form["steps"] = json!([{"id": "again", "restart": {"inputs": {"n": "many"}}}]);
    form["output"] = json!({});
    add(&bench, form, false).await;
    let run = bench.finish("flow/breaks", json!({"n": 1})).await;
    assert_eq!(code_of(&run), Code::ToolInvalidInput.as_str());

    // A step of another flow ends once, so it cannot.
    add(&bench, counts(), false).await;
    let steps = json!([{"id": "c", "call": {"tool": "flow/counts", "inputs": {"n": 1}}}]);
    add(&bench, flow("around", steps, json!({})), false).await;
    let run = bench.finish("flow/around", json!({})).await;
    assert_eq!(code_of(&run), "flow.invalid");
}

#[tokio::test]
async fn f003_a_flow_whose_core_is_killed_begins_anew_once() {
    for pause in [0, 2, 5, 10, 20] {
        let bench = Bench::new().await;
        add(&bench, counts(), false).await;
        let first = bench.start("flow/counts", json!({"n": 1})).await.expect("accepted");
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let bench = bench.killed().await;
        let first = bench.end_of(&first.key).await;
        let next = bench.end_of(&next_of(&first)).await;
        assert_eq!(outputs_of(&next), json!({"said": "0"}));
        let query = wharf_engine::RunQuery { limit: 50, ..wharf_engine::RunQuery::default() };
        let runs = bench.handle.run_lists().list(query).await.expect("listed").runs;
        let flows = runs.iter().filter(|run| run.tool.as_str() == "flow/counts@1");
        assert_eq!(flows.count(), 2, "after {pause} ms");
    }
}

#[tokio::test]
async fn f011_a_second_cancel_with_force_ends_a_flow_at_once() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let mut form = flow("long", json!([call("slow")]), json!({}));
    form["on_cancel"] = call("never");
    add(&bench, form, false).await;
    let run = bench.start("flow/long", json!({})).await.expect("accepted");
    let slow = peer.next().await;
    bench.handle.runs().cancel(&owner(), &run.key, "Enough.").await.expect("known");
    let closing = bench.handle.runs().get(&run.key).await.expect("known");
    assert!(!closing.is_over(), "its step has not ended");
    bench.handle.flows().force(&owner(), &run.key, "Now.").await.expect("known");
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.status(), code_of(&run).as_str()), (RunStatus::Canceled, "tool.canceled"));
    bench.until(&slow.dispatch().run, |run| run.cancel.is_some()).await;
    well(&slow).await;
    assert!(peer.is_idle().await, "what it would do at last is not done");
    let again = bench.handle.flows().force(&owner(), &run.key, "Now.").await.expect("known");
    assert_eq!(again.status(), RunStatus::Canceled);
    // Other runs are canceled as always.
    let other = bench.start("acme/work", json!({})).await.expect("accepted");
    let attempt = peer.next().await;
    bench.handle.flows().force(&owner(), &other.key, "").await.expect("known");
    well(&attempt).await;
    bench.end_of(&other.key).await;
}

#[tokio::test]
async fn f008_an_outcome_commits_before_the_flow_goes_on_and_busy_is_no_failure() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    add(&bench, flow("two", json!([call("a"), call("b")]), json!({})), false).await;
    let run = bench.start("flow/two", json!({})).await.expect("accepted");
    let first = peer.next().await;
    well(&first).await;
    let second = peer.next().await;
    let entries = bench.handle.run_events().entries(&run.key).await.expect("readable");
    let at = |wanted: &str| {
        entries.iter().position(|(_, entry)| format!("{entry:?}").contains(wanted)).expect(wanted)
    };
    assert!(at("StepFinished") > at("StepStarted"), "in this order");
    let ended = bench.handle.runs().get(&first.dispatch().run).await.expect("known");
    assert!(ended.is_over(), "a step is over in its own stream first");
    // Refused at the door: a step that finished without a run.
    well(&second).await;
    bench.end_of(&run.key).await;
    let id = ToolId::new("acme/work").expect("valid");
    bench.handle.providers().set_quarantine(&peer.id, vec![(id, "it changed".to_owned())]);
    let run = bench.finish("flow/two", json!({})).await;
    assert_eq!(code_of(&run), "tool.quarantined");
    let steps = bench.handle.flows().steps(&run).await.expect("readable");
    assert_eq!((steps.len(), steps[0].run.is_none()), (1, true));
}

#[tokio::test]
async fn f009_a_step_is_kept_while_its_flow_is_open() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    add(&bench, flow("two", json!([call("a"), call("b")]), json!({})), false).await;
    let run = bench.start("flow/two", json!({})).await.expect("accepted");
    let first = peer.next().await;
    well(&first).await;
    let second = peer.next().await;
    let step = first.dispatch().run.clone();
    let fault = bench.handle.purges().purge(&owner(), &step).await.expect_err("needed");
    assert!(fault.is(Code::RunStillNeeded), "{fault}");
    well(&second).await;
    bench.end_of(&run.key).await;
    bench.handle.purges().purge(&owner(), &step).await.expect("not needed any more");
}

#[tokio::test]
async fn f014_nothing_begins_once_the_grant_is_revoked_or_over() {
    let clock = Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)));
    let bench = Bench::at(&clock).await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    add(&bench, flow("two", json!([call("a"), call("b")]), json!({})), false).await;
    for revoked in [true, false] {
        let until = Some(Timestamp(clock_now(&bench).0 + 3_600_000));
        let narrowing = wharf_domain::grant::Narrowing { until, ..Default::default() };
        let wanted = NewGrant {
            label: "nightly".to_owned(),
            rights: Rights::all().narrowed(&narrowing),
            person: false,
            budget_micro: None,
        };
        let (grant, secret) =
            bench.handle.trust().make_grant(&owner(), wanted).await.expect("made");
        let caller = bench.handle.trust().authenticate(secret.expose()).expect("good");
        let wanted = new("flow/two", json!({}));
        let run = bench.handle.runs().create(&caller, wanted).await.expect("accepted").run;
        let first = peer.next().await;
        if revoked {
            bench.handle.trust().revoke_grant(&owner(), grant.id).await.expect("revoked");
        } else {
            clock.advance_ms(3_600_001);
        }
        well(&first).await;
        let run = bench.end_of(&run.key).await;
        assert_eq!(code_of(&run), "permission.denied", "revoked: {revoked}");
        assert!(peer.is_idle().await);
    }
}

fn clock_now(bench: &Bench) -> Timestamp {
    bench.handle.now()
}

#[tokio::test]
async fn f016_a_step_takes_its_tool_as_it_is_when_it_begins() {
    let clock = Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)));
    let bench = Bench::at(&clock).await;
    // A core that has just started waits for providers.
    clock.advance_ms(PROVIDER_WAIT_MS + 1);
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let steps = json!([call("a"), call("b")]);
    add(&bench, flow("free", steps.clone(), json!({})), false).await;
    add(&bench, flow("pinned", steps, json!({})), true).await;
    let changed =
        || ToolDef { description: "Does something else.".to_owned(), ..tool("acme/work") };
    for (name, code) in [("free", None), ("pinned", Some("flow.tool_changed"))] {
        bench.handle.providers().set_tools(&peer.id, vec![tool("acme/work")]).expect("set");
        let run = bench.start(&format!("flow/{name}"), json!({})).await.expect("accepted");
        let first = peer.next().await;
        bench.handle.providers().set_tools(&peer.id, vec![changed()]).expect("set");
        well(&first).await;
        if code.is_none() {
            let second = peer.next().await;
            let hashes = [&first, &second].map(|it| it.dispatch().spec.tool_hash.clone());
            assert_ne!(hashes[0], hashes[1], "as it is now");
            well(&second).await;
        }
        let run = bench.end_of(&run.key).await;
        match code {
            Some(code) => assert_eq!(code_of(&run), code),
            None => assert_eq!(run.status(), RunStatus::Succeeded),
        }
    }

    let gone = |caught: &str| {
        json!([{"id": "t", "try": {"step": call("a"),
            "catch": [{"codes": [caught], "step": {"id": "c", "set": {"caught": "true"}}}]}}])
    };
    add(&bench, flow("gone", gone("tool.not_found"), json!({"it": "${vars.caught}"})), false).await;
    let id = ToolId::new("acme/work").expect("valid");
    add(&bench, flow("held", gone("tool.quarantined"), json!({"it": "${vars.caught}"})), false)
        .await;
    bench.handle.providers().set_quarantine(&peer.id, vec![(id, "it changed".to_owned())]);
    assert_eq!(outputs_of(&*bench.finish("flow/held", json!({})).await), json!({"it": true}));
    bench.handle.providers().set_quarantine(&peer.id, Vec::new());
    bench.handle.providers().set_tools(&peer.id, vec![tool("acme/other")]).expect("set");
    assert_eq!(outputs_of(&*bench.finish("flow/gone", json!({})).await), json!({"it": true}));
}

#[tokio::test]
async fn f016_a_flow_that_pretends_needs_tools_that_can_and_addresses_have_no_secrets() {
    let bench = Bench::new().await;
    let can = ToolDef { mock: true, ..tool("acme/can") };
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work"), can]).await;
    add(&bench, flow("cannot", json!([call("a")]), json!({})), false).await;
    let pretend = json!([{"id": "a", "call": {"tool": "acme/can", "inputs": {}}}]);
    add(&bench, flow("can", pretend, json!({})), false).await;
    let start = async |tool: &str| {
        let wanted = NewRun { mode: Mode::Mock, ..new(tool, json!({})) };
        bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run
    };
    let run = start("flow/cannot").await;
    assert_eq!(code_of(&*bench.end_of(&run.key).await), "run.mode_unsupported");
    let run = start("flow/can").await;
    let attempt = peer.next().await;
    assert_eq!(attempt.dispatch().spec.mode, Mode::Mock);
    well(&attempt).await;
    assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Succeeded);

    let address = "https://user:pass@files.example/a?X-Amz-Signature=canary";
    let secret = json!([{"id": "a", "call": {"tool": "acme/work",
        "inputs": {"from": "${vars.from}"}}}]);
    let mut form = flow("hands_on", secret, json!({}));
    form["vars"] = json!({"from": address});
    add(&bench, form, false).await;
    let run = bench.finish("flow/hands_on", json!({})).await;
    assert_eq!(code_of(&run), "flow.address_not_durable");
    assert!(peer.is_idle().await);
}

#[tokio::test]
async fn f017_too_many_and_too_large_signals_are_refused_with_429() {
    let bench = Bench::new().await;
    let steps =
        json!([{"id": "nap", "sleep": {"for": "1h"}}, {"id": "w", "signal": {"name": "go"}}]);
    add(&bench, flow("waits", steps, json!({})), false).await;
    let run = bench.start("flow/waits", json!({})).await.expect("accepted");
    let send = async |value: Value, key: Option<String>| {
        let signal = NewFlowSignal { name: "go".to_owned(), value, key };
        bench.handle.flows().signal(&owner(), &run.key, signal).await
    };
    let is_limit = |fault: &Fault| assert!(fault.is(Code::FlowSignalLimit), "{fault}");
    is_limit(&send(json!("x".repeat(SIGNAL_BYTES_MAX)), None).await.expect_err("too large"));
    for key in [String::new(), "k".repeat(256), "a\nb".to_owned()] {
        let fault = send(json!(1), Some(key)).await.expect_err("no key");
        assert!(fault.is(Code::RequestInvalid), "{fault}");
    }
    for n in 0..RUN_SIGNALS_WAITING_MAX {
        send(json!(n), Some(format!("{n}"))).await.expect("it waits");
    }
    is_limit(&send(json!(1), None).await.expect_err("too many"));
    send(json!(0), Some("0".to_owned())).await.expect("it is there already");
    assert_eq!(Code::FlowSignalLimit.http_status(), 429);
}

#[tokio::test]
async fn f012_a_failed_undo_ends_the_flow_and_is_named() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work"), tool("acme/undo")]).await;
    let steps = json!([{"id": "a", "call": {"tool": "acme/work", "inputs": {},
            "compensate": {"tool": "acme/undo", "inputs": {}}}},
        {"id": "f", "fail": {"code": "my.error", "message": "No."}}]);
    add(&bench, flow("undoes", steps, json!({})), false).await;
    let run = bench.start("flow/undoes", json!({})).await.expect("accepted");
    well(&peer.next().await).await;
    fail(&peer.next().await, Fault::new(Code::ToolFailed, "It cannot be undone.")).await;
    let run = bench.end_of(&run.key).await;
    assert_eq!(code_of(&run), "flow.compensation_failed");
    assert_eq!(run.key.world, default_world());
}

#[tokio::test]
async fn f019_a_document_that_came_with_a_request_goes_with_its_last_run() {
    let clock = Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)));
    let bench = Bench::at(&clock).await;
    let document = flow("mine", json!([{"id": "r", "return": {"v": 1}}]), json!({}));
    let add = async || bench.handle.flows().add_inline(&owner(), &document).await.expect("taken");
    let tool = add().await;
    let run = bench.finish(tool.as_str(), json!({})).await;
    assert_eq!(bench.handle.flows().forget_inline().await.expect("looked"), 0, "it is young");
    clock.advance_ms(3_600_001);
    assert_eq!(bench.handle.flows().forget_inline().await.expect("looked"), 0, "its run is kept");
    bench.handle.purges().purge(&owner(), &run.key).await.expect("purged");
    assert_eq!(bench.handle.flows().forget_inline().await.expect("looked"), 1);
    assert!(bench.handle.providers().tool(&tool).is_err(), "it is no tool any more");
    assert_eq!(add().await, tool, "the same document is the same tool again");
    assert_eq!(outputs_of(&*bench.finish(tool.as_str(), json!({})).await), json!({"v": 1}));
}
