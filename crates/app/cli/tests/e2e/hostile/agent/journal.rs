//! It makes the core write without end.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use crate::hostile::peers::Stage;
use crate::security_page::{Peer, tried};
use crate::support::wait_for;

const HOSTILE: &str = "dev.wharf.hostile";
/// Changes of what is offered that are written down at once, and after how many seconds one more.
const CHANGES_AT_ONCE: u64 = 32;
const CHANGE_EVERY_S: u64 = 5;

/// A core with the hostile agent in its fence.
fn stage() -> Stage {
    let stage = Stage::up();
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../examples/agents");
    let folder = examples.join("hostile");
    stage.home.run(&["agents", "add", folder.to_str().expect("text")]).code(0);
    stage.home.run(&["agents", "approve", HOSTILE, "--all"]).code(0);
    stage.home.run(&["agents", "start", HOSTILE]).code(0);
    wait_for("the agent to run", || {
        let agent = stage.home.run(&["agents", "show", HOSTILE, "--json"]).code(0).json();
        (agent["state"] == "running").then_some(())
    });
    stage
}

/// Lets it try something.
fn attempt(stage: &Stage, name: &str, inputs: &Value) -> Value {
    let tool = format!("{HOSTILE}/{name}");
    let run = stage.api.start(&json!({"tool": tool, "inputs": inputs, "timeout_ms": 600_000}));
    stage.api.end_of("default", run["run_id"].as_str().expect("an id"))
}

fn database_bytes(stage: &Stage) -> u64 {
    let path = stage.home.path().join("wharf.db");
    std::fs::metadata(path).expect("the database").len()
}

#[test]
fn registers_other_tools_without_end() {
    let began = Instant::now();
    let stage = stage();
    let ended = attempt(&stage, "register_flood", &json!({"times": 400, "bytes": 20_000}));
    assert_eq!(ended["outputs"]["sent"], 400, "{ended}");
    // What it offered last is what counts in the end.
    let tool = format!("/v1/tools/{HOSTILE}/other");
    wait_for("the last of them", || {
        let (status, shown) = stage.api.bytes(&tool);
        (status == 200 && String::from_utf8_lossy(&shown).contains("\"399 x")).then_some(())
    });
    let audit = stage.home.run(&["audit", "export"]).code(0).stdout;
    let changes = audit.matches("agent.tools_registered").count() as u64;
    let most = CHANGES_AT_ONCE + 1 + began.elapsed().as_secs() / CHANGE_EVERY_S;
    assert!((1..=most).contains(&changes), "{changes} changes were written down");
    let Stage { home, core, .. } = stage;
    core.stop().code(0);
    let bytes = std::fs::metadata(home.path().join("wharf.db")).expect("the database").len();
    assert!(bytes < 4_000_000, "{bytes} bytes for one agent");
    tried(
        Peer::Agent,
        "registers other tools without end",
        "a pace for what is offered, and only the newest offer is kept",
        "what it offers in the end",
    );
}

#[test]
fn offers_more_than_a_provider_may() {
    let stage = stage();
    let ended = attempt(&stage, "register_flood", &json!({"times": 1, "bytes": 2_000_000}));
    assert_eq!(ended["outputs"]["sent"], 1, "{ended}");
    let ended = attempt(&stage, "innocent", &json!({}));
    assert_eq!(ended["status"], "succeeded", "{ended}");
    let (status, _) = stage.api.bytes(&format!("/v1/tools/{HOSTILE}/other"));
    assert_eq!(status, 404, "it is not taken");
    tried(
        Peer::Agent,
        "offers a tool that takes megabytes",
        "a bound on what one provider offers",
        "`tool.limit` for that tool",
    );
}

#[test]
fn starts_children_with_large_inputs_without_end() {
    let stage = stage();
    // Small values take more than their text, so few of them are enough.
    let ended = attempt(&stage, "child_flood", &json!({"numbers": 300_000}));
    let outputs = &ended["outputs"];
    assert_eq!(outputs["how"], "tool.limit", "{ended}");
    assert!(outputs["started"].as_u64().is_some_and(|started| started < 20), "{ended}");
    let bytes = database_bytes(&stage);
    assert!(bytes < 40_000_000, "{bytes} bytes for one run");
    tried(
        Peer::Agent,
        "starts runs with large inputs without end",
        "a bound on what one run and all that it starts write",
        "`tool.limit`",
    );
}
