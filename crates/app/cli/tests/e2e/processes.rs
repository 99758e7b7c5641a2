//! Real processes of agents: whose token it is, which run has which process, whose files they are.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agents::{example, has_python};
use crate::support::{LONG, TestHome, wait_for};

/// A folder with the Python example under another id, started in this way.
fn put(dir: &Path, id: &str, entrypoint: &Value, more: &Value) -> PathBuf {
    let folder = dir.join(id);
    std::fs::create_dir_all(&folder).expect("made");
    let program = std::fs::read_to_string(example("hello-python").join("agent.py")).expect("read");
    let program = program.replace("dev.wharf.hello-python", id);
    std::fs::write(folder.join("agent.py"), program).expect("written");
    let mut manifest =
        json!({"id": id, "version": "1.0.0", "permissions": [], "entrypoint": entrypoint});
    for (name, value) in more.as_object().expect("an object") {
        manifest[name] = value.clone();
    }
    let text = manifest.to_string();
    std::fs::write(folder.join("opensentience.agent.json"), text).expect("written");
    folder
}

fn python() -> Value {
    json!({"type": "command", "value": "python3", "args": ["agent.py"]})
}

fn approve(home: &TestHome, id: &str, folder: &Path) {
    home.run(&["agents", "add", folder.to_str().expect("text")]).code(0);
    home.run(&["agents", "approve", id, "--all"]).code(0);
}

fn start(home: &TestHome, id: &str, folder: &Path) {
    approve(home, id, folder);
    home.run(&["agents", "start", id]).code(0);
}

fn show(home: &TestHome, id: &str) -> Value {
    home.run(&["agents", "show", id, "--json"]).code(0).json()
}

fn running(home: &TestHome, id: &str) -> i64 {
    wait_for("the agent to run", || {
        let agent = show(home, id);
        (agent["state"] == "running").then(|| agent["pid"].as_i64())?
    })
}

fn is_alive(pid: i64) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// A variable of a process, as another process of the same user can read it.
fn variable(pid: i64, name: &str) -> Option<String> {
    let all = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let texts = all.split(|byte| *byte == 0).filter_map(|one| std::str::from_utf8(one).ok());
    texts
        .filter_map(|one| one.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
}

#[test]
fn r050_an_agent_behind_wrappers_is_let_in() {
    if !has_python() {
        return;
    }
    let (home, dir) = (TestHome::new(), tempfile::tempdir().expect("a folder"));
    let core = home.up();
    let told = "env X=1 sh -c 'python3 agent.py; true'; true";
    let entrypoint = json!({"type": "command", "value": "sh", "args": ["-c", told]});
    let folder = put(dir.path(), "dev.example.wrapped", &entrypoint, &json!({}));
    start(&home, "dev.example.wrapped", &folder);
    running(&home, "dev.example.wrapped");
    home.run(&["run", "dev.example.wrapped/hello_world", "name=x"]).code(0);
    core.stop().code(0);
}

#[test]
fn r050_a_token_that_was_stolen_from_the_environment_lets_no_stranger_in() {
    let (home, dir) = (TestHome::new(), tempfile::tempdir().expect("a folder"));
    let core = home.up();
    // It never connects, so its token is still good when it is stolen.
    let entrypoint = json!({"type": "command", "value": "sleep", "args": ["600"]});
    let folder = put(dir.path(), "dev.example.sleeper", &entrypoint, &json!({}));
    approve(&home, "dev.example.sleeper", &folder);
    let _starting = home.spawn(&["agents", "start", "dev.example.sleeper"]);
    let (socket, token) = wait_for("the process", || {
        let pid = show(&home, "dev.example.sleeper")["pid"].as_i64()?;
        let socket = variable(pid, "OPENSENTIENCE_SOCKET")?;
        Some((socket, variable(pid, "OPENSENTIENCE_SESSION_TOKEN")?))
    });
    let mut stranger = UnixStream::connect(socket).expect("connects");
    stranger.set_read_timeout(Some(LONG)).expect("set");
    let hello = json!({
        "v": 1, "type": "agent.hello", "id": "a-1", "ts": "2026-11-15T10:00:00Z",
        "payload": {
            "session_token": token, "agent_id": "dev.example.sleeper", "agent_version": "1.0.0",
            "protocol": {"supported_versions": [1], "capabilities": []},
        },
    });
    let bytes = hello.to_string().into_bytes();
    let length = u32::try_from(bytes.len()).expect("small").to_be_bytes();
    stranger.write_all(&[&length[..], &bytes].concat()).expect("written");
    let mut answer = Vec::new();
    stranger.read_to_end(&mut answer).expect("it closes");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains("protocol.unauthorized"), "{answer}");
    assert!(!answer.contains("outside"), "it is not told why: {answer}");
    // The stranger is turned away first, and then it is written down.
    let audit = wait_for("the record of it", || {
        let audit = home.run(&["audit", "tail"]).code(0).stdout;
        audit.contains("process outside the launch").then_some(audit)
    });
    assert!(!audit.contains(&token), "{audit}");
    core.stop().code(0);
}

