//! Adding, approving, starting, letting in, restarting, stopping.

use std::time::Duration;

use serde_json::{Value, json};
use wharf_ports::providers::{Approve, ProviderControl, ProviderState};
use wharf_vocab::{Code, RunStatus};

use crate::agent::{Agent, tool};
use crate::stage::{Stage, id, owner};

#[tokio::test]
async fn r063_an_agent_is_added_approved_started_and_stopped_with_a_goodbye() {
    let mut stage = Stage::new().await;
    let added = stage.edge.control().add(owner(), stage.folder()).await.expect("added");
    assert_eq!(added.state, ProviderState::Added);
    let fault = stage.edge.control().start(owner(), id()).await.expect_err("not approved");
    assert!(fault.is(Code::AgentNotApproved));
    let approved =
        stage.edge.control().approve(owner(), id(), Approve::default()).await.expect("approved");
    assert_eq!(approved.state, ProviderState::Approved);
    let (launch, mut agent) = stage.joined(&["echo"]).await;
    let fault = stage.edge.control().remove(owner(), id()).await.expect_err("running");
    assert!(fault.is(Code::AgentRunning));
    let edge = stage.edge.clone();
    let stopping = tokio::spawn(async move { edge.control().stop(owner(), id()).await });
    let goodbye = agent.receive().await;
    assert_eq!(goodbye["type"], "core.goodbye");
    assert_eq!(goodbye["payload"]["reason"], "core.stop");
    assert_eq!(agent.next().await, None, "the connection is closed");
    let stopped = stopping.await.expect("no panic").expect("stopped");
    assert!(launch.is_over());
    assert_eq!(stage.edge.control().show(&id()).expect("known").state, ProviderState::Stopped);
    assert_eq!(stopped.provider.tools.len(), 1, "its tools keep their place");
    stage.edge.control().remove(owner(), id()).await.expect("removed");
    assert!(stage.edge.control().show(&id()).expect_err("gone").is(Code::AgentNotFound));
    assert!(stage.run("echo", json!({})).await.expect_err("gone").is(Code::ToolNotFound));
}

#[tokio::test]
async fn c015_a_drained_agent_finishes_what_it_has_takes_nothing_new_and_stops() {
    let mut stage = Stage::new().await;
    let (launch, mut agent) = stage.joined(&["echo"]).await;
    let first = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    let drained = stage.edge.control().drain(owner(), id()).await.expect("drained");
    assert_eq!(drained.state, ProviderState::Draining);
    assert!(!drained.provider.wanted, "another core does not start it again");
    assert!(drained.reason.is_some_and(|why| why.contains("then stops")));
    let added = stage.edge.control().add(owner(), stage.folder()).await.expect("added again");
    assert_eq!(added.state, ProviderState::Draining, "that does not take it back");
    let refused = stage.run("echo", json!({})).await.expect("accepted");
    let refused = stage.end_of(&refused.key).await;
    assert!(stage.failure_of(&refused).await.is(Code::ToolUnavailable));
    assert!(!launch.is_over(), "it waits for the call");
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&first.key).await.status(), RunStatus::Succeeded);
    let goodbye = agent.receive().await;
    assert_eq!(goodbye["type"], "core.goodbye");
    launch.over().await;
    let rests = stage.until(|view| view.state == ProviderState::Stopped).await;
    assert_eq!(rests.pid, None);
    // What rests has nothing to finish.
    let again = stage.edge.control().drain(owner(), id()).await.expect("nothing to do");
    assert_eq!(again.state, ProviderState::Stopped);
}

