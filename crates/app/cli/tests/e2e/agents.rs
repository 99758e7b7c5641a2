//! Agents as processes of their own: started, called, killed, stopped, outlived by nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{TestHome, wait_for};

pub(crate) const PYTHON: &str = "dev.wharf.hello-python";

/// Where an example lies.
pub(crate) fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../examples/agents").join(name)
}

/// Whether the machine has what the Python examples need; `make test` installs it where it can.
pub(crate) fn has_python() -> bool {
    !wharf_skips::lacks("python3")
}

/// A folder with an agent that is this program in Python, with the runtime beside it.
pub(crate) fn python_agent(id: &str, permissions: &[&str], program: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../sdks/python/src/wharf_sdk/wharf_agent.py");
    std::fs::copy(runtime, folder.path().join("wharf_agent.py")).expect("copied");
    std::fs::write(folder.path().join("agent.py"), program).expect("written");
    let manifest = json!({
        "id": id, "version": "0.1.0", "permissions": permissions,
        "entrypoint": {"type": "command", "value": "python3", "args": ["agent.py"]},
    });
    let path = folder.path().join("opensentience.agent.json");
    std::fs::write(path, manifest.to_string()).expect("written");
    folder
}

/// Adds, approves and starts the Python example.
fn start_python(home: &TestHome) {
    let folder = example("hello-python");
    home.run(&["agents", "add", folder.to_str().expect("text")]).code(0);
    home.run(&["agents", "approve", PYTHON, "--all"]).code(0);
    home.run(&["agents", "start", PYTHON]).code(0);
}

fn agent(home: &TestHome) -> Value {
    home.run(&["agents", "show", PYTHON, "--json"]).code(0).json()
}

/// The agent's process once it runs.
fn running(home: &TestHome) -> Pid {
    wait_for("the agent to run", || {
        let agent = agent(home);
        let pid = i32::try_from(agent["pid"].as_i64()?).ok()?;
        (agent["state"] == "running").then(|| Pid::from_raw(pid))?
    })
}

fn is_alive(pid: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
        .is_ok_and(|stat| !stat.contains(") Z "))
}

/// Where a process listens: addresses of IPv4 and IPv6, as the kernel writes them, and ports.
fn listening(pid: i64) -> Vec<(String, u16)> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its files");
    let names = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    let sockets: Vec<String> = names
        .filter_map(|name| {
            Some(name.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').into())
        })
        .collect();
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            // 0A is the state of listening.
            if words[3] == "0A" && sockets.iter().any(|socket| socket == words[9]) {
                let (address, port) = words[1].split_once(':').expect("an address");
                found.push((address.to_owned(), u16::from_str_radix(port, 16).expect("a port")));
            }
        }
    }
    found
}

#[test]
fn r014_in_a_default_start_no_port_is_there_for_agents() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    start_python(&home);
    running(&home);
    let ports = listening(core.pid());
    assert!(!ports.is_empty(), "the API is found");
    let hello =
        br#"{"v":1,"type":"agent.hello","id":"a-1","ts":"2026-11-15T10:00:00Z","payload":{}}"#;
    let length = u32::try_from(hello.len()).expect("small").to_be_bytes();
    for (address, port) in ports {
        assert_eq!(address, "0100007F", "{port} is open to others than this machine");
        // Each is one of the API or of storage, and speaks nothing but HTTP.
        let say = |said: &[&[u8]]| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
            for part in said {
                // It may hang up in the middle.
                let _ = stream.write_all(part);
            }
            stream
        };
        let answer_of = |mut stream: TcpStream| {
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            String::from_utf8_lossy(&answer).into_owned()
        };
        // Whoever asks by HTTP and closes its half at once is taken to have gone away.
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let page = answer_of(say(&[request]));
        assert!(page.starts_with("HTTP/1.1 "), "{port} speaks something else: {page:?}");
        let greeting = say(&[&length, hello]);
        let _ = greeting.shutdown(std::net::Shutdown::Write);
        let welcome = answer_of(greeting);
        assert!(!welcome.contains("core.welcome"), "{port} lets agents in: {welcome:?}");
    }
}

