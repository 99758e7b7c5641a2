//! Tools in TypeScript and JavaScript as people write them: a file, and a core that takes it.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::page;
use crate::support::TestHome;
use crate::typescript_sdk;

/// Two tools in one file, one with a schema of a package.
const TWO: &str = r#"import { tool } from "wharf-sdk";
import { z } from "zod";

export const shout = tool({
  description: "Says it louder.",
  input: z.object({ text: z.string(), times: z.number().int().min(1).default(1) }),
  output: z.object({ text: z.string() }),
  run: ({ text, times }) => ({ text: text.toUpperCase().repeat(times) }),
});

export const countLetters = tool({
  description: "Counts letters.",
  mock: true,
  input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  run({ text }, cx) {
    cx.status("counting", 0.5);
    return { letters: cx.isMock ? 0 : text.length };
  },
});
"#;

/// A folder with a file and the packages of this repository's own tests.
fn folder(name: &str, text: &str) -> Option<TempDir> {
    let package = typescript_sdk::built()?;
    let folder = tempfile::tempdir().expect("a folder");
    copy(&package.join("node_modules/zod"), &folder.path().join("node_modules/zod"));
    write(folder.path(), name, text);
    Some(folder)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("copied");
        }
    }
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn k033_a_typescript_file_alone_is_as_many_tools_as_it_exports() {
    let Some(folder) = folder("words.ts", TWO) else { return };
    let home = TestHome::new();
    let _core = home.up();
    let file = folder.path().join("words.ts");
    let add = ["tools", "add", text(&file), "--approve", "--namespace", "acme"];
    let added = home.run(&add).code(0);
    for part in ["acme/shout@1, Says it louder.", "acme/count-letters@1, Counts letters."] {
        assert!(added.stdout.contains(part), "{part:?} is missing in {added:#?}");
    }
    let run = home.run(&["run", "acme/shout@1", "text=ho", "times=2", "-q"]).code(0).json();
    assert_eq!(run["outputs"], json!({"text": "HOHO"}));
    let run = home.run(&["run", "acme/count-letters@1", "text=ho", "-q"]).code(0).json();
    assert_eq!(run["outputs"]["letters"], 2);
    let run = home
        .run(&["run", "acme/count-letters@1", "text=ho", "--mode", "mock", "-q"])
        .code(0)
        .json();
    assert_eq!(run["outputs"]["letters"], 0);
    let wrong = home.run(&["run", "acme/shout@1", "text=ho", "times=0"]).code(2);
    assert!(wrong.stderr.contains("times"), "the schema of the code holds: {wrong:#?}");

    // A tool that is gone takes its place in the catalog along, and a new schema counts at once.
    let changed = TWO.replace("countLetters", "tally").replace("times", "n");
    write(folder.path(), "words.ts", &changed);
    home.run(&add).code(0);
    home.run(&["run", "acme/count-letters@1", "text=ho"]).code(2);
    let run = home.run(&["run", "acme/shout@1", "text=ho", "n=3", "-q"]).code(0).json();
    assert_eq!(run["outputs"]["text"], "HOHOHO");

    // The same in JavaScript, with a manifest that says more of one tool.
    let manifest =
        "ref = \"pack/loud@2\"\nhandler = \"loud.mjs\"\nfunction = \"shout\"\nmax_cost_micro = 5\n";
    write(folder.path(), "wharf.tool.toml", manifest);
    write(folder.path(), "loud.mjs", TWO);
    home.run(&["tools", "add", text(folder.path()), "--approve"]).code(0);
    let run = home.run(&["run", "pack/loud@2", "text=a", "-q"]).code(0).json();
    assert_eq!(run["outputs"]["text"], "A");
}

