//! Calls: awaited, dropped, timed out, nested.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use wharf_sdk::{Code, Cx, Fault, Scope, Tool};

use crate::support::{DOUBLE, Log, OnDrop, WAIT, block_on, code, until};

fn waiting(log: &Log) -> Scope {
    let scope = Scope::root();
    let log = log.clone();
    scope
        .provide(&WAIT, move |_, _cx| {
            let dropped = OnDrop(log.clone(), "dropped");
            async move {
                dropped.0.say("begun");
                std::future::pending::<()>().await;
                drop(dropped);
                Ok(())
            }
        })
        .expect("a good tool");
    scope
}

#[tokio::test]
async fn k007_nothing_happens_before_a_call_is_awaited() {
    let log = Log::default();
    let scope = waiting(&log);
    drop(WAIT.call(&scope, ()));
    assert_eq!(log.len(), 0);
}

#[tokio::test]
async fn k007_dropping_a_call_calls_it_off() {
    let log = Log::default();
    let scope = waiting(&log);
    let mut call = WAIT.call(&scope, ());
    assert!(futures::poll!(&mut call).is_pending());
    assert_eq!(log.take(), ["begun"]);
    drop(call);
    assert_eq!(log.take(), ["dropped"]);
}

#[tokio::test(start_paused = true)]
async fn k007_a_timeout_around_a_call_calls_it_off() {
    let log = Log::default();
    let scope = waiting(&log);
    let late = tokio::time::timeout(Duration::from_secs(5), WAIT.call(&scope, ())).await;
    assert!(late.is_err());
    assert_eq!(log.take(), ["begun", "dropped"]);
}

#[tokio::test]
async fn k007_dropping_a_call_calls_off_what_it_called() {
    const OUTER: Tool<(), ()> = Tool::new("outer", "Calls another.");
    let log = Log::default();
    let scope = waiting(&log);
    scope
        .provide(&OUTER, |_, cx: Cx| async move { WAIT.call(&cx, ()).await })
        .expect("a good tool");
    let mut call = OUTER.call(&scope, ());
    assert!(futures::poll!(&mut call).is_pending());
    drop(call);
    assert_eq!(log.take(), ["begun", "dropped"]);
}

#[tokio::test]
async fn k007_a_call_can_go_to_another_thread() {
    fn sendable(_: &(impl Send + Unpin)) {}
    let scope = Scope::root();
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    let call = DOUBLE.call(&scope, 2);
    sendable(&call);
    let runtime = tokio::runtime::Handle::current();
    let done = tokio::task::spawn_blocking(move || runtime.block_on(call)).await;
    assert_eq!(done.expect("it does not panic"), Ok(4));
}

#[tokio::test]
#[should_panic(expected = "a call was awaited after it had given its result")]
async fn k007_a_call_gives_its_result_once() {
    let scope = Scope::root();
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    let mut call = DOUBLE.call(&scope, 2);
    assert_eq!((&mut call).await, Ok(4));
    assert_eq!(call.progress().await, None, "there is no more to hear either");
    let _ = call.await;
}

#[tokio::test]
async fn k007_calls_work_without_a_runtime() {
    let scope = Scope::root();
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    let call = DOUBLE.call(&scope, 2);
    let done = std::thread::spawn(move || block_on(call)).join();
    assert_eq!(done.expect("it does not panic"), Ok(4));
}

#[tokio::test]
async fn k004_a_tool_that_panics_fails_only_its_own_call() {
    let scope = Scope::root();
    scope
        .provide(&DOUBLE, |n, _cx| async move {
            assert!(n != 13, "unlucky");
            Ok(2 * n)
        })
        .expect("a good tool");
    let fault = DOUBLE.call(&scope, 13).await.expect_err("it panics");
    assert!(fault.is(Code::ToolInternal));
    assert!(!fault.message.contains("unlucky"), "what panicked is nobody's business");
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(2));
}

#[tokio::test]
async fn k004_a_tool_that_panics_before_its_first_await_fails_only_its_own_call() {
    let scope = Scope::root();
    scope
        .provide(&DOUBLE, |n, _cx| {
            assert!(n != 13, "unlucky");
            std::future::ready(Ok(n))
        })
        .expect("a good tool");
    assert_eq!(code(DOUBLE.call(&scope, 13).await), "tool.internal");
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(1));
}

