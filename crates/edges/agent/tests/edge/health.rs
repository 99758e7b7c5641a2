//! Silent, sick, lying and flooding agents, and what becomes of the others.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use wharf_agent::AgentRule;
use wharf_domain::{AuditRecord, Outcome};
use wharf_ports::providers::ProviderState;
use wharf_vocab::{Code, Health, RunStatus};

use crate::agent::Agent;
use crate::stage::Stage;

/// Heartbeats are due twice a second: unhealthy lasts long enough to be seen before it is given up.
async fn quick() -> Stage {
    Stage::with(|options| options.limits.heartbeat_interval_ms = 500).await
}

#[tokio::test]
async fn r141_r142_a_silent_agent_is_unhealthy_and_well_again_with_its_next_heartbeat() {
    let mut stage = quick().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    stage.until(|view| view.state == ProviderState::Unhealthy).await;
    stage.audited("agent.heartbeat_missed").await;
    stage.audited("agent.marked_unhealthy").await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed at once").clone();
    assert!(error.is(Code::ToolAgentUnhealthy), "{error}");
    agent.heartbeat("ok").await;
    stage.until(|view| view.state == ProviderState::Running).await;
}

#[tokio::test]
async fn r143_going_silent_does_not_fail_what_is_under_way_but_disconnecting_does() {
    let mut stage = quick().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let _call = agent.call().await;
    stage.until(|view| view.state == ProviderState::Unhealthy).await;
    assert!(!stage.handle.runs().get(&run.key).await.expect("known").is_over());
    drop(agent);
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
    assert!(error.is(Code::ToolAgentLost) && error.retryable, "{error}");
}

#[tokio::test]
async fn a_dead_silent_agent_is_killed_and_started_again() {
    let mut stage = quick().await;
    let (launch, _agent) = stage.joined(&["echo"]).await;
    let next = stage.launch().await;
    assert!(launch.is_over(), "nothing outlives its purpose");
    Agent::join(&next, &["tools"]).await;
}

#[tokio::test]
async fn a_connection_that_panics_ends_its_calls_at_once_and_the_agent_is_started_again() {
    let mut stage = Stage::new().await;
    let (launch, _agent) = stage.joined(&["echo"]).await;
    launch.is_really(std::process::id());
    launch.startle();
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let fault = stage.failure_of(&run).await;
    assert!(fault.is(Code::ToolWorkerLost), "{fault}");
    assert_eq!(fault.details["executed"], "maybe", "{fault}");
    let next = stage.launch().await;
    assert!(launch.is_over(), "nothing speaks with it any more");
    let mut agent = stage.join(&next, &["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.succeed(&call, json!({})).await;
    stage.end_of(&run.key).await;
}

#[tokio::test]
async fn r145_degraded_keeps_routing_and_unhealthy_stops_it() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    agent.heartbeat("degraded").await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.succeed(&call, json!({})).await;
    stage.end_of(&run.key).await;
    agent.heartbeat("unhealthy").await;
    stage.until(|view| view.state == ProviderState::Unhealthy).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed at once");
    assert!(error.is(Code::ToolAgentUnhealthy));
}

#[tokio::test]
async fn r010_an_oversize_frame_closes_the_connection_with_one_record_and_no_content() {
    let mut stage = Stage::new().await;
    let (launch, mut agent) = stage.joined(&["echo"]).await;
    agent.raw(&[0xff, 0xff, 0xff, 0xff]).await;
    agent.raw(b"canary-bytes").await;
    while agent.next().await.is_some() {}
    stage.launch().await;
    assert!(launch.is_over());
    let records = wire_records(&stage).await;
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!(record.event, "agent.protocol_violation");
    assert_eq!(record.facts["code"], "protocol.frame_too_large");
    assert_eq!(record.facts["frame_bytes"], u32::MAX);
    assert_eq!(record.facts["limit_bytes"], 4 * 1024 * 1024);
    assert_eq!(record.facts["launch_id"], launch.spec.launch.as_str());
    assert!(!format!("{records:?}").contains("canary"));
}

/// What the audit has of an agent after it has offered its tools and before its process was gone.
async fn wire_records(stage: &Stage) -> Vec<AuditRecord> {
    stage.audited("agent.run_stopped").await;
    let all = stage.handle.audit().list(0, 10_000).await.expect("readable");
    let records = all.into_iter().map(|sealed| sealed.record);
    let after = records.skip_while(|record| record.event != "agent.tools_registered").skip(1);
    let of_wire = after.take_while(|record| record.event != "agent.run_stopped");
    of_wire.filter(|record| record.subject == "agent:dev.example.hello").collect()
}

#[tokio::test]
async fn r010_a_stranger_s_oversize_frame_is_one_record_too() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let mut stranger = Agent::connect(&launch).await;
    stranger.raw(&[0, 1, 0, 1]).await;
    assert_eq!(stranger.next().await, None, "closed");
    let records = stage.audited("agent.handshake_failed").await;
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!(record.facts["code"], "protocol.frame_too_large");
    assert_eq!(record.facts["frame_bytes"], 65_537);
    assert_eq!(record.facts["limit_bytes"], 65_536, "r013");
}

