//! What a newcomer does in the first minutes.

use rustix::process::Signal;

use crate::support::{TestHome, mode, wait_for};

#[test]
fn a_first_run_streams_and_ends_with_one_json_object() {
    let home = TestHome::new();
    let core = home.up();
    let ended = home.run(&["run", "wharf/count", "n=20", "delay_ms=1"]).code(0);
    let run = ended.json();
    assert_eq!(run["status"], "succeeded");
    assert_eq!(run["outputs"]["sum"], 210);
    for number in 1..=20 {
        assert!(ended.stderr.lines().any(|line| line == number.to_string()), "{ended:#?}");
    }
    let list = home.run(&["runs", "list", "--json"]).code(0).json();
    assert_eq!(list[0]["run_id"], run["run_id"]);
    let table = home.run(&["runs", "list"]).code(0);
    assert!(table.stdout.contains("wharf/count") && table.stdout.contains("succeeded"));
    let id = run["run_id"].as_str().expect("an id");
    assert_eq!(home.run(&["runs", "show", id, "--json"]).code(0).json()["outputs"]["n"], 20);
    let tools = home.run(&["tools", "list", "--json"]).code(0).json();
    let names: Vec<_> = tools.as_array().expect("a list").iter().map(|t| &t["tool_id"]).collect();
    assert_eq!(names.len(), 10, "{names:?}");
    core.stop().code(0);
}

#[test]
fn exit_codes_tell_how_a_run_ended() {
    let home = TestHome::new();
    let _core = home.up();
    let failed = home.run(&["run", "wharf/fail", "code=acme.no_stock"]).code(1);
    assert_eq!(failed.json()["error"]["code"], "acme.no_stock");
    for usage in [
        &["run", "wharf/count", "n=many"][..],
        &["run", "wharf/count"],
        &["run", "wharf/nothing"],
        &["run", "wharf/echo", "--input", "not json"],
        &["run"],
        &["frobnicate"],
    ] {
        let ended = home.run(usage).code(2);
        assert!(!ended.stderr.is_empty() && ended.stdout.is_empty(), "{ended:#?}");
    }
    let schema = home.run(&["run", "wharf/count", "n=0"]).code(2);
    assert!(schema.stderr.contains("/n"), "the error names the place: {schema:#?}");
}

#[test]
fn ctrl_c_cancels_the_run_and_ends_with_4() {
    let home = TestHome::new();
    let _core = home.up();
    let mut running = home.spawn(&["run", "wharf/count", "n=100000", "delay_ms=20"]);
    running.until_stderr("3\n");
    running.signal(Signal::INT);
    let ended = running.wait().code(4);
    assert_eq!(ended.json()["status"], "canceled");
}

#[test]
fn a_second_terminal_watches_from_the_start() {
    let home = TestHome::new();
    let _core = home.up();
    let started = home.run(&["run", "wharf/count", "n=50", "delay_ms=10", "--detach"]).code(0);
    let id = started.json()["run_id"].as_str().expect("an id").to_owned();
    let watched = home.run(&["runs", "watch", &id, "--json"]).code(0);
    let events: Vec<serde_json::Value> =
        watched.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events[0]["event"], "queued");
    assert_eq!(events.last().expect("events")["event"], "finished");
    let text: String = events
        .iter()
        .filter(|event| event["event"] == "text")
        .filter_map(|event| event["data"]["text"].as_str())
        .collect();
    assert_eq!(text, (1..=50).map(|n| format!("{n}\n")).collect::<String>());
}

#[test]
fn a_question_is_answered_in_another_terminal_also_across_a_kill() {
    let home = TestHome::new();
    let core = home.up();
    let mut asking = home.spawn(&["run", "wharf/ask", "question=Which one?"]);
    let id = wait_for("the question", || {
        let inbox = home.run(&["inbox", "--json"]).code(0).json();
        Some(inbox.get(0)?["ask_id"].as_str()?.to_owned())
    });
    core.kill();
    let _core = home.up();
    assert!(asking.is_running(), "whoever follows the run waits for the core to come back");
    let wrong = home.run(&["answer", &id, "--value", "7"]);
    assert_ne!(wrong.code, Some(0), "a number does not fit: {wrong:#?}");
    home.run(&["answer", &id, "the red one"]).code(0);
    let ended = asking.wait().code(0);
    assert_eq!(ended.json()["outputs"]["answer"], "the red one");
    let again = home.run(&["answer", &id, "the blue one"]);
    assert!(again.code != Some(0) && again.stderr.contains("ask.decided"), "{again:#?}");
}

