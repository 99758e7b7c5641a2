//! Old runs go: by one command, with their world, and on with it after kill -9.

use serde_json::{Value, json};

use crate::support::{TestHome, wait_for};

fn spend(home: &TestHome, runs: u64, world: &str) {
    for n in 0..runs {
        let cost = format!("cost_micro={}", n + 1);
        home.run(&["run", "wharf/sleep", "ms=0", &cost, "--world", world, "-q"]).code(0);
    }
}

fn runs(home: &TestHome, world: &str) -> usize {
    // Of all worlds, because one that is removed cannot be asked for.
    let listed = home.run(&["runs", "list", "--all", "--json"]).code(0).json();
    listed.as_array().expect("a list").iter().filter(|run| run["world"] == world).count()
}

fn costs(home: &TestHome) -> Value {
    home.run(&["costs", "--by", "world", "--json"]).code(0).json()
}

#[test]
fn old_runs_are_counted_and_removed_and_what_they_cost_stays() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab", "--run-retention", "90d"]).code(0);
    spend(&home, 5, "lab");
    home.run(&["run", "wharf/fail", "--world", "lab"]).code(1);
    spend(&home, 1, "default");
    let before = costs(&home);

    let purge = |arguments: &[&str]| {
        let all = [&["runs", "purge", "--older-than"], arguments, &["--json"]].concat();
        home.run(&all).code(0).json()
    };
    assert_eq!(purge(&["1d", "--dry-run"])["matched"], 0, "none is that old");
    let old = ["1ms", "--status", "succeeded", "--world", "lab"];
    assert_eq!(purge(&[&old[..], &["--dry-run"]].concat())["matched"], 5);
    assert_eq!(runs(&home, "lab"), 6, "only counted");
    home.run(&["runs", "purge", "--older-than", "1ms"]).code(2);
    let done = purge(&[&old[..], &["--yes"]].concat());
    assert_eq!((&done["purged"], &done["kept"]), (&json!(5), &json!(0)), "{done}");
    assert_eq!(done["state"], "done", "{done}");
    assert_eq!((runs(&home, "lab"), runs(&home, "default")), (1, 1));
    assert_eq!(costs(&home), before);
    let told = home.run(&["runs", "purge", "--older-than", "1ms", "--yes"]).code(0);
    assert!(
        told.stderr.contains("removed 2 runs") || told.stdout.contains("removed 2 runs"),
        "{told:#?}"
    );

    core.kill();
    let core = home.up();
    assert_eq!((runs(&home, "lab"), runs(&home, "default")), (0, 0));
    assert_eq!(costs(&home), before);
    assert!(core.stop().code.is_some());
    home.run(&["audit", "verify"]).code(0);
    if home.has_a_file() {
        let compacted = home.run(&["migrate", "compact", "--json"]).code(0).json();
        let (before, after) = (&compacted["before_bytes"], &compacted["after_bytes"]);
        assert!(after.as_u64() <= before.as_u64(), "{compacted}");
    }
    let _core = home.up();
    assert_eq!(costs(&home), before, "and the database is whole");
}

#[test]
fn runs_of_a_removed_world_go_on_going_after_a_kill() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    spend(&home, 12, "lab");
    let before = costs(&home);
    home.run(&["worlds", "remove", "lab", "--purge-runs", "--yes"]).code(0);
    // Wherever it was, nothing is lost and nothing stays.
    core.kill();
    let core = home.up();
    wait_for("the runs of the removed world to go", || (runs(&home, "lab") == 0).then_some(()));
    assert_eq!(costs(&home), before);
    assert!(core.stop().code.is_some());
    home.run(&["audit", "verify"]).code(0);
}

#[test]
fn an_order_to_remove_runs_goes_on_after_a_kill_and_can_be_called_off() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    spend(&home, 30, "lab");
    let order = |arguments: &[&str]| {
        let all = [&["runs", "purge", "--older-than", "1ms", "--yes", "--detach"], arguments];
        home.run(&[&all.concat()[..], &["--json"]].concat()).code(0).json()
    };
    let given = order(&["--world", "lab"]);
    // Whether it is still under way is up to the machine; if it is, it stands in the status.
    let status = home.run(&["status", "--json"]).json();
    let under_way = status["purges"].as_array().expect("a list");
    let is_it = |one: &Value| one["purge_id"] == given["purge_id"] && one["state"] == "running";
    assert!(under_way.iter().all(is_it), "{status}");
    // Acknowledged is written down: whatever the core had done by then, nothing stays.
    core.kill();
    let core = home.up();
    wait_for("the runs to go", || (runs(&home, "lab") == 0).then_some(()));
    let listed = || home.run(&["runs", "purge", "--list", "--json"]).code(0).json();
    let ended = wait_for("the order to end", || {
        listed().as_array()?.iter().find(|it| it["state"] == "done").cloned()
    });
    assert_eq!(ended["purge_id"], given["purge_id"], "{ended}");
    assert_eq!((&ended["worlds"], &ended["kept"]), (&json!(["lab"]), &json!(0)), "{ended}");

    let id = given["purge_id"].as_str().expect("an id");
    let again = home.run(&["runs", "purge", "--cancel", id, "--json"]).code(0).json();
    assert_eq!(again["state"], "done", "what is over stays as it is: {again}");
    let none = home.run(&["runs", "purge", "--cancel", "nobody"]);
    assert!(none.code == Some(2) && none.stderr.contains("purge.not_found"), "{none:#?}");
    assert!(core.stop().code.is_some());
    home.run(&["audit", "verify"]).code(0);
}
