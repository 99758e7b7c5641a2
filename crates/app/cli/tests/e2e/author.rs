//! The author's loop: a tool is changed, tried and looked into again and again.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agents::has_python;
use crate::children::{self, Finish as _};
use crate::support::{LONG, Running, TestHome, wait_for};

const MANIFEST: &str =
    "ref = \"acme/shout@1\"\ndescription = \"Shouts.\"\nhandler = \"handler.py\"\n";
const HANDLER: &str =
    "def entry(payload):\n    return {\"text\": payload[\"inputs\"][\"text\"].upper()}\n";
/// Waits for a file before it gives something back.
const WAITING: &str = "import os, time\n\ndef entry(payload):\n    until = payload[\"inputs\"][\"until\"]\n    \
    for _ in range(6000):\n        if os.path.exists(os.path.join(os.path.dirname(__file__), until)):\n            \
    return {\"text\": \"old\"}\n        time.sleep(0.01)\n";
/// Two tools in one file.
const TWO: &str = "from wharf_sdk import tool\n\n@tool\ndef shout(text: str, times: int = 1) -> dict:\n    \
    \"Says it louder.\"\n    return {\"text\": text.upper() * times}\n\n@tool\ndef count(text: str) -> dict:\n    \
    \"Counts letters.\"\n    return {\"letters\": len(text)}\n";

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("written");
}

fn tool(handler: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "wharf.tool.toml", MANIFEST);
    write(folder.path(), "handler.py", handler);
    folder
}

fn path(folder: &Path) -> &str {
    folder.to_str().expect("text")
}

fn run_id(run: &Value) -> String {
    run["run_id"].as_str().expect("an id").to_owned()
}

#[test]
fn t042_a_tool_is_added_again_while_it_runs_and_what_is_under_way_ends_where_it_is() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let folder = tool(WAITING);
    home.run(&["tools", "add", path(folder.path()), "--approve"]).code(0);
    let started = home.run(&["run", "acme/shout@1", "until=go", "--detach"]).code(0).json();
    let id = run_id(&started);
    wait_for("the run to be under way", || {
        let log = home.run(&["tools", "logs", "acme/shout@1"]).stdout;
        log.contains("is ready").then_some(())
    });

    write(folder.path(), "handler.py", HANDLER);
    home.run(&["tools", "add", path(folder.path()), "--approve"]).code(0);
    wait_for("its successor, which nobody has called yet", || {
        let log = home.run(&["tools", "logs", "acme/shout@1"]).stdout;
        (log.matches("is ready").count() == 2).then_some(())
    });
    let new = home.run(&["run", "acme/shout@1", "text=hello", "-q"]).code(0).json();
    assert_eq!(new["outputs"]["text"], "HELLO");
    let old = home.run(&["runs", "show", &id, "--json"]).code(0).json();
    assert_eq!(old["status"], "running", "{old}");
    write(folder.path(), "go", "");
    let old = home.run(&["runs", "watch", &id]).code(0).json();
    assert_eq!((&old["outputs"]["text"], &old["attempt"]), (&"old".into(), &1.into()), "{old}");
}

#[test]
fn t043_a_handler_that_cannot_be_imported_is_told_when_it_is_added_and_fails_its_run_at_once() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let folder = tool("def entry(payload:\n");
    let refused = home.run(&["tools", "add", path(folder.path()), "--approve"]).code(2);
    for part in ["'(' was never closed", "line 1", "[tool.handler_invalid]", "def entry(payload:"] {
        assert!(refused.stderr.contains(part), "{part:?} is missing in {refused:#?}");
    }
    assert!(!refused.stderr.contains("wharf_sdk"), "no frames of the runtime: {refused:#?}");

    // One that broke after it was added fails the first run, and is not tried again and again.
    write(folder.path(), "handler.py", HANDLER);
    home.run(&["tools", "add", path(folder.path()), "--approve"]).code(0);
    write(folder.path(), "handler.py", "import nowhere_to_be_found\n");
    home.run(&["tools", "approve", "acme/shout@1"]).code(0);
    let failed = home.run(&["run", "acme/shout@1", "text=x", "-q"]).code(1).json();
    assert_eq!(failed["error"]["code"], "tool.handler_invalid", "{failed}");
    assert_eq!((&failed["attempt"], &failed["error"]["retryable"]), (&1.into(), &false.into()));
    let message = failed["error"]["message"].as_str().expect("text");
    assert!(message.contains("nowhere_to_be_found"), "{message}");
    let log = home.run(&["tools", "logs", "acme/shout@1"]).code(0).stdout;
    assert_eq!(log.matches("[ended with").count(), 1, "one start, and no other: {log}");

    write(folder.path(), "handler.py", HANDLER);
    home.run(&["tools", "add", path(folder.path()), "--approve"]).code(0);
    let mended = home.run(&["run", "acme/shout@1", "text=x", "-q"]).code(0).json();
    assert_eq!(mended["outputs"]["text"], "X");
}

