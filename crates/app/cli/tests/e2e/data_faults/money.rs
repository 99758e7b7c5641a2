//! Many runs that want the same money, budgets that change under them, and agents that lie about
//! what they cost.

use serde_json::{Value, json};
use wharf_vocab::limits::COST_REPORT_MICRO_MIN;

use super::{TOOL, start_agent};
use crate::agents::has_python;
use crate::support::{Api, Core, TestHome, client, wait_for};

const HOLD: u64 = 60;
const CALLERS: usize = 64;

fn nap(cost: u64) -> Value {
    json!({"tool": "wharf/sleep", "world": "lab", "inputs": {"ms": 600_000, "cost_micro": cost}})
}

/// Starts as many runs at the same moment; gives the status and the body of each answer.
fn start_all(core: &Core) -> Vec<(u16, Value)> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let (client, url) = (client(core), format!("{}/v1/runs", core.url()));
    let ask = |_| {
        let sent = client.post(&url).json(&nap(0)).send();
        async move {
            let answer = sent.await.expect("an answer");
            (answer.status().as_u16(), answer.json().await.expect("JSON"))
        }
    };
    runtime.expect("a runtime").block_on(futures::future::join_all((0..CALLERS).map(ask)))
}

/// What is set aside and what is spent.
fn account(api: &Api) -> (u64, u64) {
    let world = api.get("/v1/worlds/lab");
    let of = |name: &str| world[name].as_u64().expect("a whole number");
    (of("held_micro"), of("spent_micro"))
}

/// By how much a run is refused that would be started now.
fn missing(api: &Api) -> u64 {
    let (status, refused) = api.ask("POST", "/v1/runs", &nap(0));
    assert_eq!((status, &refused["error"]["code"]), (402, &json!("budget.exceeded")), "{refused}");
    assert_eq!(refused["error"]["details"]["account"], "world:lab", "{refused}");
    refused["error"]["details"]["missing_micro"].as_u64().expect("an amount")
}

fn set_limit(api: &Api, limit: u64) {
    let budget = json!({"limit_micro": limit, "default_hold_micro": HOLD});
    let (status, answer) = api.ask("PUT", "/v1/worlds/lab/budget", &budget);
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn t041_of_64_runs_on_the_budget_of_one_exactly_one_is_admitted() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    let api = Api::of(&core);
    set_limit(&api, HOLD);
    let (admitted, refused): (Vec<_>, Vec<_>) =
        start_all(&core).into_iter().partition(|(status, _)| *status == 202);
    assert_eq!((admitted.len(), refused.len()), (1, CALLERS - 1), "{refused:?}");
    for (status, answer) in refused {
        let error = &answer["error"];
        assert_eq!((status, &error["code"]), (402, &json!("budget.exceeded")), "{answer}");
        assert_eq!(error["details"]["missing_micro"], HOLD, "{answer}");
    }
    assert_eq!(account(&api), (HOLD, 0));
    let runs = api.get("/v1/runs?world=lab");
    assert_eq!(runs["items"].as_array().map(Vec::len), Some(1), "who is refused is no run");

    // The money is free again when its run is gone, and again exactly one gets it.
    let id = admitted[0].1["run_id"].as_str().expect("an id");
    api.ask("POST", &format!("/v1/runs/{id}/cancel?world=lab"), &json!({}));
    assert_eq!(api.end_of("lab", id)["status"], "canceled");
    assert_eq!(account(&api), (0, 0));
    assert_eq!(start_all(&core).iter().filter(|(status, _)| *status == 202).count(), 1);
    core.kill();
    let core = home.up();
    let api = Api::of(&core);
    wait_for("the run to be tried again with a hold of its own", || {
        (account(&api) == (HOLD, 0)).then_some(())
    });
    assert_eq!(missing(&api), HOLD);
}

