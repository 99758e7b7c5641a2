//! Scopes: what ends together, and what closing waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wharf_sdk::{Cx, Scope, Tool, Within};

use crate::support::{DOUBLE, Log, OnDrop, WAIT, code, until};

/// A scope whose tool waits for ever, and tells when it is dropped and cleaned up.
fn waiting(log: &Log) -> Scope {
    let scope = Scope::root();
    let log = log.clone();
    scope
        .provide(&WAIT, move |_, cx: Cx| {
            let (dropped, cleaned) = (OnDrop(log.clone(), "dropped"), log.clone());
            cx.at_end(async move {
                tokio::task::yield_now().await;
                cleaned.say("cleaned");
            });
            async move {
                std::future::pending::<()>().await;
                drop(dropped);
                Ok(())
            }
        })
        .expect("a good tool");
    scope
}

#[tokio::test]
async fn k021_closing_halts_and_waits_for_clean_up() {
    let log = Log::default();
    let scope = waiting(&log);
    let child = scope.child();
    let calls = [tokio::spawn(WAIT.call(&scope, ())), tokio::spawn(WAIT.call(&child, ()))];
    tokio::task::yield_now().await;
    scope.close().await;
    let mut seen = log.take();
    seen.sort();
    assert_eq!(seen, ["cleaned", "cleaned", "dropped", "dropped"]);
    for call in calls {
        assert_eq!(code(call.await.expect("it does not panic")), "tool.canceled");
    }
    assert!(scope.is_closed() && child.is_closed());
    scope.close().await;
}

#[tokio::test]
async fn k021_closing_ends_a_call_that_nobody_polls() {
    let log = Log::default();
    let scope = waiting(&log);
    let mut call = WAIT.call(&scope, ());
    assert!(futures::poll!(&mut call).is_pending());
    // Whoever holds the call does something else meanwhile.
    scope.close().await;
    let mut seen = log.take();
    seen.sort();
    assert_eq!(seen, ["cleaned", "dropped"]);
    assert_eq!(code(call.await), "tool.canceled");
}

#[tokio::test]
async fn k021_dropping_a_scope_signals_it() {
    let log = Log::default();
    let scope = waiting(&log);
    let clone = scope.clone();
    let call = tokio::spawn(WAIT.call(&scope, ()));
    tokio::task::yield_now().await;
    drop(scope);
    assert_eq!(log.len(), 0, "a clone keeps it open");
    drop(clone);
    assert_eq!(code(call.await.expect("it does not panic")), "tool.canceled");
    until(|| log.len() == 2).await;
}

#[tokio::test]
async fn k021_a_closed_scope_begins_nothing() {
    let scope = Scope::root();
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    let early = DOUBLE.call(&scope, 1);
    scope.close().await;
    assert_eq!(code(early.await), "tool.canceled");
    assert_eq!(code(DOUBLE.call(&scope, 1).await), "tool.canceled");
    let child = scope.child();
    assert!(child.is_closed());
    assert_eq!(code(DOUBLE.call(&child, 1).await), "tool.canceled");
    let log = Log::default();
    let told = log.clone();
    scope.spawn(async move { told.say("ran") });
    tokio::task::yield_now().await;
    assert_eq!(log.len(), 0);
}

#[tokio::test]
async fn k021_closing_leaves_parents_and_siblings_alone() {
    let scope = Scope::root();
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    let (child, sibling) = (scope.child(), scope.child());
    child.close().await;
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(2));
    assert_eq!(DOUBLE.call(&sibling, 1).await, Ok(2));
}

#[tokio::test]
async fn k021_a_tool_can_close_the_scope_it_was_called_in() {
    let scope = Scope::root();
    let to_close = scope.clone();
    scope
        .provide(&WAIT, move |_, _cx| {
            let to_close = to_close.clone();
            async move {
                to_close.close().await;
                std::future::pending().await
            }
        })
        .expect("a good tool");
    assert_eq!(code(WAIT.call(&scope, ()).await), "tool.canceled");
    scope.close().await;
}

#[tokio::test]
async fn k021_a_task_can_close_its_own_scope() {
    let scope = Scope::root();
    let to_close = scope.clone();
    scope.spawn(async move { to_close.close().await });
    until(|| scope.is_closed()).await;
    scope.close().await;
}

#[tokio::test]
async fn k021_an_inner_call_can_close_an_outer_scope() {
    const OUTER: Tool<(), ()> = Tool::new("outer", "Calls another.");
    let scope = Scope::root();
    let to_close = scope.clone();
    scope
        .provide(&OUTER, |_, cx: Cx| async move {
            let inner = cx.scope();
            let _ = WAIT.call(&inner, ()).await;
            std::future::pending().await
        })
        .expect("a good tool");
    scope
        .provide(&WAIT, move |_, _cx| {
            let to_close = to_close.clone();
            async move {
                to_close.close().await;
                Ok(())
            }
        })
        .expect("a good tool");
    assert_eq!(code(OUTER.call(&scope, ()).await), "tool.canceled");
}

