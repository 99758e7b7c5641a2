//! Sums of what runs cost, from what providers report to what a token may see.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf_domain::run::AttemptError;
use wharf_domain::{Availability, Resolution, ToolDef};
use wharf_engine::{Attempt, AttemptEnd, Dispatch, Handle, ProviderSink};
use wharf_vocab::{AttemptId, Code, Executed, Fault, Object, ProviderId, ToolId};

use crate::support::{Edge, eventually};

/// A provider whose attempts cost what their inputs say, and fail if those say so.
struct Dear(Handle);

impl ProviderSink for Dear {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        let cost_micro = dispatch.spec.inputs["cost"].as_u64().expect("a cost");
        let fails = dispatch.spec.inputs.get("fail").is_some();
        let attempt = Attempt::new(self.0.clone(), dispatch);
        tokio::spawn(async move {
            let fault = Fault::new(Code::ToolFailed, "It was told to fail.");
            let result = if fails {
                Err(AttemptError::Failed(fault, Executed::Yes))
            } else {
                Ok(Object::new().into())
            };
            let report = AttemptEnd::new(result, cost_micro);
            attempt.ended(report.clone()).await.expect("told");
            // Said twice, it counts once.
            let _ = attempt.ended(report).await;
        });
        Ok(())
    }

    fn cancel(&self, _: &AttemptId, _: &str, _: u64) {}

    fn answer(&self, _: &AttemptId, _: &str, _: &Resolution) {}
}

/// An edge with worlds `a` and `b`, and the providers `p.one` and `p.two`.
async fn edge() -> Edge {
    let edge = Edge::start().await;
    for world in ["a", "b"] {
        assert_eq!(edge.post("/v1/worlds", json!({"world": world})).await.status, 201);
    }
    for provider in ["p.one", "p.two"] {
        let id = ProviderId::new(provider).expect("valid");
        let tool = ToolId::new(format!("{provider}/spend")).expect("valid");
        let mut tool = ToolDef::new(tool, "Costs something.", json!({"type": "object"}));
        tool.max_cost_micro = Some(100);
        let sink = Arc::new(Dear(edge.handle.clone()));
        edge.handle.providers().register(id.clone(), vec![tool], sink).await.expect("registers");
        edge.handle.providers().set_availability(id, Availability::Up).await.expect("up");
    }
    edge
}

