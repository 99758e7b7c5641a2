//! The core, a server or a client is killed while something is under way, with real clients: nothing
//! accepted is lost, nothing acts twice, no process is left, and the session id goes on.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::player::Play;
use super::player::Player::{V1, V2};
use super::servers::answer;
use super::stage::{Era, Stage, script};
use crate::support::{Api, wait_for};

/// The only run of a tool, once there is one.
#[track_caller]
fn run_of(api: &Api, tool: &str) -> Value {
    wait_for(&format!("a run of {tool}"), || {
        let runs = api.get(&format!("/v1/runs?tool={tool}"));
        let items = runs["items"].as_array().expect("a list");
        assert!(items.len() <= 1, "more than one run: {runs}");
        items.first().cloned()
    })
}

/// Waits until the only run of a tool has this status.
#[track_caller]
fn until_status(stage: &Stage, tool: &str, status: &str) -> String {
    let api = stage.api();
    wait_for(&format!("{tool} to be {status}"), || {
        let run = run_of(&api, tool);
        (run["status"] == status).then(|| run["run_id"].as_str().expect("an id").to_owned())
    })
}

const QUESTION: &str = "Which color?";

fn question() -> Value {
    json!({"name": "wharf__ask", "arguments": {"question": QUESTION, "schema": {"type": "string"}}})
}

/// A client that cannot be asked is told where the question is; from then on its call has a stream.
#[track_caller]
fn heard_that_it_waits(client: &mut Play) {
    let told = client.until("progress");
    assert!(told.to_string().contains(QUESTION), "{told}");
}

/// Kills the core while the question is open, starts it again and answers in the inbox.
fn killed_and_answered(stage: &mut Stage) {
    let run = until_status(stage, "wharf/ask", "waiting");
    stage.kill_and_restart();
    answer(stage, QUESTION, &json!("blue"));
    let ended = stage.api().end_of("default", &run);
    assert_eq!(ended["status"], "succeeded", "{ended}");
    run_of(&stage.api(), "wharf/ask");
}

#[test]
fn m083_a_question_outlives_the_core_for_a_client_of_2025_11_25() {
    let Some(mut stage) = Stage::new() else { return };
    let spec = json!({"mode": "legacy", "steps": [["about"], ["call", question()], ["about"],
        ["call", {"name": "wharf__echo", "arguments": {"text": "still here"}}]]});
    let mut client = V2.start(&stage, "/mcp", &spec);
    let before = client.step("about");
    heard_that_it_waits(&mut client);
    killed_and_answered(&mut stage);
    let answered = client.step("call");
    assert!(answered["result"].to_string().contains("blue"), "{answered}");
    let after = client.step("about");
    assert!(before["result"]["session"].is_string(), "{before}");
    assert_eq!(before["result"]["session"], after["result"]["session"]);
    assert!(client.step("call")["result"].to_string().contains("still here"));
}

#[test]
fn m083_a_question_outlives_the_core_for_a_client_of_2026_07_28() {
    let Some(mut stage) = Stage::new() else { return };
    let mut call = question();
    // There is no resuming in this revision: the key says which call is repeated.
    call["_meta"] = json!({"dev.wharf/run": {"idempotency_key": "once", "detach": true}});
    let spec = json!({"mode": "modern", "steps": [["persist", call]]});
    let mut client = V2.start(&stage, "/mcp", &spec);
    heard_that_it_waits(&mut client);
    killed_and_answered(&mut stage);
    let answered = client.step("persist");
    assert!(answered["result"].to_string().contains("blue"), "{answered}");
}

#[test]
fn m083_a_question_outlives_the_core_behind_wharf_mcp() {
    for mode in ["legacy", "modern"] {
        let Some(mut stage) = Stage::new() else { return };
        let bridge = json!([env!("CARGO_BIN_EXE_wharf"), "mcp"]);
        let spec = json!({"mode": mode, "stdio": bridge, "steps": [["call", question()]]});
        let mut client = V2.start(&stage, "/mcp", &spec);
        heard_that_it_waits(&mut client);
        killed_and_answered(&mut stage);
        let answered = client.step("call");
        assert!(answered["result"].to_string().contains("blue"), "{mode}: {answered}");
    }
}

#[test]
fn m083_a_task_outlives_the_core() {
    let Some(mut stage) = Stage::new() else { return };
    let mut client = V1.start(&stage, "/mcp", &json!({"steps": [["task", question()], ["list"]]}));
    let task = client.until("task");
    killed_and_answered(&mut stage);
    let ended = client.step("task");
    assert!(ended["result"].to_string().contains("blue"), "{ended}");
    let listed = client.step("list");
    assert!(listed.to_string().contains(task["taskId"].as_str().expect("an id")), "{listed}");
    // And for somebody with the same grant in another session.
    let spec = json!({"steps": [["get", {"taskId": task["taskId"]}],
        ["result", {"taskId": task["taskId"]}]]});
    let steps = V1.plays(&stage, "/mcp", &spec);
    assert_eq!(steps[0]["result"]["status"], "completed", "{}", steps[0]);
    assert!(steps[1]["result"].to_string().contains("blue"), "{}", steps[1]);
}

#[test]
fn m083_a_call_goes_on_after_the_core_was_killed() {
    let Some(mut stage) = Stage::new() else { return };
    let spec = json!({"mode": "legacy", "steps": [
        ["call", {"name": "wharf__count", "arguments": {"n": 30}}]]});
    let mut client = V2.start(&stage, "/mcp", &spec);
    client.until("progress");
    stage.kill_and_restart();
    let ended = client.step("call");
    let run = &ended["result"]["_meta"]["dev.wharf/run"];
    assert_eq!(run["status"], "succeeded", "{ended}");
    run_of(&stage.api(), "wharf/count");
}

