//! Silent, sick, lying and flooding agents, and what becomes of the others.

use serde_json::json;
use wharf_domain::Outcome;
use wharf_engine::agents::AgentState;
use wharf_vocab::{Code, RunStatus};

use crate::agent::Agent;
use crate::stage::Stage;

/// Heartbeats are due every 100 ms.
async fn quick() -> Stage {
    Stage::with(|options| options.limits.heartbeat_interval_ms = 100).await
}

#[tokio::test]
async fn r141_r142_a_silent_agent_is_unhealthy_and_well_again_with_its_next_heartbeat() {
    let mut stage = quick().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    stage.until(|view| view.state == AgentState::Unhealthy).await;
    stage.audited("agent.heartbeat_missed").await;
    stage.audited("agent.marked_unhealthy").await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed at once").clone();
    assert!(error.is(Code::ToolAgentUnhealthy), "{error}");
    agent.heartbeat("ok").await;
    stage.until(|view| view.state == AgentState::Running).await;
}

#[tokio::test]
async fn r143_going_silent_does_not_fail_what_is_under_way_but_disconnecting_does() {
    let mut stage = quick().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let _call = agent.call().await;
    stage.until(|view| view.state == AgentState::Unhealthy).await;
    assert!(!stage.handle.run(&run.key).await.expect("known").is_over());
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
async fn r145_degraded_keeps_routing_and_unhealthy_stops_it() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    agent.heartbeat("degraded").await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.succeed(&call, json!({})).await;
    stage.end_of(&run.key).await;
    agent.heartbeat("unhealthy").await;
    stage.until(|view| view.state == AgentState::Unhealthy).await;
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
    let records = stage.audited("agent.disconnected").await;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].facts["code"], "protocol.frame_too_large");
    assert!(!format!("{records:?}").contains("canary"));
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
