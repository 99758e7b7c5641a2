//! Flows survive what kills their core, their provider, or both: each step is executed once.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agents::{has_python, python_agent};
use crate::support::{Api, Core, TestHome, wait_for};

const AGENT: &str = "dev.example.counter";
/// Flows that walk behind each other, so that each step is hit by each way to be killed.
const FLOWS: usize = 3;
/// Items that are worked on side by side.
const ITEMS: usize = 8;
/// Where a flow is killed: calls one after another, some side by side, an approval, a sleep.
const POINTS: [&str; 13] =
    ["s1", "s2", "s3", "s4", "s5", "s6", "all", "ok", "nap", "s7", "s8", "s9", "s10"];

/// Writes each execution to a file, once for each key, and waits before or after that until the
/// test lets it go on. Its keys outlive it, since they are in that file.
const PROGRAM: &str = r#"
import json, os, time
import wharf_agent as wharf

FOLDER = json.load(open("folder.json"))

class InTheFile:
    promise = {"kept_for": "24h", "keys_max": 100000}
    def __init__(self, *_):
        pass
    def begin(self, call):
        return True, None
    def end(self, call, outcome):
        return []
    def leave(self, call):
        return False

wharf.Once = InTheFile

def write(name, line):
    file = os.open(FOLDER + "/" + name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, (line + "\n").encode())
    os.fsync(file)
    os.close(file)

def lines(name):
    try:
        return open(FOLDER + "/" + name).read().splitlines()
    except FileNotFoundError:
        return []

def execute(call):
    key = call.idempotency_key
    if not any(line.split()[0] == key for line in lines("executed")):
        write("executed", key + " " + call.input["at"])

def work(call):
    early, gate = call.input["early"], FOLDER + "/" + call.input["gate"]
    write("begun", call.input["at"])
    if early:
        execute(call)
    while not os.path.exists(gate):
        call.pause(0.02)
    if not early:
        execute(call)
    return {"at": call.input["at"]}

text = {"type": "string"}
inputs = {"at": text, "gate": text, "early": {"type": "boolean"}}
tools = [wharf.Tool("work", work, "Counts itself.", inputs, ["at", "gate", "early"],
                    side_effects=True)]
wharf.serve("dev.example.counter", "0.1.0", tools, idempotent=True)
"#;

/// Twenty steps.
fn document() -> Value {
    let call = |id: &str, at: &str, gate: &str| {
        json!({"id": id, "call": {"tool": format!("{AGENT}/work"), "inputs": {
            "at": format!("${{inputs.flow}}-{at}"), "gate": format!("go-${{inputs.flow}}-{gate}"),
            "early": "${inputs.early}"}}})
    };
    let steps: Vec<Value> = POINTS
        .into_iter()
        .map(|point| match point {
            "all" => json!({"id": "all", "each": {"over": "${inputs.items}", "as": "it",
                "step": call("one", "e${it}", "all")}}),
            "ok" => json!({"id": "ok", "approve": {"title": "Go on?", "deadline": "1h"}}),
            "nap" => json!({"id": "nap", "sleep": {"for": "1s"}}),
            at => call(at, at, at),
        })
        .collect();
    json!({ "name": "walk", "description": "Walks, fans out, asks, waits, walks on.",
        "steps": steps, "output": {"all": "${steps.all.outputs.map(o, o.at)}"} })
}

/// What a test of kills has at hand.
struct Walk {
    home: TestHome,
    core: Option<Core>,
    folder: tempfile::TempDir,
    _agent: tempfile::TempDir,
    runs: Vec<String>,
}

impl Walk {
    fn new() -> Self {
        let (home, folder) = (TestHome::new(), tempfile::tempdir().expect("a folder"));
        let place = folder.path().to_str().expect("text").to_owned();
        let permission = format!("filesystem:write:{place}/**");
        let agent = python_agent(AGENT, &[&permission], PROGRAM);
        std::fs::write(agent.path().join("folder.json"), json!(place).to_string())
            .expect("written");
        let file = folder.path().join("walk.json");
        std::fs::write(&file, document().to_string()).expect("written");
        let core = Some(home.up());
        home.run(&["agents", "add", agent.path().to_str().expect("text")]).code(0);
        home.run(&["agents", "approve", AGENT, "--all"]).code(0);
        home.run(&["agents", "start", AGENT]).code(0);
        home.run(&["flow", "add", file.to_str().expect("text")]).code(0);
        Self { home, core, folder, _agent: agent, runs: Vec::new() }
    }

    fn api(&self) -> Api {
        Api::of(self.core.as_ref().expect("a core"))
    }

