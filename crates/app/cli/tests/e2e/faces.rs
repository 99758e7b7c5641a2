//! One agent in four faces: the same input gives the same output and the same progress, whether it
//! is an agent process, a tool server, an operative, or has a core of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::children::{BUILD, Finish as _, command, first_line};
use crate::examples::json_of;
use crate::support::{Api, Core, LONG, TestHome, wait_for};

/// The example, as it is built beside the program under test.
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_wharf")).with_file_name("faces");
    if !program.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let arguments = ["build", "-p", "faces-example", "--bin", "faces"];
        let built = command(cargo).args(arguments).finish_within(BUILD);
        assert!(built.status.success(), "{built:?}");
    }
    program
}

/// The example's folder as its page makes it.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let from = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../examples/sdk/faces");
    for name in ["opensentience.agent.json", "wharf.tool.toml"] {
        std::fs::copy(from.join(name), folder.path().join(name)).expect("copied");
    }
    std::fs::copy(program(), folder.path().join("faces")).expect("copied");
    folder
}

fn text(folder: &TempDir) -> &str {
    folder.path().to_str().expect("text")
}

fn start_agent(home: &TestHome, folder: &TempDir) {
    home.run(&["agents", "add", text(folder)]).code(0);
    home.run(&["agents", "approve", "dev.wharf.flight", "--all"]).code(0);
    home.run(&["agents", "start", "dev.wharf.flight"]).code(0);
}

/// The example as an operative; it is told to stop when the test ends.
struct Operative(Child);

impl Operative {
    fn start(home: &TestHome, core: &Core) -> Self {
        let made = home.run(&["token", "create", "--verb", "serve", "--tool", "flight/*"]).code(0);
        let mut child = command(program())
            .args(["operative", &core.url()])
            .env("WHARF_TOKEN", made.stdout.trim())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let output = child.stdout.take().expect("its output");
        let line = first_line(output, LONG, "the operative to say that it serves");
        let offered = json!({"tools": ["flight/search", "flight/book"]});
        assert_eq!(json_of(&line), offered);
        Self(child)
    }
}

impl Drop for Operative {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a face shows of a search: its outputs, its progress, its cost.
#[derive(Debug, PartialEq)]
struct Shown {
    outputs: Value,
    progress: Vec<Value>,
    cost: Value,
}

/// A search through a core.
fn through(home: &TestHome, tool: &str) -> Shown {
    let run = home.run(&["run", tool, "to=Oslo"]).code(0).json();
    let id = run["run_id"].as_str().expect("an id");
    let events = home.run(&["runs", "watch", id, "--json"]).code(0).stdout;
    let events = events.lines().map(json_of);
    let partial = events.filter(|event| event["event"] == "partial");
    let progress = partial.map(|event| event["data"]["value"].clone()).collect();
    Shown { outputs: run["outputs"].clone(), progress, cost: run["cost_micro"].clone() }
}

/// A search in a core of its own.
fn embedded() -> Shown {
    let output = command(program()).args(["embedded", r#"{"to": "Oslo"}"#]).finish();
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).expect("text").lines().map(json_of).collect();
    let (last, progress) = lines.split_last().expect("it says something");
    let progress = progress.iter().map(|line| line["progress"].clone()).collect();
    Shown { outputs: last["outputs"].clone(), progress, cost: last["cost"].clone() }
}

#[test]
fn k015_k016_k020_an_agent_is_the_same_in_all_four_faces() {
    let flight =
        |airline: &str, price: u32| json!({"airline": airline, "to": "Oslo", "price": price});
    let step =
        |step: u32, airline: &str| json!({"step": step, "doing": format!("asking {airline}")});
    let expected = Shown {
        outputs: json!({"value": [flight("Crab Air", 100), flight("Gull Lines", 200)]}),
        progress: vec![step(1, "Crab Air"), step(2, "Gull Lines")],
        cost: json!(10),
    };
    assert_eq!(embedded(), expected);
    let (home, folder) = (TestHome::new(), folder());
    let core = home.up();
    start_agent(&home, &folder);
    assert_eq!(through(&home, "dev.wharf.flight/search"), expected);
    home.run(&["tools", "add", text(&folder), "--approve"]).code(0);
    assert_eq!(through(&home, "flight/search@1"), expected);
    let _operative = Operative::start(&home, &core);
    assert_eq!(through(&home, "flight/search"), expected);
}

/// Starts a booking, answers what it asks, and gives its output.
fn booked(api: &Api, tool: &str) -> Value {
    let inputs = json!({"airline": "Crab Air", "to": "Oslo", "price": 100});
    let run = api.start(&json!({"tool": tool, "inputs": inputs}));
    let id = run["run_id"].as_str().expect("an id");
    let ask = wait_for("the question", || {
        let inbox = api.get("/v1/inbox");
        let mut asks = inbox["items"].as_array().expect("a list").iter();
        asks.find(|ask| ask["run_id"] == id).cloned()
    });
    assert_eq!(ask["title"], "Fly to Oslo with Crab Air for 100?");
    let answer = format!("/v1/questions/{}/answer", ask["ask_id"].as_str().expect("an id"));
    assert_eq!(api.ask("POST", &answer, &json!({"value": {"ok": "yes"}})).0, 422);
    assert_eq!(api.ask("POST", &answer, &json!({"value": {"ok": true}})).0, 204);
    api.end_of("default", id)["outputs"].clone()
}

#[test]
fn k018_k019_a_question_of_the_agent_reaches_the_inbox_from_a_process_and_an_operative() {
    let (home, folder) = (TestHome::new(), folder());
    let core = home.up();
    let api = Api::of(&core);
    start_agent(&home, &folder);
    let booked_it = json!({"value": "booked with Crab Air"});
    assert_eq!(booked(&api, "dev.wharf.flight/book"), booked_it);
    let _operative = Operative::start(&home, &core);
    assert_eq!(booked(&api, "flight/book"), booked_it);
}
