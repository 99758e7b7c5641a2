//! The first minutes with a tool server.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{add, example, handler, show, text, write};
use crate::agents::has_python;
use crate::support::{Core, TestHome, wait_for};

const TOOL: &str = "llm/litellm@1";

fn ready() -> (TestHome, Core) {
    let home = TestHome::new();
    let core = home.up();
    add(&home, &example("llm/litellm/1"));
    (home, core)
}

#[test]
fn t043_t009_a_first_run_streams_words_and_tells_what_it_cost() {
    if !has_python() {
        return;
    }
    let (home, _core) = ready();
    let ended = home.run(&["run", TOOL, "--mode", "mock", "prompt=hello"]).code(0);
    assert!(ended.stderr.contains("You said: hello"), "{ended:#?}");
    assert!(ended.stderr.contains("$0.000002"), "{ended:#?}");
    let run = ended.json();
    assert_eq!(run["outputs"]["response"], "You said: hello");
    assert_eq!((&run["cost_micro"], &run["mode"]), (&json!(0), &json!("mock")));
    assert_eq!(run["would_cost_micro"], 2, "what pretends is not paid for");
    // The text comes in pieces, of which some may be told together, and each is told once.
    let id = run["run_id"].as_str().expect("an id");
    let watched = home.run(&["runs", "watch", id, "--json"]).code(0).stdout;
    let events = watched.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let text: String = events
        .filter(|event| event["data"]["channel"] == "response")
        .map(|event| event["data"]["text"].as_str().expect("a text").to_owned())
        .collect();
    assert_eq!(text, "You said: hello", "{watched}");
}

#[test]
fn t043_a_tool_server_that_nobody_touched_has_not_changed() {
    if !has_python() {
        return;
    }
    let (home, _core) = ready();
    let said = home.run(&["tools", "diff", TOOL]).code(0).stdout;
    assert_eq!(said, format!("{TOOL} is what was approved\n"));
    let diff = home.run(&["tools", "diff", TOOL, "--json"]).code(0).json();
    assert_eq!((&diff[0]["changed"], &diff[0]["changes"]), (&json!(false), &json!([])));
    assert_eq!(diff[0]["pinned"], diff[0]["offered"]);
    assert_eq!(home.run(&["tools", "diff"]).code(0).stdout, "no tool changed\n");
}

#[test]
fn t046_messages_and_the_one_object_of_schema_v1_are_the_same_call() {
    if !has_python() {
        return;
    }
    let (home, _core) = ready();
    let messages = json!({"messages": [{"role": "user", "content": "Hi"}], "model": "gpt-4o"});
    let wrapped = json!({"schema": "v1", "params": messages});
    let outputs = |input: &Value| {
        let input = input.to_string();
        let run = home.run(&["run", TOOL, "--mode", "mock", "--input", &input]).code(0).json();
        (run["outputs"].clone(), run["would_cost_micro"].clone())
    };
    let first = outputs(&messages);
    assert_eq!(first.0["response"], "You said: Hi");
    assert_eq!(first.0["model"], "gpt-4o");
    assert!(first.1.as_u64().is_some_and(|cost| cost > 0), "{first:?}");
    assert_eq!(outputs(&wrapped), first);
    // What the schema refuses never gets to the server.
    let wrong = home.run(&["run", TOOL, "--mode", "mock", "temperature=hot"]).code(2);
    assert!(wrong.stderr.contains("temperature"), "{wrong:#?}");
    // What only the tool can see is its own failure.
    let input = json!({"schema": "v1", "params": {"colour": "red"}}).to_string();
    let refused = home.run(&["run", TOOL, "--mode", "mock", "--input", &input]).code(1);
    assert_eq!(refused.json()["error"]["code"], "tool.invalid_input");
}

#[test]
fn t043_a_tool_server_is_listed_shown_disabled_enabled_and_removed() {
    if !has_python() {
        return;
    }
    let (home, _core) = ready();
    let run = ["run", TOOL, "--mode", "mock", "prompt=x"];
    assert!(home.run(&["tools", "list"]).code(0).stdout.contains(TOOL));
    assert_eq!(show(&home, TOOL)["state"], "available");
    assert!(show(&home, TOOL)["server"]["pid"].is_null(), "nobody has called it yet");
    home.run(&run).code(0);
    assert!(show(&home, TOOL)["server"]["pid"].is_u64());
    let logs = home.run(&["tools", "logs", TOOL]).code(0).stdout;
    assert!(logs.contains("a handler in Python is ready"), "{logs}");

    home.run(&["tools", "disable", TOOL]).code(0);
    let shown = show(&home, TOOL);
    assert_eq!(shown["server"]["enabled"], false);
    assert!(shown["server"]["pid"].is_null(), "{shown}");
    let refused = home.run(&run);
    assert!(refused.code != Some(0) && refused.stderr.contains("tool."), "{refused:#?}");
    home.run(&["tools", "enable", TOOL]).code(0);
    home.run(&run).code(0);

    let refused = home.run(&["tools", "remove", TOOL]);
    assert!(refused.code != Some(0), "it is enabled: {refused:#?}");
    home.run(&["tools", "disable", TOOL]).code(0);
    home.run(&["tools", "remove", TOOL]).code(0);
    assert!(!home.run(&["tools", "list"]).code(0).stdout.contains(TOOL));
    home.run(&["tools", "show", TOOL]).code(2);
}