#[test]
fn k033_t043_what_cannot_be_imported_is_told_when_it_is_added_and_fails_its_run_at_once() {
    let missing = TWO.replace("zod", "no-such-package");
    let Some(folder) = folder("handler.ts", &missing) else { return };
    let home = TestHome::new();
    let _core = home.up();
    let refused = home.run(&["tools", "add", text(folder.path()), "--approve"]).code(2);
    for part in [
        "handler.ts, line 2",
        "no-such-package is not installed",
        "npm install",
        "[tool.handler_invalid]",
    ] {
        assert!(refused.stderr.contains(part), "{part:?} is missing in {refused:#?}");
    }
    write(folder.path(), "handler.ts", &format!("{TWO}enum Color {{ Red }}\n"));
    let refused = home.run(&["tools", "add", text(folder.path()), "--approve"]).code(2);
    assert!(refused.stderr.contains("an enum makes code"), "{refused:#?}");

    // A package that is gone later fails the first run, and is not tried again and again.
    write(folder.path(), "handler.ts", TWO);
    home.run(&["tools", "add", text(folder.path()), "--approve"]).code(0);
    std::fs::remove_dir_all(folder.path().join("node_modules")).expect("removed");
    let failed = home.run(&["run", "local/shout@1", "text=x", "-q"]).code(1).json();
    assert_eq!(failed["error"]["code"], "tool.handler_invalid", "{failed}");
    assert_eq!(failed["attempt"], 1);
    let message = failed["error"]["message"].as_str().expect("text");
    assert!(message.contains("zod is not installed"), "{message}");
}

#[test]
fn k033_t014_the_owner_sees_the_stack_and_work_on_a_file_takes_changes() {
    let Some(folder) = folder("words.ts", TWO) else { return };
    let home = TestHome::new();
    let mut dev = home.spawn(&["dev", text(&folder.path().join("words.ts"))]);
    dev.until_stderr("local/count-letters@1, local/shout@1 new");
    let run = home.run(&["run", "local/shout@1", "text=hello", "-q"]).code(0).json();
    assert_eq!(run["outputs"]["text"], "HELLO");

    write(folder.path(), "words.ts", &TWO.replace("text.toUpperCase()", "(text as any).loud()"));
    dev.until_stderr("words.ts changed: local/count-letters@1, local/shout@1 ready");
    let failed = home.run(&["run", "local/shout@1", "text=hello"]).code(1);
    assert!(failed.stderr.contains("TypeError [tool.internal]"), "{failed:#?}");
    let id = failed.json()["run_id"].as_str().expect("an id").to_owned();
    let story = home.run(&["logs", &id]).code(0).stdout;
    for part in ["TypeError: text.loud is not a function", "    at run (words.ts:8:"] {
        assert!(story.contains(part), "{part:?} is missing in {story}");
    }
    assert!(
        !story.contains("node:") && !story.contains("wharf-node"),
        "no frames of others: {story}"
    );
    dev.until_stderr("TypeError: text.loud is not a function");
    write(folder.path(), "words.ts", "export const broken = (;\n");
    dev.until_stderr("words.ts changed: The handler cannot be imported: SyntaxError in words.ts");
    write(folder.path(), "words.ts", &TWO.replace("countLetters", "tally"));
    dev.until_stderr("local/tally@1 new; local/count-letters@1 gone");

    dev.signal(Signal::INT);
    let ended = dev.wait().code(0);
    for part in ["removed local/shout@1", "removed local/tally@1", "stopped the core"] {
        assert!(ended.stderr.contains(part), "{part:?} is missing in {ended:#?}");
    }
}

#[test]
fn k033_the_page_goes_from_an_empty_folder_to_a_tool_that_stays() {
    if wharf_skips::lacks("node") || wharf_skips::lacks("npm") {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let (ran, checked) = page::follow(&home, "typescript.md");
    assert!(ran >= 8 && checked >= 10, "{ran} blocks, {checked} lines");
}

#[test]
fn k033_a_typescript_file_starts_in_the_strictest_sandbox() {
    let Some(folder) = folder("words.ts", TWO) else { return };
    let home = TestHome::new();
    let _core = home.up();
    let file = folder.path().join("words.ts");
    let added = home.run(&["tools", "add", text(&file), "--approve", "--sandbox", "strict"]);
    let added = added.code(0);
    if !added.stdout.contains("in the sandbox strict") {
        return wharf_skips::skip("this machine has no sandbox that is strict");
    }
    let run = home.run(&["run", "local/shout@1", "text=ho", "-q"]).code(0).json();
    assert_eq!(run["outputs"], json!({"text": "HO"}));
}
