//! `docs/flows.md` and `docs/expressions.md`, command by command, and the example flows.

use serde_json::{Value, json};

use crate::page;
use crate::support::{Core, TestHome, wait_for};

/// What a flow gave, whose run ended well.
fn outputs(home: &TestHome, arguments: &[&str]) -> Value {
    let run = home.run(arguments).code(0);
    let run: Value = serde_json::from_str(&run.stdout).expect("a run");
    run["outputs"].clone()
}

fn example(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/flows");
    format!("{folder}/{name}.yaml")
}

fn added(name: &str) -> (TestHome, Core) {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["flow", "add", &example(name)]).code(0);
    (home, core)
}

#[test]
fn f019_the_page_about_flows_tells_the_truth() {
    let home = TestHome::new();
    let _core = home.up();
    let (ran, checked) = page::follow(&home, "flows.md");
    assert!(ran > 10 && checked > 16, "{ran} blocks were run, {checked} lines were looked for");
}

#[test]
fn f004_the_page_about_expressions_tells_the_truth() {
    let home = TestHome::new();
    let _core = home.up();
    let (ran, checked) = page::follow(&home, "expressions.md");
    assert!(ran > 2 && checked > 3, "{ran} blocks were run, {checked} lines were looked for");
}

#[test]
fn f021_research_fans_out_joins_and_publishes_once_approved() {
    let (home, _core) = added("research");
    let inputs = json!({"question": "tides", "sources": ["almanac", "pilot", "harbour"]});
    let run = ["flow", "run", "research", "--input", &inputs.to_string(), "--detach"];
    home.run(&[&run[..], &["--run-id", "r1"]].concat()).code(0);
    let ask = wait_for("the approval", || {
        let inbox: Value = serde_json::from_str(&home.run(&["inbox", "--json"]).stdout).ok()?;
        inbox.get(0)?["ask_id"].as_str().map(str::to_owned)
    });
    home.run(&["approve", &ask]).code(0);
    let run = wait_for("its end", || {
        let shown = home.run(&["runs", "show", "r1", "--json"]).stdout;
        let run: Value = serde_json::from_str(&shown).ok()?;
        (run["status"] == "succeeded").then_some(run)
    });
    assert_eq!(run["outputs"]["sources"], 3);
    let text = run["outputs"]["text"].as_str().expect("text");
    assert_eq!(text, "almanac on tides; pilot on tides; harbour on tides", "in their order");
}

#[test]
fn f021_the_media_pipeline_writes_its_file_or_undoes_what_it_did() {
    let (home, _core) = added("media");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("film.txt");
    std::fs::write(&path, "a film").expect("written");
    home.run(&["worlds", "put", "default", "/film.txt", &path.to_string_lossy()]).code(0);
    let given = outputs(&home, &["flow", "run", "media", "path=/film.txt"]);
    assert_eq!(given["written"], "/film.txt.upper");
    let got = home.run(&["worlds", "get", "default", "/film.txt.upper", "-"]).code(0);
    assert_eq!(got.stdout, "A FILM");

    let torn = home.run(&["flow", "run", "media", "path=/film.txt", "broken=true"]).code(1);
    assert!(torn.stderr.contains("media.spoiled") || torn.stdout.contains("media.spoiled"));
    let runs = home.run(&["runs", "--tool", "wharf/notify", "--json"]).code(0).stdout;
    let runs: Vec<Value> = serde_json::from_str(&runs).expect("runs");
    assert_eq!(runs.len(), 3, "taken twice, and given back once: {runs:#?}");
}

#[test]
fn f021_the_nightly_report_catches_a_source_that_is_away() {
    let (home, _core) = added("nightly");
    let fine = outputs(&home, &["flow", "run", "nightly", "n=3"]);
    assert_eq!(fine, json!({"sum": 6, "state": "complete"}));
    let away = outputs(&home, &["flow", "run", "nightly", "n=3", "source=bad"]);
    assert_eq!(away["state"], "without the source");
    let tried = home.run(&["runs", "--tool", "wharf/fail", "--json"]).code(0).stdout;
    let tried: Vec<Value> = serde_json::from_str(&tried).expect("runs");
    assert_eq!(tried.len(), 2, "two tries: {tried:#?}");
}

