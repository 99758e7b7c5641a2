//! What every transport does.

use std::sync::atomic::Ordering;

use futures::future::join_all;
use serde_json::json;
use wharf_sdk::builtin::{Answer, Completion, ELICIT, NOTIFY, Notice, Prompt, SAMPLE};
use wharf_sdk::{Code, Cx, Fault, Scope, Tool, builtin, operative};

use crate::carrier::{Carrier, over_every_transport, soon, until};
use crate::tools::*;

over_every_transport![
    k022_a_call_goes_there_and_back,
    k025_answers_come_out_of_order_and_each_call_gets_its_own,
    k020_progress_of_several_calls_comes_in_order_before_their_responses,
    k020_a_slow_listener_holds_up_nobody_and_what_it_misses_is_counted,
    k004_a_fault_arrives_as_it_was,
    k004_a_panic_is_a_fault_of_its_call_alone,
    k005_an_input_that_does_not_fit_never_reaches_the_tool,
    k005_an_output_that_does_not_fit_never_leaves,
    k005_an_output_that_does_not_fit_never_reaches_the_caller,
    k028_a_tool_that_nobody_knows_is_named,
    k019_built_ins_are_served_like_any_tool,
    k025_both_ends_call_each_other_at_once,
    k012_layers_stand_around_calls_at_both_ends,
    k036_what_a_call_costs_is_seen_where_it_was_made,
];

fn text(text: &str) -> Text {
    Text { text: text.to_owned() }
}

async fn k022_a_call_goes_there_and_back(carrier: Carrier) {
    let (scope, ..) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    for said in ["", "plain", "lines\r\n\nand \u{2028} more ü 𝄞", &"long ".repeat(20_000)] {
        let echo = soon(ECHO.call(&caller, text(said))).await;
        assert_eq!(echo, Ok(text(said)));
    }
    assert!(ends.caller.is_extended() && ends.server.is_extended());
    assert_eq!(ends.caller.counters().unknown_ids, 0);
}

async fn k025_answers_come_out_of_order_and_each_call_gets_its_own(carrier: Carrier) {
    let (scope, seen, gate) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    // Larger ones wait longer: the semaphore is fair, so they are let in one after the other.
    let calls = (1..=20).map(|n| tokio::spawn(GATE.call(&caller, n)));
    let calls: Vec<_> = calls.collect();
    until("all calls are under way", || seen.begun() == 20).await;
    assert_eq!(ends.caller.counters().calls_waiting, 20);
    let echo = soon(ECHO.call(&caller, text("in between"))).await;
    assert_eq!(echo, Ok(text("in between")), "others need not wait");
    gate.add_permits((1..=20).sum());
    let answers = soon(join_all(calls)).await;
    for (n, answer) in (1..=20).zip(answers) {
        assert_eq!(answer.expect("ended"), Ok(n));
    }
}

async fn k020_progress_of_several_calls_comes_in_order_before_their_responses(carrier: Carrier) {
    let (scope, ..) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    let calls = (0..8).map(|n| {
        let mut call = COUNT.call(&caller, 100 + n);
        tokio::spawn(async move {
            let mut pieces = Vec::new();
            while let Some(piece) = call.progress().await {
                pieces.push(piece);
            }
            (pieces, call.await)
        })
    });
    let results = soon(join_all(calls)).await;
    for (n, result) in (0..8).zip(results) {
        let (pieces, answer) = result.expect("ended");
        assert_eq!(pieces, (1..=100 + n).collect::<Vec<u32>>());
        assert_eq!(answer, Ok(100 + n));
    }
}

