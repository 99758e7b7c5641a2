//! Progress: typed, ordered, bounded, and free when nobody listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wharf_sdk::{Cx, Fault, Scope, Tool};

use crate::support::{Log, until};

const COUNT: Tool<u32, u32, u32> = Tool::new("count", "Counts.");

async fn count(to: u32, cx: Cx<u32>) -> Result<u32, Fault> {
    for n in 0..to {
        cx.progress(n).await;
    }
    Ok(to)
}

fn counting() -> Scope {
    let scope = Scope::root();
    scope.provide(&COUNT, count).expect("a good tool");
    scope
}

#[tokio::test]
async fn k020_progress_comes_in_order_and_before_the_response() {
    let scope = counting();
    let mut call = COUNT.call(&scope, 500);
    let mut heard = Vec::new();
    while let Some(n) = call.progress().await {
        heard.push(n);
    }
    assert_eq!(heard, (0..500).collect::<Vec<_>>());
    assert_eq!(call.await, Ok(500));
}

#[tokio::test]
async fn k020_a_tool_waits_for_a_slow_listener() {
    let said = Arc::new(AtomicU32::new(0));
    let scope = Scope::root();
    let count = Arc::clone(&said);
    scope
        .provide(&COUNT, move |to, cx: Cx<u32>| {
            let count = Arc::clone(&count);
            async move {
                for n in 0..to {
                    cx.progress(n).await;
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Ok(to)
            }
        })
        .expect("a good tool");
    let mut call = COUNT.call(&scope, 1_000);
    assert_eq!(call.progress().await, Some(0));
    let ahead = said.load(Ordering::Relaxed);
    assert!((1..=65).contains(&ahead), "the tool is {ahead} pieces ahead");
    for n in 1..1_000 {
        assert_eq!(call.progress().await, Some(n));
        assert!(said.load(Ordering::Relaxed) - n <= 66);
    }
    assert_eq!(call.progress().await, None);
    assert_eq!(call.await, Ok(1_000));
}

#[tokio::test]
async fn k020_when_nobody_listens_nothing_is_kept_and_nobody_waits() {
    const HEARD: Tool<(), bool, u32> = Tool::new("heard", "Whether anybody listens.");
    let scope = counting();
    assert_eq!(COUNT.call(&scope, 100_000).await, Ok(100_000));
    scope.provide(&HEARD, |_, cx: Cx<u32>| async move { Ok(cx.is_heard()) }).expect("a good tool");
    assert_eq!(HEARD.call(&scope, ()).await, Ok(false));
    let mut call = HEARD.call(&scope, ());
    assert_eq!(call.progress().await, None);
    assert_eq!(call.await, Ok(true));
}

#[tokio::test]
async fn k020_whoever_stops_listening_does_not_hold_the_tool_up() {
    let scope = counting();
    let mut call = COUNT.call(&scope, 10_000);
    assert_eq!(call.progress().await, Some(0));
    assert_eq!(call.progress().await, Some(1));
    assert_eq!(call.await, Ok(10_000));
}

#[tokio::test]
async fn k020_waiting_for_progress_can_be_given_up_and_taken_up_again() {
    let scope = Scope::root();
    let (go, wait) = tokio::sync::watch::channel(0);
    scope
        .provide(&COUNT, move |to, cx: Cx<u32>| {
            let mut wait = wait.clone();
            async move {
                for n in 0..to {
                    wait.wait_for(|go| *go > n).await.expect("somebody lets it go");
                    cx.progress(n).await;
                }
                Ok(to)
            }
        })
        .expect("a good tool");
    let mut call = COUNT.call(&scope, 3);
    for n in 0..3 {
        for _ in 0..3 {
            let mut waiting = Box::pin(call.progress());
            assert!(futures::poll!(&mut waiting).is_pending());
        }
        go.send(n + 1).expect("it waits");
        assert_eq!(call.progress().await, Some(n));
    }
    assert_eq!(call.progress().await, None);
    assert_eq!(call.await, Ok(3));
}

#[tokio::test]
async fn k020_what_goes_on_after_the_call_is_not_held_up_by_its_progress() {
    let log = Log::default();
    let scope = Scope::root();
    let ended = log.clone();
    scope
        .provide(&COUNT, move |to, cx: Cx<u32>| {
            let ended = ended.clone();
            tokio::spawn(async move {
                for n in 0..1_000 {
                    cx.progress(n).await;
                }
                ended.say("ended");
            });
            std::future::ready(Ok(to))
        })
        .expect("a good tool");
    let mut call = COUNT.call(&scope, 3);
    assert_eq!(call.progress().await, None);
    until(|| log.len() == 1).await;
    assert_eq!(call.await, Ok(3));
}

#[tokio::test]
async fn k020_layers_hear_and_say_progress_too() {
    let scope = counting();
    scope.around(&COUNT, |to, next| async move {
        next.cx().progress(1_000).await;
        let output = next.run(to).await;
        next.cx().progress(2_000).await;
        output
    });
    let mut call = COUNT.call(&scope, 2);
    let mut heard = Vec::new();
    while let Some(n) = call.progress().await {
        heard.push(n);
    }
    assert_eq!(heard, [1_000, 0, 1, 2_000]);
    assert_eq!(call.await, Ok(2));
}
