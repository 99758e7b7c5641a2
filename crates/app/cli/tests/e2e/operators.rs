//! Operators with the real program: asked, gating and executing, by hand, by script, in Python.

mod crashes;
pub(crate) mod driver;

use std::io::{Read as _, Write as _};
use std::time::Instant;

use rustix::process::{Pid, Signal, test_kill_process};
use rustix::pty;
use serde_json::json;

use crate::agents::has_python;
use crate::children::until_readable;
use crate::support::{Api, LONG, TestHome, mode, wait_for};
use driver::{Operator, detached, gated, python};

#[test]
fn o015_a_question_is_answered_by_a_typed_line() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let mut operator = Operator::wharf(&home, &["--person"]);
    let run = api.start(&json!({"tool": "wharf/ask", "inputs": {"question": "Which color?",
        "schema": {"type": "string", "enum": ["red", "blue"]}}}));
    let asked = operator.wait("ask");
    assert_eq!(asked["question"]["title"], "Which color?", "{asked}");
    // An answer that does not fit leaves the question open.
    operator.type_line("answer 1 green");
    assert_eq!(operator.wait_error()["code"], "ask.answer_invalid");
    let id = asked["req_id"].as_str().expect("an id");
    operator.type_line(&format!("answer {id} \"blue\""));
    let ended = api.end_of("default", run["run_id"].as_str().expect("an id"));
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert!(ended["outputs"].to_string().contains("blue"), "{ended}");
    operator.type_line("quit");
    assert_eq!(operator.code(), Some(0));
    assert_eq!(api.get("/v1/operators")["items"], json!([]), "the seat is given up");
    core.stop().code(0);
}

#[test]
fn o013_a_gated_run_passes_or_is_refused_with_the_reason() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let mut operator = Operator::wharf(&home, &["--desc", "the gate"]);
    let first = detached(&api, gated(&operator, "one"));
    let asked = operator.wait("hook_before");
    assert_eq!((&asked["agent"], &asked["attempt"]), (&json!("wharf/echo"), &json!(1)));
    assert_eq!(api.get(&format!("/v1/runs/{first}"))["attempt"], 0, "nothing runs before the yes");
    operator.type_line("approve 1");
    assert_eq!(api.end_of("default", &first)["status"], "succeeded");
    let after = operator.wait("hook_after");
    assert!(after["result"].to_string().contains("one"), "{after}");
    let second = detached(&api, gated(&operator, "two"));
    operator.wait("hook_before");
    operator.type_line("deny 2 not on a Friday");
    let ended = api.end_of("default", &second);
    assert_eq!(ended["status"], "refused", "{ended}");
    assert!(ended["error"]["message"].to_string().contains("not on a Friday"), "{ended}");
    core.stop().code(0);
}

#[test]
fn o013_a_rule_of_a_world_names_the_seat() {
    let home = TestHome::new();
    let core = home.up();
    let mut operator = Operator::wharf(&home, &["--person"]);
    let audience = format!("seat:{}", operator.sid);
    let rules = json!([{"tool": "wharf/echo", "approve": true, "audience": audience}]);
    home.run(&["worlds", "create", "lab", "--policy", &rules.to_string()]).code(0);
    let mut running = home.spawn(&["run", "wharf/echo", "text=hello", "--world", "lab"]);
    let asked = operator.wait("hook_before");
    assert_eq!((&asked["agent"], &asked["world"]), (&json!("wharf/echo"), &json!("lab")));
    assert!(running.is_running());
    operator.type_line("deny 1 not here");
    let ended = running.wait().code(3);
    assert!(ended.stderr.contains("not here"), "{ended:#?}");
    home.run(&["run", "wharf/echo", "text=hello"]).code(0);
    core.stop().code(0);
}

#[test]
fn o017_a_job_is_carried_out_by_a_command_of_this_machine() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let mut operator = Operator::wharf(&home, &["--execute", "coder=tr a-z A-Z", "--approve-all"]);
    let task = json!({"agent": "coder", "input": "say hello", "operator_sid": operator.sid});
    let (status, done) = api.ask("POST", "/v1/tasks", &task);
    assert_eq!((status, &done["result"]["value"]), (200, &json!("SAY HELLO")), "{done}");
    let ran = home.run(&["run", &format!("{}/coder", operator.sid), "prompt=as a tool"]).code(0);
    assert_eq!(ran.json()["outputs"]["value"], "AS A TOOL", "{ran:#?}");
    // What no rule names waits for somebody who takes it.
    let object = r#"printf '{"agent":"%s","prompt":"%s"}' "$WHARF_AGENT" "$(cat)""#;
    let task = json!({"agent": "other", "input": "x", "operator_sid": operator.sid});
    let run = detached(&api, task);
    let spawn = operator.wait_spawn("other");
    assert!(!spawn.to_string().contains("wh-"), "no credential is shown: {spawn}");
    operator.type_line(&format!("take {} {object}", spawn["number"]));
    let ended = api.end_of("default", &run);
    assert_eq!(ended["outputs"], json!({"agent": "other", "prompt": "x"}), "{ended}");
    core.stop().code(0);
}