async fn spend(edge: &Edge, world: &str, provider: &str, inputs: Value) -> Value {
    let tool = format!("{provider}/spend");
    let body = json!({"tool": tool, "world": world, "inputs": inputs});
    let answer = edge.post("/v1/runs?wait=20s", body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Key, runs, failed and cost of each row, and the total.
fn rows(page: &Value) -> (Vec<(String, u64, u64, u64)>, u64) {
    assert!(page["next_cursor"].is_null() && page.get("next_cursor").is_some(), "{page}");
    let number = |item: &Value, name: &str| item[name].as_u64().expect("a whole number");
    let items = page["items"].as_array().expect("items");
    let rows = items.iter().map(|item| {
        let key = item["key"].as_str().expect("a key").to_owned();
        assert!(item["wall_ms"].is_u64(), "{item}");
        (key, number(item, "runs"), number(item, "failed"), number(item, "cost_micro"))
    });
    (rows.collect(), number(page, "total_micro"))
}

fn expect(list: &[(&str, u64, u64, u64)]) -> (Vec<(String, u64, u64, u64)>, u64) {
    let rows =
        list.iter().map(|(key, runs, failed, cost)| (key.to_string(), *runs, *failed, *cost));
    (rows.collect(), list.iter().map(|row| row.3).sum())
}

async fn costs(edge: &Edge, query: &str) -> (Vec<(String, u64, u64, u64)>, u64) {
    let answer = edge.get(&format!("/v1/costs{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    rows(&answer.json())
}

#[tokio::test]
async fn t041_costs_of_all_runs_are_summed_failed_ones_too() {
    let edge = edge().await;
    assert_eq!(costs(&edge, "").await, expect(&[]));
    spend(&edge, "a", "p.one", json!({"cost": 5})).await;
    let failed = spend(&edge, "a", "p.one", json!({"cost": 7, "fail": true})).await;
    assert_eq!((&failed["status"], &failed["cost_micro"]), (&json!("failed"), &json!(7)));
    spend(&edge, "b", "p.one", json!({"cost": 100})).await;
    // More than it held counts as it is.
    spend(&edge, "b", "p.two", json!({"cost": 40_000_000_u64})).await;
    let dear = 40_000_000;
    let tools = expect(&[("p.two/spend", 1, 0, dear), ("p.one/spend", 3, 1, 112)]);
    assert_eq!(costs(&edge, "").await, tools);
    assert_eq!(costs(&edge, "?by=tool").await, tools);
    let agents = expect(&[("p.two", 1, 0, dear), ("p.one", 3, 1, 112)]);
    assert_eq!(costs(&edge, "?by=agent").await, agents);
    let worlds = expect(&[("b", 2, 0, dear + 100), ("a", 2, 1, 12)]);
    assert_eq!(costs(&edge, "?by=world").await, worlds);
    assert_eq!(costs(&edge, "?by=tool&world=a").await, expect(&[("p.one/spend", 2, 1, 12)]));
    // The sums are what the worlds' accounts say.
    for (world, spent) in [("a", 12), ("b", dear + 100)] {
        let account = edge.get(&format!("/v1/worlds/{world}")).await.json();
        assert_eq!((&account["spent_micro"], &account["held_micro"]), (&json!(spent), &json!(0)));
    }
    let (days, total) = costs(&edge, "?by=day").await;
    assert_eq!(total, dear + 112);
    assert_eq!(days.iter().map(|day| day.1).sum::<u64>(), 4);
    let is_date = |day: &str| day.len() == 10 && day.split('-').count() == 3;
    assert!(days.iter().all(|(day, ..)| is_date(day)), "{days:?}");
}

#[tokio::test]
async fn t041_costs_are_narrowed_by_time() {
    let edge = edge().await;
    let run = spend(&edge, "a", "p.one", json!({"cost": 5})).await;
    let at = run["created_at"].as_str().expect("a moment");
    let all = expect(&[("p.one/spend", 1, 0, 5)]);
    for query in ["?since=7d", "?since=24h", "?until=0s", "?since=1h30m&until=0s"] {
        // What was accepted in this very millisecond lies not before it.
        eventually(async || (costs(&edge, query).await == all).then_some(())).await;
    }
    assert_eq!(costs(&edge, &format!("?since={at}")).await, all);
    for query in [
        "?until=7d".to_owned(),
        format!("?until={at}"),
        "?since=2099-01-01T00:00:00Z".to_owned(),
        "?since=2001-01-01T00:00:00Z&until=2002-01-01T00:00:00Z".to_owned(),
    ] {
        assert_eq!(costs(&edge, &query).await, expect(&[]), "{query}");
    }
    for (query, field) in [
        ("by=month", "by"),
        ("since=yesterday", "since"),
        ("since=2026-11-15", "since"),
        ("until=-1d", "until"),
        ("since=1h&until=2h", "until"),
        ("world=%2F", "world"),
    ] {
        let answer = edge.get(&format!("/v1/costs?{query}")).await;
        let error = answer.refused(400, "request.invalid");
        assert_eq!(error["details"]["field"], field, "{query}");
    }
    edge.get("/v1/costs?world=none").await.refused(404, "world.not_found");
}

#[tokio::test]
async fn t041_a_token_sees_the_costs_of_its_worlds_only() {
    let edge = edge().await;
    for (world, cost) in [("default", 1), ("a", 10), ("b", 100)] {
        spend(&edge, world, "p.one", json!({"cost": cost})).await;
    }
    let token = async |worlds: Value| {
        let made = edge.token(json!({"verbs": ["read"], "worlds": worlds})).await;
        made["token"].as_str().expect("a token").to_owned()
    };
    let seen = async |token: &str, query: &str| {
        let answer = edge.call_as(token, "GET", &format!("/v1/costs{query}")).send().await;
        rows(&answer.json())
    };
    let one = token(json!(["a"])).await;
    let two = token(json!(["a", "b"])).await;
    assert_eq!(seen(&one, "").await, expect(&[("p.one/spend", 1, 0, 10)]));
    assert_eq!(seen(&one, "?by=world").await, expect(&[("a", 1, 0, 10)]));
    assert_eq!(seen(&two, "").await, expect(&[("p.one/spend", 2, 0, 110)]));
    assert_eq!(seen(&two, "?by=world").await, expect(&[("b", 1, 0, 100), ("a", 1, 0, 10)]));
    assert_eq!(seen(&two, "?by=world&world=a").await, expect(&[("a", 1, 0, 10)]));
    // Whether there is another world is not to be found out.
    for world in ["b", "none"] {
        let path = format!("/v1/costs?world={world}");
        let answer = edge.call_as(&one, "GET", &path).send().await;
        assert_eq!(answer.refused(403, "permission.denied")["details"]["world"], world);
    }
}

#[tokio::test]
async fn t041_runs_kept_in_memory_count_while_they_are_known() {
    let edge = edge().await;
    for durability in ["memory", "journal"] {
        let body = json!({"tool": "p.one/spend", "inputs": {"cost": 6}, "durability": durability});
        let run = edge.post("/v1/runs?wait=20s", body).await.json();
        assert_eq!((&run["durability"], &run["cost_micro"]), (&json!(durability), &json!(6)));
    }
    assert_eq!(costs(&edge, "").await, expect(&[("p.one/spend", 2, 0, 12)]));
}

#[tokio::test]
async fn a_run_shows_what_is_held_for_it() {
    let edge = Edge::start().await;
    let budget = json!({"limit_micro": 1_000, "default_hold_micro": 60});
    let set = edge.call("PUT", "/v1/worlds/default/budget").json(&budget).send().await;
    assert_eq!(set.status, 200, "{set:?}");
    let run = edge.begin("wharf/sleep", json!({"ms": 60_000})).await;
    let shown = edge.until(&run, "running").await;
    let held = (&shown["hold_micro"], &shown["held_micro"], &shown["cost_micro"]);
    assert_eq!(held, (&json!(60), &json!(60), &json!(0)));
    edge.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    let shown = edge.until(&run, "canceled").await;
    assert_eq!((&shown["hold_micro"], &shown["held_micro"]), (&json!(60), &json!(0)));
    let listed = edge.get("/v1/runs").await.json();
    assert!(listed["items"][0].get("hold_micro").is_none(), "lists know nothing of it: {listed}");
}
