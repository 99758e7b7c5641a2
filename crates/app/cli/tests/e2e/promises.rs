//! What the agent protocol promises, as an owner sets and sees it: `wharf.toml`, the command line,
//! server-sent events, and an agent of the Python runtime.

use serde_json::{Value, json};

use crate::agents::{has_python, python_agent};
use crate::support::{Api, Core, TestHome, wait_for};

const AGENT: &str = "dev.example.promises";
const SECRET: &str = "c4n4ry-of-the-vault";

const PROGRAM: &str = r#"
import os
import struct
import wharf_agent as wharf

def secret():
    return open(os.environ["WHARF_SECRETS_DIR"] + "/API_KEY").read()

def act(call):
    return {"mode": call.mode, "correlation": call.message.get("correlation_id"),
            "trace": call.message.get("traceparent"), "given": call.input,
            "who": (call.message.get("actor") or {}).get("display")}

def leak(call):
    value = secret()
    call.stream("stdout", text="the key is " + value[:9])
    call.stream("stdout", text=value[9:] + ", order 4711-0815, and that is all\n")
    call.log("log of " + value)
    print("printed order 1234-5678", flush=True)
    raise wharf.Failed("acme.refused", value + " is wrong", header="Bearer " + value)

def rude(call):
    call.session.connection.send("agent.dance", {})
    call.pause(0.2)
    return {}

def huge(call):
    connection = call.session.connection
    size = connection.send_bytes_max + 1
    with connection._writing:
        connection._socket.sendall(struct.pack(">I", size) + b"x" * size)
    return {"limit": connection.send_bytes_max}

def crash(call):
    os._exit(3)

def slow(call):
    call.stream("stdout", text="first piece\n")
    call.phase("waiting", 0.25)
    call.pause(600)
    return {}

tools = [
    wharf.Tool("act", act, "Says how it was called.", {"n": {"type": "integer"}}, ["n"],
               mock=True, tags=["demo", "text"]),
    wharf.Tool("leak", leak, "Shows what it should not.", {}),
    wharf.Tool("rude", rude, "Says what nobody knows.", {}, side_effects=True),
    wharf.Tool("huge", huge, "Sends more than it may.", {}, side_effects=True),
    wharf.Tool("crash", crash, "Ends its process.", {}, side_effects=True),
    wharf.Tool("slow", slow, "Takes its time.", {}),
]
wharf.serve("dev.example.promises", "0.1.0", tools)
"#;

/// The agent in a folder of its own, with the runtime beside it.
fn folder() -> tempfile::TempDir {
    python_agent(AGENT, &["secret:use:API_KEY"], PROGRAM)
}

fn started(home: &TestHome, folder: &tempfile::TempDir) -> Core {
    let core = home.up();
    home.run_with(SECRET.as_bytes(), &["secret", "set", "API_KEY"]).code(0);
    home.run(&["agents", "add", folder.path().to_str().expect("text")]).code(0);
    home.run(&["agents", "approve", AGENT, "--all"]).code(0);
    home.run(&["agents", "start", AGENT]).code(0);
    core
}

fn tool(name: &str) -> String {
    format!("{AGENT}/{name}")
}

#[test]
fn r085_r034_r089_an_agent_is_called_and_shown_as_its_owner_set_it() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    home.configure(&format!("[agents.only.\"{AGENT}\"]\ninput_check = \"warn\"\n"));
    let folder = folder();
    let core = started(&home, &folder);
    let run = home.run(&["run", &tool("act"), "n=1", "--mode", "mock"]).code(0).json();
    assert_eq!((&run["mode"], &run["outputs"]["mode"]), (&json!("mock"), &json!("mock")));
    assert_eq!(run["outputs"]["correlation"], run["run_id"], "it names what it is part of");
    assert_eq!(run["outputs"]["who"], "owner");
    let refused = home.run(&["run", &tool("slow"), "--mode", "mock"]);
    assert!(refused.stderr.contains("run.mode_unsupported"), "{refused:?}");

    let shown = home.run(&["tools", "show", &tool("act")]).code(0).stdout;
    for said in ["mock mode", "demo, text", "streaming, cancellation, mock"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    wait_for("a heartbeat", || {
        let agent = home.run(&["agents", "show", AGENT, "--json"]).code(0).json();
        (agent["health"]["status"] == "ok").then_some(())
    });
    assert!(home.run(&["agents", "show", AGENT]).code(0).stdout.contains("0 calls under way"));

    let passed = home.run(&["run", &tool("act"), "m=1"]).code(0);
    assert_eq!(passed.json()["outputs"]["given"], json!({"m": 1}), "let pass");
    assert!(passed.stderr.contains("all the same"), "with a warning: {}", passed.stderr);

    let api = Api::of(&core);
    let query = json!({"query": format!("{{ tool(id: \"{}\") {{ tags capabilities mock }} }}", tool("act"))});
    let (status, answer) = api.ask("POST", "/graphql", &query);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["data"]["tool"]["tags"], json!(["demo", "text"]), "{answer}");
    core.stop().code(0);
}

