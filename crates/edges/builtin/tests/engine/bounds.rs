//! What one provider cannot do to the core and to others, whatever it registers, asks or starts.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use wharf_domain::run::NewAsk;
use wharf_domain::{Audience, ToolDef};
use wharf_engine::Attempt;
use wharf_vocab::{AskKind, Code, ProviderId, RunStatus};

use crate::peer::{Idle, Peer, tool};
use crate::support::{Bench, LONG, object};

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
    let refused = bench.handle.register(id, vec![dear], Arc::new(Idle)).await;
    assert!(refused.expect_err("it costs too much").is(Code::RequestInvalid));

    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let dear = ToolDef { output_schema: Some(doubled(31)), ..tool("acme/work") };
    let refused = bench.handle.set_tools(&peer.id, vec![dear]);
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
async fn r072_nobody_takes_over_the_tools_of_another() {
    let bench = Bench::new().await;
    let _acme = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    for name in ["wharf", "acme"] {
        let id = ProviderId::new(name).expect("valid");
        let fake = tool(&format!("{name}/echo"));
        let taken = bench.handle.register(id.clone(), vec![fake], Arc::new(Idle)).await;
        assert!(taken.expect_err("it is taken").is(Code::ToolConflict), "{name}");
    }
    let wharf = ProviderId::new("wharf").expect("valid");
    let removed = bench.handle.remove_provider(wharf).await;
    assert!(removed.expect_err("it stays").is(Code::RequestInvalid));
    let echo = bench.finish("wharf/echo", json!({"text": "still mine"})).await;
    assert_eq!(echo.status(), RunStatus::Succeeded);
    let acme = ProviderId::new("acme").expect("valid");
    bench.handle.remove_provider(acme).await.expect("removed");
    Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
}