#[tokio::test]
async fn c015_a_start_takes_a_drain_back_and_a_stop_does_not_wait_for_it() {
    let mut stage = Stage::new().await;
    let (launch, mut agent) = stage.joined(&["echo"]).await;
    let first = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    stage.edge.control().drain(owner(), id()).await.expect("drained");
    stage.edge.control().start(owner(), id()).await.expect("started");
    stage.until(|view| view.state == ProviderState::Running && view.provider.wanted).await;
    let second = stage.run("echo", json!({})).await.expect("accepted");
    let other = agent.call().await;
    agent.succeed(&other, json!({})).await;
    assert_eq!(stage.end_of(&second.key).await.status(), RunStatus::Succeeded);
    assert!(!launch.is_over());
    stage.edge.control().drain(owner(), id()).await.expect("drained");
    let edge = stage.edge.clone();
    let stopping = tokio::spawn(async move { edge.control().stop(owner(), id()).await });
    assert_eq!(agent.receive().await["type"], "core.goodbye");
    agent.succeed(&call, json!({})).await;
    stopping.await.expect("no panic").expect("stopped");
    assert!(launch.is_over());
    assert_eq!(stage.end_of(&first.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r065_r066_the_environment_is_exactly_the_list_and_argv_holds_no_secret() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let names: Vec<&str> = launch.spec.env.keys().map(String::as_str).collect();
    let expected = [
        "HOME",
        "LANG",
        "OPENSENTIENCE_AGENT_ID",
        "OPENSENTIENCE_HEARTBEAT_INTERVAL_MS",
        "OPENSENTIENCE_HOME",
        "OPENSENTIENCE_PROTOCOL_VERSIONS",
        "OPENSENTIENCE_RUN_ID",
        "OPENSENTIENCE_SESSION_TOKEN",
        "OPENSENTIENCE_SOCKET",
        "PATH",
        "TMPDIR",
        "TZ",
    ];
    assert_eq!(names, expected);
    assert_eq!(launch.spec.args, ["agent.py"]);
    let token = launch.env("OPENSENTIENCE_SESSION_TOKEN");
    assert!(launch.spec.secrets.iter().any(|secret| secret == token), "it is kept out of logs");
}

/// Tries to come in, and is turned away without being told why.
async fn turned_away(stage: &Stage, mut agent: Agent, token: &str, name: &str) {
    agent.hello(token, name, &["tools"]).await;
    let welcome = agent.receive().await;
    assert_eq!(welcome["type"], "core.welcome");
    assert_eq!(welcome["error"]["code"], "protocol.unauthorized", "{welcome}");
    assert!(!welcome.to_string().contains(token));
    assert_eq!(agent.next().await, None);
    let audited = stage.audited("agent.handshake_failed").await;
    assert!(!format!("{audited:?}").contains(token));
}

#[tokio::test]
async fn r045_a_wrong_token_is_turned_away() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    turned_away(&stage, Agent::connect(&launch).await, "not-the-token", "dev.example.hello").await;
    Agent::join(&launch, &["tools"]).await;
}

#[tokio::test]
async fn r047_an_expired_token_is_turned_away() {
    let mut stage =
        Stage::with(|options| options.hosting.connect_within = Duration::from_millis(1)).await;
    let launch = stage.started().await;
    let token = launch.env("OPENSENTIENCE_SESSION_TOKEN").to_owned();
    tokio::time::sleep(Duration::from_millis(2)).await;
    // Its own socket is gone with it; the core's is there.
    let agent = Agent::at(stage.edge.address()).await;
    turned_away(&stage, agent, &token, "dev.example.hello").await;
}

#[tokio::test]
async fn an_agent_that_connected_outlives_the_time_its_token_was_good() {
    let life = Duration::from_secs(2);
    let mut stage = Stage::with(|options| options.hosting.connect_within = life).await;
    let (launch, mut agent) = stage.joined(&["echo"]).await;
    tokio::time::sleep(life + Duration::from_millis(500)).await;
    assert!(!launch.is_over());
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r048_a_token_is_good_once_and_the_first_session_is_untouched() {
    let mut stage = Stage::new().await;
    let (launch, mut first) = stage.joined(&["echo"]).await;
    let token = launch.env("OPENSENTIENCE_SESSION_TOKEN").to_owned();
    turned_away(&stage, Agent::connect(&launch).await, &token, "dev.example.hello").await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = first.call().await;
    first.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r049_a_token_of_another_launch_is_turned_away() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let token = launch.env("OPENSENTIENCE_SESSION_TOKEN").to_owned();
    launch.exit(1);
    let next = stage.launch().await;
    turned_away(&stage, Agent::connect(&next).await, &token, "dev.example.hello").await;
}

#[tokio::test]
async fn r053_an_id_that_is_not_the_launched_manifests_is_turned_away() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let token = launch.env("OPENSENTIENCE_SESSION_TOKEN").to_owned();
    turned_away(&stage, Agent::connect(&launch).await, &token, "dev.example.impostor").await;
    Agent::join(&launch, &["tools"]).await;
}

#[tokio::test]
async fn r055_another_manifest_hash_is_turned_away_and_the_right_one_is_let_in() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let hash = stage.edge.control().show(&id()).expect("known").provider.manifest_hash.to_string();
    let hello = |token: &str, hash: &str| {
        json!({
            "session_token": token, "agent_id": "dev.example.hello", "agent_version": "0.1.0",
            "manifest_hash": hash, "protocol": {"supported_versions": [1], "capabilities": []},
        })
    };
    let mut drifted = Agent::connect(&launch).await;
    let token = launch.env("OPENSENTIENCE_SESSION_TOKEN");
    drifted.send("agent.hello", hello(token, &"00".repeat(32)), json!({})).await;
    assert_ne!(drifted.receive().await["error"], Value::Null);
    stage.audited("agent.manifest_drift_detected").await;
    // The token was spent, so the process gets another with its next launch.
    launch.exit(1);
    let next = stage.launch().await;
    let mut agent = Agent::connect(&next).await;
    let token = next.env("OPENSENTIENCE_SESSION_TOKEN");
    agent.send("agent.hello", hello(token, &format!("sha256:{hash}")), json!({})).await;
    assert_eq!(agent.receive().await["error"], Value::Null);
}