#[test]
fn a_python_agent_streams_is_canceled_and_explains_wrong_inputs() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    start_python(&home);
    let tool = |name: &str| format!("{PYTHON}/{name}");
    let counted = home.run(&["run", &tool("stream_counter"), "n=20", "delay_ms=1"]).code(0);
    assert_eq!(counted.json()["status"], "succeeded");
    for number in 1..=20 {
        let seen = counted.stderr.lines().any(|line| line.contains(&number.to_string()));
        assert!(seen, "{number}: {counted:#?}");
    }
    home.run(&["run", &tool("hello_world")]).code(0);
    home.run(&["run", &tool("invalid_input"), "must_be=text"]).code(2);
    let started = home.run(&["run", &tool("sleep"), "ms=600000", "--detach"]).code(0).json();
    let id = started["run_id"].as_str().expect("an id").to_owned();
    home.run(&["runs", "cancel", &id]).code(0);
    let ended = wait_for("the cancel", || {
        let run = home.run(&["runs", "show", &id, "--json"]).code(0).json();
        (run["status"] == "canceled").then_some(run)
    });
    assert_eq!(ended["attempt"], 1);
    let table = home.run(&["agents", "list"]).code(0).stdout;
    assert!(table.contains(PYTHON) && table.contains("running"), "{table}");
    let pid = running(&home);
    core.stop().code(0);
    assert!(!is_alive(pid), "no agent outlives its core");
}

#[test]
fn a_killed_agent_is_started_again_and_its_call_is_explained() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    start_python(&home);
    let first = running(&home);
    let sleep = format!("{PYTHON}/sleep");
    let sleeping = home.run(&["run", &sleep, "ms=600000", "--detach"]).code(0).json();
    let id = sleeping["run_id"].as_str().expect("an id").to_owned();
    wait_for("the attempt", || {
        let run = home.run(&["runs", "show", &id, "--json"]).code(0).json();
        (run["attempt"] == 1).then_some(())
    });
    kill_process(first, Signal::KILL).expect("it runs");
    let second = wait_for("the next launch", || {
        let pid = running(&home);
        (pid != first).then_some(pid)
    });
    assert!(is_alive(second));
    wait_for("the call to have failed with the reason, or to be made again", || {
        let run = home.run(&["runs", "show", &id, "--json"]).code(0).json();
        (run["error"]["code"] == "tool.agent_lost" || run["attempt"] == 2).then_some(())
    });
    home.run(&["run", &format!("{PYTHON}/hello_world")]).code(0);
    home.run(&["agents", "stop", PYTHON]).code(0);
    assert!(!is_alive(second));
    let refused = home.run(&["run", &format!("{PYTHON}/hello_world")]).code(1);
    assert_eq!(refused.json()["error"]["code"], "tool.unavailable");
    assert!(!home.run(&["agents", "logs", PYTHON]).code(0).stdout.contains("token"));
}

#[test]
fn core_death_takes_its_agents_along_and_they_come_back_with_it() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    start_python(&home);
    let orphan = running(&home);
    core.kill();
    wait_for("the agent to be gone", || (!is_alive(orphan)).then_some(()));
    let core = home.up();
    let again = running(&home);
    assert_ne!(again, orphan, "what was started stays wanted");
    home.run(&["run", &format!("{PYTHON}/hello_world")]).code(0);
    core.stop().code(0);
}

#[test]
fn r141_a_stopped_process_is_unhealthy_and_r142_well_again_when_it_goes_on() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    std::fs::create_dir(home.path()).expect("makes");
    // Unhealthy after three intervals, given up after six: much may happen in between.
    let settings = "[agents]\nheartbeat_ms = 3000\n";
    std::fs::write(home.path().join("wharf.toml"), settings).expect("writes");
    let _core = home.up();
    start_python(&home);
    let pid = running(&home);
    kill_process(pid, Signal::STOP).expect("it runs");
    wait_for("the agent to be unhealthy", || (agent(&home)["state"] == "unhealthy").then_some(()));
    let refused = home.run(&["run", &format!("{PYTHON}/hello_world")]).code(1);
    assert_eq!(refused.json()["error"]["code"], "tool.agent_unhealthy");
    kill_process(pid, Signal::CONT).expect("it is there");
    wait_for("the agent to be well", || (agent(&home)["state"] == "running").then_some(()));
    home.run(&["run", &format!("{PYTHON}/hello_world")]).code(0);
}
