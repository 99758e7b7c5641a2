//! Files and money while things break: cores that are killed, stores that are away, runs that
//! want the same file or the same money, agents that lie about what they cost.

mod broken_off;
mod money;
mod publication;
mod races;
pub(crate) mod real_s3;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agents::example;
use crate::support::{Api, TestHome, wait_for};

/// The agent that these tests steer by its inputs.
pub(crate) const AGENT: &str = "dev.wharf.faulty";
const TOOL: &str = "dev.wharf.faulty/work";

/// Adds, approves and starts the agent, which says of its tool that it acts; waits until it runs.
pub(crate) fn start_agent(home: &TestHome, sandbox: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("written");
    };
    let runtime = example("llm-text").join("wharf_agent.py");
    let runtime = std::fs::read_to_string(runtime).expect("there");
    write("wharf_agent.py", &runtime);
    write("agent.py", include_str!("data_faults/agent.py"));
    let entrypoint = json!({"type": "command", "value": "python3", "args": ["agent.py"]});
    let manifest = json!({
        "manifest_version": 1, "id": AGENT, "name": "Faulty", "version": "0.1.0",
        "description": "Does with files and money what it is told to.", "entrypoint": entrypoint,
        "permissions": [], "capabilities": ["tools", "streaming", "cancellation"],
    });
    write("opensentience.agent.json", &manifest.to_string());
    home.run(&["agents", "add", folder.path().to_str().expect("text")]).code(0);
    home.run(&["agents", "approve", AGENT, "--all", "--sandbox", sandbox]).code(0);
    home.run(&["agents", "start", AGENT]).code(0);
    wait_for("the agent to run", || {
        let agent = home.run(&["agents", "show", AGENT, "--json"]).code(0).json();
        (agent["state"] == "running").then_some(())
    });
    folder
}

/// The files of a world that can be seen and whose paths begin so, with local ones.
fn files(api: &Api, world: &str, prefix: &str) -> Vec<String> {
    let query = format!("limit=200&local=true&prefix={prefix}");
    let listed = api.get(&format!("/v1/worlds/{world}/artifacts?{query}"));
    assert!(listed["next_cursor"].is_null(), "more than a page");
    let path = |file: &Value| file["path"].as_str().expect("a path").to_owned();
    listed["items"].as_array().expect("a list").iter().map(path).collect()
}

/// Names in a folder; none if it is not there.
fn names(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Everything that is an ordinary file below a folder.
pub(crate) fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in names(folder) {
        if path.is_dir() && !path.is_symlink() {
            found.extend(all_files(&path));
        } else if path.is_file() {
            found.push(path);
        }
    }
    found
}

/// Files of the home, and the log of its core, in which a signature stands.
fn signed(home: &TestHome) -> Vec<String> {
    let is_signed = |text: &str| {
        let mut signatures = text.split("X-Amz-Signature=").skip(1);
        signatures.any(|after| !after.starts_with("[redacted]"))
    };
    let mut found: Vec<_> = all_files(&home.path())
        .into_iter()
        .filter(|path| is_signed(&String::from_utf8_lossy(&std::fs::read(path).expect("there"))))
        .map(|path| path.display().to_string())
        .collect();
    if is_signed(&home.log()) {
        found.push("the core's log".to_owned());
    }
    found
}

/// Whether objects of one run lie in a folder of the store: outputs that are not published, and
/// local files.
fn is_of_run(shelf: &Path) -> bool {
    shelf.file_name().is_some_and(|name| name.to_string_lossy().starts_with('@'))
}

/// Objects of runs in a world. What has no head was being written when a core was killed: it is
/// no object, and swept when it is old.
fn objects_of_runs(home: &TestHome, world: &str) -> Vec<PathBuf> {
    let shelves = names(&home.path().join("objects/worlds").join(world));
    let objects = shelves.iter().filter(|shelf| is_of_run(shelf)).flat_map(|shelf| names(shelf));
    objects.filter(|object| object.join("head").exists()).collect()
}