#[tokio::test]
async fn k021_closing_while_a_tool_waits_for_its_listener() {
    const COUNT: Tool<(), (), u32> = Tool::new("count", "Counts for ever.");
    let scope = Scope::root();
    scope
        .provide(&COUNT, |_, cx: Cx<u32>| async move {
            for n in 0.. {
                cx.progress(n).await;
            }
            Ok(())
        })
        .expect("a good tool");
    let mut call = COUNT.call(&scope, ());
    assert_eq!(call.progress().await, Some(0));
    scope.close().await;
    let mut heard = 1;
    while call.progress().await.is_some() {
        heard += 1;
    }
    assert_eq!(heard, 64, "what was said is still heard");
    assert_eq!(code(call.await), "tool.canceled");
}

#[tokio::test]
async fn k021_a_call_that_nobody_polls_any_more_does_not_hold_closing_up() {
    let log = Log::default();
    let scope = waiting(&log);
    let mut call = WAIT.call(&scope, ());
    assert!(futures::poll!(&mut call).is_pending());
    scope.close().await;
    assert_eq!(log.take(), ["dropped", "cleaned"]);
    assert_eq!(code(call.await), "tool.canceled");
}

#[tokio::test]
async fn k021_spawned_tasks_end_with_their_scope() {
    let log = Log::default();
    let scope = Scope::root();
    let dropped = OnDrop(log.clone(), "dropped");
    scope.spawn(async move {
        dropped.0.say("begun");
        std::future::pending::<()>().await;
        drop(dropped);
    });
    until(|| log.len() == 1).await;
    scope.close().await;
    assert_eq!(log.take(), ["begun", "dropped"]);
}

#[tokio::test]
async fn k021_a_panic_in_a_task_or_in_what_is_dropped_does_not_stop_closing() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("dropped badly");
            }
        }
    }
    let log = Log::default();
    let scope = waiting(&log);
    scope.spawn(async { panic!("a task panics") });
    let bomb = Bomb;
    scope.spawn(async move {
        std::future::pending::<()>().await;
        drop(bomb);
    });
    let call = tokio::spawn(WAIT.call(&scope, ()));
    tokio::task::yield_now().await;
    scope.close().await;
    assert_eq!(code(call.await.expect("it does not panic")), "tool.canceled");
    assert_eq!(log.take(), ["dropped", "cleaned"]);
}

#[test]
fn k021_a_very_long_line_of_scopes_ends_well() {
    let root = Scope::root();
    let mut scopes = vec![root.child()];
    for _ in 0..50_000 {
        let next = scopes.last().expect("there is one").child();
        scopes.push(next);
    }
    let place = scopes.last().expect("there is one").place();
    drop(scopes);
    drop(root);
    // Only the last one is held, and with it all the others.
    drop(place);
}

/// Closing races calls that begin, go on and end on other threads, thousands of times.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn k021_after_closing_nothing_goes_on() {
    const BUSY: Tool<(), ()> = Tool::new("busy", "Is busy.");
    for round in 0..300 {
        let inside = Arc::new(AtomicU32::new(0));
        let scope = Scope::root();
        let count = Arc::clone(&inside);
        scope
            .provide(&BUSY, move |_, cx: Cx| {
                struct Inside(Arc<AtomicU32>);
                impl Drop for Inside {
                    fn drop(&mut self) {
                        self.0.fetch_sub(1, Ordering::SeqCst);
                    }
                }
                count.fetch_add(1, Ordering::SeqCst);
                let guard = Inside(Arc::clone(&count));
                count.fetch_add(1, Ordering::SeqCst);
                let ending = Inside(Arc::clone(&count));
                cx.at_end(async move { drop(ending) });
                async move {
                    tokio::task::yield_now().await;
                    drop(guard);
                    Ok(())
                }
            })
            .expect("a good tool");
        let place = scope.place();
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let place = place.clone();
                tokio::spawn(async move { while BUSY.call(&place, ()).await.is_ok() {} })
            })
            .collect();
        for _ in 0..round % 7 {
            tokio::task::yield_now().await;
        }
        scope.close().await;
        assert_eq!(inside.load(Ordering::SeqCst), 0, "round {round}");
        for caller in callers {
            caller.await.expect("it ends");
        }
        assert_eq!(inside.load(Ordering::SeqCst), 0, "round {round}");
    }
}
