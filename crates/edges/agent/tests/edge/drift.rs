//! Approvals hold for the files they were given for, and end when they are taken back.

use serde_json::json;
use wharf_ports::providers::{Approve, ProviderControl, ProviderState};
use wharf_vocab::{Code, RunStatus};

use crate::stage::{Stage, id, owner};

#[tokio::test]
async fn r084_changed_files_refuse_the_start_and_say_what_changed() {
    let stage = Stage::new().await;
    stage.edge.control().add(owner(), stage.folder()).await.expect("added");
    stage.edge.control().approve(owner(), id(), Approve::default()).await.expect("approved");
    assert_eq!(stage.edge.control().drift(id()).await.expect("known"), Vec::<String>::new());
    stage.write("agent.py", "something else");
    let said = stage.edge.control().drift(id()).await.expect("known");
    assert_eq!(said, ["agent.py was changed"]);
    let fault = stage.edge.control().start(owner(), id()).await.expect_err("drifted");
    assert!(fault.is(Code::AgentDrifted), "{fault}");
    assert!(fault.message.contains("agent.py was changed"), "{fault}");
    let view = stage.edge.control().show(&id()).expect("known");
    assert_eq!(view.state, ProviderState::Drifted);
    assert!(view.reason.expect("a reason").contains("agent.py was changed"));
    stage.audited("agent.manifest_drift_detected").await;
    // What was looked at and approved again may start.
    stage.edge.control().approve(owner(), id(), Approve::default()).await.expect("approved");
    stage.edge.control().start(owner(), id()).await.expect("started");
}

#[tokio::test]
async fn r084_a_changed_manifest_refuses_the_start_and_needs_to_be_added_again() {
    let stage = Stage::new().await;
    stage.edge.control().add(owner(), stage.folder()).await.expect("added");
    stage.edge.control().approve(owner(), id(), Approve::default()).await.expect("approved");
    stage.write_manifest_with(json!({"permissions": ["network:egress:x.dev"]}));
    let fault = stage.edge.control().start(owner(), id()).await.expect_err("drifted");
    let line =
        "opensentience.agent.json changed: asks for network:egress:x.dev in addition".to_owned();
    assert!(fault.is(Code::AgentDrifted) && fault.message.contains(&line), "{fault}");
    let fault =
        stage.edge.control().approve(owner(), id(), Approve::default()).await.expect_err("unseen");
    assert!(fault.is(Code::AgentDrifted), "what is approved is what was looked at: {fault}");
    stage.edge.control().add(owner(), stage.folder()).await.expect("added again");
    let fault = stage.edge.control().start(owner(), id()).await.expect_err("another manifest");
    assert!(fault.is(Code::AgentNotApproved), "{fault}");
}

#[tokio::test]
async fn r084_an_agent_that_was_added_again_since_the_owner_looked_is_not_approved() {
    let stage = Stage::new().await;
    let seen = stage.edge.control().add(owner(), stage.folder()).await.expect("added");
    stage.write_manifest_with(json!({"permissions": ["network:egress:x.dev"]}));
    let now = stage.edge.control().add(owner(), stage.folder()).await.expect("added again");
    let of = |hash| Approve { manifest_hash: Some(hash), ..Approve::default() };
    let stale = stage.edge.control().approve(owner(), id(), of(seen.provider.manifest_hash)).await;
    assert!(stale.as_ref().is_err_and(|fault| fault.is(Code::AgentDrifted)), "{stale:?}");
    let view = stage.edge.control().approve(owner(), id(), of(now.provider.manifest_hash)).await;
    assert!(view.expect("what was seen").provider.is_approved());
}

#[tokio::test]
async fn an_agent_with_a_name_of_the_core_is_not_added() {
    let stage = Stage::new().await;
    for name in ["wharf", "core", "owner"] {
        stage.write_manifest_with(json!({"id": name}));
        let fault = stage.edge.control().add(owner(), stage.folder()).await.expect_err(name);
        assert!(fault.is(Code::AgentManifestInvalid), "{fault}");
        assert!(fault.message.contains("field id"), "{fault}");
    }
}

