//! The examples with files as their pages say: text that grows, a conversation with a memory, a
//! video with progress, each run by a real core in the default sandbox.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agents::{example, has_python};
use crate::children::{Finish as _, command};
use crate::support::TestHome;

/// What the commands of an example's page printed, one after the other.
fn follow(home: &TestHome, name: &str) -> Vec<String> {
    let readme = std::fs::read_to_string(example(name).join("README.md")).expect("a page");
    let (_, block) = readme.split_once("```\n").expect("commands");
    let (block, _) = block.split_once("```").expect("their end");
    block.lines().map(|line| shell(home, line)).collect()
}

/// Runs a line as a reader of the page would, beside a folder of examples.
#[track_caller]
pub(crate) fn shell(home: &TestHome, line: &str) -> String {
    let place = place(home);
    let wharf = Path::new(env!("CARGO_BIN_EXE_wharf"));
    let mut paths = vec![wharf.parent().expect("a folder").to_owned()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").expect("a path")));
    let output = command("sh")
        .args(["-c", line])
        .current_dir(place)
        .env("WHARF_HOME", home.path())
        .env("PATH", std::env::join_paths(paths).expect("paths"))
        .env_remove("WHARF_URL")
        .env_remove("WHARF_TOKEN")
        .finish();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{line}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Where commands are run: what they write stays out of the sources.
pub(crate) fn place(home: &TestHome) -> PathBuf {
    let place = home.path().parent().expect("a folder").join("place");
    if !place.exists() {
        std::fs::create_dir(&place).expect("made");
        let examples = example("..").canonicalize().expect("there");
        std::os::unix::fs::symlink(examples, place.join("examples")).expect("linked");
    }
    place
}

pub(crate) fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn file(home: &TestHome, path: &str) -> String {
    home.run(&["worlds", "get", "default", path, "-"]).code(0).stdout
}

pub(crate) fn trace(home: &TestHome, path: &str) -> Value {
    home.run(&["artifacts", "trace", "default", path, "--json"]).code(0).json()
}

/// What a run told while it went on.
fn told(home: &TestHome, run: &str) -> Vec<Value> {
    let lines = home.run(&["runs", "watch", run, "--json"]).code(0).stdout;
    lines.lines().map(json_of).collect()
}

/// The agent's own words: everything in its log.
fn logged(home: &TestHome, agent: &str) -> String {
    home.run(&["agents", "logs", agent]).code(0).stdout
}

#[test]
fn t046_text_grows_and_ends_in_a_file_with_a_price() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let printed = follow(&home, "llm-text");
    let run = json_of(&printed[3]);
    let text = "Hi there! You have spoken once, and your last words were: Hello";
    assert_eq!(run["outputs"]["response"], "world://default/chat/session-123/response.txt");
    assert_eq!(run["outputs"]["finish_reason"], "stop");
    assert_eq!(run["outputs"]["tokens"], 13);
    // One token in at 150, twelve out at 600 for a thousand of them, and a part is a whole.
    assert_eq!(run["cost_micro"], 8);
    assert_eq!(printed[4], text);
    assert_eq!(file(&home, "/chat/session-123/response.txt"), text);
    let id = run["run_id"].as_str().expect("an id");
    let trace = trace(&home, "/chat/session-123/response.txt");
    assert_eq!(trace["written"][0]["run_id"], id, "{trace}");
    assert_eq!(trace["written"][0]["key"], "response", "{trace}");
    assert!(printed[5].contains(id), "{}", printed[5]);
    let told = format!("{:?}", told(&home, id));
    assert!(told.contains("Hi") && told.contains("there!"), "{told}");

    // Without a place the text is an ordinary output.
    let input = json!({"messages": [{"role": "user", "content": "Hello"}], "model": "gpt-4o"});
    let tool = "dev.wharf.llm-text/generate";
    let run = home.run(&["run", tool, "--input", &input.to_string()]).code(0).json();
    assert_eq!(run["outputs"]["response"], text);
    let input = json!({"messages": [], "model": "gpt-4o"});
    home.run(&["run", tool, "--input", &input.to_string()]).code(1);
}

#[test]
fn t046_t036_a_conversation_goes_on_from_what_its_last_turn_wrote() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let printed = follow(&home, "multi-turn");
    let (first, second) = (json_of(&printed[3]), json_of(&printed[4]));
    assert_eq!(first["outputs"]["turn"], 1);
    assert_eq!(first["outputs"]["state"], "world://default/@turn-1/agent-state.json");
    assert_eq!(second["outputs"]["turn"], 2);
    assert_eq!(second["outputs"]["state"], "world://default/@turn-2/agent-state.json");
    assert_eq!(second["cost_micro"], 10);
    assert_eq!(printed[5], "The weather in San Francisco is foggy.");
    assert_eq!(file(&home, "/chat/turn1.txt"), "Where are you?");
    // Each turn's state stays as it was.
    let turns = |path| json_of(&file(&home, path))["turns"].as_array().expect("turns").len();
    assert_eq!(turns("/@turn-1/agent-state.json"), 1);
    assert_eq!(turns("/@turn-2/agent-state.json"), 2);
    let trace = trace(&home, "/@turn-1/agent-state.json");
    assert_eq!(trace["written"][0]["run_id"], "turn-1", "{trace}");
    assert_eq!(trace["read"][0]["run_id"], "turn-2", "{trace}");
    let went = trace["went_into"].to_string();
    assert!(went.contains("/@turn-2/agent-state.json") && went.contains("/chat/turn2.txt"));
    assert!(printed[6].contains("turn-1"), "{}", printed[6]);

    // Another conversation can go on from the first turn.
    let (tool, state) = ("dev.wharf.multi-turn/chat", "state.local=/agent-state.json");
    let other = ["run", tool, "message=Cairo", state, "--continues", "turn-1"];
    let run = home.run(&other).code(0).json();
    assert_eq!(run["outputs"]["response"], "The weather in Cairo is sunny.");
    // What nobody wrote is said before the agent is asked.
    let nothing = ["run", tool, "message=x", "state.local=/other.json", "--continues", "turn-1"];
    let refused = home.run(&nothing);
    assert!(refused.stderr.contains("scope.not_found"), "{refused:#?}");
}