async fn k020_a_slow_listener_holds_up_nobody_and_what_it_misses_is_counted(carrier: Carrier) {
    let (scope, ..) = served();
    let mut options = crate::carrier::options();
    options.progress_max = 16;
    let ends = carrier.ends_with(options).await;
    let (caller, _serving) = ends.serve(&scope);
    let mut slow = COUNT.call(&caller, 2_000);
    assert_eq!(soon(slow.progress()).await, Some(1));
    // It is not looked at any more; others are.
    for n in 0..20 {
        let echo = soon(ECHO.call(&caller, text(&n.to_string()))).await;
        assert_eq!(echo, Ok(text(&n.to_string())));
    }
    until("the slow one was answered", || ends.server.counters().served == 0).await;
    until("everything has arrived", || ends.caller.counters().calls_waiting == 0).await;
    assert!(ends.caller.counters().progress_dropped > 0);
    let mut last = 1;
    while let Some(piece) = soon(slow.progress()).await {
        assert!(piece > last, "still in order");
        last = piece;
    }
    assert_eq!(soon(slow).await, Ok(2_000));
}

async fn k004_a_fault_arrives_as_it_was(carrier: Carrier) {
    let (scope, ..) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    let failed = soon(FAIL.call(&caller, "No money left.".to_owned())).await;
    assert_eq!(failed, Err(fault("No money left.")));
}

async fn k004_a_panic_is_a_fault_of_its_call_alone(carrier: Carrier) {
    let (scope, ..) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    for _ in 0..3 {
        let fault = soon(PANIC.call(&caller, ())).await.expect_err("it panicked");
        assert!(fault.is(Code::ToolInternal), "{fault:?}");
    }
    assert!(soon(ECHO.call(&caller, text("alive"))).await.is_ok());
}

async fn k005_an_input_that_does_not_fit_never_reaches_the_tool(carrier: Carrier) {
    let (scope, seen, _) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    let fault = soon(SMALL.call(&caller, Small { n: 11 })).await.expect_err("too large");
    assert!(fault.is(Code::ToolInvalidInput), "{fault:?}");
    assert_eq!(fault.details.get("path"), Some(&json!("/n")));
    assert_eq!(seen.small.load(Ordering::SeqCst), 0);
}

async fn k005_an_output_that_does_not_fit_never_leaves(carrier: Carrier) {
    let (scope, seen, _) = served();
    let ends = carrier.ends().await;
    // The caller's own definition would let it pass.
    const LAX: Tool<serde_json::Value, serde_json::Value> = Tool::new("small", "");
    let (caller, _serving) = ends.serve(&scope);
    let fault = soon(LAX.call(&caller, json!({"n": 5}))).await.expect_err("too large");
    assert!(fault.is(Code::ToolInvalidOutput), "{fault:?}");
    assert_eq!(fault.details.get("path"), Some(&json!("/n")));
    assert_eq!(seen.small.load(Ordering::SeqCst), 1);
    assert_eq!(soon(LAX.call(&caller, json!({"n": 1}))).await, Ok(json!({"n": 10})));
}

async fn k005_an_output_that_does_not_fit_never_reaches_the_caller(carrier: Carrier) {
    const LAX: Tool<Small, serde_json::Value> = Tool::new("small", "");
    let scope = Scope::root();
    let lies = |_, _cx| async { Ok(json!({"n": 99})) };
    scope.provide(&LAX, lies).expect("provided");
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    let fault = soon(SMALL.call(&caller, Small { n: 1 })).await.expect_err("too large");
    assert!(fault.is(Code::ToolInvalidOutput), "{fault:?}");
    assert_eq!(fault.details.get("path"), Some(&json!("/n")));
}

async fn k028_a_tool_that_nobody_knows_is_named(carrier: Carrier) {
    let (scope, ..) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    let fault = soon(UNKNOWN.call(&caller, ())).await.expect_err("unknown");
    assert!(fault.is(Code::ToolNotFound), "{fault:?}");
    assert!(fault.message.contains("\"unknown\""), "{fault:?}");
}

