//! Calls and how they end.

use std::sync::atomic::Ordering;

use serde_json::json;
use wharf_protocol::agent::{Additions, CoreEvent, CoreLimits};
use wharf_sdk::Code;

use crate::core::{Core, Listener, TOKEN};
use crate::tools::{agent, joined, start, until};

#[test]
fn r040_the_hello_says_who_the_agent_is_and_what_it_can() {
    let listener = Listener::unix();
    let (agent, _) = agent();
    let _running = start(agent.keeps_idempotency_keys(), &listener);
    let (_, hello) = Core::greeted(&listener, CoreLimits::default());
    assert_eq!(
        (hello.agent_id.as_str(), hello.agent_version.as_str()),
        ("dev.test.agent", "1.2.3")
    );
    for capability in ["tools", "streaming", "cancellation", "idempotency"] {
        assert!(hello.capabilities.iter().any(|name| name == capability), "{capability}");
    }
    assert_eq!(hello.sdk.expect("named").name, "wharf-sdk");
    assert_eq!(hello.token.expose(), TOKEN);
}

#[test]
fn r068_tools_are_registered_with_schemas_from_their_types() {
    let (core, ..) = joined();
    let added = core.seen.iter().find_map(|event| match event {
        CoreEvent::ToolsRegistered { added, .. } => Some(added.clone()),
        _ => None,
    });
    let added = added.expect("registered");
    let double = added.iter().find(|tool| tool.name == "double").expect("registered");
    assert_eq!(double.tool_id, "dev.test.agent/double");
    assert_eq!(double.description, "Doubles a number.");
    assert_eq!(double.side_effects, Some(false));
    assert_eq!(double.input_schema["required"], json!(["n"]));
    assert_eq!(double.output_schema.as_ref().expect("an output")["type"], "object");
    let show = added.iter().find(|tool| tool.name == "show").expect("registered");
    let said = ["streaming", "cancellation", "mock", "free"].map(str::to_owned).to_vec();
    assert_eq!((&show.capabilities, &show.tags), (&Some(said), &Some(vec!["text".to_owned()])));
    let sleep = added.iter().find(|tool| tool.name == "sleep").expect("registered");
    assert_eq!((sleep.side_effects, &sleep.output_schema), (None, &None));
}

#[test]
fn r015_the_same_agent_serves_over_loopback_tcp() {
    let listener = Listener::tcp();
    let (agent, _) = agent();
    let _running = start(agent, &listener);
    let mut core = Core::joined(&listener, CoreLimits::default());
    core.call("c", "double", &json!({"n": 21}));
    assert_eq!(core.output("c"), json!({"n": 42}));
}

#[test]
fn r088_input_that_does_not_fit_never_reaches_the_handler() {
    let (mut core, shared, _running) = joined();
    core.call("wrong", "gate", &json!({"n": "canary"}));
    let fault = core.failure("wrong");
    assert!(fault.is(Code::ToolInvalidInput));
    assert_eq!(fault.details["path"], "/n");
    assert_eq!(fault.details["executed"], "no");
    assert!(!fault.message.contains("canary"));
    assert_eq!(shared.executed.load(Ordering::SeqCst), 0);
}

#[test]
fn r126_a_panic_becomes_an_internal_error_with_safe_text() {
    let (mut core, ..) = joined();
    core.call("p", "panic", &json!({}));
    let fault = core.failure("p");
    assert!(fault.is(Code::ToolInternal));
    assert!(!format!("{fault:?}").contains("canary"));
    core.call("after", "double", &json!({"n": 1}));
    assert_eq!(core.output("after"), json!({"n": 2}), "the agent lives on");
    core.assert_flawless();
}

#[test]
fn r117_every_way_a_call_can_end_gives_one_result() {
    let (mut core, ..) = joined();
    let ways = [
        ("double", json!({"n": 1})),
        ("double", json!({})),
        ("panic", json!({})),
        ("fail", json!({})),
        ("big", json!({"n": 5_000_000})),
    ];
    for (n, (name, input)) in ways.iter().enumerate() {
        core.call(&format!("c{n}"), name, input);
    }
    for n in 0..ways.len() {
        core.end(&format!("c{n}"));
    }
    // Everything sent before a pong has arrived with it, so a second result would be here.
    let ping = core.session.ping(core.now()).expect("live");
    core.wait("pong", |event| match event {
        CoreEvent::Pong { ping_id, .. } => (*ping_id == ping).then_some(()),
        _ => None,
    });
    let ends = core.seen.iter().filter(|event| matches!(event, CoreEvent::CallEnded { .. }));
    assert_eq!(ends.count(), ways.len());
    core.assert_flawless();
}

#[test]
fn r121_a_handlers_own_error_reaches_the_caller() {
    let (mut core, ..) = joined();
    core.call("f", "fail", &json!({}));
    let fault = core.failure("f");
    assert!(fault.is(Code::ToolFailed));
    assert_eq!(fault.message, "There is no more ink.");
}

#[test]
fn r012_a_result_that_fits_no_frame_becomes_a_failure() {
    let (mut core, ..) = joined();
    core.call("b", "big", &json!({"n": 5_000_000}));
    assert!(core.failure("b").is(Code::ToolOutputTooLarge));
    core.call("after", "double", &json!({"n": 1}));
    core.output("after");
}

#[test]
fn r017_calls_may_be_answered_in_reverse_order() {
    let (mut core, shared, _running) = joined();
    core.call("first", "gate", &json!({"n": 1}));
    until(|| shared.executed.load(Ordering::SeqCst) == 1);
    core.call("second", "double", &json!({"n": 2}));
    assert_eq!(core.output("second"), json!({"n": 4}));
    assert!(core.session.open_calls().any(|id| id.as_str() == "first"));
    shared.gate.add_permits(1);
    assert_eq!(core.output("first"), json!({"n": 1}));
    core.assert_flawless();
}

#[test]
fn r094_a_flood_of_calls_is_answered_busy_and_survived() {
    const FLOOD: usize = 500;
    const ROOM: usize = 8;
    let listener = Listener::unix();
    let (agent, shared) = agent();
    let _running = start(agent.calls_max(ROOM), &listener);
    let limits = CoreLimits { calls_open_max: 10_000, ..CoreLimits::default() };
    let mut core = Core::joined(&listener, limits);
    for n in 0..FLOOD {
        core.call(&format!("c{n}"), "gate", &json!({"n": 1}));
    }
    for n in ROOM..FLOOD {
        let fault = core.failure(&format!("c{n}"));
        assert!(fault.is(Code::ToolBusy) && fault.retryable);
    }
    shared.gate.add_permits(ROOM);
    for n in 0..ROOM {
        core.output(&format!("c{n}"));
    }
    assert_eq!(shared.executed.load(Ordering::SeqCst), ROOM);
    core.call("after", "double", &json!({"n": 1}));
    core.output("after");
    core.assert_flawless();
}

#[test]
fn r162_without_a_grant_questions_and_notices_are_refused() {
    let listener = Listener::unix();
    let (agent, _) = agent();
    let _running = start(agent, &listener);
    let (mut core, _) = Core::greeted(&listener, CoreLimits::default());
    core.session.accept(core.now(), Additions::default()).expect("a hello waits");
    core.wait("tools", |event| matches!(event, CoreEvent::ToolsRegistered { .. }).then_some(()));
    core.call("a", "ask", &json!({}));
    assert!(core.failure("a").is(Code::PermissionDenied));
}
