//! What one provider cannot do to the core and to others, whatever it registers, asks or starts.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::NewAsk;
use wharf_domain::{Audience, Caller, Rights, ToolDef};
use wharf_engine::Attempt;
use wharf_vocab::{AskKind, Code, ProviderId, RunId, RunStatus, Verb};

use crate::peer::{Idle, Peer, tool};
use crate::support::{Bench, LONG, new, object, owner};

/// A schema in which each of so many levels asks the next twice.
fn doubled(levels: usize) -> Value {
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        defs.insert(format!("l{level}"), json!({"allOf": [next.clone(), next]}));
    }
    defs.insert(format!("l{levels}"), json!({"type": "object"}));
    json!({"$ref": "#/$defs/l0", "$defs": defs})
}

fn question(attempt: &Attempt, schema: Value) -> NewAsk {
    NewAsk {
        escalates: None,
        detail: None,
        by: Vec::new(),
        attempt_id: attempt.dispatch().attempt_id.clone(),
        kind: AskKind::Question,
        key: schema.to_string().len().to_string(),
        title: "Which?".to_owned(),
        schema: Some(schema),
        audience: Audience::Any,
        deadline: None,
    }
}

#[tokio::test]
async fn r073_a_schema_that_would_keep_the_core_busy_is_refused() {
    let bench = Bench::new().await;
    let began = Instant::now();
    let dear = ToolDef { input_schema: doubled(31), ..tool("acme/dear") };
    let id = ProviderId::new("acme").expect("valid");
    let refused =
        bench.handle.providers().register(id, vec![dear], Arc::new(Idle::default())).await;
    assert!(refused.expect_err("it costs too much").is(Code::RequestInvalid));

    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let dear = ToolDef { output_schema: Some(doubled(31)), ..tool("acme/work") };
    let refused = bench.handle.providers().set_tools(&peer.id, vec![dear]);
    assert!(refused.expect_err("it costs too much").is(Code::RequestInvalid));
    bench.start("acme/work", json!({})).await.expect("the tool is what it was");

    let attempt = peer.next().await;
    let refused = attempt.raise(question(&attempt, doubled(31))).await;
    assert!(refused.expect_err("it costs too much").is(Code::ToolSchemaTooLarge));
    attempt.raise(question(&attempt, doubled(5))).await.expect("it costs little");
    assert!(began.elapsed() < LONG);
}

#[tokio::test]
async fn r073_a_value_that_takes_long_to_check_is_refused_and_others_go_on() {
    let bench = Bench::new().await;
    let twice = json!({"type": "array", "items": {"$ref": "#/$defs/list"}});
    let schema = json!({
        "properties": {"list": {"$ref": "#/$defs/list"}},
        "$defs": {"list": {"allOf": [twice.clone(), twice]}},
    });
    let dear =
        ToolDef { input_schema: schema.clone(), output_schema: Some(schema), ..tool("acme/dear") };
    let peer = Peer::join(&bench.handle, "acme", vec![dear]).await;
    let deep = (0..60).fold(json!([]), |inner, _| json!([inner]));
    let (refused, other) = tokio::join!(
        bench.start("acme/dear", json!({"list": deep})),
        bench.finish("wharf/echo", json!({"text": "hi"})),
    );
    assert!(refused.expect_err("too deep").is(Code::ToolInvalidInput));
    assert_eq!(other.status(), RunStatus::Succeeded);

    let run = bench.start("acme/dear", json!({"list": [[]]})).await.expect("it fits");
    let outputs = object(json!({"list": deep}));
    peer.next().await.succeeded(outputs, 0).await.expect("told");
    let failed = bench.end_of(&run.key).await;
    assert_eq!(failed.status(), RunStatus::Failed);
}

#[tokio::test]
async fn nobody_takes_over_the_tools_of_another() {
    let bench = Bench::new().await;
    let _acme = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    for name in ["wharf", "acme"] {
        let id = ProviderId::new(name).expect("valid");
        let fake = tool(&format!("{name}/echo"));
        let taken = bench
            .handle
            .providers()
            .register(id.clone(), vec![fake], Arc::new(Idle::default()))
            .await;
        assert!(taken.expect_err("it is taken").is(Code::ToolConflict), "{name}");
    }
    let wharf = ProviderId::new("wharf").expect("valid");
    let removed = bench.handle.providers().remove(wharf).await;
    assert!(removed.expect_err("it stays").is(Code::RequestInvalid));
    let echo = bench.finish("wharf/echo", json!({"text": "still mine"})).await;
    assert_eq!(echo.status(), RunStatus::Succeeded);
    let acme = ProviderId::new("acme").expect("valid");
    bench.handle.providers().remove(acme).await.expect("removed");
    Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
}

fn runs_only(grant: &str, verbs: &[Verb]) -> Caller {
    let rights = Rights { verbs: verbs.iter().copied().collect(), ..Rights::all() };
    Caller::token(grant, rights)
}

#[tokio::test]
async fn a_repeated_request_shows_a_run_only_to_its_own_caller_and_to_readers() {
    let bench = Bench::new().await;
    let mut wanted = new("wharf/echo", json!({"text": "for ann only"}));
    wanted.run_id = Some(RunId::new("ann-1").expect("valid"));
    let ann = runs_only("ann", &[Verb::Run]);
    let first = bench.handle.runs().create(&ann, wanted.clone()).await.expect("accepted");
    bench.end_of(&first.run.key).await;

    let again = bench.handle.runs().create(&ann, wanted.clone()).await.expect("her own");
    assert!(again.repeated && again.run.is_over());
    let reader = runs_only("reader", &[Verb::Run, Verb::Read]);
    assert!(bench.handle.runs().create(&reader, wanted.clone()).await.expect("may read").repeated);
    assert!(bench.handle.runs().create(&owner(), wanted.clone()).await.expect("may read").repeated);

    let bob = runs_only("bob", &[Verb::Run]);
    let same = bench.handle.runs().create(&bob, wanted.clone()).await.expect_err("not his");
    let waiting = bench.handle.runs().create_and_wait(&bob, wanted.clone(), LONG).await;
    wanted.inputs = object(json!({"text": "something else"}));
    let other = bench.handle.runs().create(&bob, wanted).await.expect_err("not his");
    assert!(same.is(Code::RunConflict), "{same}");
    assert_eq!(same, other, "nothing tells whether the request was the same");
    assert_eq!(waiting.expect_err("not his"), same);
}

#[tokio::test]
async fn r160_a_call_that_starts_runs_in_a_loop_is_slowed_down() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/boss")]).await;
    bench.start("acme/boss", json!({})).await.expect("accepted");
    let boss = peer.next().await;
    let caller = boss.caller(vec![ToolPattern::any()]);
    let mut started = 0;
    let fault = loop {
        match boss.invoke(&caller, new("wharf/echo", json!({"text": "x"}))).await {
            Ok(_) => started += 1,
            Err(fault) => break fault,
        }
        assert!(started < 1_000, "nothing slows it down");
    };
    assert!(fault.is(Code::ToolRateLimited) && fault.retryable, "{fault}");
    assert!(started >= 50, "{started}");
    bench.start("wharf/echo", json!({"text": "others go on"})).await.expect("accepted");
    let deadline = tokio::time::Instant::now() + LONG;
    while boss.invoke(&caller, new("wharf/echo", json!({"text": "x"}))).await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "it may go on after a while");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
