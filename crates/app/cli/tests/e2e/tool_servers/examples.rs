//! The example tools as their pages say, each run by a real core in the default sandbox.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{add, example, file, manifest};
use crate::agents::has_python;
use crate::children::{BUILD, Finish as _, command};
use crate::examples::{json_of, place, shell, trace};
use crate::support::TestHome;

/// What the commands of an example's page printed, one after the other.
fn follow(home: &TestHome, path: &str) -> Vec<String> {
    let page = std::fs::read_to_string(example(path).join("README.md")).expect("a page");
    let (_, block) = page.split_once("```\n").expect("commands");
    let (block, _) = block.split_once("```").expect("their end");
    block.lines().map(|line| shell(home, line)).collect()
}

#[test]
fn t046_text_of_a_tool_server_grows_and_ends_in_a_file_with_a_price() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let printed = follow(&home, "llm/litellm/1");
    let run = json_of(&printed[2]);
    assert_eq!(run["outputs"]["response"], "world://default/chat/session-123/response.txt");
    assert_eq!(run["outputs"]["finish_reason"], "stop");
    assert!(run["would_cost_micro"].as_u64().is_some_and(|cost| cost > 0), "{run}");
    assert_eq!(file(&home, "/chat/session-123/response.txt"), "You said: Hello");
    let trace = trace(&home, "/chat/session-123/response.txt");
    assert_eq!(trace["written"][0]["run_id"], run["run_id"], "{trace}");
    let b3 = blake3::hash(b"You said: Hello").to_hex();
    assert!(trace["written"][0]["b3"].as_str().expect("a hash").ends_with(b3.as_str()), "{trace}");
    // It was seen while it grew, and no address of storage is told.
    let id = run["run_id"].as_str().expect("an id");
    let told = home.run(&["runs", "watch", id, "--json"]).code(0).stdout;
    assert!(told.contains("You") && told.contains("said:"), "{told}");
    assert!(!told.contains("X-Amz") && !told.contains("/artifacts/"), "{told}");
}

#[test]
fn t046_t036_a_conversation_on_a_tool_server_goes_on_from_its_last_turn() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let printed = follow(&home, "chat/multi-turn/1");
    let (first, second) = (json_of(&printed[1]), json_of(&printed[2]));
    assert_eq!(first["outputs"]["turn"], 1);
    assert_eq!(first["outputs"]["state"], "world://default/@turn-1/agent-state.json");
    assert_eq!(second["outputs"]["turn"], 2);
    assert_eq!(second["outputs"]["state"], "world://default/@turn-2/agent-state.json");
    assert_eq!((&first["cost_micro"], &second["cost_micro"]), (&json!(10), &json!(10)));
    assert_eq!(printed[3], "The weather in San Francisco is foggy.");
    assert_eq!(file(&home, "/chat/turn1.txt"), "Where are you?");
    // Each turn's state stays as it was.
    let turns = |path| json_of(&file(&home, path))["turns"].as_array().expect("turns").len();
    assert_eq!(turns("/@turn-1/agent-state.json"), 1);
    assert_eq!(turns("/@turn-2/agent-state.json"), 2);
    let trace = trace(&home, "/@turn-1/agent-state.json");
    assert_eq!(trace["read"][0]["run_id"], "turn-2", "{trace}");
    let state = "state.local=/other.json";
    let nothing = ["run", "chat/multi-turn@1", "message=x", state, "--continues", "turn-1"];
    let refused = home.run(&nothing);
    assert!(refused.stderr.contains("scope.not_found"), "{refused:#?}");
}

#[test]
fn t046_a_video_of_a_tool_server_tells_how_far_it_is_and_ends_in_a_file() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let printed = follow(&home, "media/video/1");
    let run = json_of(&printed[1]);
    assert_eq!(run["outputs"]["video"], "world://default/videos/cat-piano.avi");
    assert_eq!(run["outputs"]["frames"], 40);
    assert_eq!(run["cost_micro"], 200_000);
    let video = std::fs::read(place(&home).join("cat-piano.avi")).expect("fetched");
    let length = u32::from_le_bytes(video[4..8].try_into().expect("four bytes"));
    assert_eq!(usize::try_from(length).expect("small"), video.len() - 8);
    assert_eq!((&video[..4], &video[8..12]), (&b"RIFF"[..], &b"AVI "[..]));
    let pictures = video.windows(4).filter(|four| four == b"00db").count();
    assert_eq!(pictures, 40);
    let trace = trace(&home, "/videos/cat-piano.avi");
    assert_eq!(trace["written"][0]["bytes"], video.len(), "{trace}");
    let id = run["run_id"].as_str().expect("an id");
    let told = home.run(&["runs", "watch", id, "--json"]).code(0).stdout;
    let at = |text: &str| told.find(text).unwrap_or_else(|| panic!("no {text} in {told}"));
    let order = ["\"started\"", "Loading model", "\"fraction\":0.5,", "\"finished\""].map(at);
    assert!(order.is_sorted(), "{told}");
    assert!(printed[3].contains("media/video@1"), "{}", printed[3]);
}

#[test]
fn t046_t042_a_tool_server_in_node_streams_and_writes_files() {
    if wharf_skips::lacks("node") {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let printed = follow(&home, "node/text/typewriter/1");
    let run = json_of(&printed[1]);
    assert_eq!(run["outputs"]["text"], "The quick brown fox");
    assert_eq!(run["outputs"]["words"], 4);
    home.run_with(b"from a file", &["worlds", "put", "default", "/in.txt", "-"]).code(0);
    let files = ["text.world=/in.txt", "delay_ms=0", "--out", "text.world=/out.txt"];
    let run = home.run(&[&["run", "text/typewriter@1"], &files[..]].concat()).code(0).json();
    assert_eq!(run["outputs"]["text"], "world://default/out.txt");
    assert_eq!(file(&home, "/out.txt"), "from a file");
}

/// The Rust example, as it is built beside the program under test.
pub(super) fn words_tool() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_wharf")).with_file_name("words-tool");
    if !program.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let arguments = ["build", "-p", "words-tool", "--bin", "words-tool"];
        let built = command(cargo).args(arguments).finish_within(BUILD);
        assert!(built.status.success(), "{built:?}");
    }
    program
}

/// The Rust example with a manifest of its own that asks for this.
pub(super) fn words(permissions: &str) -> tempfile::TempDir {
    let exec = "exec = [\"./words-tool\", \"--port\", \"{port}\"]";
    let more = "side_effects = false\nmax_cost_micro = 100000";
    let folder = manifest("text/words@1", &format!("{exec}\n{more}\npermissions = {permissions}"));
    std::fs::copy(words_tool(), folder.path().join("words-tool")).expect("copied");
    folder
}

#[test]
fn t046_t042_a_tool_server_in_rust_counts_the_words_of_a_file() {
    let home = TestHome::new();
    let _core = home.up();
    let folder = words("[]");
    add(&home, folder.path());
    let input = json!({"text": "to be or not to be"}).to_string();
    let run = home.run(&["run", "text/words@1", "--input", &input]).code(0);
    assert_eq!(run.json()["outputs"]["words"], 6);
    assert_eq!(run.json()["cost_micro"], 10);
    home.run_with(b"one two two", &["worlds", "put", "default", "/in.txt", "-"]).code(0);
    let files = ["text.world=/in.txt", "--out", "table.world=/table.txt"];
    let run = home.run(&[&["run", "text/words@1"], &files[..]].concat()).code(0).json();
    assert_eq!(run["outputs"]["words"], 3);
    assert_eq!(file(&home, "/table.txt"), "one\t1\ntwo\t2\n");
}