#[test]
fn o025_a_worker_that_fails_fails_its_run_with_what_it_said() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let operator = Operator::wharf(&home, &["--execute", "*=echo broken; exit 3"]);
    let task = json!({"agent": "coder", "input": "x", "operator_sid": operator.sid});
    let ended = api.end_of("default", &detached(&api, task));
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(ended["error"]["code"], "operator.failed", "{ended}");
    assert!(ended["error"].to_string().contains("broken"), "{ended}");
    core.stop().code(0);
}

#[test]
fn o026_a_canceled_job_ends_its_worker() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let dir = tempfile::tempdir().expect("a folder");
    let pid_file = dir.path().join("pid");
    let rule = format!("*=echo $$ > {}; sleep 600", pid_file.display());
    let operator = Operator::wharf(&home, &["--execute", &rule]);
    let task = json!({"agent": "coder", "input": "x", "operator_sid": operator.sid});
    let run = detached(&api, task);
    let pid = wait_for("the worker", || {
        let text = std::fs::read_to_string(&pid_file).ok()?;
        text.trim().parse::<i32>().ok().and_then(Pid::from_raw)
    });
    api.ask("POST", &format!("/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!(operator.wait("worker_ended")["how"], "stopped");
    assert!(test_kill_process(pid).is_err(), "the worker is gone");
    assert_eq!(api.end_of("default", &run)["status"], "canceled");
    core.stop().code(0);
}

#[test]
fn o005_a_job_goes_on_when_the_core_is_killed_and_ends_once() {
    let home = TestHome::new();
    let core = home.up();
    let dir = tempfile::tempdir().expect("a folder");
    let (count, go) = (dir.path().join("count"), dir.path().join("go"));
    let rule = format!(
        "*=echo x >> {}; while [ ! -e {} ]; do sleep 0.02; done; cat",
        count.display(),
        go.display()
    );
    let operator = Operator::wharf(&home, &["--execute", &rule]);
    let task = json!({"agent": "coder", "input": "once", "operator_sid": operator.sid});
    let run = detached(&Api::of(&core), task);
    wait_for("the worker", || count.exists().then_some(()));
    core.kill();
    operator.wait("disconnected");
    let core = home.up();
    operator.wait("connected");
    std::fs::write(&go, "").expect("written");
    let api = Api::of(&core);
    let ended = api.end_of("default", &run);
    assert_eq!((&ended["status"], &ended["attempt"]), (&json!("succeeded"), &json!(1)), "{ended}");
    assert_eq!(ended["outputs"]["value"], "once");
    assert_eq!(std::fs::read_to_string(&count).expect("there"), "x\n", "one worker");
    let (_, events) = api.bytes(&format!("/v1/runs/{run}/events"));
    let events = String::from_utf8_lossy(&events).into_owned();
    assert_eq!(events.lines().filter(|line| line.ends_with("finished")).count(), 1, "{events}");
    core.stop().code(0);
}

#[test]
fn a_kept_seat_is_come_back_to_with_what_waits() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("seat.token");
    let file_name = file.to_str().expect("text");
    let operator = Operator::wharf(&home, &["--keep", "--token-file", file_name]);
    let sid = operator.sid.clone();
    assert_eq!(mode(&file), 0o600);
    let run = detached(&api, gated(&operator, "later"));
    operator.wait("hook_before");
    operator.signal(Signal::TERM);
    assert_eq!(operator.code(), Some(0));
    let mut operator = Operator::wharf(&home, &["--seat", &sid, "--token-file", file_name]);
    let again = operator.wait("hook_before");
    assert_eq!(again["redelivered"], true, "{again}");
    operator.type_line("approve h");
    assert_eq!(api.end_of("default", &run)["status"], "succeeded");
    // What is typed right before the end still counts.
    let run = detached(&api, gated(&operator, "last"));
    operator.wait("hook_before");
    operator.type_line("approve h\nquit");
    assert_eq!(operator.code(), Some(0));
    assert_eq!(api.end_of("default", &run)["status"], "succeeded");
    assert_eq!(api.get("/v1/operators")["items"][0]["sid"], sid.as_str(), "it was not made there");
    core.stop().code(0);
}

#[test]
fn o004_whoever_sits_down_later_has_the_seat() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("seat.token");
    let file = file.to_str().expect("text");
    let first = Operator::wharf(&home, &["--token-file", file]);
    let sid = first.sid.clone();
    let mut second = Operator::wharf(&home, &["--seat", &sid, "--token-file", file]);
    assert_eq!(first.code(), Some(1), "it is told, and does not fight for the seat");
    assert_eq!(api.get("/v1/operators")["items"][0]["connected"], true);
    let run = detached(&api, gated(&second, "x"));
    second.wait("hook_before");
    second.type_line("approve 1");
    assert_eq!(api.end_of("default", &run)["status"], "succeeded");
    core.stop().code(0);
}

