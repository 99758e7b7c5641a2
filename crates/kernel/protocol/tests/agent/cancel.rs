//! Canceling calls.

use proptest::prelude::*;
use serde_json::json;
use wharf_protocol::Session as _;
use wharf_protocol::agent::{AgentEvent, Breach, CallOutcome, CancelCall, CoreEvent, SendError};
use wharf_vocab::{Code, Fault, Object};

use super::pair::Pair;
use super::stage::{AgentStage, CoreStage, breaches, call_id, ends, request};

fn canceled() -> CallOutcome {
    CallOutcome::Canceled(Fault::new(Code::ToolCanceled, "The call was canceled."))
}

fn cancel(reason: &str, deadline_ms: u64) -> CancelCall {
    CancelCall { reason: Some(reason.to_owned()), deadline_ms: Some(deadline_ms) }
}

#[test]
fn r129_a_cancel_names_the_call_the_reason_and_the_deadline() {
    let mut stage = CoreStage::calling("c-1");
    stage.session.cancel(stage.moment(), &call_id("c-1"), cancel("why", 700)).expect("open");
    let message = stage.answer();
    assert_eq!(message["type"], "core.tool.cancel");
    assert_eq!(message["request_id"], "r-1");
    let expected = json!({"call_id": "c-1", "reason": "why", "deadline_ms": 700});
    assert_eq!(message["payload"], expected);
    let unknown = stage.session.cancel(stage.moment(), &call_id("c-9"), CancelCall::default());
    assert_eq!(unknown, Err(SendError::NotOpen));
}

#[test]
fn a_call_that_stops_in_time_is_canceled() {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    pair.agent_events();
    pair.core.cancel(pair.moment(), &call_id("c-1"), cancel("why", 5_000)).expect("open");
    pair.pump();
    let events = pair.agent_events();
    assert!(matches!(&events[..], [AgentEvent::Cancel { deadline_ms: Some(5_000), .. }]));
    pair.pass(1_000);
    pair.agent.finish(pair.moment(), &call_id("c-1"), canceled().into()).expect("open");
    pair.pump();
    let ends = ends(&pair.core_events());
    assert!(matches!(&ends[..], [(_, end)]
        if matches!(end.outcome, CallOutcome::Canceled(_)) && !end.unresponsive));
}

/// What the owners of both ends do around the completion of a call.
#[derive(Debug, Clone, Copy)]
enum Step {
    Cancel,
    Succeed,
    GiveUp,
    Deliver,
    Wait,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Cancel),
        Just(Step::Succeed),
        Just(Step::GiveUp),
        Just(Step::Deliver),
        Just(Step::Wait),
    ];
    prop::collection::vec(step, 1..24)
}

/// Takes the steps; returns what the core saw and what the agent reported.
fn play(steps: &[Step], deadline_ms: u64) -> (Vec<CoreEvent>, Option<CallOutcome>) {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    let id = call_id("c-1");
    let mut reported = None;
    for step in steps {
        let now = pair.moment();
        let outcome = match step {
            Step::Cancel => {
                // Canceling what is over is refused, and that is all.
                let _ = pair.core.cancel(now, &id, cancel("why", deadline_ms));
                continue;
            }
            Step::Deliver => {
                pair.pump();
                continue;
            }
            Step::Wait => {
                pair.pass(500);
                continue;
            }
            Step::Succeed => CallOutcome::Succeeded(Object::new()),
            Step::GiveUp => canceled(),
        };
        if pair.agent.finish(now, &id, outcome.clone().into()).is_ok() {
            assert_eq!(reported, None, "one result only");
            reported = Some(outcome);
        }
    }
    pair.pump();
    pair.pass(10_000);
    (pair.core_events(), reported)
}

proptest! {
    /// However cancel and completion cross, the core sees one end, and it is the one that the
    /// agent or the deadline has brought.
    #[test]
    fn r131_a_call_never_yields_two_ends(steps in steps(), deadline_ms in 0_u64..3_000) {
        let (events, reported) = play(&steps, deadline_ms);
        prop_assert_eq!(breaches(&events), vec![]);
        let ends = ends(&events);
        prop_assert!(ends.len() <= 1, "{:?}", ends);
        match (ends.first(), reported) {
            (Some((_, end)), _) if end.unresponsive => {}
            (Some((_, end)), Some(reported)) => prop_assert_eq!(&end.outcome, &reported),
            (Some(_), None) => prop_assert!(false, "an end from nowhere: {:?}", events),
            (None, reported) => prop_assert_eq!(reported, None),
        }
    }
}

