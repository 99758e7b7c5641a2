//! A home that moves from its file to PostgreSQL: all of it is there, nothing is doubled, and what
//! was under way goes on.

use std::process::Stdio;

use serde_json::{Value, json};
use wharf_postgres::shared;

use crate::children;
use crate::support::{Api, TestHome, wait_for};

/// What people see of a home, in an order that does not depend on the store.
fn seen(home: &TestHome) -> Vec<Value> {
    let told = |arguments: &[&str]| {
        let told = home.run(arguments).code(0).json();
        match told {
            Value::Array(items) => items.into_iter().map(settled).collect(),
            told => told,
        }
    };
    vec![
        told(&["runs", "list", "--all", "--json"]),
        told(&["inbox", "--json"]),
        told(&["worlds", "list", "--json"]),
        told(&["costs", "--by", "tool", "--json"]),
        told(&["costs", "--by", "world", "--json"]),
        told(&["token", "list", "--json"]),
        told(&["runs", "show", "spent", "--world", "lab", "--json"]),
    ]
}

/// What does not depend on how often a core was started: of what is open, its name.
fn settled(item: Value) -> Value {
    match (&item["run_id"], &item["ended_at"]) {
        (Value::String(name), Value::Null) => name.as_str().into(),
        _ => item,
    }
}

/// The records of the audit that were there first.
fn records(home: &TestHome, count: usize) -> Vec<String> {
    let path = home.path().with_file_name("audit.jsonl");
    let _ = std::fs::remove_file(&path);
    home.run(&["audit", "export", "--out", path.to_str().expect("text")]).code(0);
    let text = std::fs::read_to_string(&path).expect("exported");
    text.lines().take(count).map(str::to_owned).collect()
}

/// Money, files, asks, tokens, keys, runs that are over, removed or go on.
fn fill(home: &TestHome) {
    home.run(&["worlds", "create", "lab"]).code(0);
    let budget = ["worlds", "budget", "lab", "--limit-micro", "1000"];
    home.run(&[&budget[..], &["--default-hold-micro", "60"]].concat()).code(0);
    let spend = ["run", "wharf/sleep", "ms=1", "cost_micro=50", "--world", "lab"];
    home.run(&[&spend[..], &["--run-id", "gone"]].concat()).code(0);
    home.run(&["runs", "purge", "--older-than", "1ms", "--world", "lab", "--yes"]).code(0);
    home.run(&[&spend[..], &["--run-id", "spent"]].concat()).code(0);
    home.run(&["run", "wharf/fail"]).code(1);
    home.run(&["run", "wharf/echo", "a=1", "--idempotency-key", "once"]).code(0);
    home.run_with(b"from a file", &["worlds", "put", "lab", "/in.txt", "-"]).code(0);
    home.run(&["worlds", "create", "quiet", "--retain", "digest"]).code(0);
    home.run(&["token", "create", "--verb", "read", "--label", "reader"]).code(0);
}

#[test]
fn s022_a_home_moves_into_postgresql_with_all_it_holds() {
    let Some(server) = shared() else { return };
    let url = server.database();
    let home = TestHome::new();
    let core = home.up();
    fill(&home);
    let ask = |world: &str, id: &str| {
        let question = format!("question=Which for {id}?");
        home.spawn(&["run", "wharf/ask", &question, "--world", world, "--run-id", id])
    };
    let (open, _sealed) = (ask("lab", "asks"), ask("quiet", "sealed"));
    // It holds money while the core is killed.
    let holds = ["run", "wharf/sleep", "ms=600000", "--world", "lab", "--run-id", "holds"];
    let _holds = home.spawn(&[&holds[..], &["--timeout", "1h"]].concat());
    let asked = || {
        wait_for("the questions", || {
            let inbox = home.run(&["inbox", "--json"]).code(0).json();
            (inbox.as_array()?.len() == 2).then_some(())
        });
        wait_for("the money to be held", || {
            let worlds = home.run(&["worlds", "list", "--json"]).code(0).json();
            let lab = worlds.as_array()?.iter().find(|world| world["world"] == "lab")?.clone();
            (lab["held_micro"] == 60).then_some(())
        });
    };
    asked();
    let command = ["migrate", "copy", "--to", &url];
    let copy = |more: &[&str]| home.run(&[&command[..], more].concat());
    let refused = copy(&[]);
    assert_ne!(refused.code, Some(0), "a core runs: {refused:#?}");
    core.kill();
    let core = home.up();
    asked();
    let before = seen(&home);
    let told = records(&home, usize::MAX);
    core.kill();

    let dry = copy(&["--dry-run", "--json"]).code(0).json();
    assert_eq!((&dry["dry_run"], &dry["objects_stay"]), (&json!(true), &json!(true)), "{dry}");
    let name = url.rsplit('/').next().expect("a name");
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'wharf'";
    assert_eq!(server.sql(name, schemas), "0", "nothing was written");
    let done = copy(&["--json"]).code(0).json();
    assert_eq!(done["runs"], dry["runs"], "{done}");
    assert!(done["records"].as_u64() >= Some(u64::try_from(told.len()).expect("few")), "{done}");
    let again = copy(&[]);
    assert_ne!(again.code, Some(0), "{again:#?}");
    assert!(again.stderr.contains("only an empty one"), "{again:#?}");

    home.configure(&format!("[store]\nurl = \"{url}\"\n"));
    home.run(&["audit", "verify"]).code(0);
    let core = home.up();
    asked();
    assert_eq!(seen(&home), before, "people see what they saw");
    assert_eq!(records(&home, told.len()), told, "the audit is the same to the last byte");
    goes_on(&home);
    assert_eq!(open.wait().code(0).json()["outputs"]["answer"], "scarlet");
    let read = Api::of(&core).bytes("/v1/worlds/lab/files/in.txt");
    assert_eq!(read, (200, b"from a file".to_vec()));
    let once = home.run(&["run", "wharf/echo", "a=1", "--idempotency-key", "once"]).code(0);
    let keyed = home.run(&["runs", "list", "--tool", "wharf/echo", "--json"]).code(0).json();
    assert_eq!(keyed.as_array().map(Vec::len), Some(1), "{keyed} {once:#?}");
    core.stop().code(0);
    home.run(&["audit", "verify"]).code(0);
    // Only the core that ran it knows for a while what is not kept.
    let core = home.up();
    let show = ["runs", "show", "sealed", "--world", "quiet", "--json"];
    let sealed = home.run(&show).code(0).json();
    assert!(!sealed.to_string().contains("scarlet"), "its values are not kept: {sealed}");
    core.stop().code(0);
    let doctor = home.run(&["doctor", "--json"]);
    for check in ["database", "migrations", "audit", "files"] {
        let (verdict, text) = super::finding(&doctor, check);
        assert_eq!(verdict, "ok", "{check}: {text}");
    }
}

