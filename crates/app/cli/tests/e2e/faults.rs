//! Homes and databases that are not as they should be.

use crate::support::{TestHome, wait_for};

#[test]
fn a_second_core_is_kept_out_and_the_first_goes_on() {
    let home = TestHome::new();
    let core = home.up();
    let second = home.run(&["up", "--listen", "127.0.0.1:0"]);
    assert!(second.code != Some(0) && second.stderr.contains("home.locked"), "{second:#?}");
    home.run(&["run", "wharf/echo"]).code(0);
    core.stop().code(0);
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_left_alone() {
    let home = TestHome::new();
    home.up().stop().code(0);
    let file = home.path().join("wharf.db");
    let database = rusqlite::Connection::open(&file).expect("opens");
    database.pragma_update(None, "user_version", 999).expect("changes");
    drop(database);
    let before = std::fs::read(&file).expect("reads");
    let refused = home.run(&["up", "--listen", "127.0.0.1:0"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("store.newer"), "{refused:#?}");
    assert_eq!(std::fs::read(&file).expect("reads"), before);
}

#[test]
fn a_home_that_cannot_be_written_is_said_to_be() {
    let home = TestHome::new();
    std::fs::write(home.path(), "a file where the home should be").expect("writes");
    let refused = home.run(&["up", "--listen", "127.0.0.1:0"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("home.unwritable"), "{refused:#?}");
}

#[test]
fn a_wrong_configuration_names_the_key() {
    let home = TestHome::new();
    std::fs::create_dir(home.path()).expect("makes");
    std::fs::write(home.path().join("wharf.toml"), "[http]\nlisen = \"127.0.0.1:0\"\n")
        .expect("writes");
    let refused = home.run(&["up"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("config.invalid"), "{refused:#?}");
    assert!(refused.stderr.contains("lisen"), "{refused:#?}");
}

#[test]
fn migrations_go_down_and_up_again_with_data() {
    let home = TestHome::new();
    let core = home.up();
    let id = home.run(&["run", "wharf/echo", "text=kept"]).code(0).json()["run_id"].clone();
    core.stop().code(0);
    let status = || home.run(&["migrate", "status", "--json"]).code(0).json();
    assert_eq!(status()["current"], status()["newest"]);
    home.run(&["migrate", "down", "--to", "1"]).code(0);
    assert_eq!(status()["current"], 1);
    home.run(&["migrate", "up"]).code(0);
    assert_eq!(status()["current"], status()["newest"]);
    let core = home.up();
    let shown = home.run(&["runs", "show", id.as_str().expect("text"), "--json"]).code(0).json();
    assert_eq!(shown["outputs"]["text"], "kept");
    let busy = home.run(&["migrate", "down", "--to", "0"]);
    assert_ne!(busy.code, Some(0), "not while a core is up: {busy:#?}");
    core.stop().code(0);
}

/// How many records the anchors of a home vouch for.
fn anchored(home: &TestHome) -> u64 {
    let text = std::fs::read(home.path().join("run/audit.anchors")).unwrap_or_default();
    let anchors: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let heads = anchors["heads"].as_array().cloned().unwrap_or_default();
    heads.iter().filter_map(|head| head["n"].as_u64()).sum()
}

#[test]
fn what_is_cut_off_the_log_of_a_killed_core_is_found() {
    let home = TestHome::new();
    home.up().stop().code(0);
    let core = home.up();
    let before = std::fs::metadata(home.path().join("wharf.db-wal")).map_or(0, |log| log.len());
    for _ in 0..3 {
        home.run(&["run", "wharf/echo"]).code(0);
    }
    let records = home.run(&["audit", "export"]).code(0).stdout.lines().count() as u64;
    wait_for("the audit to be anchored", || (anchored(&home) >= records).then_some(()));
    core.kill();
    home.run(&["audit", "verify"]).code(0);
    let log = std::fs::File::options().write(true).open(home.path().join("wharf.db-wal"));
    log.expect("a log").set_len(before).expect("cut off");
    let found = home.run(&["audit", "verify"]);
    assert!(found.code != Some(0) && found.stdout.contains("anchor"), "{found:#?}");
    // Also after a core has started on what is left.
    home.up().stop().code(0);
    let found = home.run(&["audit", "verify"]);
    assert!(found.code != Some(0), "{found:#?}");
}

#[test]
fn a_second_core_that_does_not_come_up_leaves_the_first_one_to_be_found() {
    let home = TestHome::new();
    let core = home.up();
    let address = core.url().trim_start_matches("http://").to_owned();
    std::fs::remove_file(home.path().join("run/lock")).expect("removed");
    let second = home.run(&["up", "--listen", &address]);
    assert!(second.code != Some(0), "the address is taken: {second:#?}");
    assert_eq!(core.url(), format!("http://{address}"), "clients are still told where it is");
    wait_for("the first one to be found", || {
        (home.run(&["run", "wharf/echo"]).code == Some(0)).then_some(())
    });
    let third = home.run(&["up", "--listen", "127.0.0.1:0"]);
    assert!(third.stderr.contains("home.locked"), "it holds its lock again: {third:#?}");
    core.stop().code(0);
    assert!(!home.path().join("run/core.json").exists(), "it takes back its own word");
}
