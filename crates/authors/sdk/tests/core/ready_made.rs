//! The ready-made layers. Time is paused, so it passes only when everybody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use wharf_sdk::builtin::{Answer, ELICIT};
use wharf_sdk::layers::{Approve, Cache, Concurrency, RateLimit, Redact, Retry, Timeout};
use wharf_sdk::{Agent, Code, Cx, Fault, Lane, Scope, Tool};

use crate::support::{DOUBLE, Log, OnDrop, WAIT, code};

const OUT: Lane = Lane::Outer;

/// A scope whose tool counts its calls.
fn counting() -> (Scope, Arc<AtomicU32>) {
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

/// A scope whose tool fails so often before it works.
fn failing(times: u32, fault: Fault) -> (Scope, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let scope = Scope::root();
    let count = Arc::clone(&calls);
    scope
        .provide(&DOUBLE, move |n, _cx| {
            let call = count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(if call < times { Err(fault.clone()) } else { Ok(2 * n) })
        })
        .expect("a good tool");
    (scope, calls)
}

fn busy() -> Fault {
    Fault::new(Code::ToolBusy, "Not now.")
}

#[tokio::test(start_paused = true)]
async fn k013_timeout_calls_off_what_takes_too_long() {
    let log = Log::default();
    let scope = Scope::root();
    let told = log.clone();
    scope
        .provide(&WAIT, move |_, _cx| {
            let dropped = OnDrop(told.clone(), "dropped");
            async move {
                tokio::time::sleep(Duration::from_secs(10)).await;
                drop(dropped);
                Ok(())
            }
        })
        .expect("a good tool");
    let child = scope.child();
    child.layer(OUT, &WAIT, Timeout::after_secs(5));
    let begun = Instant::now();
    let fault = WAIT.call(&child, ()).await.expect_err("it is late");
    assert!(fault.is(Code::ToolTimeout) && fault.message.contains("\"wait\""));
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
    assert_eq!(log.take(), ["dropped"]);
    assert_eq!(WAIT.call(&scope, ()).await, Ok(()), "outside there is no limit");
}

#[tokio::test(start_paused = true)]
async fn k013_retry_makes_up_to_so_many_attempts_and_waits_between() {
    let (scope, calls) = failing(2, busy());
    scope.layer(OUT, &DOUBLE, Retry::new());
    let begun = Instant::now();
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(2));
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(150) && waited <= Duration::from_millis(301));

    let (scope, calls) = failing(9, busy());
    scope.layer(OUT, &DOUBLE, Retry::new().attempts(5));
    assert_eq!(code(DOUBLE.call(&scope, 1).await), "tool.busy");
    assert_eq!(calls.load(Ordering::Relaxed), 5);
}