    fn start(&mut self) {
        let flow = self.runs.len();
        let items: Vec<String> = (0..ITEMS).map(|n| n.to_string()).collect();
        let inputs = json!({"flow": format!("f{flow}"), "early": flow % 2 == 1, "items": items});
        let run = json!({"tool": "flow/walk", "inputs": inputs, "world": "default"});
        let run = self.api().start(&run)["run_id"].as_str().expect("an id").to_owned();
        self.runs.push(run);
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn ask_of(&self, flow: usize) -> Option<String> {
        let asks = self.api().get("/v1/asks?world=default");
        let mut open = asks["items"].as_array()?.iter();
        let own = open.find(|ask| ask["run_id"] == json!(self.runs[flow]))?;
        own["ask_id"].as_str().map(str::to_owned)
    }

    /// Waits until a flow is at this point.
    fn until_at(&self, flow: usize, point: &str) {
        wait_for(&format!("flow {flow} at {point}"), || match point {
            "all" => (0..ITEMS).all(|n| self.has_begun(flow, &format!("e{n}"))).then_some(()),
            "ok" => self.ask_of(flow).map(|_| ()),
            "nap" => {
                let steps =
                    self.api().get(&format!("/v1/runs/{}/steps?world=default", self.runs[flow]));
                let waits = |step: &Value| step["path"] == "nap" && step["status"] == "waiting";
                steps["items"].as_array()?.iter().any(waits).then_some(())
            }
            at => self.has_begun(flow, at).then_some(()),
        });
    }

    fn has_begun(&self, flow: usize, at: &str) -> bool {
        self.lines("begun").contains(&format!("f{flow}-{at}"))
    }

    fn kill(&mut self, what: &str) {
        if what != "core" {
            let agent = self.home.run(&["agents", "show", AGENT, "--json"]).code(0).json();
            let pid = agent["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
            let pid = pid.and_then(Pid::from_raw).expect("it runs: its calls are under way");
            kill_process(pid, Signal::KILL).expect("killed");
        }
        if what != "provider" {
            self.core.take().expect("a core").kill();
            self.core = Some(self.home.up());
        }
    }

    /// Lets the calls of a flow at this point go on.
    fn let_go(&self, flow: usize, point: &str) {
        let gate = self.folder.path().join(format!("go-f{flow}-{point}"));
        std::fs::write(gate, "").expect("written");
    }

    fn ended(&self, flow: usize) -> Value {
        let api = self.api();
        wait_for("the end of the flow", || {
            let run = api.get(&format!("/v1/runs/{}?world=default", self.runs[flow]));
            run["ended_at"].is_string().then_some(run)
        })
    }
}

fn counted(lines: impl IntoIterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        *counts.entry(line).or_default() += 1;
    }
    counts
}

#[test]
fn f041_a_flow_killed_at_every_step_in_every_way_does_each_step_once() {
    if !has_python() {
        return;
    }
    let mut walk = Walk::new();
    for turn in 0..POINTS.len() + FLOWS - 1 {
        if turn < FLOWS {
            walk.start();
        }
        // The flow that began n turns ago is n steps on, so that each step meets every way.
        let at: Vec<(usize, &str)> = (0..walk.runs.len())
            .filter_map(|flow| Some((flow, *POINTS.get(turn.checked_sub(flow)?)?)))
            .collect();
        for (flow, point) in at.iter().filter(|(_, point)| *point != "nap") {
            walk.until_at(*flow, point);
        }
        // It sleeps for a second only, so that begins when all others are where they are to be.
        for (flow, point) in at.iter().filter(|(_, point)| *point == "nap") {
            let ask = wait_for("the approval", || walk.ask_of(*flow));
            walk.home.run(&["approve", &ask]).code(0);
            walk.until_at(*flow, point);
        }
        walk.kill(["core", "provider", "both"][turn % 3]);
        for (flow, point) in &at {
            walk.let_go(*flow, point);
        }
    }
    let items: Vec<String> = (0..ITEMS).map(|n| format!("e{n}")).collect();
    for flow in 0..FLOWS {
        let run = walk.ended(flow);
        assert_eq!(run["status"], "succeeded", "{run}");
        let all: Vec<String> = items.iter().map(|item| format!("f{flow}-{item}")).collect();
        assert_eq!(run["outputs"]["all"], json!(all));
    }
    let last = |line: String| line.split_whitespace().last().unwrap_or_default().to_owned();
    let executed = counted(walk.lines("executed").into_iter().map(last));
    let begun = counted(walk.lines("begun"));
    let calls = POINTS.len() - 3 + ITEMS;
    assert_eq!(executed.len(), FLOWS * calls, "{executed:?}");
    assert!(executed.values().all(|times| *times == 1), "each step once: {executed:?}");
    assert!(begun.values().all(|times| *times > 1), "each call was killed: {begun:?}");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(walk.lines("executed").len(), FLOWS * calls, "and nothing comes after it");
}