#[tokio::test]
async fn k030_a_tool_that_calls_itself_without_end_is_told_so() {
    async fn down(n: u32, cx: Cx) -> Result<u32, Fault> {
        DOUBLE.call(&cx, n + 1).await
    }
    let scope = Scope::root();
    scope.provide(&DOUBLE, down).expect("a good tool");
    for _ in 0..5 {
        scope.around(&DOUBLE, |n, next| async move { next.run(n).await });
    }
    // On a thread with the usual stack, through layers, in a build that saves no stack.
    let call = DOUBLE.call(&scope, 0);
    let done = std::thread::spawn(move || block_on(call)).join();
    let fault = done.expect("the stack holds").expect_err("it never ends");
    assert!(fault.is(Code::ToolDepthExceeded));
    assert!(fault.message.contains("\"double\""));
}

#[tokio::test]
async fn k030_a_recursion_that_ends_is_fine() {
    async fn sum(n: u32, cx: Cx) -> Result<u32, Fault> {
        if n == 0 { Ok(0) } else { Ok(n + DOUBLE.call(&cx, n - 1).await?) }
    }
    let scope = Scope::root();
    scope.provide(&DOUBLE, sum).expect("a good tool");
    for _ in 0..3 {
        assert_eq!(DOUBLE.call(&scope, 60).await, Ok(1830));
    }
}

#[tokio::test]
async fn k012_what_is_to_be_done_at_the_end_is_done_however_a_call_ends() {
    const END: Tool<String, ()> = Tool::new("end", "Ends in some way.");
    let log = Log::default();
    let scope = Scope::root();
    let ends = log.clone();
    scope
        .provide(&END, move |how: String, cx: Cx| {
            let ends = ends.clone();
            async move {
                for what in ["first", "second"] {
                    let (ends, how) = (ends.clone(), how.clone());
                    cx.at_end(async move {
                        tokio::task::yield_now().await;
                        ends.say(format!("{how} {what}"));
                    });
                }
                match how.as_str() {
                    "well" => Ok(()),
                    "badly" => Err(Fault::new(Code::ToolFailed, "It went badly.")),
                    "panic" => panic!("it panics"),
                    _ => std::future::pending().await,
                }
            }
        })
        .expect("a good tool");
    for how in ["well", "badly", "panic", "dropped"] {
        let mut call = END.call(&scope, how.to_owned());
        let _ = futures::poll!(&mut call);
        drop(call);
        until(|| log.len() == 2).await;
        assert_eq!(log.take(), [format!("{how} second"), format!("{how} first")]);
    }
}

#[tokio::test]
async fn k012_the_end_of_a_call_is_worked_on_also_when_it_is_dropped_outside_the_runtime() {
    let scope = Scope::root();
    let done = Arc::new(Notify::new());
    let told = Arc::clone(&done);
    scope
        .provide(&WAIT, move |_, cx: Cx| {
            let told = Arc::clone(&told);
            cx.at_end(async move { told.notify_one() });
            std::future::pending()
        })
        .expect("a good tool");
    let mut call = WAIT.call(&scope, ());
    assert!(futures::poll!(&mut call).is_pending());
    std::thread::spawn(move || drop(call)).join().expect("it does not panic");
    done.notified().await;
}

#[tokio::test]
async fn k012_work_for_the_end_that_comes_after_it_is_done_at_once() {
    let scope = Scope::root();
    let (keep, kept) = tokio::sync::oneshot::channel();
    let keep = std::sync::Mutex::new(Some(keep));
    scope
        .provide(&WAIT, move |_, cx: Cx| {
            let keep = keep.lock().expect("nobody panics").take().expect("called once");
            let _ = keep.send(cx);
            std::future::ready(Ok(()))
        })
        .expect("a good tool");
    WAIT.call(&scope, ()).await.expect("it works");
    let cx = kept.await.expect("it was kept");
    let done = Arc::new(Notify::new());
    let told = Arc::clone(&done);
    cx.at_end(async move { told.notify_one() });
    done.notified().await;
}

#[tokio::test]
async fn k036_a_local_call_knows_what_its_tool_said_that_it_cost() {
    const BUY: Tool<u64, u64> = Tool::new("buy", "Buys something.");
    let scope = Scope::root();
    let buy = |n: u64, cx: Cx| async move {
        cx.cost(n);
        cx.cost(5);
        Ok::<_, Fault>(n)
    };
    scope.provide(&BUY, buy).expect("provided");
    let (mut one, mut other) = (BUY.call(&scope, 10), BUY.call(&scope, u64::MAX));
    assert_eq!((&mut one).await, Ok(10));
    assert_eq!((&mut other).await, Ok(u64::MAX));
    assert_eq!((one.cost(), other.cost()), (15, u64::MAX), "each its own, and never less");
}