#[tokio::test]
async fn r084_drift_while_it_runs_refuses_the_next_call_and_stops_the_agent() {
    let mut stage = Stage::new().await;
    let (launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);

    stage.write("agent.py", "something else");
    let refused = stage.run("echo", json!({})).await.expect("accepted");
    let fault = stage.failure_of(&refused).await;
    assert!(fault.is(Code::AgentDrifted), "{fault}");
    assert!(fault.message.contains("agent.py was changed"), "{fault}");
    let said = agent.receive().await;
    assert_eq!(said["type"], "core.goodbye", "nothing was sent of the call: {said}");
    launch.over().await;
    let view =
        stage.until(|view| view.state == ProviderState::Drifted && !view.provider.wanted).await;
    assert!(view.reason.expect("a reason").contains("agent.py was changed"));
    assert_eq!(stage.audited("agent.manifest_drift_detected").await.len(), 1);
    let later = stage.run("echo", json!({})).await;
    let fault = match later {
        Ok(run) => stage.failure_of(&run).await,
        Err(fault) => fault,
    };
    assert!(fault.is(Code::ToolUnavailable) || fault.is(Code::AgentDrifted), "{fault}");
}

#[tokio::test]
async fn r084_a_module_planted_while_it_runs_refuses_a_call_soon() {
    let mut stage = Stage::new().await;
    let (launch, mut agent) = stage.joined(&["echo"]).await;
    stage.write("json.py", "planted");
    let deadline = tokio::time::Instant::now() + crate::agent::LONG;
    let fault = loop {
        assert!(tokio::time::Instant::now() < deadline, "it is never seen");
        let run = stage.run("echo", json!({})).await.expect("accepted");
        let said = agent.receive().await;
        if said["type"] != "core.tool.call" {
            break stage.failure_of(&run).await;
        }
        agent.succeed(&said, json!({})).await;
        assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert!(fault.is(Code::AgentDrifted) && fault.message.contains("json.py is new"), "{fault}");
    launch.over().await;
}

#[tokio::test]
async fn a_file_that_was_only_touched_changes_nothing() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    for _ in 0..3 {
        stage.write("agent.py", "as it was approved");
        let run = stage.run("echo", json!({})).await.expect("accepted");
        let call = agent.call().await;
        agent.succeed(&call, json!({})).await;
        assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
    }
    assert_eq!(stage.edge.control().show(&id()).expect("known").state, ProviderState::Running);
}

#[tokio::test]
async fn r084_a_crashed_agent_whose_files_changed_is_not_started_again() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    stage.write("hello", "something else");
    launch.exit(1);
    let view =
        stage.until(|view| view.state == ProviderState::Drifted && !view.provider.wanted).await;
    assert!(view.reason.expect("a reason").contains("hello was changed"));
}

#[tokio::test]
async fn r084_an_approval_that_is_taken_back_refuses_the_next_call_and_stops_the_agent() {
    let mut stage = Stage::new().await;
    let (launch, mut agent) = stage.joined(&["echo"]).await;
    let edge = stage.edge.clone();
    let revoking = tokio::spawn(async move { edge.control().revoke(owner(), id()).await });
    let goodbye = agent.receive().await;
    assert_eq!(goodbye["type"], "core.goodbye", "{goodbye}");
    let view = revoking.await.expect("no panic").expect("revoked");
    assert_eq!(view.state, ProviderState::Added);
    assert!(launch.is_over());
    let fault = match stage.run("echo", json!({})).await {
        Ok(run) => stage.failure_of(&run).await,
        Err(fault) => fault,
    };
    let refused = [Code::AgentNotApproved, Code::PermissionDenied, Code::ToolUnavailable];
    assert!(refused.iter().any(|code| fault.is(*code)), "{fault}");
    stage.audited("agent.permissions_revoked").await;
    let fault = stage.edge.control().start(owner(), id()).await.expect_err("not approved");
    assert!(fault.is(Code::AgentNotApproved));
}
