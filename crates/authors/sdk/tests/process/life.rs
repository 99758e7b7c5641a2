//! Canceling, heartbeats, and how an agent ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use wharf_protocol::agent::{AdmissionRefusal, CallOutcome, CancelCall, CoreEvent, CoreLimits};
use wharf_sdk::process::Endpoint;
use wharf_sdk::{Code, Error};
use wharf_wire::agent_v1::CoreGoodbye;

use crate::core::{Core, Listener, TOKEN, id};
use crate::tools::{agent, joined, start, until};

/// How long an agent may take to end.
const END: Duration = Duration::from_secs(5);

#[test]
fn r130_a_canceled_sleep_stops_before_its_deadline() {
    let (mut core, ..) = joined();
    core.call("s", "sleep", &json!({}));
    let cancel = CancelCall { reason: None, deadline_ms: Some(20_000) };
    core.session.cancel(core.now(), &id("s"), cancel).expect("open");
    let end = core.end("s");
    assert!(!end.unresponsive);
    let CallOutcome::Canceled(fault) = end.outcome else { panic!("{:?}", end.outcome) };
    assert!(fault.is(Code::ToolCanceled));
    let place = |wanted: fn(&CoreEvent) -> bool| core.seen.iter().position(wanted);
    let acknowledged = place(|e| matches!(e, CoreEvent::CancelAcknowledged { accepted: true, .. }));
    let ended = place(|e| matches!(e, CoreEvent::CallEnded { .. }));
    assert!(acknowledged.expect("acknowledged") < ended.expect("ended"));
    core.assert_flawless();
}

#[test]
fn r139_heartbeats_go_on_while_every_thread_for_tools_is_blocked() {
    const BLOCKED: u64 = 64;
    let listener = Listener::unix();
    let (agent, shared) = agent();
    let _running = start(agent, &listener);
    let limits = CoreLimits {
        heartbeat_interval_ms: 50,
        unhealthy_intervals: 1_000,
        dead_intervals: 2_000,
        heartbeats_per_interval_max: 10_000,
        ..CoreLimits::default()
    };
    let mut core = Core::joined(&listener, limits);
    for n in 0..BLOCKED {
        core.call(&format!("b{n}"), "block", &json!({}));
    }
    let mut uptimes = Vec::new();
    core.wait("heartbeats", |event| match event {
        CoreEvent::Heartbeat { uptime_ms, inflight_calls: BLOCKED, .. } => {
            uptimes.push(*uptime_ms);
            (uptimes.len() == 5).then_some(())
        }
        _ => None,
    });
    assert!(uptimes.windows(2).all(|pair| pair[1] >= pair[0] + 50), "{uptimes:?}");
    assert_eq!(core.session.open_calls().count(), 64);
    shared.gate.add_permits(1);
    for n in 0..BLOCKED {
        core.output(&format!("b{n}"));
    }
    core.assert_flawless();
}

#[test]
fn r061_an_agent_that_is_not_let_in_ends_with_an_error_at_once() {
    let listener = Listener::unix();
    let (agent, _) = agent();
    let running = start(agent, &listener);
    let (mut core, _) = Core::greeted(&listener, CoreLimits::default());
    core.session.refuse(core.now(), AdmissionRefusal::Unauthorized).expect("a hello waits");
    core.flush();
    let error = running.ended_within(END).expect_err("refused");
    assert!(matches!(&error, Error::NotAdmitted { code } if code == "protocol.unauthorized"));
    assert!(!format!("{error} {error:?}").contains(TOKEN));
}

#[test]
fn r064_an_agent_whose_core_is_gone_stops_its_tools_and_ends() {
    let (mut core, shared, running) = joined();
    core.call("s", "stubborn", &json!({}));
    until(|| shared.executed.load(Ordering::SeqCst) == 1);
    drop(core);
    running.ended_within(END).expect("an orderly end");
    assert_eq!(shared.stopped.load(Ordering::SeqCst), 1, "the handler was told");
}

#[test]
fn r064_a_tool_that_blocks_does_not_keep_the_agent_alive() {
    let (mut core, shared, running) = joined();
    core.call("b", "block", &json!({}));
    until(|| shared.executed.load(Ordering::SeqCst) == 1);
    drop(core);
    running.ended_within(END).expect("an orderly end");
    // The thread is let go, so that the test leaves nothing behind.
    shared.gate.add_permits(1);
}

#[test]
fn r063_r064_a_goodbye_without_time_ends_the_agent_at_once() {
    let (mut core, _, running) = joined();
    core.call("s", "sleep", &json!({}));
    let goodbye = CoreGoodbye { reason: "bye".to_owned(), retry_after_ms: Some(0), drain_ms: None };
    core.session.goodbye(core.now(), goodbye).expect("live");
    core.flush();
    running.ended_within(END).expect("an orderly end");
}

#[test]
fn r164_open_calls_finish_or_are_stopped_in_the_time_a_goodbye_gives() {
    let (mut core, shared, running) = joined();
    core.call("finishes", "gate", &json!({"n": 1}));
    core.call("stops", "sleep", &json!({}));
    until(|| shared.executed.load(Ordering::SeqCst) == 1);
    let goodbye =
        CoreGoodbye { reason: "bye".to_owned(), retry_after_ms: None, drain_ms: Some(4_000) };
    core.session.goodbye(core.now(), goodbye).expect("live");
    core.flush();
    shared.gate.add_permits(1);
    assert_eq!(core.output("finishes"), json!({"n": 1}));
    assert!(matches!(core.end("stops").outcome, CallOutcome::Canceled(_)));
    running.ended_within(END).expect("an orderly end");
    core.assert_flawless();
}

#[test]
fn a_core_that_cannot_be_reached_is_an_error_and_not_a_loop() {
    let listener = Listener::unix();
    let address = listener.address();
    drop(listener);
    let (agent, _) = agent();
    let service = agent.build().expect("usable");
    let endpoint = Endpoint::new(&address, TOKEN).expect("an address");
    assert!(matches!(service.serve(&endpoint), Err(Error::Unreachable(_))));
}