/// Open runs end as they would have, with the money and the silence they were accepted with.
fn goes_on(home: &TestHome) {
    let inbox = home.run(&["inbox", "--json"]).code(0).json();
    for ask in inbox.as_array().expect("a list") {
        let id = ask["ask_id"].as_str().expect("an id");
        home.run(&["answer", id, "scarlet"]).code(0);
    }
    let shown = |world: &str, id: &str| {
        wait_for("the end of a run", || {
            let run = home.run(&["runs", "show", id, "--world", world, "--json"]).code(0).json();
            run["ended_at"].is_string().then_some(run)
        })
    };
    assert_eq!(shown("lab", "asks")["status"], "succeeded");
    assert_eq!(shown("quiet", "sealed")["status"], "succeeded");
    home.run(&["runs", "cancel", "holds", "--world", "lab"]).code(0);
    let worlds = wait_for("all money to be settled", || {
        let worlds = home.run(&["worlds", "list", "--json"]).code(0).json();
        let lab = worlds.as_array()?.iter().find(|world| world["world"] == "lab")?.clone();
        (lab["held_micro"] == 0).then_some(lab)
    });
    assert_eq!(worlds["spent_micro"], 100, "nothing was booked twice: {worlds}");
}

/// A copy that is killed in its middle leaves an empty database, and the next one is whole.
#[test]
fn s022_a_copy_that_is_broken_off_leaves_nothing() {
    let Some(server) = shared() else { return };
    let url = server.database();
    let name = url.rsplit('/').next().expect("a name");
    let home = TestHome::new();
    let core = home.up();
    for n in 1..6 {
        home.run(&["run", "wharf/count", &format!("n={n}")]).code(0);
    }
    core.stop().code(0);
    let other = TestHome::new();
    other.configure(&format!("[store]\nurl = \"{url}\"\n"));
    other.run(&["migrate", "up"]).code(0);
    // Somebody holds a table that is filled behind others, so that the copy stands still.
    let holder = children::command(server.binaries().join("psql"))
        .args(["-X", "-q", "-U", "wharf", "-d", name, "-h"])
        .arg(server.folder())
        .args(["-c", "BEGIN; LOCK TABLE wharf.accounts IN SHARE MODE; SELECT pg_sleep(600)"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("psql runs");
    let waiting = |what: &str| {
        let sql =
            format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND {what}");
        wait_for(what, || (server.sql("postgres", &sql) == "1").then_some(()));
    };
    waiting("wait_event = 'PgSleep'");
    let mut copying = home.spawn(&["migrate", "copy", "--to", &url]);
    waiting("wait_event_type = 'Lock'");
    assert!(copying.is_running());
    drop(copying);
    let backends = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = '{name}' AND wait_event = 'PgSleep'"
    );
    server.sql("postgres", &backends);
    children::ended(holder, "psql", children::PROGRAM);
    wait_for("the server to notice", || {
        let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'");
        (server.sql("postgres", &sql) == "0").then_some(())
    });
    assert_eq!(server.sql(name, "SELECT count(*) FROM wharf.streams"), "0");
    home.run(&["migrate", "copy", "--to", &url]).code(0);
    other.run(&["doctor"]);
    assert_eq!(server.sql(name, "SELECT count(*) FROM wharf.streams WHERE kind = 'run'"), "5");
}

#[test]
fn s022_what_cannot_be_copied_is_named_and_no_password_is_shown() {
    let Some(server) = shared() else { return };
    let home = TestHome::new();
    let url = server.database();
    let none = home.run(&["migrate", "copy", "--to", &url]);
    assert!(none.stderr.contains("no database"), "{none:#?}");
    home.up().stop().code(0);
    for (to, said) in [
        ("mysql://a:geheim@h/w", "begins with postgres://"),
        ("postgres://a:geheim@127.0.0.1:1/w", "127.0.0.1:1/w"),
    ] {
        let refused = home.run(&["migrate", "copy", "--to", to]);
        assert_ne!(refused.code, Some(0), "{to}");
        assert!(refused.stderr.contains(said), "{refused:#?}");
        assert!(!format!("{refused:?}").replace(to, "").contains("geheim"), "{refused:#?}");
    }
    home.configure(&format!("[store]\nurl = \"{url}\"\n"));
    let there = home.run(&["migrate", "copy", "--to", &url]);
    assert!(there.stderr.contains("PostgreSQL already"), "{there:#?}");
}
