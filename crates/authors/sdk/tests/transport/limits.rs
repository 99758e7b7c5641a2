//! What one connection may make its owner keep.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use wharf_sdk::transport::{self, Limits, Options};
use wharf_sdk::{Code, Scope, operative};

use crate::carrier::{Carrier, options, over_every_transport, soon, until};
use crate::peer::Peer;
use crate::tools::*;

over_every_transport![
    k030_an_input_that_is_too_large_is_not_sent,
    k030_an_output_that_is_too_large_is_said_to_be,
    k030_calls_beyond_what_a_connection_carries_are_told_at_once,
];

fn narrow() -> Options {
    let limits = Limits { frame_bytes_max: 4_096, ..Limits::default() };
    Options { limits, ..options() }
}

fn text(bytes: usize) -> Text {
    Text { text: "x".repeat(bytes) }
}

async fn k030_an_input_that_is_too_large_is_not_sent(carrier: Carrier) {
    let (scope, ..) = served();
    let ends = carrier.ends_with(narrow()).await;
    let (caller, _serving) = ends.serve(&scope);
    let fault = soon(ECHO.call(&caller, text(5_000))).await.expect_err("too large");
    assert!(fault.is(Code::ToolInvalidInput), "{fault:?}");
    assert_eq!(soon(ECHO.call(&caller, text(3_000))).await, Ok(text(3_000)));
}

async fn k030_an_output_that_is_too_large_is_said_to_be(carrier: Carrier) {
    const GROW: wharf_sdk::Tool<usize, Text> = wharf_sdk::Tool::new("grow", "Says much.");
    let scope = Scope::root();
    scope.provide(&GROW, |bytes, _cx| async move { Ok(text(bytes)) }).expect("provided");
    let ends = carrier.ends_with(narrow()).await;
    let (caller, _serving) = ends.serve(&scope);
    let fault = soon(GROW.call(&caller, 5_000)).await.expect_err("too large");
    assert!(fault.is(Code::ToolOutputTooLarge), "{fault:?}");
    assert_eq!(soon(GROW.call(&caller, 10)).await, Ok(text(10)));
}

async fn k030_calls_beyond_what_a_connection_carries_are_told_at_once(carrier: Carrier) {
    let (scope, seen, gate) = served();
    let limits = Limits { calls_max: 8, served_max: 4, ..Limits::default() };
    let ends = carrier.ends_with(Options { limits, ..options() }).await;
    let (caller, _serving) = ends.serve(&scope);
    let calls: Vec<_> = (0..4).map(|_| tokio::spawn(GATE.call(&caller, 1))).collect();
    until("the first are under way", || seen.begun() == 4).await;
    // Those the server has no place for, then those that are not even sent.
    let more = soon(join_all((0..20).map(|_| GATE.call(&caller, 1)))).await;
    assert!(more.iter().all(|it| it.as_ref().is_err_and(|fault| fault.is(Code::ToolBusy))));
    gate.add_permits(4);
    for call in calls {
        assert_eq!(soon(call).await.expect("ended"), Ok(1));
    }
    assert_eq!(seen.begun(), 4);
}

#[tokio::test]
async fn k030_a_line_without_end_ends_the_connection() {
    let (mut raw, ours) = UnixStream::pair().expect("a pair");
    let link = transport::unix::accept(ours, &narrow());
    let endless = vec![b'x'; 8_192];
    // It may be gone before all of it was written.
    let _ = raw.write_all(&endless).await;
    soon(link.closed()).await;
}

#[tokio::test]
async fn k030_a_frame_that_is_too_large_ends_the_connection() {
    let (mut peer, link) = Peer::connecting(None, narrow()).await;
    peer.say_text(&"x".repeat(8_192)).await;
    soon(link.closed()).await;
    assert!(peer.is_gone().await);
}

#[tokio::test]
async fn k030_a_peer_that_sends_without_reading_is_let_go() {
    let (mut raw, ours) = UnixStream::pair().expect("a pair");
    let limits = Limits { calls_max: 16, served_max: 4, ..Limits::default() };
    let link = transport::unix::accept(ours, &Options { limits, ..options() });
    let flood = tokio::spawn(async move {
        for n in 0_u64.. {
            let wrong = json!({"id": n.to_string(), "kind": "none", "type": "x"});
            if raw.write_all(format!("{wrong}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    });
    soon(link.closed()).await;
    soon(flood).await.expect("it was let go");
}

#[tokio::test]
async fn k020_a_tool_waits_while_its_peer_reads_nothing() {
    let (scope, ..) = served();
    let (mut raw, ours) = UnixStream::pair().expect("a pair");
    let link = transport::unix::accept(ours, &options());
    let serving = operative::serve(&scope, &link);
    let request = json!({"id": "r", "kind": "elicit", "type": "count", "payload": 1_000_000});
    raw.write_all(format!("{request}\n").as_bytes()).await.expect("written");
    until("what may wait does", || link.counters().frames_waiting >= 64).await;
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(link.counters().frames_waiting <= 64, "no more than may wait");
    }
    assert_eq!(link.counters().served, 1);
    drop(raw);
    soon(serving).await;
}

#[tokio::test]
async fn k026_the_last_handle_that_goes_closes_the_connection() {
    let (here, there) = transport::memory::pair();
    let scope = Scope::root().with_transport(here.clone());
    drop(here);
    assert!(!there.is_closed(), "the scope keeps it");
    soon(scope.close()).await;
    soon(there.closed()).await;
}

#[tokio::test]
async fn a_peer_that_pings_without_reading_is_left() {
    let (mut peer, link) = Peer::listening(options()).await;
    let answered = peer.flood().await;
    assert!(answered <= wharf_vocab::limits::SOCKET_PINGS_MAX, "{answered}");
    soon(link.closed()).await;
}
