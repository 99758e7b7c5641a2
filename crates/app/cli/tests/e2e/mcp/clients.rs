//! Clients of others meet Wharf, unmodified: the official ones of two languages in both eras,
//! FastMCP, the inspector, `mcp-remote`; at the core and through `wharf mcp`.

use serde_json::{Value, json};

use super::player::Player::{self, FastMcp, Python, Tasks, V1, V2};
use super::stage::{Era, Stage, told};

/// Which client, in which mode, and the revision that must come of it.
const CLIENTS: [(Player, &str, &str); 10] = [
    (V1, "legacy", "2025-11-25"),
    (V2, "legacy", "2025-11-25"),
    (V2, "auto", "2026-07-28"),
    (V2, "modern", "2026-07-28"),
    (Python, "legacy", "2025-11-25"),
    (Python, "auto", "2026-07-28"),
    (Python, "modern", "2026-07-28"),
    (FastMcp, "legacy", "2025-11-25"),
    (FastMcp, "auto", "2026-07-28"),
    (FastMcp, "modern", "2026-07-28"),
];

/// What each of them does at the fixture's own door.
fn walk(mode: &str) -> Value {
    json!({
        "mode": mode,
        "answer": {"action": "accept", "content": {"username": "ada", "email": "ada@example.org"}},
        "steps": [
            ["about"],
            ["tools"],
            ["call", {"name": "greet", "arguments": {"name": "Ada"}}],
            ["call", {"name": "test_elicitation", "arguments": {"message": "Who are you?"}}],
            ["call", {"name": "test_tool_with_progress"}],
            ["call", {"name": "test_error_handling"}],
            ["resources"],
            ["read", {"uri": "test://static-text"}],
            ["prompts"],
            ["prompt", {"name": "test_prompt_with_arguments",
                "arguments": {"arg1": "one", "arg2": "two"}}],
            ["call", {"name": "no_such_tool"}],
        ],
    })
}

/// Insists that a client saw the fixture as it is.
#[track_caller]
fn saw_the_fixture(who: &str, revision: &str, steps: &[Value]) {
    let [about, tools, greet, asked, progress, wrong, resources, read, prompts, prompt, missing] =
        steps
    else {
        panic!("{who}: {steps:#?}")
    };
    assert_eq!(about["result"]["version"], revision, "{who}: {about}");
    for name in ["greet", "slow_compute", "json_schema_2020_12_tool"] {
        let names = tools["result"].as_array().unwrap_or_else(|| panic!("{who}: {tools}"));
        assert!(names.iter().any(|it| it == name), "{who}: {tools}");
    }
    let text = |step: &Value| step["result"]["content"][0]["text"].clone();
    assert_eq!(text(greet), "Hello, Ada!", "{who}: {greet}");
    assert!(asked["said"].to_string().contains("Who are you?"), "{who}: {asked}");
    assert!(text(asked).to_string().contains("ada@example.org"), "{who}: {asked}");
    assert!(progress["said"].as_array().is_some_and(|it| !it.is_empty()), "{who}: {progress}");
    assert_eq!(wrong["result"]["isError"], true, "{who}: {wrong}");
    assert!(resources.to_string().contains("test://static-text"), "{who}: {resources}");
    assert!(read.to_string().contains("content of the static text"), "{who}: {read}");
    assert!(prompts.to_string().contains("test_simple_prompt"), "{who}: {prompts}");
    assert!(prompt.to_string().contains("arg1='one', arg2='two'"), "{who}: {prompt}");
    assert_eq!(missing["error"]["code"], -32602, "{who}: {missing}");
}

/// Every client at the fixture's door. What a legacy server asks on standard streams says nothing of
/// whose call it is for, so its clients come one at a time, and those of a modern one together.
#[track_caller]
fn all_see(fixture: Era) {
    let Some(stage) = Stage::with_fixture(fixture) else { return };
    let at_once = if fixture == Era::Modern { 3 } else { 1 };
    for few in CLIENTS.chunks(at_once) {
        std::thread::scope(|scope| {
            for &(player, mode, revision) in few {
                let stage = &stage;
                scope.spawn(move || {
                    let steps = player.plays(stage, "/mcp/fixture", &walk(mode));
                    saw_the_fixture(&format!("{player:?} {mode}"), revision, &steps);
                });
            }
        });
    }
}