#[test]
fn an_approval_is_allowed_or_denied_in_another_terminal() {
    let home = TestHome::new();
    let _core = home.up();
    let pending = |purpose: &str| {
        let running = home.spawn(&["run", "wharf/approve-me", &format!("purpose={purpose}")]);
        let id = wait_for("the approval", || {
            let inbox = home.run(&["inbox", "--json"]).code(0).json();
            Some(inbox.get(0)?["ask_id"].as_str()?.to_owned())
        });
        (running, id)
    };
    let (running, id) = pending("lunch");
    home.run(&["approve", &id]).code(0);
    assert_eq!(running.wait().code(0).json()["outputs"]["approved"], true);
    let (running, id) = pending("dessert");
    home.run(&["deny", &id, "--reason", "not today"]).code(0);
    let refused = running.wait().code(3).json();
    assert_eq!(refused["error"]["code"], "ask.denied");
    assert!(refused["error"]["message"].as_str().expect("text").contains("not today"));
}

#[test]
fn budgets_hold_money_before_it_is_spent() {
    let home = TestHome::new();
    let _core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    let budget = ["worlds", "budget", "lab", "--limit-micro", "100", "--default-hold-micro", "60"];
    home.run(&budget).code(0);
    let spend = ["run", "wharf/sleep", "ms=1", "cost_micro=50", "--world", "lab"];
    assert_eq!(home.run(&spend).code(0).json()["cost_micro"], 50);
    let refused = home.run(&spend).code(3);
    assert!(refused.stderr.contains("budget.exceeded"), "{refused:#?}");
    let worlds = home.run(&["worlds", "list", "--json"]).code(0).json();
    let lab = worlds.as_array().expect("a list").iter().find(|w| w["world"] == "lab");
    assert_eq!(lab.expect("listed")["spent_micro"], 50);
}

#[test]
fn the_audit_tells_what_happened_and_finds_an_edit() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["run", "wharf/echo", "canary=do-not-write-me-down"]).code(0);
    let exported = home.run(&["audit", "export"]).code(0).stdout;
    assert!(exported.contains("tool.call_completed") && !exported.contains("do-not-write-me-down"));
    home.run(&["audit", "verify"]).code(0);
    core.stop().code(0);
    let database = rusqlite::Connection::open(home.path().join("wharf.db")).expect("opens");
    let changed = database
        .execute("UPDATE audit SET record = replace(record, 'wharf/echo', 'wharf/other')", [])
        .expect("edits");
    assert!(changed > 0);
    drop(database);
    let found = home.run(&["audit", "verify"]).code(1);
    assert!(found.stdout.contains("edited") || found.stderr.contains("edited"), "{found:#?}");
}

#[test]
fn a_home_is_private_and_a_core_leaves_it_tidy() {
    let home = TestHome::new();
    let core = home.up();
    let path = home.path();
    assert_eq!(mode(&path), 0o700);
    for file in ["run/owner.token", "wharf.db", "wharf.db-wal", "secrets/audit.key"] {
        assert_eq!(mode(&path.join(file)), 0o600, "{file}");
    }
    home.run(&["doctor"]).code(0);
    let token = core.token();
    core.stop().code(0);
    assert!(!path.join("run/core.json").exists(), "nobody finds a core that is gone");
    assert!(!home.log().contains(&token), "the token is in the log");
    let lost = home.run(&["runs", "list"]);
    assert!(lost.stderr.contains("core.unreachable") && lost.stderr.contains("wharf up"));
}

#[test]
fn help_shows_examples_and_completions_are_made() {
    let home = TestHome::new();
    for command in ["up", "run", "runs", "tools", "inbox", "answer", "worlds", "audit"] {
        let help = home.run(&[command, "--help"]).code(0).stdout;
        assert!(help.contains("Examples"), "{command} shows none: {help}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.run(&["completions", shell]).code(0).stdout.contains("wharf"));
    }
}
