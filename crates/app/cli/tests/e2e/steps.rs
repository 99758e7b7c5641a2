//! Durable steps in code: `docs/steps.md`, command by command, and an agent in Python that is
//! killed, with its core and without, between all of its steps.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agents::{has_python, python_agent};
use crate::page;
use crate::support::{Api, Core, TestHome, wait_for};
use crate::tool_servers;

const WALKER: &str = "dev.example.walker";
const COUNTER: &str = "dev.example.counter";
const STEPS: usize = 5;

/// Five steps and a value, with a pause after each step in which a test can kill something.
const WALK: &str = r#"
from wharf_sdk import Agent, Call

agent = Agent("dev.example.walker", "0.1.0")

@agent.tool(durable=True)
def walk(cx: Call) -> dict:
    "Walks."
    dice = cx.local("dice", lambda: cx.run_id)
    done = []
    for n in range(5):
        done.append(cx.step("add-%d" % n, "dev.example.counter/add", n=n)["n"])
        # Time in which a test can kill something; it does not pass again.
        cx.local("pause-%d" % n, lambda: cx.pause(1.2))
    return {"dice": dice, "done": done}

agent.run()
"#;

/// Counts what it has done where it outlives its process.
const COUNT: &str = r#"
import os
import wharf_agent as wharf

LEDGER = os.path.join(os.environ["OPENSENTIENCE_HOME"], "ledger")

def add(call):
    with open(LEDGER, "a") as ledger:
        ledger.write("%d\n" % call.input["n"])
    return {"n": call.input["n"]}

def lines(call):
    with open(LEDGER) as ledger:
        return {"lines": ledger.read().split()}

wharf.serve("dev.example.counter", "0.1.0", [
    wharf.Tool("add", add, "Adds a line.", {"n": {"type": "integer"}}, ["n"], side_effects=True),
    wharf.Tool("lines", lines, "Shows them.", {}),
])
"#;

/// Puts the package beside an agent.
fn with_package(folder: &tempfile::TempDir) {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../sdks/python/src/wharf_sdk");
    let beside = folder.path().join("wharf_sdk");
    std::fs::create_dir(&beside).expect("made");
    for file in std::fs::read_dir(package).expect("the package is there") {
        let file = file.expect("readable");
        if file.path().extension().is_some_and(|it| it == "py") {
            std::fs::copy(file.path(), beside.join(file.file_name())).expect("copied");
        }
    }
}

fn start(home: &TestHome, folder: &tempfile::TempDir, id: &str) {
    home.run(&["agents", "add", folder.path().to_str().expect("text")]).code(0);
    home.run(&["agents", "approve", id, "--all"]).code(0);
    home.run(&["agents", "start", id]).code(0);
}

/// How many steps are over.
fn finished(api: &Api) -> usize {
    let listed = api.get(&format!("/v1/runs?world=default&tool={COUNTER}/add&status=succeeded"));
    listed["items"].as_array().map_or(0, Vec::len)
}

/// The process of the agent that walks.
fn walker(home: &TestHome) -> Pid {
    wait_for("its process", || {
        let shown = home.run(&["agents", "show", WALKER, "--json"]).stdout;
        let shown: Value = serde_json::from_str(&shown).ok()?;
        let pid = i32::try_from(shown["pid"].as_i64()?).ok()?;
        Pid::from_raw(pid).filter(|_| shown["state"] == "running")
    })
}

#[test]
fn f022_f026_f041_an_agent_killed_between_all_its_steps_does_each_once() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let mut core: Core = home.up();
    let counter = python_agent(COUNTER, &[], COUNT);
    let walking = python_agent(WALKER, &[&format!("tool:invoke:{COUNTER}/*")], WALK);
    with_package(&walking);
    start(&home, &counter, COUNTER);
    start(&home, &walking, WALKER);
    home.run(&["run", &format!("{WALKER}/walk"), "--run-id", "w1", "--detach"]).code(0);
    for n in 1..STEPS {
        let (api, pid) = (Api::of(&core), walker(&home));
        wait_for("a step to be over", || (finished(&api) >= n).then_some(()));
        // The core with all its agents, the agent alone.
        if n % 2 == 1 {
            core.kill();
            core = home.up();
        } else {
            // It may have gone by itself meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let run = wait_for("its end", || {
        let run = Api::of(&core).get("/v1/runs/w1?world=default");
        run["ended_at"].is_string().then_some(run)
    });
    assert_eq!(run["status"], "succeeded", "{run}");
    assert_eq!(run["outputs"]["done"], json!([0, 1, 2, 3, 4]));
    let first = run["outputs"]["dice"].as_str().expect("the id of an attempt");
    assert!(run["attempt"].as_u64().expect("a number") >= 3, "{run}");
    assert!(first.contains("-"), "what the first attempt rolled: {first}");
    let lines = home.run(&["run", &format!("{COUNTER}/lines")]).code(0).json();
    assert_eq!(lines["outputs"]["lines"], json!(["0", "1", "2", "3", "4"]), "each once");
    core.stop().code(0);
}

/// The same on a tool server: each run has a process of its own, of a server that the core starts.
const STROLL: &str = r#"
from wharf_sdk import Context, tool