#[tokio::test]
async fn r011_an_oversize_frame_can_be_let_go_by_and_answered() {
    let rule = AgentRule { reject_oversize: true, ..AgentRule::default() };
    let mut stage = Stage::with(|options| {
        options.rules = BTreeMap::from([(crate::stage::id(), rule)]);
    })
    .await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let too_many = 4 * 1024 * 1024 + 1_u32;
    agent.raw(&too_many.to_be_bytes()).await;
    agent.raw(&vec![b'x'; too_many as usize]).await;
    let answer = agent.receive().await;
    assert_eq!(answer["type"], "core.error");
    assert_eq!(answer["error"]["code"], "protocol.frame_too_large");
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded, "it goes on");
    let records = stage.audited("agent.protocol_violation").await;
    assert_eq!((records.len(), &records[0].facts["frame_bytes"]), (1, &json!(too_many)));
}

#[tokio::test]
async fn r149_a_strict_core_closes_on_what_it_does_not_know_and_others_do_not() {
    for strict in [false, true] {
        let mut stage = Stage::with(|options| options.rule.strict = strict).await;
        let (_launch, mut agent) = stage.joined(&["echo"]).await;
        agent.send("agent.dance", json!({}), json!({})).await;
        if strict {
            while agent.next().await.is_some() {}
            let records = stage.audited("agent.protocol_violation").await;
            assert_eq!(records[0].facts["code"], "protocol.unknown_type");
            continue;
        }
        stage.run("echo", json!({})).await.expect("accepted");
        agent.call().await;
    }
}

#[tokio::test]
async fn r147_an_idle_agent_is_pinged_and_is_well_as_long_as_it_answers() {
    let mut stage = quick().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let mut pings = 0;
    while pings < 3 {
        agent.heartbeat("ok").await;
        let next = tokio::time::timeout(Duration::from_millis(80), agent.next_of_all()).await;
        let Ok(Some(ping)) = next else { continue };
        assert_eq!(ping["type"], "core.ping", "{ping}");
        agent.send("agent.pong", json!({}), json!({"in_reply_to": ping["id"]})).await;
        pings += 1;
    }
    stage.until(|view| view.state == ProviderState::Running).await;
    // It beats on and no longer hears.
    let deaf = async {
        loop {
            agent.heartbeat("ok").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = deaf => unreachable!("it beats for ever"),
        _ = stage.until(|view| view.state == ProviderState::Unhealthy) => {}
    }
}

#[tokio::test]
async fn r140_what_an_agent_says_of_itself_is_shown() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let beat = json!({
        "session_id": agent.session(), "uptime_ms": 1234, "inflight_calls": 2,
        "status": "degraded", "details": {"queue": 7},
    });
    agent.send("agent.heartbeat", beat, json!({})).await;
    let view = stage.until(|view| view.health.is_some()).await;
    let health = view.health.expect("said");
    assert_eq!(
        (health.status, health.uptime_ms, health.inflight_calls),
        (Health::Degraded, 1234, 2)
    );
    assert_eq!(health.details["queue"], 7);
    let large = json!({
        "session_id": agent.session(), "uptime_ms": 2, "inflight_calls": 0, "status": "ok",
        "details": {"text": "x".repeat(100_000)},
    });
    agent.send("agent.heartbeat", large, json!({})).await;
    let view =
        stage.until(|view| view.health.as_ref().is_some_and(|health| health.uptime_ms == 2)).await;
    assert_eq!(json!(view.health.expect("said").details), json!({"truncated": true}));
}

#[tokio::test]
async fn r067_garbage_from_strangers_leaves_the_core_and_the_others_alone() {
    let mut stage = Stage::new().await;
    let (launch, mut agent) = stage.joined(&["echo"]).await;
    for bytes in [&b"\0\0\0\x02[]"[..], b"\0\0\0\x01{", b"\0\0\0\0", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stranger = Agent::connect(&launch).await;
        stranger.raw(bytes).await;
        while stranger.next().await.is_some() {}
    }
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r042_a_hello_that_drips_does_not_hold_a_place_for_long() {
    let mut stage = Stage::with(|options| options.limits.handshake_ms = 200).await;
    let launch = stage.started().await;
    let mut slow = Agent::connect(&launch).await;
    for byte in [0, 0, 1, 0, b'{', b'"'] {
        slow.raw(&[byte]).await;
    }
    assert_eq!(slow.next().await, None, "closed");
    let records = stage.audited("agent.handshake_failed").await;
    assert_eq!(records[0].facts["code"], "protocol.handshake_timeout");
}

#[tokio::test]
async fn r114_a_flooding_tool_is_cut_off_and_a_failing_one_is_only_a_failed_run() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.fail(&call, "acme.no_stock", false).await;
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
    assert_eq!(error.code.as_str(), "acme.no_stock");
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    let line = "x".repeat(256 * 1024);
    for seq in 1..=40 {
        agent.stream(&call, seq, "stdout", json!({"text": line})).await;
    }
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
    assert!(error.is(Code::ToolOutputTooLarge), "{error}");
}