#[test]
fn t041_a_budget_that_is_lowered_counts_at_once_and_takes_nothing_back() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    let api = Api::of(&core);
    set_limit(&api, 3 * HOLD);
    let id = |answer: Value| answer["run_id"].as_str().expect("an id").to_owned();
    let goes_on = id(api.start(&nap(0)));
    let mut ends = nap(50);
    ends["inputs"]["ms"] = json!(1);
    set_limit(&api, 10);
    assert_eq!(account(&api), (HOLD, 0), "what is set aside stays so");
    assert_eq!(missing(&api), HOLD + HOLD - 10);
    assert_eq!(api.get(&format!("/v1/runs/{goes_on}?world=lab"))["status"], "running");

    set_limit(&api, 2 * HOLD);
    let ended = id(api.start(&ends));
    set_limit(&api, 0);
    let ended = api.end_of("lab", &ended);
    assert_eq!((&ended["status"], &ended["cost_micro"]), (&json!("succeeded"), &json!(50)));
    assert_eq!(account(&api), (HOLD, 50));
    assert_eq!(missing(&api), HOLD + 50 + HOLD);
    api.ask("POST", &format!("/v1/runs/{goes_on}/cancel?world=lab"), &json!({}));
    api.end_of("lab", &goes_on);
    assert_eq!((account(&api), missing(&api)), ((0, 50), 50 + HOLD));
    set_limit(&api, 50 + HOLD);
    api.start(&nap(0));
    core.stop().code(0);
    home.run(&["audit", "verify"]).code(0);
}

#[test]
fn t041_costs_that_are_no_amount_are_violations_and_cost_nothing() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    let _folder = start_agent(&home, "standard");
    let api = Api::of(&core);
    set_limit(&api, HOLD);
    // Beyond what 64 bits hold there are only numbers that JSON can write.
    let lies =
        [json!(-1), json!(-0.5), json!(1.5), json!(1e30), json!(18_446_744_073_709_551_616.0)];
    for (at, cost) in lies.iter().enumerate() {
        let id = format!("lie-{at}");
        let inputs = json!({"cost": cost});
        api.start(&json!({"tool": TOOL, "world": "lab", "run_id": id, "inputs": inputs}));
        let run = api.end_of("lab", &id);
        assert_eq!(
            (&run["status"], &run["cost_micro"]),
            (&json!("succeeded"), &json!(0)),
            "{cost}"
        );
        assert_eq!(run["receipt"]["cost_micro"], 0, "{run}");
        assert_eq!(account(&api), (0, 0), "{cost}");
    }
    let found = wait_for("a record of each lie", || {
        let audit = api.get("/v1/audit?limit=200");
        let records = audit["items"].as_array().expect("records").clone();
        let cost = |record: &Value| {
            record["event"] == "agent.protocol_violation" && record.to_string().contains("\"cost\"")
        };
        let found: Vec<_> = records.into_iter().filter(cost).collect();
        (found.len() >= lies.len()).then_some(found)
    });
    assert_eq!(found.len(), lies.len(), "{found:#?}");

    // The most that there is is an amount, but nobody's price: it is cut down to what is believed
    // of one report, and nothing overflows.
    let mut spent = 0;
    for (id, most) in [("most", COST_REPORT_MICRO_MIN), ("more", COST_REPORT_MICRO_MIN)] {
        set_limit(&api, i64::MAX.cast_unsigned());
        let inputs = json!({"cost": u64::MAX});
        api.start(&json!({"tool": TOOL, "world": "lab", "run_id": id, "inputs": inputs}));
        let run = api.end_of("lab", id);
        assert_eq!((&run["status"], &run["cost_micro"]), (&json!("succeeded"), &json!(most)));
        let receipt = &run["receipt"];
        assert_eq!((&receipt["over_hold"], &receipt["capped"]), (&json!(true), &json!(true)));
        spent += most;
        assert_eq!(account(&api), (0, spent));
    }
    core.stop().code(0);
    home.run(&["audit", "verify"]).code(0);
}
