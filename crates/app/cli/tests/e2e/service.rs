//! A core under a service manager: what it is told, the units, and sockets that are handed over.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use crate::children::{self, Finish as _, command};
use crate::support::{LONG, TestHome, wait_for};

/// The socket of a service manager.
struct Manager {
    socket: UnixDatagram,
    folder: tempfile::TempDir,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("bound");
        socket.set_read_timeout(Some(LONG)).expect("set");
        Self { socket, folder }
    }

    fn address(&self) -> String {
        self.folder.path().join("notify").display().to_string()
    }

    /// What it is told next.
    fn next(&self, waiting_for: &str) -> String {
        let mut heard = [0; 4096];
        let count = self.socket.recv(&mut heard).unwrap_or_else(|error| {
            panic!("nothing came while waiting for {waiting_for}: {error}");
        });
        String::from_utf8_lossy(&heard[..count]).into_owned()
    }
}

#[test]
fn a_service_manager_learns_that_the_core_is_ready_alive_and_stopping() {
    let (home, manager) = (TestHome::new(), Manager::new());
    let address = manager.address();
    let variables = [("NOTIFY_SOCKET", address.as_str()), ("WATCHDOG_USEC", "200000")];
    let core = home.up_with(&variables);
    let ready = manager.next("READY=1");
    assert_eq!(ready, format!("READY=1\nSTATUS=ready at {}", core.url()));
    for _ in 0..3 {
        assert_eq!(manager.next("a sign of life"), "WATCHDOG=1");
    }
    let pid = i32::try_from(core.pid()).ok().and_then(rustix::process::Pid::from_raw);
    // A core that hangs gives no sign.
    kill_process(pid.expect("a process"), Signal::STOP).expect("stopped");
    manager.socket.set_read_timeout(Some(Duration::from_millis(700))).expect("set");
    let mut heard = [0; 64];
    // What was sent before it hung may still lie there.
    let silent = (0..10).any(|_| manager.socket.recv(&mut heard).is_err());
    assert!(silent, "a process that stands still gave signs of life");
    kill_process(pid.expect("a process"), Signal::CONT).expect("goes on");
    manager.socket.set_read_timeout(Some(LONG)).expect("set");
    assert_eq!(manager.next("a sign of life"), "WATCHDOG=1");
    core.stop().code(0);
    let stopping = std::iter::repeat_with(|| manager.next("STOPPING=1"))
        .find(|said| said.starts_with("STOPPING=1\n"));
    assert!(stopping.is_some());
}

/// Hands a socket over as systemd does: under the number 3, to the process that is meant.
const HAND_OVER: &str = "
import os, socket, sys
listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen()
port = listener.getsockname()[1]
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ['LISTEN_FDS'] = '1'
os.environ['LISTEN_PID'] = str(os.getpid())
with open(sys.argv[1], 'w') as port_file:
    port_file.write(str(port))
os.execv(sys.argv[2], sys.argv[2:])
";

#[test]
fn a_core_listens_on_the_socket_that_it_is_handed() {
    let home = TestHome::new();
    let folder = tempfile::tempdir().expect("a folder");
    let port_file = folder.path().join("port");
    let wharf = home.wharf(&["up"]);
    let mut command = command("python3");
    command.args(["-c", HAND_OVER]).arg(&port_file).arg(wharf.get_program()).arg("up");
    command.env("WHARF_HOME", home.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("python3 starts");
    let info = wait_for("the core to be ready", || {
        let text = std::fs::read(home.path().join("run/core.json")).ok()?;
        serde_json::from_slice::<serde_json::Value>(&text).ok()
    });
    let port = std::fs::read_to_string(&port_file).expect("a port");
    assert_eq!(info["http"], format!("http://127.0.0.1:{port}"));
    home.run(&["run", "wharf/count", "n=2"]).code(0);
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::TERM).expect("told");
    assert!(children::ended(child, "the core", LONG).status.success());
}

/// Whether systemd takes a unit as it is.
fn verified(units: &[&Path], scope: &str) {
    let mut command = command("systemd-analyze");
    command.args([scope, "--man=no", "verify"]).args(units);
    let done = command.finish();
    let said = String::from_utf8_lossy(&done.stderr);
    // What it says of other units of this machine is not about ours.
    let ours = said.lines().filter(|line| line.contains("wharf"));
    // Systemd has known it since version 254, and does without it before.
    let ours: Vec<_> = ours.filter(|line| !line.contains("'DelegateSubgroup'")).collect();
    assert!(ours.is_empty(), "{said}");
}

#[test]
fn the_units_are_written_and_removed_and_systemd_takes_them() {
    let home = TestHome::new();
    let config = tempfile::tempdir().expect("a folder");
    let run = |words: &[&str]| {
        let mut command = home.wharf(words);
        command.env("XDG_CONFIG_HOME", config.path()).finish()
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(run(&["service", "status"]).status.code(), Some(1));
    let written = run(&["service", "install", "--no-start", "--socket", "--listen", "127.0.0.1:1"]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    assert!(text(&written.stderr).contains("enable --now wharf.socket"));
    let folder = config.path().join("systemd/user");
    let (service, socket) = (folder.join("wharf.service"), folder.join("wharf.socket"));
    let unit = std::fs::read_to_string(&service).expect("written");
    let program = home.wharf(&[]).get_program().display().to_string();
    let exec = format!("ExecStart={program} up --home {}\n", home.path().display());
    assert!(unit.contains(&exec), "{unit}");
    let listens = std::fs::read_to_string(&socket).expect("written");
    assert!(listens.contains("ListenStream=127.0.0.1:1\n"), "{listens}");
    let status = run(&["service", "status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(status["unit"], service.display().to_string());
    if !wharf_skips::lacks("systemd-analyze") {
        verified(&[&service, &socket], "--user");
        let system = run(&["service", "install", "--system", "--print"]);
        let unit = text(&system.stdout);
        assert!(unit.contains(&format!("ExecStart={program} up\n")), "{unit}");
        let path = config.path().join("wharf.service");
        std::fs::write(&path, unit).expect("written");
        verified(&[&path], "--system");
    }
    assert!(run(&["service", "uninstall"]).status.success());
    assert!(!service.exists() && !socket.exists());
    assert_eq!(run(&["service", "uninstall"]).status.code(), Some(2));
}

#[test]
fn the_command_of_the_unit_starts_a_core() {
    let home = TestHome::new();
    let manager = Manager::new();
    let printed = home.run(&["service", "install", "--print", "--listen", "127.0.0.1:0"]).code(0);
    let exec = printed.stdout.lines().find_map(|line| line.strip_prefix("ExecStart="));
    let words: Vec<&str> = exec.expect("a command").split(' ').collect();
    let mut command = command(words[0]);
    command.args(&words[1..]).env("NOTIFY_SOCKET", manager.address());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("starts");
    assert!(manager.next("READY=1").starts_with("READY=1\n"));
    home.run(&["run", "wharf/count", "n=2"]).code(0);
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::TERM).expect("told");
    assert!(manager.next("STOPPING=1").starts_with("STOPPING=1\n"));
    assert!(children::ended(child, "the core", LONG).status.success());
}
