//! Goodbyes, drains and disconnects.

use serde_json::json;
use wharf_protocol::agent::{AgentClose, AgentEvent, CallOutcome, CoreClose, CoreEvent, SendError};
use wharf_protocol::{Closed, Session as _};
use wharf_vocab::Object;
use wharf_wire::agent_v1::CoreGoodbye;

use super::pair::Pair;
use super::stage::{AgentStage, CoreStage, call_id, closed, ends, request};

fn goodbye(drain_ms: Option<u64>) -> CoreGoodbye {
    CoreGoodbye { reason: "core.stopping".to_owned(), retry_after_ms: Some(1_000), drain_ms }
}

fn succeeded() -> CallOutcome {
    CallOutcome::Succeeded(Object::new())
}

#[test]
fn r063_an_orderly_end_is_announced() {
    let mut stage = CoreStage::calling("c-1");
    stage.session.goodbye(stage.moment(), goodbye(None)).expect("live");
    let answer = stage.answer();
    assert_eq!(answer["type"], "core.goodbye");
    assert_eq!(answer["payload"], json!({"reason": "core.stopping", "retry_after_ms": 1_000}));
    let events = stage.events();
    assert_eq!(closed(&events), Some(CoreClose::Goodbye));
    assert_eq!(ends(&events).len(), 1);
    assert_eq!(stage.session.goodbye(stage.moment(), goodbye(None)), Err(SendError::NotLive));

    let mut agent = AgentStage::ready();
    agent.say("core.goodbye", &json!({"reason": "core.stopping", "retry_after_ms": 1_000}));
    let events = agent.events();
    assert!(matches!(&events[0], AgentEvent::Goodbye(it) if it.retry_after_ms == Some(1_000)));
}

#[test]
fn r064_an_agent_ends_at_a_goodbye_and_at_the_end_of_the_connection() {
    let mut stage = AgentStage::working("c-1");
    stage.say("core.goodbye", &json!({"reason": "core.stopping"}));
    let events = stage.events();
    assert_eq!(events.last(), Some(&AgentEvent::Closed(AgentClose::Goodbye)));
    assert_eq!(stage.answer()["payload"]["status"], "canceled");

    let mut stage = AgentStage::working("c-1");
    stage.session.end(stage.moment(), Closed::ended());
    let events = stage.events();
    let [AgentEvent::Closed(why)] = &events[..] else { panic!("{events:?}") };
    assert!(why.is_orderly());
    assert_eq!(stage.session.open_calls().count(), 0);
    let late = stage.session.finish(stage.moment(), &call_id("c-1"), succeeded().into());
    assert_eq!(late, Err(SendError::NotLive));
}

#[test]
fn r117_shutting_down_gives_every_open_call_its_result() {
    let mut stage = AgentStage::ready();
    for n in 0..5 {
        stage.call(&format!("c-{n}"));
    }
    stage.session.goodbye(stage.moment(), "stopping", 0).expect("live");
    let written = stage.written();
    assert_eq!(written[0]["type"], "agent.goodbye");
    let results: Vec<_> = written[1..].iter().map(|m| m["payload"]["call_id"].clone()).collect();
    assert_eq!(results, ["c-0", "c-1", "c-2", "c-3", "c-4"]);
    assert!(stage.session.is_closed());
}

#[test]
fn r164_a_drain_lets_calls_finish_and_takes_no_new_ones() {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    pair.core.goodbye(pair.moment(), goodbye(Some(5_000))).expect("live");
    let refused = pair.core.call(pair.moment(), request("c-2")).expect_err("draining");
    assert_eq!(refused.code.as_str(), "tool.unavailable");
    pair.pump();
    pair.pass(2_000);
    assert!(pair.core.is_live() && pair.agent.is_live());
    pair.agent.finish(pair.moment(), &call_id("c-1"), succeeded().into()).expect("open");
    pair.pump();
    let events = pair.core_events();
    assert_eq!(ends(&events)[0].1.outcome, succeeded());
    assert_eq!(closed(&events), Some(CoreClose::Goodbye));
    let events = pair.agent_events();
    assert_eq!(events.last(), Some(&AgentEvent::Closed(AgentClose::Goodbye)));
}