#[test]
fn a_question_is_answered_in_a_form_at_a_terminal() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let terminal = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).expect("a pty");
    pty::grantpt(&terminal).expect("granted");
    pty::unlockpt(&terminal).expect("unlocked");
    let name = pty::ptsname(&terminal, Vec::new()).expect("a name");
    let name = name.to_str().expect("text");
    let side = || std::fs::File::options().read(true).write(true).open(name).expect("opened");
    let mut command = home.wharf(&["operator", "--person"]);
    command.stdin(side()).stdout(side()).stderr(side());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let mut screen = std::fs::File::from(terminal);
    let mut keys = screen.try_clone().expect("a second handle");
    let mut seen = String::new();
    let mut until = |text: &str| {
        let mut piece = [0; 1024];
        while !seen.contains(text) {
            let what = format!("{text:?} on the screen, which shows {seen:?}");
            until_readable(&screen, Instant::now() + LONG, &what);
            let count = screen.read(&mut piece).expect("readable");
            seen.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        let at = seen.find(text).expect("there") + text.len();
        seen.drain(..at);
    };
    until("connected");
    let run = api.start(&json!({"tool": "wharf/ask", "inputs": {"question": "Which color?",
        "schema": {"type": "string", "enum": ["red", "blue"]}}}));
    until("#1 question: Which color?");
    keys.write_all(b"answer 1\n").expect("typed");
    until("2) blue");
    keys.write_all(b"green\n2\n").expect("typed");
    until("one of the choices");
    until("#1: answered");
    let ended = api.end_of("default", run["run_id"].as_str().expect("an id"));
    assert!(ended["outputs"].to_string().contains("blue"), "{ended}");
    // The end of the input, as Ctrl-D types it, leaves.
    keys.write_all(&[4]).expect("typed");
    let left = wait_for("its end", || child.try_wait().expect("a child"));
    assert!(left.success());
    assert_eq!(api.get("/v1/operators")["items"], json!([]), "the seat is given up");
    core.stop().code(0);
}

#[test]
fn wrong_lines_are_told_and_change_nothing() {
    let home = TestHome::new();
    let core = home.up();
    let mut operator = Operator::wharf(&home, &[]);
    for (line, code) in [
        ("dance", "request.invalid"),
        ("approve 7", "operator.request_unknown"),
        ("take 1", "request.invalid"),
    ] {
        operator.type_line(line);
        assert_eq!(operator.wait_error()["code"], code, "{line}");
    }
    operator.type_line("list");
    assert_eq!(operator.wait("waiting")["items"], json!([]));
    home.run(&["operator", "--seat", "S-1"]).code(2);
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("token");
    std::fs::write(&file, "wrong").expect("written");
    let file = file.to_str().expect("text");
    let refused = home.run(&["operator", "--seat", &operator.sid, "--token-file", file, "--json"]);
    assert!(refused.code(3).stderr.contains("auth.invalid"));
    core.stop().code(0);
}

#[test]
fn the_python_operator_answers_gates_and_executes() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let operator = python(&core, &[("OPERATOR_DENY", "wharf/sleep")]);
    let run = api.start(&json!({"tool": "wharf/ask", "inputs": {"question": "Go on?"}}));
    let ended = api.end_of("default", run["run_id"].as_str().expect("an id"));
    assert!(ended["outputs"].to_string().contains("yes"), "{ended}");
    let run = detached(&api, gated(&operator, "hello"));
    assert_eq!(api.end_of("default", &run)["status"], "succeeded");
    let sleep = json!({"agent": "wharf/sleep", "input": {"ms": 1},
        "operator": {"spawn_hook_id": operator.sid}});
    let ended = api.end_of("default", &detached(&api, sleep));
    assert!(ended["error"]["message"].to_string().contains("not here"), "{ended}");
    let task = json!({"agent": "coder", "input": "two words", "operator_sid": operator.sid});
    let (status, done) = api.ask("POST", "/v1/tasks", &task);
    assert_eq!(status, 200, "{done}");
    assert_eq!(done["result"], json!({"words": 2, "shout": "TWO WORDS"}));
    operator.signal(Signal::INT);
    assert_eq!(operator.code(), Some(0));
    assert_eq!(api.get("/v1/operators")["items"], json!([]));
    core.stop().code(0);
}

#[test]
fn o005_the_python_operator_outlives_a_killed_core() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    let address = core.url().replace("http://", "");
    let operator = python(&core, &[("WORKER_PAUSE", "1")]);
    let task = json!({"agent": "coder", "input": "once", "operator_sid": operator.sid});
    let run = detached(&Api::of(&core), task);
    operator.wait("worker");
    core.kill();
    operator.wait("lost");
    let core = home.up_on(&address, &[]);
    let ended = Api::of(&core).end_of("default", &run);
    assert_eq!(ended["outputs"], json!({"words": 1, "shout": "ONCE"}), "{ended}");
    assert_eq!(ended["attempt"], 1, "{ended}");
    core.stop().code(0);
}
