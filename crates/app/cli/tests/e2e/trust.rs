//! Agents, tools and rules of an owner, with the real program and real agents.

use crate::agents::{PYTHON, example, has_python};
use crate::support::{TestHome, wait_for};

const HOSTILE: &str = "dev.wharf.hostile";

/// A copy of an example that may be changed.
fn copy_of(name: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(example(name)).expect("there").flatten() {
        if entry.file_type().expect("known").is_file() {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copied");
        }
    }
    copy
}

fn text(path: &std::path::Path) -> String {
    path.to_str().expect("text").to_owned()
}

#[test]
fn agents_are_found_below_a_folder_and_nothing_of_them_is_run() {
    let home = TestHome::new();
    let _core = home.up();
    let folder = text(&example("hello").join(".."));
    let found = home.run(&["agents", "scan", &folder, "--json"]).code(0).json();
    let ids: Vec<_> =
        found["items"].as_array().expect("items").iter().map(|item| &item["agent_id"]).collect();
    assert!(ids.iter().any(|id| **id == PYTHON), "{found}");
    let shown = home.run(&["agents", "scan", &folder]).code(0).stdout;
    assert!(shown.contains(PYTHON), "{shown}");
    assert_eq!(home.run(&["agents", "--json"]).code(0).json(), serde_json::json!([]));
    let added = home.run(&["agents", "scan", &folder, "--add", "--json"]).code(0).json();
    assert!(added["added"].as_array().is_some_and(|ids| ids.iter().any(|id| *id == PYTHON)));
    let again = home.run(&["agents", "scan", &folder, "--add", "--json"]).code(0).json();
    assert_eq!(again["added"], serde_json::json!([]), "what is known stays as it is");
}

#[test]
fn an_approval_is_shown_in_plain_words_and_can_be_taken_back() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let folder = text(&example("hostile"));
    let added = home.run(&["agents", "add", &folder, "--json"]).code(0).json();
    let asked = added["permissions_requested"].as_array().expect("a list").clone();
    let first = asked[0].as_str().expect("text");
    let wider = home.run(&["agents", "approve", HOSTILE, "--permission", "filesystem:write:/**"]);
    assert!(wider.code(2).stderr.contains("filesystem:write:/**"));
    let approved = home
        .run(&[
            "agents",
            "approve",
            HOSTILE,
            "--permission",
            first,
            "--sandbox",
            "basic",
            "--isolation",
            "world",
            "--memory",
            "512Mi",
            "--rate",
            "600/minute",
        ])
        .code(0);
    assert!(approved.stdout.contains("sandbox basic, one process for each world"));
    let shown = home.run(&["agents", "show", HOSTILE]).code(0).stdout;
    for part in ["approved", "isolation", "world", "memory", "approved with these files"] {
        assert!(shown.contains(part), "{part:?} is missing in {shown}");
    }
    let agent = home.run(&["agents", "show", HOSTILE, "--json"]).code(0).json();
    assert_eq!((&agent["sandbox"], &agent["isolation"]), (&"basic".into(), &"world".into()));
    assert!(agent["pinned_files"].get("agent.py").is_some(), "{agent}");
    let revoked = home.run(&["agents", "revoke", HOSTILE, "--json"]).code(0).json();
    assert_eq!(revoked["state"], "added");
    home.run(&["agents", "start", HOSTILE]).code(3);
}

#[test]
fn a_file_that_changed_since_the_approval_keeps_an_agent_from_starting() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let folder = copy_of("hello-python");
    home.run(&["agents", "add", &text(folder.path())]).code(0);
    home.run(&["agents", "approve", PYTHON, "--all"]).code(0);
    let program = folder.path().join("agent.py");
    let before = std::fs::read_to_string(&program).expect("readable");
    std::fs::write(&program, format!("{before}\n# changed\n")).expect("written");
    let refused = home.run(&["agents", "start", PYTHON, "--json"]);
    assert_ne!(refused.code, Some(0), "{refused:#?}");
    assert!(refused.stderr.contains("agent.drifted"), "{refused:#?}");
    let shown = home.run(&["agents", "show", PYTHON]).code(0).stdout;
    assert!(shown.contains("it is not what was approved") && shown.contains("agent.py"), "{shown}");
    home.run(&["agents", "approve", PYTHON, "--all"]).code(0);
    home.run(&["agents", "start", PYTHON]).code(0);
    home.run(&["run", &format!("{PYTHON}/hello_world")]).code(0);
}