#[test]
fn r164_what_does_not_finish_in_a_drain_is_canceled() {
    let mut stage = CoreStage::calling("c-1");
    stage.session.goodbye(stage.moment(), goodbye(Some(3_000))).expect("live");
    stage.written();
    stage.pass(3_000);
    assert_eq!(stage.answer()["type"], "core.tool.cancel");
    assert_eq!(stage.session.deadline(), Some(8_000));
    stage.pass(5_000);
    let events = stage.events();
    assert!(matches!(&ends(&events)[..], [(_, end)]
        if matches!(end.outcome, CallOutcome::Canceled(_))));
    assert_eq!(closed(&events), Some(CoreClose::Goodbye));

    let mut agent = AgentStage::working("c-1");
    agent.say("core.goodbye", &json!({"reason": "x", "drain_ms": 3_000}));
    agent.pass(2_999);
    assert!(agent.session.is_live());
    agent.pass(1);
    assert_eq!(agent.answer()["payload"]["error"]["code"], "tool.canceled");
    assert!(agent.session.is_closed());
}

#[test]
fn r164_an_agent_may_say_goodbye_first() {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    pair.agent.goodbye(pair.moment(), "idle", 10_000).expect("live");
    pair.pump();
    assert_eq!(pair.core_events(), [CoreEvent::Goodbye { reason: "idle".to_owned() }]);
    assert!(!pair.core.takes_calls());
    pair.agent.finish(pair.moment(), &call_id("c-1"), succeeded().into()).expect("open");
    pair.pump();
    let events = pair.core_events();
    assert_eq!(ends(&events)[0].1.outcome, succeeded());
    assert_eq!(closed(&events), Some(CoreClose::AgentGoodbye));
    assert!(pair.agent.is_closed());
}

#[test]
fn r164_a_call_that_crosses_an_agents_goodbye_is_refused_and_not_lost() {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    pair.core.call(pair.moment(), request("c-2")).expect("taken");
    pair.agent.goodbye(pair.moment(), "idle", 10_000).expect("live");
    pair.pump();
    let ends = ends(&pair.core_events());
    assert!(
        matches!(&ends[..], [(id, end)] if id == "c-2" && matches!(&end.outcome,
            CallOutcome::Failed(fault) if fault.code.as_str() == "tool.unavailable"
                && fault.details["executed"] == "no")),
        "{ends:?}"
    );
}

#[test]
fn r164_an_agent_that_says_goodbye_and_stays_is_not_waited_for_for_ever() {
    let mut stage = CoreStage::calling("c-1");
    stage.say("agent.goodbye", &json!({"reason": "idle"}));
    for _ in 0..6 {
        stage.heartbeat("ok");
        stage.pass(5_000);
    }
    assert_eq!(stage.answer()["type"], "core.tool.cancel");
    stage.heartbeat("ok");
    stage.pass(5_000);
    let events = stage.events();
    assert_eq!(ends(&events).len(), 1);
    assert_eq!(closed(&events), Some(CoreClose::AgentGoodbye));
    assert_eq!(stage.answer()["payload"]["reason"], "agent.goodbye");
}

#[test]
fn an_agent_that_leaves_after_its_goodbye_leaves_in_order() {
    let mut stage = CoreStage::ready();
    stage.say("agent.goodbye", &json!({"reason": "idle"}));
    assert_eq!(closed(&stage.events()), Some(CoreClose::AgentGoodbye));

    let mut stage = CoreStage::calling("c-1");
    stage.say("agent.goodbye", &json!({"reason": "idle"}));
    stage.session.end(stage.moment(), Closed::ended());
    let events = stage.events();
    let disconnected = CoreClose::Disconnected { inside_frame: false };
    assert_eq!(closed(&events), Some(disconnected), "a call was left behind");
}
