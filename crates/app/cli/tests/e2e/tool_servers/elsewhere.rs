//! Servers that a core did not start: they outlive it, and others may call them too.

use std::path::PathBuf;

use serde_json::Value;

use super::{Served, file, storage, text, write};
use crate::agents::has_python;
use crate::support::{Api, TestHome, wait_for};

/// Leaves a mark when it begins, and goes on when the gate is open.
const HANDLER: &str = r#"
import os, time

def entry(payload, emit, ctrl):
    inputs = payload["inputs"]
    with open(os.path.join(inputs["folder"], "began"), "a") as began:
        began.write(payload["run_id"] + "\n")
    while not os.path.exists(os.path.join(inputs["folder"], "gate")):
        if ctrl.wait(0.01):
            return {"text": "called off", "cost_micro": 0}
    return {"text": "through " + inputs.get("word", "the gate"), "cost_micro": 4}
"#;

/// A served handler and the folder that it shares with the test.
struct Gate {
    folder: tempfile::TempDir,
    served: Served,
}

impl Gate {
    /// A server that may use the files of this core.
    fn of(home: &TestHome) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "handler.py", HANDLER);
        let (file, origin) = (folder.path().join("handler.py"), storage(home));
        let origin = format!("http://{origin}");
        let arguments = ["--handler", text(&file), "--allow-origin", &origin];
        Self { served: Served::start(home, &arguments), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a run that waits for the gate, and waits until it has begun.
    fn enter(&self, home: &TestHome, run: &str, more: &[&str]) {
        let folder = format!("folder={}", text(self.folder.path()));
        let first = ["run", "test/gate@1", &folder, "--run-id", run, "--detach"];
        home.run(&[&first[..], more].concat()).code(0);
        wait_for("the handler to begin", || (self.began() == [run]).then_some(()));
    }

    fn began(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("began")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn open(&self) {
        std::fs::write(self.path("gate"), "").expect("written");
    }

    /// Adds the tool to a core.
    fn add(&self, home: &TestHome) {
        self.served.add_to(home, "test/gate@1", "max_cost_micro = 10\nside_effects = true");
    }
}

/// A run once the core knows it again.
fn known(home: &TestHome, run: &str) -> Value {
    home.run(&["runs", "show", run, "--json"]).code(0).json()
}

#[test]
fn t042_t017_a_run_goes_on_while_its_core_is_killed_and_ends_once() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    let gate = Gate::of(&home);
    gate.add(&home);
    gate.enter(&home, "r1", &[]);
    core.kill();
    let core = home.up();
    assert_eq!(known(&home, "r1")["status"], "running");
    gate.open();
    let run = Api::of(&core).end_of("default", "r1");
    assert_eq!(run["status"], "succeeded", "{run}");
    assert_eq!(run["outputs"]["text"], "through the gate");
    assert_eq!((run["attempt"].as_u64(), run["cost_micro"].as_u64()), (Some(1), Some(4)));
    assert_eq!(gate.began(), ["r1"], "it was done once");
}

#[test]
fn t042_t033_what_a_run_wrote_while_its_core_was_away_is_stored() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    let gate = Gate::of(&home);
    gate.add(&home);
    gate.enter(&home, "r1", &["--out", "text.world=/out/text.txt"]);
    core.kill();
    // It wants to write while there is no storage, and has to try until there is again.
    gate.open();
    let core = home.up();
    let run = Api::of(&core).end_of("default", "r1");
    assert_eq!(run["status"], "succeeded", "{run}");
    assert_eq!(run["outputs"]["text"], "world://default/out/text.txt");
    assert_eq!(run["attempt"], 1);
    assert_eq!(gate.began(), ["r1"], "it was done once");
    assert_eq!(file(&home, "/out/text.txt"), "through the gate");
    assert!(!run.to_string().contains("X-Amz"), "{run}");
}

#[test]
fn t017_two_cores_with_the_same_run_and_other_inputs_do_not_meet() {
    if !has_python() {
        return;
    }
    let (first, second) = (TestHome::new(), TestHome::new());
    let (core, _other) = (first.up(), second.up());
    let gate = Gate::of(&first);
    gate.add(&first);
    gate.add(&second);
    gate.enter(&first, "same", &[]);
    let folder = format!("folder={}", text(gate.folder.path()));
    let other = ["run", "test/gate@1", &folder, "word=another", "--run-id", "same"];
    let refused = second.run(&other).code(1);
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "tool.failed", "{refused:#?}");
    assert!(error["message"].as_str().expect("text").contains("conflict"), "{error}");
    // The first one has noticed nothing.
    gate.open();
    let run = Api::of(&core).end_of("default", "same");
    assert_eq!(run["outputs"]["text"], "through the gate", "{run}");
    assert_eq!(gate.began(), ["same"]);
}
