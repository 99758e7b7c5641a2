//! A token is good for the process it was made for, and a launch's socket for that launch.

use std::path::Path;

use wharf_ports::providers::ProviderState;

use crate::agent::Agent;
use crate::launcher::Launch;
use crate::stage::Stage;
use crate::troupe::{CALLED, Part};

/// Says hello with a token and is turned away; the check is named in the audit alone.
async fn turned_away(stage: &Stage, mut agent: Agent, token: &str, check: &str) {
    agent.hello(token, "dev.example.hello", &["tools"]).await;
    let welcome = agent.receive().await;
    assert_eq!(welcome["error"]["code"], "protocol.unauthorized", "{welcome}");
    assert!(!welcome.to_string().contains(check), "{welcome}");
    assert_eq!(agent.next().await, None);
    let audited = stage.audited("agent.handshake_failed").await;
    assert_eq!(audited.last().expect("one").facts["check"], check);
    assert!(!format!("{audited:?}").contains(token));
}

fn token(launch: &Launch) -> String {
    launch.env("OPENSENTIENCE_SESSION_TOKEN").to_owned()
}

#[tokio::test]
async fn r050_the_right_token_from_a_process_outside_the_launch_is_turned_away() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    launch.disown();
    let check = "process outside the launch";
    turned_away(&stage, Agent::connect(&launch).await, &token(&launch), check).await;
    turned_away(&stage, Agent::at(stage.edge.address()).await, &token(&launch), check).await;
}

#[tokio::test]
async fn r050_a_strangers_try_does_not_use_the_token_up() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    launch.disown();
    let check = "process outside the launch";
    turned_away(&stage, Agent::connect(&launch).await, &token(&launch), check).await;
    launch.own();
    stage.join(&launch, &["echo"]).await;
    stage.until(|view| view.state == ProviderState::Running).await;
}

#[tokio::test]
async fn r050_a_launch_is_let_in_by_its_own_socket_only() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let (other, _agent) = Part::new(CALLED, &["echo"]).enter(&mut stage).await;
    let (own, foreign) = (launch.env("OPENSENTIENCE_SOCKET"), other.env("OPENSENTIENCE_SOCKET"));
    assert_ne!(own, foreign);
    assert!(own.len() <= 107, "{own}");
    assert_eq!(launch.spec.fence.sockets, [Path::new(own)]);
    let check = "token of another launch";
    turned_away(&stage, Agent::at(foreign).await, &token(&launch), check).await;
    stage.join(&launch, &["echo"]).await;
    stage.until(|view| view.state == ProviderState::Running).await;
}

#[tokio::test]
async fn the_socket_of_a_launch_goes_with_it() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let socket = Path::new(launch.env("OPENSENTIENCE_SOCKET")).to_owned();
    assert!(socket.exists());
    launch.exit(1);
    let next = stage.launch().await;
    assert_ne!(next.env("OPENSENTIENCE_SOCKET"), socket.to_str().expect("text"));
    assert!(!socket.exists() && !socket.parent().expect("a folder").exists());
}

#[tokio::test]
async fn what_launches_of_a_killed_core_left_is_swept_up() {
    let dir = tempfile::tempdir().expect("a folder");
    let left = dir.path().join("run/0123456789");
    let launch = dir.path().join("agents/0123456789abcdef/launches/abcdef0123/data");
    let gone = dir.path().join("agents/0123456789abcdef/gone/room");
    let data = dir.path().join("agents/0123456789abcdef/data");
    let other = dir.path().join("run/notes");
    for folder in [&left, &launch, &gone, &data, &other] {
        std::fs::create_dir_all(folder).expect("made");
        std::fs::write(folder.join("s"), "").expect("written");
    }
    let stage = Stage::new().await;
    let options = crate::stage::options(&stage.handle, dir.path());
    let edge = wharf_agent::AgentEdge::start(options).await.expect("starts");
    for folder in [&left, launch.parent().expect("a folder"), &gone] {
        crate::files::gone(folder).await;
    }
    assert!(other.exists() && data.exists());
    edge.stop().await;
}