#[test]
fn t046_r168_a_video_tells_how_far_it_is_and_ends_in_a_file() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let printed = follow(&home, "video");
    let run = json_of(&printed[3]);
    assert_eq!(run["outputs"]["video"], "world://default/videos/cat-piano.avi");
    assert_eq!(run["outputs"]["frames"], 40);
    assert_eq!(run["cost_micro"], 200_000);
    let video = std::fs::read(place(&home).join("cat-piano.avi")).expect("fetched");
    assert_eq!(pictures_of(&video), 40);
    let id = run["run_id"].as_str().expect("an id");
    let trace = trace(&home, "/videos/cat-piano.avi");
    assert_eq!(trace["written"][0]["run_id"], id, "{trace}");
    assert_eq!(trace["written"][0]["bytes"], video.len(), "{trace}");
    let b3 = blake3::hash(&video).to_hex();
    assert!(trace["written"][0]["b3"].as_str().expect("a hash").ends_with(b3.as_str()), "{trace}");
    let told = told(&home, id);
    let said: Vec<String> = told.iter().map(Value::to_string).collect();
    let place_of = |text: &str| said.iter().position(|line| line.contains(text)).expect(text);
    let order = ["\"started\"", "Loading model", "\"checkpoint\"", "\"completed\""].map(place_of);
    assert!(order.is_sorted(), "{said:#?}");
    assert!(said[order[2]].contains("0.5"), "{}", said[order[2]]);
    assert!(printed[5].contains("dev.wharf.video/generate"), "{}", printed[5]);
    assert_eq!(logged(&home, "dev.wharf.video"), "", "it printed nothing");
}