#[test]
fn r080_a_tool_that_changed_is_quarantined_until_it_is_approved_again() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    home.run(&["agents", "add", &text(&example("hostile"))]).code(0);
    home.run(&["agents", "approve", HOSTILE, "--all"]).code(0);
    home.run(&["agents", "start", HOSTILE]).code(0);
    let innocent = format!("{HOSTILE}/innocent");
    assert!(home.run(&["tools", "diff"]).code(0).stdout.contains("no tool changed"));
    home.run(&["run", &format!("{HOSTILE}/swap_tool")]).code(0);
    wait_for("the tool to be quarantined", || {
        let tool = home.run(&["tools", "show", &innocent, "--json"]).code(0).json();
        (tool["state"] == "quarantined").then_some(())
    });
    let refused = home.run(&["run", &innocent, "--input", "{}"]);
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("tool.quarantined"), "{refused:#?}");
    let diff = home.run(&["tools", "diff"]).code(0).stdout;
    assert!(diff.contains("-  \"description\": \"Says hello.\""), "{diff}");
    assert!(
        diff.contains("+  \"description\": \"Says hello and sends your files away.\""),
        "{diff}"
    );
    let diff = home.run(&["tools", "diff", &innocent, "--json"]).code(0).json();
    assert_eq!(diff[0]["changes"], serde_json::json!(["description"]));
    // Approving the agent again takes nothing on, and everybody who looks sees the change.
    let new = "+  \"description\": \"Says hello and sends your files away.\"";
    let looks: [&[&str]; 3] = [
        &["agents", "approve", HOSTILE, "--all"],
        &["agents", "show", HOSTILE],
        &["tools", "show", &innocent],
    ];
    for look in looks {
        let told = home.run(look).code(0).stdout;
        assert!(told.contains(new), "{look:?}: {told}");
    }
    assert!(home.run(&["run", &innocent, "--input", "{}"]).stderr.contains("tool.quarantined"));
    let told = home.run(&["tools", "approve", &innocent]).code(0).stdout;
    assert!(told.contains(new), "{told}");
    assert!(home.run(&["tools", "diff"]).code(0).stdout.contains("no tool changed"));
    home.run(&["run", &innocent, "--input", "{}"]).code(0);
}

#[test]
fn r087_rules_of_the_owner_make_runs_wait_for_a_person() {
    let home = TestHome::new();
    home.configure("[[policy]]\ntool = \"wharf/echo\"\nwhen = \"always\"\naudience = \"person\"\n");
    let core = home.up();
    home.run(&["run", "wharf/count", "n=1"]).code(0);
    let begin = || {
        let run = home.run(&["run", "wharf/echo", "a=1", "--detach"]).code(0).json();
        run["run_id"].as_str().expect("an id").to_owned()
    };
    let status =
        |id: &str| home.run(&["runs", "show", id, "--json"]).code(0).json()["status"].clone();
    let ask_of = |id: &str| {
        wait_for("the approval", || {
            let inbox = home.run(&["inbox", "--json"]).code(0).json();
            let ask = inbox.as_array()?.iter().find(|ask| ask["run_id"] == id)?.clone();
            Some(ask)
        })
    };
    let allowed = begin();
    let ask = ask_of(&allowed);
    assert_eq!((&ask["kind"], &ask["audience"]), (&"approval".into(), &"person".into()));
    assert!(ask["args_digest"].is_string() && ask["caller"] == "owner", "{ask}");
    assert_eq!(status(&allowed), "waiting");
    let shown = home.run(&["inbox"]).code(0).stdout;
    assert!(shown.contains("asked by") && shown.contains("argument "), "{shown}");

    // A token that is not a person's cannot decide it, whatever its verbs are.
    let id = ask["ask_id"].as_str().expect("an id");
    let verbs = "run,read,answer,approve,operate,admin";
    let token = home.run(&["token", "create", "--verb", verbs]).code(0).stdout;
    let url = core.url();
    home.run(&["--url", &url, "--token", token.trim(), "approve", id]).code(3);
    let person = home.run(&["token", "create", "--verb", verbs, "--person"]).code(0).stdout;
    home.run(&["--url", &url, "--token", person.trim(), "approve", id]).code(0);
    wait_for("the run", || (status(&allowed) == "succeeded").then_some(()));

    // What waits survives kill -9, and a denial is told.
    let denied = begin();
    let ask = ask_of(&denied);
    core.kill();
    let _core = home.up();
    assert_eq!(status(&denied), "waiting");
    let id = ask["ask_id"].as_str().expect("an id");
    home.run(&["deny", id, "--reason", "not today"]).code(0);
    wait_for("the run", || (status(&denied) == "refused").then_some(()));
    home.run(&["approve", id]).code(1);
}

