//! What holds for loopback TCP alone, and where the suite finds its transport.

use std::path::Path;

use wharf_agent::{AgentEdge, Transport};
use wharf_ports::providers::ProviderState;
use wharf_vocab::Code;

use crate::stage::{self, Stage};

/// Where agents of a test connect.
pub(crate) fn transport(_dir: &Path) -> Transport {
    Transport::Tcp(([127, 0, 0, 1], 0).into())
}

#[tokio::test]
async fn r015_agents_connect_by_loopback_and_no_other_address_is_bound() {
    let stage = Stage::new().await;
    assert!(stage.edge.address().starts_with("tcp:127.0.0.1:"));
    let dir = tempfile::tempdir().expect("a folder");
    let mut options = stage::options(&stage.handle, dir.path());
    options.transport = Transport::Tcp(([0, 0, 0, 0], 0).into());
    let fault = AgentEdge::start(options).await.err().expect("not loopback");
    assert!(fault.is(Code::ConfigInvalid), "{fault}");
}

#[tokio::test]
async fn r050_over_tcp_nobody_knows_the_process_so_the_token_alone_decides() {
    let mut stage = Stage::new().await;
    stage.launcher.be_prompt(true);
    let launch = stage.started().await;
    launch.disown();
    let port = stage.edge.address().rsplit(':').next().and_then(|port| port.parse().ok());
    assert_eq!(launch.spec.fence.tcp_port, port, "it may reach the core and nothing else");
    assert!(launch.spec.fence.sockets.is_empty());
    stage.join(&launch, &["echo"]).await;
    stage.until(|view| view.state == ProviderState::Running).await;
    launch.own();
}
