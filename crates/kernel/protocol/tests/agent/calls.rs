//! Calls: sending, taking, limits, timeouts, loss.

use serde_json::json;
use wharf_protocol::agent::{AgentEvent, CallOutcome, CoreClose, CoreEvent, CoreLimits, SendError};
use wharf_protocol::{Closed, Session as _};
use wharf_vocab::Mode;
use wharf_wire::agent_v1::CallContext;

use super::pair::Pair;
use super::stage::{
    AgentStage, CoreStage, agent_config, call_id, closed, core_config, ends, object, request,
};

#[test]
fn r085_a_call_has_a_fresh_id_a_registered_tool_and_an_object() {
    let mut stage = CoreStage::ready();
    let mut call = request("c-1");
    call.input = object(json!({"name": "Ada"}));
    call.context = Some(CallContext { mode: Some(Mode::Mock), ..CallContext::default() });
    stage.session.call(stage.moment(), call).expect("taken");
    let sent = stage.answer();
    assert_eq!(sent["payload"]["input"], json!({"name": "Ada"}));
    assert_eq!(sent["payload"]["context"], json!({"mode": "mock"}));
    let again = stage.session.call(stage.moment(), request("c-1")).expect_err("open");
    assert_eq!(again.code.as_str(), "tool.duplicate_call");
    assert_eq!(again.details["executed"], "no");
    stage.succeed("c-1");
    let again = stage.session.call(stage.moment(), request("c-1")).expect_err("over");
    assert_eq!(again.code.as_str(), "tool.duplicate_call");
    assert!(stage.written().is_empty(), "nothing was sent");
}

#[test]
fn r088_an_input_that_is_no_object_never_reaches_a_handler() {
    let mut stage = AgentStage::ready();
    for (n, input) in [json!([]), json!("x"), json!(7), json!(null)].into_iter().enumerate() {
        let call = json!({"call_id": format!("c-{n}"), "tool_id": "dev.example.hello/say", "input": input});
        stage.say("core.tool.call", &call);
        let answer = stage.answer();
        assert_eq!(answer["type"], "agent.tool.result");
        assert_eq!(answer["payload"]["status"], "failed");
        assert_eq!(answer["payload"]["error"]["code"], "tool.invalid_input");
    }
    assert_eq!(stage.events(), []);
}

#[test]
fn r091_a_second_call_under_an_open_id_is_not_executed() {
    let mut stage = AgentStage::working("c-1");
    let id = stage.call("c-1");
    assert_eq!(stage.events(), []);
    let answer = stage.answer();
    assert_eq!(answer["type"], "agent.error");
    assert_eq!(answer["in_reply_to"], *id);
    assert_eq!(answer["error"]["code"], "tool.duplicate_call");
    let outcome = CallOutcome::Succeeded(object(json!({"n": 1})));
    stage.session.finish(stage.moment(), &call_id("c-1"), outcome.into()).expect("open");
    assert_eq!(stage.answer()["payload"]["output"], json!({"n": 1}));
}

#[test]
fn r092_a_second_call_under_a_finished_id_is_not_executed() {
    let mut stage = AgentStage::working("c-1");
    let outcome = CallOutcome::Succeeded(object(json!({})));
    stage.session.finish(stage.moment(), &call_id("c-1"), outcome.into()).expect("open");
    stage.written();
    stage.call("c-1");
    assert_eq!(stage.events(), []);
    assert_eq!(stage.answer()["error"]["code"], "tool.duplicate_call");
}

#[test]
fn r093_a_core_never_has_more_calls_on_the_wire_than_allowed() {
    let mut stage = CoreStage::ready();
    for n in 0..256 {
        stage.call(&format!("c-{n}"));
    }
    let refused = stage.session.call(stage.moment(), request("c-256")).expect_err("full");
    assert_eq!(refused.code.as_str(), "tool.busy");
    assert!(refused.retryable);
    assert_eq!(stage.written().len(), 256);
    stage.succeed("c-17");
    stage.call("c-256");
    assert_eq!(stage.session.open_calls().count(), 256);
}

