//! Many callers at once: money, keys, children, floods.

use crate::support::{Bench, LONG, default_world, new, object, owner};
use serde_json::{Value, json};
use wharf_domain::{Outcome, WorldSettings};
use wharf_engine::in_process::InProcess;
use wharf_vocab::{Code, Durability, Object, RunId, RunStatus};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_calls_on_a_budget_for_one_admit_exactly_one() {
    let bench = Bench::new().await;
    let settings = WorldSettings::budget(Some(100), 100);
    bench.handle.worlds().set(&owner(), default_world(), settings).await.expect("changed");
    let calls = (0..64).map(|_| {
        let handle = bench.handle.clone();
        let wanted = new("wharf/sleep", json!({"ms": 600_000, "cost_micro": 40}));
        tokio::spawn(async move { handle.runs().create(&owner(), wanted).await })
    });
    let calls: Vec<_> = calls.collect();
    let mut accepted = Vec::new();
    for call in calls {
        match call.await.expect("no panic") {
            Ok(one) => accepted.push(one.run),
            Err(fault) => {
                assert!(fault.is(Code::BudgetExceeded), "{fault}");
                assert_eq!(fault.details["missing_micro"], 100);
            }
        }
    }
    assert_eq!(accepted.len(), 1);
    bench.handle.runs().cancel(&owner(), &accepted[0].key, "").await.expect("known");
    bench.end_of(&accepted[0].key).await;
    let account = bench.handle.worlds().get(&default_world()).await.expect("known").account;
    assert_eq!((account.held, account.spent), (0, 0));
}