@tool(durable=True)
def stroll(cx: Context) -> dict:
    "Strolls."
    first = cx.local("first", lambda: cx.attempt)
    done = cx.each("add", "dev.example.counter/add", [{"n": n} for n in range(3)])
    cx.local("pause-0", lambda: cx.pause(1.2))
    done.append(cx.step("add", "dev.example.counter/add", n=3))
    cx.local("pause-1", lambda: cx.pause(1.2))
    done.append(cx.step("add", "dev.example.counter/add", n=4))
    return {"first": first, "done": [one["n"] for one in done], "attempt": cx.attempt}
"#;

#[test]
fn t048_f022_f028_f041_a_tool_server_killed_between_its_steps_does_each_once() {
    if !has_python() {
        return;
    }
    const TOOL: &str = "test/stroll@1";
    let home = TestHome::new();
    let mut core: Core = home.up();
    let counter = python_agent(COUNTER, &[], COUNT);
    start(&home, &counter, COUNTER);
    let more = format!("free = true\npermissions = [\"tool:invoke:{COUNTER}/*\"]");
    let folder = tool_servers::handler(TOOL, STROLL, &more);
    tool_servers::add(&home, folder.path());
    home.run(&["run", TOOL, "--run-id", "s1", "--detach"]).code(0);
    wait_for("three steps to be over", || (finished(&Api::of(&core)) >= 3).then_some(()));
    let pid = tool_servers::show(&home, TOOL)["server"]["pid"].as_i64().expect("it runs");
    let pid = Pid::from_raw(i32::try_from(pid).expect("a number")).expect("a process");
    kill_process(pid, Signal::KILL).expect("it is there");
    wait_for("the next step to be over", || (finished(&Api::of(&core)) >= 4).then_some(()));
    core.kill();
    core = home.up();
    let run = wait_for("its end", || {
        let run = Api::of(&core).get("/v1/runs/s1?world=default");
        run["ended_at"].is_string().then_some(run)
    });
    assert_eq!(run["status"], "succeeded", "{run}");
    let outputs = &run["outputs"];
    assert_eq!((&outputs["first"], &outputs["done"]), (&json!(1), &json!([0, 1, 2, 3, 4])));
    assert!(outputs["attempt"].as_u64().expect("a number") >= 3, "{run}");
    let lines = home.run(&["run", &format!("{COUNTER}/lines")]).code(0).json();
    let mut lines: Vec<&str> = lines["outputs"]["lines"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0", "1", "2", "3", "4"], "each once");
    core.stop().code(0);
}

/// The same words in TypeScript, and one that waits so that a test can kill it.
const RAMBLE: &str = r#"import { tool } from "wharf-sdk";

export const ramble = tool({
  description: "Rambles.",
  input: {},
  output: {},
  durable: true,
  run: async (_: unknown, cx) => {
    const first = await cx.local("first", () => "rolled");
    const said = await cx.each("say", "wharf/echo", [{ text: "a" }, { text: "b" }]);
    const seen = await cx.now();
    await cx.step("wait", "wharf/sleep", { ms: 3000 });
    return { first, said: said.map((one: any) => one.text), seen: seen.getTime() };
  },
});
"#;

#[test]
fn t048_f022_f028_a_tool_in_typescript_finds_its_steps_when_its_server_was_killed() {
    const TOOL: &str = "test/ramble@1";
    if wharf_skips::lacks("node") {
        return;
    }
    let home = TestHome::new();
    let core: Core = home.up();
    let more = "handler = \"ramble.ts\"\nfree = true\npermissions = [\"tool:invoke:wharf/*\"]";
    let folder = tool_servers::manifest(TOOL, more);
    std::fs::write(folder.path().join("ramble.ts"), RAMBLE).expect("written");
    tool_servers::add(&home, folder.path());
    home.run(&["run", TOOL, "--run-id", "r1", "--detach"]).code(0);
    let api = Api::of(&core);
    let runs = |tool: &str| {
        let listed = api.get(&format!("/v1/runs?world=default&tool={tool}"));
        listed["items"].as_array().map_or(0, Vec::len)
    };
    wait_for("its last step", || (runs("wharf/sleep") == 1).then_some(()));
    let pid = tool_servers::show(&home, TOOL)["server"]["pid"].as_i64().expect("it runs");
    let pid = Pid::from_raw(i32::try_from(pid).expect("a number")).expect("a process");
    kill_process(pid, Signal::KILL).expect("it is there");
    let run = wait_for("its end", || {
        let run = api.get("/v1/runs/r1?world=default");
        run["ended_at"].is_string().then_some(run)
    });
    assert_eq!(run["status"], "succeeded", "{run}");
    assert_eq!(run["attempt"], 2, "{run}");
    assert_eq!((&run["outputs"]["said"], runs("wharf/echo")), (&json!(["a", "b"]), 2));
    assert_eq!(runs("wharf/sleep"), 1, "a step that was under way is joined");
    core.stop().code(0);
}

#[test]
fn f022_f029_the_page_about_durable_steps_tells_the_truth() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    let followed = page::follow_with(&home, core, "steps.md");
    assert!(followed.ran > 5 && followed.checked > 3, "{} {}", followed.ran, followed.checked);
}