/// How many pictures an AVI file holds: what its head says, its index, and what is there agree.
fn pictures_of(video: &[u8]) -> usize {
    let number = |at: usize| {
        let bytes = video[at..at + 4].try_into().expect("four bytes");
        usize::try_from(u32::from_le_bytes(bytes)).expect("small")
    };
    assert_eq!((&video[..4], &video[8..12]), (&b"RIFF"[..], &b"AVI "[..]));
    assert_eq!(number(4), video.len() - 8);
    let (mut at, mut counts) = (12, Vec::new());
    while at < video.len() {
        let (name, length) = (&video[at..at + 4], number(at + 4));
        match (name, &video[at + 8..at + 12]) {
            (b"LIST", b"hdrl") => counts.push(number(at + 12 + 8 + 16)),
            (b"LIST", b"movi") => counts.push((length - 4) / (8 + 64 * 48 * 3)),
            (b"idx1", _) => counts.push(length / 16),
            other => panic!("{other:?}"),
        }
        at += 8 + length;
    }
    assert!(counts.len() == 3 && counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    counts[0]
}

/// The conversation as an agent that asks for these permissions and prints where its files are.
fn talkative(permissions: &[&str]) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for name in ["agent.py", "wharf_agent.py", "opensentience.agent.json"] {
        let text = std::fs::read_to_string(example("multi-turn").join(name)).expect("there");
        let asked = format!("\"permissions\": {}", json!(permissions));
        let text = text.replace("\"permissions\": []", &asked).replace(
            "    state = remembered(call)\n",
            "    print(call.input.get(\"state\"), call.outputs, flush=True)\n    \
             state = remembered(call)\n",
        );
        std::fs::write(copy.path().join(name), text).expect("written");
    }
    copy
}

/// Files of the home in which a signature stands.
fn signed(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(signed(&path));
        } else if path.is_file() {
            let text =
                String::from_utf8_lossy(&std::fs::read(&path).expect("readable")).into_owned();
            let mut signatures = text.split("X-Amz-Signature=").skip(1);
            if signatures.any(|after| !after.starts_with("[redacted]")) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn r163_t035_agents_that_reach_the_store_use_addresses_that_no_record_shows() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let port = std::fs::read_to_string(home.path().join("run/storage.port")).expect("kept");
    let permission = format!("network:egress:127.0.0.1:{}", port.trim());
    let (id, tool) = ("dev.wharf.multi-turn", "dev.wharf.multi-turn/chat");
    for (at, permissions, level) in
        [("fenced", vec![permission.as_str()], "standard"), ("free", vec![], "basic")]
    {
        let folder = talkative(&permissions);
        home.run(&["agents", "add", folder.path().to_str().expect("text")]).code(0);
        home.run(&["agents", "approve", id, "--all", "--sandbox", level]).code(0);
        home.run(&["agents", "start", id]).code(0);
        let (first, second) = (format!("{at}-1"), format!("{at}-2"));
        let state = ["--out", "state.local=/s.json"];
        let turn = ["run", tool, "message=the weather", "--run-id", &first];
        home.run(&[&turn[..], &state].concat()).code(0);
        let turn = ["run", tool, "message=Hamburg", "state.local=/s.json", "--continues", &first];
        let turn = [&turn[..], &["--run-id", &second], &state].concat();
        let run = home.run(&turn).code(0).json();
        assert_eq!(run["outputs"]["response"], "The weather in Hamburg is rainy.", "{at}");
        assert_eq!(run["outputs"]["state"], format!("world://default/@{second}/s.json"), "{at}");
        let logs = logged(&home, id);
        let printed = logs.lines().filter(|line| line.contains("X-Amz-Signature=[redacted]"));
        // What the first one printed is still there when the second one comes.
        let printed = printed.filter(|line| line.contains(&format!("{at}-1/s.json")));
        assert_eq!(printed.count(), 2, "{at}: {logs}");
        home.run(&["agents", "stop", id]).code(0);
        home.run(&["agents", "remove", id]).code(0);
    }
    assert_eq!(signed(&home.path()), Vec::<PathBuf>::new());
    let shown = home.run(&["runs", "show", "fenced-2", "--json"]).code(0).stdout;
    assert!(!shown.contains("X-Amz"), "{shown}");
}

#[test]
fn the_examples_share_one_runtime() {
    let read = |name| std::fs::read(example(name).join("wharf_agent.py")).expect("there");
    let first = read("llm-text");
    for name in ["multi-turn", "video"] {
        assert!(read(name) == first, "{name} has another one");
    }
}

#[test]
fn the_examples_keep_the_protocol() {
    if !has_python() {
        return;
    }
    for name in ["llm-text", "multi-turn", "video"] {
        let folder = example(name);
        let folder = folder.to_str().expect("text");
        let arguments = ["conformance", "agent-protocol", "--dir", folder, "--", "python3"];
        TestHome::new().run(&[&arguments[..], &["agent.py"]].concat()).code(0);
    }
}
