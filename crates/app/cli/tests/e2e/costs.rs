//! What runs cost, as it is spent with one command and shown by another.

use serde_json::{Value, json};

use crate::support::TestHome;

fn spend(home: &TestHome, world: &str, cost: u64) {
    let cost = format!("cost_micro={cost}");
    home.run(&["run", "wharf/sleep", "ms=1", &cost, "--world", world]).code(0);
}

/// Key, runs, failed and cost of each row.
fn rows(home: &TestHome, arguments: &[&str]) -> Vec<Value> {
    let arguments = [&["costs", "--json"], arguments].concat();
    let page = home.run(&arguments).code(0).json();
    assert!(page["next_cursor"].is_null(), "{page}");
    let items = page["items"].as_array().expect("items").clone();
    let sum: u64 = items.iter().map(|item| item["cost_micro"].as_u64().expect("whole")).sum();
    assert_eq!(page["total_micro"], sum);
    let row = |item: &Value| json!([item["key"], item["runs"], item["failed"], item["cost_micro"]]);
    items.iter().map(row).collect()
}

#[test]
fn t041_what_runs_cost_is_summed_and_kept_over_a_restart() {
    let home = TestHome::new();
    let core = home.up();
    let nothing = home.run(&["costs"]).code(0);
    assert_eq!(nothing.stdout, "");
    assert!(nothing.stderr.contains("nothing was spent so far"), "{nothing:#?}");
    home.run(&["worlds", "create", "lab"]).code(0);
    spend(&home, "default", 1_000_000);
    spend(&home, "lab", 234_567);
    home.run(&["run", "wharf/fail"]).code(1);

    let check = || {
        let (sleep, fail) =
            (json!(["wharf/sleep", 2, 0, 1_234_567]), json!(["wharf/fail", 1, 1, 0]));
        assert_eq!(rows(&home, &[]), [sleep.clone(), fail.clone()]);
        assert_eq!(rows(&home, &["--by", "tool", "--since", "7d"]), [sleep, fail]);
        let lab = json!(["lab", 1, 0, 234_567]);
        assert_eq!(
            rows(&home, &["--by", "world"]),
            [json!(["default", 2, 1, 1_000_000]), lab.clone()]
        );
        assert_eq!(rows(&home, &["--by", "world", "--world", "lab"]), [lab]);
        assert_eq!(rows(&home, &["--by", "agent"]), [json!(["wharf", 3, 1, 1_234_567])]);
        let days = rows(&home, &["--by", "day"]);
        let runs: u64 = days.iter().map(|day| day[1].as_u64().expect("whole")).sum();
        // The runs may lie on both sides of midnight.
        assert!(runs == 3 && matches!(days.len(), 1 | 2), "{days:?}");
        assert_eq!(rows(&home, &["--until", "1d"]), [Value::Null; 0]);
    };
    check();
    core.kill();
    let _core = home.up();
    check();

    let table = home.run(&["costs"]).code(0).stdout;
    assert!(table.starts_with("TOOL") && table.is_ascii(), "{table}");
    let line = |name: &str| {
        let found = table.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("{name} is missing in {table}")).to_owned()
    };
    assert!(line("wharf/sleep").contains("$1.234567"), "{table}");
    assert!(line("wharf/sleep").ends_with(&"#".repeat(24)), "{table}");
    assert!(line("total").contains("$1.234567"), "{table}");
    let none = home.run(&["costs", "--until", "1d"]).code(0);
    assert!(none.stderr.contains("nothing was spent: no such run was started"), "{none:#?}");
}

#[test]
fn t041_costs_that_cannot_be_asked_for_are_refused() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["costs", "--by", "month"]).code(2);
    let bad = home.run(&["costs", "--since", "yesterday"]).code(2);
    assert!(bad.stderr.contains("7d, 24h or 90m"), "{bad:#?}");
    let none = home.run(&["costs", "--world", "none"]).code(2);
    assert!(none.stderr.contains("world.not_found"), "{none:#?}");
    home.run(&["worlds", "create", "lab"]).code(0);
    spend(&home, "default", 5);
    spend(&home, "lab", 7);
    let create = ["token", "create", "--verb", "read", "--world", "lab", "--json"];
    let token = home.run(&create).code(0).json()["token"].as_str().expect("a token").to_owned();
    let seen = home.run(&["costs", "--by", "world", "--json", "--token", &token]).code(0).json();
    assert_eq!((&seen["total_micro"], &seen["items"][0]["key"]), (&json!(7), &json!("lab")));
    let denied = home.run(&["costs", "--world", "default", "--token", &token]).code(3);
    assert!(denied.stderr.contains("permission.denied"), "{denied:#?}");
    drop(core);
}