#[test]
fn r115_r152_secrets_and_patterns_are_cut_out_on_the_way_to_the_database() {
    if !has_python() {
        return;
    }
    for (settings, shows_secret) in [("", false), ("secrets = false\n", true)] {
        let home = TestHome::new();
        home.configure(&format!("[redaction]\n{settings}patterns = [\"[0-9]{{4}}-[0-9]{{4}}\"]\n"));
        let folder = folder();
        let core = started(&home, &folder);
        let ended = home.run(&["run", &tool("leak")]).code(1);
        let id = ended.json()["run_id"].as_str().expect("an id").to_owned();
        let watched = home.run(&["runs", "watch", &id, "--json"]).code(1).stdout;
        let shown = format!("{}{}{watched}", ended.stdout, ended.stderr);
        assert_eq!(shown.contains(SECRET), shows_secret, "{shown}");
        assert!(shown.contains("and that is all") && !shown.contains("4711-0815"), "{shown}");
        let logs = wait_for("what it printed", || {
            let logs = home.run(&["agents", "logs", AGENT]).code(0).stdout;
            logs.contains("printed order").then_some(logs)
        });
        assert!(logs.contains("[redacted]") && !logs.contains("1234-5678"), "{logs}");
        core.stop().code(0);
        let stored = std::fs::read(home.path().join("wharf.db")).expect("readable");
        let wal = std::fs::read(home.path().join("wharf.db-wal")).unwrap_or_default();
        let holds =
            |bytes: &[u8]| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        assert_eq!(holds(&stored) || holds(&wal), shows_secret, "cut out before it is kept");
    }
}

#[test]
fn r167_streams_are_shown_while_they_come_on_the_command_line_and_over_events() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let folder = folder();
    let core = started(&home, &folder);
    let mut running = home.spawn(&["run", &tool("slow"), "--run-id", "slow-1"]);
    running.until_stderr("first piece");
    let api = Api::of(&core);
    api.read_until("/v1/runs/slow-1/events", "first piece");
    let run: Value = api.get("/v1/runs/slow-1");
    assert_eq!(run["status"], "running", "it was shown before it ended");
    home.run(&["runs", "cancel", "slow-1"]).code(0);
    running.wait();
    core.stop().code(0);
}

/// The audit's records of an event.
fn audited(home: &TestHome, event: &str) -> Vec<Value> {
    let audit = home.run(&["audit", "export"]).code(0).stdout;
    let records = audit.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    records.filter(|record| record["event"] == event).collect()
}

#[test]
fn r011_r146_r149_the_owner_says_what_becomes_of_odd_frames_and_crashes() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    home.configure(&format!(
        "[agents.all]\nstrict = true\n[agents.only.\"{AGENT}\"]\nstrict = false\n\
         oversize = \"reject\"\nmax_frame_bytes = 131072\nrestart.crashes_max = 1\n"
    ));
    let folder = folder();
    let core = started(&home, &folder);
    home.run(&["run", &tool("rude")]).code(0);
    let run = home.run(&["run", &tool("huge")]).code(0).json();
    assert_eq!(run["outputs"]["limit"], 131_072);
    let records = audited(&home, "agent.protocol_violation");
    let [record] = &records[..] else { panic!("{records:?}") };
    let facts = &record["facts"];
    assert_eq!((&facts["frame_bytes"], &facts["limit_bytes"]), (&json!(131_073), &json!(131_072)));
    let lost = home.run(&["run", &tool("crash")]).code(1).json();
    assert_eq!(lost["error"]["code"], "tool.agent_lost");
    wait_for("the agent to be given up", || {
        let agent = home.run(&["agents", "show", AGENT, "--json"]).code(0).json();
        (agent["state"] == "crashed").then_some(())
    });
    core.stop().code(0);
    // Without its own rules it has those of all agents.
    home.configure("[agents.all]\nstrict = true\n");
    let core = home.up();
    home.run(&["agents", "start", AGENT]).code(0);
    let lost = home.run(&["run", &tool("rude")]).code(1).json();
    assert_eq!(lost["error"]["code"], "tool.agent_lost", "a strict core hangs up");
    core.stop().code(0);
}