#[test]
fn r094_an_agent_keeps_to_its_own_limit_and_survives_a_flood() {
    let mut config = agent_config();
    config.limits.calls_open_max = 3;
    let mut stage = AgentStage::ready_with(config);
    for n in 0..10_000 {
        stage.call(&format!("c-{n}"));
        if n >= 3 {
            let answer = stage.answer();
            assert_eq!(answer["payload"]["error"]["code"], "tool.busy");
            assert_eq!(answer["payload"]["error"]["retryable"], true);
        }
    }
    assert_eq!(stage.events().len(), 3);
    assert_eq!(stage.session.open_calls().count(), 3);
}

#[test]
fn r095_an_input_that_fits_no_frame_is_not_sent() {
    let mut stage = CoreStage::ready();
    let mut call = request("c-1");
    call.input = object(json!({"x": "y".repeat(4 * 1024 * 1024)}));
    let refused = stage.session.call(stage.moment(), call).expect_err("too large");
    assert_eq!(refused.code.as_str(), "tool.input_too_large");
    assert!(stage.written().is_empty());
    assert_eq!(stage.session.open_calls().count(), 0);
}

#[test]
fn the_timeout_is_sent_along() {
    let mut stage = CoreStage::ready();
    let mut call = request("c-1");
    call.timeout_ms = Some(60_000);
    stage.session.call(stage.moment(), call).expect("taken");
    assert_eq!(stage.answer()["payload"]["timeout_ms"], 60_000);
}

#[test]
fn r097_a_call_that_takes_too_long_is_canceled_and_its_late_result_is_no_fault() {
    let mut stage = CoreStage::ready();
    let mut call = request("c-1");
    call.timeout_ms = Some(5_000);
    stage.session.call(stage.moment(), call).expect("taken");
    stage.written();
    assert_eq!(stage.session.deadline(), Some(5_000));
    stage.pass(4_999);
    assert_eq!(stage.events(), []);
    stage.pass(1);
    assert_eq!(stage.failure(), "tool.timeout");
    let cancel = stage.answer();
    assert_eq!(cancel["type"], "core.tool.cancel");
    assert_eq!(cancel["payload"]["call_id"], "c-1");

    stage.stream("c-1", 1, "late");
    let late = json!({"call_id": "c-1", "status": "succeeded", "metrics": {"cost_micro": 7}});
    stage.say_of_call("agent.tool.result", &late);
    let call_id = call_id("c-1");
    assert_eq!(stage.events(), [CoreEvent::LateResult { call_id, cost_micro: 7 }]);
    stage.succeed("c-1");
    assert_eq!(stage.breaches().len(), 1, "but a second one is");
}

#[test]
fn r098_an_agent_may_be_stricter_than_the_core() {
    for (timeout_ms, due) in [(json!(60_000), 1_000), (json!(400), 400), (json!(null), 1_000)] {
        let mut config = agent_config();
        config.limits.call_ms_max = Some(1_000);
        let mut stage = AgentStage::ready_with(config);
        let call = json!({"call_id": "c-1", "tool_id": "dev.example.hello/say", "input": {},
            "timeout_ms": timeout_ms});
        stage.say("core.tool.call", &call);
        stage.events();
        stage.pass(due - 1);
        assert_eq!(stage.events(), []);
        stage.pass(1);
        assert_eq!(stage.events(), [AgentEvent::TimedOut { call_id: call_id("c-1") }]);
        let answer = stage.answer();
        assert_eq!(answer["payload"]["status"], "failed");
        assert_eq!(answer["payload"]["error"]["code"], "tool.timeout");
        let late = CallOutcome::Succeeded(object(json!({})));
        let finished = stage.session.finish(stage.moment(), &call_id("c-1"), late.into());
        assert_eq!(finished, Err(SendError::NotOpen), "r117: one result only");
    }
}

