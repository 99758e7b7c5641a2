//! kill -9 under load: every accepted run is there afterwards, and each ends exactly once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Core, LONG, TestHome, client};

const ROUNDS: u64 = 5;
const CALLERS: u64 = 16;
const RUNS_PER_ROUND: u64 = 25;

/// Runs whose acceptance a caller has seen.
type Accepted = Arc<Mutex<BTreeSet<String>>>;

#[test]
fn kill_9_under_load_loses_nothing_and_ends_nothing_twice() {
    let home = TestHome::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let accepted: Accepted = Accepted::default();
    for round in 0..ROUNDS {
        let core = home.up();
        runtime.block_on(load(&core, round, &accepted));
        core.kill();
    }
    let core = home.up();
    let ids = accepted.lock().expect("not poisoned").clone();
    assert!(ids.len() >= 500, "only {} runs were accepted", ids.len());
    runtime.block_on(check(&core, &ids));
    core.stop().code(0);
    home.run(&["audit", "verify"]).code(0);
}

/// Callers start runs until enough are accepted; the kill comes while others are on their way.
async fn load(core: &Core, round: u64, accepted: &Accepted) {
    let client = client(core);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (client, url, accepted) = (client.clone(), core.url(), Arc::clone(accepted));
            tokio::spawn(async move {
                for n in 0.. {
                    let id = format!("r{round}-{caller}-{n}");
                    let body = json!({"run_id": id, "tool": tool(n), "inputs": inputs(n)});
                    let sent = client.post(format!("{url}/v1/runs")).json(&body).send().await;
                    match sent {
                        Ok(answer) if answer.status() == 202 => {
                            accepted.lock().expect("not poisoned").insert(id);
                        }
                        Ok(answer) => panic!("{id} was answered with {}", answer.status()),
                        Err(_) => return,
                    }
                }
            })
        })
        .collect();
    let wanted = usize::try_from((round + 1) * CALLERS * RUNS_PER_ROUND).expect("small");
    let deadline = tokio::time::Instant::now() + LONG;
    while accepted.lock().expect("not poisoned").len() < wanted {
        assert!(tokio::time::Instant::now() < deadline, "too few runs are accepted");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for caller in callers {
        caller.abort();
    }
}

fn tool(n: u64) -> &'static str {
    ["wharf/echo", "wharf/count", "wharf/sleep"][usize::try_from(n % 3).expect("small")]
}

fn inputs(n: u64) -> Value {
    match n % 3 {
        0 => json!({"n": n}),
        1 => json!({"n": 5, "delay_ms": 10}),
        _ => json!({"ms": n % 100}),
    }
}

/// Each run ends well, exactly once, and its events have no hole.
async fn check(core: &Core, ids: &BTreeSet<String>) {
    let client = client(core);
    for id in ids {
        let url = format!("{}/v1/runs/{id}/events", core.url());
        let reading = async { client.get(&url).send().await?.error_for_status()?.text().await };
        let text = tokio::time::timeout(LONG, reading)
            .await
            .unwrap_or_else(|_| panic!("{id} does not end"))
            .unwrap_or_else(|error| panic!("{id} is lost: {error}"));
        let finished =
            text.matches("event: finished").count() + text.matches("event:finished").count();
        assert_eq!(finished, 1, "{id}: {text}");
        assert!(text.contains(r#""status":"succeeded""#), "{id}: {text}");
    }
}
