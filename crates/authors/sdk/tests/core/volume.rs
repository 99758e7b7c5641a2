//! Many calls, many scopes, and nobody starves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wharf_sdk::{Scope, Within};

use crate::support::DOUBLE;

#[tokio::test]
async fn k030_calls_leave_nothing_behind() {
    let scope = Scope::root();
    let held = Arc::new(());
    let kept = Arc::clone(&held);
    scope
        .provide(&DOUBLE, move |n, _cx| {
            let kept = Arc::clone(&kept);
            async move {
                let _kept = kept;
                Ok(2 * n)
            }
        })
        .expect("a good tool");
    for n in 0..20_000 {
        DOUBLE.call(&scope, n).await.expect("it works");
    }
    assert_eq!(Arc::strong_count(&held), 2, "only the implementation holds it");
    scope.close().await;
    assert_eq!(Arc::strong_count(&held), 1);
}

#[tokio::test]
async fn k030_a_thousand_scopes_opened_and_closed_leave_nothing_behind() {
    let root = Scope::root();
    root.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    let held = Arc::new(());
    for n in 0..1_000 {
        let child = root.child();
        let grandchild = child.child();
        let kept = Arc::clone(&held);
        child.around(&DOUBLE, move |n, next| {
            let _kept = Arc::clone(&kept);
            async move { next.run(n).await }
        });
        assert_eq!(DOUBLE.call(&grandchild, n).await, Ok(2 * n));
        if n % 2 == 0 {
            child.close().await;
        }
    }
    assert_eq!(Arc::strong_count(&held), 1);
    assert_eq!(DOUBLE.call(&root, 1).await, Ok(2));
}

/// On one thread, a task that makes calls that never wait lets others have their turn.
#[tokio::test]
async fn k030_a_long_row_of_calls_starves_nobody() {
    let scope = Scope::root();
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    let stop = Arc::new(AtomicBool::new(false));
    let (place, stopped) = (scope.place(), Arc::clone(&stop));
    let row = tokio::spawn(async move {
        let mut calls = 0;
        while !stopped.load(Ordering::Relaxed) {
            DOUBLE.call(&place, 1).await.expect("it works");
            calls += 1;
            assert!(calls < 1_000_000, "nobody else had a turn");
        }
        calls
    });
    tokio::task::yield_now().await;
    stop.store(true, Ordering::Relaxed);
    assert!(row.await.expect("it does not panic") > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k030_many_callers_at_once() {
    let scope = Scope::root();
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    let callers = (0..64).map(|_| {
        let place = scope.place();
        tokio::spawn(async move {
            for n in 0..200 {
                assert_eq!(DOUBLE.call(&place, n).await, Ok(2 * n));
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("it does not panic");
    }
}

/// Layers are added and scopes come and go while others call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k010_changes_while_calls_are_made_are_met_from_then_on() {
    let root = Scope::root();
    root.provide(&DOUBLE, |n, _cx| async move { Ok(n) }).expect("a good tool");
    let child = root.child();
    let place = child.place();
    let caller = tokio::spawn(async move {
        let mut seen = 0;
        while seen < 100 {
            let now = DOUBLE.call(&place, 0).await.expect("it works");
            assert!(now >= seen, "a layer was lost: {now} after {seen}");
            seen = now;
        }
    });
    for layers in 1..=100 {
        root.around(&DOUBLE, |n, next| async move { next.run(n + 1).await });
        assert_eq!(DOUBLE.call(&child, 0).await, Ok(layers));
        drop(root.child());
    }
    caller.await.expect("it does not panic");
}
