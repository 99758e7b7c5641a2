//! What stands around the core: programs that die with it, and a ledger that does not.

use std::path::PathBuf;

use serde_json::json;

use crate::agents::example;
use crate::support::{TestHome, wait_for};
use crate::tool_servers::{add, handler};

pub(super) struct AgentTools {
    pub(super) id: &'static str,
    pub(super) hello: &'static str,
    pub(super) relay: &'static str,
}

pub(super) const AGENT: AgentTools = AgentTools {
    id: "dev.example.torture",
    hello: "dev.example.torture/hello_world",
    relay: "dev.example.torture/relay",
};
pub(super) const ACTS: &str = "torture/acts@1";
pub(super) const COPIES: &str = "torture/copies@1";

/// Writes down outside that it was executed, and tells the core only then.
const ACTING: &str = r#"
import os

def entry(payload, emit, ctrl):
    name = payload["inputs"]["id"]
    ledger = os.open("LEDGER", os.O_WRONLY | os.O_APPEND)
    os.write(ledger, (name + "\n").encode())
    os.close(ledger)
    return {"done": name, "cost_micro": 0}
"#;

const COPYING: &str = r#"
from libs.runtime_common.hydration import hydrate_inputs

def entry(payload, emit, ctrl):
    return {"copy": hydrate_inputs(payload["inputs"])["file"].decode().upper(), "cost_micro": 0}
"#;

pub(super) struct Place {
    dir: tempfile::TempDir,
    _servers: [tempfile::TempDir; 2],
}

impl Place {
    pub(super) fn set_up(home: &TestHome) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let ledger = dir.path().join("ledger");
        std::fs::write(&ledger, "").expect("written");
        home.run(&["worlds", "create", "money"]).code(0);
        for n in 0..4 {
            let path = format!("/in-{n}.txt");
            home.run_with(text(n).as_bytes(), &["worlds", "put", "default", &path, "-"]).code(0);
        }
        let ledger = ledger.to_str().expect("text");
        let permission = format!("permissions = [\"filesystem:write:{ledger}\"]");
        let acting = handler(ACTS, &ACTING.replace("LEDGER", ledger), &permission);
        let copying = handler(COPIES, COPYING, "side_effects = false");
        add(home, acting.path());
        add(home, copying.path());
        let place = Self { dir, _servers: [acting, copying] };
        place.start_agent(home);
        place
    }

    /// The Python example under another id, which may call `wharf/echo`.
    fn start_agent(&self, home: &TestHome) {
        let folder = self.dir.path().join("agent");
        std::fs::create_dir_all(&folder).expect("made");
        let program = std::fs::read_to_string(example("hello-python").join("agent.py"));
        let program = program.expect("read").replace("dev.wharf.hello-python", AGENT.id);
        std::fs::write(folder.join("agent.py"), program).expect("written");
        let manifest = json!({"id": AGENT.id, "version": "1.0.0",
            "permissions": ["tool:invoke:wharf/echo"], "capabilities": ["tools", "invoke"],
            "entrypoint": {"type": "command", "value": "python3", "args": ["agent.py"]}});
        std::fs::write(folder.join("opensentience.agent.json"), manifest.to_string())
            .expect("written");
        home.run(&["agents", "add", folder.to_str().expect("text")]).code(0);
        home.run(&["agents", "approve", AGENT.id, "--all"]).code(0);
        home.run(&["agents", "start", AGENT.id]).code(0);
        wait_for("the agent to run", || {
            let agent = home.run(&["agents", "show", AGENT.id, "--json"]).code(0).json();
            (agent["state"] == "running").then_some(())
        });
    }

    /// What was executed, in order.
    pub(super) fn ledger(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.path().join("ledger")).expect("readable");
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until something more was executed.
    pub(super) fn until_more_acts(&self) {
        let before = self.ledger().len();
        wait_for("something to be executed", || (self.ledger().len() > before).then_some(()));
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().to_owned()
    }
}

/// What an input file says.
pub(super) fn text(n: u64) -> String {
    format!("these are the words of file {n}\n").repeat(200)
}