#[test]
fn each_run_has_a_process_of_its_own_and_a_cancel_kills_it() {
    if !has_python() {
        return;
    }
    let (home, dir) = (TestHome::new(), tempfile::tempdir().expect("a folder"));
    let core = home.up();
    let id = "dev.example.alone";
    let folder = put(dir.path(), id, &python(), &json!({"isolation": "run"}));
    start(&home, id, &folder);
    let first = running(&home, id);
    home.run(&["run", "dev.example.alone/hello_world", "name=x"]).code(0);
    wait_for("the first process to end", || (!is_alive(first)).then_some(()));
    let second = wait_for("a new process", || {
        let agent = show(&home, id);
        (agent["state"] == "running").then(|| agent["pid"].as_i64())?
    });
    assert_ne!(first, second);
    let started = home.run(&["run", "dev.example.alone/sleep", "ms=600000", "--detach"]).code(0);
    let run_id = started.json()["run_id"].as_str().expect("an id").to_owned();
    wait_for("the run to start", || {
        let run = home.run(&["runs", "show", &run_id, "--json"]).code(0).json();
        (run["status"] == "running").then_some(())
    });
    home.run(&["runs", "cancel", &run_id]).code(0);
    wait_for("the process to end", || (!is_alive(second)).then_some(()));
    core.stop().code(0);
}

#[test]
fn r084_a_program_that_changes_while_it_runs_is_called_no_more() {
    if !has_python() {
        return;
    }
    let (home, dir) = (TestHome::new(), tempfile::tempdir().expect("a folder"));
    let core = home.up();
    let id = "dev.example.shifty";
    let folder = put(dir.path(), id, &python(), &json!({}));
    start(&home, id, &folder);
    let pid = running(&home, id);
    home.run(&["run", "dev.example.shifty/hello_world", "name=x"]).code(0);
    let mut program =
        std::fs::File::options().append(true).open(folder.join("agent.py")).expect("opened");
    program.write_all(b"# and more\n").expect("written");
    let refused = home.run(&["run", "dev.example.shifty/hello_world", "name=x"]);
    let said = format!("{} {}", refused.stdout, refused.stderr);
    assert!(said.contains("agent.drifted") && said.contains("agent.py was changed"), "{said}");
    wait_for("the process to end", || (!is_alive(pid)).then_some(()));
    wait_for("its state", || (show(&home, id)["state"] == "drifted").then_some(()));
    home.run(&["agents", "approve", id, "--all"]).code(0);
    home.run(&["agents", "start", id]).code(0);
    running(&home, id);
    core.stop().code(0);
}

#[test]
fn an_agent_with_an_inherited_connection_has_no_token_to_steal() {
    if !has_python() {
        return;
    }
    let (home, dir) = (TestHome::new(), tempfile::tempdir().expect("a folder"));
    let core = home.up();
    let id = "dev.example.heir";
    let folder = put(dir.path(), id, &python(), &json!({"connection": "descriptor"}));
    start(&home, id, &folder);
    let pid = running(&home, id);
    assert_eq!(variable(pid, "OPENSENTIENCE_SOCKET").as_deref(), Some("fd:3"));
    assert_eq!(variable(pid, "OPENSENTIENCE_SESSION_TOKEN"), None);
    home.run(&["run", "dev.example.heir/hello_world", "name=x"]).code(0);
    core.stop().code(0);
}