#[test]
fn f021_the_nightly_report_has_its_schedule() {
    let (home, _core) = added("nightly");
    let page = include_str!("../../../../../examples/flows/README.md");
    let line = page.lines().find(|line| line.starts_with("wharf schedule add nightly "));
    let line = line.expect("the page schedules it").replace('\'', "");
    let (start, pattern) = (["schedule", "add", "nightly", "--cron"], "0 3 * * *");
    let (before, after) = line.split_once(pattern).expect("at three");
    assert_eq!(before, "wharf schedule add nightly --cron ");
    let rest: Vec<&str> = after.split_whitespace().collect();
    home.run(&[&start[..], &[pattern], &rest].concat()).code(0);
    home.run(&["schedule", "trigger", "nightly"]).code(0);
    let started = wait_for("its run", || {
        let shown = home.run(&["schedule", "history", "nightly", "--json"]).code(0).json();
        shown[0]["run_id"].as_str().map(str::to_owned)
    });
    let run = wait_for("its end", || {
        let shown = home.run(&["runs", "show", &started, "--json"]).stdout;
        let run: Value = serde_json::from_str(&shown).ok()?;
        (run["status"] != "running" && run["status"] != "queued").then_some(run)
    });
    assert_eq!((&run["status"], &run["outputs"]["sum"]), (&json!("succeeded"), &json!(10)));
}

#[test]
fn f002_versions_are_kept_apart_and_an_open_one_stays() {
    let (home, _core) = added("nightly");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nap.yaml");
    let document = |time: &str| {
        format!(
            "name: nap\nsteps: [{{id: nap, sleep: {{for: {time}}}}}]\noutput: {{of: '{time}'}}\n"
        )
    };
    std::fs::write(&path, document("1h")).expect("written");
    let file = path.to_string_lossy().into_owned();
    for _ in 0..2 {
        let added = home.run(&["flow", "add", &file, "--json"]).code(0).stdout;
        let added: Value = serde_json::from_str(&added).expect("a flow");
        assert_eq!(added["version"], 1, "an equal document makes no version");
    }
    home.run(&["flow", "run", "nap", "--detach", "--run-id", "sleeper"]).code(0);
    std::fs::write(&path, document("1ms")).expect("written");
    home.run(&["flow", "add", &file]).code(0);
    assert_eq!(outputs(&home, &["flow", "run", "nap"]), json!({"of": "1ms"}));
    let kept = home.run(&["flow", "remove", "nap", "--version", "1", "--yes"]).code(1);
    assert!(kept.stderr.contains("flow.in_use"), "{kept:#?}");
    home.run(&["runs", "cancel", "sleeper"]).code(0);
    wait_for("its end", || {
        let removed = home.run(&["flow", "remove", "nap", "--version", "1", "--yes"]);
        removed.stderr.contains("removed version 1").then_some(())
    });
    let gone = home.run(&["flow", "run", "nap@1"]).code(2);
    assert!(gone.stderr.contains("tool.not_found"), "{gone:#?}");
    let tools = home.run(&["tools", "list", "--json"]).code(0).stdout;
    assert!(tools.contains("flow/nap@2") && !tools.contains("flow/nap@1"), "the newest only");
}

#[test]
fn f011_f013_a_flow_is_ended_at_once_and_shown_with_what_it_cost() {
    let (home, _core) = added("nightly");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.yaml");
    let document = "name: long\nvars: {status: none}\nsteps:\n\
        - id: pay\n  call: {tool: wharf/sleep, inputs: {ms: 1, cost_micro: 2500}}\n\
        - id: say\n  set: {status: \"'half of it'\"}\n- id: nap\n  sleep: {for: 1h}\n\
        on_cancel: {id: last, sleep: {for: 4m}}\noutput: {}\n";
    std::fs::write(&path, document).expect("written");
    home.run(&["flow", "add", &path.to_string_lossy()]).code(0);
    home.run(&["flow", "run", "long", "--detach", "--run-id", "l1"]).code(0);
    let shown = wait_for("what it says", || {
        let shown = home.run(&["runs", "show", "l1"]).code(0).stdout;
        shown.contains("half of it").then_some(shown)
    });
    assert!(shown.contains("$0.0025"), "{shown}");
    let drawn = home.run(&["flow", "watch", "l1", "--once"]).code(0).stdout;
    let first = drawn.lines().next().expect("a line");
    assert!(first.contains("flow/long@1") && first.contains("$0.0025"), "{drawn}");
    assert!(drawn.contains("half of it"), "{drawn}");
    home.run(&["runs", "cancel", "l1"]).code(0);
    let going = home.run(&["runs", "show", "l1", "--json"]).code(0).json();
    assert_eq!(going["status"], "running", "it does what it does at last: {going}");
    home.run(&["runs", "cancel", "l1", "--force", "--reason", "Now."]).code(0);
    let over = home.run(&["runs", "show", "l1", "--json"]).code(0).json();
    assert_eq!((&over["status"], &over["error"]["message"]), (&json!("canceled"), &json!("Now.")));
}