#[test]
fn m081_clients_of_others_see_a_legacy_server() {
    all_see(Era::Legacy);
}

#[test]
fn m081_clients_of_others_see_a_modern_server() {
    all_see(Era::Modern);
}

#[test]
fn m013_clients_of_others_start_wharf_mcp() {
    let Some(stage) = Stage::with_fixture(Era::Modern) else { return };
    // Python's client passes nothing of its environment on.
    let home = stage.home.path().display().to_string();
    let bridge =
        json!([env!("CARGO_BIN_EXE_wharf"), "mcp", "--home", home, "--provider", "fixture"]);
    std::thread::scope(|scope| {
        for (player, mode, revision) in [CLIENTS[1], CLIENTS[2], CLIENTS[5]] {
            let (stage, bridge) = (&stage, bridge.clone());
            scope.spawn(move || {
                let mut spec = walk(mode);
                spec["stdio"] = bridge;
                let steps = player.plays(stage, "/mcp", &spec);
                saw_the_fixture(&format!("{player:?} {mode} over stdio"), revision, &steps);
            });
        }
    });
}

#[test]
fn m016_all_tools_have_short_names_at_the_common_door() {
    let Some(stage) = Stage::with_fixture(Era::Modern) else { return };
    let spec = json!({"mode": "auto", "steps": [
        ["tools"],
        ["tool", {"name": "wharf__echo"}],
        ["call", {"name": "wharf__echo", "arguments": {"text": "hello"}}],
        ["call", {"name": "fixture__greet", "arguments": {"name": "Ada"}}],
        ["prompts"],
        ["prompt", {"name": "fixture__test_simple_prompt"}],
    ]});
    let steps = V2.plays(&stage, "/mcp", &spec);
    let names = steps[0]["result"].as_array().expect("a list");
    assert!(names.iter().any(|name| name == "wharf__echo"), "{names:?}");
    assert!(names.iter().any(|name| name == "fixture__greet"), "{names:?}");
    assert_eq!(steps[1]["result"]["_meta"]["dev.wharf/tool"]["id"], "wharf/echo", "{}", steps[1]);
    assert_eq!(steps[2]["result"]["structuredContent"]["text"], "hello", "{}", steps[2]);
    assert_eq!(steps[2]["result"]["_meta"]["dev.wharf/run"]["status"], "succeeded", "{}", steps[2]);
    assert_eq!(steps[3]["result"]["content"][0]["text"], "Hello, Ada!", "{}", steps[3]);
    assert!(steps[4].to_string().contains("fixture__test_simple_prompt"), "{}", steps[4]);
    assert!(steps[5].to_string().contains("simple prompt for testing"), "{}", steps[5]);
}

#[test]
fn m036_tasks_of_2025_11_25_with_the_client_that_knows_them() {
    for era in [Era::Legacy, Era::Modern] {
        let Some(stage) = Stage::with_fixture(era) else { return };
        let spec = json!({
            "answer": {"action": "accept", "content": {"confirm": true}},
            "steps": [
                ["tool", {"name": "slow_compute"}],
                ["task", {"name": "slow_compute", "arguments": {"seconds": 0.3, "label": "it"}}],
                ["task", {"name": "confirm_delete", "arguments": {"filename": "x"}}],
                ["begin", {"name": "slow_compute", "arguments": {"seconds": 60}}],
                ["list"],
            ],
        });
        let steps = V1.plays(&stage, "/mcp/fixture", &spec);
        assert_eq!(steps[0]["result"]["execution"]["taskSupport"], "optional", "{}", steps[0]);
        assert!(steps[1]["result"].to_string().contains("computed it"), "{}", steps[1]);
        assert!(steps[1]["said"][0]["task"]["taskId"].is_string(), "{}", steps[1]);
        assert!(steps[2]["result"].to_string().contains("deleted"), "{}", steps[2]);
        assert!(steps[2]["said"].to_string().contains("Delete?"), "{}", steps[2]);
        // A task outlives the client that began it, and any session of its grant may end it.
        let task = &steps[3]["result"]["task"]["taskId"];
        assert!(steps[4]["result"].to_string().contains(task.as_str().expect("an id")));
        let spec = json!({"steps": [["get", {"taskId": task}], ["stop", {"taskId": task}]]});
        let steps = V1.plays(&stage, "/mcp/fixture", &spec);
        assert_eq!(steps[0]["result"]["status"], "working", "{}", steps[0]);
        assert_eq!(steps[1]["result"]["status"], "cancelled", "{}", steps[1]);
    }
}

