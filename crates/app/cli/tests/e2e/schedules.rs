//! `docs/schedules.md`, command by command, and schedules across kill -9.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::page;
use crate::support::{Api, TestHome, wait_for};

#[test]
fn f030_the_page_about_schedules_tells_the_truth() {
    let home = TestHome::new();
    let core = home.up();
    let followed = page::follow_with(&home, core, "schedules.md");
    let (ran, checked) = (followed.ran, followed.checked);
    assert!(ran >= 8 && checked >= 15, "{ran} blocks were run, {checked} lines were looked for");
}

fn history(home: &TestHome, name: &str) -> Vec<Value> {
    let shown = home.run(&["schedule", "history", name, "--json"]).code(0).json();
    shown.as_array().cloned().expect("a list")
}

#[test]
fn f031_no_time_is_lost_or_doubled_by_kill_9() {
    let home = TestHome::new();
    let mut core = home.up();
    let add = ["schedule", "add", "beat", "--every", "1s", "--overlap", "parallel"];
    home.run(&[&add[..], &["wharf/echo", "text=hello"]].concat()).code(0);
    // Killed at moments that have nothing to do with its times.
    for life in 1..=4_u64 {
        let before = history(&home, "beat").len();
        wait_for("another time", || (history(&home, "beat").len() > before).then_some(()));
        std::thread::sleep(Duration::from_millis(137 * life));
        core.kill();
        core = home.up();
    }
    home.run(&["schedule", "pause", "beat"]).code(0);
    let settled = |all: &Vec<Value>| all.iter().all(|it| it["state"] != "due");
    let all = wait_for("what is due to start", || Some(history(&home, "beat")).filter(settled));
    let planned: BTreeSet<&str> =
        all.iter().map(|it| it["planned_at"].as_str().expect("a time")).collect();
    assert_eq!(planned.len(), all.len(), "each time once: {all:#?}");
    assert!(all.iter().all(|it| it["state"] == "started"), "{all:#?}");
    // Every second is there or counted as missed.
    let numbers: Vec<u64> =
        all.iter().rev().map(|it| it["n"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>());
    let missed: u64 = all.iter().map(|it| it["missed"].as_u64().expect("a number")).sum();
    let at = |it: &Value| -> u64 {
        let at: wharf_vocab::DateTime =
            it["planned_at"].as_str().expect("a time").parse().expect("a time");
        at.0.0
    };
    let seconds = (at(&all[0]) - at(&all[all.len() - 1])) / 1_000 + 1;
    assert_eq!(seconds, all.len() as u64 + missed, "{all:#?}");
    let api = Api::of(&core);
    let runs = api.get("/v1/runs?correlation_id=schedule:beat&limit=200");
    let runs: BTreeSet<&str> = runs["items"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|it| it["run_id"].as_str())
        .collect();
    let started: BTreeSet<&str> = all.iter().filter_map(|it| it["run_id"].as_str()).collect();
    assert_eq!(runs, started, "one run for each time");
}

#[test]
fn f032_a_schedule_ends_with_the_token_it_was_made_with() {
    let home = TestHome::new();
    let core = home.up();
    let token = home.run(&["token", "create", "--verb", "run,read", "--ttl", "1h"]).code(0);
    let token = token.stdout.trim().to_owned();
    let api = Api::with_token(&core, &token);
    let body = json!({"name": "hers", "every_ms": 1_000, "tool": "wharf/echo",
        "inputs": {"text": "x"}});
    let (status, made) = api.ask("POST", "/v1/schedules", &body);
    assert_eq!(status, 201, "{made}");
    assert!(made["expires_at"].is_string(), "{made}");
    let (status, again) = api.ask("POST", "/v1/schedules", &body);
    assert_eq!((status, again["error"]["code"].as_str()), (409, Some("schedule.exists")));
    home.run(&["token", "revoke", made["created_by"].as_str().expect("an id")]).code(0);
    let owner = Api::of(&core);
    let paused = wait_for("it to be paused", || {
        Some(owner.get("/v1/schedules/hers")).filter(|it| it["state"] == "paused")
    });
    assert_eq!(paused["pause_cause"], "rights_ended");
    let (status, refused) = owner.ask("POST", "/v1/schedules/hers/resume", &json!({}));
    assert_eq!((status, refused["error"]["code"].as_str()), (403, Some("permission.denied")));
}

#[test]
fn f030_rest_and_graphql_are_the_same_schedules() {
    let home = TestHome::new();
    let core = home.up();
    let api = Api::of(&core);
    let ask = |query: &str| {
        let (status, answer) = api.ask("POST", "/graphql", &json!({"query": query}));
        assert_eq!(status, 200, "{answer}");
        assert!(answer["errors"].is_null(), "{answer}");
        answer["data"].clone()
    };
    ask("mutation { createSchedule(input: {name: \"a\", cron: \"0 3 * * *\", tz: \"Asia/Tokyo\", \
         tool: \"wharf/echo\", inputs: {text: \"x\"}}) { name } }");
    let shown =
        ask("{ schedule(name: \"a\") { name state next tool cron tz } }")["schedule"].clone();
    let rest = api.get("/v1/schedules/a");
    for field in ["name", "state", "next", "tool", "cron", "tz"] {
        assert_eq!(shown[field], rest[field], "{field}");
    }
    assert!(rest["next"][2].as_str().expect("a time").ends_with("T03:00:00+09:00"), "{rest}");
    ask("mutation { triggerSchedule(name: \"a\") { fired } }");
    let fired = wait_for("its run to start", || {
        Some(ask("{ scheduleHistory(name: \"a\") { n state byHand runId } }"))
            .filter(|it| it["scheduleHistory"][0]["state"] == "started")
    });
    assert_eq!(fired["scheduleHistory"][0]["byHand"], true);
    ask("mutation { pauseSchedule(name: \"a\") { state } }");
    assert_eq!(api.get("/v1/schedules/a")["state"], "paused");
    ask("mutation { resumeSchedule(name: \"a\") { state } }");
    let list = ask("{ schedules(first: 5) { edges { node { name } } } }");
    assert_eq!(list["schedules"]["edges"][0]["node"]["name"], "a");
    assert_eq!(ask("mutation { removeSchedule(name: \"a\") }")["removeSchedule"], "a");
    let (status, gone) = api.ask("GET", "/v1/schedules/a", &Value::Null);
    assert_eq!((status, gone["error"]["code"].as_str()), (404, Some("schedule.not_found")));
}
