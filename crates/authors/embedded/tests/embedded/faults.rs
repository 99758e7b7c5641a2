//! What goes wrong in a tool stays in its run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::sync::Notify;
use wharf_embedded::{Code, Embedded, RunStatus, What};
use wharf_sdk::builtin::NOTIFY;
use wharf_sdk::{Cx, Scope, Tool};

use crate::tools::{
    HANG, LARGE, LOST, NOBODY, PANIC, SEARCH, Trip, Up, eventually, flight, until, up,
};

#[tokio::test]
async fn k004_a_panic_fails_its_run_and_no_other() {
    let Up { core, root: _root, .. } = up().await;
    let fault = core.call(&PANIC, "flight", ()).await.expect_err("it panics");
    assert!(fault.is(Code::ToolInternal) && !fault.message.contains("canary"), "{fault}");
    let found = core.call(&SEARCH, "flight", Trip { to: "Oslo".to_owned() }).await;
    assert_eq!(found.expect("found").len(), 1);
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k005_input_and_output_that_do_not_fit_are_named_by_their_place() {
    let Up { core, root: _root, .. } = up().await;
    let fault = core.call(&LARGE, "flight", ()).await.expect_err("too large");
    assert!(fault.is(Code::ToolInvalidOutput), "{fault}");
    assert_eq!(fault.details["path"], "/n");
    let fault = core.run("flight/search", json!({"to": 5})).await.expect_err("not text");
    assert!(fault.is(Code::ToolInvalidInput), "{fault}");
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k003_a_tool_that_nobody_has_is_named() {
    let Up { core, root: _root, .. } = up().await;
    let fault = core.call(&LOST, "flight", ()).await.expect_err("nobody has it");
    assert!(fault.is(Code::ToolUnavailable) && fault.message.contains("\"nobody\""), "{fault}");
    let fault = core.call(&NOBODY, "flight", ()).await.expect_err("not offered");
    assert!(fault.is(Code::ToolNotFound), "{fault}");
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k007_k012_a_run_that_is_canceled_drops_its_call_which_cleans_up() {
    let Up { core, cleaned, root: _root } = up().await;
    let run = core.run("flight/hang", Value::Null).start().await.expect("accepted");
    until(&core, &run, |what| matches!(what, What::Log { .. }).then_some(())).await;
    core.cancel(&run).await.expect("canceled");
    assert!(core.wait(&run).await.expect_err("canceled").is(Code::ToolCanceled));
    assert_eq!(core.find(&run).await.expect("there").status, RunStatus::Canceled);
    eventually(async || cleaned.load(Ordering::SeqCst) == 1).await;
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k007_dropping_a_typed_call_cancels_its_run() {
    let Up { core, cleaned, root } = up().await;
    let hanging = Arc::new(Notify::new());
    let noted = Arc::clone(&hanging);
    root.around(&NOTIFY, move |notice, next| {
        let noted = Arc::clone(&noted);
        async move {
            noted.notify_one();
            next.run(notice).await
        }
    });
    let call = core.call(&HANG, "flight", ());
    tokio::select! {
        _ = call => panic!("it never ends"),
        () = hanging.notified() => {}
    }
    eventually(async || cleaned.load(Ordering::SeqCst) == 1).await;
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k006_names_of_providers_and_tools_are_taken_once() {
    let Up { core, root, .. } = up().await;
    let (other, _) = flight(&root, "Gull Lines");
    let fault = core.offer("flight", &other).await.expect_err("taken");
    assert!(fault.is(Code::ToolConflict), "{fault}");
    assert!(core.offer("wharf", &other).await.is_err());
    assert!(core.offer("no such name", &other).await.is_err());
    // What nobody provided is not offered.
    core.offer("x", &other).await.expect("offered");
    assert!(core.tools().iter().all(|tool| tool.as_str() != "x/nobody"));
    core.withdraw("x").await.expect("withdrawn");
    core.withdraw("flight").await.expect("withdrawn");
    core.offer("flight", &other).await.expect("free again");
    let found = core.call(&SEARCH, "flight", Trip { to: "Rome".to_owned() }).await;
    assert_eq!(found.expect("found"), ["Gull Lines to Rome"]);
    core.close().await.expect("closed");
}

const COUNT: Tool<u32, u32, u32> = Tool::new("count", "Counts.");

#[tokio::test]
async fn k020_k030_many_calls_side_by_side_keep_their_progress_apart() {
    let root = Scope::root();
    let counts = |to: u32, cx: Cx<u32>| async move {
        for n in 1..=to {
            cx.progress(n).await;
        }
        Ok(to)
    };
    root.provide(&COUNT, counts).expect("free");
    let core = Embedded::in_memory().await.expect("a core");
    core.offer("math", &root).await.expect("offered");
    let one = async |to: u32| {
        let mut call = core.call(&COUNT, "math", to);
        for expected in 1..=to {
            assert_eq!(call.progress().await, Some(expected));
        }
        assert_eq!(call.progress().await, None);
        assert_eq!(call.await, Ok(to));
    };
    futures::future::join_all((1..40).map(one)).await;
    core.close().await.expect("closed");
}
