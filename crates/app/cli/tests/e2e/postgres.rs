//! A core whose database is in PostgreSQL, as its users meet it.

mod copy;
mod rewound;
mod with_s3;

use serde_json::{Value, json};
use wharf_postgres::shared;

use crate::support::{Ended, TestHome, wait_for};

/// A home whose database is in the shared server, or none where there is no PostgreSQL.
pub(crate) fn home() -> Option<(TestHome, String)> {
    let url = shared()?.database();
    let home = TestHome::new();
    home.configure(&format!("[store]\nurl = \"{url}\"\n"));
    Some((home, url))
}

/// How a check of the doctor turned out, and what it says.
fn finding(doctor: &Ended, name: &str) -> (String, String) {
    let findings = doctor.json();
    let found = findings.as_array().expect("a list").iter().find(|it| it["name"] == name);
    let found = found.unwrap_or_else(|| panic!("{name} is missing in {findings}"));
    let text = |key: &str| found[key].as_str().expect("text").to_owned();
    (text("verdict"), text("text"))
}

#[test]
fn s007_a_core_on_postgresql_keeps_everything_over_a_kill() {
    let Some((home, _)) = home() else { return };
    let core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    let budget = ["worlds", "budget", "lab", "--limit-micro", "100", "--default-hold-micro", "60"];
    home.run(&budget).code(0);
    let spend = ["run", "wharf/sleep", "ms=1", "cost_micro=50", "--world", "lab"];
    assert_eq!(home.run(&spend).code(0).json()["cost_micro"], 50);
    home.run(&["run", "wharf/fail"]).code(1);
    let mut asking = home.spawn(&["run", "wharf/ask", "question=Which one?"]);
    let ask = wait_for("the question", || {
        let inbox = home.run(&["inbox", "--json"]).code(0).json();
        Some(inbox.get(0)?["ask_id"].as_str()?.to_owned())
    });
    assert!(!home.path().join("wharf.db").exists(), "no other database is made");
    core.kill();

    let core = home.up();
    assert!(asking.is_running(), "whoever follows the run waits for the core to come back");
    home.run(&["answer", &ask, "the red one"]).code(0);
    assert_eq!(asking.wait().code(0).json()["outputs"]["answer"], "the red one");
    let refused = home.run(&spend).code(3);
    assert!(refused.stderr.contains("budget.exceeded"), "{refused:#?}");
    let worlds = home.run(&["worlds", "list", "--json"]).code(0).json();
    let lab = worlds.as_array().expect("a list").iter().find(|world| world["world"] == "lab");
    assert_eq!(lab.expect("listed")["spent_micro"], 50);
    let failed = home.run(&["runs", "--status", "failed", "--json"]).code(0).json();
    assert_eq!(failed.as_array().map(Vec::len), Some(1), "{failed}");
    let costs = home.run(&["costs", "--json"]).code(0).json();
    assert_eq!(costs["total_micro"], 50, "{costs}");
    let audit = home.run(&["audit", "--json"]).code(0);
    assert!(audit.stdout.contains("tool.call_completed"), "{audit:#?}");

    // The same that is asked of any home, with the core up and without.
    for _ in 0..2 {
        home.run(&["audit", "verify"]).code(0);
        let doctor = home.run(&["doctor", "--json"]);
        for name in ["database", "migrations", "audit"] {
            let (verdict, text) = finding(&doctor, name);
            assert_eq!(verdict, "ok", "{name}: {text}");
        }
        // The tests' server does not flush, which nobody should do elsewhere.
        let (verdict, text) = finding(&doctor, "server");
        assert!(verdict == "warn" && text.contains("fsync is off"), "{verdict}: {text}");
    }
    let system = wharf_bytes(&home);
    assert!(system > 1_000_000, "the size of the database is told: {system}");
    core.stop().code(0);
    home.run(&["audit", "verify"]).code(0);
    let status = home.run(&["migrate", "status", "--json"]).code(0).json();
    assert_eq!(status["current"], status["newest"]);
    assert_eq!(status["pending"], json!([]));
}

/// How large the database is, as the core tells it.
fn wharf_bytes(home: &TestHome) -> u64 {
    wait_for("the size of the database", || {
        find(&home.run(&["status", "--json"]).code(0).json(), "database_bytes")
    })
}

/// A number somewhere in a value.
fn find(value: &Value, name: &str) -> Option<u64> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .find_map(|(key, value)| if key == name { value.as_u64() } else { find(value, name) }),
        Value::Array(items) => items.iter().find_map(|item| find(item, name)),
        _ => None,
    }
}

#[test]
fn s022_a_schema_is_stepped_up_and_down_and_nothing_is_removed_with_it() {
    let Some((home, _)) = home() else { return };
    let empty = home.run(&["migrate", "--json"]).code(0).json();
    assert_eq!(empty["current"], 0, "{empty}");
    let up = home.run(&["migrate", "up", "--json"]).code(0).json();
    assert_eq!(up["current"], up["newest"]);
    let down = home.run(&["migrate", "down", "--to", "0", "--json"]).code(0).json();
    assert_eq!(down["current"], 0, "nothing was in it");
    let core = home.up();
    home.run(&["run", "wharf/count", "n=2"]).code(0);
    core.stop().code(0);
    let refused = home.run(&["migrate", "down", "--to", "0"]).code(2);
    assert!(refused.stderr.contains("would remove every run"), "{refused:#?}");
    let compact = home.run(&["migrate", "compact"]).code(2);
    assert!(compact.stderr.contains("VACUUM"), "{compact:#?}");
    let _core = home.up();
    let runs = home.run(&["runs", "--json"]).code(0).json();
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "{runs}");
}

#[test]
fn s007_what_cannot_be_used_is_named_and_no_password_is_shown() {
    let Some((home, url)) = home() else { return };
    let core = home.up();
    // A second core would divide what is one: it is refused, in a sentence that says why.
    let second = TestHome::new();
    second.configure(&format!("[store]\nurl = \"{url}\"\n"));
    let refused = second.run(&["up", "--listen", "127.0.0.1:0"]);
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("Another core"), "{refused:#?}");
    let backup = second.run(&["backup", "elsewhere"]);
    assert!(backup.stderr.contains("pg_dump"), "{backup:#?}");
    drop(core);

    let away = TestHome::new();
    away.configure("[store]\nurl = \"postgres://wharf:geheim@127.0.0.1:1/wharf\"\n");
    for arguments in [["up"].as_slice(), &["doctor"], &["migrate", "status"], &["audit", "verify"]]
    {
        let ended = away.run(arguments);
        assert_ne!(ended.code, Some(0), "{arguments:?}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!said.contains("geheim"), "{said}");
    }
    let said = away.run(&["up"]).stderr;
    assert!(said.contains("store.unavailable") && said.contains("127.0.0.1:1/wharf"), "{said}");
}
