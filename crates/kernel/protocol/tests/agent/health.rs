//! Heartbeats, pings and health.

use serde_json::json;
use wharf_protocol::Session as _;
use wharf_protocol::agent::{Breach, CoreClose, CoreEvent, Health};
use wharf_wire::agent_v1::HealthStatus;

use super::pair::Pair;
use super::stage::{AgentStage, CoreStage, agent_config, closed, ends, request, welcome};

fn health_changes(events: &[CoreEvent]) -> Vec<Health> {
    let change = |event: &CoreEvent| match event {
        CoreEvent::HealthChanged(health) => Some(*health),
        _ => None,
    };
    events.iter().filter_map(change).collect()
}

#[test]
fn r139_an_agent_beats_at_once_and_then_every_interval() {
    let mut stage = AgentStage::new(agent_config());
    stage.written();
    stage.say("core.welcome", &welcome());
    assert_eq!(stage.answer()["type"], "agent.heartbeat");
    stage.call("c-1");
    stage.written();
    let mut beats = Vec::new();
    while stage.now < 100_000 {
        stage.pass(100);
        beats.extend(stage.written().iter().map(|_| stage.now));
    }
    assert_eq!(beats, (1..=10).map(|n| n * 10_000).collect::<Vec<u64>>());
}

#[test]
fn r140_a_heartbeat_tells_the_truth() {
    let mut stage = AgentStage::ready();
    stage.call("c-1");
    stage.call("c-2");
    stage.session.set_status(HealthStatus::Degraded, None);
    stage.pass(10_000);
    let first = stage.answer()["payload"].clone();
    assert_eq!(
        first,
        json!({"session_id": "s-1", "uptime_ms": 10_000, "inflight_calls": 2,
            "status": "degraded"})
    );
    stage.pass(10_000);
    let second = stage.answer()["payload"].clone();
    assert!(second["uptime_ms"].as_u64() > first["uptime_ms"].as_u64());
}

#[test]
fn r141_silence_makes_an_agent_unhealthy_and_then_ends_the_session() {
    let mut stage = CoreStage::ready();
    stage.call("c-1");
    stage.pass(29_999);
    assert_eq!(stage.events(), []);
    assert_eq!(stage.session.deadline(), Some(30_000));
    stage.pass(1);
    assert_eq!(
        stage.events(),
        [
            CoreEvent::HeartbeatMissed { silent_ms: 30_000 },
            CoreEvent::HealthChanged(Health::Unhealthy),
        ]
    );
    let refused = stage.session.call(stage.moment(), request("c-2")).expect_err("unhealthy");
    assert_eq!(refused.code.as_str(), "tool.agent_unhealthy");
    assert!(!stage.session.takes_calls());

    stage.pass(29_999);
    assert_eq!(stage.events(), [], "what is under way goes on");
    stage.pass(1);
    let events = stage.events();
    assert_eq!(closed(&events), Some(CoreClose::HeartbeatsLost));
    assert_eq!(ends(&events).len(), 1);
}

#[test]
fn r142_the_next_heartbeat_heals() {
    let mut stage = CoreStage::ready();
    stage.pass(45_000);
    stage.events();
    stage.heartbeat("ok");
    assert_eq!(health_changes(&stage.events()), [Health::Healthy]);
    stage.call("c-1");
    stage.pass(29_999);
    assert_eq!(stage.session.health(), Health::Healthy, "silence is counted anew");
}

#[test]
fn r143_an_unhealthy_agent_may_still_finish_its_calls() {
    let mut stage = CoreStage::calling("c-1");
    stage.pass(30_000);
    stage.events();
    stage.succeed("c-1");
    assert_eq!(ends(&stage.events()).len(), 1);
    assert_eq!(stage.session.health(), Health::Unhealthy, "a result is no heartbeat");
}

#[test]
fn r144_heartbeats_of_another_session_do_not_count_as_life() {
    let mut stage = CoreStage::ready();
    stage.pass(29_000);
    let other = json!({"session_id": "s-2", "uptime_ms": 1, "inflight_calls": 0, "status": "ok"});
    stage.say("agent.heartbeat", &other);
    assert_eq!(stage.breaches(), [Breach::HeartbeatSession]);
    stage.pass(1_000);
    assert_eq!(health_changes(&stage.events()), [Health::Unhealthy]);
}

#[test]
fn r144_more_than_ten_heartbeats_in_an_interval_are_too_many() {
    let mut stage = CoreStage::ready();
    for _ in 0..10 {
        stage.pass(100);
        stage.heartbeat("ok");
    }
    assert_eq!(stage.breaches(), []);
    stage.heartbeat("ok");
    assert_eq!(stage.breaches(), [Breach::HeartbeatFlood]);
    stage.pass(10_000);
    stage.heartbeat("ok");
    assert_eq!(stage.breaches(), [], "the next interval begins");
}