#[tokio::test]
async fn a_reported_cost_is_booked_even_when_it_is_more_than_was_held() {
    let bench = Bench::new().await;
    let settings = WorldSettings::budget(Some(100), 10);
    bench.handle.worlds().set(&owner(), default_world(), settings).await.expect("changed");
    let run = bench.finish("wharf/sleep", json!({"ms": 0, "cost_micro": 95})).await;
    assert_eq!(run.cost_micro, 95);
    let account = bench.handle.worlds().get(&default_world()).await.expect("known").account;
    assert_eq!((account.held, account.spent), (0, 95));
    let fault = bench.start("wharf/sleep", json!({"ms": 0})).await.expect_err("5 are left");
    assert_eq!(fault.details["missing_micro"], 90, "it has cost 95 before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_stands_for_one_request() {
    let bench = Bench::new().await;
    let keyed = |text: &str| {
        let mut wanted = new("wharf/echo", json!({"text": text}));
        wanted.idempotency_key = Some("k".into());
        wanted
    };
    let calls: Vec<_> = (0..32)
        .map(|_| {
            let (handle, wanted) = (bench.handle.clone(), keyed("same"));
            tokio::spawn(async move { handle.runs().create(&owner(), wanted).await })
        })
        .collect();
    let mut keys = std::collections::BTreeSet::new();
    let mut made = 0;
    for call in calls {
        let accepted = call.await.expect("no panic").expect("the same request");
        made += usize::from(!accepted.repeated);
        keys.insert(accepted.run.key.clone());
    }
    assert_eq!((keys.len(), made), (1, 1));
    let other = bench.handle.runs().create(&owner(), keyed("other")).await.expect_err("conflict");
    assert!(other.is(Code::RunConflict), "{other}");

    let mut named = new("wharf/echo", json!({}));
    named.run_id = Some(RunId::new("mine").expect("valid"));
    let first =
        bench.handle.runs().create_and_wait(&owner(), named.clone(), LONG).await.expect("made");
    let again =
        bench.handle.runs().create_and_wait(&owner(), named.clone(), LONG).await.expect("same");
    assert!(!first.repeated && again.repeated && again.run.is_over());
    named.inputs = object(json!({"another": true}));
    let fault = bench.handle.runs().create(&owner(), named).await.expect_err("conflict");
    assert!(fault.is(Code::RunConflict), "{fault}");
}

#[tokio::test]
async fn a_run_in_memory_streams_asks_and_ends_like_any_other() {
    let bench = Bench::new().await;
    let mut wanted = new("wharf/ask", json!({}));
    wanted.durability = Some(Durability::Memory);
    let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    bench.until(&run.key, |run| run.status() == RunStatus::Waiting).await;
    let inbox = bench.handle.asks().inbox(None, 10).await.expect("lists");
    let id = inbox[0].ask.spec.ask_id.clone();
    let answer = wharf_domain::Resolution::Declined;
    bench.handle.asks().resolve(&owner(), &id, answer).await.expect("open");
    let run = bench.end_of(&run.key).await;
    assert_eq!(run.status(), RunStatus::Succeeded);
    let events = bench.events(&run.key, 0).await;
    assert!(events.last().expect("events").ended.is_some());
    let stored = wharf_ports::Store::load(&*bench.store, run.key.stream()).await.expect("reads");
    assert_eq!(stored, None, "nothing of it is stored");
}

/// A provider whose tool starts a child and waits for it.
async fn with_parent(bench: &Bench) {
    let parent = InProcess::new("family").expect("valid").tool(
        "parent",
        "Starts a child and waits for it.",
        |_| {},
        |inputs: Object, cx| async move {
            let tool = inputs["tool"].as_str().expect("text").to_owned();
            let child = cx.call(&tool, object(inputs["inputs"].clone())).await?;
            let status = Value::from(child.status().as_str());
            Ok((Object::from_iter([("child".to_owned(), status)]), 0))
        },
    );
    parent.expect("valid").register(&bench.handle).await.expect("registers");
}

#[tokio::test]
async fn canceling_a_parent_cancels_its_children() {
    let bench = Bench::new().await;
    with_parent(&bench).await;
    let inputs = json!({"tool": "wharf/sleep", "inputs": {"ms": 600_000}});
    let parent = bench.start("family/parent", inputs).await.expect("accepted");
    let deadline = tokio::time::Instant::now() + LONG;
    let child = loop {
        let query = wharf_engine::RunQuery { limit: 10, ..Default::default() };
        let runs = bench.handle.run_lists().list(query).await.expect("lists").runs;
        if let Some(child) = runs.into_iter().find(|run| run.parent.is_some()) {
            break child;
        }
        assert!(tokio::time::Instant::now() < deadline, "no child began");
        tokio::task::yield_now().await;
    };
    assert_eq!(child.parent.as_ref(), Some(&parent.key));
    bench.handle.runs().cancel(&owner(), &parent.key, "").await.expect("known");
    assert_eq!(bench.end_of(&parent.key).await.status(), RunStatus::Canceled);
    assert_eq!(bench.end_of(&child.key).await.status(), RunStatus::Canceled);
}

#[tokio::test]
async fn children_end_before_their_parent_and_cannot_be_nested_without_end() {
    let bench = Bench::new().await;
    with_parent(&bench).await;
    let mut inputs = json!({"tool": "wharf/echo", "inputs": {}});
    for _ in 0..8 {
        inputs = json!({"tool": "family/parent", "inputs": inputs});
    }
    let run = bench.finish("family/parent", inputs["inputs"].clone()).await;
    assert_eq!(run.status(), RunStatus::Succeeded);
    let run = bench.finish("family/parent", inputs).await;
    let Some(Outcome::Succeeded { outputs }) = &run.outcome else { panic!("{run:?}") };
    assert_eq!(outputs["child"], "succeeded", "only the deepest call is refused");
}

#[tokio::test]
async fn a_tool_that_panics_lies_or_floods_fails_alone() {
    let bench = Bench::new().await;
    #[derive(serde::Serialize, schemars::JsonSchema)]
    struct Number {
        n: u8,
    }
    let hostile = InProcess::new("hostile").expect("valid");
    let hostile = hostile
        .tool(
            "panic",
            "Panics.",
            |_| {},
            |_: Object, _| async {
                if true {
                    panic!("on purpose");
                }
                Ok((Number { n: 1 }, 0))
            },
        )
        .expect("valid")
        .tool(
            "lie",
            "Does not give what it promised.",
            |def| def.output_schema = Some(json!({"type": "object", "required": ["promise"]})),
            |_: Object, _| async { Ok((Number { n: 1 }, 0)) },
        )
        .expect("valid")
        .tool(
            "swell",
            "Gives back far too much.",
            |_| {},
            |_: Object, _| async {
                let text = Value::from("x".repeat(5 * 1024 * 1024));
                Ok((Object::from_iter([("text".to_owned(), text)]), 0))
            },
        )
        .expect("valid")
        .tool(
            "flood",
            "Never stops writing.",
            |_| {},
            |_: Object, cx| async move {
                let line = "x".repeat(64 * 1024);
                loop {
                    cx.text("stdout", line.clone()).await?;
                    if cx.text("stdout", "").await.is_err() {
                        return Ok((Number { n: 1 }, 0));
                    }
                }
            },
        )
        .expect("valid");
    hostile.register(&bench.handle).await.expect("registers");
    for (tool, code) in [
        ("hostile/panic", Code::ToolInternal),
        ("hostile/lie", Code::ToolInvalidOutput),
        ("hostile/swell", Code::ToolOutputTooLarge),
        ("hostile/flood", Code::ToolOutputTooLarge),
    ] {
        let run = bench.finish(tool, json!({})).await;
        let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
        assert!(error.is(code), "{tool}: {error}");
    }
    assert_eq!(bench.finish("wharf/echo", json!({})).await.status(), RunStatus::Succeeded);
}