#[tokio::test]
async fn r146_crashes_are_followed_by_new_launches_with_new_tokens_until_it_is_too_much() {
    let mut stage = Stage::new().await;
    let mut launch = stage.started().await;
    let mut tokens = std::collections::BTreeSet::new();
    for _ in 0..4 {
        assert!(tokens.insert(launch.env("OPENSENTIENCE_SESSION_TOKEN").to_owned()));
        launch.exit(3);
        launch = stage.launch().await;
    }
    launch.exit(3);
    let crashed = stage.until(|view| view.state == ProviderState::Crashed).await;
    assert!(crashed.reason.expect("a reason").contains("exit code 3"));
    stage.until(|view| !view.provider.wanted).await;
    stage.audited("agent.run_crashed").await;
    assert!(stage.audited("agent.run_started").await.len() >= 5);
    stage.edge.control().start(owner(), id()).await.expect("by hand it may begin again");
    stage.launch().await;
}

#[tokio::test]
async fn r082_tools_keep_their_place_while_the_agent_is_away_and_runs_wait_for_it() {
    let mut stage = Stage::new().await;
    let (launch, _agent) = stage.joined(&["echo"]).await;
    launch.exit(1);
    let next = stage.launch().await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    assert_eq!(run.status(), RunStatus::Queued, "known is not available");
    let mut agent = Agent::join(&next, &["tools"]).await;
    agent.offer(&[tool("echo")]).await;
    let call = agent.call().await;
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r086_a_stopped_agent_fails_runs_at_once_with_the_reason() {
    let mut stage = Stage::new().await;
    let (_launch, agent) = stage.joined(&["echo"]).await;
    drop(agent);
    stage.edge.control().stop(owner(), id()).await.expect("stopped");
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("failed").clone();
    assert!(error.is(Code::ToolUnavailable), "{error}");
    assert!(error.message.contains("stopped"), "{error}");
    let unknown = stage.run("nothing", json!({})).await.expect_err("not in the catalog");
    assert!(unknown.is(Code::ToolNotFound));
}

#[tokio::test]
async fn a_changed_manifest_needs_a_new_approval() {
    let mut stage = Stage::new().await;
    let (_launch, agent) = stage.joined(&["echo"]).await;
    stage.write_manifest("0.2.0");
    drop(agent);
    stage.edge.control().stop(owner(), id()).await.expect("stopped");
    stage.edge.control().add(owner(), stage.folder()).await.expect("added again");
    let fault = stage.edge.control().start(owner(), id()).await.expect_err("another manifest");
    assert!(fault.is(Code::AgentNotApproved));
}

#[tokio::test]
async fn an_agent_that_runs_is_replaced_when_its_new_manifest_is_approved() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    stage.write_manifest("0.2.0");
    stage.edge.control().add(owner(), stage.folder()).await.expect("added while it runs");
    let approve = Approve::default();
    stage.edge.control().approve(owner(), id(), approve).await.expect("approved");
    let goodbye = agent.receive().await;
    assert_eq!(goodbye["payload"]["reason"], "core.replaced");
    let launch = stage.launch().await;
    let mut next = stage.join(&launch, &["echo"]).await;
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = next.call().await;
    next.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r146_a_restart_waits_for_its_pause_however_the_end_was_noticed() {
    let pause = Duration::from_millis(700);
    let mut stage = Stage::with(|options| {
        options.hosting.restart.pause_ms = 700;
        options.hosting.restart.pause_max_ms = 700;
        options.hosting.restart.jitter_percent = 0;
    })
    .await;
    let (launch, agent) = stage.joined(&["echo"]).await;
    // The connection is lost first, then the process ends.
    drop(agent);
    launch.over().await;
    let ended = tokio::time::Instant::now();
    stage.launch().await;
    assert!(ended.elapsed() + Duration::from_millis(50) >= pause, "{:?}", ended.elapsed());
}