#[test]
fn t014_the_owner_sees_the_traceback_and_others_see_its_class() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let folder = tool(HANDLER);
    home.run(&["tools", "add", path(folder.path()), "--approve"]).code(0);
    let failed = home.run(&["run", "acme/shout@1"]).code(1);
    let id = run_id(&failed.json());
    assert!(failed.stderr.contains("\nKeyError: 'text'\n"), "{failed:#?}");
    assert!(failed.stderr.contains(&format!("wharf logs {id}")), "{failed:#?}");
    let story = home.run(&["logs", &id]).code(0).stdout;
    for part in ["Traceback (most recent call last):", "line 2, in entry", "err KeyError: 'text'"] {
        assert!(story.contains(part), "{part:?} is missing in {story}");
    }
    assert!(!story.contains("wharf_sdk"), "no frames of the runtime: {story}");
    assert_eq!(home.run(&["tools", "logs", "acme/shout@1", "--run", &id]).code(0).stdout, story);
    let other = home.run(&["tools", "logs", "acme/shout@1", "--run", "another"]).code(0).stdout;
    assert_eq!(other, "");

    let token = home.run(&["token", "create", "--verb", "run", "--verb", "read", "--json"]).code(0);
    let token = token.json()["token"].as_str().expect("a token").to_owned();
    let failed = home.run(&["run", "acme/shout@1", "--token", &token]).code(1);
    assert!(failed.stderr.contains("KeyError [tool.internal]"), "{failed:#?}");
    assert!(!failed.stderr.contains("'text'"), "{failed:#?}");
    assert!(!failed.stdout.contains("'text'"), "{failed:#?}");
}

#[test]
fn t043_a_file_alone_is_as_many_tools_as_it_has_functions() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "words.py", TWO);
    let file = folder.path().join("words.py");
    let unnamed = home.run(&["tools", "add", path(folder.path())]).code(2);
    assert!(unnamed.stderr.contains("name a file of it, such as"), "{unnamed:#?}");
    let added =
        home.run(&["tools", "add", path(&file), "--approve", "--namespace", "acme"]).code(0);
    for part in ["acme/shout@1, Says it louder.", "acme/count@1, Counts letters.", "no price"] {
        assert!(added.stdout.contains(part), "{part:?} is missing in {added:#?}");
    }
    let run = home.run(&["run", "acme/shout@1", "text=ho", "times=2", "-q"]).code(0).json();
    assert_eq!(run["outputs"]["text"], "HOHO");
    let run = home.run(&["run", "acme/count@1", "text=ho", "-q"]).code(0).json();
    assert_eq!(run["outputs"]["letters"], 2);
    let wrong = home.run(&["run", "acme/shout@1", "text=ho", "times=many"]).code(2);
    assert!(wrong.stderr.contains("whole number"), "the types are the schema: {wrong:#?}");

    // A function that is gone takes its tool along, and a new schema counts at once.
    write(folder.path(), "words.py", &TWO.replace("def count", "def tally").replace("times", "n"));
    home.run(&["tools", "add", path(&file), "--approve", "--namespace", "acme"]).code(0);
    home.run(&["run", "acme/count@1", "text=ho"]).code(2);
    home.run(&["run", "acme/tally@1", "text=ho", "-q"]).code(0);
    let run = home.run(&["run", "acme/shout@1", "text=ho", "n=3", "-q"]).code(0).json();
    assert_eq!(run["outputs"]["text"], "HOHOHO");
    assert!(
        home.run(&["tools", "diff", "acme/shout@1"])
            .code(0)
            .stdout
            .contains("is what was approved")
    );

    // The same with a manifest that names the namespace and nothing else.
    write(
        folder.path(),
        "wharf.tool.toml",
        "namespace = \"pack\"\nversion = 2\nhandler = \"words.py\"\n",
    );
    home.run(&["tools", "add", path(folder.path()), "--approve"]).code(0);
    let run = home.run(&["run", "pack/tally@2", "text=abc", "-q"]).code(0).json();
    assert_eq!(run["outputs"]["letters"], 3);
}