#[test]
fn a_run_is_shown_with_its_cost_against_its_hold() {
    let home = TestHome::new();
    let _core = home.up();
    home.run(&["worlds", "budget", "default", "--default-hold-micro", "60"]).code(0);
    let run = home.run(&["run", "wharf/sleep", "ms=1", "cost_micro=50", "--json"]).code(0);
    let shown = |id: &str| home.run(&["runs", "show", id]).code(0).stdout;
    let id = run.stdout.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
    let id = id.expect("a run")["run_id"].as_str().expect("an id").to_owned();
    assert!(shown(&id).contains("$0.00005 of $0.00006 held"), "{}", shown(&id));
    let json = home.run(&["runs", "show", &id, "--json"]).code(0).json();
    assert_eq!((&json["hold_micro"], &json["held_micro"]), (&json!(60), &json!(0)));
}

#[test]
fn t041_what_is_over_the_limit_is_shown_and_corrected() {
    let home = TestHome::new();
    let core = home.up();
    let create = ["worlds", "create", "lab", "--limit-micro", "1500", "--unknown-cost", "held"];
    assert_eq!(
        home.run(&[&create[..], &["--json"]].concat()).code(0).json()["unknown_cost"],
        "held"
    );
    let dear = ["run", "wharf/sleep", "ms=1", "cost_micro=2100", "--world", "lab", "-q"];
    let run = home.run(&dear).code(0);
    let warning = "warning: the run cost $0.0021, and nothing was held for it";
    assert!(run.stderr.contains(warning), "{run:#?}");
    let id = run.json()["run_id"].as_str().expect("an id").to_owned();
    let shown = home.run(&["runs", "show", &id, "--world", "lab"]).code(0);
    assert!(shown.stdout.contains(warning), "{shown:#?}");
    let refused = home.run(&dear).code(3);
    assert!(refused.stderr.contains("budget.exceeded"), "{refused:#?}");
    let worlds = home.run(&["worlds"]).code(0).stdout;
    assert!(worlds.contains("over by $0.0006"), "{worlds}");
    home.run(&["run", "wharf/echo", "text=free", "--world", "lab"]).code(0);

    let correct = |by: &[&str], reason: &str| {
        let correct = ["worlds", "correct", "lab", "--reason", reason];
        home.run(&[&correct[..], by].concat())
    };
    let none = correct(&[], "how much?").code(2);
    assert!(none.stderr.contains("--by"), "{none:#?}");
    correct(&["--by", "-1"], "more than was spent").code(2);
    let corrected = correct(&["--by", "-0.0012", "--json"], "given back").code(0).json();
    assert_eq!((&corrected["spent_micro"], corrected.get("over_micro")), (&json!(900), None));
    correct(&["--by-micro", "100"], "billed by hand").code(0);
    let show = home.run(&["worlds", "show", "lab"]).code(0).stdout;
    assert!(show.contains("$0.001") && show.contains("booked as what was held"), "{show}");
    let audit = home.run(&["audit", "--json"]).code(0).stdout;
    assert!(audit.contains("world.corrected") && audit.contains("given back"), "{audit}");
    core.stop().code(0);
    home.run(&["audit", "verify"]).code(0);
}

#[test]
fn t041_a_run_that_pretends_says_what_it_would_have_cost() {
    let home = TestHome::new();
    let _core = home.up();
    home.run(&["worlds", "create", "lab", "--limit-micro", "0"]).code(0);
    let pretend =
        ["run", "wharf/sleep", "ms=1", "cost_micro=70", "--world", "lab", "--mode", "mock"];
    let run = home.run(&pretend).code(0);
    let json = run.json();
    assert_eq!((&json["cost_micro"], &json["would_cost_micro"]), (&json!(0), &json!(70)), "{json}");
    assert!(run.stderr.contains("would have cost $0.00007"), "{run:#?}");
    let id = json["run_id"].as_str().expect("an id");
    let shown = home.run(&["runs", "show", id, "--world", "lab"]).code(0).stdout;
    assert!(shown.contains("nothing; it would have been $0.00007"), "{shown}");
    assert_eq!(rows(&home, &["--by", "world"]), [json!(["lab", 1, 0, 0])]);
}