#[test]
fn r132_a_result_that_crosses_a_cancel_stands_without_any_error() {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    let now = pair.moment();
    let done = CallOutcome::Succeeded(Object::new());
    pair.agent.finish(now, &call_id("c-1"), done.clone().into()).expect("open");
    pair.core.cancel(now, &call_id("c-1"), CancelCall::default()).expect("open");
    pair.agent_events();
    pair.pump();
    pair.pass(10_000);
    let events = pair.core_events();
    assert_eq!(ends(&events)[0].1.outcome, done);
    assert_eq!(breaches(&events), []);
    assert_eq!(pair.agent_events(), []);
}

#[test]
fn r133_canceling_what_is_not_open_is_harmless() {
    let mut stage = AgentStage::working("c-1");
    let done = CallOutcome::Succeeded(Object::new());
    stage.session.finish(stage.moment(), &call_id("c-1"), done.into()).expect("open");
    stage.written();
    for id in ["c-1", "c-9"] {
        let cancel = stage.say("core.tool.cancel", &json!({"call_id": id}));
        let answer = stage.answer();
        assert_eq!(answer["type"], "agent.tool.cancel_ack");
        assert_eq!(answer["in_reply_to"], *cancel);
        assert_eq!(answer["payload"], json!({"call_id": id, "accepted": false}));
    }
    assert_eq!(stage.events(), []);
}

#[test]
fn r134_canceling_again_changes_nothing() {
    let mut core = CoreStage::calling("c-1");
    let (now, id) = (core.moment(), call_id("c-1"));
    core.session.cancel(now, &id, cancel("first", 1_000)).expect("open");
    core.session.cancel(now, &id, cancel("second", 9_000)).expect("open");
    assert_eq!(core.written().len(), 1);
    core.pass(1_000);
    assert!(matches!(core.end().1.outcome, CallOutcome::Canceled(_)), "the first deadline holds");

    let mut agent = AgentStage::working("c-1");
    for _ in 0..3 {
        agent.say("core.tool.cancel", &json!({"call_id": "c-1"}));
    }
    assert_eq!(agent.events().len(), 1);
    let acks = agent.written();
    assert_eq!(acks.len(), 3);
    assert!(acks.iter().all(|ack| ack["payload"]["accepted"] == true));
}

#[test]
fn r135_an_agent_that_ignores_a_cancel_does_not_hold_its_caller_up() {
    let mut stage = CoreStage::calling("c-1");
    stage.session.cancel(stage.moment(), &call_id("c-1"), CancelCall::default()).expect("open");
    assert_eq!(stage.session.deadline(), Some(5_000));
    stage.pass(5_000);
    let (_, end) = stage.end();
    let CallOutcome::Canceled(fault) = &end.outcome else { panic!("{end:?}") };
    assert_eq!(fault.code.as_str(), "tool.canceled");
    assert_eq!(fault.details["agent_unresponsive"], true);
    assert!(end.unresponsive, "the owner may kill it");
    stage.succeed("c-1");
    assert!(matches!(stage.events()[..], [CoreEvent::LateResult { .. }]));
}

#[test]
fn r137_the_acknowledgement_comes_before_the_result() {
    let mut stage = AgentStage::working("c-1");
    stage.say("core.tool.cancel", &json!({"call_id": "c-1"}));
    stage.session.finish(stage.moment(), &call_id("c-1"), canceled().into()).expect("open");
    let written = stage.written();
    assert_eq!(written[0]["type"], "agent.tool.cancel_ack");
    assert_eq!(written[0]["payload"], json!({"call_id": "c-1", "accepted": true}));
    assert_eq!(written[1]["type"], "agent.tool.result");

    let mut core = CoreStage::calling("c-1");
    let ack = json!({"call_id": "c-1", "accepted": true});
    core.say_of_call("agent.tool.cancel_ack", &ack);
    let call_id = call_id("c-1");
    assert_eq!(core.events(), [CoreEvent::CancelAcknowledged { call_id, accepted: true }]);
    core.say("agent.tool.cancel_ack", &json!({"call_id": "c-9", "accepted": true}));
    assert_eq!(core.breaches(), [Breach::UnknownCall]);
}

#[test]
fn r138_a_tool_that_declares_no_cancellation_is_still_asked_once() {
    let mut stage = CoreStage::calling("c-1");
    let (now, id) = (stage.moment(), call_id("c-1"));
    stage.session.cancel(now, &id, CancelCall::default()).expect("open");
    stage.session.cancel(now, &id, CancelCall::default()).expect("open");
    assert_eq!(stage.answer()["type"], "core.tool.cancel");
    assert_eq!(stage.events(), [], "no result is assumed");
    assert_eq!(stage.session.open_calls().count(), 1);
}