#[test]
fn work_on_a_file_starts_a_core_takes_changes_and_leaves_nothing_behind() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "words.py", TWO);
    let mut dev = home.spawn(&["dev", path(&folder.path().join("words.py"))]);
    dev.until_stderr("local/count@1, local/shout@1 new");
    let run = home.run(&["run", "local/shout@1", "text=hello", "-q"]).code(0).json();
    assert_eq!(run["outputs"]["text"], "HELLO");

    write(folder.path(), "words.py", &TWO.replace("text.upper()", "text[99]"));
    dev.until_stderr("words.py changed: local/count@1, local/shout@1 ready");
    home.run(&["run", "local/shout@1", "text=hello", "-q"]).code(1);
    dev.until_stderr("IndexError: string index out of range");
    write(folder.path(), "words.py", "def broken(:\n");
    dev.until_stderr("words.py changed: The handler cannot be imported: SyntaxError");
    write(folder.path(), "words.py", &TWO.replace("count", "tally"));
    dev.until_stderr("local/tally@1 new; local/count@1 gone");
    let run = home.run(&["run", "local/shout@1", "text=hello", "-q"]).code(0).json();
    assert_eq!(run["outputs"]["text"], "HELLO");

    dev.signal(Signal::INT);
    let ended = dev.wait().code(0);
    for part in ["removed local/shout@1", "removed local/tally@1", "stopped the core"] {
        assert!(ended.stderr.contains(part), "{part:?} is missing in {ended:#?}");
    }
    assert!(home.run(&["tools"]).stderr.contains("wharf up"), "no core is left");
}

#[test]
fn work_on_what_is_not_there_ends_at_once() {
    let home = TestHome::new();
    let none = home.run(&["dev", "/nowhere/to/be/found.py"]).code(2);
    assert!(none.stderr.contains("there is no folder and no file /nowhere"), "{none:#?}");
}

#[test]
fn work_on_an_agent_replaces_it_and_a_running_core_stays() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("greeter");
    let mut new = home.wharf(&["new", "agent", "greeter", "--lang", "python"]);
    assert!(new.current_dir(parent.path()).finish().status.success());
    let mut dev = home.spawn(&["dev", path(&folder), "--keep"]);
    let said = dev.until_stderr(" new (");
    assert!(!said.contains("started a core"), "{said}");
    let source = std::fs::read_to_string(folder.join("agent.py")).expect("read");
    write(&folder, "agent.py", &format!("{source}\n# a change\n"));
    dev.until_stderr("agent.py changed: ");
    dev.signal(Signal::INT);
    let ended = dev.wait().code(0);
    assert!(!ended.stderr.contains("removed"), "{ended:#?}");
    let agents = home.run(&["agents", "--json"]).code(0).json();
    assert_eq!(agents[0]["state"], "running", "{agents}");
}

/// A server of MCP in one file, with one tool.
const MCP_SERVER: &str = r#"import json
import sys

TOOL = {"name": "shout", "description": "Says it louder.", "inputSchema": {
    "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "shouter", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": [TOOL]}
    elif asked["method"] == "tools/call":
        text = asked["params"]["arguments"]["text"].upper()
        result = {"content": [{"type": "text", "text": text}]}
    else:
        error = {"code": -32601, "message": "unknown"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

#[test]
fn work_on_an_mcp_server_takes_what_its_tools_say_now() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "server.py", MCP_SERVER);
    let manifest = "name = \"shouter\"\ncommand = [\"python3\", \"server.py\"]\n";
    write(folder.path(), "wharf.mcp.toml", manifest);
    let mut dev = home.spawn(&["dev", path(folder.path())]);
    dev.until_stderr("shouter/shout new (");
    let ran = home.run(&["run", "shouter/shout", "text=ahoy", "-q"]).code(0).stdout;
    assert!(ran.contains("AHOY"), "{ran}");
    // Elsewhere another description waits for an approval; here its author has just written it.
    write(folder.path(), "server.py", &MCP_SERVER.replace("louder", "with a bang"));
    dev.until_stderr("server.py changed: shouter/shout ready (");
    let tool = home.run(&["tools", "show", "shouter/shout", "--json"]).code(0).json();
    assert_eq!(
        (&tool["state"], &tool["description"]),
        (&json!("available"), &json!("Says it with a bang."))
    );
    home.run(&["run", "shouter/shout", "text=ahoy", "-q"]).code(0);
    dev.signal(Signal::INT);
    let ended = dev.wait().code(0);
    assert!(ended.stderr.contains("removed shouter"), "{ended:#?}");
    assert_eq!(home.run(&["mcp", "list", "--json"]).code(0).json(), json!([]));
}