async fn k019_built_ins_are_served_like_any_tool(carrier: Carrier) {
    let scope = Scope::root();
    let elicit = |question: builtin::Question, _cx| async move {
        Ok(match question.message.as_str() {
            "yes" => Answer::Accepted(json!({"text": question.word})),
            "no" => Answer::Declined,
            "stop" => Answer::Cancelled,
            "never" => Answer::Denied,
            other => Answer::OffScript(other.to_owned()),
        })
    };
    scope.provide(&ELICIT, elicit).expect("provided");
    let (told, mut heard) = tokio::sync::mpsc::channel(8);
    let notify = move |notice: Notice, _cx| {
        let told = told.clone();
        async move {
            told.send(notice.message).await.expect("heard");
            Ok(())
        }
    };
    scope.provide(&NOTIFY, notify).expect("provided");
    let sample = |prompt: Prompt, _cx| async move {
        let builtin::Said::Text(text) = prompt.prompt else { unreachable!("it is a text") };
        Ok(Completion { text: text.to_uppercase(), ..Completion::default() })
    };
    scope.provide(&SAMPLE, sample).expect("provided");
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    let ask = |message: &str| soon(builtin::ask::<Text>(&caller, message.to_owned()));
    assert_eq!(ask("yes").await, Ok(Answer::Accepted(text("form"))));
    assert_eq!(ask("no").await, Ok(Answer::Declined));
    assert_eq!(ask("stop").await, Ok(Answer::Cancelled));
    assert_eq!(ask("never").await, Ok(Answer::Denied));
    assert_eq!(ask("hm").await, Ok(Answer::OffScript("hm".to_owned())));
    let notice = Notice { message: "listen".to_owned(), ..Notice::default() };
    assert_eq!(soon(NOTIFY.call(&caller, notice)).await, Ok(()));
    assert_eq!(soon(heard.recv()).await.as_deref(), Some("listen"));
    let prompt = Prompt { prompt: builtin::Said::Text("loud".to_owned()), ..Prompt::default() };
    assert_eq!(soon(SAMPLE.call(&caller, prompt)).await.expect("said").text, "LOUD");
}

async fn k025_both_ends_call_each_other_at_once(carrier: Carrier) {
    let (scope, ..) = served();
    let ends = carrier.ends().await;
    let (there, _serving) = ends.serve(&scope);
    let _back = operative::serve(&scope, &ends.caller);
    let here = Scope::root().with_transport(ends.server.clone());
    let calls = (0..50).flat_map(|n| {
        let said = text(&n.to_string());
        [(said.clone(), ECHO.call(&there, said.clone())), (said.clone(), ECHO.call(&here, said))]
    });
    let calls = calls.map(|(said, call)| async move { (said, call.await) });
    for (said, answer) in soon(join_all(calls)).await {
        assert_eq!(answer, Ok(said));
    }
}

async fn k012_layers_stand_around_calls_at_both_ends(carrier: Carrier) {
    let (scope, ..) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    let said = |word: &'static str| {
        move |input: Text, next: wharf_sdk::Next<Text, Text, ()>| async move {
            let echo = next.run(text(&format!("{}>{word}", input.text))).await?;
            Ok(text(&format!("{}<{word}", echo.text)))
        }
    };
    caller.around(&ECHO, said("here"));
    scope.around(&ECHO, said("there"));
    let echo = soon(ECHO.call(&caller, text(""))).await;
    assert_eq!(echo, Ok(text(">here>there<there<here")));
}

async fn k036_what_a_call_costs_is_seen_where_it_was_made(carrier: Carrier) {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let scope = Scope::root();
    let waits = std::sync::Arc::clone(&gate);
    let buy = move |n: u32, cx: Cx<u32>| {
        let waits = std::sync::Arc::clone(&waits);
        async move {
            cx.cost(300);
            cx.progress(1).await;
            waits.acquire().await.expect("open").forget();
            cx.cost(200);
            if n == 0 { Err(Fault::new(Code::ToolFailed, "Sold out.")) } else { Ok(n) }
        }
    };
    scope.provide(&BUY, buy).expect("provided");
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    for n in [7, 0] {
        let mut call = BUY.call(&caller, n);
        assert_eq!(call.cost(), 0);
        assert_eq!(soon(call.progress()).await, Some(1));
        assert_eq!(call.cost(), 300, "it is told as it is spent");
        gate.add_permits(1);
        let result = soon(&mut call).await;
        assert_eq!(result.ok(), (n > 0).then_some(n));
        assert_eq!(call.cost(), 500, "however it ends");
    }
}

const BUY: Tool<u32, u32, u32> = Tool::new("buy", "Buys something.");