#[test]
fn m037_tasks_of_2026_07_28_with_the_package_that_knows_them() {
    for era in [Era::Legacy, Era::Modern] {
        let Some(stage) = Stage::with_fixture(era) else { return };
        let spec = json!({
            "answer": {"action": "accept", "content": {"confirm": true}},
            "steps": [
                ["task", {"name": "slow_compute", "arguments": {"seconds": 2, "label": "it"}}],
                ["task", {"name": "confirm_delete", "arguments": {"filename": "x"}}],
                ["task", {"name": "greet", "arguments": {"name": "Ada"}}],
            ],
        });
        let steps = Tasks.plays(&stage, "/mcp/fixture", &spec);
        assert!(steps[0]["result"].to_string().contains("computed it"), "{}", steps[0]);
        assert_eq!(steps[0]["said"][0]["status"], "completed", "{}", steps[0]);
        assert!(steps[1]["said"].to_string().contains("Delete?"), "{}", steps[1]);
        assert!(steps[1]["result"].to_string().contains("deleted"), "{}", steps[1]);
        // What is soon over never becomes one.
        assert!(steps[2]["result"].to_string().contains("Hello, Ada!"), "{}", steps[2]);
        assert_eq!(steps[2]["said"], json!([]), "{}", steps[2]);
    }
}

#[test]
fn m081_mcp_remote_bridges_in_both_eras() {
    let Some(stage) = Stage::with_fixture(Era::Legacy) else { return };
    let node = stage.peers.node_path();
    let remote = stage.peers.bin("mcp-remote");
    let door = stage.door("/mcp/fixture");
    let token = format!("Authorization:Bearer {}", stage.core().token());
    let words = ["--allow-http", "--protocol", "auto", "--header", &token];
    let mut bridge = vec![node.display().to_string(), remote.display().to_string(), door];
    bridge.extend(words.iter().map(|&word| word.to_owned()));
    std::thread::scope(|scope| {
        for (mode, revision) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
            let (stage, bridge) = (&stage, &bridge);
            scope.spawn(move || {
                let spec = json!({"mode": mode, "stdio": bridge, "steps": [["about"], ["tools"],
                    ["call", {"name": "greet", "arguments": {"name": "Ada"}}]]});
                let steps = V2.plays(stage, "/mcp", &spec);
                assert_eq!(steps[0]["result"]["version"], revision, "{}", steps[0]);
                assert!(steps[2].to_string().contains("Hello, Ada!"), "{mode}: {steps:?}");
            });
        }
    });
}

#[test]
fn m081_the_inspector_lists_and_calls_in_every_era() {
    let Some(stage) = Stage::with_fixture(Era::Legacy) else { return };
    std::thread::scope(|scope| {
        for era in ["legacy", "auto", "modern"] {
            let stage = &stage;
            scope.spawn(move || {
                let inspect = |words: &[&str]| {
                    let mut command = stage.peers.node(&stage.peers.bin("mcp-inspector"));
                    let token = format!("Authorization: Bearer {}", stage.core().token());
                    command.args(["--cli", "--server-url", &stage.door("/mcp")]);
                    command.args(["--transport", "http", "--protocol-era", era]);
                    command.args(["--header", &token, "--format", "json"]).args(words);
                    // It keeps what it knows of servers in a folder of its user.
                    command.env("HOME", stage.home.path());
                    told(&mut command)
                };
                let listed = inspect(&["--method", "tools/list"]);
                assert!(listed.to_string().contains("fixture__greet"), "{era}: {listed}");
                let called = inspect(&[
                    "--method",
                    "tools/call",
                    "--tool-name",
                    "fixture__greet",
                    "--tool-arg",
                    "name=Ada",
                ]);
                assert!(called.to_string().contains("Hello, Ada!"), "{era}: {called}");
            });
        }
    });
}
