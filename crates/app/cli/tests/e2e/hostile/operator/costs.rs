//! It says that it cost more than there is.

use serde_json::json;

use crate::hostile::peers::Stage;
use crate::operators::driver::{Operator, detached};
use crate::security_page::{Peer, tried};

/// What is believed of one report when nothing was held: a hundred dollars.
const BELIEVED: u64 = 100_000_000;
const LIMIT: u64 = 1_000_000_000;

/// A worker that says what it cost and then what it was asked for.
const WORKER: &str = r#"*=python3 -c '
import json, os, urllib.request
body = json.dumps({"cost_micro": 2**64 - 1}).encode()
request = urllib.request.Request(os.environ["WHARF_BASE_URL"] + "/v1/worker/stats", body,
    {"authorization": "Bearer " + os.environ["WHARF_WORKER_HANDLE"],
     "content-type": "application/json"})
urllib.request.urlopen(request)
print("done")'"#;

#[test]
fn says_that_it_cost_all_the_money_there_is() {
    let stage = Stage::up();
    let limit = LIMIT.to_string();
    stage.home.run(&["worlds", "create", "lab", "--limit-micro", &limit]).code(0);
    let operator = Operator::wharf(&stage.home, &["--execute", WORKER]);
    let spent = || stage.api.get("/v1/worlds/lab")["spent_micro"].as_u64().expect("a number");
    for times in 1..=2 {
        let task = json!({"agent": "coder", "input": "x", "operator_sid": operator.sid,
            "world": "lab"});
        let ended = stage.api.end_of("lab", &detached(&stage.api, task));
        assert_eq!(ended["receipt"]["capped"], true, "{ended}");
        assert_eq!(spent(), times * BELIEVED, "a lie is not learned from");
    }
    // The owner takes back what nobody spent.
    let by = format!("-{}", spent());
    let correct = ["worlds", "correct", "lab", "--by-micro", &by, "--reason", "nobody spent it"];
    stage.home.run(&correct).code(0);
    assert_eq!(spent(), 0);
    tried(
        Peer::Operator,
        "says that a job cost all the money there is",
        "a bound on what is believed of one report",
        "100 dollars are booked, which the owner can correct",
    );
}
