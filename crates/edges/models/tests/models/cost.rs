//! What is held before a call and booked after it.

use serde_json::json;
use wharf_domain::WorldSettings;
use wharf_engine::NewRun;
use wharf_models::{Api, PriceTable};
use wharf_vocab::{UnknownCost, WorldId};

use crate::server::{FakeProvider, says};
use crate::stage::{KEY, Stage, new, options};

#[tokio::test]
async fn what_is_held_follows_from_the_call() {
    let server = FakeProvider::new(vec![says(&["a"]), says(&["b"]), says(&["c"])]).await;
    let stage = Stage::facing(Api::OpenAi, &server.base_url).await;
    let small = stage.chat(json!({"model": "test", "prompt": "1234", "max_tokens": 10})).await;
    assert_eq!(small.spec.hold_micro, 2 + 20, "two tokens to read, ten to write");
    let large = stage.chat(json!({"model": "test", "prompt": "1234", "max_tokens": 1000})).await;
    assert_eq!(large.spec.hold_micro, 2 + 2000);
    assert_eq!(large.cost_micro, 200);
    // What another call has cost is not held for a small one.
    let small = stage.chat(json!({"model": "test", "prompt": "1234", "max_tokens": 10})).await;
    assert_eq!(small.spec.hold_micro, 22);
}

#[tokio::test]
async fn a_call_that_could_cost_more_than_is_left_is_refused_before_it_is_made() {
    let server = FakeProvider::new(vec![says(&["a"])]).await;
    let stage = Stage::facing(Api::OpenAi, &server.base_url).await;
    let wanted = |max_tokens: u64| NewRun {
        budget_micro: Some(500),
        ..new(json!({"model": "test", "prompt": "x", "max_tokens": max_tokens}))
    };
    let fault = stage.start(wanted(1000)).await.expect_err("refused");
    assert_eq!(fault.code.as_str(), "budget.exceeded");
    assert_eq!(server.asked().len(), 0);
    let run = stage.start(wanted(100)).await.expect("accepted");
    assert_eq!(stage.end_of(&run.key).await.cost_micro, 200);
}

#[tokio::test]
async fn an_unknown_price_is_told_and_booked_as_the_world_wants() {
    let server = FakeProvider::new(vec![says(&["a"]), says(&["b"])]).await;
    let mut options = options(Api::OpenAi, &server.base_url);
    options.prices = PriceTable::default();
    let stage = Stage::with(options).await;
    stage.keep("TEST_KEY", KEY).await;
    let run = stage.chat(json!({"model": "test", "prompt": "x"})).await;
    assert_eq!((run.cost_micro, run.spec.hold_micro), (0, 0));
    let (_, lines) = stage.streamed(&run.key).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("price of test/test is not known"), "{lines:?}");

    let settings =
        WorldSettings { unknown_cost: UnknownCost::Held, ..WorldSettings::budget(None, 700) };
    stage.world("careful", settings).await;
    let world = WorldId::new("careful").expect("valid");
    let wanted = NewRun { world, ..new(json!({"model": "test", "prompt": "x"})) };
    let run = stage.start(wanted).await.expect("accepted");
    assert_eq!(stage.end_of(&run.key).await.cost_micro, 700);
}