#[tokio::test(start_paused = true)]
async fn k013_retry_gives_other_faults_back_at_once_unless_told() {
    let wrong = Fault::new(Code::ToolFailed, "For good.");
    let (scope, calls) = failing(1, wrong.clone());
    scope.layer(OUT, &DOUBLE, Retry::new());
    assert_eq!(code(DOUBLE.call(&scope, 1).await), "tool.failed");
    assert_eq!(calls.load(Ordering::Relaxed), 1);

    let (scope, calls) = failing(1, wrong);
    scope.layer(OUT, &DOUBLE, Retry::new().when(|fault| fault.is(Code::ToolFailed)));
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(2));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn k013_concurrency_lets_so_many_through_and_the_others_wait() {
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let scope = Scope::root();
    let (at, peak) = (Arc::clone(&now), Arc::clone(&most));
    scope
        .provide(&DOUBLE, move |n, _cx| {
            let (at, peak) = (Arc::clone(&at), Arc::clone(&peak));
            async move {
                peak.fetch_max(at.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                at.fetch_sub(1, Ordering::SeqCst);
                Ok(2 * n)
            }
        })
        .expect("a good tool");
    scope.around_all(Concurrency::of(3));
    let begun = Instant::now();
    let calls = (0..10).map(|n| tokio::spawn(DOUBLE.call(&scope, n)));
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("it does not panic").expect("it works");
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!(begun.elapsed(), Duration::from_secs(4));
}

#[tokio::test]
async fn k013_concurrency_refuses_when_the_line_is_full_and_forgets_who_left() {
    let scope = Scope::root();
    scope.provide(&WAIT, |_, _cx| std::future::pending()).expect("a good tool");
    scope.layer(OUT, &WAIT, Concurrency::of(1).waiting(2));
    let mut calls: Vec<_> = (0..3).map(|_| WAIT.call(&scope, ())).collect();
    for call in &mut calls {
        assert!(futures::poll!(call).is_pending());
    }
    assert_eq!(code(WAIT.call(&scope, ()).await), "tool.busy");
    // One who waited leaves: there is room in the line again.
    drop(calls.pop());
    let mut another = WAIT.call(&scope, ());
    assert!(futures::poll!(&mut another).is_pending());
    assert_eq!(code(WAIT.call(&scope, ()).await), "tool.busy");
}

#[tokio::test(start_paused = true)]
async fn k013_rate_limit_spreads_calls() {
    let (scope, _) = counting();
    scope.around_all(RateLimit::per(10, Duration::from_secs(1)));
    let begun = Instant::now();
    for n in 0..10 {
        DOUBLE.call(&scope, n).await.expect("it works");
    }
    assert_eq!(begun.elapsed(), Duration::ZERO, "after a rest ten may begin at once");
    let calls = (0..20).map(|n| DOUBLE.call(&scope, n));
    for ended in futures::future::join_all(calls).await {
        ended.expect("it works");
    }
    let spent = begun.elapsed().as_secs_f64();
    assert!((1.99..2.1).contains(&spent), "twenty more took {spent} s");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let rested = Instant::now();
    for n in 0..11 {
        DOUBLE.call(&scope, n).await.expect("it works");
    }
    let spent = rested.elapsed().as_millis();
    assert!((99..=102).contains(&spent), "a long rest saves no more than ten: {spent} ms");
}

#[tokio::test(start_paused = true)]
async fn k013_rate_limit_refuses_when_nobody_may_wait_and_loses_no_call_of_those_who_left() {
    let (scope, _) = counting();
    scope.layer(OUT, &DOUBLE, RateLimit::per(1, Duration::from_secs(1)).waiting(1));
    DOUBLE.call(&scope, 0).await.expect("the first one");
    let mut waiting = DOUBLE.call(&scope, 1);
    assert!(futures::poll!(&mut waiting).is_pending());
    assert_eq!(code(DOUBLE.call(&scope, 2).await), "tool.rate_limited");
    drop(waiting);
    let begun = Instant::now();
    DOUBLE.call(&scope, 3).await.expect("its turn comes");
    assert!(begun.elapsed() <= Duration::from_millis(1_001));
}

#[tokio::test(start_paused = true)]
async fn k013_cache_remembers_by_input_for_a_while() {
    let (scope, calls) = counting();
    let cache = Cache::new().size(2).age(Duration::from_secs(60));
    scope.layer(OUT, &DOUBLE, cache.clone());
    for _ in 0..5 {
        assert_eq!(DOUBLE.call(&scope, 1).await, Ok(2));
        assert_eq!(DOUBLE.call(&scope, 2).await, Ok(4));
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    // A third one makes the one go that was not used for longest.
    DOUBLE.call(&scope, 1).await.expect("it works");
    DOUBLE.call(&scope, 3).await.expect("it works");
    assert_eq!(cache.len(), 2);
    DOUBLE.call(&scope, 1).await.expect("it works");
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    DOUBLE.call(&scope, 2).await.expect("it works");
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    tokio::time::sleep(Duration::from_secs(61)).await;
    DOUBLE.call(&scope, 2).await.expect("it works");
    assert_eq!(calls.load(Ordering::Relaxed), 5, "it is too old");
    cache.clear();
    assert!(cache.is_empty());
}

#[tokio::test]
async fn k013_cache_does_not_remember_faults() {
    let (scope, calls) = failing(1, busy());
    scope.layer(OUT, &DOUBLE, Cache::new());
    assert_eq!(code(DOUBLE.call(&scope, 1).await), "tool.busy");
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(2));
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(2));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn k016_cache_does_not_mix_instances_of_an_agent() {
    const ADD: Agent<u32> = Agent::new("add", "Adds its configuration.");
    async fn add(n: u32, cx: Cx) -> Result<u32, Fault> {
        Ok(n + *cx.config::<u32>()?)
    }
    let root = Scope::root();
    root.layer(OUT, &DOUBLE, Cache::new());
    let one = ADD.activate(&root, 1).tool(&DOUBLE, add).build().expect("a good agent");
    let ten = ADD.activate(&root, 10).tool(&DOUBLE, add).build().expect("a good agent");
    for _ in 0..2 {
        assert_eq!(DOUBLE.call(&one, 5).await, Ok(6));
        assert_eq!(DOUBLE.call(&ten, 5).await, Ok(15));
    }
}

#[tokio::test]
async fn k013_redact_changes_texts_in_and_out() {
    const ECHO: Tool<serde_json::Value, serde_json::Value> = Tool::new("echo", "Gives it back.");
    let hide = |text: &str| text.replace("Ada", "•");
    let input = json!({"to": "Ada", "Ada": ["Ada", {"cc": "Ada"}], "n": 7});
    for (redact, seen, given) in [
        (Redact::input(hide), "• • •", "• • •"),
        (Redact::output(hide), "Ada Ada Ada", "• • •"),
        (Redact::input(hide).fields(["cc"]), "Ada Ada •", "Ada Ada •"),
    ] {
        let log = Log::default();
        let told = log.clone();
        let scope = Scope::root();
        let texts = |value: &serde_json::Value| {
            let all = [&value["to"], &value["Ada"][0], &value["Ada"][1]["cc"]];
            all.map(|text| text.as_str().expect("a text").to_owned()).join(" ")
        };
        scope
            .provide(&ECHO, move |value, _cx| {
                told.say(texts(&value));
                std::future::ready(Ok(value))
            })
            .expect("a good tool");
        scope.layer(OUT, &ECHO, redact);
        let output = ECHO.call(&scope, input.clone()).await.expect("it works");
        assert_eq!((log.take(), texts(&output)), (vec![seen.to_owned()], given.to_owned()));
        assert_eq!(output["n"], 7);
    }
}

#[tokio::test]
async fn k013_redact_refuses_what_it_broke() {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    enum Colour {
        Red,
    }
    const PAINT: Tool<Colour, ()> = Tool::new("paint", "Paints.");
    let scope = Scope::root();
    scope.provide(&PAINT, |_, _cx| async { Ok(()) }).expect("a good tool");
    scope.layer(OUT, &PAINT, Redact::input(|_| "•".to_owned()));
    assert_eq!(code(PAINT.call(&scope, Colour::Red).await), "tool.internal");
}

#[tokio::test]
async fn k013_approve_asks_before_a_call_goes_on() {
    for (reply, expected, made) in [
        (Answer::Accepted(json!(true)), Ok(10), 1),
        (Answer::Accepted(json!(false)), Err("tool.declined"), 0),
        (Answer::Declined, Err("tool.declined"), 0),
        (Answer::OffScript("Hm.".to_owned()), Err("tool.declined"), 0),
        (Answer::Denied, Err("permission.denied"), 0),
        (Answer::Cancelled, Err("tool.canceled"), 0),
    ] {
        let (scope, calls) = counting();
        scope
            .provide(&ELICIT, move |question, _cx| {
                assert_eq!(question.word, "confirmation");
                assert_eq!(question.message, "May the tool \"double\" be called?");
                assert_eq!(question.schema["type"], "boolean");
                let meta = serde_json::Value::Object(question.meta);
                assert_eq!(meta, json!({"tool": "double", "input": 5}));
                std::future::ready(Ok(reply.clone()))
            })
            .expect("a built-in can be provided");
        scope.around_all(Approve::new());
        let ended = DOUBLE.call(&scope, 5).await;
        let ended = ended.as_ref().map(|n| *n).map_err(|fault| fault.code.as_str());
        assert_eq!(ended, expected);
        assert_eq!(calls.load(Ordering::Relaxed), made);
    }
}

#[tokio::test]
async fn k013_approve_asks_in_other_words_and_keeps_the_input_to_itself() {
    let (scope, _) = counting();
    scope
        .provide(&ELICIT, |question, _cx| {
            assert_eq!(question.message, "double?");
            assert!(!question.meta.contains_key("input"));
            std::future::ready(Ok(Answer::Accepted(json!(true))))
        })
        .expect("a built-in can be provided");
    let approve = Approve::new().asking(|call| format!("{}?", call.tool())).without_input();
    scope.layer(OUT, &DOUBLE, approve);
    assert_eq!(DOUBLE.call(&scope, 5).await, Ok(10));
}

#[tokio::test]
async fn k013_approve_lets_nothing_through_when_nobody_can_be_asked() {
    let (scope, calls) = counting();
    scope.layer(OUT, &DOUBLE, Approve::new());
    assert_eq!(code(DOUBLE.call(&scope, 5).await), "tool.unavailable");
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}
