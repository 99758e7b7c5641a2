//! What a layer may do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wharf_sdk::{Code, Cx, Fault, Scope, Tool};

use crate::support::{DOUBLE, Log, OnDrop, WAIT, code, until};

fn doubling() -> (Scope, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let scope = Scope::root();
    let count = Arc::clone(&calls);
    scope
        .provide(&DOUBLE, move |n, _cx| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok(2 * n))
        })
        .expect("a good tool");
    (scope, calls)
}

#[tokio::test]
async fn k008_a_layer_changes_input_and_output() {
    let (scope, _) = doubling();
    scope.around(&DOUBLE, |n, next| async move { Ok(next.run(n + 1).await? + 100) });
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(104));
}

#[tokio::test]
async fn k008_a_layer_answers_by_itself() {
    let (scope, calls) = doubling();
    scope.around(&DOUBLE, |_, _next| async move { Ok(7) });
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(7));
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn k008_a_layer_calls_next_ten_times_also_at_once() {
    let (scope, calls) = doubling();
    scope.around(&DOUBLE, |n, next| async move {
        let all = (0..10).map(|more| next.run(n + more));
        Ok(futures::future::try_join_all(all).await?.into_iter().sum())
    });
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(110));
    assert_eq!(calls.load(Ordering::Relaxed), 10);
}

#[tokio::test]
async fn k008_a_layer_sees_and_replaces_errors() {
    let scope = Scope::root();
    let failed = || async { Err(Fault::new(Code::ToolFailed, "No.")) };
    scope.provide(&DOUBLE, move |_, _cx| failed()).expect("a good tool");
    let seen = Log::default();
    let log = seen.clone();
    scope.around(&DOUBLE, move |n, next| {
        let log = log.clone();
        async move {
            let ended = next.run(n).await;
            log.say(ended.as_ref().expect_err("it fails").message.clone());
            ended.or(Ok(0))
        }
    });
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(0));
    assert_eq!(seen.take(), ["No."]);
}

#[tokio::test]
async fn k008_a_layer_that_panics_fails_only_its_own_call() {
    let (scope, _) = doubling();
    scope.around(&DOUBLE, |n, next| async move {
        assert!(n != 13, "unlucky");
        next.run(n).await
    });
    scope.around(&DOUBLE, |n, next| {
        assert!(n != 14, "unlucky, before the first await");
        next.run(n)
    });
    assert_eq!(code(DOUBLE.call(&scope, 13).await), "tool.internal");
    assert_eq!(code(DOUBLE.call(&scope, 14).await), "tool.internal");
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(2));
    scope.close().await;
}

#[tokio::test]
async fn k008_a_layer_that_never_calls_next_and_never_ends_can_be_called_off() {
    let (scope, calls) = doubling();
    scope.around(&DOUBLE, |_, _next| std::future::pending());
    let call = tokio::spawn(DOUBLE.call(&scope, 1));
    tokio::task::yield_now().await;
    scope.close().await;
    assert_eq!(code(call.await.expect("it does not panic")), "tool.canceled");
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn k008_a_layer_knows_the_call_it_stands_around() {
    const LABEL: Tool<String, String> = Tool::new("label", "Names what it is given.");
    let scope = Scope::root();
    scope.provide(&LABEL, |text, _cx| async move { Ok(text) }).expect("a good tool");
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    scope.around(&LABEL, |text, next| async move {
        let number = DOUBLE.call(next.cx(), 2).await?;
        next.run(format!("{} {number} {text}", next.tool())).await
    });
    assert_eq!(LABEL.call(&scope, "a".to_owned()).await, Ok("label 4 a".to_owned()));
}

#[tokio::test]
async fn k012_calling_off_cancels_the_layers_inside_and_runs_their_clean_up() {
    let log = Log::default();
    let scope = Scope::root();
    scope.provide(&WAIT, |_, _cx: Cx| std::future::pending()).expect("a good tool");
    for name in ["outer", "inner"] {
        let log = log.clone();
        scope.around(&WAIT, move |input, next| {
            let (dropped, ended) = (OnDrop(log.clone(), name), log.clone());
            next.cx().at_end(async move { ended.say(format!("{name} ended")) });
            async move {
                let ended = next.run(input).await;
                drop(dropped);
                ended
            }
        });
    }
    let mut call = WAIT.call(&scope, ());
    assert!(futures::poll!(&mut call).is_pending());
    drop(call);
    until(|| log.len() == 4).await;
    let mut seen = log.take();
    seen[..2].sort();
    assert_eq!(seen, ["inner", "outer", "inner ended", "outer ended"]);
}

#[tokio::test]
async fn k010_a_layer_for_a_namesake_of_other_types_does_not_concern_a_tool_that_is_here() {
    const OTHER: Tool<String, String> = Tool::new("double", "Says it twice.");
    let (scope, _) = doubling();
    scope.around(&OTHER, |_, _next| async { Err(Fault::new(Code::ToolFailed, "Not this one.")) });
    assert_eq!(DOUBLE.call(&scope, 2).await, Ok(4));
}
