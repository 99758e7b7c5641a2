//! What holds for the Unix socket alone, and where the suite finds its transport.

use std::path::Path;

use wharf_agent::Transport;

use crate::stage::Stage;

/// Where agents of a test connect.
pub(crate) fn transport(dir: &Path) -> Transport {
    Transport::Unix(dir.join("run/agents.sock"))
}

/// Says hello and prints what comes back.
const HELLO: &str = r#"
import json, socket, struct, sys
core = socket.socket(socket.AF_UNIX)
core.connect(sys.argv[1])
protocol = {"supported_versions": [1], "capabilities": ["tools"]}
payload = {"session_token": sys.argv[2], "agent_id": "dev.example.hello",
           "agent_version": "0.1.0", "protocol": protocol}
hello = {"v": 1, "type": "agent.hello", "id": "a-1", "ts": "2026-11-15T10:00:00Z"}
data = json.dumps(dict(hello, payload=payload)).encode()
core.sendall(struct.pack(">I", len(data)) + data)
said = core.makefile("rb")
size, = struct.unpack(">I", said.read(4))
print(said.read(size).decode())
"#;

#[tokio::test]
async fn r050_the_right_token_from_another_user_is_turned_away() {
    use std::os::unix::fs::PermissionsExt as _;
    if !rustix::process::geteuid().is_root() {
        return wharf_skips::skip("only root can become another user");
    }
    if wharf_skips::lacks("setpriv") || wharf_skips::lacks("python3") {
        return;
    }
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let socket = std::path::PathBuf::from(launch.env("OPENSENTIENCE_SOCKET"));
    // Somebody has opened the way by mistake; else another user does not even get this far.
    let open = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
    };
    open(&socket, 0o666);
    for folder in socket.ancestors().skip(1) {
        let mode = std::fs::metadata(folder).expect("exists").permissions().mode();
        if mode & 0o001 == 0 {
            open(folder, mode | 0o011);
        }
    }
    let token = launch.env("OPENSENTIENCE_SESSION_TOKEN").to_owned();
    let mut stranger = tokio::process::Command::new("setpriv");
    stranger.args(["--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-c", HELLO]);
    // The system's own Python: one in somebody's home is not for others.
    stranger.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let done = stranger.arg(&socket).arg(&token).output().await.expect("starts");
    let wrong = String::from_utf8_lossy(&done.stderr);
    let welcome: serde_json::Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("no welcome: {wrong}"));
    assert_eq!(welcome["error"]["code"], "protocol.unauthorized", "{welcome}");
    let audited = stage.audited("agent.handshake_failed").await;
    assert_eq!(audited[0].facts["check"], "process of another user");
    assert!(!format!("{audited:?}").contains(&token));
    // The token was not used up by it.
    stage.join(&launch, &["echo"]).await;
}

#[tokio::test]
async fn r014_the_socket_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Stage::new().await;
    let socket = std::path::PathBuf::from(stage.edge.address());
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("exists").permissions().mode() & 0o777
    };
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().expect("a folder")), 0o700);
}
