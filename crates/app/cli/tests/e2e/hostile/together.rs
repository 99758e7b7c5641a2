//! All floods at once against one core: pings that nobody reads the answers of, on every socket
//! and from a fenced tool server; offers without end of an agent; large runs that wait.

use std::time::Duration;

use serde_json::json;

use super::agent::fence::{HOSTILE, running, start};
use super::peers::{RawSocket, Seat, Stage};
use crate::agents::has_python;
use crate::security_page::{Peer, tried};
use crate::support::Api;
use crate::tool_servers::{add, manifest};

/// How much memory the core may take through all of it.
const PEAK_MIB: u64 = 200;
/// How long floods go on if nobody ends them.
const FLOOD: Duration = Duration::from_secs(5);
/// Runs that wait for an approval, and what each has as its input: more together than the core may
/// take.
const WAITING: usize = 60;
const INPUT_BYTES: usize = 3_900_000;

/// A tool server that answers its first request with pings, and reads nothing any more.
const PINGS: &str = r#"
import base64, hashlib, socket, sys, threading

def serve(link):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = link.recv(1)
        if not byte:
            return
        head += byte
    lines = [line.split(":", 1) for line in head.decode().split("\r\n")[1:] if ":" in line]
    fields = {name.lower(): value.strip() for name, value in lines}
    if "sec-websocket-key" not in fields:
        link.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"ok\":true}")
        return link.close()
    key = fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    spoken = fields.get("sec-websocket-protocol", "").split(",")[0].strip()
    spoken = "sec-websocket-protocol: " + spoken + "\r\n" if spoken else ""
    link.sendall(("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"
                  "connection: upgrade\r\nsec-websocket-accept: " + accept + "\r\n"
                  + spoken + "\r\n").encode())
    pings = (b"\x89\x7d" + b"x" * 125) * 512
    for _ in range(4096):
        link.sendall(pings)

listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    link, _ = listener.accept()
    threading.Thread(target=serve, args=(link,), daemon=True).start()
"#;

/// Adds the tool server that pings, fenced in as any other.
fn add_pinging(stage: &Stage) -> tempfile::TempDir {
    let exec = "exec = [\"python3\", \"server.py\", \"{port}\"]\nside_effects = false";
    let folder = manifest("sec/floods@1", exec);
    std::fs::write(folder.path().join("server.py"), PINGS).expect("written");
    add(&stage.home, folder.path());
    folder
}

/// Lets so many large runs wait, until the core takes no more of them.
fn let_wait(api: &Api) -> usize {
    let text = "x".repeat(INPUT_BYTES);
    let run = json!({"tool": "wharf/echo", "inputs": {"text": text}, "world": "gated"});
    let statuses = (0..WAITING).map(|_| api.ask("POST", "/v1/runs", &run).0);
    statuses.filter(|status| *status == 202).count()
}

#[test]
fn all_floods_together_leave_the_core_small() {
    if !has_python() {
        return;
    }
    let stage = Stage::up();
    let rules = json!([{"tool": "wharf/echo", "approve": true}]).to_string();
    stage.home.run(&["worlds", "create", "gated", "--policy", &rules]).code(0);
    start(&stage.home, "hostile", HOSTILE);
    running(&stage.home, HOSTILE);
    let _folder = add_pinging(&stage);
    let at_rest = stage.peak_mib();
    let reader = stage.token(&["--verb", "read"]);
    let runner = stage.token(&["--verb", "run"]);
    let caller = stage.caller(&["--verb", "run"]);
    let open = |path: &str, speaks: &str, token: &str| {
        let opened = RawSocket::open(&stage.core, path, speaks, token);
        opened.unwrap_or_else(|status| panic!("{path}: not let in: {status}"))
    };
    let mut sockets = vec![
        open("/graphql", "graphql-transport-ws", &reader),
        open("/v1/tool/ws?role=principal", "wharf.tool.v1", &runner),
        Seat::take(&stage.core, &stage.api).socket,
    ];
    let pinged = stage.api.start(&json!({"tool": "sec/floods@1", "inputs": {}}));
    let offers = format!("{HOSTILE}/flood_journal");
    let offered = stage.api.start(&json!({"tool": offers, "inputs": {}}));
    let waiting = std::thread::scope(|scope| {
        for socket in &mut sockets {
            scope.spawn(|| socket.flood_pings(FLOOD));
        }
        scope.spawn(move || let_wait(&caller)).join().expect("it ends")
    });
    for run in [pinged, offered] {
        stage.api.end_of("default", run["run_id"].as_str().expect("an id"));
    }
    let peak = stage.peak_mib();
    tell(at_rest, peak, waiting);
    assert!(peak < PEAK_MIB, "the core took {peak} MiB, {at_rest} at rest");
    // It goes on for others.
    let run = stage.api.start(&json!({"tool": "wharf/echo", "inputs": {"n": 1}}));
    let run = stage.api.end_of("default", run["run_id"].as_str().expect("an id"));
    assert_eq!(run["status"], "succeeded", "{run}");
    tried(
        Peer::Client,
        "floods every socket at once, with others that flood the journal and the queue",
        "bounds on all that a peer can fill",
        "the core goes on, below 200 MiB",
    );
}

/// Tells what was measured, for whoever looks at the test's output.
fn tell(at_rest: u64, peak: u64, waiting: usize) {
    use std::io::Write as _;
    let told = format!("floods: {at_rest} MiB at rest, {peak} MiB at most, {waiting} runs wait");
    // Nothing is left to do if even standard error is gone.
    let _ = writeln!(std::io::stderr(), "{told}");
}