#[test]
fn m083_a_listen_stream_is_opened_again_after_the_core_was_killed() {
    let Some(mut stage) = Stage::with_fixture(Era::Legacy) else { return };
    let filter = json!({"toolsListChanged": true});
    let spec = json!({"mode": "modern", "steps": [
        ["listen", filter], ["line"], ["listen", filter], ["changed", {"what": "tools"}]]});
    let mut client = V2.start(&stage, "/mcp", &spec);
    let first = client.step("listen");
    assert!(first["error"].is_null(), "{first}");
    stage.kill_and_restart();
    client.until("closed");
    client.type_line("again");
    let second = client.step("listen");
    assert!(second["error"].is_null(), "{second}");
    stage.home.run(&["mcp", "stop", "fixture"]).code(0);
    stage.home.run(&["mcp", "remove", "fixture"]).code(0);
    assert!(client.step("changed")["error"].is_null());
}

/// A fixture that writes down what it does, and can be told from those of other tests.
struct Ledger {
    folder: tempfile::TempDir,
}

impl Ledger {
    fn behind(stage: &Stage) -> Self {
        let ledger = Self { folder: tempfile::tempdir().expect("a folder") };
        let path = ledger.path().display().to_string();
        let node = stage.peers.node_path().display().to_string();
        let fixture = script("fixture.mjs").display().to_string();
        let folder = ledger.folder.path().display();
        let write = format!("filesystem:write:{folder}/**");
        let options = ["--accept-new", "--permission", &write];
        let command = [&*node, &*fixture, "--era", "legacy", "--ledger", &*path];
        std::fs::write(ledger.path(), "").expect("writes");
        stage.add("fixture", &options, &command);
        ledger
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("ledger.txt")
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path()).expect("there");
        text.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn begun(&self) {
        wait_for("the act to begin", || self.lines().contains(&"begun".to_owned()).then_some(()));
    }

    /// The processes of this fixture.
    fn processes(&self) -> Vec<Pid> {
        let mark = self.path().display().to_string();
        let is_mine = |path: &Path| {
            let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(&mark) && line.contains("fixture.mjs")
        };
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let mine = all.filter(|entry| is_mine(&entry.path()));
        mine.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
            .collect()
    }
}

fn act() -> Value {
    json!({"name": "act", "arguments": {"seconds": 600}})
}

#[test]
fn m083_what_may_have_acted_is_not_done_again_and_no_process_is_left() {
    let Some(mut stage) = Stage::new() else { return };
    let ledger = Ledger::behind(&stage);
    let spec = json!({"mode": "legacy", "steps": [["call", act()]]});
    let mut client = V2.start(&stage, "/mcp/fixture", &spec);
    client.until("progress");
    ledger.begun();
    stage.kill_and_restart();
    let ended = client.step("call");
    assert_eq!(ended["result"]["isError"], true, "{ended}");
    let run = &ended["result"]["_meta"]["dev.wharf/run"];
    assert_eq!(run["executed"], "maybe", "{ended}");
    assert_eq!(ledger.lines(), ["begun"], "it was not done again");
    // The new core starts the server anew when it is needed, and the old one is gone.
    stage.core.take().expect("up").kill();
    wait_for("all processes of the server to end", || ledger.processes().is_empty().then_some(()));
}

#[test]
fn m083_a_killed_server_fails_its_calls_and_is_started_anew() {
    let Some(stage) = Stage::new() else { return };
    let ledger = Ledger::behind(&stage);
    let spec = json!({"mode": "modern", "steps": [["call", act()],
        ["call", {"name": "greet", "arguments": {"name": "Ada"}}]]});
    let mut client = V2.start(&stage, "/mcp/fixture", &spec);
    ledger.begun();
    for process in ledger.processes() {
        let _ = kill_process(process, Signal::KILL);
    }
    let ended = client.step("call");
    assert_eq!(ended["result"]["_meta"]["dev.wharf/run"]["executed"], "maybe", "{ended}");
    let next = client.step("call");
    assert!(next["result"].to_string().contains("Hello, Ada!"), "{next}");
    assert_eq!(ledger.lines(), ["begun"], "it was not done again");
}

#[test]
fn m083_a_killed_client_ends_a_modern_call_and_leaves_a_legacy_one() {
    let Some(stage) = Stage::new() else { return };
    for (mode, tool, status) in
        [("legacy", "wharf__sleep", None), ("modern", "wharf__ask", Some("canceled"))]
    {
        let arguments = match tool {
            "wharf__sleep" => json!({"ms": 2000}),
            _ => json!({"question": QUESTION, "schema": {"type": "string"}}),
        };
        let call = json!({"name": tool, "arguments": arguments});
        let client = V2.start(&stage, "/mcp", &json!({"mode": mode, "steps": [["call", call]]}));
        let api = stage.api();
        let id = tool.replace("__", "/");
        let run = run_of(&api, &id);
        wait_for("the run to be under way", || {
            let status = run_of(&api, &id)["status"].clone();
            (status == "running" || status == "waiting").then_some(())
        });
        client.kill();
        let ended = api.end_of("default", run["run_id"].as_str().expect("an id"));
        assert_eq!(ended["status"], status.unwrap_or("succeeded"), "{mode}: {ended}");
    }
}