#[test]
fn a_strict_owner_is_asked_about_everything_that_may_act() {
    let home = TestHome::new();
    home.configure(
        "[approvals]\nstrict = true\n[[policy]]\ntool = \"wharf/sleep\"\napprove = false\n",
    );
    let _core = home.up();
    let tools = home.run(&["tools", "--json"]).code(0).json();
    let acts = |name: &str| {
        let tools = tools.as_array().expect("a list");
        let tool = tools.iter().find(|tool| tool["tool_id"] == name).expect("known");
        tool["side_effects"] == true
    };
    for (name, input) in [("wharf/count", "{\"n\":1}"), ("wharf/sleep", "{\"ms\":1}")] {
        let run = home.run(&["run", name, "--input", input, "--detach"]).code(0).json();
        let id = run["run_id"].as_str().expect("an id").to_owned();
        let waits = acts(name) && name != "wharf/sleep";
        let expect = if waits { "waiting" } else { "succeeded" };
        wait_for(expect, || {
            let shown = home.run(&["runs", "show", &id, "--json"]).code(0).json();
            (shown["status"] == expect).then_some(())
        });
    }
}

#[test]
fn a_wrong_rule_keeps_a_core_from_starting_and_is_named() {
    for (text, said) in [
        ("[[policy]]\ntool = \"mail\"\n", "line 2"),
        ("[[policy]]\ntool = \"a/b\"\nwhen = \"never\"\n", "`when`"),
        ("[[policy]]\ntool = \"a/b\"\napproves = true\n", "`approves` in line 3"),
        ("[agents]\nsandbox = \"loose\"\n", "line 2"),
        ("[agents.limits]\nmemory = 5\n", "`memory` in line 2"),
    ] {
        let home = TestHome::new();
        home.configure(text);
        let ended = home.run(&["up", "--listen", "127.0.0.1:0"]);
        assert_ne!(ended.code, Some(0));
        assert!(ended.stderr.contains("wharf.toml") && ended.stderr.contains(said), "{ended:#?}");
    }
}

#[test]
fn the_doctor_says_how_firmly_agents_can_be_fenced_in() {
    let home = TestHome::new();
    std::fs::create_dir_all(home.path()).expect("makes");
    let found = home.run(&["doctor", "--json"]).json();
    let sandbox = found.as_array().expect("a list").iter().find(|check| check["name"] == "sandbox");
    let sandbox = sandbox.expect("looked at");
    let text = sandbox["text"].as_str().expect("text");
    assert!(
        ["none", "basic", "standard", "strict"].iter().any(|level| text.contains(level)),
        "{text}"
    );
}

#[test]
fn an_approval_for_the_parent_run_holds_for_its_next_calls_and_no_longer() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    home.configure(&format!("[[policy]]\ntool = \"{PYTHON}/hello_world\"\n"));
    let _core = home.up();
    let folder = copy_of("hello-python");
    let program = folder.path().join("agent.py");
    let text_of = std::fs::read_to_string(&program).expect("readable");
    let once = "call.call(call.input[\"tool_id\"], call.input.get(\"input\", {}))";
    assert!(text_of.contains(once), "the example calls a tool");
    std::fs::write(&program, text_of.replace(once, &format!("[{once}, {once}]"))).expect("written");
    home.run(&["agents", "add", &text(folder.path())]).code(0);
    home.run(&["agents", "approve", PYTHON, "--all"]).code(0);
    home.run(&["agents", "start", PYTHON]).code(0);

    // How many approvals a run that calls the tool twice needs.
    let approvals = |options: &[&str]| {
        let input = format!("{{\"tool_id\": \"{PYTHON}/hello_world\"}}");
        let relay = format!("{PYTHON}/relay");
        let run = home.run(&["run", &relay, "--input", &input, "--detach"]).code(0).json();
        let id = run["run_id"].as_str().expect("an id").to_owned();
        let mut count = 0;
        loop {
            let ask = wait_for("an approval or the end", || {
                let run = home.run(&["runs", "show", &id, "--json"]).code(0).json();
                if run["ended_at"].is_string() {
                    assert_eq!(run["status"], "succeeded", "{run}");
                    return Some(None);
                }
                let inbox = home.run(&["inbox", "--json"]).code(0).json();
                let ask = inbox[0]["ask_id"].as_str()?.to_owned();
                Some(Some(ask))
            });
            let Some(ask) = ask else { return count };
            let mut arguments = vec!["approve", &ask];
            arguments.extend(options);
            // The run may have gone on since the inbox was read.
            if home.run(&arguments).code == Some(0) {
                count += 1;
            }
        }
    };
    assert_eq!(approvals(&[]), 2, "each call needs its own");
    assert_eq!(approvals(&["--for-parent"]), 1, "one for both");
    assert_eq!(approvals(&["--for-parent"]), 1, "and again for the next run");
}
