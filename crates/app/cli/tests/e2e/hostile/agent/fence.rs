//! The hostile agent under the fence that every agent gets: each attempt is made for real, must be
//! stopped, and what stopped it is what `docs/security.md` shows.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::security_page::{Audit, Peer, tried_and_audited};
use crate::support::{Core, TestHome, wait_for};

pub(crate) const HOSTILE: &str = "dev.wharf.hostile";

/// Everything outside that the attempts aim at. All of it is real and would answer.
struct Targets {
    dir: tempfile::TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    _sockets: [UnixListener; 2],
    abstract_name: String,
    sibling: i64,
}

impl Targets {
    fn set_up(home: &TestHome) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("diary.txt"), "private").expect("written");
        let abstract_name = format!("wharf-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
        let sockets = [
            UnixListener::bind(dir.path().join("container.sock")).expect("a socket"),
            UnixListener::bind_addr(&address).expect("a socket"),
        ];
        start(home, "hello-python", "dev.wharf.hello-python");
        let sibling = running(home, "dev.wharf.hello-python");
        Self {
            tcp: TcpListener::bind("127.0.0.1:0").expect("a port"),
            udp: UdpSocket::bind("127.0.0.1:0").expect("a port"),
            _sockets: sockets,
            abstract_name,
            dir,
            sibling,
        }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }
}

pub(crate) fn start(home: &TestHome, folder: &str, id: &str) {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../examples/agents");
    let folder = examples.join(folder);
    home.run(&["agents", "add", folder.to_str().expect("text")]).code(0);
    home.run(&["agents", "approve", id, "--all"]).code(0);
    home.run(&["agents", "start", id]).code(0);
}

pub(crate) fn running(home: &TestHome, id: &str) -> i64 {
    wait_for("the agent to run", || {
        let agent = home.run(&["agents", "show", id, "--json"]).code(0).json();
        (agent["state"] == "running").then(|| agent["pid"].as_i64())?
    })
}

/// What the page says of an attempt.
pub(super) type Row = (Peer, &'static str, &'static str);

/// Notes what came of an attempt.
#[track_caller]
pub(super) fn stopped(home: &TestHome, audit: &mut Audit, (peer, title, by): Row, came_back: &str) {
    tried_and_audited(peer, title, by, came_back, &audit.fresh(home));
}