#[test]
fn r104_calls_that_are_lost_with_their_agent_end_exactly_once() {
    let mut stage = CoreStage::calling("c-1");
    stage.call("c-2");
    stage.succeed("c-2");
    stage.session.end(stage.moment(), Closed::ended());
    stage.session.end(stage.moment(), Closed::ended());
    let events = stage.events();
    let ends = ends(&events);
    assert_eq!(ends.len(), 2);
    let CallOutcome::Failed(fault) = &ends[1].1.outcome else { panic!("{ends:?}") };
    assert_eq!(fault.code.as_str(), "tool.agent_lost");
    assert!(fault.retryable, "r143");
    assert_eq!(fault.details["executed"], "maybe");
    assert_eq!(closed(&events), Some(CoreClose::Disconnected { inside_frame: false }));
}

#[test]
fn a_call_that_the_agent_could_not_take_ends_at_once() {
    let mut stage = CoreStage::ready();
    stage.call("c-1");
    let id = stage.answer()["id"].clone();
    let error = json!({"in_reply_to": id,
        "error": {"code": "protocol.invalid_envelope", "message": "No."}});
    stage.say_with("agent.error", &json!({}), &error);
    let events = stage.events();
    let ends = ends(&events);
    assert!(
        matches!(&ends[..], [(_, end)] if matches!(&end.outcome,
        CallOutcome::Failed(fault) if fault.details["executed"] == "no")),
        "{ends:?}"
    );
    assert!(matches!(events[1], CoreEvent::PeerError { .. }));
}

#[test]
fn a_core_does_not_call_an_agent_that_does_not_read() {
    let limits = CoreLimits { outbox_bytes_max: 10_000, ..CoreLimits::default() };
    let mut config = core_config();
    config.limits = limits;
    let mut stage = CoreStage::ready_with(config);
    let mut taken = 0;
    let refused = loop {
        let mut call = request(&format!("c-{taken}"));
        call.input = object(json!({"x": "y".repeat(1_000)}));
        match stage.session.call(stage.moment(), call) {
            Ok(()) => taken += 1,
            Err(fault) => break fault,
        }
    };
    assert_eq!(refused.code.as_str(), "tool.busy");
    assert!((5..15).contains(&taken), "{taken}");
    stage.written();
    stage.call("c-x");
}

#[test]
fn a_peer_that_provokes_answers_and_does_not_read_them_is_left() {
    let mut config = core_config();
    config.limits.outbox_bytes_max = 10_000;
    let mut core = CoreStage::live_with(config);
    let mut config = agent_config();
    config.limits.outbox_bytes_max = 10_000;
    let mut agent = AgentStage::live_with(config);
    for n in 0..1_000 {
        core.say("agent.tools.register", &json!({"tools": []}));
        agent
            .say("core.tool.call", &json!({"call_id": n.to_string(), "tool_id": "x", "input": {}}));
    }
    assert_eq!(closed(&core.events()), Some(CoreClose::NotReading));
    assert!(agent.session.is_closed());
    assert!(core.session.queued_bytes() < 30_000 && agent.session.queued_bytes() < 30_000);
}

#[test]
fn a_whole_call_passes_between_both_ends() {
    let mut pair = Pair::ready();
    let mut call = request("c-1");
    call.input = object(json!({"name": "Ada"}));
    call.idempotency_key = Some("k-1".to_owned());
    pair.core.call(pair.moment(), call).expect("taken");
    pair.pump();
    let events = pair.agent_events();
    let [AgentEvent::Call(received)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(received.input, object(json!({"name": "Ada"})));
    assert_eq!(received.idempotency_key.as_deref(), Some("k-1"));
    pair.pass(1_500);
    let outcome = CallOutcome::Succeeded(object(json!({"text": "Hello, Ada"})));
    let id = received.call_id.clone();
    pair.agent.finish(pair.moment(), &id, outcome.clone().into()).expect("open");
    pair.pump();
    let (_, end) = ends(&pair.core_events()).remove(0);
    assert_eq!(end.outcome, outcome);
    assert_eq!(end.metrics["duration_ms"], 1_500);
}
