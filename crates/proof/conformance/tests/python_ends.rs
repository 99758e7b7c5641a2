//! How the reference agent in Python ends when the system asks it to.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

async fn receive(stream: &mut UnixStream) -> Value {
    let length = timeout(PATIENCE, stream.read_u32()).await.expect("in time").expect("a length");
    let mut body = vec![0; length as usize];
    timeout(PATIENCE, stream.read_exact(&mut body)).await.expect("in time").expect("a body");
    serde_json::from_slice(&body).expect("JSON")
}

async fn send(stream: &mut UnixStream, kind: &str, payload: Value) {
    let mut message = json!({ "v": 1, "type": kind, "id": kind, "ts": "2026-01-01T00:00:00Z" });
    message["payload"] = payload;
    let body = message.to_string();
    let length = u32::try_from(body.len()).expect("a small message");
    stream.write_all(&length.to_be_bytes()).await.expect("written");
    stream.write_all(body.as_bytes()).await.expect("written");
}

async fn exit(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        assert!(Instant::now() < until, "the agent did not end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn sigterm_ends_it_in_order_even_while_a_tool_is_busy() {
    let place = tempfile::tempdir().expect("a folder");
    let socket = place.path().join("s");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/agents/hello-python");
    let started = Command::new("python3")
        .arg("agent.py")
        .current_dir(dir)
        .env("OPENSENTIENCE_SOCKET", &socket)
        .env("OPENSENTIENCE_SESSION_TOKEN", "token")
        .process_group(0)
        .spawn();
    let Ok(mut child) = started else {
        return wharf_skips::skip("python3 is not installed, so the agent could not be ended");
    };
    let accepted = timeout(PATIENCE, listener.accept()).await.expect("in time");
    let (mut stream, _) = accepted.expect("a connection");
    assert_eq!(receive(&mut stream).await["type"], "agent.hello");
    let welcome =
        json!({ "accepted_version": 1, "session_id": "s1", "heartbeat_interval_ms": 60_000 });
    send(&mut stream, "core.welcome", welcome).await;
    assert_eq!(receive(&mut stream).await["type"], "agent.tools.register");
    assert_eq!(receive(&mut stream).await["type"], "agent.heartbeat");
    let tool_id = "dev.wharf.hello-python/stream_counter";
    let input = json!({ "n": 2, "delay_ms": 60_000 });
    let call = json!({ "call_id": "c1", "tool_id": tool_id, "input": input });
    send(&mut stream, "core.tool.call", call).await;
    assert_eq!(receive(&mut stream).await["type"], "agent.tool.stream");

    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::TERM).expect("a signal");
    assert!(exit(&mut child).await.success(), "an agent that is asked to end has not failed");
}