/// What is tried and what comes of it when nothing is taken too much of.
fn attempts(home: &TestHome, core: &Core, targets: &Targets) -> Vec<(&'static str, Row, Value)> {
    let core_port = core.url().rsplit_once(':').expect("a port").1.parse::<u16>().expect("a port");
    let tcp = targets.tcp.local_addr().expect("bound").port();
    let udp = targets.udp.local_addr().expect("bound").port();
    let in_home = |name: &str| home.path().join(name).display().to_string();
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../examples/agents/hostile");
    let own = own.canonicalize().expect("there").join("agent.py").display().to_string();
    let core_pid = core.pid();
    vec![
        (
            "read_file",
            (Peer::Agent, "reads a file outside", "mount namespace: the file is not there"),
            json!({"path": targets.path("diary.txt")}),
        ),
        (
            "read_file",
            (Peer::Agent, "reads the owner's token", "mount namespace: the home is not there"),
            json!({"path": in_home("run/owner.token")}),
        ),
        (
            "read_file",
            (Peer::Agent, "reads the database", "mount namespace: the home is not there"),
            json!({"path": in_home("wharf.db")}),
        ),
        (
            "write_file",
            (Peer::Agent, "writes a file outside", "mount namespace: the folder is not there"),
            json!({"path": targets.path("planted.txt")}),
        ),
        (
            "write_file",
            (Peer::Agent, "changes its own program", "read-only mount and Landlock"),
            json!({"path": own}),
        ),
        (
            "write_file",
            (Peer::Agent, "changes a program of the system", "read-only mount and Landlock"),
            json!({"path": "/usr/bin/env"}),
        ),
        (
            "connect_tcp",
            (Peer::Agent, "connects out by TCP", "network namespace and Landlock"),
            json!({"host": "127.0.0.1", "port": tcp}),
        ),
        (
            "connect_tcp",
            (Peer::Agent, "connects to the core's API", "network namespace and Landlock"),
            json!({"host": "127.0.0.1", "port": core_port}),
        ),
        (
            "send_udp",
            (Peer::Agent, "sends out by UDP", "seccomp: no datagram sockets"),
            json!({"host": "127.0.0.1", "port": udp}),
        ),
        (
            "by_proxy",
            (Peer::Agent, "asks the way out for a host nobody approved", "the core's proxy"),
            json!({"host": "elsewhere.invalid:443"}),
        ),
        (
            "connect_unix",
            (Peer::Agent, "opens a container socket", "mount namespace: it is not there"),
            json!({"path": targets.path("container.sock")}),
        ),
        (
            "connect_unix",
            (Peer::Agent, "opens the other agents' socket", "mount namespace: it is not there"),
            json!({"path": in_home("run/agents.sock")}),
        ),
        (
            "connect_abstract",
            (Peer::Agent, "opens an abstract socket", "network namespace and Landlock"),
            json!({"name": targets.abstract_name}),
        ),
        (
            "ptrace",
            (Peer::Agent, "attaches to a sibling as a debugger", "seccomp: no ptrace"),
            json!({"pid": targets.sibling}),
        ),
        (
            "signal_other",
            (Peer::Agent, "kills a sibling", "pid namespace: it has no such process"),
            json!({"pid": targets.sibling}),
        ),
        (
            "see_processes",
            (Peer::Agent, "looks for the core among processes", "pid namespace"),
            json!({"pid": core_pid}),
        ),
        ("unshare", (Peer::Agent, "makes a namespace to become root in", "seccomp"), json!({})),
        (
            "mount",
            (Peer::Agent, "mounts over its own view", "seccomp and no capabilities"),
            json!({}),
        ),
        (
            "replay_token",
            (Peer::Agent, "says hello again with its token", "single-use token"),
            json!({}),
        ),
        (
            "call_tool",
            (Peer::Agent, "calls a tool nobody let it call", "the router's permission check"),
            json!({"tool_id": "wharf/sleep", "input": {"ms": 1}}),
        ),
    ]
}

#[test]
fn r083_r151_a_hostile_agent_is_stopped_at_every_attempt_and_each_is_written_down() {
    if !crate::agents::has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    let targets = Targets::set_up(&home);
    start(&home, "hostile", HOSTILE);
    running(&home, HOSTILE);
    let mut audit = Audit::of(&home, HOSTILE);
    for (tool, row, input) in attempts(&home, &core, &targets) {
        let tool = format!("{HOSTILE}/{tool}");
        let run = home.run(&["run", &tool, "--input", &input.to_string()]).code(0).json();
        let outputs = &run["outputs"];
        assert_eq!(outputs["stopped"], true, "{} was not stopped: {run}", row.1);
        stopped(&home, &mut audit, row, outputs["how"].as_str().unwrap_or(""));
    }
    assert!(!targets.dir.path().join("planted.txt").exists());
    assert!(targets.tcp.set_nonblocking(true).is_ok() && targets.tcp.accept().is_err());
    swaps_a_tool(&home, &mut audit);
    floods_frames(&home, &mut audit);
    takes_too_much(&home, &mut audit);
    leaves_nothing_behind(&home, &mut audit);
    // The others went on all the while.
    home.run(&["run", "dev.wharf.hello-python/hello_world"]).code(0);
    assert_eq!(running(&home, "dev.wharf.hello-python"), targets.sibling);
    core.stop().code(0);
}

