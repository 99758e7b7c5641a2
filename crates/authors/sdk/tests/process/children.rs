//! Tools that call other tools through the core, and tools that want an approval.

use serde_json::json;
use wharf_protocol::agent::{
    Additions, CallOutcome, CancelCall, CoreEvent, CoreLimits, InvokeReceived,
};
use wharf_vocab::{Code, Fault};
use wharf_wire::agent_v1::{CallContext, Chunk, InvokeId, TextChannel};

use crate::core::{Core, Listener, id};
use crate::tools::{agent, joined, start};

fn invoke(core: &mut Core) -> InvokeReceived {
    core.wait("invoke", |event| match event {
        CoreEvent::Invoke(received) => Some((**received).clone()),
        _ => None,
    })
}

fn taken_back(core: &mut Core, wanted: &InvokeId) {
    core.wait("an invoke that is taken back", |event| match event {
        CoreEvent::InvokeCanceled { invoke_id } => (invoke_id == wanted).then_some(()),
        _ => None,
    });
}

fn relay() -> serde_json::Value {
    json!({"tool": "dev.test.other/echo", "input": {"a": 1}})
}

#[test]
fn r159_a_tool_calls_another_one_and_sees_its_progress_and_output() {
    let (mut core, ..) = joined();
    core.call("c-1", "relay", &relay());
    let received = invoke(&mut core);
    assert_eq!(received.parent_call_id, id("c-1"));
    assert_eq!(received.tool_id, "dev.test.other/echo");
    assert_eq!(received.input, json!({"a": 1}).as_object().expect("an object").clone());
    assert_eq!(received.timeout_ms, Some(7_000));
    assert_eq!(received.idempotency_key.as_deref(), Some("once"));
    assert_eq!(received.echo.request_id.as_deref(), Some("request-c-1"));
    let chunk = Chunk::Text { channel: TextChannel::Stdout, text: "one".to_owned() };
    core.session.invoke_chunk(core.now(), &received.invoke_id, chunk.clone()).expect("open");
    let output = json!({"b": 2}).as_object().expect("an object").clone();
    let succeeded = CallOutcome::Succeeded(output);
    core.session.invoke_result(core.now(), &received.invoke_id, succeeded).expect("open");
    assert_eq!(core.output("c-1"), json!({"output": {"b": 2}}));
    assert_eq!(core.chunks("c-1"), [chunk]);
    core.assert_flawless();
}

#[test]
fn r159_the_failure_of_a_child_is_passed_on_with_its_code() {
    let (mut core, ..) = joined();
    core.call("c-1", "relay", &relay());
    let received = invoke(&mut core);
    let fault = Fault::new(Code::PermissionDenied, "Not this one.");
    let failed = CallOutcome::Failed(fault);
    core.session.invoke_result(core.now(), &received.invoke_id, failed).expect("open");
    assert!(core.failure("c-1").is(Code::PermissionDenied));
    core.assert_flawless();
}

#[test]
fn r159_a_call_that_nobody_waits_for_is_taken_back() {
    let (mut core, ..) = joined();
    // Dropped by the tool itself.
    core.call("c-1", "hasty", &relay());
    let received = invoke(&mut core);
    taken_back(&mut core, &received.invoke_id);
    let canceled = CallOutcome::Canceled(Fault::new(Code::ToolCanceled, "Called off."));
    core.session.invoke_result(core.now(), &received.invoke_id, canceled.clone()).expect("open");
    // Dropped since the call itself is canceled.
    core.call("c-2", "relay", &relay());
    let received = core.wait("second invoke", |event| match event {
        CoreEvent::Invoke(received) if received.parent_call_id == id("c-2") => {
            Some((**received).clone())
        }
        _ => None,
    });
    core.session.cancel(core.now(), &id("c-2"), CancelCall::default()).expect("open");
    assert!(matches!(core.end("c-2").outcome, CallOutcome::Canceled(_)));
    // The answer comes when the call has long ended, which is nobody's mistake.
    core.session.invoke_result(core.now(), &received.invoke_id, canceled).expect("open");
    core.call("c-3", "double", &json!({"n": 2}));
    assert_eq!(core.output("c-3"), json!({"n": 4}));
    core.assert_flawless();
}

#[test]
fn r087_a_tool_asks_for_an_approval_by_failing_and_acts_once_it_has_it() {
    let (mut core, ..) = joined();
    core.call("c-1", "careful", &json!({"n": 3}));
    let fault = core.failure("c-1");
    assert!(fault.is(Code::ToolDirectiveRequired), "{fault}");
    assert_eq!(fault.details["proposal"], json!({"n": 3}));
    assert_eq!(fault.details["title"], "Act 3 times");
    assert_eq!(fault.details["executed"], "no");
    // A run that started the call is no approval.
    core.call_with("c-2", "careful", &json!({"n": 3}), |call| {
        call.causation_id = Some("some-run".to_owned());
    });
    assert!(core.failure("c-2").is(Code::ToolDirectiveRequired));
    core.call_with("c-3", "careful", &json!({"n": 3}), |call| {
        let approval = Some("ask-7".to_owned());
        call.causation_id.clone_from(&approval);
        call.context = Some(CallContext { approval, ..CallContext::default() });
    });
    assert_eq!(core.output("c-3"), json!({"approval": "ask-7"}));
    core.assert_flawless();
}

#[test]
fn r087_the_same_key_acts_after_the_approval_though_it_failed_before() {
    let listener = Listener::unix();
    let _running = start(agent().0.keeps_idempotency_keys(), &listener);
    let mut core = Core::joined(&listener, CoreLimits::default());
    let keyed = |approval: Option<&str>| {
        let approval = approval.map(str::to_owned);
        move |call: &mut wharf_protocol::agent::CallRequest| {
            call.idempotency_key = Some("k".to_owned());
            call.context = Some(CallContext { approval, ..CallContext::default() });
        }
    };
    core.call_with("c-1", "careful", &json!({"n": 1}), keyed(None));
    assert!(core.failure("c-1").is(Code::ToolDirectiveRequired));
    core.call_with("c-2", "careful", &json!({"n": 1}), keyed(Some("ask-1")));
    assert_eq!(core.output("c-2"), json!({"approval": "ask-1"}));
}

#[test]
fn r160_without_the_cores_grant_nothing_is_called() {
    let listener = Listener::unix();
    let (agent, _) = agent();
    let _running = start(agent, &listener);
    let (mut core, _) = Core::greeted(&listener, CoreLimits::default());
    let granted = Additions { invoke: false, ..Additions::ALL };
    core.session.accept(core.now(), granted).expect("a hello waits");
    core.wait("tools", |event| matches!(event, CoreEvent::ToolsRegistered { .. }).then_some(()));
    core.call("c-1", "relay", &relay());
    assert!(core.failure("c-1").is(Code::PermissionDenied));
    core.call("c-2", "double", &json!({"n": 1}));
    assert_eq!(core.output("c-2"), json!({"n": 2}));
    assert_eq!(core.session.open_calls().count(), 0);
    core.assert_flawless();
}
