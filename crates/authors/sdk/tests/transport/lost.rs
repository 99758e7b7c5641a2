//! Calls whose peer goes, and calls that nobody waits for.

use wharf_sdk::{Code, Scope};

use crate::carrier::{Carrier, over_every_transport, soon, until};
use crate::tools::*;

over_every_transport![
    k026_a_call_is_lost_when_the_peer_goes_before_it_took_it_up,
    k026_a_call_is_lost_when_the_peer_goes_while_it_works,
    k026_all_calls_are_lost_at_once,
    k026_a_call_after_the_end_is_told_at_once,
    k026_work_for_a_caller_that_has_gone_is_called_off,
    k026_dropping_a_call_stops_the_handler_and_runs_its_clean_up,
    k007_a_timeout_around_a_call_calls_it_off,
    k026_a_call_that_was_called_off_before_it_was_taken_up_is_never_begun,
];

async fn k026_a_call_is_lost_when_the_peer_goes_before_it_took_it_up(carrier: Carrier) {
    let ends = carrier.ends().await;
    let caller = Scope::root().with_transport(ends.caller.clone());
    let call = tokio::spawn(HANG.call(&caller, ()));
    until("the request has arrived", || ends.server.counters().served == 1).await;
    // Whoever serves nothing drops what has arrived, without an answer.
    drop(ends.server);
    let fault = soon(call).await.expect("ended").expect_err("nobody took it up");
    assert!(fault.is(Code::ToolUnavailable) || fault.is(Code::TransportLost), "{fault:?}");
}

async fn k026_a_call_is_lost_when_the_peer_goes_while_it_works(carrier: Carrier) {
    let (scope, seen, _) = served();
    let ends = carrier.ends().await;
    let (caller, serving) = ends.serve(&scope);
    let mut call = HANG.call(&caller, ());
    assert_eq!(soon(call.progress()).await, Some(1));
    let closing = ends.caller.clone();
    // Our own end is cut: to the call there is no difference.
    tokio::spawn(async move { closing.close().await });
    let fault = soon(call).await.expect_err("lost");
    assert!(fault.is(Code::TransportLost), "{fault:?}");
    soon(serving).await;
    assert_eq!((seen.begun(), seen.cleaned()), (1, 1));
}

async fn k026_all_calls_are_lost_at_once(carrier: Carrier) {
    let (scope, seen, _) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    let calls: Vec<_> = (0..30).map(|_| tokio::spawn(HANG.call(&caller, ()))).collect();
    until("all are under way", || seen.begun() == 30).await;
    soon(ends.caller.close()).await;
    for call in calls {
        let fault = soon(call).await.expect("ended").expect_err("lost");
        assert!(fault.is(Code::TransportLost), "{fault:?}");
    }
    assert_eq!(ends.caller.counters().calls_waiting, 0);
    until("all have cleaned up", || seen.cleaned() == 30).await;
}

async fn k026_a_call_after_the_end_is_told_at_once(carrier: Carrier) {
    let ends = carrier.ends().await;
    let caller = Scope::root().with_transport(ends.caller.clone());
    soon(ends.server.close()).await;
    soon(ends.caller.closed()).await;
    let fault = soon(ECHO.call(&caller, Text { text: String::new() })).await.expect_err("lost");
    assert!(fault.is(Code::TransportLost), "{fault:?}");
}

async fn k026_work_for_a_caller_that_has_gone_is_called_off(carrier: Carrier) {
    let (scope, seen, _) = served();
    let ends = carrier.ends().await;
    let (caller, serving) = ends.serve(&scope);
    let call = tokio::spawn(HANG.call(&caller, ()));
    until("it is under way", || seen.begun() == 1).await;
    soon(ends.caller.close()).await;
    soon(serving).await;
    assert_eq!(seen.cleaned(), 1, "serving ends when everything has cleaned up");
    assert!(soon(call).await.expect("ended").is_err());
}

async fn k026_dropping_a_call_stops_the_handler_and_runs_its_clean_up(carrier: Carrier) {
    let (scope, seen, _) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    for n in 1..=5 {
        let mut call = HANG.call(&caller, ());
        assert_eq!(soon(call.progress()).await, Some(1));
        drop(call);
        until("it has cleaned up", || seen.cleaned() == n).await;
    }
    until("nothing is left", || ends.server.counters().served == 0).await;
    assert_eq!(ends.caller.counters().calls_waiting, 0);
}

async fn k007_a_timeout_around_a_call_calls_it_off(carrier: Carrier) {
    let (scope, seen, _) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&scope);
    let call = tokio::time::timeout(std::time::Duration::from_millis(50), HANG.call(&caller, ()));
    assert!(call.await.is_err());
    until("what had begun has cleaned up", || seen.cleaned() == seen.begun()).await;
    until("nothing is left", || ends.server.counters().served == 0).await;
}

async fn k026_a_call_that_was_called_off_before_it_was_taken_up_is_never_begun(carrier: Carrier) {
    let (scope, seen, gate) = served();
    let ends = carrier.ends().await;
    let caller = Scope::root().with_transport(ends.caller.clone());
    let one = wharf_sdk::operative::Options { calls_max: 1, ..Default::default() };
    let _serving = wharf_sdk::operative::serve_with(&scope, &ends.server, one);
    let first = tokio::spawn(GATE.call(&caller, 1));
    until("the first is under way", || seen.begun() == 1).await;
    let second = tokio::spawn(GATE.call(&caller, 1));
    until("the second waits", || ends.server.counters().served == 2).await;
    second.abort();
    until("the second is called off", || ends.server.counters().served == 1).await;
    gate.add_permits(2);
    assert_eq!(soon(first).await.expect("ended"), Ok(1));
    assert!(soon(ECHO.call(&caller, Text { text: String::new() })).await.is_ok());
    assert_eq!(seen.begun(), 1);
}
