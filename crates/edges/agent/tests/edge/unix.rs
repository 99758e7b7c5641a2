//! What holds for the Unix socket alone, and where the suite finds its transport.

use std::path::Path;

use wharf_agent::Transport;

use crate::stage::Stage;

/// Where agents of a test connect.
pub(crate) fn transport(dir: &Path) -> Transport {
    Transport::Unix(dir.join("run/agents.sock"))
}

#[tokio::test]
async fn r014_the_socket_is_the_owners_alone_and_no_port_is_open() {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Stage::new().await;
    let socket = std::path::PathBuf::from(stage.edge.address());
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("exists").permissions().mode() & 0o777
    };
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().expect("a folder")), 0o700);
}