#[test]
fn a_server_says_its_url_once_it_is_ready() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let folder = tool(HANDLER);
    let handler = folder.path().join("handler.py");
    let arguments = ["tool", "serve", "--listen", "127.0.0.1:0", "--handler", path(&handler)];
    let mut command = home.wharf(&arguments);
    let mut child = command.spawn().expect("it starts");
    let stdout = child.stdout.take().expect("piped");
    let running = Running::of(child, "wharf tool serve");
    let line = children::first_line(stdout, LONG, "the server's address");
    drop(running);
    assert!(line.starts_with("serving at http://127.0.0.1:"), "{line}");
}

/// The blocks of a document, in their order, with what stands behind their fence.
fn blocks(document: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = document;
    while let Some((_, begun)) = rest.split_once("\n```") {
        let (kind, text) = begun.split_once('\n').expect("a line");
        let (text, after) = text.split_once("```").expect("an end");
        found.push((kind, text));
        rest = after;
    }
    found
}

/// Follows the guide: what it has typed, and where.
struct Reader<'a> {
    home: &'a TestHome,
    folder: TempDir,
    search: String,
}

impl Reader<'_> {
    fn shell(&self, command: &str) -> Command {
        let mut shell = children::command("sh");
        shell
            .args(["-c", command])
            .current_dir(self.folder.path())
            .env("PATH", &self.search)
            .env("WHARF_HOME", self.home.path())
            .env("PYTHONDONTWRITEBYTECODE", "1");
        shell
    }

    fn save(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// Types each command of a block, and looks for the lines below it in what it says.
    fn types(&self, block: &str) {
        let (mut said, mut command) = (String::new(), "");
        for line in block.lines() {
            let Some(next) = line.strip_prefix("$ ") else {
                assert!(said.contains(line), "{command}: {line:?} is missing in {said}");
                continue;
            };
            command = next;
            let ended = self.shell(command).finish();
            let texts = [ended.stdout, ended.stderr]
                .map(|text| String::from_utf8_lossy(&text).into_owned());
            said = texts.concat();
            assert!(ended.status.success(), "{command}: {said}");
        }
    }

    /// Starts what stays, all of whose words are to be read in one place.
    fn watches(&self, block: &str) -> Running {
        let (first, rest) = block.split_once('\n').expect("a line");
        let command = first.strip_prefix("$ ").expect("a command");
        let mut shell = self.shell(&format!("exec {command} 1>&2"));
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = Running::of(shell.spawn().expect("a shell"), command);
        shows(&mut running, rest);
        running
    }
}

/// Waits for each line of a block; what stands behind an ellipsis is another each time.
fn shows(running: &mut Running, block: &str) {
    for line in block.lines() {
        running.until_stderr(line.split('…').next().unwrap_or_default());
    }
}

#[test]
fn the_guide_goes_from_an_empty_folder_to_a_first_run() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let program = Path::new(env!("CARGO_BIN_EXE_wharf")).parent().expect("a folder");
    let search = std::env::var("PATH").unwrap_or_default();
    let search = format!("{}:{search}", path(program));
    let folder = tempfile::tempdir().expect("a folder");
    // The test of the tool takes the package from a checkout.
    let sdks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../sdks");
    std::os::unix::fs::symlink(sdks, folder.path().join("sdks")).expect("linked");
    let reader = Reader { home: &home, folder, search };
    let mut files = ["words/words.py", "report/report.py", "report/test_report.py"].into_iter();
    let (mut core, mut watching) = (None, None);
    for (kind, text) in blocks(include_str!("../../../../../docs/dev.md")) {
        match kind {
            "python" => reader.save(files.next().expect("a name"), text),
            "toml" => reader.save("report/wharf.tool.toml", text),
            "console watch" => watching = Some(reader.watches(text)),
            "console watched" => {
                let mut running: Running = watching.take().expect("something is watched");
                shows(&mut running, text);
                running.signal(Signal::INT);
                let ended = running.wait().code(0);
                assert!(ended.stderr.contains("stopped the core"), "{ended:#?}");
                core = Some(home.up());
            }
            "console" | "console edit" | "console test" => reader.types(text),
            _ => {}
        }
    }
    assert!(files.next().is_none() && core.is_some(), "the guide has all of it");
}