/// A tool that changes its definition is set aside until somebody has looked at it.
fn swaps_a_tool(home: &TestHome, audit: &mut Audit) {
    let innocent = format!("{HOSTILE}/innocent");
    home.run(&["run", &innocent]).code(0);
    home.run(&["run", &format!("{HOSTILE}/swap_tool")]).code(0);
    let refused = wait_for("the quarantine", || {
        let run = home.run(&["run", &innocent]);
        (run.code != Some(0)).then_some(run)
    });
    assert!(refused.stdout.contains("tool.quarantined") || refused.stderr.contains("quarantine"));
    let diff = home.run(&["tools", "diff", &innocent]).code(0).stdout;
    assert!(diff.contains("sends your files away"), "{diff}");
    let row = (Peer::Agent, "swaps a tool's definition", "pinned definitions");
    stopped(home, audit, row, "tool.quarantined");
}

/// A flood of output ends the call that makes it, and nothing else.
fn floods_frames(home: &TestHome, audit: &mut Audit) {
    let run = home.run(&["run", &format!("{HOSTILE}/flood_frames")]).code(1).json();
    assert_eq!(run["error"]["code"], "tool.output_too_large", "{run}");
    let row = (Peer::Agent, "streams without end", "the call's stream budget");
    stopped(home, audit, row, "tool.output_too_large");
}

/// Whoever takes too much of something is stopped and named.
fn takes_too_much(home: &TestHome, audit: &mut Audit) {
    for (tool, row, resource) in [
        ("fork_bomb", (Peer::Agent, "forks without end", "the launch's limits"), "processes"),
        ("eat_memory", (Peer::Agent, "takes memory without end", "the launch's limits"), "memory"),
        ("fill_disk", (Peer::Agent, "fills its folder without end", "the launch's limits"), "disk"),
        ("flood_log", (Peer::Agent, "writes lines without end", "the launch's limits"), "log"),
        ("spin", (Peer::Agent, "keeps the processors busy for ever", "the launch's limits"), "cpu"),
    ] {
        start_anew(home);
        let run = home.run(&["run", &format!("{HOSTILE}/{tool}")]).code(1).json();
        assert_eq!(run["error"]["code"], "tool.agent_lost", "{run}");
        let named = wait_for("the end to be named", || {
            let records = Audit::records(home, HOSTILE);
            records.into_iter().find(|record| {
                record["event"] == "agent.resource_exceeded"
                    && record["facts"]["resource"] == resource
            })
        });
        assert_eq!(named["severity"], "error");
        stopped(home, audit, row, &format!("stopped: it went over its limit of {resource}"));
    }
}

/// Without waiting for the pause before a restart, and with its crashes forgotten.
pub(super) fn start_anew(home: &TestHome) {
    home.run(&["agents", "stop", HOSTILE]).code(0);
    home.run(&["agents", "start", HOSTILE]).code(0);
    running(home, HOSTILE);
}

/// Stop means stop, for a program that will not hear and for what it left behind.
fn leaves_nothing_behind(home: &TestHome, audit: &mut Audit) {
    start_anew(home);
    let marker = format!("left-behind-{}", std::process::id());
    let input = json!({"marker": marker}).to_string();
    home.run(&["run", &format!("{HOSTILE}/fork_away"), "--input", &input]).code(0);
    wait_for("the grandchild", || is_anywhere(&marker).then_some(()));
    home.run(&["run", &format!("{HOSTILE}/ignore_term")]).code(0);
    home.run(&["agents", "stop", HOSTILE]).code(0);
    assert!(!is_anywhere(&marker), "a grandchild outlived its agent");
    let how = "gone when the stop was answered";
    let row = (Peer::Agent, "forks away into its own session", "pid namespace");
    stopped(home, audit, row, how);
    let row = (Peer::Agent, "ignores TERM and goodbye", "KILL after the grace");
    stopped(home, audit, row, how);
}

/// Whether any process has this among its arguments.
fn is_anywhere(marker: &str) -> bool {
    let entries = std::fs::read_dir("/proc").expect("readable");
    let own = std::process::id().to_string();
    entries.flatten().filter(|entry| entry.file_name() != own.as_str()).any(|entry| {
        std::fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(marker))
    })
}