#[test]
fn t043_what_is_not_a_tool_server_is_said_to_be_none() {
    let home = TestHome::new();
    let _core = home.up();
    let empty = tempfile::tempdir().expect("a folder");
    let gone = empty.path().join("gone");
    for folder in [empty.path(), &gone] {
        let refused = home.run(&["tools", "add", text(folder)]);
        assert_ne!(refused.code, Some(0));
        assert!(refused.stderr.contains("tool.manifest_invalid"), "{refused:#?}");
    }
}

#[test]
fn t043_the_log_says_why_a_handler_cannot_be_started() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let folder = handler("test/broken@1", "def entry(payload):\n    return {}\n", "");
    add(&home, folder.path());
    write(folder.path(), "handler.py", "import nowhere_to_be_found\n");
    home.run(&["tools", "approve", "test/broken@1"]).code(0);
    home.run(&["run", "test/broken@1", "--detach"]).code(0);
    wait_for("the reason", || {
        let logs = home.run(&["tools", "logs", "test/broken@1"]).code(0).stdout;
        logs.contains("nowhere_to_be_found").then_some(())
    });
}

#[test]
fn t043_the_demo_has_a_tool_server_that_can_be_called_at_once() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let mut core = home.spawn(&["up", "--demo", "--listen", "127.0.0.1:0"]);
    core.until_stderr("the core is ready");
    let shown = show(&home, TOOL);
    assert_eq!(shown["state"], "available");
    assert!(shown["server"]["pid"].is_null(), "it is not started before it is called");
    home.run(&["run", TOOL, "--mode", "mock", "prompt=hello"]).code(0);
    drop(core);
    // The next start finds it as it was.
    let mut core = home.spawn(&["up", "--demo", "--listen", "127.0.0.1:0"]);
    let said = core.until_stderr("the core is ready");
    assert!(!said.contains("left out: The tool server"), "{said}");
    home.run(&["run", TOOL, "--mode", "mock", "prompt=hello"]).code(0);
}

#[test]
fn c010_the_demo_leaves_no_screen_empty_and_is_made_once() {
    let home = TestHome::new();
    let up = || {
        let mut core = home.spawn(&["up", "--demo", "--listen", "127.0.0.1:0"]);
        let said = core.until_stderr("the core is ready");
        assert!(!said.contains("the tour of the demo is left out"), "{said}");
        core
    };
    let core = up();
    let waits = || {
        let inbox = home.run(&["inbox", "--json"]).code(0).stdout;
        inbox.contains("May the tour end?").then_some(())
    };
    wait_for("the tour's approval", waits);
    for (list, what) in [
        (["flow", "list"], "tour"),
        (["schedule", "list"], "tour-nightly"),
        (["trigger", "list"], "tour-hook"),
        (["notify", "list"], "tour-desk"),
    ] {
        let shown = home.run(&list).code(0).stdout;
        assert!(shown.contains(what), "{list:?}: {shown}");
    }
    let files = home.run(&["artifacts", "list", "default", "--json"]).code(0).stdout;
    assert!(files.contains("/tour/sum.txt"), "{files}");
    drop(core);
    let _core = up();
    let runs = home.run(&["runs", "list", "--json"]).code(0).stdout;
    assert_eq!(runs.matches("\"run_id\":\"tour-1\"").count(), 1, "{runs}");
}

#[test]
fn t043_the_function_on_its_page_is_a_whole_tool() {
    if !has_python() {
        return;
    }
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/tool-servers.md");
    let page = std::fs::read_to_string(page).expect("there");
    let (_, part) = page.split_once("## A whole tool server").expect("the part");
    let block = |kind: &str| {
        let (_, block) = part.split_once(&format!("```{kind}\n")).expect("a block");
        block.split_once("```").expect("its end").0.to_owned()
    };
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "handler.py", &block("python"));
    write(folder.path(), "wharf.tool.toml", &block("toml"));
    let home = TestHome::new();
    let _core = home.up();
    add(&home, folder.path());
    let run = home.run(&["run", "text/shout@1", "text=ahoy"]).code(0).json();
    assert_eq!((&run["outputs"]["text"], &run["cost_micro"]), (&json!("AHOY"), &json!(10)));
}
