//! Coming in without a token, or faster than anybody could know.

use serde_json::{Value, json};
use wharf_ports::providers::ProviderState;

use crate::agent::Agent;
use crate::stage::Stage;

#[tokio::test]
async fn r050_a_hello_that_comes_before_the_word_of_the_launch_waits_for_it() {
    let mut stage = Stage::new().await;
    stage.launcher.be_prompt(false);
    let launch = stage.started().await;
    let mut agent = Agent::connect(&launch).await;
    agent.hello(launch.env("OPENSENTIENCE_SESSION_TOKEN"), "dev.example.hello", &["tools"]).await;
    stage.launcher.be_prompt(true);
    let welcome = agent.receive().await;
    assert_eq!(welcome["error"], Value::Null, "{welcome}");
}

#[tokio::test]
async fn r050_an_inherited_connection_needs_no_token_and_there_is_none_to_steal() {
    let mut stage = Stage::new().await;
    stage.write_manifest_with(json!({"connection": "descriptor"}));
    let launch = stage.started().await;
    assert_eq!(launch.env("OPENSENTIENCE_SOCKET"), "fd:3");
    assert!(!launch.spec.env.contains_key("OPENSENTIENCE_SESSION_TOKEN"));
    assert!(launch.spec.fence.sockets.is_empty());
    let mut agent = Agent::inherited(&launch);
    agent.hello("inherited", "dev.example.hello", &["tools"]).await;
    let welcome = agent.receive().await;
    assert_eq!(welcome["error"], Value::Null, "{welcome}");
    agent.offer(&[crate::agent::tool("echo")]).await;
    stage.until(|view| view.state == ProviderState::Running).await;
    stage.run("echo", json!({})).await.expect("accepted");
    agent.call().await;
}

#[tokio::test]
async fn r050_an_inherited_connection_is_good_for_its_own_agent_only() {
    let mut stage = Stage::new().await;
    stage.write_manifest_with(json!({"connection": "descriptor"}));
    let launch = stage.started().await;
    let mut agent = Agent::inherited(&launch);
    agent.hello("inherited", "dev.example.impostor", &["tools"]).await;
    assert_eq!(agent.receive().await["error"]["code"], "protocol.unauthorized");
}