#[test]
fn r145_an_agent_that_feels_unwell_is_believed() {
    let mut stage = CoreStage::ready();
    stage.heartbeat("degraded");
    assert_eq!(health_changes(&stage.events()), [Health::Degraded]);
    stage.call("c-1");
    stage.heartbeat("unhealthy");
    assert_eq!(health_changes(&stage.events()), [Health::Unhealthy]);
    let refused = stage.session.call(stage.moment(), request("c-2")).expect_err("unhealthy");
    assert_eq!(refused.code.as_str(), "tool.agent_unhealthy");
    stage.heartbeat("ok");
    assert_eq!(health_changes(&stage.events()), [Health::Healthy]);
    stage.call("c-2");
}

#[test]
fn r147_a_ping_gets_one_pong_or_counts_as_lost() {
    let mut pair = Pair::ready();
    let id = pair.core.ping(pair.moment()).expect("live");
    pair.pump();
    assert_eq!(pair.core_events(), [CoreEvent::Pong { ping_id: id, elapsed_ms: 0 }]);

    let mut stage = CoreStage::ready();
    let first = stage.session.ping(stage.moment()).expect("live");
    stage.say_with("agent.pong", &json!({}), &json!({"in_reply_to": first}));
    let id = stage.session.ping(stage.moment()).expect("live");
    for _ in 0..2 {
        stage.pass(10_000);
        stage.heartbeat("ok");
    }
    stage.events();
    stage.pass(10_000);
    let lost = [CoreEvent::PingLost, CoreEvent::HealthChanged(Health::Unhealthy)];
    assert_eq!(stage.events(), lost);
    stage.heartbeat("ok");
    assert_eq!(health_changes(&stage.events()), [], "it beats, and does not hear");
    stage.say_with("agent.pong", &json!({}), &json!({"in_reply_to": id}));
    assert_eq!(health_changes(&stage.events()), [Health::Healthy], "late is not never");
}

/// Passes time with a heartbeat every ten seconds; the pings that were sent.
fn beating(stage: &mut CoreStage, seconds: u64) -> Vec<serde_json::Value> {
    for _ in 0..seconds / 10 {
        stage.pass(10_000);
        stage.heartbeat("ok");
    }
    let written = stage.written();
    assert!(written.iter().all(|message| message["type"] == "core.ping"), "{written:?}");
    written
}

#[test]
fn r147_an_idle_agent_is_pinged_and_a_busy_one_is_not() {
    let mut stage = CoreStage::ready();
    assert_eq!(stage.session.deadline(), Some(30_000));
    let pings = beating(&mut stage, 30);
    assert_eq!(pings.len(), 1, "heartbeats alone do not show that it hears");
    stage.say_with("agent.pong", &json!({}), &json!({"in_reply_to": pings[0]["id"]}));
    assert_eq!(beating(&mut stage, 20).len(), 0);
    let again = beating(&mut stage, 10);
    assert_eq!(again.len(), 1);
    stage.say_with("agent.pong", &json!({}), &json!({"in_reply_to": again[0]["id"]}));
    stage.call("c-1");
    stage.written();
    assert_eq!(beating(&mut stage, 120).len(), 0, "a call shows that it hears");
}

#[test]
fn r147_an_agent_that_knows_no_pings_is_asked_once_and_stays_well() {
    let mut stage = CoreStage::ready();
    assert_eq!(beating(&mut stage, 600).len(), 1);
    assert_eq!(health_changes(&stage.events()), []);
    assert!(stage.session.takes_calls());
}

#[test]
fn a_pong_without_a_ping_is_wrong() {
    let mut stage = CoreStage::ready();
    stage.say("agent.pong", &json!({}));
    stage.say_with("agent.pong", &json!({}), &json!({"in_reply_to": "c1-1"}));
    assert_eq!(stage.breaches(), [Breach::Pong, Breach::Pong]);
}

#[test]
fn two_ends_left_alone_stay_healthy_for_a_day() {
    let mut pair = Pair::ready();
    pair.pass(24 * 60 * 60 * 1_000);
    assert_eq!(pair.core.health(), Health::Healthy);
    let events = pair.core_events();
    let is_beat = |event: &&CoreEvent| matches!(event, CoreEvent::Heartbeat { .. });
    let is_pong = |event: &&CoreEvent| matches!(event, CoreEvent::Pong { .. });
    assert_eq!(events.iter().filter(is_beat).count(), 8_640);
    assert_eq!(events.iter().filter(is_pong).count(), 2_880);
    assert_eq!(events.len(), 8_640 + 2_880);
}
