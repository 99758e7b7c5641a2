//! Idempotency keys, for agents that promise to keep them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use wharf_protocol::agent::{CallOutcome, CancelCall, CoreLimits};
use wharf_sdk::Code;

use crate::core::{Core, Listener, id};
use crate::tools::{Running, Shared, agent, start, until};

fn keeping() -> (Core, Arc<Shared>, Running) {
    let listener = Listener::unix();
    let (agent, shared) = agent();
    let running = start(agent.keeps_idempotency_keys(), &listener);
    (Core::joined(&listener, CoreLimits::default()), shared, running)
}

fn call(core: &mut Core, call_id: &str, input: &Value) {
    core.call_with(call_id, "gate", input, |request| {
        request.idempotency_key = Some("key".to_owned());
    });
}

#[test]
fn r099_a_repeated_call_gets_the_first_ones_output() {
    let (mut core, shared, _running) = keeping();
    shared.gate.add_permits(1);
    call(&mut core, "first", &json!({"n": 1}));
    assert_eq!(core.output("first"), json!({"n": 1}));
    call(&mut core, "again", &json!({"n": 1}));
    assert_eq!(core.output("again"), json!({"n": 1}));
    assert_eq!(shared.executed.load(Ordering::SeqCst), 1);
    core.assert_flawless();
}

#[test]
fn r100_a_repeated_call_waits_while_the_first_runs() {
    let (mut core, shared, _running) = keeping();
    call(&mut core, "first", &json!({"n": 1}));
    call(&mut core, "again", &json!({"n": 1}));
    call(&mut core, "unwanted", &json!({"n": 1}));
    until(|| shared.executed.load(Ordering::SeqCst) == 1);
    core.session.cancel(core.now(), &id("unwanted"), CancelCall::default()).expect("open");
    assert!(matches!(core.end("unwanted").outcome, CallOutcome::Canceled(_)));
    shared.gate.add_permits(1);
    assert_eq!(core.output("first"), json!({"n": 1}));
    assert_eq!(core.output("again"), json!({"n": 1}));
    assert_eq!(shared.executed.load(Ordering::SeqCst), 1);
    core.assert_flawless();
}

#[test]
fn r101_a_key_cannot_be_used_for_another_input() {
    let (mut core, shared, _running) = keeping();
    shared.gate.add_permits(1);
    call(&mut core, "first", &json!({"n": 1}));
    core.output("first");
    call(&mut core, "other", &json!({"n": 0}));
    assert!(core.failure("other").is(Code::ToolIdempotencyConflict));
}

#[test]
fn r169_the_promise_says_how_long_and_how_many() {
    let listener = Listener::unix();
    let _running = start(agent().0.keeps_idempotency_keys(), &listener);
    let (_, hello) = Core::greeted(&listener, CoreLimits::default());
    let promise = hello.idempotency.expect("promised");
    assert_eq!((promise.kept_for_ms, promise.keys_max), (Some(600_000), Some(100_000)));
}
