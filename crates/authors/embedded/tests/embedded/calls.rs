//! Calls with types, runs with JSON, and scopes that call through the core.

use serde_json::{Value, json};
use wharf_embedded::{Code, Embedded, Options, RunStatus, What};
use wharf_sdk::builtin::Level;
use wharf_sdk::{Cx, Fault, Object, Scope, Tool};

use crate::tools::{COMPLETE, NOBODY, RELAY, SEARCH, Status, Trip, Up, flight, history, up};

fn oslo() -> Trip {
    Trip { to: "Oslo".to_owned() }
}

#[tokio::test]
async fn k015_k020_a_typed_call_is_a_run_with_progress_in_order() {
    let Up { core, root: _root, .. } = up().await;
    let mut call = core.call(&SEARCH, "flight", oslo());
    let mut steps = Vec::new();
    while let Some(Status { step }) = call.progress().await {
        steps.push(step);
    }
    assert_eq!(steps, [1, 2, 3]);
    assert_eq!(call.await.expect("found"), ["Crab Air to Oslo"]);
    // Once more, with nobody listening.
    assert_eq!(core.call(&SEARCH, "flight", oslo()).await.expect("found").len(), 1);
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k015_k020_the_same_as_a_run_that_is_watched() {
    let Up { core, root: _root, .. } = up().await;
    let run = core.run("flight/search", json!({"to": "Oslo"})).start().await.expect("accepted");
    assert_eq!(core.wait(&run).await.expect("succeeded"), json!(["Crab Air to Oslo"]));
    let seen = history(&core, &run).await;
    let pieces = |what: &What| match what {
        What::Progress(piece) => Some(piece.clone()),
        _ => None,
    };
    let pieces: Vec<_> = seen.iter().filter_map(pieces).collect();
    assert_eq!(pieces, [json!({"step": 1}), json!({"step": 2}), json!({"step": 3})]);
    assert_eq!(seen[..2], [What::Queued, What::Started { attempt: 1 }]);
    let Some(What::Finished(end)) = seen.last() else { panic!("{seen:?}") };
    assert_eq!((end.status, end.cost_micro), (RunStatus::Succeeded, 42));
    assert_eq!(
        end.outputs.clone().map(Value::Object),
        Some(json!({"value": ["Crab Air to Oslo"]}))
    );
    assert_eq!(core.find(&run).await.expect("there"), **end);
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k016_two_instances_with_other_configurations_do_not_mix() {
    let root = Scope::root();
    let core = Embedded::in_memory().await.expect("a core");
    for (provider, airline) in [("crab", "Crab Air"), ("gull", "Gull Lines")] {
        core.offer(provider, &flight(&root, airline).0).await.expect("offered");
    }
    let (one, other) =
        tokio::join!(core.call(&SEARCH, "crab", oslo()), core.call(&SEARCH, "gull", oslo()));
    assert_eq!(one.expect("found"), ["Crab Air to Oslo"]);
    assert_eq!(other.expect("found"), ["Gull Lines to Oslo"]);
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k003_k022_a_scope_of_the_program_calls_tools_of_the_core() {
    let Up { core, root: _root, .. } = up().await;
    let scope = Scope::root().with_transport(core.transport("default").expect("a world"));
    assert_eq!(SEARCH.call(&scope, oslo()).await.expect("found"), ["Crab Air to Oslo"]);
    let fault = NOBODY.call(&scope, ()).await.expect_err("nobody has it");
    assert!(fault.is(Code::ToolUnavailable) && fault.message.contains("\"nobody\""), "{fault}");
    // A name that two tools have says nothing until it is said which is meant.
    let other = Scope::root();
    core.offer("gull", &flight(&other, "Gull Lines").0).await.expect("offered");
    assert!(SEARCH.call(&scope, oslo()).await.is_err());
    let transport = core.transport("default").expect("a world").reaches(&SEARCH, "gull/search");
    let scope = Scope::root().with_transport(transport);
    assert_eq!(SEARCH.call(&scope, oslo()).await.expect("found"), ["Gull Lines to Oslo"]);
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k016_k019_a_tool_calls_another_one_through_the_core_as_a_child_of_its_run() {
    let (root, other) = (Scope::root(), Scope::root());
    let core = Embedded::in_memory().await.expect("a core");
    core.offer("flight", &flight(&root, "unused").0).await.expect("offered");
    core.offer("gull", &flight(&other, "Gull Lines").0).await.expect("offered");
    let mut call = core.call(&RELAY, "flight", oslo());
    let mut steps = Vec::new();
    while let Some(Status { step }) = call.progress().await {
        steps.push(step);
    }
    assert_eq!(steps, [1, 2, 3]);
    assert_eq!(call.await.expect("found"), ["Gull Lines to Oslo"]);
    core.close().await.expect("closed");
}

const CHAT: Tool<Object, Object> = Tool::new("chat", "A model.");

#[tokio::test]
async fn k017_k019_a_completion_is_a_run_of_the_model_tool() {
    let (root, model) = (Scope::root(), Scope::root());
    let chat = |asked: Object, cx: Cx| async move {
        cx.cost(7);
        let text = format!("{} a time", asked["prompt"].as_str().unwrap_or_default());
        Ok::<_, Fault>(Object::from_iter([("text".to_owned(), text.into())]))
    };
    model.provide(&CHAT, chat).expect("free");
    let core = Options::in_memory().model_tool("llm/chat").start().await.expect("a core");
    core.offer("flight", &flight(&root, "x").0).await.expect("offered");
    // There is no model yet.
    let fault = core.call(&COMPLETE, "flight", "x".to_owned()).await.expect_err("none");
    assert!(fault.is(Code::ToolUnavailable), "{fault}");
    core.offer("llm", &model).await.expect("offered");
    let said = core.call(&COMPLETE, "flight", "Once upon".to_owned()).await;
    assert_eq!(said.expect("completed"), "Once upon a time");
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k019_what_a_tool_tells_is_in_its_runs_log() {
    let Up { core, root: _root, .. } = up().await;
    let run = core.run("flight/tell", Value::Null).start().await.expect("accepted");
    core.wait(&run).await.expect("succeeded");
    let seen = history(&core, &run).await;
    let log = What::Log { level: Level::Info, text: "half".to_owned() };
    let phase = What::Phase { phase: "half".to_owned(), fraction: Some(0.5) };
    assert!(seen.contains(&log) && seen.contains(&phase), "{seen:?}");
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k011_layers_of_the_agents_scope_stand_around_its_runs() {
    let Up { core, root, .. } = up().await;
    root.around(&SEARCH, |mut trip, next| async move {
        trip.to.push_str(" via Bergen");
        next.run(trip).await
    });
    let found = core.call(&SEARCH, "flight", oslo()).await.expect("found");
    assert_eq!(found, ["Crab Air to Oslo via Bergen"]);
    core.close().await.expect("closed");
}

const SPEND: Tool<Object, Object> = Tool::new("spend", "Spends, and fails or never ends.");

#[tokio::test]
async fn k036_what_a_tool_spends_counts_when_it_fails_and_a_budget_stops_it() {
    let root = Scope::root();
    let spend = |asked: Object, cx: Cx| async move {
        cx.cost(1_500);
        if asked.contains_key("fail") {
            return Err(Fault::new(Code::ToolFailed, "Sold out."));
        }
        std::future::pending().await
    };
    root.provide(&SPEND, spend).expect("free");
    let core = Embedded::in_memory().await.expect("a core");
    core.offer("shop", &root).await.expect("offered");
    let dear = core.run("shop/spend", json!({})).budget_micro(1_000);
    let run = dear.start().await.expect("accepted");
    let fault = core.wait(&run).await.expect_err("stopped");
    assert_eq!(fault.code.as_str(), "budget.exceeded", "{fault}");
    assert_eq!(core.find(&run).await.expect("there").cost_micro, 1_500);
    let run = core.run("shop/spend", json!({"fail": true})).start().await.expect("accepted");
    let fault = core.wait(&run).await.expect_err("failed");
    assert!(fault.is(Code::ToolFailed), "{fault}");
    let cost = async {
        while core.find(&run).await.expect("there").cost_micro != 1_500 {
            tokio::task::yield_now().await;
        }
    };
    let patience = std::time::Duration::from_secs(20);
    tokio::time::timeout(patience, cost).await.expect("it is booked");
    core.close().await.expect("closed");
}
