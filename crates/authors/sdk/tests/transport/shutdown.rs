//! Serving that comes to its end.

use std::time::Duration;

use wharf_sdk::operative::{Options, serve_with};
use wharf_sdk::{Code, Scope};

use crate::carrier::{Carrier, over_every_transport, soon, until};
use crate::tools::*;

over_every_transport![
    k027_what_is_under_way_may_end_before_serving_stops,
    k027_what_takes_too_long_is_answered_when_serving_stops,
    k027_what_comes_while_serving_stops_is_refused,
    k027_closing_the_link_answers_everything,
    k021_closing_the_scope_answers_everything,
    k027_what_nobody_serves_is_refused_in_time,
];

async fn k027_what_is_under_way_may_end_before_serving_stops(carrier: Carrier) {
    let (scope, seen, gate) = served();
    let ends = carrier.ends().await;
    let (caller, serving) = ends.serve(&scope);
    let calls: Vec<_> = (0..10).map(|_| tokio::spawn(GATE.call(&caller, 1))).collect();
    until("all are under way", || seen.begun() == 10).await;
    let stopping = tokio::spawn(serving.stop());
    gate.add_permits(10);
    for call in calls {
        assert_eq!(soon(call).await.expect("ended"), Ok(1));
    }
    soon(stopping).await.expect("stopped");
    assert_eq!(seen.cleaned(), 10);
    assert!(!ends.server.is_closed());
}

async fn k027_what_takes_too_long_is_answered_when_serving_stops(carrier: Carrier) {
    let (scope, seen, _) = served();
    let ends = carrier.ends().await;
    let grace = Duration::from_millis(20);
    let serving = serve_with(&scope, &ends.server, Options { grace, ..Options::default() });
    let caller = Scope::root().with_transport(ends.caller.clone());
    let calls: Vec<_> = (0..10).map(|_| tokio::spawn(HANG.call(&caller, ()))).collect();
    until("all are under way", || seen.begun() == 10).await;
    soon(serving.stop()).await;
    for call in calls {
        let fault = soon(call).await.expect("ended").expect_err("given up");
        assert!(fault.is(Code::ToolUnavailable), "{fault:?}");
    }
    assert_eq!(seen.cleaned(), 10);
}

async fn k027_what_comes_while_serving_stops_is_refused(carrier: Carrier) {
    let (scope, seen, gate) = served();
    let ends = carrier.ends().await;
    let (caller, serving) = ends.serve(&scope);
    let first = tokio::spawn(GATE.call(&caller, 1));
    until("it is under way", || seen.begun() == 1).await;
    let stopping = tokio::spawn(serving.stop());
    // A refusal shows that the stop has been noticed; calls before it may still be answered.
    let refused = async {
        loop {
            let echo = ECHO.call(&caller, Text { text: String::new() }).await;
            if let Err(fault) = echo {
                return fault;
            }
        }
    };
    let fault = soon(refused).await;
    assert!(fault.is(Code::ToolUnavailable), "{fault:?}");
    gate.add_permits(1);
    assert_eq!(soon(first).await.expect("ended"), Ok(1));
    soon(stopping).await.expect("stopped");
}

async fn k027_closing_the_link_answers_everything(carrier: Carrier) {
    let (scope, seen, _) = served();
    let ends = carrier.ends().await;
    let (caller, serving) = ends.serve(&scope);
    let calls: Vec<_> = (0..10).map(|_| tokio::spawn(HANG.call(&caller, ()))).collect();
    until("all are under way", || seen.begun() == 10).await;
    soon(ends.server.close()).await;
    for call in calls {
        let fault = soon(call).await.expect("ended").expect_err("given up");
        assert!(fault.is(Code::ToolUnavailable), "it was told before the end: {fault:?}");
    }
    soon(serving).await;
    assert_eq!(seen.cleaned(), 10);
}

async fn k021_closing_the_scope_answers_everything(carrier: Carrier) {
    let (scope, seen, _) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    let calls: Vec<_> = (0..10).map(|_| tokio::spawn(HANG.call(&caller, ()))).collect();
    until("all are under way", || seen.begun() == 10).await;
    soon(scope.close()).await;
    assert_eq!(seen.cleaned(), 10);
    for call in calls {
        let fault = soon(call).await.expect("ended").expect_err("called off");
        assert!(fault.is(Code::ToolCanceled), "{fault:?}");
    }
}

async fn k027_what_nobody_serves_is_refused_in_time(carrier: Carrier) {
    let mut options = crate::carrier::options();
    options.unserved_max = Duration::from_millis(30);
    let ends = carrier.ends_with(options).await;
    let caller = Scope::root().with_transport(ends.caller.clone());
    let fault = soon(HANG.call(&caller, ())).await.expect_err("nobody serves");
    assert!(fault.is(Code::ToolUnavailable), "{fault:?}");
}
